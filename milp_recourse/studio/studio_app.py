"""The studio's pages and data: what each address answers."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from gzip import decompress
from pathlib import Path
from typing import Annotated, Any

import cloudpickle
from pydantic import Field, StringConstraints
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from milp_recourse.certificates import reason_for_none
from milp_recourse.errors import BadInput, MachineFailed, RecourseError, Unsupported
from milp_recourse.formats import instance_from_dict
from milp_recourse.formats.schema import check_scale
from milp_recourse.formats.schema_answers import InterviewModel
from milp_recourse.formats.schema_features import StatedPreferences, preferences_to_dict
from milp_recourse.formats.stated import Known, Strict, validate
from milp_recourse.formats.strict_json import parse_json
from milp_recourse.formats.write import instance_to_dict
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result
from milp_recourse.reports.letters import letter
from milp_recourse.reports.own_words import OwnWords
from milp_recourse.reports.view import Person
from milp_recourse.studio.check_on_the_spot import checked_by_verify
from milp_recourse.studio.requests_guard import LARGEST_BODY, Guard
from milp_recourse.studio.solver_process import Busy, Progress, Solvers, Superseded
from milp_recourse.studio.studio_says import LANGUAGES
from milp_recourse.studio.studio_tasks import Answer, Pinned, unsettled
from milp_recourse.studio.studio_views import MOST_ROWS, Views, data_of

MOST_TABS, MOST_KEPT, LARGEST_KEPT = 64, 128, 2**24
"""Tabs whose last question is remembered; answers kept; the bytes of the largest certificate kept."""

WARMING = "warming"
"""The tab of the first question, which nobody asked."""

LETTER_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

Confirm = Callable[[int, Result], tuple[Result, bool | None]]
"""Of somebody's result, what is left of it after the model's own ``predict`` was asked, and whether that
confirms the action."""

Answers = Annotated[list[Annotated[str, StringConstraints(max_length=20)]], Field(max_length=60)]


class QuestionModel(Strict):
    """What a page sends with a question."""

    preferences: dict[str, Any] | None = None
    tab: Annotated[str, StringConstraints(max_length=40)] = ""
    answers: Answers = Field(default_factory=list)
    budget: Annotated[int, Field(ge=1, le=40)] = 10


@dataclass(frozen=True)
class Question:
    """A question about one person, checked."""

    index: int
    instance: Instance
    more: dict[str, Any]
    tab: str

    def key(self, task: str) -> str:
        """Equal questions have equal answers."""
        own = preferences_to_dict(self.instance.preferences, self.instance.features)
        return json.dumps([task, self.index, own, self.more])


class Office:
    """The people, the processes that solve for them, and what was answered.

    Searches for the answer beside the sliders have processes of their own, so that nothing longer delays
    them; the table of people has one while it is made.
    """

    def __init__(self, people: Population, words: OwnWords, confirm: Confirm | None) -> None:
        self.people, self.words, self.confirm = people, words, confirm
        pickled = cloudpickle.dumps(people)
        self.quick, self.slow, self.table = (Solvers(pickled, most) for most in (3, 2, 1))
        self.rows: dict[int, Any] = {}
        self._asked: OrderedDict[tuple[str, str], Progress] = OrderedDict()
        self._known: OrderedDict[str, Any] = OrderedDict()
        self._filling: asyncio.Task[None] | None = None

    def question(self, index: int, model: QuestionModel) -> Question:
        """A question, if it is about somebody here and its preferences keep to the format.

        Raises
        ------
        BadInput
            It is not.
        """
        if not 0 <= index < len(self.people):
            raise BadInput("index", index, f"a number from 0 to {len(self.people) - 1}")
        instance = self.people[index]
        if model.preferences is not None:
            own = validate(StatedPreferences, model.preferences, "preferences", Known(instance.features))
            check_scale(instance.cost, own)
            instance = replace(instance, preferences=own, reference=None)
        more = (
            {"answers": model.answers, "budget": model.budget} if model.answers or model.budget != 10 else {}
        )
        return Question(index, instance, more, model.tab)

    async def ask(self, task: str, question: Question, gone: asyncio.Future[Any] | None = None) -> Any:
        """The answer of a task; a tab's new question ends its earlier one of the same task.

        Parameters
        ----------
        gone
            Is done when nobody waits any more.
        """
        key, own = question.key(task), question.instance.preferences
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        progress = self._begin(question.tab, task)
        if gone is not None:
            gone.add_done_callback(lambda _: progress.stop.set())
        process = self.quick if task == "answer" else self.slow
        more = question.more if task == "interview" else {}
        try:
            found = await process.ask(progress, task, question.index, own, **more)
        except Superseded:
            if not progress.pressed:
                raise
            found = unsettled(question.instance)
        found = await self._confirmed(question.index, found)
        evidence = getattr(found, "evidence", None) or b""
        if not progress.stop.is_set() and len(evidence) <= LARGEST_KEPT:
            self._known[key] = found
            if len(self._known) > MOST_KEPT:
                self._known.popitem(last=False)
        return found

    async def _confirmed(self, index: int, found: Any) -> Any:
        if self.confirm is None or not isinstance(found, Answer):
            return found
        result, confirmed = await run_in_threadpool(self.confirm, index, found.result)
        told = {"status": result.status.value, "message": result.message, "confirmed": confirmed}
        person = replace(found.person, **told, lower_bound=result.lower_bound, gap=result.gap)
        return replace(found, result=result, person=person)

    def _begin(self, tab: str, task: str) -> Progress:
        for earlier in {(tab, task), (WARMING, task)} & self._asked.keys() if tab else ():
            self._asked.pop(earlier).stop.set()
        progress = self._asked[tab, task] = Progress()
        if len(self._asked) > MOST_TABS:
            self._asked.popitem(last=False)[1].stop.set()
        return progress

    def progress(self, tab: str, task: str) -> Progress | None:
        """How far a tab's question is."""
        return self._asked.get((tab, task))

    def named(self, index: int, person: Person) -> Person:
        """The person with the user's identifier and words."""
        alone = self.people.template.name if len(self.people) == 1 else None
        own = (alone or str(index)) if self.people.ids is None else self.people.ids[index]
        return self.words.of(replace(person, id=own))

    def fill(self) -> bool:
        """Begin to fill the table of people; return whether it is complete."""
        wanted = min(len(self.people), MOST_ROWS)
        if self._filling is None or (self._filling.done() and len(self.rows) < wanted):
            self._filling = asyncio.create_task(self._fill(wanted))
        return len(self.rows) >= wanted

    async def _fill(self, wanted: int) -> None:
        for index in range(wanted):
            if index not in self.rows:
                try:
                    answer, why = await self.table.ask(Progress(), "row", index, None)
                    self.rows[index] = (await self._confirmed(index, answer), why)
                except RecourseError as error:
                    self.rows[index] = str(error)
        await self.table.end()

    async def end(self) -> None:
        """End all processes."""
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.gather(self._filling, return_exceptions=True)
        for process in (self.quick, self.slow, self.table):
            await process.end()


def application(
    people: Population, words: OwnWords, secret: str, port: int, confirm: Confirm | None = None
) -> Guard:
    """The studio as an ASGI application at ``/SECRET/`` of a port of the loopback address."""
    office = Office(people, words, confirm)
    pages = Pages(office, Views(people, f"/{secret}"))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        warming = asyncio.create_task(pages.warm())
        yield
        warming.cancel()
        await asyncio.gather(warming, return_exceptions=True)
        await office.end()

    inner = Starlette(
        routes=[
            Route("/", pages.start),
            Route("/{language}/", pages.home),
            Route("/{language}/{page}/{index:int}", pages.page),
            Route("/{language}/part/{task}/{index:int}", pages.part, methods=["POST"]),
            Route("/data/open/{index:int}", pages.reopen, methods=["POST"]),
            Route("/data/{task}/{index:int}", pages.data, methods=["POST"]),
            Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        ],
        lifespan=lifespan,
        exception_handlers={
            BadInput: _line(400), Busy: _line(503), Superseded: _line(409), MachineFailed: _line(500),
            RecourseError: _line(400), Exception: _line(500),
        },
    )  # fmt: skip
    return Guard(inner, secret, frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost")))


def _line(status: int) -> Callable[[Request, Exception], Response]:
    """One line of what went wrong, without a traceback."""

    def said(_: Request, error: Exception) -> Response:
        known = isinstance(error, RecourseError)
        words = {503: "too many questions at once", 409: "stopped"}.get(status, "the studio failed")
        return JSONResponse({"error": str(error) if known else words}, status)

    return said


class Pages:
    """What each address answers."""

    def __init__(self, office: Office, views: Views) -> None:
        self.office, self.views = office, views

    async def warm(self) -> None:
        """Let the process beside the sliders load and compile what it needs."""
        first = next(k for k in range(len(self.office.people)) if k not in self.office.people.unreadable)
        with suppress(RecourseError, Superseded):
            question = self.office.question(first, QuestionModel(tab=WARMING))
            await self.office.ask("answer", question)

    def start(self, request: Request) -> Response:
        """To the pages in the browser's language."""
        wanted = request.headers.get("accept-language", "")[:2].lower()
        return RedirectResponse(f"{self.views.root}/{wanted if wanted in LANGUAGES else 'en'}/")

    async def home(self, request: Request) -> Response:
        """The table of people; of one person alone, their page."""
        language = _language(request)
        if len(self.office.people) == 1:
            return RedirectResponse(f"{self.views.root}/{language}/person/0")
        return HTMLResponse(self.views.population(language))

    async def page(self, request: Request) -> Response:
        """A page about one person, or a file of theirs."""
        language, page = _language(request), request.path_params["page"]
        question = self._of_query(request)
        if page == "letter":
            answer = await self.office.ask("answer", question)
            text = letter(self.office.named(question.index, answer.person), language=language)
            policy = {"Content-Security-Policy": LETTER_POLICY}
            return HTMLResponse(text, headers=policy)
        if page in ("certificate", "problem", "preferences", "saved"):
            return await self._file(page, question)
        if page not in ("person", "ways", "interview"):
            return JSONResponse({"error": "not found"}, 404)
        named = self.office.named(question.index, Person("", "not-reached"))
        return HTMLResponse(
            self.views.page(page, language, question.index, question.instance, named.id, self.office.words)
        )

    async def _file(self, page: str, question: Question) -> Response:
        instance = question.instance
        if page == "preferences":
            content = json.dumps(preferences_to_dict(instance.preferences, instance.features), indent=2)
        elif page == "problem":
            content = json.dumps(instance_to_dict(instance))
        elif page == "saved":
            document = (await self.office.ask("interview", question)).document
            if document is None:
                raise Unsupported("a model that is only asked cannot be written into a file")
            content = json.dumps(document, indent=2)
        else:
            result = await self.office.ask("proof", question)
            if result.evidence is None:
                return JSONResponse({"error": f"no certificate: {reason_for_none(instance, result)}"}, 404)
            content = decompress(result.evidence).decode()
        name = "interview" if page == "saved" else page
        headers = {"Content-Disposition": f'attachment; filename="{name}-{question.index}.json"'}
        return Response(content, media_type="application/json", headers=headers)

    async def part(self, request: Request) -> Response:
        """A part of a page, as HTML."""
        language, task = _language(request), request.path_params["task"]
        question, found = await self._answered(request, task)
        named = self.office.named
        return HTMLResponse(self.views.part(task, language, question.index, question.instance, found, named))

    async def data(self, request: Request) -> Response:
        """The same as JSON."""
        question, found = await self._answered(request, request.path_params["task"])
        return JSONResponse(data_of(found, question.instance))

    async def reopen(self, request: Request) -> Response:
        """What a saved file says, preferences or an interview, if it is about the people here."""
        given = parse_json(await request.body())
        index = request.path_params["index"]
        if isinstance(given, dict) and "answers" in given:
            model = validate(InterviewModel, given)
            problem = instance_from_dict(model.problem)
            own = preferences_to_dict(problem.preferences, problem.features)
            page = {"answers": [one.answer for one in model.answers], "budget": model.budget}
        else:
            own, page = given, {}
        question = self.office.question(index, validate(QuestionModel, {"preferences": own, **page}))
        if page and instance_to_dict(problem)["factual"] != instance_to_dict(question.instance)["factual"]:
            raise BadInput("problem.factual", "another person", f"the one of this page, number {index}")
        written = preferences_to_dict(question.instance.preferences, question.instance.features)
        return JSONResponse({"preferences": written, **page})

    async def _answered(self, request: Request, task: str) -> tuple[Question, Any]:
        content = parse_json(await request.body())
        question = self.office.question(request.path_params["index"], validate(QuestionModel, content))
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            return question, await self._found(task, question, gone)
        finally:
            gone.cancel()

    async def _found(self, task: str, question: Question, gone: asyncio.Future[Any]) -> Any:
        office = self.office
        if task in ("progress", "stop"):
            asked = office.progress(question.tab, "answer")
            if task == "stop" and asked is not None:
                asked.pressed = True
                asked.stop.set()
            return asked
        if task == "people":
            return {"complete": office.fill(), "rows": dict(office.rows)}
        if task == "verify":
            result = await office.ask("proof", question, gone)
            return await checked_by_verify(question.instance, result)
        if task == "pinned":
            start = office.question(question.index, QuestionModel())
            found = await office.ask("answer", question, gone)
            return Pinned(found, await office.ask("answer", start, gone))
        if task not in ("answer", "why", "ways", "interview", "region"):
            raise BadInput(
                "task", task, "answer, pinned, why, ways, interview, region, verify, people, progress, stop"
            )
        return await office.ask(task, question, gone)

    def _of_query(self, request: Request) -> Question:
        """The question that a page's address holds."""
        given = request.query_params
        if sum(map(len, given.values())) > LARGEST_BODY:
            raise BadInput("address", "too long", f"{LARGEST_BODY} characters")
        model: dict[str, Any] = {}
        if "p" in given:
            model["preferences"] = parse_json(given["p"].encode())
        if given.get("answers"):
            model["answers"] = given["answers"].split(",")
        return self.office.question(request.path_params["index"], validate(QuestionModel, model))


def _language(request: Request) -> str:
    language: str = request.path_params["language"]
    if language not in LANGUAGES:
        raise BadInput("language", language, ", ".join(LANGUAGES))
    return language


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
