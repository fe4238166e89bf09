"""Stands in for CuPy where mpi4py's suite runs without a GPU: arrays in the memory of a simulated one.

Has what the suite uses, and no more. The memory faults if the CPU touches it; elements travel to the host and back with
every access.
"""

import types

import dlpackimpl  # of mpi4py's suite
import numpy as np
from simulated_memory import SimulatedMemory  # of tests/support

__version__ = "14.0.0"
cuda = types.SimpleNamespace(
    get_current_stream=lambda: types.SimpleNamespace(synchronize=lambda: None),
    runtime=types.SimpleNamespace(is_hip=False),
)


class ndarray:  # noqa: N801  (CuPy's name)
    def __init__(self, shape, dtype, places=None, memory=None):
        # An array of the host whose elements lie as these do; its contents mean nothing.
        self._places = np.empty(shape, dtype) if places is None else places
        self._memory = SimulatedMemory(self._places.nbytes) if memory is None else memory
        self.shape, self.dtype = self._places.shape, self._places.dtype
        self.size, self.itemsize = self._places.size, self._places.itemsize

    @property
    def _offset(self) -> int:
        whole = self._places
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        return self._places.ctypes.data - whole.ctypes.data

    @property
    def ctypes(self):
        return types.SimpleNamespace(data=self._memory.address + self._offset if self.size > 0 else 0)

    @property
    def __cuda_array_interface__(self):
        strides = None if self._places.flags.c_contiguous else self._places.strides
        kind = {"shape": self.shape, "typestr": self.dtype.str, "version": 3, "strides": strides}
        return {**kind, "data": (self.ctypes.data, False)}

    def __dlpack_device__(self):
        return (dlpackimpl.DLDeviceType.kDLCUDA, 0)

    def __dlpack__(self, stream=None, max_version=(0, 8), copy=None):
        if not self._places.flags.forc:
            raise BufferError("elements with gaps")
        managed = dlpackimpl.make_dl_managed_tensor(self, version=max_version[0])
        managed.dl_tensor.device.device_type = dlpackimpl.DLDeviceType.kDLCUDA
        return dlpackimpl.make_py_capsule(managed)

    def _in(self, host: np.ndarray) -> np.ndarray:
        return np.ndarray(self.shape, self.dtype, host, self._offset, self._places.strides)

    def get(self) -> np.ndarray:
        return self._in(self._memory.read())

    def __getitem__(self, key):
        places = self._places[key]
        if isinstance(places, np.ndarray) and places.base is not None:
            return ndarray(None, None, places, self._memory)
        return self.get()[key]

    def __setitem__(self, key, value):
        host = self._memory.read()
        self._in(host)[key] = _on_host(value)
        self._memory.write(host)

    def fill(self, value):
        self[...] = value

    def ravel(self):
        return ndarray(None, None, self._places.reshape(-1), self._memory)

    T = property(lambda self: ndarray(None, None, self._places.T, self._memory))

    def __len__(self):
        return len(self._places)

    def __iter__(self):
        return iter(self.get())

    def __eq__(self, other):
        return self.get() == _on_host(other)

    __hash__ = None


def _on_host(value):
    return value.get() if isinstance(value, ndarray) else value


def array(values, dtype=None):
    host = np.array(_on_host(values), dtype)
    made = ndarray(host.shape, host.dtype)
    made[...] = host
    return made


asarray = array


def zeros(shape, dtype="d"):
    return array(np.zeros(shape, dtype))


def ones(shape, dtype="d"):
    return array(np.ones(shape, dtype))
