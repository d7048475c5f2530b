"""The studio's server: what may be asked, whose answers it gives, and that nobody harms another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from milp_recourse.cli import main
from milp_recourse.formats.instances_path import instance_files
from milp_recourse.formats.schema_features import StatedPreferences
from milp_recourse.formats.stated import Known, validate
from milp_recourse.problem.instance import Preferences
from milp_recourse.problem.population import Population
from milp_recourse.questions.solve import solve
from milp_recourse.reports.own_words import OwnWords
from milp_recourse.studio.earlier_answers import EarlierAnswers
from milp_recourse.studio.requests_guard import LARGEST_BODY
from milp_recourse.studio.studio_views import Views
from tests.helpers.page_samples import HOSTILE
from tests.studio.samples import JSON, SECRET, ask, people, studio, visited

# ---- What may be asked


PLACES = (
    *("static/../studio_app.py", "static/..%2fstudio_app.py", "static//etc/passwd"),
    *("static/%2e%2e/%2e%2e/pyproject.toml", "en/person/../../../etc/passwd", "en/etc/0", "en/person/-1"),
    *("en/person/x", "fr/person/0", "en/person/99999999999999999999"),
)


@pytest.mark.parametrize("path", PLACES)
def test_no_file_but_the_studios_own(client, path):
    """Neither the package's sources nor the machine's files."""
    found = client.get(f"/{SECRET}/{path}")
    assert found.status_code in (400, 404)
    assert "root:" not in found.text and "import" not in found.text


OWN = (
    *('"actionable": ["nobody"]', '"actionable": ["debt"]', '"actionable": ["savings", "savings"]'),
    *('"actionable": "x"', '"weights": {}', '"actionable": [], "x": 1'),
    *('"actionable": [], "weights": {"savings": 0}', '"actionable": [], "weights": {"savings": -1}'),
    *('"actionable": [], "weights": {"savings": 1e999}', '"actionable": [], "ranges": {"savings": [2, 1]}'),
    *('"actionable": [], "ranges": {"job": [0, 1]}', '"actionable": [], "ranges": {"savings": [1]}'),
    '"actionable": [], "conditions": [{"feature": "job", "of": "counterfactual", "in": ["x"]}]',
    '"actionable": [], "conditions": ' + '[{"not": ' * 500 + "}]" * 500,
)
"""Preferences that break the format."""

BAD = (
    *("", "{", "[]", "1", "null", '"x"', "NaN", '{"a": 1}', '{"preferences": 3}', '{"tab": 5}', "\\ud800"),
    *('{"budget": 1e9}', '{"tab": "a", "tab": "b"}', '{"tab": "\\ud800"}', "[" * 5000 + "]" * 5000),
    *('{"tab": "' + "x" * 100 + '"}', '{"answers": ["' + "x" * 100 + '"]}'),
    *('{"preferences": {' + own + "}}" for own in OWN),
)


@pytest.mark.parametrize(
    "task", ["answer", "why", "interview", "verify", "people", "ways", "region", "pinned"]
)
def test_malformed_questions_are_refused_in_one_line(client, task):
    """By the formats; no traceback, and nobody's answer suffers."""
    for body in BAD:
        found = client.post(
            f"/{SECRET}/data/{task}/0", content=body.encode("utf-8", "surrogatepass"), headers=JSON
        )
        assert found.status_code == 400, body[:80]
        assert "\n" not in found.json()["error"] and "Traceback" not in found.text
    assert ask(client, "data/answer/0").json()["status"] == "optimal"


@pytest.mark.parametrize("answers", [["up"], ["left"] * 60, ["yes"]])
def test_answers_to_no_question_are_refused(client, answers):
    """An interview takes what its questions take."""
    found = ask(client, "data/interview/0", {"answers": answers})
    assert found.status_code == 400 and "answer" in found.json()["error"]


def test_unknown_tasks_and_people_are_refused(client):
    """What the page never asks for."""
    for path in ("data/proof/0", "data/row/0", "data/__init__/0", "data/answer/4", "en/part/nothing/0"):
        assert ask(client, path).status_code == 400
    assert ask(client, "data/answer/3").json()["error"].startswith("factuals.3.savings")  # dan cannot be read


def test_bodies_have_a_limit(client):
    """Said in advance or found on the way."""
    long = b" " * (LARGEST_BODY + 1)
    assert client.post(f"/{SECRET}/data/answer/0", content=long, headers=JSON).status_code == 413
    pieces = (b" " * 2**16 for _ in range(LARGEST_BODY // 2**16 + 2))
    assert client.post(f"/{SECRET}/data/answer/0", content=pieces, headers=JSON).status_code == 413


def test_labels_are_text(client):
    """In pages, parts, and letters, in both languages; JSON in attributes too."""
    only_job = {"preferences": {"actionable": ["job"]}}
    texts = [
        client.get(f"/{SECRET}/{lang}/{page}/0").text
        for lang in ("en", "de")
        for page in ("person", "ways", "interview")
    ]
    texts += [
        ask(client, f"{lang}/part/{task}/0", only_job).text
        for lang in ("en", "de")
        for task in ("answer", "why", "ways", "interview")
    ]
    texts.append(client.get(f"/{SECRET}/en/letter/0", params={"p": json.dumps(only_job["preferences"])}).text)
    assert any("alert(" in text for text in texts)
    for text in texts:
        assert "<b onclick" not in text and "</script><b" not in text
        assert HOSTILE not in text


# ---- Answers


def test_the_answer_is_the_packages_own(client):
    """Whatever limits are sent."""
    for own in (
        {},
        {"weights": {"savings": 9.0}},
        {"ranges": {"savings": [0, 2]}},
        {"actionable": ["savings", "years"]},
    ):
        preferences = {"actionable": ["savings", "years", "job"], **own}
        found = ask(client, "data/answer/0", {"preferences": preferences}).json()
        population = people()
        known = Known(population.template.features)
        read = validate(StatedPreferences, preferences, known=known)
        expected = solve(replace(population[0], preferences=read))
        assert (found["status"], found["cost"], found["action"]) == (
            expected.status.value,
            expected.cost,
            expected.action,
        )


def test_what_earlier_answers_settle_is_what_a_search_finds():
    """Narrower limits take the earlier answer only where a search gives the same; wider ones never do."""
    start, rng, settled = people()[0], np.random.default_rng(1), list[bool]()
    known = EarlierAnswers()
    for _ in range(60):
        levers = [name for name in ("savings", "years", "job") if rng.random() < 0.8]
        ranges = {"savings": (0.0, float(rng.integers(1, 10)))} if rng.random() < 0.8 else {}
        own = Preferences(tuple(levers), {"job": 2.0} if rng.random() < 0.3 else {}, ranges)
        instance = replace(start, preferences=own)
        found, expected = known.about(instance), solve(instance)
        settled.append(found is not None)
        if found is None:
            known.keep(instance, expected)
        else:
            assert found.status is expected.status
            assert found.cost == pytest.approx(expected.cost, rel=1e-6, abs=1e-9)
    assert 10 < sum(settled) < 50
    assert EarlierAnswers().about(start) is None


def test_data_are_in_the_formats_of_the_files(client):
    """Results, why, choices, interviews."""
    assert ask(client, "data/answer/0").json()["format"] == "milp-recourse/result-1"
    why = ask(client, "data/why/2").json()
    assert why["format"] == "milp-recourse/why-1"
    assert why["status"] == "infeasible"
    assert ask(client, "data/ways/0").json()["choices"]["format"] == "milp-recourse/choices-1"
    assert ask(client, "data/interview/0").json()["interview"]["format"] == "milp-recourse/interview-1"


def test_the_certificate_is_verified_on_the_spot(client):
    """The checker's own line, and the command; the two files say the same to it elsewhere."""
    checked = ask(client, "data/verify/0").json()
    assert checked["verified"] and checked["line"].startswith("VERIFIED optimal")
    certificate = client.get(f"/{SECRET}/en/certificate/0")
    assert certificate.json()["claim"] == "optimal"
    assert "attachment" in certificate.headers["content-disposition"]
    assert client.get(f"/{SECRET}/en/problem/0").json()["format"] == "milp-recourse/instance-1"
    assert ask(client, "data/verify/2").json()["line"] == "VERIFIED infeasible"


def test_people_without_a_way_are_told_why(client):
    """The table has everybody at once, in order, also whom it could not read."""
    first = ask(client, "en/part/people/0").text
    assert [name in first for name in (">ann<", ">bob<", ">cleo<", ">dan<")] == [True] * 4
    until = time.monotonic() + 60
    while not (found := ask(client, "data/people/0").json())["complete"] and time.monotonic() < until:
        time.sleep(0.2)
    assert [found["people"][k].get("status", "error") for k in "0123"] == [
        "optimal",
        "optimal",
        "infeasible",
        "error",
    ]
    page = ask(client, "en/part/people/0").text
    assert page.count("<tr") == 4 and "cleo" in page and "stays as it is" in page
    charts = page.partition('class="plots"')[2]
    assert charts.count("<h2>") == 3 and ", of 1 without a way" in charts and "stays as it is" in charts


def test_pinned_answers_say_their_limits_and_their_size(client):
    """Measured by the weights at the start, so that answers with other weights compare."""
    start = solve(people()[0])
    assert "the smallest change" in ask(client, "en/part/pinned/0").text
    own = {"actionable": ["years", "job"], "weights": {"years": 9.0}, "ranges": {"years": [0, 9]}}
    text = ask(client, "en/part/pinned/0", {"preferences": own}).text
    for words in ("stays as it is", "years between 0 and 9", "years: very hard"):
        assert words in text
    action = ask(client, "data/answer/0", {"preferences": own}).json()["action"]
    template = people()[0]
    times = float(template.cost_of(template.numbers(action))) / start.cost
    assert f"{round(times, 2):g} times as much" in text


def test_values_have_the_signs_of_the_language():
    """Also beside the controls."""
    one = replace(people()[0], factual={**people()[0].factual, "savings": 1.5})
    views = Views(Population.of(one, [one.factual], [one.preferences], {}), "")
    for language, now in (("en", "now 1.5"), ("de", "jetzt 1,5")):
        assert now in views.page("person", language, 0, one, "ann", OwnWords())


def test_what_is_saved_is_read_again(client):
    """Preferences and an interview; another person's interview is refused."""
    own = {"actionable": ["years"], "weights": {"years": 2.0}, "ranges": {"years": [0.0, 9.0]}}
    saved = client.get(f"/{SECRET}/en/preferences/0", params={"p": json.dumps(own)}).json()
    assert ask(client, "data/open/0", saved).json() == {"preferences": own}
    question = ask(client, "data/interview/0").json()["interview"]
    assert question["answers"] == []
    interview = client.get(f"/{SECRET}/en/saved/0", params={"answers": "left"}).json()
    assert ask(client, "data/open/0", interview).json()["answers"] == ["left"]
    assert "factual" in ask(client, "data/open/1", interview).json()["error"]


# ---- Nobody harms another


def test_fifty_at_once_are_all_answered(client):
    """Of many tabs; of one tab the last question is answered, and earlier ones may be dropped."""

    def one(k, tab):
        own = {"actionable": ["savings", "years", "job"], "ranges": {"savings": [0, 2 + k / 10]}}
        return ask(client, "data/answer/0", {"tab": tab(k), "preferences": own})

    with ThreadPoolExecutor(50) as pool:
        many = list(pool.map(lambda k: one(k, lambda k: f"tab{k}"), range(25)))
        same = list(pool.map(lambda k: one(k, lambda k: "mine"), range(25, 50)))
    assert {found.status_code for found in many} <= {200, 503}
    assert {found.status_code for found in same} <= {200, 409, 503}
    assert one(99, lambda k: "mine").json()["status"] == "optimal"


def test_two_browsers_do_not_mix(client):
    """The limits are in each page's own address; nothing of them is kept here."""
    locked = {"actionable": ["years"]}
    first = ask(client, "data/answer/0", {"tab": "a", "preferences": locked}).json()
    second = ask(client, "data/answer/0", {"tab": "b"}).json()
    assert set(first["action"]) == {"years"}
    assert set(second["action"]) != {"years"}
    assert "set-cookie" not in client.get(f"/{SECRET}/en/person/0").headers


def test_a_killed_process_costs_no_answer():
    """The next question starts another, also where nobody has noticed yet that the process is gone."""
    app = studio()
    with visited(app) as own:
        assert ask(own, "data/answer/0").status_code == 200
        routes = app.app.routes
        office = next(
            route.endpoint.__self__ for route in routes if hasattr(route.endpoint, "__self__")
        ).office
        for process in office.quick.processes:
            if process.pid is not None:
                os.kill(process.pid, signal.SIGKILL)
        limits = {"preferences": {"actionable": ["years"]}}
        assert ask(own, "data/answer/0", limits).status_code == 200


def test_a_second_server_on_the_port_is_one_line(capsys):
    """The first one goes on; an impossible port is bad input; Ctrl-C ends it with nothing said."""
    file = str(instance_files("smoke")[0])
    command = [sys.executable, "-m", "milp_recourse", "studio", file, "--no-browser"]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = first.stdout.readline().strip()
        port = address.split(":")[2].split("/")[0]
        second = subprocess.run([*command, "--port", port], check=False, capture_output=True, text=True)
        assert (second.returncode, second.stdout) == (1, "")
        assert second.stderr.startswith(f"milp-recourse: port {port}:") and second.stderr.count("\n") == 1
        assert main(["studio", file, "--no-browser", "--port", "99999"]) == 2
        assert "allowed" in capsys.readouterr().err
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert answer.status == 200
    finally:
        first.send_signal(signal.SIGINT)
        said = first.communicate(timeout=30)
    assert (first.returncode, *said) == (0, "", "")
