"""Compiling with numba, with a cache on disk whose key covers every source file in the functions' folder.

numba's own cache of a function is keyed by that function's file, although the compiled code contains globals
and inlined functions of other files. Here the key is a digest of every source in the function's folder, of
this file, of two files outside whose constants it freezes, and of the versions of Python, numpy, numba and
llvmlite. An edit anywhere in the folder compiles all of it
anew, so compiled functions may only call compiled functions of their own folder.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import inspect
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args, get_type_hints

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from llvmlite.binding import newpassmanagers
from numba.core import caching, cgutils, codegen, compiler, event, imputils, types
from numba.core.runtime import rtsys
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from milp_recourse.engine.cache_folder import NotOwn, cache_folder, places

LOG = logging.getLogger("milp_recourse")
"""Its warnings are printed on stderr where the caller has set up no logging."""

NOTICE = "milp_recourse: compiling {}, about half a minute (once for this version on this machine)"
PROGRESS = "milp_recourse: compiling {}: {} functions so far, {:.0f} s"
UNKEPT = "milp_recourse: compiled code is not kept, so every process compiles its own: {}"
SECONDS, EVERY = 3.0, 5.0
"""How long compiling lasts before :data:`NOTICE` is logged, and between two lines of :data:`PROGRESS`."""

CONFIG: Any = numba.config

_Kind = TypeVar("_Kind")

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
    _Cache.teller = teller
    if _Cache.absent:
        teller.start()
        _say_unkept("; ".join(_Cache.refused))
    often = gc.get_threshold()
    gc.set_threshold(RARELY, *often[1:])
    try:
        with event.install_listener("numba:compile", counted):
            yield
    finally:
        gc.set_threshold(*often)
        ended.set()
        _Cache.teller = None


@cache
def _say_unkept(why: str) -> None:
    """Log :data:`UNKEPT`, once per process and reason."""
    LOG.warning(UNKEPT.format(why))


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
    LOG.warning(notice.partition(" (")[0] if _Cache.absent else notice)
    while not ended.wait(EVERY):
        LOG.warning(PROGRESS.format(what, counted.functions, time.monotonic() - begun))


OUTSIDE = Path("problem", "result.py"), Path("problem", "forest.py")
"""Files of the package outside the folders of compiled code whose constants it freezes."""


@cache
def digest(sources: Path) -> str:
    """The cache key of a folder's functions: 20 hexadecimal digits of a hash of sources and versions."""
    versions = sys.version, np.__version__, numba.__version__, llvmlite.__version__
    key = hashlib.sha256(" ".join(versions).encode())
    others = (Path(__file__).parents[1] / path for path in OUTSIDE)
    for path in (Path(__file__), *others, *sorted(sources.glob("*.py"))):
        key.update(path.name.encode() + b"\0" + path.read_bytes())
    return key.hexdigest()[:20]


class _Locator(caching._CacheLocator):
    """Tells numba the folder and the key of a function's cached code."""

    def __init__(self, py_func: Callable[..., Any], sources: Path, place: Path) -> None:
        self._name = f"{py_func.__module__}.{py_func.__qualname__}"
        self._sources, self._place = sources, place
        self._folder = cache_folder(place, digest(sources))

    def get_cache_path(self) -> str:
        return str(self._folder)

    def ensure_cache_path(self) -> None:
        """Check again that the folder is nobody else's: temporary folders are emptied at times."""
        if cache_folder(self._place, digest(self._sources)) != self._folder:
            raise NotOwn(f"{self._folder} is no longer what it was")

    def get_source_stamp(self) -> str:
        return digest(self._sources)

    def get_disambiguator(self) -> str:
        return self._name

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator | None:
        sources = Path(py_func.__code__.co_filename).resolve().parent
        for place in places():
            try:
                return cls(py_func, sources, place)
            except NotOwn as reason:
                _Cache.refused.setdefault(str(reason))
        return None


class _Impl(caching.CompileResultCacheImpl):
    _locator_classes: Any = (_Locator,)


class _Cache(caching.FunctionCache):
    _impl_class = _Impl
    teller: threading.Thread | None = None
    """The thread of :func:`announced`, started when a function is not found in the cache."""
    absent = False
    """Whether no folder can be used, so that nothing is cached."""
    refused: ClassVar[dict[str, None]] = {}
    """Why folders cannot be used."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load from the cache as numba does; if nothing is found, numba compiles next: start the thread.

        A file that is broken, after the machine lost power, say, counts as not found. What is only needed to
        compile stays unloaded: numba's ``refresh`` imports half of numba, and SciPy.
        """
        found = None
        try:
            self._impl.locator.ensure_cache_path()
            rtsys.initialize(target_context)  # how compiled code and Python share arrays
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(sig, target_context)
        except NotOwn as reason:
            self._not_kept(reason)
        except Exception:  # whatever a pickle that was cut off raises
            with contextlib.suppress(OSError):
                self.flush()
        if found is None and _Cache.teller is not None and _Cache.teller.ident is None:
            _Cache.teller.start()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save as numba does; where that fails, on a full disk, say, the compiled code is not kept."""
        if self._enabled:
            try:
                super().save_overload(sig, data)
            except (OSError, NotOwn) as reason:
                self._not_kept(reason)

    def _not_kept(self, reason: OSError | NotOwn) -> None:
        self.disable()
        said = f"{self.cache_path}: {reason.strerror}" if isinstance(reason, OSError) else str(reason)
        _say_unkept(said)


class Reference(types.Type):
    """The numba type of a named tuple that is passed by its address; its fields are never replaced. A field
    that is a named tuple is passed by its address, too.

    numba itself passes a tuple as the numbers it consists of. A tuple of thirty arrays is 250 numbers, and
    more than half of the intermediate code only moved them.
    """

    def __init__(self, record: types.NamedTuple) -> None:
        self.record = record
        suffix = hashlib.sha256(record.name.encode()).hexdigest()[:8]
        super().__init__(name=f"{record.instance_class.__name__}_{suffix}")


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, manager.lookup(kind.record).get_value_type().as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):
    """Types of the attributes of a :class:`Reference`: the fields of its tuple."""

    key = Reference

    def generic_resolve(self, value: Any, attr: str) -> Any:  # type: ignore[override]
        record = value.record
        if attr not in record.fields:
            return None
        kind = record[record.fields.index(attr)]
        return Reference(kind) if isinstance(kind, types.NamedTuple) else kind


@lower_getattr_generic(Reference)
def _field(context: Any, builder: Any, kind: Reference, address: Any, name: str) -> Any:
    record: Any = kind.record
    at = record.fields.index(name)
    place = cgutils.gep_inbounds(builder, address, 0, at)
    if isinstance(record[at], types.NamedTuple):
        return place
    return imputils.impl_ret_borrowed(context, builder, record[at], builder.load(place))


@unbox(Reference)
def _unbox(kind: Reference, given: Any, c: Any) -> Any:
    native = c.unbox(kind.record, given)
    address = cgutils.alloca_once_value(c.builder, native.value)
    return NativeValue(address, is_error=native.is_error, cleanup=native.cleanup)


@intrinsic
def _refer(typing: Any, record: Any) -> Any:
    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return cgutils.alloca_once_value(builder, values[0])

    return Reference(record)(record), lower


refer: Any = _refer
"""A :class:`Reference` to a named tuple made in compiled code, valid until the calling function returns or
reaches the same line again."""
if CONFIG.DISABLE_JIT:
    refer = lambda record: record  # noqa: E731


clock: Any = types.ExternalFunction("clock", types.int32())
"""The C library's clock for compiled code: by POSIX, the process's processor time in microseconds, modulo
:data:`ROUND`. Limits are kept by the wall clock, between slices."""
ROUND = 1 << 32
if CONFIG.DISABLE_JIT:
    clock = lambda: int(1e6 * time.process_time())  # noqa: E731


def by_reference(kind: Any) -> Any:
    """Decorator of a class of named tuples: compiled functions take them by address (:class:`Reference`)."""

    @typeof_impl.register(kind)
    def _typeof(value: Any, c: Any) -> Reference:
        fields = (numba.typeof(v) for v in value)
        return Reference(
            types.BaseTuple.from_types([f.record if isinstance(f, Reference) else f for f in fields], kind)
        )

    return kind


def record(**fields: Any) -> np.dtype[Any]:
    """The type of a record of numbers, or of the elements of an array of such: ``one.field`` reads and writes
    it, in compiled code and in Python."""
    return np.dtype((np.record, np.dtype(list(fields.items()), align=True)))


def allocated(kind: Callable[..., _Kind], **sizes: int) -> _Kind:
    """A named tuple of zeroed arrays. The annotation of each field, ``Annotated[NDArray[...], ...]``, states
    the array's shape: numbers, and names of ``sizes``; ``Annotated[Any, record, ...]`` is one of records, one
    record if there is no shape. A field annotated by a class of named tuples is one of these; "block" is the
    memory of the other arrays of doubles."""
    made: dict[str, Any] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
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


def _unaliased(module: Any) -> None:
    """Tell LLVM that nothing writes to a tuple that is passed by address through another pointer, so that its
    fields may stay in registers."""
    for function in module.functions:
        for argument in function.args:
            pointee = getattr(argument.type, "pointee", None)
            if argument.name.startswith("arg.") and isinstance(pointee, ir.LiteralStructType):
                argument.add_attribute("noalias")


class _Part(codegen.JITCodeLibrary):
    """Intermediate code of a function that only compiled code calls.

    numba would optimise such a function, and turn it into machine code, once by itself and again in every
    caller. Here that is done once, when the entry that calls it is compiled (:class:`_Whole`).
    """

    @property
    def codegen(self) -> Any:
        return _Nowhere()

    def add_ir_module(self, module: Any) -> None:
        _unaliased(module)
        super().add_ir_module(module)

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0  # there is no machine code


class _Inner(_Part):
    """A :class:`_Part` without reference counts: by itself it is only simplified, by three fast passes; it is
    optimised with its entry (:class:`_Whole`)."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        builder = self._codegen._pass_builder()
        passes = newpassmanagers.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


class _Nowhere:
    """Stands for the code generator of a :class:`_Part`, which is never executed by itself."""

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing: only functions that Python calls need an environment."""


class _Whole(codegen.JITCodeLibrary):
    """An entry, linked with all functions that it calls and optimised once.

    The functions called are made private to the entry, so that LLVM can drop arguments that are not read.
    """

    def add_ir_module(self, module: Any) -> None:
        _unaliased(module)
        super().add_ir_module(module)

    def serialize_using_object_code(self) -> Any:
        """As numba does, with the names of intermediate code alone: nothing is linked with what is loaded."""
        self._ensure_finalized()
        module = self._final_module
        names = [g.name for gs in (module.functions, module.global_variables) for g in gs if _visible(g)]
        named = llvm.parse_assembly("\n".join(f'@"{name}" = global i8 0' for name in names))
        return self.name, "object", (self._get_compiled_object(), named.as_bitcode())

    def finalize(self) -> None:
        self._raise_if_finalized()
        own = {f.name for f in self._final_module.functions if not f.is_declaration}
        parts: dict[Any, None] = {}
        waiting = list(self._linking_libraries)
        while waiting:
            part = waiting.pop()
            if part not in parts:
                parts[part] = None
                if isinstance(part, _Part):
                    waiting += part._linking_libraries
        for part in parts:
            if hasattr(self, "_reload_init"):  # numba 0.62
                self._reload_init.update(part._reload_init)
            self._final_module.link_in(part._get_module_for_linking(), preserve=True)
        for function in self._final_module.functions:
            if not (function.is_declaration or function.name in own or function.name.startswith("NRT_")):
                function.linkage = "internal"
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()


def _visible(value: Any) -> bool:
    return not value.is_declaration and value.linkage not in (llvm.Linkage.internal, llvm.Linkage.private)


class _Bare(_Whole):
    """A :class:`_Whole` without reference counts, which numba's first pass would otherwise remove.

    Loops are vectorised but not unrolled: most are over 4 to 64 numbers, and searches take 3 to 5% less time.
    """

    def _optimize_final_module(self) -> None:
        tuning = newpassmanagers.create_pipeline_tuning_options(int(CONFIG.OPT))
        tuning.loop_vectorization, tuning.loop_unrolling = True, False
        builder = newpassmanagers.create_pass_builder(self._codegen._tm, tuning)
        builder.getModulePassManager().run(self._final_module, builder)


class _PartCompiler(compiler.Compiler):
    """numba's compiler, writing into one of the libraries above."""

    _library: Any = _Part

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = self._library(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


class _InnerCompiler(_PartCompiler):
    _library = _Inner


class _WholeCompiler(_PartCompiler):
    _library = _Whole


class _BareCompiler(_PartCompiler):
    _library = _Bare


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled code calls, and that makes no arrays.

    Arrays are not reference counted: Python owns all of them and keeps them while compiled code runs. numba's
    counts are atomic operations wherever an array is passed on or a row of it is taken; they took a third of
    the time of a search.
    """
    return _compiled(function, _InnerCompiler, counts=False)


def counting(function: Callable[..., Any]) -> Any:
    """As :func:`compiled`, for a function that makes arrays, for all that call it and all that it calls."""
    return _compiled(function, _PartCompiler, counts=True)


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and keep the result on disk (with all that it calls).

    It makes no arrays, nor does what it calls; see :func:`compiled`.
    """
    return _entry(function, _BareCompiler, counts=False)


def counting_entry(function: Callable[..., Any]) -> Any:
    """As :func:`entry`, for a function that makes arrays or calls one that does."""
    return _entry(function, _WholeCompiler, counts=True)


def _compiled(
    function: Callable[..., Any], compiler: type[_PartCompiler], counts: bool, for_python: bool = False
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


def _entry(function: Callable[..., Any], compiler: type[_PartCompiler], counts: bool) -> Any:
    dispatcher = _compiled(function, compiler, counts, for_python=True)
    if not inspect.isfunction(dispatcher):
        try:
            dispatcher._cache = _Cache(function)
        except (RuntimeError, OSError):  # no folder can be written: compiled anew in every process
            _Cache.absent = True
    return dispatcher
