"""The canonical content of an instance and its digest: section 1 of the certificate document."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from milp_recourse.formats.schema_classifiers import accept_to_dict
from milp_recourse.formats.schema_conditions import condition_to_dict
from milp_recourse.formats.schema_features import feature_to_dict
from milp_recourse.formats.schema_scm import scm_to_dict
from milp_recourse.problem.cost import PERCENTILES, Cost
from milp_recourse.problem.instance import Classifier, Instance

_DEFAULTED = ("bounds", "categories", "domain", "monotone")
"""What files leave out of a feature where there is none."""

_texts: dict[int, tuple[Classifier, str]] = {}


def instance_digest(instance: Instance) -> str:
    """SHA-256 of the canonical text; equal for instances whose canonical content is equal."""
    texts = {key: _text(value) for key, value in _besides_classifier(instance).items()}
    texts["classifier"] = classifier_text(instance.classifier)  # long, and shared
    joined = ",".join(f'"{key}":{texts[key]}' for key in sorted(texts))
    return hashlib.sha256(f"{{{joined}}}".encode()).hexdigest()


def canonical_content(instance: Instance) -> dict[str, Any]:
    """The content of an instance as plain JSON values, every default filled in."""
    return {**_besides_classifier(instance), "classifier": instance.classifier.written}


def _besides_classifier(instance: Instance) -> dict[str, Any]:
    names = [f.name for f in instance.features if f.name in instance.preferences.actionable]
    cost = instance.cost
    conditions = [condition_to_dict(one) for one in instance.all_conditions]
    return {
        "features": [
            {**dict.fromkeys(_DEFAULTED), "encoding": f.encoding, **feature_to_dict(f)}
            for f in instance.features
        ],
        "scm": _scm(instance),
        "accept": accept_to_dict(instance),
        "factual": {f.name: f.shown(instance.factual[f.name]) for f in instance.features},
        "actionable": names,
        "weights": {name: instance.weight(name) for name in names},
        "ranges": {name: _pair(instance.preferences.ranges.get(name)) for name in names},
        "cost": {
            **cost.written_parts,
            **_measures(cost, names),
            **({"root": True} if cost.is_root else {}),
        },
        "plausibility": instance.plausible,
        **({"density_offset": instance.offset} if instance.offset else {}),
        **({"conditions": conditions} if conditions else {}),
    }


def _measures(cost: Cost, names: list[str]) -> dict[str, Any]:
    """The scales, 1 where there is none, and in percentiles the knots of the distribution functions."""
    own = {name: cost.measures[name].settled for name in names if name in cost.measures}
    stated = {
        field: {name: one.written for name, one in own.items() if one.field == field}
        for field in ("scale", "quantiles")
    }
    scale = {**dict.fromkeys(names, 1.0), **stated["scale"]}
    return {**stated, "scale": scale} if cost.kind in PERCENTILES else {"scale": scale}


def _pair(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else list(interval)


def _scm(instance: Instance) -> dict[str, Any]:
    written = scm_to_dict(instance.scm)
    for mechanism in written.get("mechanisms", {}).values():
        mechanism.setdefault("link", None)
        mechanism.setdefault("noise", None)
    return written


def classifier_text(classifier: Classifier) -> str:
    """The classifier's canonical text. The last classifier's is kept, because a population shares it."""
    known = _texts.get(id(classifier))
    if known is None or known[0] is not classifier:
        _texts.clear()
        _texts[id(classifier)] = known = (classifier, _text(classifier.written))
    return known[1]


def _text(content: Any) -> str:
    return json.dumps(_spelled(content), sort_keys=True, separators=(",", ":"))


def _spelled(value: Any) -> Any:
    """Content with its numbers as the hexadecimal digits of their doubles."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, Mapping):
        return {key: _spelled(v) for key, v in value.items()}
    if not isinstance(value, list | tuple):
        return _digits([value])[0]
    return _digits(value) if value and {*map(type, value)} <= {int, float} else [_spelled(v) for v in value]


def _digits(numbers: Sequence[float]) -> list[str]:
    """The hexadecimal digits of doubles; -0.0 is written as 0.0."""
    doubles = np.array(numbers, dtype=np.float64) + 0.0
    return doubles.astype(">f8").tobytes().hex(",", 8).split(",")
