"""Generates the JSON Schema files: ``python -m milp_recourse.formats.json_schemas`` rewrites ``schemas/``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from milp_recourse.formats import schema, schema_certificate
from milp_recourse.formats import schema_answers as answers
from milp_recourse.formats.schema_classifiers import InlineClassifier

FOLDER = Path(__file__).parent / "schemas"

MODELS: dict[str, Any] = {
    "certificate-1": schema_certificate.CertificateModel,
    "choices-1": answers.ChoicesModel,
    "classifier": InlineClassifier,
    "instance-1": schema.InstanceModel,
    "interview-1": answers.InterviewModel,
    "offers-1": answers.OffersModel,
    "population-1": schema.PopulationModel,
    "region-certificate-1": schema_certificate.RegionCertificateModel,
    "regions-1": answers.RegionsModel,
    "regret-1": answers.RegretModel,
    "result-1": answers.ResultModel,
    "results-1": answers.ResultsModel,
    "robust-1": answers.RobustModel,
    "share-1": answers.ShareModel,
    "why-1": answers.WhyModel,
}


def json_schemas() -> dict[str, str]:
    """File name -> text of every shipped JSON Schema."""
    texts = {}
    for name, model in MODELS.items():
        text = TypeAdapter(model).json_schema(by_alias=True)
        text["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        texts[f"{name}.schema.json"] = json.dumps(text, indent=1) + "\n"
    return texts


def main() -> None:
    """Rewrite ``schemas/``."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in json_schemas().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
