"""docs/models.md says what becomes of every model, as the readers say it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("xgboost")
pytest.importorskip("lightgbm")
pytest.importorskip("catboost")
pytest.importorskip("interpret")
pytest.importorskip("imblearn")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")

from tests.docs.models import ASK, PAGE, answers, page, tables


@pytest.mark.filterwarnings("ignore")  # the small fits do not converge
def test_the_tables_are_what_the_readers_say() -> None:
    """Run ``python -m tests.docs.models`` if they are not; of another scikit-learn, models can be other."""
    old, made = PAGE.read_text(encoding="utf-8"), tables()
    newest = next(heading for heading in made if heading.startswith("scikit-learn"))
    if f"## {newest}\n" in old:
        assert page(old, made) == old
        return
    new, known = answers(page(old, made)), answers(old)
    assert new.keys() & known.keys() and {key: known.get(key, said) for key, said in new.items()} == new


def test_every_refusal_is_one_sentence_that_names_a_way_forward() -> None:
    said = answers(PAGE.read_text(encoding="utf-8")).values()
    refused = [one for one in said if "got " in one]
    assert len(refused) > 20 and all("; allowed: " in one for one in refused)
    assert sum(ASK in one for one in refused) > 10
