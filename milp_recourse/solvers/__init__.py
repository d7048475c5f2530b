"""The registry of back ends. A new one is a file, a line here and the conformance suite."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from milp_recourse.errors import BackendUnavailable, RecourseError

if TYPE_CHECKING:
    from milp_recourse.solvers.protocol import Backend, BatchBackend, Options, Proposal

_MODULES = {
    "bab": "milp_recourse.solvers.bab:BabBackend",
    "highs": "milp_recourse.solvers.highs:HighsBackend",
    "pyomo": "milp_recourse.solvers.pyomo:PyomoBackend",
    "cpsat": "milp_recourse.solvers.cpsat:CpsatBackend",
    "grid": "milp_recourse.solvers.grid:GridBackend",
    "ask": "milp_recourse.solvers.ask:AskBackend",
}

_registered: dict[str, Callable[[], Backend]] = {}

PYOMO_SOLVERS = ("highs", "scip_direct", "gurobi_direct_minlp")
"""Pyomo solver interfaces that ``backends`` lists; any other name Pyomo knows works too."""


PLUGINS = "milp_recourse.backends"
"""Entry-point group: installed packages that name a back end there are found by its name."""


def _plugin(name: str) -> EntryPoint | None:
    """What an installed package registers under ``name``; not loaded yet."""
    return next(iter(entry_points(group=PLUGINS, name=name)), None)


def register(name: str, make: Callable[[], Backend]) -> None:
    """Make a back end of your own known by ``name`` for this process (``make`` builds it)."""
    _registered[name] = make


def backend(name: str) -> Backend:
    """The back end called ``name``: ``bab``, ``highs``, ``pyomo:<solver>``, ``cpsat``, ``grid``, ``ask``.

    Raises
    ------
    BackendUnavailable
        Unknown, or its solver is not installed; the message says how to get it.
    """
    text = name if isinstance(name, str) else ""
    family, _, solver = text.partition(":")
    named = (solver != "") == (family == "pyomo")
    if text not in _registered and not (family in _MODULES and named) and _plugin(text) is None:
        known = ", ".join(sorted(listed()))
        got = " ".join(repr(name).split())
        raise BackendUnavailable(f"backend: got {got}; allowed: {known}, or pyomo:<any solver Pyomo reaches>")
    made = _make(name)
    reason = made.unavailable()
    if reason is not None:
        raise BackendUnavailable(f"backend {name!r} cannot run here: {reason}")
    return made


def listed() -> dict[str, str | None]:
    """Every listed back end and why it is not usable here (None: it is)."""
    names = [n for n in _MODULES if n != "pyomo"] + [f"pyomo:{s}" for s in PYOMO_SOLVERS]
    plugins = [entry.name for entry in entry_points(group=PLUGINS)]
    return {name: _why_unusable(name) for name in (*names, *_registered, *plugins)}


def _why_unusable(name: str) -> str | None:
    try:
        return _make(name).unavailable()
    except RecourseError as problem:
        return str(problem)


def _make(name: str) -> Backend:
    if name in _registered:
        return _brought(name, lambda: _registered[name])
    family, _, solver = name.partition(":")
    plugin = None if family in _MODULES else _plugin(name)
    made: Backend
    if plugin is not None:
        return _brought(name, plugin.load)
    module, _, cls = _MODULES[family].partition(":")
    made = getattr(import_module(module), cls)(*([solver] if solver else []))
    return made


def _brought(name: str, load: Callable[[], Callable[[], Backend]]) -> Backend:
    """A back end that is made by somebody else's code."""
    from milp_recourse.solvers.plugged import plugged

    try:
        return plugged(load()(), name)
    except Exception as problem:
        raise BackendUnavailable(f"backend {name!r} cannot be loaded: {problem!r}") from problem


def __getattr__(name: str) -> Any:
    """Import what back ends get and give on first use: the command line's help needs none of it."""
    if name in ("Backend", "BatchBackend", "Options", "Proposal"):
        globals()[name] = getattr(import_module(f"{__name__}.protocol"), name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["PYOMO_SOLVERS", "Backend", "BatchBackend", "Options", "Proposal", "backend", "listed", "register"]
