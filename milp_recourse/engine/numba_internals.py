"""What numba does not offer: tuples passed by address, and entries that are optimised once, as a whole.

What else this package uses of numba's inner workings is in :mod:`milp_recourse.engine.compile_cache` and
:mod:`milp_recourse.engine.shipped_code`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from llvmlite.binding import newpassmanagers
from numba.core import cgutils, codegen, compiler, imputils, types
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

CONFIG: Any = numba.config


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


def by_reference(kind: Any) -> Any:
    """Decorator of a class of named tuples: compiled functions take them by address (:class:`Reference`)."""

    @typeof_impl.register(kind)
    def _typeof(value: Any, c: Any) -> Reference:
        fields = (numba.typeof(v) for v in value)
        return Reference(
            types.BaseTuple.from_types([f.record if isinstance(f, Reference) else f for f in fields], kind)
        )

    return kind


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


class PartCompiler(compiler.Compiler):
    """numba's compiler, writing into one of the libraries above."""

    _library: Any = _Part

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function into a library of this kind."""
        self.state.library = self._library(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


class InnerCompiler(PartCompiler):
    """Of functions that only compiled code calls, without reference counts."""

    _library = _Inner


class WholeCompiler(PartCompiler):
    """Of entries that make arrays."""

    _library = _Whole


class BareCompiler(PartCompiler):
    """Of entries without reference counts."""

    _library = _Bare
