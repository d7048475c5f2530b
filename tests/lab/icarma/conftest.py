"""What the tests of the amortised side share; all of it needs torch and zuko."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Small matrices: more threads only get into each other's way."""
    if find_spec("torch") is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def people():
    """The shipped Loan population that is taken where none is named."""
    from milp_recourse.formats import read_population
    from milp_recourse.formats.instances_path import population_file

    return read_population(population_file("loan-smooth"))


@pytest.fixture(scope="session")
def model():
    """The shipped networks for ranked preferences."""
    from milp_recourse.lab.icarma.checkpoint import read_recommender
    from milp_recourse.lab.icarma.shipped import shipped

    return read_recommender(shipped("rank"))[0]


@pytest.fixture(scope="session")
def task(people):
    """Loan's training task."""
    from milp_recourse.lab.icarma.task import loan_task

    return loan_task(people.template)


@pytest.fixture(scope="session")
def small_flow():
    """A flow trained for seconds on 4000 rows: the mechanisms roughly."""
    import torch

    from milp_recourse.lab.icarma.fit_flow import FlowTraining, fit_flow, loan_flow_rows
    from milp_recourse.lab.icarma.flow import CausalFlow
    from milp_recourse.problem.loan import loan

    torch.manual_seed(0)
    train, validation, _ = loan_flow_rows(0, (4000, 500, 1))
    flow = CausalFlow.of_scm(loan(), ("gender",))
    return fit_flow(flow, train, validation, 0, FlowTraining(epochs=25, learning_rate=3e-3))
