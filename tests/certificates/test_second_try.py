"""A proof that fails with 5% of the gap spared is tried again with less."""

from __future__ import annotations

from milp_recourse import read_instance, solve
from milp_recourse.certificates import produce
from milp_recourse.formats.instances_path import instances_path


def test_who_fails_is_tried_again_with_a_target_nearer_the_bound(monkeypatch) -> None:
    """And only who failed; the certificate claims the result's bound all the same."""
    one = read_instance(instances_path() / "loan" / "loan_007.json")
    result = solve(one)
    calls: list[list[float]] = []
    real = produce.proofs

    def failing_once(claims, time_limit):
        calls.append([target for _, _, target in claims])
        found = real(claims, time_limit)
        return [(None, 0.0), *found[1:]] if len(calls) == 1 else found

    monkeypatch.setattr(produce, "proofs", failing_once)
    made = produce.certificates_for([one, one], [result, result])
    assert [len(targets) for targets in calls] == [2, 1]
    assert result.lower_bound is not None and result.lower_bound < calls[1][0] < calls[0][0]
    assert [c is not None and c["lower_bound"] for c in made] == [result.lower_bound] * 2
