"""Types shared by the pydantic models of the file formats."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag, model_validator
from pydantic_core import PydanticCustomError

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""A name or a label: no control characters, so that it fits one cell of a table."""

Interval = Annotated[list[Number], Field(min_length=2, max_length=2)]


def _number_or_label(value: Any) -> str:
    return "label" if isinstance(value, str) else "number"


Value = Annotated[
    Annotated[Number, Tag("number")] | Annotated[str, Tag("label")], Discriminator(_number_or_label)
]
"""A number, or the label of an ordinal or categorical feature."""


class Strict(BaseModel):
    """A JSON object whose keys are exactly those named; booleans are not numbers."""

    model_config = ConfigDict(extra="forbid", defer_build=True, strict=True, allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            known = [info.alias or name for name, info in cls.model_fields.items()]
            for key in data:
                if key not in known:
                    raise PydanticCustomError(
                        "unknown_key",
                        "unknown key",
                        {"key": str(key), "known": ", ".join(known)},
                    )
        return data
