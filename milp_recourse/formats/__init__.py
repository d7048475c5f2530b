"""The file formats: JSON in and out.

Reading is strict: NaN, Infinity, numbers too large for a double, repeated or unknown keys and every broken
rule of the format raise :class:`~milp_recourse.errors.BadInput` with one line. ``schemas/`` holds the JSON
Schema files, which are generated from the pydantic models.
"""

from milp_recourse.formats.read_action import read_action
from milp_recourse.formats.schema import (
    instance_from_dict,
    population_from_dict,
    read_any,
    read_instance,
    read_population,
)
from milp_recourse.formats.schema_scm import scm_to_dict
from milp_recourse.formats.write import (
    instance_to_dict,
    population_to_dict,
    result_to_dict,
    write_instance,
    write_population,
    write_result,
)

__all__ = [
    "instance_from_dict",
    "instance_to_dict",
    "population_from_dict",
    "population_to_dict",
    "read_action",
    "read_any",
    "read_instance",
    "read_population",
    "result_to_dict",
    "scm_to_dict",
    "write_instance",
    "write_population",
    "write_result",
]
