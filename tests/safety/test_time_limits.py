"""A time limit holds for everything that is done for a person: search, judging, proof and file."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from milp_recourse import Recourse, read_instance, solve, solvers
from milp_recourse.certificates import certificates_for
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.problem.options import GRACE, LATE, Clock, Options, OutOfTime
from milp_recourse.problem.result import Status
from milp_recourse.solvers import backend
from milp_recourse.solvers.cpsat import process
from tests.helpers.wheels import compiled_modules

ROOT = Path(__file__).resolve().parents[2]
TREES = instances_path() / "credit_trees" / "credit_003.json"


@pytest.fixture(scope="module")
def deep():
    """One person, and a forest that was grown to the end on noise: no search finishes with it."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(6000, 10)).round(3), columns=[f"f{i}" for i in range(10)])
    y = X.iloc[:, :3].sum(axis=1) + rng.normal(size=len(X)) > 0.8
    model = RandomForestClassifier(100, random_state=0).fit(X, y)
    answers = Recourse(model, X).certify(X[~model.predict(X)].head(1), time_limit=0.01)
    return answers.problem[0]


@pytest.mark.parametrize("name", ["bab", "highs"])
def test_a_deep_forest(name, deep):
    """Masks of leaves and a solver's model are made within the limit, too; this took 17 s for a limit of 5.
    Processor seconds are compared, which others on the machine do not lengthen."""
    start = time.process_time()
    result = solve(deep, name, time_limit=1.0, certificates=True)
    assert time.process_time() - start < 1.0 + GRACE
    if result.status is not Status.OPTIMAL:  # as on a fast machine
        assert result.status is Status.LIMIT and LATE in result.message and result.evidence is None


def test_cpsat_on_a_deep_forest(deep):
    """Making the model alone took twice the limit."""
    solve(TREES, "cpsat")  # the process is there
    result = solve(deep, "cpsat", time_limit=2.0)
    assert result.status is Status.LIMIT and result.message == LATE
    assert result.seconds < 2.0 + 1.5 * GRACE


def test_a_process_that_does_not_look_at_the_clock_is_ended(monkeypatch):
    """What it had found is kept; the next call starts another."""
    instance = read_instance(TREES)
    action = solve(instance, "bab").action
    stuck = """
import os, pickle, sys, time
from milp_recourse.solvers.cpsat.process import Begun, Found
instance, options = pickle.load(sys.stdin.buffer)
for said in (Begun(), Found(ACTION)):
    sys.stdout.buffer.write(pickle.dumps(said))
sys.stdout.flush()
time.sleep(600)
"""
    numbers = {name: instance.by_name[name].number(value) for name, value in action.items()}
    command = [sys.executable, "-c", stuck.replace("ACTION", repr(numbers))]
    process._stop()
    with monkeypatch.context() as patched:
        patched.setattr(process, "python", lambda *_: command)
        result = solve(instance, "cpsat", time_limit=0.5)
    assert (result.status, result.action, result.lower_bound) == (Status.LIMIT, action, 0.0)
    assert 0.5 + GRACE <= result.seconds < 0.5 + 2 * GRACE and result.message == LATE
    assert solve(instance, "cpsat").status is Status.OPTIMAL


def test_a_process_that_dies_is_a_limit_and_not_an_error(monkeypatch):
    """Also one that writes something else than answers."""
    process._stop()
    for code in ("raise SystemExit(3)", "print('no pickle', flush=True)"):
        with monkeypatch.context() as patched:
            patched.setattr(process, "python", lambda *_, code=code: [sys.executable, "-c", code])
            result = solve(TREES, "cpsat")
        assert (result.status, result.message) == (Status.LIMIT, "the CP-SAT process ended")
    assert solve(TREES, "cpsat").status is Status.OPTIMAL


def test_a_proof_has_what_the_search_has_left(monkeypatch):
    """The answer stays; without a certificate its proof is no longer called rigorous, and the message says
    why."""
    instance, own, took = read_instance(TREES), backend("bab"), [0.0]

    class Slow:
        name, proves = "slow", True
        unavailable, why_not = own.unavailable, own.why_not

        def solve(self, instance, options):
            return replace(own.solve(instance, options), seconds=took[0])

    monkeypatch.setitem(solvers._registered, "slow", Slow)
    for took[0], left in ((1.0, True), (59.999, False), (61.0, False)):
        result = solve(instance, "slow", time_limit=60.0, certificates=True)
        assert result.status is Status.OPTIMAL and (result.evidence is not None) == left
    assert result.proof == "solver"
    said = "No certificate: the proof did not fit into the time limit of 60 s, which the search is part of."
    assert result.message.endswith(said)


def test_each_person_has_what_is_left_of_their_own_time():
    """Of several at once, one whose time is spent has no certificate, and the others have theirs."""
    instance = read_instance(instances_path() / "loan" / "loan_007.json")
    result = solve(instance)
    made = certificates_for([instance] * 3, [result] * 3, 60.0, None, [0.0, 60.0, 1.0])
    assert [one is not None for one in made] == [True, False, True]


def test_nothing_is_compiled_within_a_limit():
    """No compiled function is met for the first time by a search or a proof: a first run would else spend
    half a minute of the first person's time on compiling. All of them are compiled for wheels, too."""
    files = [
        TREES,
        instances_path() / "loan" / "loan_007.json",
        instances_path() / "smoke" / "two_trees.json",
    ]
    code = f"""
import importlib, pkgutil
import milp_recourse.engine.networks, milp_recourse.engine.forests
from milp_recourse import solve
from milp_recourse.engine.compiling import EntryCache

def met():
    found = {{}}
    for package in (milp_recourse.engine.networks, milp_recourse.engine.forests):
        for one in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{{package.__name__}}.{{one.name}}")
            for name, value in vars(module).items():
                if isinstance(getattr(value, "_cache", None), EntryCache):
                    found[module.__name__, name] = len(value.signatures)
    return found

for module in {compiled_modules()!r}:
    importlib.import_module(module).ready()
before = met()
assert set(before.values()) == {{1}}, before
for file in {[str(file) for file in files]!r}:
    assert solve(file, certificates=True).evidence is not None
    solve(file, "highs")
print(len(before), [name for name, count in met().items() if count != before[name]])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    count, _, late = done.stdout.splitlines()[-1].partition(" ")
    assert (int(count) > 12, late) == (True, "[]")


def test_a_clock():
    """It ends once, can be made later, and raises where it is asked to."""
    never, over = Clock(), Clock.start(-1.0)
    never.check()
    assert never.later(1.0).end is None and not over.later(60.0).over
    with pytest.raises(OutOfTime):
        over.check()
    assert Options(time_limit=1.0).found is None
