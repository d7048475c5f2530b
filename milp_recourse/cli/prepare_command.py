"""``milp-recourse prepare``: costs and plausibility computed from data and written into the problem."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from milp_recourse.cli.shared import a_file
from milp_recourse.errors import BadInput

if TYPE_CHECKING:
    from milp_recourse.problem.population import Population

PLAUSIBILITY = "none, domain, factual, factual:OFFSET, level:LOG_DENSITY, quantile:Q or near:DISTANCE[:ROWS]"


def prepare(
    population: Annotated[Path, typer.Argument(help="a population, .json or .json.gz")],
    out: Annotated[
        Path, typer.Option(metavar="OUT.json", help="the population with what was computed", callback=a_file)
    ],
    cost: Annotated[
        str | None, typer.Option(help="l1, l2-squared, l2, linf, l0, percentile, log-percentile, ...-max")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="range, sd, mad, iqr, unit, or factual: relative changes")
    ] = None,
    plausibility: Annotated[str | None, typer.Option(help=PLAUSIBILITY)] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="people to compute from: CSV or a population; default: this one's"),
    ] = None,
) -> None:
    """Write a population with another cost or plausibility, whose numbers are computed from data.

    The numbers are part of the file; proofs are about them, and certificates are checked against the file.
    """
    from milp_recourse.formats import read_population, write_population

    people = read_population(population)
    known = people if data is None else _known(data, people)
    if [f.name for f in known.template.features] != [f.name for f in people.template.features]:
        raise BadInput("--data", str(data), f"a population with the features of {population}")
    if cost is not None or scale is not None:
        people = _with_cost(people, known, cost, scale)
    if plausibility is not None:
        people = _with_plausibility(people, known, plausibility)
    write_population(people, out)
    typer.echo(f"{out}: {people!r}, {people.template!r}")


def _known(file: Path, people: Population) -> Population:
    """The people of a population's file, or of a CSV table with the features as columns."""
    from milp_recourse.formats import read_population
    from milp_recourse.problem.population import Population

    if not {".csv", ".gz"} & set(file.suffixes) or ".json" in file.suffixes:
        return read_population(file)
    import pandas as pd

    from milp_recourse.formats.strict_json import LARGEST_TABLE, read_bytes

    try:
        frame = pd.read_csv(BytesIO(read_bytes(file, "a table in CSV", LARGEST_TABLE)))
    except ValueError as error:
        raise BadInput("--data", str(file), f"a table in CSV ({error})") from None
    return Population.from_frame(frame, people)


def _with_cost(people: Population, known: Population, cost: str | None, scale: str | None) -> Population:
    from dataclasses import replace

    from milp_recourse.formats.schema import StatedCost, check_scale
    from milp_recourse.formats.stated import Known, validate
    from milp_recourse.problem.cost import KINDS, PERCENTILES
    from milp_recourse.problem.population import undefined_values
    from milp_recourse.tables import from_data
    from milp_recourse.tables.columns import SCALES

    template, kind = people.template, cost or people.template.cost.kind
    entry: dict[str, Any] = {"kind": kind}
    rows = from_data.known_rows(known)
    if kind in PERCENTILES:
        if scale is not None:
            raise BadInput("--scale", scale, f"nothing: {kind} measures in percentiles")
        entry["quantiles"] = from_data.data_knots(template, rows, KINDS[kind].axis == "log-percentile")
    elif kind != "l0":
        if kind not in KINDS:
            raise BadInput("--cost", kind, ", ".join(KINDS))
        rule = "range" if scale is None else scale
        if rule not in (*SCALES, "factual"):
            raise BadInput("--scale", rule, ", ".join((*SCALES, "factual")))
        if rule == "factual":
            entry["scale"] = {f.name: 1.0 if f.labelled else rule for f in template.features if f.actionable}
        else:
            entry["scale"] = from_data.data_scales(template, rows, rule)
    new = validate(StatedCost, entry, "cost", Known(template.features))
    for one in {id(p): p for p in people.preferences}.values():  # thousands may share one
        check_scale(new, one)
    faults = undefined_values(
        template.features, (), people.factuals, people.preferences, people.unreadable, new
    )
    return with_template(replace(people, unreadable={**people.unreadable, **faults}), cost=new)


def with_template(people: Population, **changes: Any) -> Population:
    """The population with fields of its template replaced, by name."""
    from milp_recourse.problem.population import Population

    own = people.template, people.factuals, people.preferences, people.unreadable, people.ids
    return Population.of(*own, people.margins, **changes)


def _with_plausibility(people: Population, known: Population, text: str) -> Population:
    from dataclasses import replace

    from milp_recourse.problem.instance import check_density
    from milp_recourse.tables import from_data

    kind, _, rest = text.partition(":")
    template, everybody = people.template, from_data.known_rows(known)
    plain = replace(people, preferences=tuple(from_data.without_offsets(one) for one in people.preferences))
    if kind in ("none", "domain") and not rest:
        plain = with_template(plain, plausible=False, density_offset=0.0)
        if kind == "none":
            return plain
        ends = from_data.data_ranges(template, everybody)
        features = tuple(
            replace(f, domain=from_data.in_both(f.domain, ends[f.name], f"features.{f.name}.domain"))
            if f.name in ends
            else f
            for f in template.features
        )
        return with_template(plain, features=features)
    if kind == "factual":
        check_density(template.scm)
        offset = _number(rest, text) if rest else 0.0
        return with_template(plain, plausible=True, density_offset=offset)
    if kind == "level" and rest:
        return from_data.at_level(plain, _number(rest, text))
    if kind == "quantile" and rest:
        share = _number(rest, text)
        if not 0 <= share <= 1:
            raise BadInput("--plausibility", text, "quantile:Q with Q from 0 to 1")
        return from_data.at_level(plain, from_data.quantile_level(template, everybody, share))
    if kind == "near" and rest:
        distance, _, count = rest.partition(":")
        rows = from_data.accepted_rows(template, everybody)
        if not len(rows):
            raise BadInput("--plausibility", text, "data of which the model accepts some rows: --data FILE")
        scale = from_data.data_scales(template, everybody, "range", every=True)
        if count and not (count.isdecimal() and int(count)):
            raise BadInput("--plausibility", text, "near:R:N with N a whole number, 1 or more")
        wanted = int(count) if count else None
        near = from_data.near_rows(template, rows, _number(distance, text), scale, count=wanted)
        plain = with_template(plain, plausible=False, density_offset=0.0)
        return with_template(plain, conditions=(*template.conditions, near))
    raise BadInput("--plausibility", text, PLAUSIBILITY)


def _number(number: str, text: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise BadInput("--plausibility", text, PLAUSIBILITY) from None
