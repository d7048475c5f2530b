"""Attacks on what certain actions withstand; :mod:`tests.certificates.attacks` writes them with the others.

``python -m tests.certificates.certain_attacks`` makes the accepted certificates anew, from seeds of
tests/questions/robust/problems.py.
"""

from __future__ import annotations

import json
from gzip import decompress
from typing import Any

from tests.certificates.attacks import HERE, attack, dump, malformed, tree

SEEDS = {
    "certain_trees": 384,
    "certain_largest": 855,
    "certain_network": 202,
    "certain_points": 257,
    "certain_infeasible": 138,
    "certain_conditions": 385,
}
"""A forest with labels; a score that is the largest of several; a network with noise and a higher threshold;
whole numbers that are missed by a network, outcome by outcome; no certain action; conditions."""

CERTAIN = {f"{name}.json": f"tests/certificates/instances/{name}.json" for name in SEEDS}


def outcomes(c: dict[str, Any]) -> list[Any]:
    """The nodes about the action's outcomes."""
    nodes: list[Any] = c["withstands"]["outcomes"]["tree"]
    return nodes


def plainly(c: dict[str, Any]) -> None:
    """Let the score alone, times a large number, prove that no outcome is refused."""
    table = {"unit": 1.0, "mu": 1e6, "trees": []}
    c["withstands"]["outcomes"] = {"tree": [["p", 0]], "prices": [table]}


def boxes(c: dict[str, Any]) -> list[dict[str, list[float]]]:
    """The refused boxes of the first configuration that name a feature."""
    return [node[1] for node in tree(c) if node[0] == "x" and node[1]]


# -- the claim -----------------------------------------------------------------------------------------


@attack("certain_trees.json", "proves less than is claimed")
def certain_bound_raised(c):
    """The bound raised up to the cost."""
    c["lower_bound"] = c["cost"]


@attack("certain_network.json", "proves less than is claimed")
def certain_bound_of_a_network_raised(c):
    """The bound raised up to the cost."""
    c["lower_bound"] = c["cost"]


@attack("certain_trees.json", "outcomes.tree.0: leaf 'p' proves less")
def action_accepted_only_as_planned(c):
    """A cheaper action that is accepted as planned, but not in every outcome."""
    plainly(c)
    c |= {"action": {"f1": 2}, "cost": 0.33333333333333337, "lower_bound": 0.0, "claim": "bounds"}


@attack("certain_network.json", "outcomes.tree.0: leaf 'd' proves less")
def action_of_a_network_accepted_only_as_planned(c):
    """Another action that is accepted as planned, but not in every outcome."""
    c |= {"action": {"f0": 2, "f2": "high"}, "cost": 4.222222222222222, "lower_bound": 0.0, "claim": "bounds"}


@attack("certain_trees.json", "outcomes: needed where the action has several outcomes")
def outcomes_left_out(c):
    """An action whose outcomes nobody looked at."""
    c["withstands"]["outcomes"] = None


@attack("certain_trees.json", "proves less than is claimed")
def certain_action_said_to_be_impossible(c):
    """The tree of an optimum said to prove that no action is certain."""
    c |= {"claim": "infeasible", "action": None, "cost": None, "lower_bound": None}
    c["withstands"]["outcomes"] = None


@malformed("certain_infeasible.json", "null where there is no action")
def outcomes_of_no_action(c):
    """Outcomes where there is no action."""
    c["withstands"]["outcomes"] = {"tree": [["e"]]}


@attack("certain_trees.json", "leaf 'x' proves less than is claimed")
def certain_bound_of_planned_actions(c):
    """The bound for certain actions, said of all actions."""
    del c["withstands"]


@attack("certain_network.json", "allowed: only in a certificate with the key withstands")
def certain_bound_of_planned_actions_of_a_network(c):
    """The bound for certain actions of a network, said of all actions."""
    del c["withstands"]


# -- what is withstood ---------------------------------------------------------------------------------


@attack("certain_trees.json", "f0 is not acted on, or its target is not missed")
def missed_narrowed_to_nothing(c):
    """A target that is met exactly, with the bound for one that is missed."""
    plainly(c)
    c["withstands"]["missed"] = {"f0": 0.0, "f1": 1.0}


@attack("certain_infeasible.json", "its target is not missed")
def impossible_because_of_what_is_not_missed(c):
    """No uncertainty, and still no certain action."""
    c["withstands"]["missed"] = {}


@attack("certain_trees.json", "outcomes.tree.0: leaf 'p' proves less")
def missed_widened(c):
    """A target that may be missed by more than was proven."""
    plainly(c)
    c["withstands"]["missed"]["f1"] = 2.0


@attack("certain_trees.json", "withstands.missed.f0: allowed: numbers, whole ones if it is integer")
def missed_by_half(c):
    """A whole number missed by a half."""
    c["withstands"]["missed"]["f0"] = 0.5


@attack("certain_trees.json", "withstands.missed.f2: allowed: numbers")
def label_missed(c):
    """A label missed by one."""
    c["withstands"]["missed"]["f2"] = 1.0


@attack("certain_trees.json", "'f9' is no feature")
def nothing_missed(c):
    """A feature that is not there."""
    c["withstands"]["missed"]["f9"] = 1.0


@malformed("certain_trees.json", "allowed: a number at least 0")
def missed_by_less_than_nothing(c):
    """A target missed by a negative distance."""
    c["withstands"]["missed"]["f0"] = -1.0


@attack("certain_network.json", "withstands.noise.c: allowed: if it is continuous, with 0 inside")
def noise_that_must_differ(c):
    """Noise that cannot be the abducted one."""
    c["withstands"]["noise"]["c"] = [0.25, 1.0]


@attack("certain_network.json", "withstands.noise.f0: allowed: if it is continuous")
def noise_of_a_whole_number(c):
    """Noise of an integer feature."""
    c["withstands"]["noise"]["f0"] = [-1.0, 1.0]


@attack("certain_network.json", "outcomes.tree.0: leaf 'd' proves less")
def noise_widened(c):
    """Noise that may differ by more than was proven."""
    c["withstands"]["noise"]["c"] = [-9.0, 1.0]


@attack("certain_network.json", "action: the classifier does not accept")
def threshold_raised(c):
    """A threshold that may rise further than the action withstands."""
    c["withstands"]["threshold"] = 9.0


@attack("certain_network.json", "proves less than is claimed")
def threshold_lowered(c):
    """A threshold that does not move, with the bound for one that does."""
    c["withstands"]["threshold"] = None


@attack("certain_largest.json", "action: the classifier does not accept")
def threshold_of_trees_raised(c):
    """A score that must be higher than the action's."""
    c["withstands"]["threshold"] = 9.0


# -- scenarios -----------------------------------------------------------------------------------------


@attack("certain_network.json", "scenarios.1: the noise of c is not 1.5 more")
def scenario_outside_the_noise(c):
    """A scenario whose noise is larger than what is withstood."""
    c["withstands"]["scenarios"][1]["noise"]["c"] = 1.5


@attack("certain_network.json", "scenarios.1: the noise of c is not 1.0 more")
def noise_narrowed(c):
    """Less noise withstood than a scenario has."""
    c["withstands"]["noise"]["c"] = [-0.75, 0.5]


@attack("certain_network.json", "scenarios.1: f1 is not missed by -2.0")
def scenario_outside_the_distance(c):
    """A scenario that misses a target by more than what is withstood."""
    c["withstands"]["scenarios"][1]["missed"]["f1"] = -2.0


@attack("certain_network.json", "scenarios.1: f1 is not missed by -0.5")
def scenario_of_half_a_step(c):
    """A scenario that misses a whole number by a half."""
    c["withstands"]["scenarios"][1]["missed"]["f1"] = -0.5


@attack("certain_network.json", "scenarios.1: f1 is not missed by -1.0")
def distance_narrowed(c):
    """A target that is met exactly, and a scenario that misses it."""
    c["withstands"]["missed"] = {}


@attack("certain_network.json", "allowed: a whole number from 0 to 1")
def scenario_that_is_not_there(c):
    """A configuration in a scenario that nobody described."""
    c["configurations"][0]["scenarios"] = [0, 2]


@attack("certain_network.json", "allowed: a whole number from 0 to 3")
def scenarios_left_out(c):
    """A tree about several scenarios, read as one about the plan."""
    del c["configurations"][3]["scenarios"]


@attack("certain_points.json", "none covers acting on exactly f2")
def held_where_a_scenario_tells(c):
    """Acting on a lever that a scenario misses, said to stand for not acting on it."""
    del c["configurations"][0]


@attack("certain_network.json", "as one network they have more than 2000000 weights")
def too_many_scenarios(c):
    """A scenario repeated until its networks fill the memory."""
    c["configurations"][0]["scenarios"] = [0, 1] * 200


@attack("certain_trees.json", "scenarios: allowed: for networks")
def scenarios_of_trees(c):
    """A scenario for trees, which have boxes instead."""
    c["withstands"]["scenarios"] = [{"missed": {}, "noise": {}}]
    c["configurations"][0]["scenarios"] = [0]


# -- refused boxes -------------------------------------------------------------------------------------


@attack("certain_trees.json", "f1: some target is too far from 4.0 to 4.0")
def box_out_of_reach(c):
    """A refused box that targets of the region cannot be missed into."""
    boxes(c)[1]["f1"] = [4.0, 4.0]


@attack("certain_trees.json", "leaf 'x' proves less than is claimed")
def box_that_is_accepted(c):
    """A box said to be refused that holds accepted values."""
    boxes(c)[1] |= {"f0": [0.0, 3.0], "f1": [1.0, 3.0]}


@attack("certain_trees.json", "has no values from 1.0 to 0.0")
def box_turned_round(c):
    """A box whose ends are in the wrong order."""
    boxes(c)[1]["f1"] = [1.0, 0.0]


@attack("certain_trees.json", "has no values from 0.5 to 0.5")
def box_between_whole_numbers(c):
    """A box between two whole numbers, which no outcome is."""
    boxes(c)[1]["f1"] = [0.5, 0.5]


@attack("certain_trees.json", "f2 is not acted on, or its target is not missed")
def box_of_another_label(c):
    """A label missed into a refused box."""
    boxes(c)[0]["f2"] = [0.0, 0.0]


@attack("certain_trees.json", "f0 need not be acted on here")
def box_of_what_is_left_alone(c):
    """A lever missed that an action in the region may leave alone."""
    boxes(c)[0]["f0"] = [1.0, 1.0]


@attack("certain_trees.json", "got ['x'] below ['m']")
def box_below_a_merging(c):
    """A refused box where cells that may not be refused have been taken out in favour of cheaper ones."""
    tree(c).insert(0, ["m"])


@attack("certain_network.json", "leaf 'x' proves less than is claimed")
def box_of_a_network(c):
    """A refused box of a network."""
    tree(c)[0] = ["x", {}]


@malformed("certain_trees.json", "allowed: a list of 2")
def box_with_one_end(c):
    """A box with one end."""
    boxes(c)[0]["f0"] = [0.0]


@attack("certain_largest.json", "allowed: one per sum, where combine is 'largest'")
def certain_case_left_out(c):
    """One sum of several proven, any of which may accept."""
    c["configurations"][0]["cases"].pop()


@attack("certain_trees.json", "ends before all of the box is covered")
def certain_part_left_out(c):
    """The last part of the box not proven at all."""
    del tree(c)[-1]


@attack("certain_conditions.json", "none covers acting on exactly")
def certain_configuration_dropped(c):
    """A set of features that conditions allow, proven by nobody."""
    del c["configurations"][-1]


# -- outcomes ------------------------------------------------------------------------------------------


@attack("certain_points.json", "withstands.outcomes.tree: ends before all of the box is covered")
def outcome_left_out(c):
    """The last outcome not looked at."""
    outcomes(c).pop()


@attack("certain_points.json", "outcomes.tree.1: leaf 'd' proves less")
def outcome_closed_by_nothing(c):
    """An outcome closed without the classifier."""
    outcomes(c)[1][2] = []


@attack("certain_points.json", "outcomes.tree.0: leaf 'd' proves less")
def outcomes_not_told_apart(c):
    """All outcomes in one leaf; the worst of them is just accepted, which doubles cannot show."""
    c["withstands"]["missed"]["f0"] = 2.0
    outcomes(c)[:] = [["d", "", [{"g": 1.0}]]]


@attack("certain_points.json", "proves less than is claimed")
def strict_rule_in_a_configuration(c):
    """The rule for outcomes, which need not prove a cost, used for actions."""
    tree(c)[1][2] = [{"g": 1e-6}]


@attack("certain_network.json", "allowed: a number at least 0")
def outcomes_multiplied_below_zero(c):
    """The logit row of an outcome turned round."""
    outcomes(c)[0][2][0]["g"] *= -1


@attack("certain_trees.json", "withstands.outcomes.cases: allowed: one per sum")
def outcomes_by_parts_that_are_not_there(c):
    """Cases for a score that is no smallest or largest sum."""
    proof = c["withstands"]["outcomes"]
    c["withstands"]["outcomes"] = {"cases": [proof, proof]}


@attack("certain_trees.json", "outcomes.tree.1: leaf 'p' proves less")
def outcomes_with_a_multiplier_of_zero(c):
    """The score of the outcomes left out of the sum."""
    for table in c["withstands"]["outcomes"]["prices"]:
        table["mu"] = 0.0


@attack("certain_trees.json", "leaf 'e' proves less")
def outcomes_said_to_be_none(c):
    """Outcomes said to be none at all."""
    c["withstands"]["outcomes"] = {"tree": [["e"]]}


def main() -> None:
    """Write the accepted certificates and their instances anew."""
    from milp_recourse.formats import instance_from_dict
    from milp_recourse.questions.robust import robust
    from tests.questions.robust.enumeration import settled
    from tests.questions.robust.problems import draw

    for name, seed in SEEDS.items():
        drawn = draw(seed)
        settled(drawn, seed)
        instance = instance_from_dict(drawn.instance)
        found = robust(instance, drawn.missed, drawn.threshold, drawn.noise).result
        assert found.evidence is not None, name
        (HERE / "accepted" / f"{name}.json").write_text(dump(json.loads(decompress(found.evidence))))
        (HERE / "instances" / f"{name}.json").write_text(json.dumps(drawn.instance, indent=1) + "\n")


if __name__ == "__main__":
    main()
