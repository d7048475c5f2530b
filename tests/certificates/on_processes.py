"""Check the certificates of this folder by four processes that share every part they can.

``python -m tests.certificates.on_processes accepted|rejected [dying]`` writes for each certificate its line
and how many processes were started; ``dying``: they end before they have checked anything. It is a command,
because a test's own process is large, so that each copy takes a while.
"""

import json
import os
import signal
import sys
from pathlib import Path

from verify.__main__ import examine
from verify.files import forked

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def main(kind: str, *how: str) -> None:
    """Write {name: [line, processes]}."""
    forked.LEAST, forked.PAUSE, fork, started, found = 1, 0.0, os.fork, list[int](), {}
    os.fork = lambda: started.append(1) or fork()  # type: ignore[assignment]
    if how:
        forked.Tree._as_other = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign,assignment]
    for name, entry in json.loads((HERE / "index.json").read_text(encoding="utf-8"))[kind].items():
        instance, before = entry["instance"] if kind == "rejected" else entry, len(started)
        line = examine(HERE / kind / name, ROOT / instance, 60, jobs=4).line
        found[name] = line, len(started) - before
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
