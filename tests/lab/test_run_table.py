"""A table that grows: what an interruption cut off is dropped, another run's table is refused."""

from __future__ import annotations

import gzip
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from milp_recourse.errors import BadInput
from milp_recourse.lab.benchmarks.child import Child, answer_row, answered
from milp_recourse.lab.means import bootstrap, mean, quantile, ratio, sd
from milp_recourse.lab.run_table import Key, Row, filled, grown, read_rows, write_table


def test_a_cut_line_is_dropped_and_written_again(tmp_path: Path) -> None:
    """Whatever part of the last row is there, only the whole rows before it count."""
    table = tmp_path / "made" / "t.csv"
    rows = [{"name": f"{k}, quoted", "value": str(k), "seed": "0"} for k in range(3)]
    with grown(table, ["name", "value", "seed"], {"seed": 0}) as (before, write):
        assert before == []
        for row in rows:
            write(row)
    whole = table.read_text()
    start = whole.rindex("\n", 0, -1) + 1
    for end in range(start, len(whole)):
        table.write_text(whole[:end])
        with grown(table, ["name", "value", "seed"], {"seed": 0}) as (before, write):
            assert before == rows[:2]
            write(rows[2])
        assert table.read_text() == whole
    assert read_rows(table) == rows


def test_a_table_without_rows_is_not_made(tmp_path: Path) -> None:
    """Nor its folder: what is wrong is often found before the first row."""
    for columns in (["name"], None):
        with pytest.raises(BadInput), grown(tmp_path / "made" / "t.csv", columns, {}):
            raise BadInput("--sets", "nothing", "something")
    assert list(tmp_path.iterdir()) == []


def test_another_run_is_refused(tmp_path: Path) -> None:
    """Another seed, or other columns; the table stays as it is."""
    table = tmp_path / "t.csv"
    with grown(table, ["seed"], {"seed": 0}) as (_, write):
        write({"seed": 0})
    whole = table.read_text()
    for columns, seed in ((["seed"], 1), (["seed", "more"], 0)):
        with pytest.raises(BadInput, match="another run"), grown(table, columns, {"seed": seed}):
            pass
    assert table.read_text() == whole


def test_groups_write_what_is_missing(tmp_path: Path) -> None:
    """A second run solves nothing twice; a group that breaks off is gone on with; every step is reported."""
    table, columns, steps, made = tmp_path / "t.csv", ["name", "value", "seed"], [], []
    groups = {"small": [1, 2], "large": [10, 20, 30]}

    def solved(group: list[int], done: set[Key]) -> Iterator[Row | None]:
        for value in group:
            if (str(value), str(value)) in done:
                yield None
                continue
            if value == broken:
                raise OSError
            made.append(value)
            yield {"name": value, "value": value}

    broken = 20
    with pytest.raises(OSError):
        filled(table, columns, {"seed": 3}, 2, groups, solved, 2, steps.append)
    assert sorted(made) == [1, 2, 10] and sorted(steps) == ["large", "small", "small"]
    broken = 0
    rows = filled(table, columns, {"seed": 3}, 2, groups, solved, 1, steps.append)
    assert sorted(made) == [1, 2, 10, 20, 30] and steps.count("large") == 4
    assert sorted(int(row["value"]) for row in rows) == [1, 2, 10, 20, 30]
    assert {row["seed"] for row in rows} == {"3"}


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interruption_ends_all_groups(jobs: int, tmp_path: Path) -> None:
    """Groups that wait are not worked on first, and one at work ends with its row. Earlier rows stay."""
    begun: list[int] = []

    def solved(group: int, done: set[Key]) -> Iterator[Row | None]:
        begun.append(group)
        yield {"name": f"{group} early"}
        time.sleep(0.1 if group == 0 else 0.4)
        if group == 0:
            raise KeyboardInterrupt
        yield {"name": f"{group} late"}

    groups = {str(k): k for k in range(9)}
    with pytest.raises(KeyboardInterrupt):
        filled(tmp_path / "t.csv", ["name"], {}, 1, groups, solved, jobs)
    assert begun[0] == 0 and len(begun) <= jobs + 1
    rows = sorted(row["name"] for row in read_rows(tmp_path / "t.csv"))
    assert rows[0] == "0 early" and all(name.endswith("early") for name in rows)


def test_a_process_that_ends_answers_error() -> None:
    """Answers come line by line; after its end every question gets ``error``."""
    script = "print(input(), flush=True)"
    with Child([sys.executable, "-c", script]) as child:
        assert child.send(b'{"status": "found"}\n') == {"status": "found"}
        child.process.wait()
        assert child.send(b"that\n")["status"] == "error"


def test_another_process_takes_the_place_of_one_that_failed() -> None:
    """After an answer of status ``error`` a new one is started; what is done is not asked."""
    started: list[Failing] = []

    class Failing:
        """Answers twice, then only errors."""

        def __init__(self) -> None:
            self.asked, self.left = 0, False
            started.append(self)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            self.left = True

        def ask(self, instance: Any, time_limit: float) -> dict[str, Any]:
            self.asked += 1
            return {"status": "optimal" if self.asked < 3 else "error", "cost": instance * time_limit}

    problems: Any = [("l1", k, float(k)) for k in range(6)]
    columns = ["model", "kind", "applicant", "solver", "status", "cost"]
    done = {("m", "l1", "0", "one")}
    rows = list(
        answered(
            "m", problems, {"one": Failing}, 2.0, columns, done, lambda k, a: a | {"cost": k + a["cost"]}
        )
    )
    assert rows[0] is None
    assert [row["status"] for row in rows if row] == ["optimal", "optimal", "error", "optimal", "optimal"]
    assert [row["cost"] for row in rows if row] == [3.0, 6.0, 9.0, 12.0, 15.0]
    assert [one.asked for one in started] == [3, 2] and all(one.left for one in started)


def test_a_row_says_when_the_first_action_was_found() -> None:
    """Events are (seconds, cost, bound); the key fills the first columns."""
    answer = {"status": "limit", "events": [[0.1, None, 1.0], [0.4, 3.0, 1.0]], "more": 1}
    row = answer_row(answer, ["model", "status", "first_seconds", "events"], ["m"])
    assert row == {
        "model": "m",
        "status": "limit",
        "first_seconds": 0.4,
        "events": "[[0.1, null, 1.0], [0.4, 3.0, 1.0]]",
    }


def test_the_header_may_be_the_first_rows(tmp_path: Path) -> None:
    """Without columns the first row names them; a table of another run is refused all the same."""
    table = tmp_path / "t.csv"
    with grown(table, None, {"seed": 1}) as (before, write):
        write({"name": "a", "seed": 1})
        write({"name": "b", "seed": 1})
    assert before == [] and table.read_text() == "name,seed\na,1\nb,1\n"
    with grown(table, None, {"seed": 1}) as (before, write):
        write({"name": "c", "seed": 1})
    assert len(before) == 2 and len(read_rows(table)) == 3
    with pytest.raises(BadInput, match="another run"), grown(table, None, {"seed": 2}):
        pass


def test_tables_of_numbers(tmp_path: Path) -> None:
    """Six digits, None as nothing, columns that any row has; packed to the same bytes every time."""
    rows = [{"a": 1 / 3, "b": None}, {"a": float("nan"), "b": 2, "c": True}]
    write_table(tmp_path / "new" / "t.csv", rows)
    assert (tmp_path / "new" / "t.csv").read_text() == "a,b,c\n0.333333,,\nnan,2,True\n"
    write_table(tmp_path / "t.csv.gz", rows)
    packed = (tmp_path / "t.csv.gz").read_bytes()
    assert packed[4:8] == bytes(4), "no time of writing"
    assert gzip.decompress(packed) == (tmp_path / "new" / "t.csv").read_bytes()


def test_what_is_taken_of_nothing_is_nan() -> None:
    """And of something, what it says; a bootstrap of columns resamples their rows together."""
    assert all(np.isnan(of([])) for of in (mean, sd, lambda none: quantile(none, 0.5)))
    assert (mean([1, 3]), sd([1, 3]), quantile([1, 2, 3], 0.5)) == (2.0, 2**0.5, 2.0)
    assert np.isnan(sd([1])) and np.isnan(ratio(1, 0)) and ratio(1, 2) == 0.5
    samples = bootstrap(np.array([[1.0, -1.0], [3.0, -3.0]]), np.random.default_rng(0), 50)
    assert samples.shape == (50, 2) and (samples[:, 0] == -samples[:, 1]).all()
    assert set(samples[:, 0]) == {1.0, 2.0, 3.0}
    assert np.isnan(bootstrap(np.zeros((0, 2)), np.random.default_rng(0), 3)).all()
