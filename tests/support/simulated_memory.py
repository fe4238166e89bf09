"""Memory of the simulated GPU that GAPLESS_DEVICE_PLUGIN names. It faults if the CPU touches it."""

import ctypes
import os

import numpy as np

_plugin = ctypes.CDLL(os.environ["GAPLESS_DEVICE_PLUGIN"])
_plugin.simulated_device_malloc.restype = ctypes.c_void_p
_plugin.simulated_device_malloc.argtypes = [ctypes.c_int, ctypes.c_size_t]
_plugin.simulated_device_free.argtypes = [ctypes.c_void_p]
for _copy in (_plugin.simulated_device_read, _plugin.simulated_device_write):
    _copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class SimulatedMemory:
    """So many bytes, freed with the object."""

    def __init__(self, length: int, device: int = 0):
        self.length = length
        self.address = _plugin.simulated_device_malloc(device, max(length, 1))
        if not self.address:
            raise MemoryError

    def __del__(self):
        _plugin.simulated_device_free(self.address)

    def read(self) -> np.ndarray:
        host = np.empty(self.length, "B")
        assert _plugin.simulated_device_read(host.ctypes.data, self.address, self.length) == 0
        return host

    def write(self, host: np.ndarray) -> None:
        """Replaces all bytes by those of a contiguous array."""
        assert _plugin.simulated_device_write(self.address, host.ctypes.data, self.length) == 0
