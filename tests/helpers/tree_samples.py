"""Random tree ensembles and applicants, and a judge that knows nothing of cells or leaves' boxes.

Thresholds repeat, lie on factuals and bounds, and on float32 rounding boundaries; leaf values repeat, so that
scores tie with the threshold.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost, Quantiles, measured
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import Combine, Tree, TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.scm import independent
from tests.helpers.generators import Style, random_instance

COSTS = ("l2-squared", "l1", "linf", "l0", "mixture", "percentile", "percentile-max")
KINDS = ("continuous", "continuous", "continuous", "integer", "binary", "ordinal", "categorical")


def random_tree(
    rng: np.random.Generator, thresholds: list[list[float]], depth: int, values: NDArray[np.float64]
) -> Tree:
    """A random binary tree; ``thresholds`` per column, ``values`` to pick leaf values from."""
    nodes: list[list[float]] = []

    def grow(left: int) -> int:
        here = len(nodes)
        nodes.append([-2, -2.0, -1, -1, float(values[rng.integers(len(values))])])
        if left > 0 and rng.random() < 0.9:
            column = int(rng.integers(len(thresholds)))
            ends = thresholds[column]
            nodes[here][0], nodes[here][1] = column, float(ends[rng.integers(len(ends))])
            nodes[here][2] = grow(left - 1)
            nodes[here][3] = grow(left - 1)
        return here

    grow(depth)
    feature, threshold, low, high, value = zip(*nodes, strict=True)
    whole = [np.array(c, dtype=np.int64) for c in (feature, low, high)]
    return Tree(whole[0], np.array(threshold), whole[1], whole[2], np.array(value))


def random_features(rng: np.random.Generator, count: int) -> tuple[tuple[Feature, ...], dict[str, float]]:
    """Features of every kind, with bounds, domains and monotonicity, and a factual."""
    features, factual = [], {}
    [tables] = rng.spawn(1)
    for k in range(count):
        kind, name = str(rng.choice(KINDS)), f"f{k}"
        labels = tuple("abcdef"[: int(rng.integers(2, 6))]) if kind in ("ordinal", "categorical") else None
        low, high = sorted(np.round(rng.uniform(-3, 3, 2), 1).tolist())
        if kind == "binary":
            low, high = 0.0, 1.0
        if kind == "continuous":
            x = float(np.round(rng.uniform(-3, 3), 2))
        elif labels is not None:
            x = float(rng.integers(len(labels)))
        else:
            x = float(rng.integers(0, 2)) if kind == "binary" else float(rng.integers(-3, 4))
        domain = None
        if rng.random() < 0.2 and labels is None:
            ends = sorted(np.round(rng.uniform(-4, 4, 2), 1).tolist())
            domain = (ends[0], ends[1]) if rng.random() < 0.1 else (min(ends[0], x), max(ends[1], x))
        monotone = None if kind == "categorical" else rng.choice([None, None, None, "increase", "decrease"])
        one_hot = kind == "categorical" or (kind == "ordinal" and rng.random() < 0.5)
        encoding = "one-hot" if one_hot and rng.random() < 0.8 else "code"
        numbers = random_table(tables, len(labels)) if labels and tables.random() < 0.5 else None
        features.append(
            Feature(
                name,
                kind,  # type: ignore[arg-type]
                True,
                None if labels else (low, high),
                labels,
                domain,
                monotone,
                encoding if numbers is None else "table",  # type: ignore[arg-type]
                numbers,
            )
        )
        factual[name] = x
    return tuple(features), factual


def random_table(rng: np.random.Generator, labels: int) -> tuple[tuple[float, ...], ...]:
    """Numbers of labels in one to three columns: equal ones, tenths, whole numbers in any order, doubles."""
    shape = labels, int(rng.integers(1, 4))
    drawn = (
        rng.integers(-1, 3, shape).astype(np.float64),
        np.round(rng.uniform(-2, 3, shape), 1),
        rng.uniform(-2, 3, shape),
        np.tile(rng.permutation(labels)[:, None].astype(np.float64), (1, shape[1])),
    )[int(rng.integers(4))]
    return tuple(map(tuple, drawn.tolist()))


def random_thresholds(
    rng: np.random.Generator, features: tuple[Feature, ...], factual: dict[str, float], per_column: int
) -> list[list[float]]:
    """A few thresholds per column, some exactly on values that matter."""
    thresholds: list[list[float]] = []
    for f in features:
        for column in range(len(f.columns)):
            if f.encoding == "one-hot":
                thresholds.append([0.5])
                continue
            if f.by_label:
                numbers = np.unique(f.lookup[:, column])
                between = (numbers[1:] + numbers[:-1]) / 2
                rounded = numbers.astype(np.float32).astype(np.float64)
                thresholds.append(np.concatenate([numbers, between, rounded]).tolist())
                continue
            special = [factual[f.name], float(np.float32(factual[f.name])), *f.action_bounds]
            drawn = np.round(rng.uniform(-3, 4, per_column), 2)
            doubles = rng.uniform(-3, 4, 2)
            pool = [*special, *drawn, *drawn.astype(np.float32).astype(float), *doubles]
            thresholds.append(rng.choice(pool, per_column).tolist())
    return thresholds


def random_cost(rng: np.random.Generator, features: tuple[Feature, ...], levers: list[str]) -> Cost:
    """Any cost."""
    scale = {n: float(np.round(rng.uniform(0.3, 3), 2)) for n in levers}
    kind = str(rng.choice(COSTS))
    if kind == "mixture":
        parts = np.round(rng.uniform(0, 2, 4) * (rng.random(4) < 0.6), 2).tolist()
        parts[0] += 0.1
        return Cost(*parts, measured(scale))
    if kind.startswith("percentile"):
        quantiles = {}
        for f in features:
            if f.name in levers and f.kind != "categorical":
                values = np.unique(np.round(rng.uniform(-4, 4, 5), 2))
                steps = rng.random(len(values)) * (rng.random(len(values)) < 0.7)
                probabilities = np.cumsum(steps) / max(1.0, steps.sum())
                quantiles[f.name] = Quantiles(tuple(values.tolist()), tuple(probabilities.tolist()))
        categorical = [f.name for f in features if f.name in levers and f.kind == "categorical"]
        return Cost.percentile(kind, quantiles, categorical)
    return Cost.pure(kind, scale)


@cache
def random_tree_instance(seed: int, trees: int | None = None, features: int = 4, depth: int = 3) -> Instance:
    """A problem of a seed."""
    rng = np.random.default_rng(seed)
    made, factual = random_features(rng, int(rng.integers(1, features + 1)))
    columns = sum(len(f.columns) for f in made)
    thresholds = random_thresholds(rng, made, factual, int(rng.integers(1, 5)))
    values = np.round(rng.random(6), int(rng.integers(1, 4)))
    count = trees if trees is not None else int(rng.integers(1, 6))
    forest = TreeEnsemble(
        tuple(random_tree(rng, thresholds, depth, values) for _ in range(count)),
        columns,
    )
    names = [f.name for f in made]
    levers = sorted(rng.choice(names, int(rng.integers(1, len(names) + 1)), replace=False).tolist())
    weights = {n: float(np.round(rng.uniform(0.3, 5), 2)) for n in levers if rng.random() < 0.6}
    ranges = {}
    for f in made:
        if f.name in levers and rng.random() < 0.2:
            ends = sorted(np.round(rng.uniform(-3, 4, 2), 1).tolist())
            ranges[f.name] = (ends[0], ends[1])
    instance = Instance(
        made,
        independent(names),
        forest,
        factual,
        Preferences(tuple(levers), weights, ranges),
        random_cost(rng, made, levers),
        Acceptance(0.5, 0.0, strict=True),
        name=f"trees-{seed}",
    )
    # A threshold between the factual's score and the largest: usually something has to change.
    sample = np.tile(instance.factual_row, (200, 1))
    for k, f in enumerate(made):
        if f.name in instance.levers:
            low, high = instance.levers[f.name]
            drawn = rng.uniform(low, high, 200)
            sample[:, k] = np.round(drawn) if f.integral else drawn
    scores = np.unique(forest.scores(instance.model_rows(sample)))
    above = scores[scores >= _score(instance)]
    threshold = float(rng.choice(above[:-1])) if len(above) > 1 else float(_score(instance))
    if len(above) > 1 and rng.random() < 0.3:  # the same said of the next score, by "at least"
        return replace(instance, accept=Acceptance(float(above[above > threshold][0])))
    return replace(instance, accept=Acceptance(threshold, 0.0, strict=True))


def several_sums(seed: int, combine: Combine) -> Instance:
    """Two sums of up to five trees over three numbers; all, or one, must reach a score often reached."""
    rng = np.random.default_rng([77, seed])
    names = ("a", "b", "c")
    factual = {name: float(np.round(rng.uniform(-2, 2), 1)) for name in names}
    cuts = [list(np.round(rng.uniform(-2.5, 2.5, 5), 1)) for _ in names]
    values, each = np.round(rng.uniform(0, 1, 6), 1), int(rng.integers(2, 6))
    trees = tuple(random_tree(rng, cuts, 3, values) for _ in range(2 * each))
    forest = TreeEnsemble(trees, 3, "sum", 0.0, "float64", "float64", (each, each), combine)
    scores = forest.scores(rng.uniform(-3, 3, (300, 3)))
    features = tuple(Feature(name, "continuous", True, (-3.0, 3.0)) for name in names)
    cost = Cost.pure("l1", dict.fromkeys(names, 1.0))
    made = Instance(features, independent(names), forest, factual, Preferences(names), cost)
    above = np.unique(scores[scores > forest.score(made.model_rows(made.factual_row))])
    needed = float(rng.choice(above)) if len(above) else float(scores.max())
    return replace(made, accept=Acceptance(needed, strict=not len(above)))


def with_missing(seed: int, instance: Instance, share: float = 0.4) -> Instance:
    """The same applicant with values missing, and trees that say at every node where these go."""
    rng = np.random.default_rng(1000 + seed)
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    trees = tuple(replace(t, missing_left=rng.random(len(t.left)) < 0.5) for t in forest.trees)
    gone = [name for name in instance.factual if rng.random() < share]
    factual = dict(instance.factual) | dict.fromkeys(gone, float("nan"))
    made = replace(instance, classifier=replace(forest, trees=trees), factual=factual)
    # nobody is refused by chance alone: the threshold is a score that some action reaches
    reached, values = {_score(made)}, {n: candidates(made, n) for n in made.levers}
    for _ in range(60):
        action = {n: float(rng.choice(values[n])) for n in made.levers if rng.random() < 0.6}
        reached.add(judge(made, action).score)
    above = sorted(score for score in reached if score >= _score(made))
    strict = bool(rng.random() < 0.5)
    threshold = rng.choice(above[:-1] if strict else above[1:]) if len(above) > 1 else above[0]
    return replace(made, accept=Acceptance(float(threshold), 0.0, strict), reference=None)


def _score(instance: Instance) -> float:
    assert isinstance(instance.classifier, TreeEnsemble)
    return instance.classifier.score(instance.model_rows(instance.factual_row))


def candidates(instance: Instance, name: str) -> list[float]:
    """Values worth setting: ends of the allowed interval, the factual, and both sides of every threshold.

    The double after which a comparison changes is found by bisection on the deployed comparison itself.
    """
    low, high = instance.levers[name]
    feature = instance.by_name[name]
    if feature.integral:
        return [float(v) for v in np.arange(low, high + 1)]
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    column = instance.columns.index(name)
    values = {low, high}
    if name not in instance.missing:
        values.add(min(max(instance.factual[name], low), high))
    asked = ((tree.left != -1) & (tree.feature == column) for tree in forest.trees)
    for threshold in {t for tree, own in zip(forest.trees, asked, strict=True) for t in tree.threshold[own]}:
        a, b = low, high
        if not (_left(a, threshold, forest) and not _left(b, threshold, forest)):
            continue
        while (after := math.nextafter(a, b)) < b:
            middle = min(max(a + 0.5 * (b - a), after), math.nextafter(b, a))
            a, b = (middle, b) if _left(middle, threshold, forest) else (a, middle)
        values |= {a, b}
    return sorted(values)


def _left(value: float, threshold: float, forest: TreeEnsemble) -> bool:
    return bool(float(np.dtype(forest.dtype).type(value)) <= threshold)


def size_of(instance: Instance) -> int:
    """Points that brute force would try."""
    size = 1
    for name in instance.levers:
        size *= len(candidates(instance, name)) + 1
    return size


def brute_force(instance: Instance) -> Fraction | None:
    """The least cost over every combination of candidates, exactly; None where none is feasible."""
    names = list(instance.levers)
    choices = [[None, *candidates(instance, n)] for n in names]
    combinations = list(product(*choices))
    rows = np.tile(instance.factual_row, (len(combinations), 1))
    position = {f.name: k for k, f in enumerate(instance.features)}
    for j, name in enumerate(names):
        column = [c[j] for c in combinations]
        rows[:, position[name]] = [instance.factual[name] if v is None else v for v in column]
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    accepted = forest.scores(instance.model_rows(rows)) > instance.accept.above
    best: Fraction | None = None
    estimates = sorted(
        (
            (_float_cost(instance, dict(zip(names, combinations[k], strict=True))), int(k))
            for k in np.flatnonzero(accepted)
        ),
    )
    for estimate, k in estimates:
        if best is not None and estimate > float(best) * (1 + 1e-9) + 1e-9:
            break
        action = {n: v for n, v in zip(names, combinations[k], strict=True) if v is not None}
        verdict = judge(instance, action)
        if verdict.feasible and (best is None or verdict.cost < best):
            best = verdict.cost
    return best


def _float_cost(instance: Instance, chosen: dict[str, float | None]) -> float:
    return float(instance.cost_of({n: v for n, v in chosen.items() if v is not None}))


def random_causal_instance(seed: int, one_hot: bool = False) -> Instance | None:
    """Trees inside a random piecewise affine causal model; None where nothing can be acted on.

    With ``one_hot`` only models with a label that fills several columns, without it only the others.
    """
    style = Style(levers=2, curves=False, gamma=False, plausible=0.5, discrete=one_hot or seed % 2 == 0)
    rng = np.random.default_rng(seed)
    instance = random_instance(seed, style)
    if not instance.levers or any(f.by_label for f in instance.features) != one_hot:
        return None
    if seed % 3 == 0:  # the same labels with numbers of their own
        features = (
            replace(f, encoding="table", table=random_table(rng, len(f.categories))) if f.by_label else f
            for f in instance.features
        )
        instance = replace(instance, features=tuple(features))
    values = instance.factual_row + rng.normal(0, 1.5, (20, len(instance.features)))
    for k, f in enumerate(instance.features):
        if f.by_label:
            values[:, k] = rng.integers(0, len(f.categories), 20)
    rows = instance.model_rows(values)
    columns = rows.shape[1]
    thresholds = [np.round(rng.choice(rows[:, c], 2), 2).tolist() for c in range(columns)]
    forest = TreeEnsemble(
        tuple(
            random_tree(rng, thresholds, 2, np.round(rng.random(5), 2))
            for _ in range(int(rng.integers(1, 4)))
        ),
        columns,
    )
    here = forest.score(instance.model_rows(instance.factual_row))
    reached = np.unique(forest.scores(rows))
    above = reached[reached > here]
    threshold = float(rng.choice([here, *above[:-1]]))
    return replace(instance, classifier=forest, accept=Acceptance(threshold, 0.0, strict=True))
