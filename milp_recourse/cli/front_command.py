"""``milp-recourse front``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from milp_recourse.cli.common_options import Backend, Index
from milp_recourse.cli.exit_codes import DONE, LIMIT
from milp_recourse.cli.output import console_of_stdout, refuse_folders
from milp_recourse.cli.problems import check_index
from milp_recourse.errors import BadInput
from milp_recourse.instance import Instance, Population


class Against(StrEnum):
    """What cost is traded for."""

    actions = "actions"
    density = "density"


def front(
    instance: Annotated[Path, typer.Argument(help="an instance or a population, .json or .json.gz")],
    against: Annotated[
        Against, typer.Option(help="fewer features acted on, or a higher density of the outcome")
    ] = Against.actions,
    offsets: Annotated[
        str | None, typer.Option(metavar="FIRST:LAST:POINTS", help="density: from where to where, in nats")
    ] = None,
    json: Annotated[Path | None, typer.Option(metavar="OUT.json", help="write one person's front")] = None,
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
    from milp_recourse.formats import read_any

    refuse_folders(json=json)
    problem = read_any(instance)
    if isinstance(problem, Population) and index is None:
        if json is not None:
            raise BadInput(
                "--json", str(json), "one person: --index N; a population's fronts go to --out DIR"
            )
        people, name = _people(problem, count), problem.template.name or instance.name
    else:
        for option, given in (("--count", count),) if isinstance(problem, Instance) else ():
            if given is not None:
                raise BadInput(option, given, f"nothing: {instance} is an instance")
        if isinstance(problem, Population):
            check_index(index, problem, instance)
            problem = problem[index]  # type: ignore[index]
        elif index is not None:
            raise BadInput("--index", index, f"nothing: {instance} is an instance")
        people, name = [problem], problem.name or instance.name
    if against is Against.actions and offsets is not None:
        raise BadInput("--offsets", offsets, "--against density")
    fronts = (
        _of_actions(people, backend, time_limit, name)
        if against is Against.actions
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


def _offsets(said: str | None) -> list[float] | None:
    from milp_recourse.density_front import offsets_between

    if said is None:
        return None
    try:
        first, last, points = said.split(":")
        numbers = float(first), float(last), int(points)
    except ValueError:
        allowed = "FIRST:LAST:POINTS, such as -3:1.75:20"
        raise BadInput("--offsets", said, allowed) from None
    return offsets_between(*numbers)


def _of_actions(
    people: list[Instance], backend: str | None, time_limit: float | None, name: str
) -> list[Any]:
    from milp_recourse.front import front as ask
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
    from milp_recourse.density_front import OFFSETS, density_fronts
    from milp_recourse.reports.progress import progress_bar

    points = (OFFSETS[2] if offsets is None else len(offsets)) + 1
    with progress_bar(name, len(people) * points) as bar:

        def advance(count: int) -> None:
            for _ in range(count):
                bar.advance()

        return density_fronts(people, offsets, backend, time_limit, advance)


def _write(fronts: list[Any], folder: Path, against: Against) -> None:
    """fronts.json, average.json and front.png."""
    from milp_recourse.density_front import average
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.front import average_of_actions
    from milp_recourse.reports.front_plots import plot_action_fronts, plot_density_fronts

    folder.mkdir(parents=True, exist_ok=True)
    density = against is Against.density
    write_json([one.to_dict() for one in fronts], folder / "fronts.json")
    write_json(average(fronts) if density else average_of_actions(fronts), folder / "average.json")
    (plot_density_fronts if density else plot_action_fronts)(fronts, folder / "front.png")


def _say(fronts: list[Any], people: list[Instance], json: Path | None, against: Against) -> None:
    from milp_recourse.formats.strict_json import write_json

    console = console_of_stdout()
    if json is not None:
        write_json(fronts[0].to_dict(), json)
    if len(people) > 1:
        complete = sum(one.complete for one in fronts)
        points = sum(len(one.points) for one in fronts)
        console.print(f"{len(fronts)} fronts, {points} points; all proven: {complete} fronts", markup=False)
    elif against is Against.density:
        _say_density(fronts[0], people[0])
    else:
        _say_actions(fronts[0], people[0])


def _say_density(found: Any, problem: Instance) -> None:
    from milp_recourse.reports.words import describe_action

    console = console_of_stdout()
    for point in found.points:
        result = point.result
        asked = "density not asked" if point.offset is None else f"density {point.offset:+.4g} nats"
        proven = f"{result.status.value} cost={result.cost!r} lower_bound={result.lower_bound!r}"
        changes = "" if result.action is None else f"; {describe_action(problem, result.action)}"
        console.print(f"{asked}: {proven}{changes}", markup=False, soft_wrap=True)


def _say_actions(found: Any, problem: Instance) -> None:
    from milp_recourse.reports.words import describe_action

    console = console_of_stdout()
    for point in found.points:
        result = point.result
        proven = f"{result.status.value} cost={result.cost!r} lower_bound={result.lower_bound!r}"
        changes = describe_action(problem, result.action or {})
        console.print(f"{point.actions} actions: {proven}; {changes}", markup=False, soft_wrap=True)
    if not found.points:
        console.print("no recourse" + ("" if found.complete else " found"), markup=False)
    elif found.fewest:
        console.print(f"with fewer than {found.fewest} actions there is no recourse, proven", markup=False)
