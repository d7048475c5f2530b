"""The studio's server: who may ask, what is refused, and that answers are those of the package."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from milp_recourse.formats.applicant_json import build_preferences
from milp_recourse.formats.schema import PreferencesModel
from milp_recourse.questions.solve import solve
from milp_recourse.studio.requests_guard import LARGEST_BODY
from tests.helpers.page_samples import HOSTILE
from tests.studio.samples import HOME, PORT, SECRET, people, studio, visited

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def client():
    with visited() as found:
        yield found


def ask(client, path, content=None, **headers):
    return client.post(f"/{SECRET}/{path}", content=json.dumps(content or {}), headers={**JSON, **headers})


# ---- Who may ask


@pytest.mark.parametrize("path", ["/", "/en/", f"/{SECRET[:-1]}/en/", f"/{SECRET}x/en/", f"//{SECRET}/en/", "/static/studio.js",
                                  f"/{SECRET.upper()}/en/", "/../etc/passwd", "/%2e%2e/", "/\u00e9/"])  # fmt: skip
def test_without_the_secret_there_is_nothing(client, path):
    """No page, no file, and no word of what is missing."""
    found = client.get(path)
    assert (found.status_code, found.text) == (404, "not found")


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"[::1]:{PORT}"]
)
def test_another_name_that_leads_here_is_refused(client, host):
    """So that a name server cannot make a foreign page this page's own (DNS rebinding)."""
    assert client.get(f"/{SECRET}/en/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"http://127.0.0.1:{PORT + 1}"},
    {"Origin": f"https://127.0.0.1:{PORT}"}, {"Origin": ""}, {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"}, {"Origin": HOME, "Sec-Fetch-Site": "cross-site"},
])  # fmt: skip
def test_other_origins_are_refused_even_with_the_secret(client, headers):
    """Reading and asking alike."""
    assert ask(client, "data/answer/0", **headers).status_code == 403
    assert client.get(f"/{SECRET}/en/", headers=headers).status_code == 403


def test_the_own_page_may_ask(client):
    """As a browser asks."""
    own = {"Origin": HOME, "Sec-Fetch-Site": "same-origin"}
    assert ask(client, "data/answer/0", **own).status_code == 200


def test_forms_of_other_pages_cannot_post(client):
    """A page elsewhere can send these without being asked by the browser first."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        found = client.post(f"/{SECRET}/data/answer/0", content="{}", headers={"Content-Type": kind})
        assert found.status_code == 415
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, f"/{SECRET}/data/answer/0").status_code == 405


def test_every_response_forbids_foreign_content(client):
    """Also errors; the letter brings a policy of its own, which allows its style and nothing else."""
    for path in ("", "en/", "en/person/0", "static/studio.css", "nowhere", "en/letter/0"):
        policy = client.get(f"/{SECRET}/{path}", follow_redirects=False).headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert ("unsafe" in policy) == (path == "en/letter/0")
    assert "content-security-policy" in client.get("/").headers


# ---- What may be asked


@pytest.mark.parametrize("path", [
    "static/../studio_app.py", "static/..%2fstudio_app.py", "static//etc/passwd", "static/%2e%2e/%2e%2e/pyproject.toml",
    "en/person/../../../etc/passwd", "en/etc/0", "en/person/-1", "en/person/x", "fr/person/0", "en/person/99999999999999999999",
])  # fmt: skip
def test_no_file_but_the_studios_own(client, path):
    """Neither the package's sources nor the machine's files."""
    found = client.get(f"/{SECRET}/{path}")
    assert found.status_code in (400, 404)
    assert "root:" not in found.text and "import" not in found.text


BAD = [
    "", "{", "[]", "1", "null", '"x"', "NaN", '{"a": 1}', '{"preferences": 3}', '{"preferences": {"actionable": "x"}}',
    '{"preferences": {"actionable": ["nobody"]}}', '{"preferences": {"actionable": ["debt"]}}',
    '{"preferences": {"actionable": ["savings", "savings"]}}', '{"preferences": {"actionable": [], "x": 1}}',
    '{"preferences": {"actionable": [], "weights": {"savings": 0}}}', '{"preferences": {"actionable": [], "weights": {"savings": -1}}}',
    '{"preferences": {"actionable": [], "weights": {"savings": 1e999}}}', '{"preferences": {"actionable": [], "ranges": {"savings": [2, 1]}}}',
    '{"preferences": {"actionable": [], "ranges": {"job": [0, 1]}}}', '{"preferences": {"actionable": [], "ranges": {"savings": [1]}}}',
    '{"preferences": {"actionable": [], "conditions": [{"feature": "job", "of": "counterfactual", "in": ["x"]}]}}',
    '{"tab": 5}', '{"tab": "' + "x" * 100 + '"}', '{"answers": ["' + "x" * 100 + '"]}', '{"budget": 1e9}', '{"tab": "a", "tab": "b"}',
    "[" * 5000 + "]" * 5000, '{"preferences": {"actionable": [], "conditions": ' + '[{"not": ' * 500 + "}]" * 500 + "}}", "\\ud800", '{"tab": "\\ud800"}',
]  # fmt: skip


@pytest.mark.parametrize("task", ["answer", "why", "interview", "verify", "people"])
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
        read = build_preferences(PreferencesModel.model_validate(preferences), population.template.features)
        expected = solve(replace(population[0], preferences=read))
        assert (found["status"], found["cost"], found["action"]) == (
            expected.status.value,
            expected.cost,
            expected.action,
        )


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
    """The table has everybody, in order, also whom it could not read."""
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


def test_a_killed_process_costs_one_answer_at_most():
    """The next question starts another."""
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
        found = [ask(own, "data/answer/0", limits).status_code for _ in range(2)]
        assert found[1] == 200
