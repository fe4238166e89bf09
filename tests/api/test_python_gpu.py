"""The Python types on GPU memory: that of a simulated GPU, which faults if the CPU touches it."""

import os
import pathlib
import sys

import numpy as np
import pytest

from gapless.types import Datatype, Job, copy, pack_batch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))  # simulated_memory.py
PLUGIN = os.environ.get("GAPLESS_DEVICE_PLUGIN")
pytestmark = pytest.mark.skipif(not PLUGIN, reason="GAPLESS_DEVICE_PLUGIN names no simulated GPU")


class GpuArray:
    """Like a CuPy array; filled and read through the plugin."""

    def __init__(self, contents: np.ndarray, device: int = 0):
        from simulated_memory import SimulatedMemory  # not without a plugin

        self._like = contents
        self._memory = SimulatedMemory(contents.nbytes, device)
        self._memory.write(contents)

    @property
    def __cuda_array_interface__(self):
        kind = self._like.dtype.str
        return {"shape": self._like.shape, "typestr": kind, "data": (self._memory.address, False), "version": 3}

    def get(self) -> np.ndarray:
        return self._memory.read().view(self._like.dtype).reshape(self._like.shape)


@pytest.fixture
def cube():
    return np.random.default_rng(7).standard_normal((6, 7, 8))


@pytest.fixture
def face():
    return Datatype.subarray([6, 7, 8], [4, 5, 1], [1, 1, 6], "double")


def test_pack_and_unpack(cube, face):
    memory, packed = GpuArray(cube), GpuArray(np.zeros(20))
    assert face.pack(memory, packed) is packed
    assert np.array_equal(packed.get().reshape(4, 5), cube[1:5, 1:6, 6])
    ghosts = GpuArray(cube)
    face.unpack(GpuArray(np.arange(20.0)), ghosts)
    expected = cube.copy()
    expected[1:5, 1:6, 6] = np.arange(20.0).reshape(4, 5)
    assert np.array_equal(ghosts.get(), expected)


def test_batch(cube, face):
    memory, packed, packed_on_host = GpuArray(cube), GpuArray(np.zeros(20)), np.zeros(20)
    pack_batch([Job(face, memory, packed), Job(face, cube, packed_on_host)])
    assert np.array_equal(packed.get(), packed_on_host)
    assert np.array_equal(packed_on_host.reshape(4, 5), cube[1:5, 1:6, 6])


def test_copy(cube, face):
    memory, ghosts = GpuArray(cube), GpuArray(np.zeros((6, 7, 8)), device=1)
    other_face = Datatype.subarray([6, 7, 8], [4, 5, 1], [1, 1, 0], "double")
    copy(face, memory, other_face, ghosts)
    expected = np.zeros((6, 7, 8))
    expected[1:5, 1:6, 0] = cube[1:5, 1:6, 6]
    assert np.array_equal(ghosts.get(), expected)


def test_refusals(cube, face):
    memory = GpuArray(cube)
    with pytest.raises(BufferError, match="packed is ordinary host memory"):
        face.pack(memory, np.zeros(20))
    with pytest.raises(NotImplementedError, match="GPU 0 and of GPU 1"):
        face.pack(memory, GpuArray(np.zeros(20), device=1))
    with pytest.raises(BufferError, match="destination_memory is ordinary host memory"):
        copy(face, memory, face, cube)
    with pytest.raises(ValueError, match="memory has"):
        face.pack(memory, GpuArray(np.zeros(20)), offset=1000)
