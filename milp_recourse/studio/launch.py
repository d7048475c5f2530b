"""Starts the studio's server on this machine alone, and ends it."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable
from threading import Thread

from milp_recourse.errors import BackendUnavailable, BadInput, MachineFailed
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result
from milp_recourse.reports.own_words import OwnWords

LOOPBACK = "127.0.0.1"


def studio(
    population: Population,
    words: OwnWords | None = None,
    port: int = 0,
    browser: bool = True,
    confirm: Callable[[int, Result], tuple[Result, bool | None]] | None = None,
) -> None:
    """Serve the studio until Ctrl-C; the address, with its secret, is the first line that is printed.

    Parameters
    ----------
    population
        Whom it is about.
    words
        Words and units for features.
    port
        0: any that is free.
    browser
        Whether to open the address in a browser.
    confirm
        What is left of somebody's result after the model's own ``predict`` was asked, and whether that
        confirms the action; None: it is not asked.

    Raises
    ------
    BackendUnavailable
        The extra ``studio`` is not installed.
    BadInput
        The port is no number from 0 to 65535.
    MachineFailed
        The port is taken.
    """
    try:
        import uvicorn

        from milp_recourse.studio.studio_app import application
    except ImportError as error:
        raise BackendUnavailable(
            f"studio: {error.name} is not installed; pip install 'milp-recourse[studio]'"
        ) from None
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise BadInput("port", port, "a number from 0 to 65535; 0: any that is free")
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen(128)  # who is fast waits, instead of being refused
    except OSError as error:
        listening.close()
        raise MachineFailed(f"port {port}: {error.strerror}; give another --port, or none") from None
    port, secret = listening.getsockname()[1], secrets.token_urlsafe(24)
    app = application(population, words or OwnWords(), secret, port, confirm)
    config = uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, ws="none", lifespan="on",
        limit_concurrency=200, timeout_graceful_shutdown=2,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    address = f"http://{LOOPBACK}:{port}/{secret}/"
    print(address, flush=True)
    if browser:
        webbrowser.open(address)
    try:
        while thread.is_alive():
            thread.join(0.2)
    except KeyboardInterrupt:
        server.should_exit = True
        thread.join(10)
    finally:
        listening.close()
