"""Where the kernel's arrays live: numpy, or torch on a CPU or GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from milp_recourse.errors import BackendUnavailable


class Device:
    """Moves arrays between numpy and the kernel's library.

    Parameters
    ----------
    name
        ``numpy``, ``torch`` (its CPU) or ``torch:<device>``, such as ``torch:cuda``.

    Raises
    ------
    BackendUnavailable
        torch, or the device, is not there; the message says so.
    """

    def __init__(self, name: str = "numpy") -> None:
        self.name = name
        library, _, place = name.partition(":")
        self._torch: Any = None
        if library == "torch":
            try:
                import torch
            except ImportError:
                raise BackendUnavailable(
                    "device 'torch': torch is not installed; pip install torch"
                ) from None
            self._torch, self._place = torch, place or "cpu"
            try:
                torch.zeros(1, dtype=torch.float64, device=self._place)
            except (RuntimeError, AssertionError) as error:
                reason = str(error).splitlines()[0]
                raise BackendUnavailable(f"device {name!r} cannot be used: {reason}") from None
        elif name != "numpy":
            raise BackendUnavailable(f"device: got {name!r}; allowed: numpy, torch, torch:<device>")

    def put(self, array: np.ndarray) -> Any:
        """A numpy array in the kernel's library."""
        if self._torch is None:
            return array
        return self._torch.tensor(array, device=self._place)

    def get(self, array: Any) -> np.ndarray:
        """A kernel array in numpy."""
        return array if self._torch is None else array.cpu().numpy()
