"""Answers become scores, scores become masks, weights and priors, as the iCARMA paper defines them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_recourse.elicitation.schemes import (
    LOAN_ACTIONABLE,
    RANKING_DISTRIBUTIONS,
    RANKINGS,
    CostProfile,
    Scores,
    by_group,
    cut,
    group,
    likert,
    named_weights,
    rank,
    ranking_probabilities,
    sample_rankings,
    sample_scores,
    sample_thresholds,
)
from milp_recourse.errors import BadInput

FOUR = LOAN_ACTIONABLE  # amount, duration, income, savings
INF = np.inf


def test_grouping_scores_one_or_k_plus_one():
    scores = group(FOUR, {"income", "amount"})
    assert scores.values.tolist() == [1, 5, 1, 5]
    assert scores.actionable.tolist() == [True, False, True, False]
    assert scores.smax == 5


def test_ranking_scores_by_position_and_what_is_left_out_is_not_actionable():
    scores = rank(FOUR, ["savings", "amount", "income"])
    assert scores.values.tolist() == [2, 5, 3, 1]
    assert scores.actionable.tolist() == [True, False, True, True]


def test_likert_ratings_are_the_scores():
    scores = likert(FOUR, {"savings": 4, "amount": 2, "duration": 5, "income": 2})
    assert scores.values.tolist() == [2, 5, 2, 4]
    assert scores.actionable.tolist() == [True, False, True, True]


def test_the_scale_ends_at_the_largest_score_used_but_not_below_two():
    assert rank(FOUR, FOUR).largest == 4
    assert likert(FOUR, dict.fromkeys(FOUR, 3) | {"amount": 5}).largest == 3
    assert group(FOUR, FOUR).largest == 2
    assert group(FOUR, []).largest == 2


def test_linear_weights_of_four_ranks_are_one_three_five_seven():
    """The paper's figure 2: k = 4, w from 1 to 7."""
    assert CostProfile.named("linear").weights(rank(FOUR, FOUR)) == pytest.approx([1, 3, 5, 7])


def test_convex_weights_by_hand():
    """alpha = 2, t = 0, 1/3, 2/3, 1: w = 1 + 6 t^2."""
    weights = CostProfile.named("convex").weights(rank(FOUR, FOUR))
    assert weights == pytest.approx([1, 1 + 6 / 9, 1 + 24 / 9, 7])


def test_concave_weights_by_hand():
    """alpha = 1/2, six categories, t = 0, 1/4, not actionable, 1: w = 1 + 6 sqrt(t)."""
    scores = likert(FOUR, {"amount": 1, "duration": 2, "income": 6, "savings": 5}, categories=6)
    assert CostProfile.named("concave").weights(scores).tolist() == [1.0, 4.0, INF, 7.0]


def test_constant_weights_are_one_whatever_the_limits():
    weights = CostProfile.named("constant", w_min=2.0, w_max=9.0).weights(rank(FOUR, ["income", "amount"]))
    assert weights.tolist() == [1.0, INF, 1.0, INF]


def test_equal_answers_cost_w_min_if_all_are_one_and_w_max_otherwise():
    """smax_u = max(2, largest): all ones give t = 0, all threes give t = 1."""
    profile = CostProfile.named("linear", w_min=2.0, w_max=5.0)
    assert profile.weights(group(FOUR, FOUR)).tolist() == [2.0] * 4
    assert profile.weights(likert(FOUR, dict.fromkeys(FOUR, 3))).tolist() == [5.0] * 4


@given(
    scores=st.lists(st.integers(1, 7), min_size=3, max_size=3),
    alpha=st.floats(0.1, 10),
    low=st.floats(0.1, 10),
    extra=st.floats(0, 10),
)
def test_weights_follow_the_printed_formula_and_stay_between_their_limits(scores, alpha, low, extra):
    made = Scores(("a", "b", "c"), np.array(scores), 7)
    weights = CostProfile(alpha, low, low + extra).weights(made)
    largest = max([2, *(s for s in scores if s < 7)])
    for s, w in zip(scores, weights, strict=True):
        if s == 7:
            assert w == INF
        else:
            printed = low + extra - (low + extra - low) * (1 - ((s - 1) / (largest - 1)) ** alpha)
            assert w == pytest.approx(printed, rel=1e-12)
            assert low * (1 - 1e-12) <= w <= (low + extra) * (1 + 1e-12)


def test_convex_lies_below_linear_and_concave_above():
    scores = rank(FOUR, FOUR)
    concave, linear, convex = (
        CostProfile.named(n).weights(scores)[1:3] for n in ("concave", "linear", "convex")
    )
    assert (convex < linear).all()
    assert (linear < concave).all()


def test_priors_fall_from_pi_max_to_pi_min_and_are_zero_where_not_actionable():
    profile = CostProfile.named("linear", pi_max=0.8, pi_min=0.2)
    priors = profile.priors(rank(FOUR, ["savings", "income", "amount"]))
    assert priors == pytest.approx([0.2, 0.0, 0.5, 0.8])
    convex = CostProfile.named("convex", pi_max=0.8, pi_min=0.2).priors(
        rank(FOUR, ["savings", "income", "amount"])
    )
    assert convex == pytest.approx([0.2, 0.0, 0.65, 0.8])


def test_constant_priors_are_carmas_one_half():
    assert CostProfile.named("constant").priors(group(FOUR, FOUR[:1])).tolist() == [0.5, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("threshold", "values"), [(2, [5, 5, 1, 5]), (3, [5, 5, 1, 2]), (4, [3, 5, 1, 2]), (5, [3, 4, 1, 2])]
)
def test_threshold_t_leaves_the_t_minus_one_best_ranks(threshold, values):
    scores = cut(FOUR, [3, 4, 1, 2], threshold)
    assert scores.values.tolist() == values
    assert scores.actionable.sum() == threshold - 1


def test_thresholds_may_differ_between_applicants():
    scores = cut(FOUR, [[1, 2, 3, 4], [4, 3, 2, 1], [2, 1, 4, 3]], [2, 3, 5])
    assert scores.values.tolist() == [[1, 5, 5, 5], [5, 5, 2, 1], [2, 1, 4, 3]]
    assert scores.largest.tolist() == [2, 2, 4]
    assert CostProfile.named("linear").weights(scores).tolist() == [
        [1.0, INF, INF, INF],
        [INF, INF, 7.0, 1.0],
        pytest.approx([3.0, 1.0, 7.0, 5.0]),
    ]


def test_a_cut_ranking_is_the_ranking_of_what_is_left():
    order = ["income", "savings", "amount", "duration"]
    full = rank(FOUR, order)
    for threshold in (2, 3, 4, 5):
        assert (cut(FOUR, full.values, threshold).values == rank(FOUR, order[: threshold - 1]).values).all()


def test_named_weights_hold_mask_and_weights_per_applicant():
    scores = cut(FOUR, [[1, 2, 3, 4], [4, 3, 2, 1]], [2, 3])
    weights = CostProfile.named("linear").weights(scores)
    assert named_weights(scores, weights) == [{"amount": 1.0}, {"income": 7.0, "savings": 1.0}]
    single = group(FOUR, ["income"])
    assert named_weights(single, CostProfile.named("constant").weights(single)) == [{"income": 1.0}]


def test_table_4_lists_the_24_rankings_in_the_order_of_their_scores():
    """The paper's rows run through the permutations of the scores lexicographically."""
    ranks = [tuple(order.index(name) + 1 for name in FOUR) for order in RANKINGS]
    assert len(set(RANKINGS)) == 24
    assert ranks == sorted(ranks)


@pytest.mark.parametrize("distribution", RANKING_DISTRIBUTIONS)
def test_every_column_of_table_4_is_a_distribution(distribution):
    p = ranking_probabilities(distribution)
    assert (p >= 0).all()
    assert p.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("distribution", "favoured"),
    [
        ("causal", {"amount", "income"}),
        ("reverse-causal", {"duration", "savings"}),
        ("privileged", {"income", "savings"}),
        ("non-privileged", {"amount", "duration"}),
    ],
)
def test_a_biased_column_ranks_its_pair_on_top_two_times_in_three(distribution, favoured):
    """4 of 24 rankings have exactly that pair on top, 1/6 each; 8 more have one of it first, 1/24 each."""
    p = ranking_probabilities(distribution)
    for order, probability in zip(RANKINGS, p, strict=True):
        if set(order[:2]) == favoured:
            assert probability == 4 / 24
        else:
            assert probability == (1 / 24 if order[0] in favoured else 0)


def test_some_printed_rows_of_table_4():
    row = {"".join(name[0] for name in order): k for k, order in enumerate(RANKINGS)}
    column = {d: ranking_probabilities(d) * 24 for d in RANKING_DISTRIBUTIONS}
    printed = {
        "adis": [1, 1, 0, 0, 4],
        "aids": [1, 4, 0, 0, 1],
        "said": [1, 0, 1, 1, 0],
        "sida": [1, 0, 1, 4, 0],
    }
    for order, values in printed.items():
        assert [round(column[d][row[order]]) for d in RANKING_DISTRIBUTIONS] == values


def test_samples_are_rankings_drawn_with_the_tables_frequencies():
    ranks = sample_rankings("privileged", 24000, np.random.default_rng(0))
    assert ranks.shape == (24000, 4)
    assert (np.sort(ranks, axis=1) == [1, 2, 3, 4]).all()
    tops = ranks <= 2  # income and savings on top: probability 2/3
    assert np.mean(tops[:, 2] & tops[:, 3]) == pytest.approx(2 / 3, abs=0.015)
    assert set(np.flatnonzero((ranks == 1).any(axis=0))) == {2, 3}


def test_the_same_generator_state_gives_the_same_sample():
    first, second = (sample_rankings("uniform", 50, np.random.default_rng(7)) for _ in range(2))
    assert (first == second).all()


BAD = {
    "unknown feature": (
        lambda: group(FOUR, ["age"]),
        "actionable: got age; allowed: amount, duration, income, savings",
    ),
    "ranked twice": (lambda: rank(FOUR, ["income", "income"]), "allowed: each feature once"),
    "unrated": (
        lambda: likert(FOUR, {"income": 1}),
        "ratings: got no rating of amount; allowed: one rating per",
    ),
    "off the scale": (
        lambda: likert(FOUR, dict.fromkeys(FOUR, 6)),
        "scores: got 6; allowed: whole numbers 1..5",
    ),
    "score zero": (
        lambda: likert(FOUR, dict.fromkeys(FOUR, 0)),
        "scores: got 0; allowed: whole numbers 1..5",
    ),
    "half a score": (
        lambda: likert(FOUR, dict.fromkeys(FOUR, 1.5)),
        "ratings: got [1.5, 1.5, 1.5, 1.5]; allowed: whole",
    ),
    "one category": (lambda: likert(FOUR, dict.fromkeys(FOUR, 1), categories=1), "smax: got 1; allowed"),
    "shape": (
        lambda: Scores(FOUR, np.ones((2, 3), dtype=int), 5),
        "scores: got shape (2, 3); allowed: (n, k) or (k,)",
    ),
    "no permutation": (
        lambda: cut(FOUR, [1, 1, 2, 3], 3),
        "ranks: got [1, 1, 2, 3]; allowed: a permutation of 1..4",
    ),
    "threshold one": (lambda: cut(FOUR, [1, 2, 3, 4], 1), "threshold: got 1; allowed: whole numbers 2..5"),
    "thresholds": (
        lambda: cut(FOUR, [[1, 2, 3, 4]], [2, 3]),
        "threshold: got shape (2,); allowed: one for all",
    ),
    "profile": (
        lambda: CostProfile.named("steep"),
        "profile: got steep; allowed: constant, linear, convex, concave",
    ),
    "alpha": (lambda: CostProfile(0.0), "alpha: got 0.0; allowed: a number above 0"),
    "weights": (lambda: CostProfile(w_min=0.0), "w_min, w_max: got (0.0, 7.0); allowed: 0 < w_min <= w_max"),
    "priors": (lambda: CostProfile(pi_max=1.0), "pi_min, pi_max: got (0.1, 1.0); allowed: 0 < pi_min"),
    "distribution": (
        lambda: ranking_probabilities("rich"),
        "distribution: got rich; allowed: uniform, causal",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_answers_are_named(name):
    make, message = BAD[name]
    with pytest.raises(BadInput) as caught:
        make()
    assert message in str(caught.value)


def test_thresholds_leave_one_to_four_features_equally_often():
    """Thresholds 2..5 are drawn uniformly, so every number of actionable features comes up."""
    thresholds = sample_thresholds(4000, np.random.default_rng(0))
    assert np.bincount(thresholds, minlength=6)[2:] / 4000 == pytest.approx([0.25] * 4, abs=0.03)
    assert set(sample_thresholds(50, np.random.default_rng(0), probabilities=[0, 0.5, 0, 0.5])) == {3, 5}
    with pytest.raises(BadInput, match="sum to 1"):
        sample_thresholds(5, np.random.default_rng(0), probabilities=[0.5, 0.6, 0, 0])


def test_drawn_scores_reach_smax_only_with_hard_constraints():
    """The paper's two configurations: uniform on 1..5, and on 1..4 with everything actionable."""
    hard = sample_scores(FOUR, 4000, np.random.default_rng(0))
    soft = sample_scores(FOUR, 4000, np.random.default_rng(0), hard=False)
    assert np.bincount(hard.values.ravel(), minlength=6)[1:] / 16000 == pytest.approx([0.2] * 5, abs=0.02)
    assert np.bincount(soft.values.ravel(), minlength=6)[1:] / 16000 == pytest.approx(
        [0.25] * 4 + [0], abs=0.02
    )
    assert soft.smax == hard.smax == 5
    assert soft.actionable.all()
    # independent between features: amount tells nothing about savings
    assert abs(np.corrcoef(hard.values[:, 0], hard.values[:, 3])[0, 1]) < 0.06


def test_a_distribution_per_feature_is_kept_to():
    table = [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0.5, 0.5, 0, 0, 0]]
    scores = sample_scores(FOUR, 100, np.random.default_rng(0), probabilities=table)
    assert (scores.values[:, :3] == [1, 2, 5]).all()
    assert set(scores.values[:, 3]) == {1, 2}


def test_groups_get_their_own_draw():
    """Privileged rankings favour income and savings, the others amount and duration (table 4)."""
    rng = np.random.default_rng(0)
    member = np.arange(2000) % 2 == 0
    both = by_group(
        member,
        *(cut(FOUR, sample_rankings(d, 2000, rng), 3) for d in ("privileged", "non-privileged")),
    )
    share = [both.actionable[who].mean(axis=0) for who in (member, ~member)]
    assert (share[0][2:] > 0.75).all() and (share[0][:2] < 0.25).all()
    assert (share[1][:2] > 0.75).all() and (share[1][2:] < 0.25).all()
    with pytest.raises(BadInput, match="one per applicant"):
        by_group(member[:5], both, both)
