"""Generates the JSON Schema files: ``python -m milp_recourse.formats.json_schemas`` rewrites ``schemas/``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from milp_recourse.formats.schema import InstanceModel, PopulationModel
from milp_recourse.formats.schema_answers import (
    ChoicesModel,
    InterviewModel,
    OffersModel,
    RegionsModel,
    RegretModel,
    ResultModel,
    ResultsModel,
    RobustModel,
    ShareModel,
    WhyModel,
)
from milp_recourse.formats.schema_certificate import CertificateModel, RegionCertificateModel
from milp_recourse.formats.schema_classifiers import InlineClassifier

FOLDER = Path(__file__).parent / "schemas"

MODELS: dict[str, Any] = {
    "certificate-1": CertificateModel,
    "choices-1": ChoicesModel,
    "classifier": InlineClassifier,
    "instance-1": InstanceModel,
    "interview-1": InterviewModel,
    "offers-1": OffersModel,
    "population-1": PopulationModel,
    "region-certificate-1": RegionCertificateModel,
    "regions-1": RegionsModel,
    "regret-1": RegretModel,
    "result-1": ResultModel,
    "results-1": ResultsModel,
    "robust-1": RobustModel,
    "share-1": ShareModel,
    "why-1": WhyModel,
}


def json_schemas() -> dict[str, str]:
    """File name -> text of every shipped JSON Schema."""
    texts = {}
    for name, model in MODELS.items():
        schema = TypeAdapter(model).json_schema(by_alias=True)
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        texts[f"{name}.schema.json"] = json.dumps(schema, indent=1) + "\n"
    return texts


def main() -> None:
    """Rewrite ``schemas/``."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in json_schemas().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
