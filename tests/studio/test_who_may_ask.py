"""Whom the studio's server lets in: the page that was given the address, and nobody else."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Any

import pytest

from milp_recourse.studio.solver_process import Ended, Progress, Solvers
from milp_recourse.studio.studio_says import WORDS
from tests.studio.samples import HOME, PORT, SECRET, ask, studio

PATHS = (
    *("/", "/en/", f"/{SECRET[:-1]}/en/", f"/{SECRET}x/en/", f"//{SECRET}/en/", f"/{SECRET.upper()}/en/"),
    *("/static/studio.js", "/../etc/passwd", "/%2e%2e/", "/\u00e9/", f"/{SECRET}/en/person/{'9' * 5000}"),
)


@pytest.mark.parametrize("path", PATHS)
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


def test_both_languages_say_everything():
    """What is filled in is the same, too."""
    own, other = WORDS["en"], WORDS["de"]
    assert own.keys() == other.keys()
    for key, text in own.items():
        assert set(re.findall(r"{\w+}", text)) == set(re.findall(r"{\w+}", other[key])), key


def test_a_request_for_no_path_is_refused() -> None:
    """``OPTIONS *`` has none, and ended in a traceback on the terminal."""
    headers = [(b"host", f"127.0.0.1:{PORT}".encode())]
    refusal = studio()._refusal({"type": "http", "method": "OPTIONS", "path": "*", "headers": headers})
    assert refusal is not None and refusal.status_code == 404


def test_a_question_in_hand_when_the_studio_ends_starts_no_other_process():
    """Its process is ended under it, and it would be asked again."""

    async def ended() -> int | None:
        solvers = Solvers(b"\x80\x04N.", 1)  # None for the people: the process waits for nothing else
        asked = asyncio.ensure_future(solvers.ask(Progress(), "solve", 0, None))
        while solvers.processes[0].pid is None:
            await asyncio.sleep(0.01)
        await solvers.end()
        with pytest.raises(Ended):
            await asked
        return solvers.processes[0].pid

    assert asyncio.run(ended()) is None


@pytest.mark.parametrize("by", ["cancelled", "cancelled, after an earlier process had died", "ended"])
def test_a_process_is_not_left_behind_that_was_starting(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked is cancelled, or the studio ends, while the process is being made."""
    made = []
    create = asyncio.create_subprocess_exec

    async def slowly(*command: str, **more: Any) -> Any:
        made.append(await create(*command, **more))
        await asyncio.sleep(0.2)
        return made[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)

    async def left() -> list[int | None]:
        solvers = Solvers(b"\x80\x04N.", 1)
        if "died" in by:
            solvers.processes[0]._process = earlier = await create(sys.executable, "-c", "")
            await earlier.wait()
        asked = asyncio.ensure_future(solvers.ask(Progress(), "solve", 0, None))
        while not made:
            await asyncio.sleep(0.01)
        if by != "ended":
            asked.cancel()
        else:
            await solvers.end()
        with pytest.raises(asyncio.CancelledError if by != "ended" else Ended):
            await asked
        return [process.returncode for process in made]

    assert asyncio.run(left()) == [-9]
