"""Certificates of networks on labels under l0: acting alone may cost more than is claimed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")  # an optional extra: without it there is no model to read

from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from milp_recourse import Recourse


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", [16, 24])
def test_certificates_of_networks_on_labels_under_l0_verify(seed: int) -> None:
    """The checker counts the weight of a label that is acted on and kept."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({c: np.array(list("uvwx"))[rng.integers(0, 4, 200)] for c in "abcd"})
    worth = sum((X[c] == "u") * w for c, w in zip("abcd", (2, 1, 1, 1), strict=True))
    network = MLPClassifier((9,), max_iter=60, random_state=0)
    model = make_pipeline(OneHotEncoder(), network).fit(X, worth + rng.normal(size=200) * 0.3 > 2.2)
    people = X[~model.predict(X)].head(6)
    answers = Recourse(model, X, desired=True, cost="l0", weights={"a": 1.2}).certify(
        people, certificates=True
    )
    assert answers.table["status"].eq("optimal").all()
    assert answers.verify().splitlines()[-1].startswith("VERIFIED 6 of 6 certificates")
