"""Decorators of compiled functions, and the arrays and records that these work on.

Compiled code comes with the package (:mod:`milp_recourse.engine.shipped_code`) or is kept on disk
(:mod:`milp_recourse.engine.compile_cache`); while something is compiled, a line says so.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, get_args, get_type_hints

import numba
import numpy as np
from numba.core import event, types
from numba.core.runtime.nrt import rtsys

from milp_recourse.engine import shipped_code
from milp_recourse.engine.cache_folder import NotOwn
from milp_recourse.engine.compile_cache import LOG, FunctionCache, say_unkept
from milp_recourse.engine.numba_internals import (
    CONFIG,
    BareCompiler,
    PartCompiler,
    WholeCompiler,
)
from milp_recourse.engine.passed_by_address import by_reference, refer

__all__ = [
    "allocated",
    "announced",
    "by_reference",
    "clock",
    "compiled",
    "counting",
    "counting_entry",
    "entry",
    "record",
    "refer",
]

_Kind = TypeVar("_Kind")

NOTICE = "milp_recourse: compiling {}, about half a minute (once for this version on this machine)"
PROGRESS = "milp_recourse: compiling {}: {} functions so far, {:.0f} s"
SECONDS, EVERY = 3.0, 5.0
"""How long compiling lasts before :data:`NOTICE` is logged, and between two lines of :data:`PROGRESS`."""

RARELY = 50_000
"""Threshold of Python's garbage collector while something is compiled. Compiling makes many long-lived
objects; at the default threshold the collector takes a tenth of the time and frees next to nothing."""


@contextlib.contextmanager
def announced(what: str) -> Iterator[None]:
    """Log :data:`NOTICE` as a warning if ``what`` is compiled inside for longer than :data:`SECONDS`, and
    then how far it is.

    Loading compiled code from the cache never logs anything, even where the machine is slow.
    """
    ended, counted = threading.Event(), _Counter()
    teller = threading.Thread(target=_tell, args=(what, counted, ended), daemon=True)
    EntryCache.teller = teller
    often = gc.get_threshold()
    gc.set_threshold(RARELY, *often[1:])
    try:
        with event.install_listener("numba:compile", counted):
            yield
    finally:
        gc.set_threshold(*often)
        ended.set()
        EntryCache.teller = None


class _Counter(event.Listener):
    """Counts the functions that numba has compiled."""

    functions = 0

    def on_start(self, seen: Any) -> None:
        """Nothing: it is not compiled yet."""

    def on_end(self, seen: Any) -> None:
        """One more."""
        self.functions += 1


def _tell(what: str, counted: _Counter, ended: threading.Event) -> None:
    """Log what :func:`announced` says, until the compiling has ended."""
    begun = time.monotonic()
    if ended.wait(SECONDS):
        return
    notice = NOTICE.format(what)
    LOG.warning(notice.partition(" (")[0] if EntryCache.absent else notice)
    while not ended.wait(EVERY):
        LOG.warning(PROGRESS.format(what, counted.functions, time.monotonic() - begun))


clock: Any = types.ExternalFunction("clock", types.int32())
"""The C library's clock for compiled code: by POSIX, the process's processor time in microseconds, modulo
:data:`ROUND`. Limits are kept by the wall clock, between slices."""
ROUND = 1 << 32
if CONFIG.DISABLE_JIT:
    clock = lambda: int(1e6 * time.process_time())  # noqa: E731


def record(**fields: Any) -> np.dtype[Any]:
    """The type of a record of numbers, or of the elements of an array of such: ``one.field`` reads and writes
    it, in compiled code and in Python."""
    return np.dtype((np.record, np.dtype(list(fields.items()), align=True)))


@functools.cache
def _fields(kind: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def allocated(kind: Callable[..., _Kind], **sizes: int) -> _Kind:
    """A named tuple of zeroed arrays. The annotation of each field, ``Annotated[NDArray[...], ...]``, states
    the array's shape: numbers, and names of ``sizes``; ``Annotated[Any, record, ...]`` is one of records, one
    record if there is no shape. A field annotated by a class of named tuples is one of these; "block" is the
    memory of the other arrays of doubles."""
    made: dict[str, Any] = {}
    for name, hint in _fields(kind).items():
        if not get_args(hint):
            made[name] = allocated(hint, **sizes)
            continue
        array, *shape = get_args(hint)
        if array is Any:
            number, *shape = shape
        else:
            *_, number = get_args(array)  # the type of its numbers, before numpy 2.5 inside a dtype
            number, *_ = get_args(number) or (number,)
        lengths = [sizes.get(length, length) for length in shape if length != "block"]
        made[name] = np.zeros(lengths, number) if lengths else np.zeros(1, number)[0]
    if "block" in made:
        inside = {name: one for name, one in made.items() if name != "block" and one.dtype == float}
        made["block"] = np.zeros(sum(one.size for one in inside.values()))
        ends = np.cumsum([one.size for one in inside.values()])[:-1]
        for (name, one), part in zip(inside.items(), np.split(made["block"], ends), strict=True):
            made[name] = part.reshape(one.shape)
    return kind(**made)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled code calls, and that makes no arrays.

    Arrays are not reference counted: Python owns all of them and keeps them while compiled code runs. numba's
    counts are atomic operations wherever an array is passed on or a row of it is taken; they took a third of
    the time of a search.
    """
    return _compiled(function, PartCompiler, counts=False)


def counting(function: Callable[..., Any]) -> Any:
    """As :func:`compiled`, for a function that makes arrays, for all that call it and all that it calls."""
    return _compiled(function, PartCompiler, counts=True)


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and keep the result on disk (with all that it calls).

    It makes no arrays, nor does what it calls; see :func:`compiled`.
    """
    return _entry(function, BareCompiler, counts=False)


def counting_entry(function: Callable[..., Any]) -> Any:
    """As :func:`entry`, for a function that makes arrays or calls one that does."""
    return _entry(function, WholeCompiler, counts=True)


class EntryCache:
    """Where an entry's machine code comes from: the package, else the user's folder, else it is compiled.

    What came with the package is first: it is as fast, and who has it needs no folder. Nothing is written
    there.
    """

    teller: threading.Thread | None = None
    """The thread of :func:`announced`, started when a function is not found."""
    absent = False
    """Whether no folder can be used, so that every process compiles."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @functools.cached_property
    def _own(self) -> FunctionCache | None:
        try:
            return FunctionCache(self._function)
        except (NotOwn, OSError) as reason:
            EntryCache.absent = True
            say_unkept(str(reason))
            return None

    @property
    def cache_path(self) -> str | None:
        """The user's folder, for numba's statistics."""
        return None if self._own is None else str(self._own.folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load what there is; if nothing is found, numba compiles next: start the thread."""
        rtsys.initialize(target_context)  # how compiled code and Python share arrays
        found = shipped_code.load(self._function, sig, target_context)
        if found is None and self._own is not None:
            found = self._own.load(sig, target_context)
        if found is None and EntryCache.teller is not None and EntryCache.teller.ident is None:
            EntryCache.teller.start()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled in the user's folder."""
        if self._own is not None:
            self._own.save(sig, data)


def _compiled(
    function: Callable[..., Any], compiler: type[PartCompiler], counts: bool, for_python: bool = False
) -> Any:
    options: Any = {"no_cpython_wrapper": not for_python, "no_cfunc_wrapper": True}
    options |= {"pipeline_class": compiler, "_nrt": counts}
    dispatcher: Any = numba.njit(error_model="numpy", nogil=True, **options)(function)
    if not inspect.isfunction(dispatcher):  # NUMBA_DISABLE_JIT=1 leaves the function as it is
        dispatcher.get_call_template = _for_any_number(dispatcher.get_call_template)
    return dispatcher


def _for_any_number(template: Callable[..., Any]) -> Callable[..., Any]:
    """Compile one version for all values of an argument; numba compiles another one per literal that is
    passed."""

    def general(args: Any, kws: Any) -> Any:
        return template(
            tuple(types.unliteral(a) for a in args), {k: types.unliteral(v) for k, v in kws.items()}
        )

    return general


def _entry(function: Callable[..., Any], compiler: type[PartCompiler], counts: bool) -> Any:
    dispatcher = _compiled(function, compiler, counts, for_python=True)
    if not inspect.isfunction(dispatcher):
        # of what is loaded from disk there is only machine code, which nothing can be linked with
        called = (counting if counts else compiled)(function)
        dispatcher.get_call_template, dispatcher.get_overload = called.get_call_template, called.get_overload
        dispatcher._cache = EntryCache(function)
    return dispatcher
