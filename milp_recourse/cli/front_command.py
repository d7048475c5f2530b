"""``milp-recourse front``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from milp_recourse.cli.exit_codes import DONE, LIMIT
from milp_recourse.cli.shared import Backend, Index, Json, read_problem
from milp_recourse.errors import BadInput
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population

Against = Literal["actions", "density"]


def front(
    instance: Annotated[Path, typer.Argument(help="an instance or a population, .json or .json.gz")],
    against: Annotated[
        Against, typer.Option(help="the number of features acted on, or the density of the outcome")
    ] = "actions",
    offsets: Annotated[
        str | None, typer.Option(metavar="FIRST:LAST:POINTS", help="offsets of the density, in nats")
    ] = None,
    json: Json = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="write fronts.json, averages and a picture")
    ] = None,
    count: Annotated[int | None, typer.Option(metavar="N", help="of a population: the first N")] = None,
    backend: Backend = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="S", help="actions: seconds for all points; density: for each")
    ] = None,
    index: Index = None,
) -> None:
    """Cost against the number of features acted on, or against density: every point proven."""
    problem = read_problem(instance, index)
    if isinstance(problem, Population):
        if json is not None:
            allowed = "one person: --index N; a population's fronts go to --out DIR"
            raise BadInput("--json", str(json), allowed)
        people, name = _people(problem, count), problem.template.name or instance.name
    elif count is not None:
        raise BadInput("--count", count, "nothing: one person is asked about")
    else:
        people, name = [problem], problem.name or instance.name
    if against == "actions" and offsets is not None:
        raise BadInput("--offsets", offsets, "nothing, unless with --against density")
    fronts = (
        _of_actions(people, backend, time_limit, name)
        if against == "actions"
        else _of_density(people, _offsets(offsets), backend, time_limit, name)
    )
    if out is not None:
        _write(fronts, out, against)
    _say(fronts, people, json, against)
    raise typer.Exit(DONE if all(one.complete for one in fronts) else LIMIT)


def _people(population: Population, count: int | None) -> list[Instance]:
    if count is not None and not 1 <= count <= len(population):
        raise BadInput("--count", count, f"a number from 1 to {len(population)}")
    last = len(population) if count is None else count
    return [population[k] for k in range(last) if k not in population.unreadable]


def _offsets(text: str | None) -> list[float] | None:
    from milp_recourse.questions.density_front import offsets_between

    if text is None:
        return None
    try:
        first, last, points = text.split(":")
        numbers = float(first), float(last), int(points)
    except ValueError:
        allowed = "FIRST:LAST:POINTS, such as -3:1.75:20"
        raise BadInput("--offsets", text, allowed) from None
    return offsets_between(*numbers)


def _of_actions(
    people: list[Instance], backend: str | None, time_limit: float | None, name: str
) -> list[Any]:
    from milp_recourse.questions.front import front as ask
    from milp_recourse.reports.progress import progress_bar

    fronts = []
    with progress_bar(name, len(people)) as bar:
        for one in people:
            fronts.append(ask(one, backend, time_limit))
            bar.advance()
    return fronts


def _of_density(
    people: list[Instance],
    offsets: list[float] | None,
    backend: str | None,
    time_limit: float | None,
    name: str,
) -> list[Any]:
    from milp_recourse.questions.density_front import OFFSETS, density_fronts
    from milp_recourse.reports.progress import progress_bar

    points = (OFFSETS[2] if offsets is None else len(offsets)) + 1
    with progress_bar(name, len(people) * points) as bar:

        def advance(count: int) -> None:
            for _ in range(count):
                bar.advance()

        return density_fronts(people, offsets, backend, time_limit, advance)


def _write(fronts: list[Any], folder: Path, against: Against) -> None:
    """Write fronts.json, average.json and, with matplotlib, front.png."""
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.questions.density_front import average
    from milp_recourse.questions.front import average_of_actions
    from milp_recourse.reports.front_plots import plot_action_fronts, plot_density_fronts

    density = against == "density"
    write_json([one.to_dict() for one in fronts], folder / "fronts.json")
    write_json(average(fronts) if density else average_of_actions(fronts), folder / "average.json")
    try:
        (plot_density_fronts if density else plot_action_fronts)(fronts, folder / "front.png")
    except ImportError:
        typer.echo("no picture: it needs matplotlib; pip install 'milp-recourse[plots]'", err=True)


def _say(fronts: list[Any], people: list[Instance], json: Path | None, against: Against) -> None:
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.reports.view import in_one_line, person_of

    found, density = fronts[0], against == "density"
    if json is not None:
        write_json(found.to_dict(), json)
    if len(people) > 1:
        complete = sum(one.complete for one in fronts)
        points = sum(len(one.points) for one in fronts)
        typer.echo(f"{len(fronts)} fronts, {points} points; all proven: {complete} fronts")
        return
    for point in found.points:
        typer.echo(f"{_label(point)}: {in_one_line(person_of(point.result, people[0]))}")
    if not density and not found.points:
        typer.echo("no recourse" + ("" if found.complete else " found"))
    elif not density and found.fewest:
        typer.echo(f"with fewer than {found.fewest} actions there is no recourse, proven")


def _label(point: Any) -> str:
    """The number of actions, or the density offset, of a point of a front."""
    if hasattr(point, "actions"):
        return f"{point.actions} actions"
    return "density not asked" if point.offset is None else f"density {point.offset:+.4g} nats"
