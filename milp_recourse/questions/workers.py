"""Where the parts of a long run are solved: in this process, in others on this machine, or on a Dask cluster.

joblib does the work; :class:`Workers` yields the answers as they are finished.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from milp_recourse.errors import BackendUnavailable, MachineFailed
from milp_recourse.solvers.processes import safe_path

if TYPE_CHECKING:
    from distributed import Client

Part = TypeVar("Part")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Workers:
    """The number of processes, or the cluster, that solves.

    Parameters
    ----------
    jobs
        Processes on this machine; ignored with a cluster, of which all workers are used.
    scheduler
        Address of a Dask scheduler, as ``tcp://host:8786``; None for processes here.
    """

    jobs: int = 1
    scheduler: str | None = None

    @property
    def alone(self) -> bool:
        """Whether this process does everything itself."""
        return self.jobs == 1 and self.scheduler is None

    def map(
        self, work: Callable[[Part], Answer], parts: Iterable[Part], in_order: bool = False
    ) -> Iterator[Answer]:
        """Run ``work`` on every part; yield each answer as soon as it is finished, in any order, or, with
        ``in_order``, in that of the parts.

        Parts are taken from the iterable only as they are needed, at most two per worker at a time.

        Raises
        ------
        BackendUnavailable
            Dask is not installed, or the scheduler does not answer.
        MachineFailed
            A process died.
        """
        from joblib import Parallel, delayed, parallel_config

        with ExitStack() as stack:
            stack.enter_context(safe_path())
            if self.scheduler is not None:
                client = stack.enter_context(_connect(self.scheduler))
                stack.enter_context(
                    parallel_config(backend="dask", client=client, wait_for_workers_timeout=30)
                )
                jobs = -1
            else:
                jobs = self.jobs
            order = "generator" if in_order else "generator_unordered"
            parallel = Parallel(n_jobs=jobs, return_as=order, batch_size=1, pre_dispatch="2*n_jobs")
            try:
                yield from parallel(delayed(work)(part) for part in parts)
            except BrokenExecutor as error:
                first = " ".join(str(error).split())
                raise MachineFailed(f"a process of --jobs died, of memory perhaps: {first}") from None


def _connect(scheduler: str) -> Client:
    """A client of the cluster."""
    try:
        from distributed import Client
    except ImportError:
        raise BackendUnavailable(
            "--parallel dask: not installed; pip install 'milp-recourse[dask]'"
        ) from None
    try:
        return Client(scheduler, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise BackendUnavailable(f"--scheduler: {scheduler} does not answer: {error}") from None
