"""Certificates that try to cheat: ``python -m tests.certificates.attacks`` writes them all anew.

Every function makes one attack from an accepted certificate; its name is the file's, its docstring
says what is tried. ``index.json`` lists them with the reason a checker must give.
"""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

ACCEPTED = {
    "toy.json": "docs/examples/toy_instance.json",
    "two_trees.json": "instances/smoke/two_trees.json",
    "causal_trees.json": "tests/certificates/instances/causal_trees.json",
    "priced_trees.json": "tests/certificates/instances/priced_trees.json",
    "taken_out_trees.json": "tests/certificates/instances/taken_out_trees.json",
    "dear_leaves.json": "tests/certificates/instances/dear_leaves.json",
    "shared_trees.json": "tests/certificates/instances/shared_trees.json",
    "conditioned_trees.json": "tests/certificates/instances/conditioned_trees.json",
    "gaps.json": "tests/certificates/instances/gaps.json",
    "conditions.json": "tests/certificates/instances/conditions.json",
    "budget.json": "tests/certificates/instances/budget.json",
    "zero_interval.json": "tests/certificates/instances/zero_interval.json",
    "steps.json": "tests/certificates/instances/steps.json",
    **{
        f"{name}.json": f"tests/certificates/instances/{name}.json"
        for name in ("percentile_trees", "gamma_noise", "sigmoid_link_plausible", "causal_labels")
    },
    "loan_002.json.gz": "instances/loan/loan_002.json",
    "loan_004.json.gz": "instances/loan/loan_004.json",
    "population_0.json": "tests/certificates/instances/toy_population.json",
    "population_2.json": "tests/certificates/instances/toy_population.json",
    **{
        f"{name}.json": f"instances/smoke/{name}.json"
        for name in (
            "already_accepted",
            "categorical",
            "domain_downstream_infeasible",
            "hold",
            "infeasible_plausible",
            "integer",
            "l0",
            "linf",
            "loan_education",
            "loan_two_units",
            "mixture",
            "network_equation",
            "nothing_actionable",
            "ordinal_one_hot",
            "plausible_relu",
            "sigmoid_equation",
            "sigmoid_link",
            "square_equation",
            "tree_float32",
        )
    },
}

Attack = Callable[[dict[str, Any]], Any]
REJECTED: dict[str, tuple[str, str, str, Attack]] = {}
MALFORMED: dict[str, tuple[str, str, str, Attack]] = {}
FOREIGN: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {}


def attack(base: str, reason: str, kind: dict[str, tuple[str, str, str, Attack]] = REJECTED) -> Any:
    """Register an attack on an accepted certificate, with what the checker must say."""

    def register(function: Attack) -> Attack:
        kind[function.__name__] = (base, reason, str(function.__doc__), function)
        return function

    return register


def tree(certificate: dict[str, Any], k: int = 0) -> list[Any]:
    nodes: list[Any] = certificate["configurations"][k]["tree"]
    return nodes


def first(certificate: dict[str, Any], kind: str, k: int = 0) -> list[Any]:
    """The first node of a kind."""
    return next(node for node in tree(certificate, k) if node[0] == kind)


# -- the claim ------------------------------------------------------------------------------------


@attack("toy.json", "cost: not the action's")
def raised_bound(c):
    """Cost and bound both raised to the next double: that is not the least one at or above the cost."""
    c["lower_bound"] = c["cost"] = 2.2500000000000004


@attack("loan_002.json.gz", "proves less than is claimed")
def raised_bound_within_the_gap(c):
    """The bound raised up to the cost, still a true claim, but not one that this tree proves."""
    c["lower_bound"] = c["cost"]


@attack("toy.json", "allowed: from 0 to the cost")
def bound_above_the_cost(c):
    """A bound above the cost of the action in hand."""
    c["lower_bound"] = 9.0


@attack("toy.json", "cost and lower_bound are too far apart")
def open_gap_called_optimal(c):
    """A weaker bound that the tree does prove, still called optimal."""
    c["lower_bound"] = 2.2


@attack("toy.json", "unknown key 'tolerance'")
def own_tolerance(c):
    """A tolerance that the certificate sets for itself."""
    c["tolerance"] = 0.5
    c["lower_bound"] = 2.0


@attack("toy.json", "cost: not the action's")
def understated_cost(c):
    """A cost below what the action costs."""
    c["cost"] = c["lower_bound"] = 2.0


@attack("toy.json", "cost: not the action's")
def overstated_cost(c):
    """A cost above what the action costs, by two units in the last place."""
    c["cost"] = 2.250000000000001


@attack("toy.json", "proves less than is claimed")
def infeasible_though_feasible(c):
    """The tree of an optimum said to prove that there is no action."""
    c |= {"claim": "infeasible", "action": None, "cost": None, "lower_bound": None}


@attack("already_accepted.json", "doing nothing is feasible")
def infeasible_though_accepted_as_is(c):
    """An applicant who needs no action told that none exists, by a certificate with no tree to check."""
    c |= {"claim": "infeasible", "action": None, "cost": None, "lower_bound": None}


@attack("infeasible_plausible.json", "action: the classifier does not accept")
def optimal_though_infeasible(c):
    """Holding still said to be an optimum of cost 0 where no action exists."""
    c |= {"claim": "optimal", "action": {"income": 1.0}, "cost": 0.0, "lower_bound": 0.0}


# -- the instance ---------------------------------------------------------------------------------


def edited(name: str, base: str = "toy.json", reason: str = "belongs to another instance") -> Any:
    """Register an edit of an instance, to which the instance's certificate does not belong."""

    def register(function: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
        FOREIGN[function.__name__] = base, function
        REJECTED[function.__name__] = (base, reason, name, lambda c: None)
        return function

    return register


@edited("One weight of the network changed in its last bit, the certificate's digest kept.")
def foreign_classifier(i):
    i["classifier"]["layers"][0]["weight"][0][0] = 1.0000000000000002


@edited("A distribution in which the change overtakes fewer people.", "percentile_trees.json")
def edited_quantiles(i):
    knots = next(iter(i["cost"]["quantiles"].values()))
    knots[0][1] -= 0.001


@edited("Noise of another shape: other things are plausible.", "gamma_noise.json")
def edited_noise(i):
    mechanisms = i["scm"]["mechanisms"].values()
    next(m for m in mechanisms if m.get("noise", {}).get("kind") == "gamma")["noise"]["shape"] += 0.5


@attack("causal_labels.json", "ends before all of the box is covered")
def label_left_out(c):
    """A label split off, and its tree left out."""
    del tree(c)[-1]


@attack("causal_labels.json", "leaf 'e' proves less than is claimed")
def labels_not_told_apart(c):
    """All labels in one leaf, closed by what holds of each."""
    c["configurations"][0]["tree"] = [["e"]]


@attack("gamma_noise.json", "leaf 'e' proves less than is claimed")
def plausible_part_left_out(c):
    """A box that holds the optimum, said to hold nothing plausible."""
    nodes = tree(c)
    nodes[nodes.index(first(c, "d"))] = ["e"]


@edited("Another applicant.")
def edited_applicant(i):
    i["factual"]["income"] = -1e-12


@edited("A dearer action: the weight doubled.")
def edited_weight(i):
    i["preferences"]["weights"] = {"income": 2}


@edited("Bounds that leave the optimum out.")
def edited_bounds(i):
    i["features"][0]["bounds"] = [-0.75, 1.4]


@edited("A margin asked for.")
def edited_margin(i):
    i["accept"] = {"margin": 1e-9}


@edited("A domain added.")
def edited_domain(i):
    i["features"][0]["domain"] = [-0.75, 4]


@edited("Plausibility asked for.")
def edited_plausibility(i):
    noise = {"kind": "normal", "sd": 1}
    i["scm"] = {"name": "explicit", "mechanisms": {"income": {"equation": 0, "noise": noise}}}
    i["plausibility"] = {"kind": "scm-density", "at_least": "factual"}


# -- conditions -----------------------------------------------------------------------------------


@attack("conditions.json", "action: a condition does not hold")
def action_beyond_a_sum(c):
    """Savings raised alone, further above income than a condition allows; the network would accept."""
    c["action"] = {"savings": 3.9}


@attack("conditions.json", "action: a condition does not hold")
def action_too_many(c):
    """A held feature more: it costs nothing and changes nothing, but counts as an action."""
    c["action"]["duration"] = 3.0


@attack("conditions.json", "action: a condition does not hold")
def action_on_an_effect_out_of_reach(c):
    """Income raised by four times its value, where the applicant allows less."""
    c["action"] = {"income": 5.0}


@attack("conditions.json", "ends before all of the box is covered")
def alternative_left_out(c):
    """The last alternative of a condition not proven at all."""
    c["configurations"][3]["tree"] = tree(c, 3)[:4]


@attack("conditions.json", "no alternative of the conditions is open")
def alternative_split_twice(c):
    """A condition split over once more, after all of its alternatives were."""
    tree(c, 8).insert(1, ["o"])


@attack("conditions.json", "no alternative of the conditions is open")
def alternative_that_is_settled(c):
    """A split where acting on the job settles the condition."""
    tree(c, 5).insert(0, ["o"])


@attack("conditions.json", "no rule of section 7 closes it")
def alternative_not_split(c):
    """A leaf that one alternative closes, said to be closed by both."""
    tree(c, 3)[:] = [["e"]]


@attack("conditions.json", "no rule of section 7 closes it")
def alternative_swapped(c):
    """The trees of two alternatives in the wrong order."""
    tree(c, 8)[1:] = [*tree(c, 8)[2:], tree(c, 8)[1]]


def multiplied(c: dict[str, Any]) -> dict[str, Any]:
    """A term with multipliers of conditions' rows."""
    return next(t for n in tree(c) if n[0] == "d" for t in n[2] if any(q > 0.5 for q in t.get("q", [])))


@attack("conditions.json", "allowed: a number at least 0")
def condition_multiplied_below_zero(c):
    """A row of a condition turned round by a negative multiplier."""
    multiplied(c)["q"][0] *= -1


@attack("conditions.json", "allowed: a list of 6")
def condition_of_another_alternative(c):
    """A multiplier for a row that holds in another alternative only."""
    multiplied(c)["q"].append(1.0)


@attack("toy.json", "allowed: a list of 0")
def condition_where_there_is_none(c):
    """Multipliers of conditions' rows where there is no condition."""
    first(c, "d")[2][0]["q"] = [1.0]


@attack("conditions.json", "proves less than is claimed")
def condition_without_its_multiplier(c):
    """A leaf that needs a condition's row, without it."""
    for node in tree(c):
        for term in node[2] if node[0] == "d" else ():
            term.pop("q", None)


@attack("conditions.json", "none covers acting on exactly income, job")
def configuration_that_conditions_allow_dropped(c):
    """Two features acted on, which at most two actions allow, proven by nobody."""
    del c["configurations"][2]


@edited("The number of actions raised by one.", "conditions.json")
def edited_count_of_actions(i):
    i["conditions"][0]["at_most_actions"] = 3


@edited("A condition said of the change instead of the value.", "conditions.json")
def edited_view_of_a_condition(i):
    i["conditions"][2]["of"] = "change"


@edited("The applicant's own condition left out.", "conditions.json")
def edited_own_condition(i):
    del i["preferences"]["conditions"]


@edited("A condition turned round.", "conditions.json")
def edited_negation(i):
    i["conditions"][4] = i["conditions"][4]["not"]


@edited(
    "The relative change of nothing.",
    "conditions.json",
    "the relative change of savings, whose factual value is 0",
)
def relative_change_of_nothing(i):
    i["conditions"][4]["not"]["feature"] = "savings"


@edited(
    "A condition on a feature that is not there.", "conditions.json", "allowed: one or more of the features"
)
def condition_on_nothing(i):
    i["conditions"][1]["then"]["any"][1] = {"acted": "luck"}


@edited("A condition on a label that is not there.", "conditions.json", "one of clerk, skilled, boss")
def condition_on_no_label(i):
    i["conditions"][3]["in"] = ["clerk", 3]


@edited("A condition with a tolerance.", "conditions.json", "unknown key 'tolerance'")
def condition_with_a_tolerance(i):
    i["conditions"][2]["tolerance"] = 0.5


@edited("Bounds in the wrong order.", "conditions.json", "at_least above at_most")
def condition_of_an_empty_interval(i):
    i["conditions"][2]["at_least"] = 2


@edited("Half an action.", "conditions.json", "allowed: a whole number, 0 or more")
def condition_of_half_an_action(i):
    i["conditions"][0]["at_most_actions"] = 1.5


@edited("A sum over labels.", "conditions.json", "sum: got a categorical feature")
def condition_on_a_sum_of_labels(i):
    i["conditions"][2]["sum"]["job"] = 1


@edited("A condition without a bound.", "conditions.json", "no bound")
def condition_of_nothing(i):
    del i["conditions"][2]["at_most"]


# -- neurons within the budget --------------------------------------------------------------------


def bounded_leaves(certificate: dict[str, Any]) -> list[list[Any]]:
    """The leaves with thetas."""
    return [node for node in tree(certificate) if node[0] == "d" and len(node) == 5]


@attack("budget.json", "proves less than is claimed")
def thetas_left_out(c):
    """Leaves that need neurons bounded within the budget, without."""
    for node in bounded_leaves(c):
        node.pop()


@attack("budget.json", "leaf 'e' proves less than is claimed")
def bound_raised_with_the_budget(c):
    """A higher bound, which is the budget that neurons are bounded with, too."""
    c["lower_bound"] = c["cost"]


@attack("budget.json", "allowed: at least 0, or -n for n zeros")
def theta_below_zero(c):
    """Negative thetas, which would turn the budget round."""
    node = bounded_leaves(c)[0]
    node[4] = [-theta - 1.0 for theta in node[4]]


@attack("budget.json", "proves less than is claimed")
def thetas_far_too_large(c):
    """Thetas at which nothing but the budget counts."""
    for node in bounded_leaves(c):
        node[4] = [1e300] * len(node[4])


@attack("budget.json", "or -n for n zeros", MALFORMED)
def zeros_without_end(c):
    """More zeros among the thetas than any network has ends of neurons."""
    bounded_leaves(c)[0][4] = [-1e15]


@attack("budget.json", "allowed: a list of")
def one_zero_too_many(c):
    """A theta more than neurons have ends, by a number that stands for zeros."""
    bounded_leaves(c)[0][4].append(-1.0)


@attack("budget.json", "allowed: a list of", MALFORMED)
def one_theta_too_few(c):
    """A theta fewer than neurons have ends."""
    bounded_leaves(c)[0][4].pop()


@attack("budget.json", "allowed: a list of", MALFORMED)
def leaf_of_six_parts(c):
    """A leaf with more parts than there are."""
    bounded_leaves(c)[0].append([])


@attack("toy.json", "allowed: a list of", MALFORMED)
def thetas_of_a_larger_network(c):
    """Thetas of more neurons than there are."""
    node = first(c, "d")
    node += [[0.0], [0.5] * 6]


@edited("A budget in which one change is cheaper.", "budget.json")
def edited_budget(i):
    i["cost"]["scale"]["f0"] *= 2


@edited("Two labels that change places in the network.", "budget.json")
def edited_label_columns(i):
    for row in i["classifier"]["layers"][0]["weight"]:
        row[-1], row[-2] = row[-2], row[-1]


# -- missing values and tables --------------------------------------------------------------------


@edited("A missing value sent the other way.", "gaps.json")
def edited_missing_rule(i):
    i["classifier"]["trees"][1]["missing_left"][0] = True


@edited("A missing value without a rule for it.", "gaps.json", "the classifier has no rule for it")
def null_without_rule(i):
    del i["classifier"]["trees"][0]["missing_left"]


@edited("A missing value that something is computed from.", "gaps.json", "missing inside a causal model")
def null_with_effects(i):
    i["scm"] = {"name": "explicit", "mechanisms": {"debt": {"equation": "income"}}}


@edited("A missing value as a number.", "gaps.json")
def null_filled_in(i):
    i["factual"]["debt"] = 0


@edited("A row of a table with a number too few.", "gaps.json", "allowed: one row per label")
def table_row_too_short(i):
    i["features"][2]["table"][1] = [1]


@edited("A table with a row too few.", "gaps.json", "allowed: one row per label")
def table_without_a_label(i):
    i["features"][2]["table"].pop()


@edited("One number of a table changed in its last bit.", "gaps.json")
def edited_table(i):
    i["features"][2]["table"][0][1] = 0.12500000000000003


@edited("A score that has to exceed what it had to reach.", "gaps.json")
def edited_rule_of_acceptance(i):
    i["accept"] = {"above": 2}


@edited("A whole number that actions on others move.", "gaps.json", "actions on other features move debt")
def whole_number_with_causes(i):
    i["features"][1] |= {"kind": "integer"}
    i["scm"] = {"name": "explicit", "mechanisms": {"debt": {"equation": "income"}}}
    i["factual"] |= {"income": 1, "debt": 1}


@edited(
    "An equation that reads the number of a label without order.", "gaps.json", "reads a categorical feature"
)
def category_as_a_cause(i):
    i["scm"] = {"name": "explicit", "mechanisms": {"debt": {"equation": "job"}}}
    i["factual"] |= {"income": 1, "debt": 1}


@attack("gaps.json", "action: the classifier does not accept")
def missing_value_that_goes_the_other_way(c):
    """A cheaper action, accepted if the missing debt went left, as small ones do."""
    c |= {"action": {"job": "full"}, "cost": 3.0, "lower_bound": 3.0}


@attack("gaps.json", "cost: not the action's")
def missing_value_set_for_nothing(c):
    """Setting a missing income at no cost, as if there were no distance."""
    c |= {"cost": 3.0, "lower_bound": 3.0}


@attack("steps.json", "action.rate: 0.7000000000000001 is not a value that may be set")
def seven_times_the_double_of_a_tenth(c):
    """An action between two steps, which are counted in decimals."""
    c["action"]["rate"] = 7 * 0.1


@attack("steps.json", "action.job: 1.0 is not a value that may be set")
def label_that_no_action_may_set(c):
    """A label held that is not in the list of values."""
    c["action"]["job"] = "cook"


@attack("steps.json", "none covers acting on exactly job")
def lever_between_steps_taken_for_idle(c):
    """The configurations without rate left out, as if rate could be held between its steps."""
    c["configurations"] = [one for one in c["configurations"] if "rate" in one["acted"]]


@attack("gaps.json", "action.income: got null")
def action_that_is_missing(c):
    """A missing value held, as if that were an action."""
    c["action"]["income"] = None


@attack("gaps.json", "none covers acting on exactly job")
def missing_lever_taken_for_idle(c):
    """The configuration in which income stays missing left out, as if setting it cost nothing."""
    c["configurations"] = [one for one in c["configurations"] if "income" in one["acted"]]


@attack("gaps.json", "no rule of section 7 closes it")
def label_of_another_number(c):
    """One leaf for all labels, as if none of them had the number that the last tree asks for."""
    c |= {"claim": "infeasible", "action": None, "cost": None, "lower_bound": None}
    c["configurations"] = [{**one, "tree": [["e"]]} for one in c["configurations"]]


# -- instances that are none ----------------------------------------------------------------------


@edited("Half of a surrogate pair in a name.", reason="no JSON")
def half_a_character(i):
    i["name"] = "\ud800"


@edited("A feature without a name.", "gaps.json", "a name of 1 to 200 characters")
def no_name(i):
    i["features"][1]["name"] = ""
    i["factual"][""] = i["factual"].pop("debt")


@edited("A label that ends its line.", "gaps.json", "a name of 1 to 200 characters")
def label_of_two_lines(i):
    i["features"][2]["categories"][0] += "\n"


@edited("A cost that says what it is twice, once with a question mark.", "l0.json", "unknown key 'scale?'")
def key_with_a_question_mark(i):
    i["cost"] = {"kind": "l0", "scale?": {"income": 2}}


@edited("A scale for a feature that there is not.", reason="cost.scale: 'luck' names no feature")
def scale_of_nothing(i):
    i["cost"]["scale"]["luck"] = 1


@edited("A mixture of nothing, under which every action is free.", reason="coefficients that are all 0")
def mixture_of_nothing(i):
    i["cost"] |= {"kind": "mixture"}


@edited("A weight that float32 cannot hold.", "toy.json", "allowed: float32 numbers")
def weight_between_two_float32(i):
    i["classifier"] |= {"dtype": "float32"}
    i["classifier"]["layers"][0]["weight"][0][0] = 0.1


@edited("A coin that lands on heads twice.", reason="allowed: a number from 0 to 1")
def probability_of_two(i):
    noise = {"kind": "bernoulli", "p": 2}
    i["scm"] = {"name": "explicit", "mechanisms": {"income": {"equation": 0, "noise": noise}}}


@edited("Plausibility without noise.", reason="does not state the noise")
def plausible_without_noise(i):
    i["plausibility"] = {"kind": "scm-density", "at_least": "factual"}


@edited("A mean of values that are no probabilities.", "two_trees.json", "as value in a mean 0 to 1")
def leaf_above_one(i):
    tree = i["classifier"]["trees"][0]
    tree["value"][tree["left"].index(-1)] = 2


@edited(
    "A yes-or-no feature that can be three.",
    "integer.json",
    "bounds: allowed: from 0 to 1, for a feature that is binary",
)
def binary_beyond_one(i):
    i["features"][0] |= {"kind": "binary", "bounds": [0, 3]}


@edited("An equation that sums nothing.", reason="a sum, product or inputs of nothing")
def sum_of_nothing(i):
    i["scm"] = {"name": "explicit", "mechanisms": {"income": {"equation": {"sum": []}}}}


# -- what the network computes --------------------------------------------------------------------


def deployed_refuses(i):
    """logit = wealth + income - 2^24, which is 1 for an income of 1, but 0 in float32."""
    i["features"] = [
        {"name": "wealth", "kind": "continuous", "actionable": False},
        {"name": "income", "kind": "continuous", "actionable": True, "bounds": [0, 1]},
    ]
    layers = [{"weight": [[1, 1]], "bias": [-(2**24)]}]
    i["classifier"] = {"kind": "relu-network", "dtype": "float32", "layers": layers}
    i["accept"] = {"at_least": 1}
    i["factual"] = {"wealth": 2**24, "income": 0}


FOREIGN["accepted_on_paper_only"] = "toy.json", deployed_refuses


@attack("toy.json", "the network, computed in its dtype, does not accept")
def accepted_on_paper_only(c):
    """An action that the real numbers accept, to the last bit, and the deployed float32 network refuses."""
    c["instance_sha256"] = "97e837b554bc3dd98ffa10a63b094e509800300db0483877d0e58ec13613201a"
    c |= {"action": {"income": 1}, "cost": 1, "lower_bound": 1}
    c["configurations"] = [{"acted": ["income"], "tree": [["d", "", [{"g": 2}]]]}]


@attack("toy.json", "belongs to another instance")
def forged_digest(c):
    """A digest of something else."""
    c["instance_sha256"] = "0" * 64


@attack("population_0.json", "belongs to another instance")
def another_applicant_of_the_population(c):
    """The certificate of one applicant given for another."""
    c["index"] = 1


@attack("population_0.json", "index: got 3.0")
def applicant_beyond_the_population(c):
    """An applicant who is not in the population."""
    c["index"] = 3


@attack("population_0.json", "index: needed for a population")
def no_index(c):
    """A population's certificate that does not say whose it is."""
    del c["index"]


@attack("toy.json", "index: only for a population")
def index_in_an_instance(c):
    """An index where there is one applicant only."""
    c["index"] = 0


# -- the action -----------------------------------------------------------------------------------


@attack("toy.json", "does not accept")
def infeasible_action(c):
    """An action just short of acceptance, its cost honest."""
    c["action"] = {"income": 1.4999999999999998}
    c["cost"] = c["lower_bound"] = 2.2499999999999996


@attack("toy.json", "outside [-0.75, 4.0]")
def action_outside_the_bounds(c):
    """A value that no action may set."""
    c["action"] = {"income": 4.5}
    c["cost"] = 20.25


@attack("population_2.json", "outside [-0.5, 1.25]")
def action_outside_the_range(c):
    """A value within the bounds, but not what this applicant is ready to do."""
    c |= {"claim": "optimal", "action": {"income": 1.5}, "cost": 0.5, "lower_bound": 0.5}


@attack("loan_002.json.gz", "age is not for this applicant to act on")
def action_outside_the_mask(c):
    """A feature acted on that nobody can act on."""
    c["action"]["age"] = 0.0


@attack("toy.json", "luck is not for this applicant to act on")
def action_on_an_unknown_feature(c):
    """A feature that does not exist."""
    c["action"]["luck"] = 1.0


@attack("integer.json", "is not a value of a feature that is integer")
def fractional_action(c):
    """Half a job."""
    c["action"]["jobs"] = 4.5
    c["cost"] = c["lower_bound"] = 6.25


@attack("categorical.json", "allowed: one of rent, own, free")
def unknown_label(c):
    """A category that the feature does not have."""
    c["action"] = {"housing": "castle"}


@attack("loan_002.json.gz", "less plausible than the factual")
def implausible_action(c):
    """Accepted and cheap, but less plausible than the factual."""
    c["action"] = {"savings": 0.8, "income": -3.0401}


@attack("loan_002.json.gz", "action")
def dropped_feature_of_the_action(c):
    """One of the features acted on left out of the action."""
    del c["action"]["savings"]


@attack("domain_downstream_infeasible.json", "duration leaves its domain")
def action_outside_a_domain(c):
    """What follows from the action leaves its domain."""
    c |= {"claim": "optimal", "action": {"amount": 3.0}, "cost": 9.0, "lower_bound": 9.0}


# -- the tree -------------------------------------------------------------------------------------


@attack("loan_002.json.gz", "none covers acting on exactly")
def dropped_subset(c):
    """A set of features acted on left out."""
    del c["configurations"][2]


@attack("l0.json", "none covers acting on exactly")
def idle_under_l0(c):
    """Holding a feature taken for not acting on it, where holding costs."""
    largest = max(c["configurations"], key=lambda one: len(one["acted"]))
    c["configurations"] = [largest]


@attack("toy.json", "none covers acting on exactly income")
def no_configurations(c):
    """No tree at all."""
    c["configurations"] = []


@attack("loan_002.json.gz", "none covers acting on exactly")
def repeated_subset(c):
    """A set of features twice, in another's place."""
    c["configurations"][1] = c["configurations"][0]


@attack("loan_002.json.gz", "acted: allowed: some, in order, of")
def reordered_subset(c):
    """Actions in another order, so that splits cut other features."""
    c["configurations"][0]["acted"].reverse()


@attack("toy.json", "acted: allowed: some, in order, of")
def empty_subset(c):
    """A set of no features beside the others."""
    c["configurations"].insert(0, {"acted": [], "tree": [["e"]]})


@attack("toy.json", "closes")
def leaf_marked_empty_that_is_not(c):
    """The leaf that holds the optimum said to be closed by cost and domains alone."""
    tree(c)[4] = ["e"]


@attack("toy.json", "proves less than is claimed")
def dropped_split(c):
    """A split left out together with its first child: the second has to do for the whole box."""
    del tree(c)[1:3]


@attack("toy.json", "ends before all of the box is covered")
def dropped_child(c):
    """The last child left out."""
    tree(c).pop()


@attack("toy.json", "was complete before this node")
def node_too_many(c):
    """A leaf after the tree's end."""
    tree(c).append(["e"])


@attack("toy.json", "proves less than is claimed")
def shifted_split(c):
    """A split moved beyond the optimum, so that a leaf that holds it looks empty."""
    tree(c)[1][2] = 1.75


@attack("toy.json", "which is not between")
def split_outside_the_box(c):
    """A split beyond the box, whose first child is everything and whose second nothing."""
    tree(c)[0][2] = 5.0


@attack("toy.json", "which is not between")
def split_at_the_end(c):
    """A split at the very end of the box."""
    tree(c)[0][2] = 4.0


@attack("toy.json", "proves less than is claimed")
def swapped_children(c):
    """The two children of a split on a sign in each other's place."""
    nodes = tree(c)
    nodes[4], nodes[5] = nodes[5], nodes[4]


@attack("toy.json", "allowed: a number at least 0")
def wrong_signed_multiplier(c):
    """A negative multiplier, which would turn the row around."""
    tree(c)[4][2][0]["g"] = -3.0


@attack("toy.json", "proves less than is claimed")
def rescaled_multiplier(c):
    """A multiplier twice too large."""
    tree(c)[4][2][0]["g"] = 6.0


@attack("toy.json", "allowed: a list of 1")
def sign_row_without_a_split(c):
    """A sign row used that no split on the path assumes."""
    tree(c)[4][2][0]["n"] = [1.0, 4.0]


@attack("toy.json", "allowed: a list of 0")
def sign_row_of_another_branch(c):
    """A sign assumed in a branch where it was not split on."""
    tree(c)[2][2][0]["n"] = [4.0]


@attack("toy.json", "splits on the sign of a neuron on which a node above splits")
def sign_split_twice(c):
    """One sign split on again below."""
    tree(c)[4:5] = [["n", 0, 1], tree(c)[4], tree(c)[4]]


@attack("toy.json", "allowed: a whole number from 0 to 1")
def unknown_neuron(c):
    """A neuron that the network does not have."""
    tree(c)[3][2] = 2


@attack("toy.json", "allowed: a whole number from 0 to 0")
def split_on_the_logit(c):
    """The output taken for a hidden neuron: assuming that it is negative would empty a child."""
    tree(c)[3] = ["n", 1, 0]


@attack("toy.json", "allowed: 2 characters 0 or 1")
def steep_slopes(c):
    """A slope that is no valid line of a neuron."""
    tree(c)[2][1] = "02"


@attack("toy.json", "allowed: 2 characters 0 or 1")
def too_few_slopes(c):
    """A slope missing."""
    tree(c)[2][1] = "0"


@attack("linf.json", "sum to more than 1")
def shares_above_one(c):
    """The maximum counted more than once."""
    first(c, "d")[3:] = [[1.0] * len(c["configurations"][0]["acted"])]


@attack("linf.json", "allowed: a number at least 0")
def negative_share(c):
    """A negative share makes room for a larger one."""
    leaf = first(c, "d")
    leaf[3:] = [[2.0] + [-1.0] * (len(c["configurations"][0]["acted"]) - 1)]


@attack("loan_002.json.gz", "allowed: a number at least 0")
def negative_ball_multiplier(c):
    """The ball turned inside out."""
    leaf = next(n for n in tree(c) if n[0] == "d" and any("b" in term for term in n[2]))
    next(term for term in leaf[2] if "b" in term)["b"][0] = -1.0


@attack("toy.json", "got a term with g or b; allowed: g for a network, b under plausibility")
def ball_without_plausibility(c):
    """The ball used where plausibility is not asked for."""
    tree(c)[2][2][0]["b"] = [1.0]


@attack("toy.json", "r.income: allowed: 0 for an end that its domain does not have")
def row_of_a_domain_that_is_not(c):
    """The domain row of a feature without a domain."""
    tree(c)[2][2][0]["r"] = {"income": [0.0, 1.0]}


@attack("domain_downstream_infeasible.json", "allowed: a number at least 0")
def negative_domain_multiplier(c):
    """A domain row turned around."""
    largest = c["configurations"][0]
    largest["tree"] = [["d", "", [{"r": {"duration": [-1.0, 0.0]}}]]]


@attack("two_trees.json", "closes")
def trees_leaf_that_can_accept(c):
    """A box of the trees that does hold accepted points said to hold none."""
    tree(c)[1] = ["e"]
    tree(c)[0][2] = 0.75


@attack("two_trees.json", "got a term with g or b; allowed: g for a network, b under plausibility")
def logit_of_trees(c):
    """A logit row where there is no network."""
    tree(c)[1] = ["d", "", [{"g": 1.0}]]


@attack("two_trees.json", "allowed: nothing, as there are none")
def sign_of_trees(c):
    """A neuron of trees."""
    tree(c)[1:2] = [["n", 0, 0], ["e"], ["e"]]


@attack("two_trees.json", "does not accept")
def tie_of_float32(c):
    """An action on the tie that float32 rounds down: greater than the threshold, and refused."""
    c["action"]["income"] = 0.5 + 2.0**-25


# -- leaves closed by prices ----------------------------------------------------------------------


def table(c: dict[str, Any]) -> dict[str, Any]:
    """The first table that has prices."""
    return next(one for one in c["configurations"][0]["prices"] if one["trees"])


def paid(c: dict[str, Any]) -> list[float]:
    """The first list of prices that are not zeros."""
    trees = (tree for tree in table(c)["trees"] if isinstance(tree, list))
    return next(own for tree in trees for own in tree if isinstance(own, list) and own)


@attack("priced_trees.json", "proves less than is claimed")
def prices_without_the_score(c):
    """The score's multiplier taken away: the prices alone prove nothing."""
    table(c)["mu"] = 0.0


@attack("priced_trees.json", "proves less than is claimed")
def prices_in_another_unit(c):
    """All prices doubled by their unit."""
    table(c)["unit"] *= 2


@attack("priced_trees.json", "proves less than is claimed")
def price_raised(c):
    """A tree paid more for a class than the features are charged for anywhere."""
    paid(c)[1] += 2**27


@attack("priced_trees.json", "proves less than is claimed")
def price_lowered(c):
    """A tree pays less for a class."""
    paid(c)[0] -= 2**27


@attack("priced_trees.json", "proves less than is claimed")
def prices_of_another_box(c):
    """Boxes said to be closed by prices that close others."""
    for node in tree(c):
        node[1:] = [1 - node[1]] if node[0] in "tp" else node[1:]


@attack("priced_trees.json", "proves less than is claimed")
def multiplier_without_prices(c):
    """The prices taken away, and of the score's multiplier most."""
    table(c)["mu"] /= 8
    table(c)["trees"] = []


@attack("priced_trees.json", "none covers acting on exactly")
def idle_lever_left_out(c):
    """A lever that is idle everywhere is not acted on in any configuration."""
    c["configurations"][0]["acted"].pop(0)


@attack("causal_trees.json", "prices need actions that move nothing else")
def prices_inside_a_causal_model(c):
    """Prices where actions move other features' values."""
    for one in c["configurations"]:
        one["prices"] = [{"unit": 1.0, "mu": 1.0, "trees": []}]


@attack("toy.json", "only where the classifier is made of trees")
def prices_of_a_network(c):
    """Prices without trees."""
    c["configurations"][0]["prices"] = []


@attack("priced_trees.json", "without prices")
def prices_that_are_not_there(c):
    """Leaves closed by tables that are left out."""
    del c["configurations"][0]["prices"]


@attack("priced_trees.json", "allowed: a whole number from 0 to 1", MALFORMED)
def table_beyond_the_last(c):
    """A table that is not there."""
    first(c, "p")[1] = 2


@attack("priced_trees.json", "allowed: as a price a whole number", MALFORMED)
def price_of_half_a_unit(c):
    """A price between two units."""
    paid(c)[0] += 0.5


@attack("priced_trees.json", "of at most 2^53", MALFORMED)
def price_beyond_exact_numbers(c):
    """A price too large to be counted."""
    paid(c)[0] = 2**60


@attack("priced_trees.json", "one per class", MALFORMED)
def price_too_few(c):
    """A class without a price."""
    paid(c).pop()


@attack("priced_trees.json", "lists; allowed: none or", MALFORMED)
def prices_of_a_feature_too_many(c):
    """A list for a feature that the tree does not look at."""
    next(tree for tree in table(c)["trees"] if tree).append([])


@attack("priced_trees.json", "lists; allowed: none or", MALFORMED)
def prices_of_a_tree_too_many(c):
    """Prices for a tree that is not there."""
    table(c)["trees"].append([])


@attack("priced_trees.json", "allowed: a whole number from 0 to 0", MALFORMED)
def trees_without_prices_that_are_not_there(c):
    """A number that stands for more trees than there are."""
    table(c)["trees"].append(1)


@attack("priced_trees.json", "allowed: a whole number from 0 to", MALFORMED)
def a_number_of_trees_without_end(c):
    """A number that stands for more trees than a machine holds."""
    table(c)["trees"].insert(0, 10**15)


@attack("priced_trees.json", "allowed: a whole number from 0 to", MALFORMED)
def half_a_tree_without_prices(c):
    """A number that stands for no whole number of trees."""
    table(c)["trees"][0] = 0.5


@attack("priced_trees.json", "a number at least 0", MALFORMED)
def multiplier_below_zero(c):
    """A reward for missing the score."""
    table(c)["mu"] = -1.0


@attack("priced_trees.json", "a number above 0", MALFORMED)
def unit_of_nothing(c):
    """Prices in units of 0."""
    table(c)["unit"] = 0.0


# -- tables that take out cells and leaves --------------------------------------------------------


@attack("taken_out_trees.json", "proves less than is claimed")
def nothing_taken_out(c):
    """Leaves that need what tables above them take out, without these tables."""
    tree(c)[:] = [node for node in tree(c) if node[0] != "t"]


@attack("taken_out_trees.json", "proves less than is claimed")
def taken_out_by_nothing(c):
    """A table without prices and multiplier in the place of those that are needed."""
    c["configurations"][0]["prices"].append({"unit": 1.0, "mu": 0.0, "trees": []})
    for node in tree(c):
        node[1:] = [6] if node[0] == "t" else node[1:]


@attack("taken_out_trees.json", "proves less than is claimed")
def taken_out_without_the_score(c):
    """Cells taken out, and boxes closed, by prices whose score's multiplier is gone."""
    for one in c["configurations"][0]["prices"]:
        one["mu"] = 0.0


@attack("taken_out_trees.json", "proves less than is claimed")
def taken_out_in_the_other_half(c):
    """What a table takes out of one half of a split said to be gone from both."""
    k = tree(c).index(["t", 0])
    tree(c)[k : k + 2] = [["p", 1]]
    tree(c).insert(k - 1, ["t", 0])
    tree(c).insert(k - 1, ["p", 1])


@attack("taken_out_trees.json", "ends before all of the box is covered")
def taken_out_and_left(c):
    """A table that takes out cells as the last word on a box."""
    tree(c)[-1] = ["t", 5]


@attack("taken_out_trees.json", "ends before all of the box is covered")
def merged_and_left(c):
    """A merging as the last word on a box."""
    tree(c)[-1] = ["m"]


@attack("taken_out_trees.json", "proves less than is claimed")
def raised_bound_beyond_what_is_taken_out(c):
    """Cost and bound raised: fewer cells reach the target."""
    c["configurations"][0]["tree"] = tree(c)
    c["lower_bound"] = c["cost"]
    for one in c["configurations"][0]["prices"]:
        one["mu"] /= 2


@attack("taken_out_trees.json", "allowed: a whole number from 0 to 5", MALFORMED)
def taken_out_by_a_table_that_is_not_there(c):
    """A table beyond the last."""
    first(c, "t")[1] = 6


@attack("taken_out_trees.json", "allowed: a list of 1", MALFORMED)
def merged_by_a_table(c):
    """A merging that names a table."""
    first(c, "m").append(0)


@attack("toy.json", "in a configuration without prices")
def merged_without_prices(c):
    """A merging of a network's boxes."""
    tree(c).insert(0, ["m"])


@attack("toy.json", "in a configuration without prices")
def taken_out_without_prices(c):
    """A table that takes something out of a network's boxes."""
    tree(c).insert(0, ["t", 0])


@attack("dear_leaves.json", "proves less than is claimed")
def leaf_of_the_cheapest_action_called_too_dear(c):
    """The bound raised to the double above what the action costs exactly: its leaves count then."""
    c["lower_bound"] = c["cost"]


@attack("dear_leaves.json", "proves less than is claimed")
def dear_leaves_beside_a_dearer_action(c):
    """Another action's cost as target: leaves that cost less count again, whatever the claim."""
    c["action"], c["cost"], c["lower_bound"] = {"income": 1.0}, 1.0, 1.0


@attack("dear_leaves.json", "proves less than is claimed")
def dear_leaves_of_a_claim_that_nothing_exists(c):
    """Called infeasible: the target is above what any action costs, so that every leaf counts."""
    c["claim"], c["action"], c["cost"], c["lower_bound"] = "infeasible", None, None, None


# -- trees under conditions ------------------------------------------------------------------------


@attack("conditioned_trees.json", "no rule of section 7 closes it")
def cut_beyond_what_is_demanded(c):
    """Values that the condition allows cut off as if it did not: the optimum's among them."""
    node = next(n for n in tree(c, 1) if n[0] == "s" and 1.0 < n[2] < 1.1)
    node[2] = 1.2


@attack("conditioned_trees.json", "no rule of section 7 closes it")
def case_without_its_condition(c):
    """What closes what the condition leaves of a case said to close all of it."""
    nodes = tree(c, 1)
    k = next(k for k, n in enumerate(nodes) if n[0] == "s" and 1.0 < n[2] < 1.1)
    del nodes[k : k + 2]


@attack("conditioned_trees.json", "ends before all of the box is covered")
def alternative_of_trees_left_out(c):
    """The last alternative of "any of" not proven."""
    tree(c).pop()
    tree(c).pop()


@attack("conditioned_trees.json", "allowed: without plausibility, and where conditions hold")
def merged_where_a_condition_may_fail(c):
    """Cells that stand for others which the condition may need."""
    nodes = tree(c, 1)
    nodes.insert(next(k for k, n in enumerate(nodes) if n[0] == "s" and 1.0 < n[2] < 1.1), ["m"])


@attack("conditioned_trees.json", "none covers acting on exactly")
def conditions_said_to_be_idle(c):
    """A bound said to hold without the conditions that it rests on."""
    c["conditions"] = []


@attack("conditioned_trees.json", "none covers acting on exactly")
def lever_asked_about_taken_for_idle(c):
    """Three levers without f2, of which the conditions ask whether it is acted on, left out."""
    c["configurations"] = [one for one in c["configurations"] if one["acted"] != ["f0", "f1", "f3"]]


@edited("A condition that asks for less.", "conditioned_trees.json")
def edited_condition_of_trees(i):
    i["conditions"][0]["any"][0]["at_least"] = 1.0


# -- shares of the cost's maximum -----------------------------------------------------------------


def shared(c: dict[str, Any]) -> dict[str, Any]:
    """The first table with shares."""
    return next(one for k in c["configurations"] for one in k["prices"] if "shares" in one)


@attack("shared_trees.json", "proves less than is claimed")
def shares_left_out(c):
    """A cost with a maximum that no action has a share of."""
    for one in c["configurations"]:
        for own in one["prices"]:
            own.pop("shares", None)


@attack("shared_trees.json", "sum to more than 1")
def shares_of_prices_above_one(c):
    """The maximum counted more than once."""
    shared(c)["shares"] = [0.5] * len(shared(c)["shares"])


@attack("shared_trees.json", "allowed: a list of 5")
def shares_of_an_action_too_few(c):
    """An action without a share."""
    shared(c)["shares"].pop()


@attack("shared_trees.json", "a number at least 0", MALFORMED)
def share_below_zero(c):
    """An action that takes from the maximum what another gets."""
    shared(c)["shares"][:2] = [-0.5, 0.4]


# -- splits on values that no action sets ---------------------------------------------------------


def under_cell(c, k=2):
    """The leaf that is closed by the ball and the domain row that a split on a value makes."""
    return next(node for node in tree(c, k) if node[0] == "d")


@attack("causal_trees.json", "closes")
def cell_moved_into_the_accepted(c):
    """A split on a value moved so that accepted values count as rejected ones."""
    tree(c, 2)[0][2] = 4.0


@attack("causal_trees.json", "proves less than is claimed")
def cell_row_overweighted(c):
    """A larger multiplier of the row that a split on a value gives."""
    under_cell(c)[2][0]["r"]["duration"] = [1.0, 0.0]


@attack("causal_trees.json", "allowed: 0 for an end that its domain does not have")
def cell_row_without_an_end(c):
    """A multiplier of the end that the split on a value left open."""
    under_cell(c)[2][0]["r"]["duration"] = [0.0, 1.0]


@attack("causal_trees.json", "r.savings: allowed: 0 for an end that its domain does not have")
def row_of_a_value_not_split_on(c):
    """A domain row of a feature that has no domain and was not split on."""
    under_cell(c)[2][0]["r"]["savings"] = [1.0, 0.0]


@attack("causal_trees.json", "allowed: with trees, a feature not acted on")
def cell_of_an_acted_feature(c):
    """A split on the value of a feature that is acted on: actions are split as such."""
    tree(c, 2)[0] = ["c", "income", 1.7]


@attack("causal_trees.json", "allowed: with trees, a feature not acted on")
def cell_of_nobody(c):
    """A split on the value of a feature that there is not."""
    tree(c, 2)[0][1] = "shoe size"


@attack("toy.json", "allowed: with trees, a feature not acted on")
def cell_of_a_network(c):
    """A split on a value where there are no trees to see it."""
    tree(c)[0:1] = [["c", "income", 1.0], ["e"], tree(c)[0]]


@attack("causal_trees.json", "the tree was complete before")
def cell_halves_both_once_more(c):
    """A leaf more than the splits ask for."""
    tree(c, 2).append(["e"])


@attack("causal_trees.json", "ends before all of the box is covered")
def cell_half_left_out(c):
    """The accepted half of a split on a value left out."""
    del tree(c, 2)[8:]


@attack("causal_trees.json", "closes")
def cells_that_contradict_the_wrong_way(c):
    """The same value split on twice, the second time where the first split left everything open."""
    tree(c, 2)[8:] = [["c", "duration", 1.0], ["e"], ["e"]]


@attack("causal_trees.json", "allowed: a number", MALFORMED)
def cell_at_infinity(c):
    """A split on a value at no number."""
    tree(c, 2)[0][2] = "inf"


@attack("integer.json", "which is not between")
def split_between_neighbours(c):
    """A whole-number action split where one child is empty."""
    tree(c)[:0] = [["a", 0, 8.0], ["e"]]


@attack("tree_float32.json", "closes")
def strict_split_a_double_too_far(c):
    """A strict split that skips the first accepted double."""
    tree(c)[:] = [["s", 0, 0.5000000298023225], ["e"], ["e"]]


@attack("tree_float32.json", "which is not between")
def strict_split_below_the_box(c):
    """A strict split whose first child is nothing."""
    tree(c)[0] = ["s", 0, -1e-300]


@attack("sigmoid_link.json", "proves less than is claimed")
def raised_bound_of_a_sigmoid(c):
    """The bound raised to the cost, where a sigmoid is between two lines only."""
    c["lower_bound"] = c["cost"]


@attack("sigmoid_link.json", "does not accept")
def just_short_of_a_sigmoid(c):
    """The last double at which the sigmoid's value falls short."""
    c["action"]["income"] = 1.0986122886681096
    c["cost"] = 1.2069489608125817
    c["lower_bound"] = 1.206948357340252


# -- malformed --------------------------------------------------------------------------------------


def malformed(base: str, reason: str) -> Any:
    """Register a file that a checker must not even begin to check."""
    return attack(base, reason, MALFORMED)


def text(certificate: dict[str, Any], old: str, new: str) -> str:
    """The certificate as text with one place replaced."""
    written = dump(certificate)
    assert old in written, old
    return written.replace(old, new, 1)


@malformed("toy.json", "NaN is not a finite number")
def nan(c):
    """NaN compares with nothing."""
    return text(c, '"lower_bound": 2.25', '"lower_bound": NaN')


@malformed("toy.json", "-Infinity is not a finite number")
def infinity(c):
    """A split at minus infinity."""
    return text(c, '["a", 0, 3]', '["a", 0, -Infinity]')


@malformed("toy.json", "cost: got inf")
def overflow(c):
    """A number beyond every double."""
    return text(c, '"cost": 2.25', '"cost": 1e400')


@malformed("toy.json", "got -inf")
def overflow_downwards(c):
    """A split below every double."""
    return text(c, '["a", 0, 3]', '["a", 0, -1e400]')


@malformed("toy.json", "cost: got inf")
def endless_digits(c):
    """A whole number of 5000 digits, which some readers take minutes for or refuse with a traceback."""
    return text(c, '"cost": 2.25', '"cost": ' + "9" * 5000)


@malformed("toy.json", "the key 'lower_bound' twice")
def duplicate_keys(c):
    """Two bounds: which one a reader takes depends on the reader."""
    return text(c, '"lower_bound": 2.25', '"lower_bound": 9, "lower_bound": 2.25')


@malformed("toy.json", "nested too deeply")
def deep_nesting(c):
    """Lists a hundred thousand deep."""
    return text(c, '["e"]', "[" * 100_000 + "]" * 100_000)


@malformed("toy.json", "no JSON")
def cut_short(c):
    """Half a file."""
    written = dump(c)
    return written[: len(written) // 2]


@malformed("toy.json", "no JSON")
def two_objects(c):
    """A second certificate after the first."""
    return dump(c) + dump(c)


@malformed("toy.json", "no JSON")
def not_utf8(c):
    """A byte that is not UTF-8."""
    return dump(c).encode().replace(b"income", b"inc\xf8me", 1)


@malformed("toy.json", "no JSON")
def utf16(c):
    """Another encoding, which some readers detect."""
    return dump(c).encode("utf-16")


@malformed("toy.json", "no JSON")
def empty_file(c):
    """Nothing."""
    return ""


@malformed("toy.json", "allowed: an object")
def a_list_at_the_top(c):
    """A list of certificates."""
    return dump([c])


@malformed("toy.json", "the key 'claim' is missing")
def no_claim(c):
    """Nothing claimed."""
    del c["claim"]


@malformed("toy.json", "unknown key 'note'")
def unknown_key(c):
    """A key that the format does not have."""
    c["note"] = "trust me"


@malformed("population_0.json", "unknown key 'index?'")
def key_with_a_question_mark_added(c):
    """A second index under the name that the checker's own table of keys has for it."""
    c["index?"] = 2


@malformed("toy.json", "no JSON")
def half_of_a_surrogate_pair(c):
    """Text that is no text."""
    return text(c, '"action": {"income"', '"action": {"\\ud800"')


@malformed("toy.json", "format: got")
def another_version(c):
    """A version that this checker does not know."""
    c["format"] = "milp-recourse/certificate-2"


@malformed("toy.json", "claim: got 'proven'")
def unknown_claim(c):
    """A claim that the format does not have."""
    c["claim"] = "proven"


@malformed("toy.json", "cost: got '2.25'")
def number_as_text(c):
    """A number in quotes."""
    c["cost"] = "2.25"


@malformed("toy.json", "action.income: got true")
def truth_as_a_number(c):
    """True, which Python counts as 1."""
    c["action"]["income"] = True


@malformed("toy.json", "cost: got null")
def null_cost(c):
    """An optimum without its cost."""
    c["cost"] = None


@malformed("infeasible_plausible.json", "null where the claim is infeasible")
def infeasible_with_a_bound(c):
    """An impossibility with a bound."""
    c["lower_bound"] = 1.0


@malformed("toy.json", "allowed: a number at least 0")
def negative_bound(c):
    """A bound below 0."""
    c["lower_bound"] = -1.0


@malformed("toy.json", "unknown key 'x'")
def unknown_key_in_a_term(c):
    """A multiplier of something that the format does not have."""
    tree(c)[2][2][0]["x"] = 1.0


@malformed("toy.json", "allowed: one of a, c, d, e, m, n, o, p, s, t, x")
def unknown_node(c):
    """A kind of node that the format does not have."""
    tree(c)[6] = ["trusted"]


@malformed("toy.json", "allowed: one of a, c, d, e, m, n, o, p, s, t, x")
def empty_node(c):
    """A node that is nothing."""
    tree(c)[6] = []


@malformed("toy.json", "allowed: a list")
def node_as_an_object(c):
    """A node that is an object."""
    tree(c)[6] = {"e": True}


@malformed("toy.json", "allowed: a whole number from 0 to 0")
def fractional_index(c):
    """Half an action."""
    tree(c)[0][1] = 0.5


@malformed("toy.json", "allowed: a list of 1")
def empty_leaf_with_more(c):
    """An empty leaf with something behind it."""
    tree(c)[6] = ["e", 1]


@malformed("loan_002.json.gz", "unreadable")
def broken_gzip(c):
    """Compressed data cut short."""
    return gzip.compress(dump(c).encode(), mtime=0)[:-40]


def dump(value: Any) -> str:
    """JSON with one node per line."""
    if not isinstance(value, dict) or "configurations" not in value:
        return json.dumps(value, ensure_ascii=False) + "\n"
    head = json.dumps({**value, "configurations": 0}, ensure_ascii=False)
    parts = [
        json.dumps({**one, "tree": 0}, ensure_ascii=False).replace(
            '"tree": 0', '"tree": [\n' + ",\n".join(json.dumps(node) for node in one["tree"]) + "\n]"
        )
        if "tree" in one
        else json.dumps(one, ensure_ascii=False)
        for one in value["configurations"]
        if isinstance(one, dict)
    ]
    return head.replace('"configurations": 0', '"configurations": [' + ", ".join(parts) + "]") + "\n"


def load(name: str) -> Any:
    """An accepted certificate."""
    content = (HERE / "accepted" / name).read_bytes()
    return json.loads(gzip.decompress(content) if name.endswith(".gz") else content)


def made(function: Attack, base: str) -> tuple[str, bytes]:
    """The suffix and the content of an attack's file."""
    certificate = copy.deepcopy(load(base))
    result = function(certificate)
    content = dump(certificate) if result is None else result
    raw = content.encode() if isinstance(content, str) else content
    if raw[:2] == b"\x1f\x8b":
        return ".json.gz", raw
    return (".json", raw) if len(raw) < 20_000 else (".json.gz", gzip.compress(raw, mtime=0))


def files() -> dict[str, bytes]:
    """Path below this folder -> content, of everything that this module writes."""
    from tests.certificates.certain_attacks import CERTAIN  # registers its attacks

    accepted = ACCEPTED | CERTAIN
    index: dict[str, Any] = {"accepted": accepted, "rejected": {}, "malformed": {}}
    contents: dict[str, bytes] = {}
    for name, (base, edit) in FOREIGN.items():
        instance = json.loads((ROOT / accepted[base]).read_text(encoding="utf-8"))
        edit(instance)
        contents[f"instances/{name}.json"] = (json.dumps(instance, indent=1) + "\n").encode()
    for kind, attacks in (("rejected", REJECTED), ("malformed", MALFORMED)):
        for name, (base, reason, tries, function) in attacks.items():
            suffix, content = made(function, base)
            contents[f"{kind}/{name}{suffix}"] = content
            foreign = f"tests/certificates/instances/{name}.json"
            index[kind][f"{name}{suffix}"] = {
                "instance": foreign if name in FOREIGN else accepted[base],
                "tries": tries,
                "reason": reason,
            }
    contents["index.json"] = (json.dumps(index, indent=1) + "\n").encode()
    return contents


def main() -> None:
    """Write every file anew."""
    for kind in ("rejected", "malformed"):
        for old in (HERE / kind).glob("*"):
            old.unlink()
    for path, content in files().items():
        (HERE / path).parent.mkdir(exist_ok=True)
        (HERE / path).write_bytes(content)


if __name__ == "__main__":
    from tests.certificates.attacks import main as write  # attacks register there, not here

    write()
