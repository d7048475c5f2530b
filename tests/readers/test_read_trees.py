"""Tree readers give the library's own prediction bit for bit, or refuse in one line."""

from __future__ import annotations

import numpy as np
import pytest

from milp_recourse.errors import Unsupported
from milp_recourse.formats.schema_classifiers import StatedClassifier
from milp_recourse.formats.stated import Known, validate
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.readers import read_lightgbm, read_sklearn_trees, read_xgboost, safe_threshold, to_json

pytest.importorskip("sklearn")
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

GENERATOR = np.random.default_rng(5)
ROWS = GENERATOR.normal(size=(600, 4)) * [1.0, 10.0, 0.1, 1000.0] + [0.0, 50.0, 3.0, -2000.0]
ROWS[:, 0] = np.round(ROWS[:, 0], 1)
LABELS = (ROWS[:, 0] + (ROWS[:, 1] - 50) / 10 + GENERATOR.normal(size=600) > 0).astype(int)

SKLEARN = {
    "tree": lambda: DecisionTreeClassifier(max_depth=6, random_state=0),
    "balanced tree": lambda: DecisionTreeClassifier(max_depth=4, class_weight="balanced"),
    "forest": lambda: RandomForestClassifier(25, max_depth=6, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(25, max_depth=6, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=30, random_state=0),
    "boosting from zero": lambda: GradientBoostingClassifier(n_estimators=9, init="zero", subsample=0.7),
    "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=30),
}


def probes(forest: TreeEnsemble) -> np.ndarray:
    """Rows between and beyond the data, on thresholds, and on the last double that goes left and the next."""
    rows = np.concatenate([ROWS, ROWS + GENERATOR.normal(size=ROWS.shape) * ROWS.std(axis=0)])
    for column, cuts in enumerate(forest.cuts):
        picked = GENERATOR.choice(cuts, len(rows)) if len(cuts) else rows[:, column]
        how = GENERATOR.integers(0, 4, len(rows))
        near = [rows[:, column], picked, np.nextafter(picked, np.inf), picked.astype(np.float32)]
        rows[:, column] = np.choose(how, near)
    return rows


def through_json(forest: TreeEnsemble) -> TreeEnsemble:
    """The ensemble as an instance file gives it back."""
    known = Known(Feature(f"x{k}") for k in range(forest.inputs))
    back = validate(StatedClassifier, to_json(forest), known=known)
    assert isinstance(back, TreeEnsemble)
    return back


def raw(estimator, rows):
    """What scikit-learn itself says: probabilities of forests, sums of boosting."""
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(rows)
    return estimator.predict_proba(rows)[:, 1]


@pytest.mark.parametrize("make", SKLEARN.values(), ids=SKLEARN.keys())
def test_scikit_learn_bit_for_bit(make) -> None:
    """The library's scores, also on thresholds and through JSON; above the safe threshold it says 1."""
    estimator = make().fit(ROWS, LABELS)
    forest = read_sklearn_trees(estimator)
    rows = probes(forest)
    assert (forest.scores(rows) == raw(estimator, rows)).all()
    assert (through_json(forest).scores(rows) == forest.scores(rows)).all()
    sure = forest.scores(rows) > safe_threshold(forest, at_zero=True)
    assert sure.any() and not sure.all()
    assert (estimator.predict(rows)[sure] == 1).all()


def test_xgboost_bit_for_bit() -> None:
    """float32 comparisons with <, float32 sums from the base score."""
    xgboost = pytest.importorskip("xgboost")
    for options in ({}, {"base_score": 0.3, "num_parallel_tree": 2}, {"objective": "binary:logitraw"}):
        estimator = xgboost.XGBClassifier(n_estimators=20, max_depth=5, n_jobs=1, **options)
        estimator.fit(ROWS, LABELS)
        forest = read_xgboost(estimator)
        rows = probes(forest)
        known = estimator.get_booster().predict(xgboost.DMatrix(rows), output_margin=True)
        assert (forest.scores(rows) == known.astype(np.float64)).all()
        assert (through_json(forest).scores(rows) == forest.scores(rows)).all()
        sure = forest.scores(rows) > safe_threshold(forest)
        if not options.get("objective"):
            assert (estimator.predict(rows)[sure] == 1).all()


@pytest.mark.filterwarnings("ignore")  # since XGBoost 3.4 the name dart is deprecated
def test_xgboost_with_weights_bit_for_bit() -> None:
    """``dart``: a Booster and an XGBClassifier, which predict in two ways, are read as each does."""
    xgboost = pytest.importorskip("xgboost")
    estimator = xgboost.XGBClassifier(n_estimators=20, booster="dart", rate_drop=0.3, n_jobs=1)
    booster = estimator.fit(ROWS, LABELS).get_booster()
    forest, plain = read_xgboost(estimator), read_xgboost(booster)
    rows = probes(forest)
    assert (forest.scores(rows) == estimator.predict(rows, output_margin=True)).all()
    assert (plain.scores(rows) == booster.predict(xgboost.DMatrix(rows), output_margin=True)).all()
    in_two_ways = xgboost.__version__ < "3.4"
    assert (forest.scores(rows) != plain.scores(rows)).any() == in_two_ways


def test_weights_as_xgboost_writes_them_since_3_4() -> None:
    """A ``gbtree`` with ``weight_drop``: each leaf times its weight in float32, added to the base."""
    for weight in (0.5, 0.3):
        read = read_xgboost(xgboost_json(held={"weight_drop": [weight]}))
        assert read.scores(np.array([[0.0], [1.0]])).tolist() == [-np.float32(weight), np.float32(weight)]
    with pytest.raises(Unsupported, match="JSON without"):
        read_xgboost(xgboost_json(held={"weight_drop": [0.5, 0.5]}))


def test_lightgbm_bit_for_bit() -> None:
    """float64 comparisons and sums."""
    lightgbm = pytest.importorskip("lightgbm")
    for options in ({}, {"boost_from_average": False, "num_leaves": 5}):
        estimator = lightgbm.LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1, **options)
        estimator.fit(ROWS, LABELS)
        forest = read_lightgbm(estimator)
        rows = probes(forest)
        known = estimator.booster_.predict(rows, raw_score=True)
        assert (forest.scores(rows) == known).all()
        assert (through_json(forest).scores(rows) == forest.scores(rows)).all()
        sure = forest.scores(rows) > safe_threshold(forest)
        assert (estimator.booster_.predict(rows)[sure] > 0.5).all()


def xgboost_json(**changes):
    """A smallest model as XGBoost writes it: one split, x < 0.5."""
    tree = {
        "left_children": [1, -1, -1],
        "right_children": [2, -1, -1],
        "split_indices": [0, 0, 0],
        "split_conditions": [0.5, -1.0, 1.0],
        "split_type": [0, 0, 0],
        "categories": [],
    } | changes.pop("tree", {})
    return {
        "learner": {
            "objective": {"name": changes.get("objective", "binary:logistic")},
            "learner_model_param": {"num_feature": "1", "base_score": "[5E-1]"},
            "gradient_booster": {
                "name": changes.get("name", "gbtree"),
                "model": {"trees": [tree], **changes.get("held", {})},
            },
        }
    }


def lightgbm_json(**changes):
    """A smallest model as LightGBM dumps it: one split, x <= 0.5."""
    split = {
        "split_feature": 0,
        "threshold": 0.5,
        "decision_type": "<=",
        "missing_type": "None",
        "left_child": {"leaf_value": -1.0},
        "right_child": {"leaf_value": 1.0},
    }
    model = {"objective": "binary sigmoid:1", "num_tree_per_iteration": 1, "max_feature_idx": 0}
    split |= changes.pop("split", {})
    return model | {"tree_info": [{"tree_structure": split}]} | changes


def test_dumps_are_read_without_the_libraries() -> None:
    """XGBoost goes left below 0.5, LightGBM up to 0.5."""
    rows = np.array([[0.5], [np.nextafter(0.5, 0)], [0.49999], [0.50001]])
    assert read_xgboost(xgboost_json()).scores(rows).tolist() == [1.0, 1.0, -1.0, 1.0]
    assert read_lightgbm(lightgbm_json()).scores(rows).tolist() == [-1.0, -1.0, -1.0, 1.0]


REFUSED = {
    "not a tree": (lambda: read_sklearn_trees(IsolationForest()), "IsolationForest"),
    "not fitted": (lambda: read_sklearn_trees(DecisionTreeClassifier()), "not fitted"),
    "three classes": (
        lambda: read_sklearn_trees(DecisionTreeClassifier().fit(ROWS[:30], np.arange(30) % 3)),
        "two classes",
    ),
    "init of its own": (
        lambda: read_sklearn_trees(
            GradientBoostingClassifier(n_estimators=2, init=RandomForestClassifier(2)).fit(ROWS, LABELS)
        ),
        "init",
    ),
    "categories": (
        lambda: read_sklearn_trees(
            HistGradientBoostingClassifier(max_iter=2, categorical_features=[0]).fit(
                np.abs(np.round(ROWS)) % 5, LABELS
            )
        ),
        "categories",
    ),
    "xgboost regression": (lambda: read_xgboost(xgboost_json(objective="reg:squarederror")), "objective"),
    "xgboost dart": (lambda: read_xgboost(xgboost_json(name="dart")), "save_model"),
    "xgboost to come": (lambda: read_xgboost(xgboost_json(held={"vectors": 1})), "vectors"),
    "xgboost categories": (
        lambda: read_xgboost(
            xgboost_json(
                tree={
                    "split_type": [1, 0, 0],
                    "categories": [0],
                    "categories_nodes": [0],
                    "categories_segments": [0],
                    "categories_sizes": [1],
                    "default_left": [0, 0, 0],
                }
            )
        ),
        "categories",
    ),
    "xgboost nan": (
        lambda: read_xgboost(xgboost_json(tree={"split_conditions": [np.nan, -1.0, 1.0]})),
        "finite",
    ),
    "xgboost feature": (lambda: read_xgboost(xgboost_json(tree={"split_indices": [4, 0, 0]})), "range"),
    "xgboost something else": (lambda: read_xgboost({"trees": []}), "save_model"),
    "lightgbm multiclass": (lambda: read_lightgbm(lightgbm_json(objective="multiclass")), "objective"),
    "lightgbm rf": (lambda: read_lightgbm(lightgbm_json(average_output=True)), "averaged"),
    "lightgbm zeros": (lambda: read_lightgbm(lightgbm_json(split={"missing_type": "Zero"})), "zeros"),
    "lightgbm categories": (
        lambda: read_lightgbm(lightgbm_json(split={"decision_type": "==", "threshold": "0||2"})),
        "categories",
    ),
    "no model": (lambda: read_lightgbm(3), "Booster"),
}


@pytest.mark.parametrize(("read", "word"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_said_is_refused_in_one_line(read, word) -> None:
    """A clear line that names the trouble."""
    with pytest.raises(Unsupported) as caught:
        read()
    assert word in str(caught.value) and "\n" not in str(caught.value)
