"""The Python types against NumPy's own slicing, and every way to be wrong."""

import array
import copy as pythons_copy
import gc
import threading

import numpy as np
import pytest

from gapless import types
from gapless.buffers import bytes_of, stream_handle
from gapless.command import explain
from gapless.types import Datatype, Job, copy, pack_batch


class GpuArray:
    """An object with __cuda_array_interface__; its memory is a NumPy array's, which is legal where there is no GPU."""

    def __init__(self, of: np.ndarray, read_only=False, strides=None):
        self._of = of
        self.__cuda_array_interface__ = {
            "shape": of.shape,
            "typestr": of.dtype.str,
            "data": (of.ctypes.data, read_only),
            "strides": of.strides if strides is None else strides,
            "version": 3,
        }


@pytest.fixture
def cube():
    return np.random.default_rng(7).standard_normal((6, 7, 8))


FACE = [6, 7, 8], [4, 5, 1], [1, 1, 6]


def test_face_is_numpys_slice(cube):
    packed = Datatype.subarray(*FACE, "double").pack(cube)
    assert isinstance(packed, bytearray)
    assert np.array_equal(np.frombuffer(packed).reshape(4, 5), cube[1:5, 1:6, 6])


def test_unpack_touches_the_slice_alone(cube):
    incoming = np.arange(20.0).reshape(4, 5)
    expected = cube.copy()
    expected[1:5, 1:6, 6] = incoming
    Datatype.subarray(*FACE, "double").unpack(incoming, cube)
    assert np.array_equal(cube, expected)


def test_fortran_order(cube):
    in_fortran = np.asfortranarray(cube)
    packed = Datatype.subarray(*FACE, "double", order="fortran").pack(in_fortran)
    assert np.array_equal(np.frombuffer(packed), in_fortran[1:5, 1:6, 6].ravel(order="F"))


def test_transpose(cube):
    plane = np.ascontiguousarray(cube[0])
    column = Datatype.resized(Datatype.vector(7, 1, 8, "double"), 0, 8)
    assert np.array_equal(np.frombuffer(column.pack(plane, count=8)).reshape(8, 7), plane.T)


def test_range_offset_and_given_buffer(cube):
    line = Datatype.vector(5, 1, 2, "double")
    packed = np.zeros(3)
    assert line.pack(cube, packed, begin=8, end=32, offset=16) is packed
    assert np.array_equal(packed, cube.ravel()[4:10:2])


def test_every_constructor(cube):
    flat = cube.ravel()
    double = Datatype.named(8)
    cases = [
        (Datatype.contiguous(3, double), [0, 1, 2]),
        (Datatype.vector(2, 2, 3, double), [0, 1, 3, 4]),
        (Datatype.hvector(2, 1, 40, double), [0, 5]),
        (Datatype.indexed([2, 1], [4, 1], double), [4, 5, 1]),
        (Datatype.hindexed([1, 2], [16, 0], double), [2, 0, 1]),
        (Datatype.indexed_block(2, [6, 0], double), [6, 7, 0, 1]),
        (Datatype.hindexed_block(1, np.array([72, 8]), double), [9, 1]),
        (Datatype.struct([1, 2], [8, 64], [double, "double"]), [1, 8, 9]),
        (Datatype.subarray([3, 4], [2, 1], [1, 2], "double"), [6, 10]),
        (Datatype.darray(2, 1, [4], ["cyclic"], [types.DEFAULT_ARGUMENT], [2], "double"), [1, 3]),
        (Datatype.resized(double, -8, 24), [0]),
        (Datatype.parse("contiguous(2, double)"), [0, 1]),
    ]
    for datatype, indices in cases:
        assert np.array_equal(np.frombuffer(datatype.pack(flat)), flat[indices]), str(datatype)


def test_bounds_facts_and_text():
    datatype = Datatype.resized(Datatype.vector(10, 1, 4, "int"), -8, 200)
    assert (datatype.size, datatype.lower_bound, datatype.extent) == (40, -8, 200)
    assert (datatype.true_lower_bound, datatype.true_extent) == (0, 148)
    facts = datatype.facts()
    assert (facts.block_count, facts.shortest_block, facts.longest_block, facts.injective) == (10, 4, 4, 1)
    assert datatype.traffic(2).packed_bytes == 80
    assert str(datatype) in repr(datatype)
    assert datatype.equals("hvector(10, 4, 16, byte)")
    assert not datatype.equals("vector(9, 1, 4, int)")


def test_read_only_sources_of_every_kind():
    text = bytes(range(16))
    every_second = Datatype.vector(8, 1, 2, "byte")
    for source in (text, memoryview(text), array.array("b", text), bytearray(text), np.frombuffer(text, np.int8)):
        assert every_second.pack(source) == text[::2]


def test_batch_runs_every_job(cube):
    ghost = cube.copy()
    face = Datatype.subarray(*FACE, "double")
    packed, incoming = np.empty(20), np.arange(20.0)
    pack_batch([Job(face, cube, packed), Job(face, ghost, incoming, "unpack")])
    assert np.array_equal(packed.reshape(4, 5), cube[1:5, 1:6, 6])
    assert np.array_equal(ghost[1:5, 1:6, 6], incoming.reshape(4, 5))
    pack_batch([])


def test_a_batch_with_a_wrong_job_moves_nothing(cube):
    face = Datatype.subarray(*FACE, "double")
    packed = np.zeros(20)
    with pytest.raises(ValueError, match="job 1"):
        pack_batch([Job(face, cube, packed), Job(face, cube, np.zeros(20), begin=8, end=4)])
    assert not packed.any()
    with pytest.raises(ValueError, match="direction"):
        pack_batch([Job(face, cube, packed, "sideways")])


def test_copy_transposes(cube):
    plane, result = np.ascontiguousarray(cube[0]), np.zeros((8, 7))
    column = Datatype.resized(Datatype.vector(7, 1, 8, "double"), 0, 8)
    copy(column, plane, Datatype.contiguous(56, "double"), result, source_count=8)
    assert np.array_equal(result, plane.T)
    with pytest.raises(ValueError, match="packed bytes"):
        copy(column, plane, Datatype.contiguous(56, "double"), result)


def test_gpu_interface_of_host_memory(cube):
    face = Datatype.subarray(*FACE, "double")
    packed = np.empty(20)
    face.pack(GpuArray(cube), GpuArray(packed))
    assert np.array_equal(packed.reshape(4, 5), cube[1:5, 1:6, 6])
    face.pack(GpuArray(np.asfortranarray(cube)), packed)
    with pytest.raises(TypeError, match="packed object"):
        face.pack(GpuArray(cube))
    with pytest.raises(BufferError, match="read-only"):
        face.unpack(packed, GpuArray(cube, read_only=True))
    with pytest.raises(BufferError, match="not contiguous"):
        face.pack(GpuArray(cube[::2]), packed)
    with pytest.raises(BufferError, match="not contiguous"):
        face.pack(GpuArray(cube[::-1]), packed)


def test_streams_of_other_libraries():
    class Protocol:
        def __cuda_stream__(self):
            return (0, 11)

    class CuPy:
        ptr = 12

    class PyTorch:
        cuda_stream = 13

    assert [stream_handle(s) for s in (None, 7, Protocol(), CuPy(), PyTorch())] == [0, 7, 11, 12, 13]


def test_bytes_outside_the_object_are_refused(cube):
    face = Datatype.subarray(*FACE, "double")
    with pytest.raises(ValueError, match="memory has"):
        face.pack(cube, count=2)
    with pytest.raises(ValueError, match="memory has"):
        face.pack(cube, offset=1000)
    with pytest.raises(ValueError, match="memory has"):
        Datatype.vector(2, 1, -1, "double").pack(cube)
    with pytest.raises(ValueError, match="packed has 8 bytes"):
        face.pack(cube, np.zeros(1))
    with pytest.raises(BufferError):
        face.pack(cube[:, ::2])
    with pytest.raises(BufferError):
        face.unpack(bytes(160), bytes(cube.nbytes))
    with pytest.raises(TypeError):
        face.pack(object())


def test_wrong_arguments_are_pythons_exceptions(cube):
    with pytest.raises(ValueError, match="count"):
        Datatype.contiguous(-1, "int")
    with pytest.raises(ValueError):
        Datatype.parse("vector(1, 2")
    with pytest.raises(OverflowError):
        Datatype.contiguous(1 << 64, "int")
    with pytest.raises(OverflowError):
        Datatype.indexed([1], [1 << 64], "int")
    with pytest.raises(OverflowError):
        Datatype.contiguous(1 << 62, "int")
    with pytest.raises(TypeError):
        Datatype.contiguous(1.5, "int")
    for child in (8, b"int", None, np.dtype("f8")):
        with pytest.raises(TypeError, match="a Datatype or a text"):
            Datatype.contiguous(2, child)
    with pytest.raises(TypeError, match="a Datatype or a text"):
        Datatype.struct([1], [0], [8])
    with pytest.raises(TypeError, match="a Datatype or a text"):
        Datatype.named(8).equals(8)
    with pytest.raises(ValueError, match="zero"):
        Datatype.parse("int\0")
    with pytest.raises(ValueError, match="differ in length"):
        Datatype.indexed([1, 2], [0], "int")
    with pytest.raises(ValueError, match="order is 'rows'"):
        Datatype.subarray([2], [1], [0], "int", order="rows")
    with pytest.raises(ValueError, match="not within"):
        Datatype.named(8).pack(cube, end=9)


def test_types_are_freed_and_children_may_go_first():
    outer = Datatype.contiguous(2, Datatype.vector(2, 1, 2, "int"))
    gc.collect()
    assert outer.size == 16
    for _ in range(1000):
        Datatype.named(8)


def test_a_copy_is_the_type_itself():
    vector = Datatype.vector(2, 1, 2, "int")
    assert pythons_copy.copy(vector) is vector and pythons_copy.deepcopy([vector])[0] is vector


def test_threads_share_types(cube):
    face = Datatype.subarray(*FACE, "double")
    expected, wrong = face.pack(cube), []
    threads = [
        threading.Thread(target=lambda: wrong.extend(i for i in range(200) if face.pack(cube) != expected))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_predictions_of_more_than_63_bits_are_refused():
    double, many = Datatype.contiguous(1, "double"), 2**60
    for predict in (explain.predictions, explain.in_node_predictions, explain.fabric_prediction):
        with pytest.raises(OverflowError):
            predict(double, many)


def test_held_bytes_do_not_move():
    growing = bytearray(8)
    with bytes_of(growing, True) as held:
        assert held.length == 8
        with pytest.raises(BufferError):
            growing.extend(b"x")
    growing.extend(b"x")
