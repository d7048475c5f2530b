"""Named tuples that compiled functions take by their address, by numba's interface for extensions."""

from __future__ import annotations

import hashlib
from typing import Any

import numba
from numba.core import cgutils, imputils, types
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

from milp_recourse.engine.numba_internals import CONFIG


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
