"""What the producer writes, the checker accepts; what is not so gets no certificate; the commands."""

from __future__ import annotations

import csv
import json
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from milp_recourse.certificates import certificates_for, encode, instance_digest
from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.formats import read_instance, read_population, write_instance
from milp_recourse.formats.strict_json import read_json
from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.prove import prove
from milp_recourse.questions.solve import solve
from tests.certificates.random_cases import Tally, complaints, examined
from tests.helpers.certificate_kinds import KINDS
from tests.helpers.loan_people import refused_file
from verify.__main__ import examine
from verify.files.instance import Source
from verify.kernel.checks import Rejected

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
SMOKE = sorted((INSTANCES / "smoke").glob("*.json"))
LOAN = sorted((INSTANCES / "loan").glob("loan_*.json"))
EVERYTHING = os.environ.get("MILP_RECOURSE_ALL_INSTANCES") == "1"
CREDIT = sorted((INSTANCES / "credit_trees").glob("credit_*.json"))
CHOSEN = SMOKE + CREDIT[::4] + (random.Random(0).sample(LOAN, 100) if EVERYTHING else LOAN[2::48])
POPULATION = INSTANCES / "loan" / "population.json"
NEAR_AN_END = 12  # its lever reaches the end of a sigmoid link
HOLD = INSTANCES / "smoke" / "hold.json"
TWO_TREES = INSTANCES / "smoke" / "two_trees.json"


def certified(path, backend=None):
    """An instance, its result and its certificate's bytes."""
    instance = read_instance(path)
    result = solve(instance, backend, certificates=True)
    assert result.evidence is not None
    return instance, result, result.evidence


@pytest.mark.parametrize("path", CHOSEN, ids=lambda path: path.stem)
def test_every_shipped_result_verifies(path, tmp_path):
    """From the shipped file itself: the result's claim, its cost and its bound."""
    instance, result, evidence = certified(path)
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert complaints(instance, result, tmp_path) == []
    file = tmp_path / "shipped.json.gz"
    file.write_bytes(evidence)
    assert examine(file, path, 60).claim == result.status.value


def test_both_sides_compute_the_same_digest():
    """Of shipped instances of every kind, and of applicants of the population; no two are the same."""
    digests = set()
    for path in SMOKE + LOAN[::4]:
        digest = instance_digest(read_instance(path))
        assert Source(path).applicant(None).digest == digest, path.name
        digests.add(digest)
    people, source = read_population(POPULATION), Source(POPULATION)
    for index in (0, 1, len(people) - 1):
        digest = instance_digest(people[index])
        assert source.applicant(float(index)).digest == digest
        digests.add(digest)
    assert len(digests) >= len(SMOKE) + len(LOAN[::4])  # applicants may be shipped instances too
    with pytest.raises(Rejected, match="index"):
        source.applicant(float(len(people)))


@pytest.mark.parametrize("kind", KINDS)
def test_rigorous_means_certified(kind, tmp_path):
    """Four of every kind (a recorded run has more): a certificate that is accepted, or a named reason."""
    tally = Tally()
    for seed in range(4):
        tally.add(examined(kind, seed, 20.0, tmp_path))
    assert tally.wrong == []
    assert tally.counts["verified"] == tally.counts["certificates"]


def test_an_answer_without_certificate_says_why(monkeypatch, tmp_path):
    """Also where the producer fails; the run of random problems would call the silence wrong."""
    monkeypatch.setattr("milp_recourse.certificates.certificates_for", lambda given, *_: [None] * len(given))
    tally = examined("networks", 0, 20.0, tmp_path)
    assert tally.counts["no certificate, with a reason"] == 1 and tally.wrong == []
    monkeypatch.setattr("milp_recourse.certificates.reason_for_none", lambda *_: "")
    assert examined("networks", 0, 20.0, tmp_path).wrong


def test_a_solver_s_results_are_proven_afresh(tmp_path):
    """``highs`` says optimal or infeasible on a solver's word; the certificates need nobody's."""
    for name in ("hold", "infeasible_plausible", "loan_two_units"):
        instance, result, _ = certified(INSTANCES / "smoke" / f"{name}.json", "highs")
        assert result.backend == "highs"
        assert complaints(instance, result, tmp_path) == []


def with_cost_between(instance, best):
    """A feasible action that costs more than the cheapest: further on the way it went, or farther still."""
    for share in (1.01, 1.05, 1.1, 1.3):
        action = {
            name: instance.factual[name] + share * (value - instance.factual[name])
            for name, value in best.action.items()
        }
        verdict = judge(instance, action)
        if verdict.feasible and float(verdict.cost) > best.cost * 1.001:
            return action, float(verdict.cost)
    raise AssertionError("no dearer action found")


@pytest.mark.parametrize("path", [INSTANCES / "smoke" / "loan_two_units.json", LOAN[4]], ids=lambda p: p.stem)
def test_a_bound_above_the_optimum_gets_no_certificate(path):
    """A dearer action said to be optimal, or with a bound above the optimum; the truth gets one."""
    instance = read_instance(path)
    best = solve(instance)
    action, cost = with_cost_between(instance, best)
    worse = replace(best, action=action, cost=cost, lower_bound=cost)
    between = replace(worse, status=Status.LIMIT, lower_bound=(best.cost + cost) / 2)
    honest = replace(worse, status=Status.LIMIT, lower_bound=best.lower_bound)
    made = certificates_for([instance] * 3, [worse, between, honest])
    assert made[:2] == [None, None]
    assert made[2]["claim"] == "bounds"


@pytest.mark.parametrize("path", [HOLD, TWO_TREES, LOAN[4]], ids=lambda p: p.stem)
def test_infeasible_said_of_what_is_not_gets_no_certificate(path):
    """Networks and trees."""
    instance = read_instance(path)
    assert solve(instance).status is Status.OPTIMAL
    assert certificates_for([instance], [Result(Status.INFEASIBLE, proof="rigorous")]) == [None]


def test_a_tree_s_bound_above_the_optimum_gets_no_certificate():
    """The dearer action is feasible, the claim that nothing is cheaper is not true."""
    instance = read_instance(TWO_TREES)
    best = solve(instance)
    assert best.cost > 0
    worse = replace(best, cost=2 * best.cost, lower_bound=2 * best.cost)
    assert certificates_for([instance], [worse]) == [None]


def test_what_claims_nothing_gets_no_certificate():
    """``grid`` finds a point and states no bound."""
    result = solve(HOLD, "grid", certificates=True)
    assert result.status is Status.FOUND
    assert result.evidence is None


def test_the_same_result_gives_the_same_bytes():
    """Nothing of the clock or of chance is in a certificate."""
    instance, result, evidence = certified(LOAN[4])
    (again,) = certificates_for([instance], [result])
    assert encode(again) == evidence


# -- commands --------------------------------------------------------------------------


@pytest.fixture
def people(tmp_path):
    """The first six of the Loan population, two actions, without plausibility."""
    return refused_file(tmp_path, 6)


def column(out, name):
    """A column of results.csv."""
    with (out / "results.csv").open(encoding="utf-8", newline="") as stream:
        return [row[name] for row in csv.DictReader(stream)]


def test_certify_writes_a_folder_that_verifies(people, tmp_path, capsys):
    """A population's certificates carry the applicant's index and belong to nobody else."""
    out = tmp_path / "out"
    assert main(["certify", str(people), "--out", str(out)]) == 0
    assert column(out, "certificate") == [f"certificates/{k}.json.gz" for k in range(6)]
    files = [out / "certificates" / f"{k}.json.gz" for k in range(6)]
    assert [read_json(file)["index"] for file in files] == list(range(6))
    assert [read_json(file)["claim"] for file in files] == column(out, "status")
    assert main(["verify", str(out), str(people)]) == 0
    assert "VERIFIED 6 of 6 certificates" in capsys.readouterr().out
    changed = read_json(files[0]) | {"index": 1}
    (out / "certificates" / "0.json.gz").write_bytes(encode(changed))
    assert main(["verify", str(out), str(people), "--jobs", "2"]) == 4
    printed = capsys.readouterr().out
    assert "0.json.gz: REJECTED: instance_sha256" in printed
    assert "REJECTED 5 of 6 certificates" in printed


@pytest.mark.parametrize("kind", ["instance", "population"])
def test_certify_without_certificates(people, tmp_path, kind):
    """The same results, an empty column, no folder."""
    file = HOLD if kind == "instance" else people
    for name, more in (("with", []), ("without", ["--no-certificates"])):
        assert main(["certify", str(file), "--out", str(tmp_path / name), *more]) == 0
    assert (tmp_path / "with" / "certificates" / "0.json.gz").exists()
    assert not (tmp_path / "without" / "certificates").exists()
    assert set(column(tmp_path / "without", "certificate")) == {""}
    for name in ("status", "cost", "lower_bound"):
        assert column(tmp_path / "with", name) == column(tmp_path / "without", name)


def test_a_run_with_certificates_is_not_gone_on_with_without_them(people, tmp_path, capsys):
    """Other options, another folder."""
    out = str(tmp_path / "out")
    assert main(["certify", str(people), "--out", out]) == 0
    assert main(["certify", str(people), "--out", out, "--no-certificates"]) == 2
    assert "another run" in capsys.readouterr().err


@pytest.fixture
def made(tmp_path):
    """A certificate of HOLD."""
    file = tmp_path / "hold.json.gz"
    file.write_bytes(certified(HOLD)[2])
    return file


def test_verify_exit_codes(made, tmp_path, capsys):
    """0 accepted; 4 rejected or broken; 2 wrong usage, a missing file included, or nothing to check."""
    assert main(["verify", str(made), str(HOLD)]) == 0
    assert capsys.readouterr().out.startswith("VERIFIED optimal cost=")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    for certificate, instance in ((made, TWO_TREES), (tmp_path / "broken.json", HOLD)):
        assert main(["verify", str(certificate), str(instance)]) == 4
        assert capsys.readouterr().out.startswith("REJECTED"), certificate
    missing = (tmp_path / "no.json", HOLD), (made, tmp_path / "no.json")
    for certificate, instance in (*missing, (tmp_path / "empty", HOLD)):
        assert main(["verify", str(certificate), str(instance)]) == 2
    assert main(["verify", str(made)]) == 2
    assert main(["verify", str(made), str(HOLD), "--seconds", "long"]) == 2


def test_prove_says_how_far_a_dearer_action_is(tmp_path, capsys):
    """The claim is ``bounds``, the action stays as given, and the bound is the optimum's."""
    instance = read_instance(LOAN[4])
    best = solve(instance)
    action, cost = with_cost_between(instance, best)
    given, file, answer = (tmp_path / name for name in ("action.json", "proof.json", "result.json"))
    given.write_text(json.dumps(action), encoding="utf-8")
    command = ["prove", str(LOAN[4]), "--action", str(given), "--certificate", str(file)]
    assert main([*command, "--json", str(answer)]) == 0
    printed = capsys.readouterr().out
    stated = read_json(file)
    assert (stated["claim"], stated["action"]) == ("bounds", action)
    assert stated["cost"] == pytest.approx(cost, rel=1e-12)
    assert stated["lower_bound"] == pytest.approx(best.cost, rel=1e-6, abs=1e-9)
    distance = stated["cost"] - stated["lower_bound"]
    assert read_json(answer)["gap"] == pytest.approx(distance)
    assert f"at most {distance:.6g} above the optimum" in printed
    assert main(["verify", str(file), str(LOAN[4])]) == 0
    assert capsys.readouterr().out.startswith(f"VERIFIED bounds cost={stated['cost']!r}")


def test_prove_takes_a_result_and_proves_it_optimal(tmp_path, capsys):
    """The action of ``solve --json`` by another back end."""
    answer, file = tmp_path / "result.json", tmp_path / "proof.json.gz"
    assert main(["solve", str(HOLD), "--backend", "highs", "--json", str(answer)]) == 0
    assert main(["prove", str(HOLD), "--action", str(answer), "--certificate", str(file)]) == 0
    assert read_json(file)["claim"] == "optimal"
    assert examine(file, HOLD, 60).claim == "optimal"


def test_prove_refuses_an_action_that_is_not_feasible(tmp_path, capsys):
    """Exit code 4, a line per fault, no files."""
    instance = read_instance(HOLD)
    best = solve(instance)
    given, file, answer = (tmp_path / name for name in ("action.json", "proof.json", "result.json"))
    short = {n: instance.factual[n] + 0.9 * (float(v) - instance.factual[n]) for n, v in best.action.items()}
    for action, fault in (({}, "does not accept"), (short, "does not accept")):
        given.write_text(json.dumps(action), encoding="utf-8")
        arguments = ["--action", str(given), "--certificate", str(file), "--json", str(answer)]
        assert main(["prove", str(HOLD), *arguments]) == 4
        lines = capsys.readouterr().out.splitlines()
        assert lines and all(line.startswith("not feasible: ") for line in lines)
        assert any(fault in line for line in lines)
        assert not file.exists() and not answer.exists()


BAD_ACTIONS = {
    "nothing": ("", "no JSON"),
    "a list": ("[1]", "top level"),
    "unknown feature": ('{"shoe size": 1}', "shoe size"),
    "text": ('{"FEATURE": "much"}', "FEATURE"),
    "true": ('{"FEATURE": true}', "FEATURE"),
    "null": ('{"FEATURE": null}', "FEATURE"),
    "NaN": ('{"FEATURE": NaN}', "NaN"),
    "overflow": ('{"FEATURE": 1e400}', "1e400"),
    "twice": ('{"FEATURE": 1, "FEATURE": 1}', "FEATURE"),
}


@pytest.mark.parametrize(("text", "word"), BAD_ACTIONS.values(), ids=BAD_ACTIONS)
def test_prove_refuses_a_bad_file(tmp_path, capsys, text, word):
    """Exit code 2, one line that names the file and the place."""
    feature = next(iter(read_instance(HOLD).levers))
    given = tmp_path / "action.json"
    given.write_text(text.replace("FEATURE", feature), encoding="utf-8")
    assert main(["prove", str(HOLD), "--action", str(given)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert str(given) in captured.err
    assert word.replace("FEATURE", feature) in captured.err


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_prove_refuses_a_number_that_is_not_finite(value):
    """Through Python, too, where no file's reader stands before it."""
    instance = read_instance(SMOKE[0])
    name = next(iter(instance.levers))
    with pytest.raises(BadInput, match=f"action.{name}.*a finite number"):
        prove(instance, {name: value})


def test_prove_needs_its_files(tmp_path, capsys):
    """A missing action, a folder as certificate."""
    missing, folder = str(tmp_path / "no.json"), str(tmp_path)
    given = tmp_path / "action.json"
    given.write_text("{}", encoding="utf-8")
    assert main(["prove", str(HOLD), "--action", missing]) == 2
    assert main(["prove", str(HOLD), "--action", str(given), "--certificate", folder]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_curves_under_plausibility_are_certified(tmp_path):
    """A sigmoid link of what is acted on: its density is covered."""
    instance = read_instance(INSTANCES / "smoke" / "loan_education.json")
    result = solve(replace(instance, plausible=True, reference=None), certificates=True)
    assert complaints(replace(instance, plausible=True, reference=None), result, tmp_path) == []


def test_what_the_document_leaves_out_is_said(tmp_path, capsys):
    """The end of a sigmoid link: an answer, no certificate, one line that says so, and a message."""
    instance = KINDS["networks"](NEAR_AN_END)
    file, certificate = tmp_path / "curved.json", tmp_path / "curved.certificate.json"
    write_instance(instance, file)
    assert main(["solve", str(file), "--certificate", str(certificate)]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("no certificate: plausibility: an action on")
    assert not certificate.exists()
    assert "No certificate: plausibility" in solve(instance, certificates=True).message


def test_a_gap_of_l2_that_is_too_large_for_its_square_has_a_certificate():
    """1e-6 of a root is 2e-6 of its square. Such a result raised a ValueError, for everybody."""
    instance = read_instance(INSTANCES / "smoke" / "loan_two_units.json")
    instance = replace(instance, cost=Cost.pure("l2", instance.cost.measures))
    result = solve(instance)
    open_ = replace(result, lower_bound=result.cost * (1 - 0.95e-6))
    [made] = certificates_for([instance], [open_])
    assert made["claim"] == "optimal"
