"""One mistake per case: exit code 2, one line that names the file and the field, nothing written."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.formats import instance_from_dict
from tests.helpers.format_samples import LOAN_FEATURES, loan_instance, tree_instance

MISSING = object()
ONES = [[1.0] * 7, [1.0] * 7]
NETWORK = {"layers": [{"weight": [[1.0]], "bias": [0.0]}]}


def explicit(mechanisms):
    return {"name": "explicit", "mechanisms": mechanisms}


def percentile(**knots):
    """A percentile cost for amount, income and savings; None leaves a feature out."""
    usual = {name: [[-10, 0], [10, 1]] for name in ("amount", "income", "savings")}
    return {"kind": "percentile", "quantiles": {n: k for n, k in (usual | knots).items() if k is not None}}


def job(table):
    """The categorical feature of the sample with trees, with a table."""
    return tree_instance()["features"][4] | {"encoding": "table", "table": table}


# mistake: (path of the change, new value, field that the message names)
LOAN_MISTAKES = {
    "FormatUnknown": ("format", "milp-recourse/instance-9", "format"),
    "FormatMissing": ("format", MISSING, "format"),
    "UnknownTopLevelKey": ("prefrences", {}, "prefrences"),
    "NameNotText": ("name", 7, "name"),
    "FeaturesMissing": ("features", MISSING, "features"),
    "FeaturesEmpty": ("features", [], "features"),
    "FeatureNotAnObject": ("features.3", "amount", "features.3"),
    "FeatureWithoutName": ("features.3.name", MISSING, "features.3.name"),
    "FeatureNameEmpty": ("features.3.name", "", "features.3.name"),
    "FeatureNameWithNewline": ("features.3.name", "amo\nunt", "features.3.name"),
    "FeatureNameTwice": ("features.4.name", "amount", "features.4.name"),
    "FeatureKindUnknown": ("features.3.kind", "real", "features.3.kind"),
    "FeatureUnknownKey": ("features.3.bound", [0, 1], "features.3.bound"),
    "ActionableNotABoolean": ("features.3.actionable", 1, "features.3.actionable"),
    "BoundsMissingOnActionable": ("features.3.bounds", MISSING, "features.3.bounds"),
    "BoundsReversed": ("features.3.bounds", [10, -10], "features.3.bounds"),
    "BoundsOfOneNumber": ("features.3.bounds", [10], "features.3.bounds"),
    "BoundsOfThreeNumbers": ("features.3.bounds", [1, 2, 3], "features.3.bounds"),
    "BoundsWithText": ("features.3.bounds", [0, "ten"], "features.3.bounds.1"),
    "BoundsWithNull": ("features.3.bounds", [None, 1], "features.3.bounds.0"),
    "BoundsWithBoolean": ("features.3.bounds", [False, True], "features.3.bounds.0"),
    "BinaryBoundsBeyondOne": ("features.0.bounds", [0, 2], "features.0.bounds"),
    "BinaryDomainBelowZero": ("features.0.domain", [-1, 1], "features.0.domain"),
    "DomainReversed": ("features.3.domain", [1, 0], "features.3.domain"),
    "MonotoneUnknown": ("features.3.monotone", "up", "features.3.monotone"),
    "CategoriesOnContinuous": ("features.3.categories", ["a", "b"], "features.3.categories"),
    "OneHotOnContinuous": ("features.3.encoding", "one-hot", "features.3.encoding"),
    "ScmMissing": ("scm", MISSING, "scm"),
    "ScmNotAnObject": ("scm", "loan", "scm"),
    "ScmNameUnknown": ("scm.name", "lone", "scm.name"),
    "ScmNameMissing": ("scm.name", MISSING, "scm.name"),
    "ScmUnknownKey": ("scm.mechanisms", {}, "scm.mechanisms"),
    "LoanFeatureRenamed": ("features.6.name", "saving", "features"),
    "ScmReadsUnknownFeature": (
        "scm",
        explicit({"income": {"equation": "wage"}}),
        "scm.mechanisms.income.equation",
    ),
    "ScmForUnknownFeature": ("scm", explicit({"wage": {"equation": 0}}), "scm.mechanisms.wage"),
    "ScmCycle": (
        "scm",
        explicit({"income": {"equation": "savings"}, "savings": {"equation": "income"}}),
        "scm.mechanisms",
    ),
    "ScmSelfLoop": ("scm", explicit({"income": {"equation": {"sum": [1, "income"]}}}), "scm.mechanisms"),
    "ScmEquationMissing": ("scm", explicit({"income": {}}), "scm.mechanisms.income.equation"),
    "ScmEquationNull": ("scm", explicit({"income": {"equation": None}}), "scm.mechanisms.income.equation"),
    "ScmUnknownForm": (
        "scm",
        explicit({"income": {"equation": {"sum": [{"tanh": "age"}]}}}),
        "scm.mechanisms.income.equation.sum.0",
    ),
    "ScmTwoFormsAtOnce": (
        "scm",
        explicit({"income": {"equation": {"sum": [1], "relu": 2}}}),
        "scm.mechanisms.income.equation.relu",
    ),
    "ScmEmptySum": (
        "scm",
        explicit({"income": {"equation": {"sum": []}}}),
        "scm.mechanisms.income.equation.sum",
    ),
    "ScmNetworkInputCount": (
        "scm",
        explicit({"income": {"equation": {"network": NETWORK, "inputs": ["age", "gender"]}}}),
        "scm.mechanisms.income.equation.inputs",
    ),
    "ScmNetworkWithoutInputs": (
        "scm",
        explicit({"income": {"equation": {"network": NETWORK}}}),
        "scm.mechanisms.income.equation.inputs",
    ),
    "ScmLinkScaleZero": (
        "scm",
        explicit({"income": {"equation": 0, "link": {"kind": "sigmoid", "scale": 0}}}),
        "scm.mechanisms.income.link.scale",
    ),
    "ScmLinkUnknown": (
        "scm",
        explicit({"income": {"equation": 0, "link": {"kind": "probit"}}}),
        "scm.mechanisms.income.link.kind",
    ),
    "ScmNoiseSdZero": (
        "scm",
        explicit({"income": {"equation": 0, "noise": {"kind": "normal", "sd": 0}}}),
        "scm.mechanisms.income.noise.sd",
    ),
    "ScmNoiseUnknown": (
        "scm",
        explicit({"income": {"equation": 0, "noise": {"kind": "cauchy"}}}),
        "scm.mechanisms.income.noise.kind",
    ),
    "ScmNoiseProbabilityAboveOne": (
        "scm",
        explicit({"income": {"equation": 0, "noise": {"kind": "bernoulli", "p": 1.5}}}),
        "scm.mechanisms.income.noise.p",
    ),
    "ClassifierMissing": ("classifier", MISSING, "classifier"),
    "ClassifierKindUnknown": ("classifier.kind", "svm", "classifier.kind"),
    "ClassifierKindMissing": ("classifier.kind", MISSING, "classifier.kind"),
    "DtypeUnknown": ("classifier.dtype", "float16", "classifier.dtype"),
    "LayersEmpty": ("classifier.layers", [], "classifier.layers"),
    "WeightTooFewInputs": ("classifier.layers.0.weight", [[1, 2], [3, 4]], "classifier.layers.0.weight"),
    "WeightRagged": ("classifier.layers.0.weight.1", [1, 2], "classifier.layers.0.weight.1"),
    "WeightNotNested": ("classifier.layers.0.weight", [1, 2], "classifier.layers.0.weight.0"),
    "WeightWithText": ("classifier.layers.0.weight.0.3", "-1", "classifier.layers.0.weight.0.3"),
    "WeightNotFloat32": ("classifier.layers.0.weight.0.3", 0.1, "classifier.layers.0.weight"),
    "WeightBeyondFloat32": ("classifier.layers.0.weight.0.3", 1e39, "classifier.layers.0.weight"),
    "BiasNotFloat32": ("classifier.layers.1.bias", [0.3], "classifier.layers.1.bias"),
    "BiasTooShort": ("classifier.layers.0.bias", [0], "classifier.layers.0.bias"),
    "LayersDoNotChain": ("classifier.layers.1.weight", [[1, 1, 1]], "classifier.layers.1.weight"),
    "TwoOutputs": (
        "classifier.layers.1",
        {"weight": [[1, 1], [1, 1]], "bias": [0, 0]},
        "classifier.layers.1.weight",
    ),
    "ClassifierFileMissing": ("classifier", {"path": "none.json", "sha256": "0" * 64}, "classifier.path"),
    "ClassifierHashMissing": ("classifier", {"path": "none.json"}, "classifier.sha256"),
    "ClassifierHashTooShort": ("classifier", {"path": "none.json", "sha256": "abc"}, "classifier.sha256"),
    "ClassifierPathIsAFolder": ("classifier", {"path": ".", "sha256": "0" * 64}, "classifier.path"),
    "AcceptRuleOfTrees": ("accept", {"above": 0.5}, "accept.above"),
    "MarginNegative": ("accept.margin", -0.1, "accept.margin"),
    "ThresholdNotFloat32": ("accept.at_least", 0.1, "accept.at_least"),
    "FactualMissing": ("factual", MISSING, "factual"),
    "FactualWithoutIncome": ("factual.income", MISSING, "factual.income"),
    "FactualOfUnknownFeature": ("factual.wage", 1, "factual.wage"),
    "FactualText": ("factual.income", "high", "factual.income"),
    "FactualBoolean": ("factual.gender", True, "factual.gender"),
    "FactualNull": ("factual.income", None, "factual.income"),
    "FactualList": ("factual.income", [1], "factual.income"),
    "FactualNotBinary": ("factual.gender", 0.5, "factual.gender"),
    "PreferencesMissing": ("preferences", MISSING, "preferences"),
    "ActionableUnknownFeature": ("preferences.actionable.0", "wage", "preferences.actionable.0"),
    "ActionableNotGloballyActionable": ("preferences.actionable.0", "age", "preferences.actionable.0"),
    "ActionableTwice": ("preferences.actionable", ["income", "income"], "preferences.actionable.1"),
    "WeightZero": ("preferences.weights.savings", 0, "preferences.weights.savings"),
    "WeightNegative": ("preferences.weights.savings", -1, "preferences.weights.savings"),
    "WeightOfUnknownFeature": ("preferences.weights", {"wage": 1}, "preferences.weights.wage"),
    "WeightOfImmutableFeature": ("preferences.weights", {"age": 1}, "preferences.weights.age"),
    "RangeReversed": ("preferences.ranges.income", [5, 0], "preferences.ranges.income"),
    "RangeOfImmutableFeature": ("preferences.ranges", {"gender": [0, 1]}, "preferences.ranges.gender"),
    "CostMissing": ("cost", MISSING, "cost"),
    "CostKindUnknown": ("cost.kind", "l3", "cost.kind"),
    "CostKindMissing": ("cost.kind", MISSING, "cost.kind"),
    "CostUnknownKey": ("cost.l0", 1, "cost.l0"),
    "ScaleMissing": ("cost.scale", MISSING, "cost.scale"),
    "ScaleMissingForAmount": ("cost.scale.amount", MISSING, "cost.scale.amount"),
    "ScaleZero": ("cost.scale.amount", 0, "cost.scale.amount"),
    "ScaleNegative": ("cost.scale.amount", -2, "cost.scale.amount"),
    "ScaleOfUnknownFeature": ("cost.scale.wage", 1, "cost.scale.wage"),
    "MixtureOfNothing": ("cost", {"kind": "mixture", "scale": {}}, "cost"),
    "MixtureNegative": ("cost", {"kind": "mixture", "l1": 1, "l0": -1, "scale": {}}, "cost.l0"),
    "MixtureWithoutScale": ("cost", {"kind": "mixture", "l1": 1}, "cost.scale.amount"),
    "QuantilesMissing": ("cost", {"kind": "percentile"}, "cost.quantiles"),
    "QuantilesWithScale": ("cost", percentile() | {"scale": {}}, "cost.scale"),
    "QuantilesMissingForAmount": ("cost", percentile(amount=None), "cost.quantiles.amount"),
    "QuantilesOfUnknownFeature": ("cost", percentile(wage=[[0, 0], [1, 1]]), "cost.quantiles.wage"),
    "QuantilesOfOneKnot": ("cost", percentile(income=[[0, 0]]), "cost.quantiles.income"),
    "KnotOfThree": ("cost", percentile(income=[[0, 0], [1, 1, 1]]), "cost.quantiles.income.1"),
    "KnotNotAscending": ("cost", percentile(income=[[0, 0], [0, 1]]), "cost.quantiles.income.1"),
    "KnotProbabilityFalls": ("cost", percentile(income=[[0, 1], [1, 0.5]]), "cost.quantiles.income.1"),
    "KnotProbabilityNegative": ("cost", percentile(income=[[0, -0.1], [1, 1]]), "cost.quantiles.income.0"),
    "KnotProbabilityInPercent": ("cost", percentile(income=[[0, 0], [1, 50]]), "cost.quantiles.income.1"),
    "KnotTooSteep": ("cost", percentile(income=[[0, 0], [5e-324, 1]]), "cost.quantiles.income.1"),
    "KnotTooFar": ("cost", percentile(income=[[-1e308, 0], [1e308, 1]]), "cost.quantiles.income.1"),
    "PlausibilityUnknownKind": ("plausibility.kind", "flow", "plausibility.kind"),
    "PlausibilityUnknownThreshold": ("plausibility.at_least", 0.5, "plausibility.at_least"),
    "PlausibilityWithoutNoise": ("scm", {"name": "independent"}, "plausibility"),
    "PlausibilityWithPartialNoise": (
        "scm",
        explicit({name: {"equation": 0, "noise": {"kind": "normal", "sd": 1}} for name in LOAN_FEATURES[1:]}),
        "plausibility",
    ),
    "ReferenceStatusUnknown": ("reference", {"status": "solved"}, "reference.status"),
    "ReferenceWithoutStatus": ("reference", {"cost": 1}, "reference.status"),
}

TREE_MISTAKES = {
    "OrdinalWithoutCategories": ("features.3.categories", MISSING, "features.3.categories"),
    "OrdinalWithBoundsBeyondItsLabels": ("features.3.bounds", [0, 9], "features.3.bounds"),
    "CategoriesEmpty": ("features.4.categories", [], "features.4.categories"),
    "CategoryTwice": ("features.4.categories", ["none", "full", "none"], "features.4.categories.2"),
    "CategoryNotText": ("features.4.categories", ["none", 2], "features.4.categories.1"),
    "CategoricalMonotone": ("features.4.monotone", "increase", "features.4.monotone"),
    "CategoricalDomain": ("features.4.domain", [0, 1], "features.4.domain"),
    "CategoricalRange": ("preferences.ranges.job", [0, 1], "preferences.ranges.job"),
    "EncodingUnknown": ("features.4.encoding", "ordinal", "features.4.encoding"),
    "EncodingChangesColumns": ("features.4.encoding", "code", "classifier.trees.0.feature.2"),
    "LabelUnknown": ("factual.job", "boss", "factual.job"),
    "LabelAsNumber": ("factual.degree", 1, "factual.degree"),
    "CategoricalCause": ("scm", explicit({"income": {"equation": "job"}}), "scm.mechanisms.income.equation"),
    "CategoricalEffect": ("scm", explicit({"job": {"equation": "income"}}), "scm.mechanisms.job.equation"),
    "OrdinalEffect": ("scm", explicit({"degree": {"equation": "income"}}), "scm.mechanisms.degree.equation"),
    "IntegerMovedByAnAction": ("scm", explicit({"cards": {"equation": "income"}}), "features.1.kind"),
    "BinaryMovedByAnAction": (
        "scm",
        explicit({"cards": {"equation": "owner"}, "owner": {"equation": {"relu": "income"}}}),
        "features.1.kind",
    ),
    "MissingWithoutARule": ("factual.income", None, "factual.income"),
    "MissingLeftOfAnotherLength": (
        "classifier.trees.1.missing_left",
        [True, False],
        "classifier.trees.1.missing_left",
    ),
    "MissingLeftNotABoolean": ("classifier.trees.1.missing_left", [0], "classifier.trees.1.missing_left.0"),
    "TreesEmpty": ("classifier.trees", [], "classifier.trees"),
    "TreesInFloat16": ("classifier.dtype", "float16", "classifier.dtype"),
    "TreesAggregateUnknown": ("classifier.aggregate", "vote", "classifier.aggregate"),
    "TreesMeanWithBase": ("classifier.base", 0.5, "classifier.base"),
    "TreesMeanInFloat32": ("classifier.sum_dtype", "float32", "classifier.sum_dtype"),
    "TreeThresholdIsNull": ("classifier.trees.0.threshold.0", None, "classifier.trees.0.threshold.0"),
    "TreeLeafOfManyClasses": ("classifier.trees.0.value.4", [0.2, 0.3, 0.5], "classifier.trees.0.value.4"),
    "TreeWithoutNodes": (
        "classifier.trees.1",
        {"feature": [], "threshold": [], "left": [], "right": [], "value": []},
        "classifier.trees.1.feature",
    ),
    "TreeArraysDiffer": ("classifier.trees.0.value", [0.5], "classifier.trees.0.value"),
    "TreeFeatureOutOfRange": ("classifier.trees.0.feature.0", 7, "classifier.trees.0.feature.0"),
    "TreeFeatureNegative": ("classifier.trees.0.feature.0", -1, "classifier.trees.0.feature.0"),
    "TreeFeatureNotWhole": ("classifier.trees.0.feature.0", 0.5, "classifier.trees.0.feature.0"),
    "TreeChildOutOfRange": ("classifier.trees.0.right.2", 5, "classifier.trees.0.right.2"),
    "TreeChildIsTheRoot": ("classifier.trees.0.left.2", 0, "classifier.trees.0.left.2"),
    "TreeHalfALeaf": ("classifier.trees.0.right.1", 3, "classifier.trees.0.right.1"),
    "TreeHalfABranch": ("classifier.trees.0.right.2", -1, "classifier.trees.0.right.2"),
    "TreeNodeSharedByTwo": ("classifier.trees.0.right.2", 3, "classifier.trees.0.right.2"),
    "TreeNodeItsOwnChild": ("classifier.trees.0.left.2", 2, "classifier.trees.0.left.2"),
    "TreeNodeUnreachable": (
        "classifier.trees.1",
        {"feature": [-2, -2], "threshold": [0, 0], "left": [-1, -1], "right": [-1, -1], "value": [0.6, 0.6]},
        "classifier.trees.1.left",
    ),
    "TreeLeafNotAProbability": ("classifier.trees.0.value.4", 1.5, "classifier.trees.0.value.4"),
    "TableMissing": ("features.4.encoding", "table", "features.4.table"),
    "TableOfTooFewRows": ("features.4", job([[1.0], [2.0]]), "features.4.table"),
    "TableRowTooShort": ("features.4", job([[1.0, 2.0], [2.0], [3.0, 1.0]]), "features.4.table.1"),
    "TableOfEmptyRows": ("features.4", job([[], [], []]), "features.4.table.0"),
    "TableOfText": ("features.4", job([["a"], [2.0], [3.0]]), "features.4.table.0.0"),
    "TableBesideOneHot": ("features.4.table", [[1.0], [2.0], [3.0]], "features.4.table"),
    "TableOfNumbers": ("features.0.table", [[1.0]], "features.0.table"),
    "TableEncodingOfNumbers": ("features.0.encoding", "table", "features.0.encoding"),
    "AcceptBothRules": ("accept", {"at_least": 0.5, "above": 0.5}, "accept.at_least"),
    "MarginForTrees": ("accept.margin", 0.1, "accept.margin"),
    "AboveNotANumber": ("accept.above", "half", "accept.above"),
}

CASES = [(loan_instance, name, *case) for name, case in LOAN_MISTAKES.items()]
CASES += [(tree_instance, name, *case) for name, case in TREE_MISTAKES.items()]


def changed(data, path: str, value):
    """A copy of the data with the value at the dotted path replaced, added or removed."""
    data = copy.deepcopy(data)
    here, steps = data, [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps[:-1]:
        here = here[step]
    if value is MISSING:
        del here[steps[-1]]
    else:
        here[steps[-1]] = value
    return data


def refusal(capsys, *arguments: str) -> str:
    """The one line on stderr of a command that must exit with 2 and print nothing else."""
    assert main(list(arguments)) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    return printed.err.removeprefix("milp-recourse: ").rstrip("\n")


@pytest.mark.parametrize(("sample", "name", "path", "value", "field"), CASES, ids=[case[1] for case in CASES])
def test_a_mistake_is_named(tmp_path: Path, capsys, sample, name, path, value, field):
    """FILE: FIELD: got VALUE; allowed: WHAT."""
    file = tmp_path / f"{name}.json"
    file.write_text(json.dumps(changed(sample(), path, value)))
    line = refusal(capsys, "certify", str(file), "--out", str(tmp_path / "out"))
    assert line.startswith(f"{file}: {field}: got "), line
    assert "; allowed: " in line
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_the_samples_themselves_are_right():
    """So that each case above fails by its one mistake."""
    for sample in (loan_instance, tree_instance):
        instance_from_dict(sample())


def test_the_line_says_what_was_got_and_what_is_allowed(tmp_path: Path, capsys):
    """The example of the style guide, word for word."""
    file = tmp_path / "loan_07.json"
    file.write_text(json.dumps(changed(loan_instance(), "preferences.weights.savings", -1)))
    line = refusal(capsys, "solve", str(file))
    assert line.endswith("loan_07.json: preferences.weights.savings: got -1; allowed: a number above 0")


def test_keys_and_types_come_first():
    """Of several mistakes one in keys, types or numbers is named, also if another field comes first."""
    crossed = changed(loan_instance(), "features.3.bounds", [10, -10])
    for data, field in (
        (crossed, "features.3.bounds"),
        (changed(crossed, "preferences.conditions", [{"acted": "nobody"}]), "features.3.bounds"),
        (changed(crossed, "cost.scale.amount", "twice"), "cost.scale.amount"),
        (changed(crossed, "surprise", 1), "surprise"),
    ):
        with pytest.raises(BadInput) as refused:
            instance_from_dict(data)
        assert refused.value.field == field


def test_a_number_that_no_file_can_hold_is_named():
    """Files state such a number as a float, which is refused before."""
    leaf = changed(tree_instance(), "classifier.trees.0.feature.1", 10**30)
    with pytest.raises(BadInput, match=r"classifier\.trees\.0: got a whole number beyond 64 bits; allowed: "):
        instance_from_dict(leaf)
