"""Check one certificate on several processes: where one is free, it gets the smaller half of a split."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from typing import Any, NoReturn

from verify.files.certificate import Nodes
from verify.kernel import certificate as kernel
from verify.kernel.checks import Rejected

LEAST = 24
"""The fewest nodes that both halves of a split have if one is handed over."""

CHILDREN = {"a": 2, "s": 2, "n": 2, "c": 2, "t": 1, "m": 1}
"""How many children nodes of a kind have, others than leaves and ``["o"]``."""

PAUSE = 0.05
"""How many seconds a process works before it hands over another part: copying a large one takes a while."""

MOST = 1024
"""The most processes: the pipe that counts them holds so many bytes."""

PROVEN = "proven"
"""What a process says of a part that is proven."""


class Spare:
    """How many more processes may work: a pipe with a byte for each, which they all share."""

    def __init__(self, jobs: int) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        self.give(min(jobs, MOST) - 1)
        self.latest = -inf  # when this process handed over a part

    def take(self) -> bool:
        """Whether one more may work, which the caller then starts."""
        try:
            return bool(os.read(self.reading, 1))
        except BlockingIOError:
            return False

    def give(self, count: int = 1) -> None:
        """Say that so many more may work."""
        os.write(self.writing, bytes(count))

    def close(self) -> None:
        """Close the pipe."""
        os.close(self.reading)
        os.close(self.writing)


class Tree(kernel.Tree):
    """Checks a tree as the kernel does, but for the parts that it hands over to other processes.

    A process that gets a part is a copy of this one at the split, so that nothing is read twice. It writes
    that the part is proven, or why not. Of several reasons to reject the tree the first one is given.

    Of two halves the larger one is kept. So of processes of which each waits for the next one there are no
    more than the number of nodes has binary digits.
    """

    def __init__(self, spare: Spare, *given: Any) -> None:
        super().__init__(*given)
        self.spare, self.others = spare, dict[int, int]()  # processes, and the pipes that they write to

    def check(self, nodes: Any) -> None:
        """As that of the kernel."""
        self.nodes, self.now, self.sizes = nodes, 0, sizes(nodes)
        if not self.sizes:
            super().check(nodes)
            return
        reason = self._first_reason(0, len(nodes))
        self.spare.take()  # this process works again
        if reason:
            nodes.reading.place = ""  # the reason names its place
            raise Rejected(reason[1])

    def _first_reason(self, first: int, end: int) -> tuple[int, str] | None:
        """Check a subtree, whose region is :attr:`region` now: the first node that is rejected, and why.

        Parts of it may be handed over.
        """
        self.found, self.behind = list[tuple[int, str]](), dict[int, int]()
        try:
            try:
                with self.nodes.reading.placed():
                    super().check(self._visited(first, end))
            except Rejected as reason:
                self.found.append((self.now, str(reason)))
            self.spare.give()  # while this process waits, another may work
            self._ended()
        except BaseException:
            for process in self.others:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)
            raise
        return min(self.found, default=None)

    def _ended(self, options: int = 0) -> None:
        """Wait for the processes that got parts, and list why they reject them.

        With the option ``os.WNOHANG`` only those that have ended count.
        """
        for process, reading in [*self.others.items()]:
            try:
                which, status = os.waitpid(process, options)
            except ChildProcessError:  # it has ended, which nobody is told where SIGCHLD is ignored
                which, status = process, 0
            if not which:
                continue
            del self.others[process]
            with open(reading, "rb", buffering=0) as stream:
                said = (stream.read(4096) or b"").decode(errors="ignore")
            node, _, reason = said.partition(" ")
            if said == PROVEN:
                continue
            if not reason:
                code = os.waitstatus_to_exitcode(status)
                node, reason = "-1", "the check failed: a process that checked a part of it ended"
                reason += f" with code {code}"
            self.found.append((int(node), reason))

    def _visited(self, first: int, end: int) -> Iterator[Any]:
        """The nodes of a subtree without those of parts that were handed over."""
        self.now = first
        while self.now < end:
            yield self.nodes[self.now]
            self.now += 1
            while self.now in self.behind:
                self.now = self.behind.pop(self.now)

    def split(self, node: Any) -> tuple[Any, Any, Any, Sequence[Any]] | None:
        """As that of the kernel, with one child alone where the other one is handed over."""
        found = super().split(node)
        if not found or len(found[3]) != 2 or not self.sizes:
            return found
        part, which, before, children = found
        left = self.now + 1
        right = left + self.sizes[left]
        handed = int(self.sizes[left] >= self.sizes[right])  # which child
        first, end = [(left, right), (right, right + self.sizes[right])][handed]
        if end - first < LEAST or not self._may_hand_over():
            return found
        pipe, parent = tuple[int, ...](), os.getpid()
        try:
            pipe = os.pipe()
            process = os.fork()
        except OSError:  # this process does it alone
            for one in pipe:
                os.close(one)
            return found
        if process:
            os.close(pipe[1])
            os.set_blocking(pipe[0], False)  # processes of a process that died have the other end, too
            self.others[process] = pipe[0]
            self.behind[first] = end
            return part, which, before, [children[1 - handed]]
        part[which] = children[handed]
        self._as_other(first, end, pipe[1], parent)

    def _may_hand_over(self) -> bool:
        """Whether another process may start now."""
        if time.monotonic() < self.spare.latest + PAUSE or not self.spare.take():
            return False
        self._ended(os.WNOHANG)
        self.spare.latest = time.monotonic()
        return True

    def _as_other(self, first: int, end: int, writing: int, parent: int) -> NoReturn:
        """Check the nodes of a subtree as the whole task of this process, and end it."""
        code = 1

        def look(*_: Any) -> None:
            if os.getppid() != parent:  # it was killed, and nobody needs this
                raise KeyboardInterrupt

        try:
            self.others = {}
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            signal.signal(signal.SIGALRM, look)
            signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)
            reason = self._first_reason(first, end)
            said = f"{reason[0]} {reason[1]}" if reason else PROVEN
            os.write(writing, said.encode(errors="replace")[:4000])
            code = 0
        finally:
            os._exit(code)


@contextmanager
def on_processes(jobs: int) -> Iterator[dict[str, Any]]:
    """What :func:`verify.kernel.certificate.check` is given besides, so that so many processes may work."""
    if jobs == 1 or not hasattr(os, "fork"):
        yield {}
        return
    spare = Spare(jobs)
    try:
        yield {"tree": lambda _, moved, ways, *given: Tree(spare, ways(moved), *given)}
    finally:
        spare.close()


def sizes(nodes: Nodes) -> list[int]:
    """How many nodes the subtree of every node has; nothing where that takes more than the nodes' kinds."""
    found, below = [0] * len(nodes), list[int]()
    for k in range(len(nodes) - 1, -1, -1):
        node = nodes.listed[k]
        kind = node[0] if isinstance(node, list) and node and isinstance(node[0], str) else "o"
        children = CHILDREN.get(kind, 0)
        if kind == "o" or len(below) < children:
            return []
        found[k] = 1 + sum(below.pop() for _ in range(children))
        below.append(found[k])
    return found if len(below) == 1 else []
