"""``milp-recourse lab ...``: the experiments, found through an entry point."""

from __future__ import annotations

import typer

from milp_recourse.lab.benchmarks import bench_commands as benchmarks
from milp_recourse.lab.interviews import interview_studies as interviews
from milp_recourse.lab.recipe import recipe_commands as recipe
from milp_recourse.lab.studies.gmsc.gmsc_command import gmsc
from milp_recourse.lab.studies.reproduce_command import reproduce

app = typer.Typer(no_args_is_help=True, help="Experiments: benchmarks, recipes, a paper's tables.")
app.command()(reproduce)
app.command()(gmsc)
app.add_typer(interviews.app, name="interviews", help="Simulated people answer interviews.")
app.add_typer(recipe.app, name="recipe", help="Make the shipped instances again.")
app.add_typer(benchmarks.app, name="bench", help="Time back ends against each other.")


@app.callback()
def _group() -> None:
    """Experiments: benchmarks, recipes, a paper's tables."""
