"""``milp-recourse icarma ...``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from milp_recourse.cli.exit_codes import FAILED
from milp_recourse.cli.shared import a_file
from milp_recourse.lab.known import known, parts
from milp_recourse.lab.run_table import print_rows
from milp_recourse.reports.drawing import draw_if_possible
from milp_recourse.reports.progress import progress_bar

if TYPE_CHECKING:
    from milp_recourse.lab.icarma.icarma_model import Recommender
    from milp_recourse.lab.icarma.settings import Settings
    from milp_recourse.lab.icarma.shipped import Kind
    from milp_recourse.lab.icarma.structural import StructuralModel
    from milp_recourse.lab.icarma.task import Task
    from milp_recourse.lab.icarma.training_optima import Optima
    from milp_recourse.problem.population import Population

app = typer.Typer(no_args_is_help=True, help="Amortised recourse by networks: train, predict, evaluate.")

Checkpoint = Annotated[
    Path | None, typer.Option(metavar="FILE.npz", help="trained networks; none: the shipped ones")
]
Results = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where results go; rerunning resumes.")]
PopulationName = Annotated[
    str,
    typer.Option(
        "--population", metavar="NAME", help="loan-smooth, -sharp, -printed or a .json of applicants"
    ),
]


@app.callback()
def _group() -> None:
    """Amortised recourse by networks: train, predict, evaluate."""


@app.command()
def train(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where networks go; rerunning resumes.")] = Path(
        "icarma"
    ),
    recipe: Annotated[
        str,
        typer.Option(
            help="best, certified, refined (ours), plain (published), paper (the released code's choices)"
        ),
    ] = "best",
    elicitation: Annotated[
        str, typer.Option(help="preferences by rank or by score; hyperparameters are the paper's for these")
    ] = "rank",
    profile: Annotated[str, typer.Option(help="constant, linear, convex, concave or mixed")] = "mixed",
    distribution: Annotated[
        str, typer.Option(help="distribution of rankings: uniform, causal, reverse-causal ...")
    ] = "uniform",
    carma: Annotated[
        bool, typer.Option("--carma", help="train CARMA: no individual masks, all weights 1")
    ] = False,
    seed: Annotated[int, typer.Option(help="the first seed; the paper's are 1000, 2000 ... 10000")] = 1000,
    seeds: Annotated[
        int, typer.Option(min=1, help="how many seeds, 1000 apart; the best by validation loss is kept")
    ] = 1,
    epochs: Annotated[int | None, typer.Option(min=1, help="default: the recipe's")] = None,
    imitation: Annotated[
        float | None,
        typer.Option(min=0, help="weight of the distance to certified optima"),
    ] = None,
    margin: Annotated[
        float | None, typer.Option(min=0, help="margin of acceptance, in standard deviations of the logit")
    ] = None,
    density_margin: Annotated[
        float | None, typer.Option(min=0, help="margin of plausibility, in nats")
    ] = None,
    flow_epochs: Annotated[int, typer.Option(min=1, help="epochs of the causal flow's training")] = 60,
    threads: Annotated[int, typer.Option(min=1, help="threads of torch")] = 2,
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda")] = "auto",
    population: PopulationName = "loan-smooth",
) -> None:
    """Train the causal flow, then the mask and the action network; networks in DIR/recommender.npz.

    For a population other than Loan's there is no flow: counterfactuals come from its equations, and the
    networks learn from rows drawn from these.
    """
    _needs_torch()
    import torch

    from milp_recourse.lab.icarma.runs import train_seeds
    from milp_recourse.lab.icarma.sampling import Elicitation
    from milp_recourse.lab.icarma.settings import Recipe, Settings

    torch.set_num_threads(threads)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    changes: dict[str, Any] = {"profile": profile, "distribution": distribution, "individual": not carma}
    given = {"epochs": epochs, "imitation": imitation, "margin": margin, "density_margin": density_margin}
    changes |= {name: value for name, value in given.items() if value is not None}
    settings = Settings.of_recipe(
        known("--recipe", recipe, get_args(Recipe)),
        known("--elicitation", elicitation, get_args(Elicitation)),
        **changes,
    )
    task, through = _learning(_population(population), equations=recipe in ("certified", "refined"))
    flow_epochs = 0 if through else flow_epochs
    optima = _optima(task, settings, out / "optima") if settings.learns else None
    chosen = [seed + 1000 * k for k in range(seeds)]
    with progress_bar("training", flow_epochs + seeds * settings.epochs, rate=True) as bar:
        rows = train_seeds(
            task, settings, chosen, out, flow_epochs, device, bar.advance, through=through, optima=optima
        )
    for row in rows:
        typer.echo(
            f"seed {row['seed']}: best epoch {row['best_epoch']} of {settings.epochs}, "
            f"validation loss {row['loss']:.4f}, valid {row['valid']:.3f}, "
            f"plausible {row['plausible']:.3f}, cost {row['cost']:.4f}"
        )
    typer.echo(f"networks in {out / 'recommender.npz'}")


@app.command()
def search(
    out: Annotated[Path, typer.Option(metavar="DIR", help="search.log, search.csv; rerunning resumes.")],
    elicitation: Annotated[str, typer.Option(help="rank (table 2) or score (table 3)")] = "rank",
    trials: Annotated[int, typer.Option(min=1, help="in all, with those in DIR")] = 200,
    epochs: Annotated[int, typer.Option(min=1, help="of each trial's networks")] = 200,
    seed_epochs: Annotated[int, typer.Option(min=1, help="of the ten seeds' networks")] = 450,
    population: PopulationName = "loan-smooth",
) -> None:
    """Search for settings that give the paper's numbers on validation rows; then train ten seeds with them.

    Test rows are measured after that, in DIR/rows.csv.
    """
    _needs("torch", "zuko", "optuna")
    import torch

    from milp_recourse.lab.gap.gap_plots import plot_rows
    from milp_recourse.lab.gap.settings_search import TABLE, seeds
    from milp_recourse.lab.gap.settings_search import search as run
    from milp_recourse.lab.icarma.settings import SEEDS

    torch.set_num_threads(1)
    kind = known("--elicitation", elicitation, tuple(TABLE))
    people = _population(population)
    task, through = _learning(people)
    flow = through or _model(None, "constant", people).flow
    with progress_bar("search", trials * epochs + len(SEEDS) * seed_epochs, rate=True) as bar:
        study = run(task, flow, kind, out, trials, epochs, bar.advance)
        best = study.best_trial
        rows = seeds(task, flow, best, kind, seed_epochs, people.rows, out, bar.advance)
    draw_if_possible(lambda: plot_rows(rows, out))
    keys = ("table", "setting", "validity", "printed validity", "plausibility", "printed plausibility")
    print_rows(
        "means of ten seeds", [{k: row[k] for k in (*keys, "hap", "printed hap", "near")} for row in rows]
    )
    typer.echo(
        f"{len(study.trials)} trials; trial {best.number} has distance {best.value:.2f}: {best.params}"
    )


@app.command()
def predict(
    applicants: Annotated[Path, typer.Argument(help="a population .json with preferences, or a .csv")],
    out: Annotated[Path, typer.Option(metavar="FILE.csv", help="the recommendations", callback=a_file)],
    checkpoint: Checkpoint = None,
    actionable: Annotated[
        str | None, typer.Option(help="for a .csv: what everybody can act on, comma-separated; none: all")
    ] = None,
) -> None:
    """Recommend actions by trained networks; nothing is proven (milp-recourse prove checks an action).

    Of the shipped networks, those for constant weights are used if every weight is 1, else those trained on
    all profiles.
    """
    _needs_torch()
    import pandas as pd

    from milp_recourse.errors import BadInput
    from milp_recourse.formats import read_population
    from milp_recourse.lab.icarma.predict import predict as run
    from milp_recourse.problem.instance import Preferences

    kind: Kind = "constant"
    if applicants.suffix == ".csv":
        model = _model(checkpoint, kind)
        try:
            frame = pd.read_csv(applicants)
        except (OSError, ValueError) as error:
            raise BadInput(str(applicants), " ".join(str(error).split()), "a readable .csv") from None
        names = model.levers if actionable is None else tuple(a.strip() for a in actionable.split(","))
        table = run(model, frame, Preferences(names))
    else:
        people = read_population(applicants)
        if actionable is not None:
            raise BadInput("--actionable", actionable, "nothing: the population states preferences")
        if any(w != 1 for one in people.preferences for w in one.weights.values()):
            kind = "rank"
        model = _model(checkpoint, kind, people)
        table = run(model, pd.DataFrame(list(people.factuals)), people.preferences)
    out.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(out, index_label="index")
    acted = table[[f"action_{f}" for f in model.levers]].notna().sum(axis=1)
    whose = f"the networks for {kind} preferences" if checkpoint is None else str(checkpoint)
    typer.echo(
        f"{len(table)} recommendations by {whose}, "
        f"{acted.mean() if len(table) else 0:.2f} actions each, in {out}"
    )


@app.command("flow")
def flow_report(checkpoint: Checkpoint = None, population: PopulationName = "loan-smooth") -> None:
    """Measure how far the causal flow's counterfactuals are from the true model's, in standard deviations."""
    _needs_torch()
    from milp_recourse.errors import BadInput
    from milp_recourse.lab.icarma.fit_flow import flow_check
    from milp_recourse.lab.icarma.flow import CausalFlow

    people = _population(population)
    flow = _model(checkpoint, "constant", people).flow
    if not isinstance(flow, CausalFlow):
        raise BadInput(
            "--checkpoint", "a network trained through the causal equations", "one trained through a flow"
        )
    rows = flow_check(flow, people.template.scm)
    print_rows("root mean square difference of what follows an action", rows)


@app.command()
def decompose(
    out: Results = Path("decompose"),
    checkpoint: Checkpoint = None,
    population: PopulationName = "loan-smooth",
    limit: Annotated[int | None, typer.Option(min=1, help="only the first N applicants")] = None,
    seed: Annotated[int, typer.Option(help="seed of the applicants' rankings")] = 0,
    time_limit: Annotated[float, typer.Option(min=0.1, help="seconds per problem, for the engine")] = 60.0,
    jobs: Annotated[int, typer.Option(min=1, help="processes, for the engine")] = 1,
) -> None:
    """Split the gap to the certified optimum by what the networks choose: mask, direction, values.

    Exits 4 if a feasible recommendation is cheaper than a proven optimum, or is for somebody for whom it is
    proven that there is none.
    """
    _needs_torch()
    from milp_recourse.lab.gap.compared import MISSED, compare
    from milp_recourse.lab.gap.decompose import EXACT, LEVELS, PLAN, write

    people = _loan_people(population, limit)
    model = _model(checkpoint, "constant", people)
    with progress_bar("decompose", 0, rate=True) as bar:
        steps = bar.expect_more, bar.advance
        compared = compare(people, {"constant": model}, out, PLAN, EXACT, seed, time_limit, jobs, *steps)
    rows = write(compared, people, model, out)
    shown = ("actionable", *(f"{what}, {level}" for what in ("served", "cost") for level in LEVELS))
    shown += (*MISSED, "impossible", "failed share", "seconds, certify all", "seconds, certify the failed")
    short = [{key.replace(", ", " "): row[key] for key in shown} for row in rows]
    print_rows(f"{len(people)} refused test applicants of {population}", short)
    wrong = sum(int(one.contradicted.sum()) for one in compared)
    typer.echo(f"{wrong} contradict the proof; tables and figure in {out}")
    if wrong:
        raise typer.Exit(FAILED)


@app.command()
def gap(
    out: Results = Path("gap"),
    checkpoint: Checkpoint = None,
    constant_checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="for constant weights; none: FILE or the shipped")
    ] = None,
    score_checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="for scores; none: FILE or the shipped")
    ] = None,
    population: PopulationName = "loan-smooth",
    limit: Annotated[int, typer.Option(min=1, help="only the first N applicants")] = 200,
    tables: Annotated[str, typer.Option(help="tables of the paper, comma-separated")] = "1,2,3,5",
    seed: Annotated[int, typer.Option(help="seed of the applicants' preferences")] = 0,
    time_limit: Annotated[float, typer.Option(min=0.1, help="seconds per applicant, for the engine")] = 60.0,
    jobs: Annotated[int, typer.Option(min=1, help="processes, for the engine")] = 2,
) -> None:
    """Compare trained networks with certified optima in the settings of the paper's tables."""
    _needs_torch()
    from milp_recourse.lab.gap.compared import compare
    from milp_recourse.lab.gap.gap import SHOWN, plan, write
    from milp_recourse.lab.gap.gap_plots import plot

    chosen = [int(known("--tables", name, ("1", "2", "3", "5"))) for name in parts(tables)]
    people = _loan_people(population, limit)
    models: dict[Kind, Recommender] = {
        "rank": _model(checkpoint, "rank", people),
        "constant": _model(constant_checkpoint or checkpoint, "constant", people),
        "score": _model(score_checkpoint or checkpoint, "score", people),
    }
    asked = plan(chosen)
    with progress_bar("gap", 0, rate=True) as bar:
        steps = bar.expect_more, bar.advance
        compared = compare(people, models, out, asked, ("optimum", "mask"), seed, time_limit, jobs, *steps)
    rows = write(compared, people, models["rank"], out)
    print_rows(
        f"{len(people)} applicants of {population}",
        [{short: row[name] for name, short in SHOWN.items()} for row in rows],
    )
    contradicted = [row for row in rows if row["contradicted"]]
    for row in contradicted:
        where = f"table {row['table']}: {row['setting']}"
        typer.echo(f"{where}: {row['contradicted']} contradict the proof", err=True)
    exact, fast = sum(row["exact_seconds"] for row in rows), sum(row["icarma_seconds"] for row in rows)
    typer.echo(f"exact {exact:.1f} s of engine time, amortised {fast:.2f} s; results in {out}")
    draw_if_possible(lambda: plot(compared, out))
    if contradicted:
        raise typer.Exit(FAILED)


def _learning(people: Population, equations: bool = False) -> tuple[Task, StructuralModel | None]:
    """The task, and for a population other than Loan's the structural model that replaces the flow."""
    from milp_recourse.lab.icarma.structural import StructuralModel
    from milp_recourse.lab.icarma.task import loan_task, sampled_task

    scm, is_loan = people.template.scm, people.template.scm.name == "loan"
    task = loan_task(people.template) if is_loan else sampled_task(people.template)
    through = StructuralModel.of_rows(scm, task.train) if equations or not is_loan else None
    return task, through


def _optima(task: Task, settings: Settings, folder: Path) -> Optima:
    from milp_recourse.lab.icarma.training_optima import certify_optima

    with progress_bar("certified optima", 0, rate=True) as bar:
        return certify_optima(task, settings, folder, expect=bar.expect, advance=bar.advance)


def _model(checkpoint: Path | None, kind: Kind, people: Population | None = None) -> Recommender:
    from milp_recourse.lab.icarma.checkpoint import read_recommender
    from milp_recourse.lab.icarma.shipped import shipped

    template = None if people is None else people.template
    return read_recommender(shipped(kind, template) if checkpoint is None else checkpoint)[0]


def _population(name: str) -> Population:
    from milp_recourse.formats import read_population
    from milp_recourse.formats.instances_path import population_file

    return read_population(population_file(name))


def _loan_people(name: str, limit: int | None) -> Population:
    """The first applicants of a population, whose problem the shipped networks fit."""
    from milp_recourse.lab.icarma.task import check_loan

    people = _population(name)
    check_loan(people.template)
    return people[:limit]


def _needs_torch() -> None:
    _needs("torch", "zuko")


def _needs(*libraries: str) -> None:
    """Raise BackendUnavailable, which says what to install, if a library is missing."""
    from milp_recourse.errors import BackendUnavailable

    for name in libraries:
        if find_spec(name) is None:
            extra = "search" if name == "optuna" else "torch"
            raise BackendUnavailable(f"icarma needs {name}: pip install 'milp-recourse[{extra}]'")
