"""Arrays on their way to a device and back."""

from __future__ import annotations

import numpy as np
import pytest

from milp_recourse.engine.devices import Device
from milp_recourse.errors import BackendUnavailable


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_there_and_back(name: str) -> None:
    """Also arrays that cannot be written to, as a network's weights are, and transposed ones."""
    if name == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
    device = Device(name)
    array = np.arange(6.0).reshape(2, 3)
    fixed = array.copy()
    fixed.setflags(write=False)
    for given in (array, fixed, array.T):
        np.testing.assert_array_equal(device.get(device.put(given)), given)


def test_unknown_devices_are_refused() -> None:
    """The message says what is allowed."""
    with pytest.raises(BackendUnavailable, match="allowed: numpy, torch"):
        Device("abacus")
    pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(BackendUnavailable, match="cannot be used"):
        Device("torch:abacus")
