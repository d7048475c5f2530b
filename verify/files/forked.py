"""Check one certificate on several processes: where one is free, it gets the second half of a split."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from verify.files.certificate import Nodes
from verify.kernel import certificate as kernel
from verify.kernel.checks import Rejected

LEAST = 24
"""The fewest nodes that both halves of a split have if one is handed over."""

CHILDREN = {"a": 2, "s": 2, "n": 2, "c": 2, "t": 1, "m": 1}
"""How many children nodes of a kind have, others than leaves and ``["o"]``."""

FAILED, REFUSED = 1, 3
"""The exit codes of a process that could not check its part, and of one that rejects it."""


class Spare:
    """How many more processes may work: a pipe with a byte for each, which they all share."""

    def __init__(self, jobs: int) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        self.give(jobs - 1)

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

    A process that gets a part is a copy of this one at the split, so that nothing is read twice. Its exit
    code says whether the part is proven. Of several reasons to reject the tree the first one is given.
    """

    def __init__(self, spare: Spare, *given: Any) -> None:
        super().__init__(*given)
        self.spare, self.others = (
            spare,
            list[tuple[int, int]](),
        )  # processes, and the pipes that they write to

    def check(self, nodes: Any) -> None:
        """As that of the kernel."""
        self.nodes, self.now, self.sizes = nodes, 0, sizes(nodes)
        if not self.sizes:
            super().check(nodes)
        elif reason := self._first_reason(0, len(nodes)):
            nodes.reading.place = ""  # the reason names its place
            raise Rejected(reason[1])

    def _first_reason(self, first: int, end: int) -> tuple[int, str] | None:
        """Check a subtree, whose region is :attr:`region` now: the first node that is rejected, and why.

        Parts of it may be handed over.
        """
        found, self.behind = list[tuple[int, str]](), dict[int, int]()
        try:
            try:
                with self.nodes.reading.placed():
                    super().check(self._visited(first, end))
            except Rejected as reason:
                found.append((self.now, str(reason)))
            self.spare.give()  # while this process waits, another may work
            while self.others:
                found += _ended(*self.others.pop())
        except BaseException:
            for process, _ in self.others:
                os.kill(process, signal.SIGTERM)
            raise
        return min(found, default=None)

    def _visited(self, first: int, end: int) -> Iterator[Any]:
        """The nodes of a subtree without those of parts that were handed over."""
        self.now = first
        while self.now < end:
            yield self.nodes[self.now]
            self.now += 1
            while self.now in self.behind:
                self.now = self.behind.pop(self.now)

    def split(self, node: Any) -> tuple[Any, Any, Any, Sequence[Any]] | None:
        """As that of the kernel, with the first child alone where the second is handed over."""
        found = super().split(node)
        if not found or len(found[3]) != 2 or not self.sizes:
            return found
        part, which, before, children = found
        left = self.now + 1
        right = left + self.sizes[left]
        end = right + self.sizes[right]
        if min(self.sizes[left], self.sizes[right]) < LEAST or not self.spare.take():
            return found
        reading, writing = os.pipe()
        if process := os.fork():
            os.close(writing)
            self.others.append((process, reading))
            self.behind[right] = end
            return part, which, before, children[:1]
        part[which] = children[1]
        self._as_other(right, end, writing)

    def _as_other(self, first: int, end: int, writing: int) -> NoReturn:
        """Check the nodes of a subtree as the whole task of this process, and end it."""
        code = FAILED
        try:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            self.others = []
            reason = self._first_reason(first, end)
            code = REFUSED if reason else 0
            if reason:
                os.write(writing, f"{reason[0]} {reason[1]}"[:4000].encode(errors="replace"))
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


def _ended(process: int, reading: int) -> list[tuple[int, str]]:
    """Wait for the end of a process; why it rejects its part: the node and the reason, or nothing."""
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with os.fdopen(reading, "rb") as stream:
        node, _, reason = stream.read().decode().partition(" ")
    if code not in (0, REFUSED):
        return [(-1, f"the check failed: a process that checked a part of it ended with code {code}")]
    return [(int(node), reason)] if code else []


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
