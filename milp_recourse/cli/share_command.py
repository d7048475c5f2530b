"""``milp-recourse share``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.exit_codes import DONE, LIMIT
from milp_recourse.cli.shared import Backend, Index, Json, TimeLimit, read_problem


def share(
    people: Annotated[Path, typer.Argument(help="an instance or a population, .json or .json.gz")],
    offers: Annotated[Path, typer.Argument(help="what the institution may do for a person, offers-1")],
    budget: Annotated[float | None, typer.Option(help="what all offers together may cost")] = None,
    weight: Annotated[
        float | None,
        typer.Option(help="of the offers' prices beside people's costs; default: 1, and 0 with a budget"),
    ] = None,
    most_cost: Annotated[float | None, typer.Option(help="what a person can bear")] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="write the problems under each offer, for certify and verify"),
    ] = None,
    json: Json = None,
    backend: Backend = None,
    time_limit: TimeLimit = None,
    index: Index = None,
) -> None:
    """Share the cost with an institution: the cheapest joint plans, within a budget for all.

    Each person gets one offer or none, such that as many as possible are served within the budget and, among
    such choices, people's costs and weighted prices are least."""
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.formats.write import population_to_dict
    from milp_recourse.questions.offers import read_offers
    from milp_recourse.questions.share import everybody
    from milp_recourse.questions.share import share as ask
    from milp_recourse.reports.progress import progress_bar
    from milp_recourse.reports.view import in_one_line, person_of

    problem = everybody(read_problem(people, index))
    listed = read_offers(offers, problem.template)
    with progress_bar(problem.template.name or people.name, len(listed)) as bar:
        found = ask(problem, listed, budget, weight, most_cost, backend, time_limit, bar.advance)
    if out is not None:
        for k, offer in enumerate(listed):
            write_json(population_to_dict(offer.of_people(problem)), out / f"offer_{k}.json")
    answer = found.to_dict()
    if json is not None:
        write_json(answer, json)
    if len(problem) == 1:
        for k, point in enumerate(found.fronts[0]):
            name = f"{point.offer.name or 'no offer'}, price {float(point.offer.price):g}"
            mark = " (cheapest together)" if k == found.chosen[0] else ""
            typer.echo(f"{name}{mark}: {in_one_line(person_of(point.result, problem[0]))}")
    else:
        for name, count in Counter(p.offer.name or "no offer" for p in found.taken).items():
            typer.echo(f"{name}: {count} people")
    keys = ("served", "served_at_most", "spent", "cost", "objective", "lower_bound")
    words = " ".join(f"{key}={answer[key]!r}" for key in keys)
    typer.echo(f"{'proven' if found.proven else 'limit'}: {words}")
    raise typer.Exit(DONE if found.proven else LIMIT)
