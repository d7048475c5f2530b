"""Which tests are long, and which may be skipped: with ``--strict-skips`` a run fails that skipped another.

``pytest`` runs what takes a few minutes; ``pytest -m long`` the rest, ``pytest -m ""`` all.

OpenMP has one thread in tests and in what they start. Its threads wait by spinning: with another process
beside them, fitting one histogram boosting took 35 s instead of 0.06 s.
"""

from __future__ import annotations

import os
import re

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when scikit-learn is imported

ALLOWED_SKIPS = {
    r"MILP_RECOURSE_DATA": "the data sets belong to others and are not shipped",
    r"no Chromium or Chrome": "pages are looked at where a browser is installed",
    r"no /dev/full": "a full disk is imitated where the system can",
    r"needs root": "files of another user, or a small disk, are made where the system allows it",
    r"^Skipped: nothing to do$": "the random model accepts the applicant as they are",
    r"tests/conformance/": "a back end that refuses an instance says so in one line",
}
"""Reasons (or places), and why such a skip hides nothing: a missing package is not among them."""


LONG = (
    *("tests/certificates/test_engine_proofs.py", "tests/certificates/test_hostile.py"),
    *("tests/certificates/test_many_levers.py", "tests/certificates/test_produce.py"),
    *("tests/cli/test_population_runs.py", "tests/conformance/", "tests/docs/test_examples.py"),
    *("tests/docs/test_models.py", "tests/docs/test_dataframes.py", "tests/engine/forests/test_agreement.py"),
    *("tests/engine/forests/test_causal.py", "tests/engine/forests/test_missing.py"),
    *("tests/engine/networks/test_highs_agrees.py", "tests/engine/networks/test_tiny_costs.py"),
    *("tests/engine/networks/test_stages.py",),
    *("tests/lab/", "tests/preferences/test_traps.py", "tests/properties/test_adversary.py"),
    *("tests/properties/test_on_ratios.py", "tests/properties/test_percentile.py"),
    "tests/questions/choices/test_choices_agree.py",
    *("tests/questions/choices/test_fronts_agree.py", "tests/questions/robust/test_random.py"),
    *("tests/readers/test_cutoff.py", "tests/readers/test_every_model.py", "tests/safety/"),
    *("tests/readers/test_functions_before.py", "tests/readers/test_stacks.py"),
    *("tests/solvers/rows/test_bounds.py", "tests/tables/test_random_pipelines.py"),
    *("tests/studio/test_studio_", "tests/tables/test_types_of_people.py", "tests/test_skips.py"),
)
"""Files and folders whose tests get the mark ``long``. Each of their rooms and kinds of claims has others;
single tests in other files have the mark too."""


def pytest_ignore_collect(collection_path, config):
    """Leave out the files that the mark leaves out anyway: importing them takes as long as some tests."""
    if collection_path.suffix != ".py" or config.option.markexpr not in ("long", "not long"):
        return None
    whole = collection_path.relative_to(config.rootpath).as_posix().startswith(LONG)
    if config.option.markexpr == "not long":
        return whole or None
    return None if whole or "mark.long" in collection_path.read_text(encoding="utf-8") else True


FIRST = (
    *("tests/preferences/test_traps.py", "tests/docs/test_models.py", "tests/certificates/test_hostile.py"),
    *("tests/solvers/rows/test_bounds.py", "tests/lab/benchmarks/", "tests/lab/studies/"),
    *("tests/readers/test_every_model.py", "tests/cli/test_population_runs.py"),
)
"""Files with tests of ten seconds and more: with ``-n``, a worker that began one last would be waited for."""


def pytest_collection_modifyitems(items):
    """Mark the long tests, and begin with the longest."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker(pytest.mark.long)


def pytest_addoption(parser):
    """``--strict-skips``, for continuous integration."""
    parser.addoption(
        "--strict-skips", action="store_true", help="fail where a test is skipped for want of a package"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With ``-n``, workers take neighbouring tests: what a file's tests share is made once, not once each."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def unexpected(place: str, reason: str) -> bool:
    """Whether a skip is not one of the allowed ones."""
    return not any(re.search(pattern, text) for pattern in ALLOWED_SKIPS for text in (place, reason))


def pytest_sessionfinish(session):
    """Fail a run that skipped what it should not have."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not session.config.getoption("--strict-skips"):
        return
    for report in reporter.stats.get("skipped", []):
        place, _, reason = report.longrepr if isinstance(report.longrepr, tuple) else (report.nodeid, 0, "")
        if unexpected(place, reason):
            reporter.write_line(f"skipped, and should not be: {report.nodeid}: {reason}", red=True)
            session.exitstatus = 1
