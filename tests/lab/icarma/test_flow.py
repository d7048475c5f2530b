"""The causal flow: densities, abduction, and interventions on several features at once."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("zuko")

from milp_recourse.lab.icarma.fit_flow import flow_check, loan_flow_rows
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.problem.loan import FEATURES, loan

CHAIN = ("a", "b", "c")


def chain() -> CausalFlow:
    """a -> b -> c with random weights, rows standardised oddly."""
    torch.manual_seed(3)
    flow = CausalFlow(CHAIN, [[], ["a"], ["b"]], hidden=(8,))
    flow.standardise_by(np.array([[0.0, 5.0, -1.0], [4.0, 7.0, 9.0]]))
    return flow


def rows(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(2.0, 3.0, (size, 3))


def test_density_is_the_change_of_variables_with_autograds_jacobian() -> None:
    """log N(z) + log |det dz/dx|, the determinant of the whole Jacobian."""
    flow = chain()
    x = torch.as_tensor(rows(4))
    for row in x:
        jacobian = torch.autograd.functional.jacobian(lambda r: flow.abduct(r[None])[0], row)
        z = flow.abduct(row[None])[0]
        expected = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum() + jacobian.det().abs().log()
        assert flow.log_density(row[None])[0].item() == pytest.approx(expected.item(), abs=1e-9)


def test_the_jacobian_knows_the_graph() -> None:
    """z_i moves with x_i and its parents and with nothing else: c's latent does not see a."""
    flow = chain()
    jacobian = torch.autograd.functional.jacobian(
        lambda r: flow.abduct(r[None])[0], torch.as_tensor(rows(1)[0])
    )
    assert (jacobian != 0).int().tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]


def test_intervention_by_hand() -> None:
    """do(a), do(b), do(a, b), do(a, c): what is acted on attains its value, the rest keeps its latent."""
    flow = chain()
    x = rows(20)
    z = flow.abduct(torch.as_tensor(x)).detach().numpy()
    for acted in ([0], [1], [0, 1], [0, 2], [0, 1, 2], []):
        action = np.full_like(x, np.nan)
        action[:, acted] = rows(20, 9)[:, acted]
        after = flow.counterfactual(x, action)
        assert (after[:, acted] == action[:, acted]).all()
        again = flow.abduct(torch.as_tensor(after)).detach().numpy()
        free = [i for i in range(3) if i not in acted]
        assert again[:, free] == pytest.approx(z[:, free], abs=1e-9)
    both = np.full_like(x, np.nan)
    both[:, :2] = 1.0
    moved = flow.counterfactual(x, both)
    only = np.full_like(x, np.nan)
    only[:, 1] = 1.0
    assert (moved[:, 2] == flow.counterfactual(x, only)[:, 2]).all(), "b is blocked: a cannot reach c"


def test_doing_nothing_and_holding_change_nothing_upstream() -> None:
    """No action gives the factual doubles back; an action downstream leaves its ancestors alone."""
    flow = chain()
    x = rows(10)
    nothing = np.full_like(x, np.nan)
    assert (flow.counterfactual(x, nothing) == x).all()
    last = nothing.copy()
    last[:, 2] = 0.25
    assert (flow.counterfactual(x, last)[:, :2] == x[:, :2]).all()


def test_interventions_have_the_gradient_of_finite_differences() -> None:
    """Through the value, the relaxed mask and the network."""
    flow = chain()
    x, acted = torch.as_tensor(rows(3)), torch.full((3, 3), 0.4, dtype=torch.float64)
    values = torch.as_tensor(rows(3, 5)).requires_grad_()
    acted.requires_grad_()
    assert torch.autograd.gradcheck(lambda m, a: flow.intervene(x, m, a), (acted, values))


def test_a_conditioned_root_has_no_term_and_is_a_parent() -> None:
    """Its density does not count; its value moves its children's."""
    torch.manual_seed(0)
    flow = CausalFlow(("g", "b"), [[], ["g"]], ("g",), hidden=(8,))
    g = torch.tensor([[0.0, 0.3], [1.0, 0.3]], dtype=torch.float64)
    low, high = flow.log_density(g).tolist()
    assert low != high
    z = flow.abduct(g).detach()
    assert z[:, 0].tolist() == [0.0, 1.0]
    slope = (flow.abduct(g + torch.tensor([0.0, 1.0])).detach()[:, 1] - z[:, 1]).tolist()
    by_hand = [
        np.log(s) - 0.5 * float(v) ** 2 - 0.5 * np.log(2 * np.pi) for s, v in zip(slope, z[:, 1], strict=True)
    ]
    assert [low, high] == pytest.approx(by_hand, abs=1e-9)


def test_wrong_orders_are_refused() -> None:
    """A child before its parent, a conditioned feature with parents."""
    with pytest.raises(ValueError, match="causal order"):
        CausalFlow(("b", "a"), [["a"], []])
    with pytest.raises(ValueError, match="root"):
        CausalFlow(("a", "b"), [[], ["a"]], ("b",))


def test_a_trained_flow_finds_loans_density_and_mechanisms(small_flow) -> None:
    """In seconds on 4000 rows: 0.2 nat of the true density; counterfactuals within a tenth of an sd."""
    scm = loan()
    test = loan_flow_rows(1, (1, 1, 2000))[2]
    true = scm.log_density(test) - np.log(0.5)
    assert 0 < np.mean(true - small_flow.log_densities(test)) < 0.2
    rng = np.random.default_rng(0)
    action = np.full(test.shape, np.nan)
    for name in ("amount", "duration", "income", "savings"):
        i = FEATURES.index(name)
        chosen = rng.random(len(test)) < 0.5
        action[chosen, i] = test[chosen, i] + rng.normal(size=chosen.sum()) * test[:, i].std()
    expected, got = scm.counterfactual(test, action), small_flow.counterfactual(test, action)
    acted = ~np.isnan(action)
    assert (got[acted] == action[acted]).all()
    error = np.sqrt(np.mean((got - expected) ** 2, axis=0)) / test.std(axis=0)
    assert (error < 0.1).all()
    follows = ~acted & (expected != test)
    asleep = np.sqrt(np.mean((test - expected)[:, [4, 6]] ** 2, axis=0)) / test.std(axis=0)[[4, 6]]
    assert follows[:, [4, 6]].any()
    assert (asleep > 0.2).all(), "a flow that let nothing propagate would fail"


def test_shifting_latents_is_the_inverse_of_abduction(small_flow) -> None:
    """abduct(shifted(x, s)) = abduct(x) + s; without a shift and a moved parent a value keeps its bits."""
    rows = torch.as_tensor(loan_flow_rows(5, (1, 1, 50))[2])
    shift = torch.zeros_like(rows)
    shift[:, 3], shift[:, 5] = 0.7, -0.4  # amount and income; duration and savings follow
    z = small_flow.abduct(rows)
    after = small_flow.shifted(rows, shift, z)
    assert torch.allclose(small_flow.abduct(after), z + shift, atol=1e-9)
    assert torch.equal(after[:, :3], rows[:, :3])
    assert (after[:, 3:] != rows[:, 3:]).all()
    assert torch.equal(small_flow.shifted(rows, torch.zeros_like(rows)), rows)


def test_a_latent_shift_is_the_action_that_sets_what_it_reaches(small_flow) -> None:
    """do(x_i := value under the shift) gives the same counterfactual."""
    rows = torch.as_tensor(loan_flow_rows(6, (1, 1, 20))[2])
    shift, acted = torch.zeros_like(rows), torch.zeros_like(rows)
    shift[:, 3], shift[:, 4] = 1.1, -0.8
    acted[:, 3:5] = 1.0
    after = small_flow.shifted(rows, shift)
    assert torch.allclose(small_flow.intervene(rows, acted, after), after, atol=1e-9)


def test_the_check_of_interventions_measures_followers_in_their_sd() -> None:
    """A stand-in that is off by 0.1 sd of duration wherever duration follows: 0.1, and nothing else."""
    scm, sd = loan(), loan_flow_rows(11, (1, 1, 4000))[2].std(axis=0)

    class Off:
        features = FEATURES

        @staticmethod
        def counterfactual(rows: np.ndarray, action: np.ndarray) -> np.ndarray:
            made = scm.counterfactual(rows, action)
            made[:, 4] += np.where(np.isnan(action[:, 4]), 0.1 * sd[4], 5.0)
            return made

    found = {(row["acted on"], row["follower"]): row for row in flow_check(Off(), scm)}
    assert {follower for _, follower in found} == {"duration"}
    assert found["amount", "duration"]["rms"] == pytest.approx(0.1)
    assert found["amount", "duration"]["rms at the ends"] == pytest.approx(0.1)
    assert found["several", "duration"]["rms"] == pytest.approx(0.1 * np.sqrt(0.5), rel=0.05)
    assert found["several", "duration"]["largest"] == pytest.approx(0.1)
