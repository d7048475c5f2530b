"""What this package builds on of numba's private classes: entries that are optimised once, as a whole, and
machine code as a file. What going without costs was measured in turn, by ``python -m
tests.engine.networks.phases --people 600``.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from llvmlite.binding import newpassmanagers
from numba.core import codegen, compiler, serialize

CONFIG: Any = numba.config


def packed(name: str, arguments: Any, result: Any) -> bytes | None:
    """A function's machine code as a file has it, with its name and the types of the arguments that it was
    made for; None if there are addresses of this process in it."""
    fixed = not result.library.has_dynamic_globals
    content: bytes = serialize.dumps((name, arguments, result._reduce())) if fixed else b""
    return sha256(content).digest() + content if fixed else None


def unpacked(packed: bytes, name: str, arguments: Any, context: Any) -> Any:
    """What :func:`packed` has made, ready to run; None if it is another function's, for other types, or
    damaged, as LLVM would end the process. Half of numba, needed only to compile, stays unloaded."""
    if sha256(content := packed[32:]).digest() != packed[:32]:
        return None
    *made_for, reduced = pickle.loads(content)
    return compiler.CompileResult._rebuild(context, *reduced) if made_for == [name, arguments] else None


class _Unaliased(codegen.JITCodeLibrary):
    """Tells LLVM that nothing writes to a tuple that is passed by address through another pointer, so that
    its fields may stay in registers. Without, searches take 10 to 20% more time."""

    def add_ir_module(self, module: Any) -> None:
        for function in module.functions:
            for argument in function.args:
                pointee = getattr(argument.type, "pointee", None)
                if argument.name.startswith("arg.") and isinstance(pointee, ir.LiteralStructType):
                    argument.add_attribute("noalias")
        super().add_ir_module(module)


class _Part(_Unaliased):
    """Intermediate code of a function that only compiled code calls.

    numba would turn such a function into machine code once by itself and again in every caller. Here that is
    done once, when the entry that calls it is compiled (:class:`_Whole`).
    """

    @property
    def codegen(self) -> Any:
        return _Nowhere()

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0  # there is no machine code


class _Nowhere:
    """Stands for the code generator of a :class:`_Part`, which is never executed by itself."""

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing: only functions that Python calls need an environment."""


class _Whole(_Unaliased):
    """An entry, linked with all functions that it calls and optimised once.

    The functions called are made private to the entry, so that LLVM can drop arguments that are not read.
    """

    def serialize_using_object_code(self) -> Any:
        """As numba does, with the names of intermediate code alone: nothing is linked with what is loaded."""
        self._ensure_finalized()
        every = *self._final_module.functions, *self._final_module.global_variables
        defined = (g for g in every if not g.is_declaration)
        names = [g.name for g in defined if g.linkage not in (llvm.Linkage.internal, llvm.Linkage.private)]
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


class _Bare(_Whole):
    """A :class:`_Whole` without reference counts, which numba's first pass would otherwise remove.

    Loops are vectorised but not unrolled: most are over 4 to 64 numbers. By numba's own passes searches take
    10 to 20% more time.
    """

    def _optimize_final_module(self) -> None:
        tuning = newpassmanagers.create_pipeline_tuning_options(int(CONFIG.OPT))
        tuning.loop_vectorization, tuning.loop_unrolling = True, False
        builder = newpassmanagers.create_pass_builder(self._codegen._tm, tuning)
        builder.getModulePassManager().run(self._final_module, builder)


class PartCompiler(compiler.Compiler):
    """numba's compiler of functions that only compiled code calls, writing into a library above."""

    _library: Any = _Part

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function into a library of this kind."""
        self.state.library = self._library(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


class WholeCompiler(PartCompiler):
    """Of entries that make arrays."""

    _library = _Whole


class BareCompiler(PartCompiler):
    """Of entries without reference counts."""

    _library = _Bare
