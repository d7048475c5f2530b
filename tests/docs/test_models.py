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

from tests.docs.models import ASK, PAGE, page, tables


@pytest.mark.filterwarnings("ignore")  # the small fits do not converge
def test_the_tables_are_what_the_readers_say() -> None:
    """Run ``python -m tests.docs.models`` if they are not; of another scikit-learn, models can be other."""
    old, made = PAGE.read_text(encoding="utf-8"), tables()
    newest = next(heading for heading in made if heading.startswith("scikit-learn"))
    if f"## {newest}\n" in old:
        assert page(old, made) == old
        return
    written = set(old.splitlines())
    said = {line.split(" | ")[0]: line for line in written if line.startswith("| `")}
    for table in made.values():
        for line in table.splitlines():
            assert line in written or line.split(" | ")[0] not in said, line


def test_every_refusal_is_one_sentence_that_names_a_way_forward() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "| refused: " in line]
    assert len(rows) > 20 and all("; allowed: " in row for row in rows)
    assert sum(ASK in row for row in rows) > 10
