"""Where a Python object's bytes are: host objects by the buffer protocol, GPU arrays by __cuda_array_interface__."""

import contextlib
import ctypes
import re
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char_p, c_int, c_ssize_t, c_void_p, py_object
from math import prod
from typing import NamedTuple

_WRITABLE = 0x0001
_ANY_CONTIGUOUS = 0x0080 | 0x0010 | 0x0008


class Bytes(NamedTuple):
    """`length` bytes at `address`."""

    address: int
    length: int


class _Buffer(ctypes.Structure):
    """Py_buffer. memoryview cannot tell the address of a read-only buffer, this can."""

    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", POINTER(c_ssize_t)),
        ("strides", POINTER(c_ssize_t)),
        ("suboffsets", POINTER(c_ssize_t)),
        ("internal", c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = (py_object, POINTER(_Buffer), c_int)
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = (POINTER(_Buffer),)
_release_buffer.restype = None


@contextlib.contextmanager
def bytes_of(thing, writable: bool) -> Iterator[Bytes]:
    """The object's bytes, which must be contiguous in any order; they stay where they are inside the `with` block.

    TypeError if the object has no bytes to show, BufferError if they are not contiguous or must not be written.
    """
    if hasattr(thing, "__cuda_array_interface__"):
        yield _bytes_of_gpu_array(thing.__cuda_array_interface__, writable)
        return
    buffer = _Buffer()
    try:
        _get_buffer(thing, byref(buffer), _ANY_CONTIGUOUS | (_WRITABLE if writable else 0))
    except ValueError as error:  # NumPy's word for both
        raise BufferError(str(error)) from None
    try:
        yield Bytes(buffer.buf or 0, buffer.len)
    finally:
        _release_buffer(byref(buffer))


def _bytes_of_gpu_array(interface: dict, writable: bool) -> Bytes:
    address, is_read_only = interface["data"]
    if writable and is_read_only:
        raise BufferError("the GPU array is read-only")
    shape = interface["shape"]
    kind = re.match(r"[<>=|]?[a-zA-Z](\d+)", interface["typestr"])  # units may follow, as in "<M8[ns]"
    if kind is None:
        raise TypeError(f"the GPU array's type {interface['typestr']!r} has no size")
    item = int(kind[1])
    length = item * prod(shape)
    strides = interface.get("strides")
    if strides is not None and length > 0:
        # Contiguous in some order: each stride is as long as all that is nearer.
        nearer = item
        for stride, count in sorted((stride, count) for count, stride in zip(shape, strides, strict=True) if count > 1):
            if stride != nearer:
                raise BufferError("the GPU array is not contiguous")
            nearer *= count
    return Bytes(address or 0, length)


def stream_handle(stream) -> int:
    """A cudaStream_t as a number: of an int, of CUDA's stream protocol, of CuPy's or of PyTorch's streams."""
    if stream is None:
        return 0
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("ptr", "cuda_stream"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    return int(stream)
