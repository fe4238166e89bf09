"""MPI's derived datatypes without MPI, for any object with bytes: NumPy, CuPy, PyTorch, bytearray, mmap.

    from gapless.types import Datatype

    face = Datatype.subarray([64, 64, 64], [62, 62, 1], [1, 1, 62], "double")
    packed = face.pack(array)            # array: 64 x 64 x 64 float64
    face.unpack(packed, other)

Meaning, units and thread rules are those of include/gapless/gapless.h. Where C returns a status, Python raises
ValueError (arguments, text, ranges), OverflowError (more than 63 bits), BufferError (kinds of memory), MemoryError,
NotImplementedError (not on this machine) or RuntimeError (the GPU's runtime).
"""

import contextlib
import ctypes
import operator
import weakref
from array import array
from collections.abc import Iterable, Sequence
from ctypes import byref, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any

from gapless import _library
from gapless._library import Facts, Traffic
from gapless.buffers import Bytes, bytes_of, stream_handle

DEFAULT_ARGUMENT = -1  # MPI_DISTRIBUTE_DFLT_DARG
_ORDERS = {"c": 0, "fortran": 1}
_DISTRIBUTIONS = {"none": 0, "block": 1, "cyclic": 2}


class Datatype:
    """Which bytes of memory are meant, and in which order (MPI 5.0, chapter 5). Immutable.

    `child` is a Datatype or a text such as "double"; numbers of elements count children, `_bytes` says bytes.
    """

    def __init__(self, handle: c_void_p):
        """Takes over one ownership of a gapless_type; use the constructors below."""
        # ctypes passes this and keeps the Datatype itself, a temporary perhaps, alive until the call has returned.
        self._as_parameter_ = handle
        finalizer = weakref.finalize(self, _library.library().gapless_type_free, handle)
        finalizer.atexit = False  # other functions that run at exit may use the Datatype; the process ends with it

    @classmethod
    def _make(cls, constructor: str, *arguments) -> "Datatype":
        handle = c_void_p()
        _library.call(constructor, *arguments, byref(handle))
        return cls(handle)

    @classmethod
    def parse(cls, text: str) -> "Datatype":
        """The type that a text such as "vector(1024, 1, 4, int)" names."""
        if "\0" in text:
            raise ValueError("the text has a zero, at which C would end it")
        handle = c_void_p()
        _library.call("gapless_type_parse", text.encode(), byref(handle), None, 0)
        return cls(handle)

    @classmethod
    def named(cls, size: int, extent: int | None = None) -> "Datatype":
        """`size` contiguous bytes; repetitions are `extent` (by default size) bytes apart."""
        return cls._make("gapless_type_named", _int64(size), _int64(size if extent is None else extent))

    @classmethod
    def contiguous(cls, count: int, child: "Datatype | str") -> "Datatype":
        """MPI_Type_contiguous"""
        return cls._make("gapless_type_contiguous", _int64(count), _of(child))

    @classmethod
    def vector(cls, count: int, block_length: int, stride: int, child: "Datatype | str") -> "Datatype":
        """MPI_Type_vector"""
        numbers = _int64(count), _int64(block_length), _int64(stride)
        return cls._make("gapless_type_vector", *numbers, _of(child))

    @classmethod
    def hvector(cls, count: int, block_length: int, stride_bytes: int, child: "Datatype | str") -> "Datatype":
        """MPI_Type_create_hvector"""
        numbers = _int64(count), _int64(block_length), _int64(stride_bytes)
        return cls._make("gapless_type_hvector", *numbers, _of(child))

    @classmethod
    def indexed(cls, block_lengths: Sequence[int], displacements: Sequence[int], child: "Datatype | str") -> "Datatype":
        """MPI_Type_indexed"""
        count, lists = _lists(block_lengths=block_lengths, displacements=displacements)
        return cls._make("gapless_type_indexed", count, *lists, _of(child))

    @classmethod
    def hindexed(
        cls, block_lengths: Sequence[int], displacements_bytes: Sequence[int], child: "Datatype | str"
    ) -> "Datatype":
        """MPI_Type_create_hindexed"""
        count, lists = _lists(block_lengths=block_lengths, displacements_bytes=displacements_bytes)
        return cls._make("gapless_type_hindexed", count, *lists, _of(child))

    @classmethod
    def indexed_block(cls, block_length: int, displacements: Sequence[int], child: "Datatype | str") -> "Datatype":
        """MPI_Type_create_indexed_block"""
        count, lists = _lists(displacements=displacements)
        return cls._make("gapless_type_indexed_block", count, _int64(block_length), *lists, _of(child))

    @classmethod
    def hindexed_block(
        cls, block_length: int, displacements_bytes: Sequence[int], child: "Datatype | str"
    ) -> "Datatype":
        """MPI_Type_create_hindexed_block"""
        count, lists = _lists(displacements_bytes=displacements_bytes)
        return cls._make("gapless_type_hindexed_block", count, _int64(block_length), *lists, _of(child))

    @classmethod
    def struct(
        cls,
        block_lengths: Sequence[int],
        displacements_bytes: Sequence[int],
        children: Sequence["Datatype | str"],
    ) -> "Datatype":
        """MPI_Type_create_struct, without padding at the end: see resized."""
        types = [_of(child) for child in children]
        count, lists = _lists(
            block_lengths=block_lengths, displacements_bytes=displacements_bytes, children=range(len(types))
        )
        handles = (c_void_p * len(types))(*(child._as_parameter_.value for child in types))
        return cls._make("gapless_type_struct", count, lists[0], lists[1], handles)

    @classmethod
    def subarray(
        cls,
        sizes: Sequence[int],
        subsizes: Sequence[int],
        starts: Sequence[int],
        child: "Datatype | str",
        order: str = "c",
    ) -> "Datatype":
        """MPI_Type_create_subarray; order is "c" or "fortran"."""
        count, lists = _lists(sizes=sizes, subsizes=subsizes, starts=starts)
        return cls._make("gapless_type_subarray", count, *lists, _choice(_ORDERS, order, "order"), _of(child))

    @classmethod
    def darray(
        cls,
        process_count: int,
        rank: int,
        global_sizes: Sequence[int],
        distributions: Sequence[str],
        distribution_arguments: Sequence[int],
        process_sizes: Sequence[int],
        child: "Datatype | str",
        order: str = "c",
    ) -> "Datatype":
        """MPI_Type_create_darray; distributions are "none", "block" or "cyclic"."""
        kinds = [_choice(_DISTRIBUTIONS, kind, "distribution") for kind in distributions]
        count, (sizes, _, arguments, grid) = _lists(
            global_sizes=global_sizes,
            distributions=kinds,
            distribution_arguments=distribution_arguments,
            process_sizes=process_sizes,
        )
        return cls._make(
            "gapless_type_darray",
            _int64(process_count),
            _int64(rank),
            count,
            sizes,
            (c_int * count)(*kinds),
            arguments,
            grid,
            _choice(_ORDERS, order, "order"),
            _of(child),
        )

    @classmethod
    def resized(cls, child: "Datatype | str", lower_bound: int, extent: int) -> "Datatype":
        """MPI_Type_create_resized: the same bytes, repetitions `extent` bytes apart."""
        return cls._make("gapless_type_resized", _of(child), _int64(lower_bound), _int64(extent))

    @property
    def size(self) -> int:
        """Packed bytes of one repetition."""
        size = c_int64()
        _library.call("gapless_type_size", self, byref(size))
        return size.value

    @property
    def lower_bound(self) -> int:
        """Byte offset where a repetition begins."""
        return self._pair("gapless_type_extent")[0]

    @property
    def extent(self) -> int:
        """Bytes from one repetition to the next."""
        return self._pair("gapless_type_extent")[1]

    @property
    def true_lower_bound(self) -> int:
        """Offset of the first byte that is named."""
        return self._pair("gapless_type_true_extent")[0]

    @property
    def true_extent(self) -> int:
        """Bytes from the first to the last that is named."""
        return self._pair("gapless_type_true_extent")[1]

    def facts(self) -> Facts:
        """block_count, shortest_block, longest_block, alignment, memory_bytes and injective of one repetition."""
        facts = Facts()
        _library.call("gapless_type_facts", self, byref(facts))
        return facts

    def traffic(self, count: int = 1) -> Traffic:
        """packed_bytes and lines_touched (distinct 64-byte lines of memory) of `count` repetitions."""
        traffic = Traffic()
        _library.call("gapless_type_traffic", self, _int64(count), byref(traffic))
        return traffic

    def equals(self, other: "Datatype | str") -> bool:
        """The same bytes in the same order, however constructed; bounds are not compared."""
        equal = c_int()
        _library.call("gapless_type_equal", self, _of(other), byref(equal))
        return bool(equal.value)

    def __str__(self) -> str:
        length = c_size_t()
        _library.call("gapless_type_describe", self, None, 0, byref(length))
        text = ctypes.create_string_buffer(length.value + 1)
        _library.call("gapless_type_describe", self, text, len(text), None)
        return text.value.decode()

    def __copy__(self) -> "Datatype":
        """Itself, which never changes; Python's own copy would have the handle without owning it."""
        return self

    def __deepcopy__(self, memo: dict) -> "Datatype":
        return self

    def _pair(self, name: str) -> tuple[int, int]:
        first, second = c_int64(), c_int64()
        _library.call(name, self, byref(first), byref(second))
        return first.value, second.value

    def __repr__(self) -> str:
        return f"<Datatype {self}>"

    def pack(
        self,
        memory: Any,
        packed: Any = None,
        *,
        count: int = 1,
        begin: int = 0,
        end: int | None = None,
        offset: int = 0,
        stream: Any = None,
    ) -> Any:
        """Packs bytes [begin, end) of `count` repetitions and returns `packed`, or a new bytearray without one.

        memory: contiguous host object, or GPU array with __cuda_array_interface__; `offset` is the byte in it that
        displacements count from. packed: writable, at least end - begin bytes; needed when memory is a GPU's.
        stream: a cudaStream_t (int), or a stream of CuPy, PyTorch or cuda.core. Host work is done on return; GPU work
        is issued, and the caller keeps both objects until the stream has passed it.
        """
        end = self.size * _int64(count).value if end is None else end
        if packed is None:
            if hasattr(memory, "__cuda_array_interface__"):
                raise TypeError("packing GPU memory needs a packed object to pack into")
            packed = bytearray(max(0, end - begin))
        with _job(Job(self, memory, packed, "pack", count, begin, end, offset)) as job:
            arguments = job.type, job.count, job.memory, job.begin, job.end, job.packed
            _library.call("gapless_pack", *arguments, stream_handle(stream))
        return packed

    def unpack(
        self,
        packed: Any,
        memory: Any,
        *,
        count: int = 1,
        begin: int = 0,
        end: int | None = None,
        offset: int = 0,
        stream: Any = None,
    ) -> None:
        """Unpacks bytes [begin, end) of `count` repetitions from `packed` into `memory`; otherwise as pack."""
        with _job(Job(self, memory, packed, "unpack", count, begin, end, offset)) as job:
            arguments = job.type, job.count, job.memory, job.begin, job.end, job.packed
            _library.call("gapless_unpack", *arguments, stream_handle(stream))


@dataclass
class Job:
    """One pack or unpack of a batch; the arguments of Datatype.pack."""

    datatype: Datatype
    memory: Any
    packed: Any
    direction: str = "pack"
    count: int = 1
    begin: int = 0
    end: int | None = None
    offset: int = 0


def pack_batch(jobs: Iterable[Job], stream: Any = None) -> None:
    """Runs all jobs in one call, such as all faces of a halo. No job is started unless all are right."""
    with contextlib.ExitStack() as held:
        prepared = [held.enter_context(_job(job)) for job in jobs]
        array_of_jobs = (_library.Job * len(prepared))(*prepared)
        _library.call("gapless_pack_batch", array_of_jobs, len(prepared), stream_handle(stream))


def copy(
    source_type: Datatype,
    source: Any,
    destination_type: Datatype,
    destination: Any,
    *,
    source_count: int = 1,
    destination_count: int = 1,
    source_offset: int = 0,
    destination_offset: int = 0,
    stream: Any = None,
) -> None:
    """Copies from one type's bytes to another's with no packed buffer; GPU work is issued as by Datatype.pack.

    Between memory of two GPUs, `stream` belongs to the source's.
    """
    with bytes_of(source, False) as read, bytes_of(destination, True) as written:
        _library.call(
            "gapless_copy",
            source_type,
            _int64(source_count),
            _origin(source_type, source_count, read, source_offset, "source"),
            destination_type,
            _int64(destination_count),
            _origin(destination_type, destination_count, written, destination_offset, "destination"),
            stream_handle(stream),
        )


@contextlib.contextmanager
def _job(job: Job):
    """The job for C, with every address inside its object; the objects' bytes are held in the `with` block."""
    directions = {"pack": _library.PACK, "unpack": _library.UNPACK}
    direction = _choice(directions, job.direction, "direction")
    unpacks = direction == _library.UNPACK
    count = _int64(job.count).value
    end = job.datatype.size * count if job.end is None else job.end
    with bytes_of(job.memory, unpacks) as memory, bytes_of(job.packed, not unpacks) as packed:
        if packed.length < end - job.begin:
            raise ValueError(f"packed has {packed.length} bytes, the range {end - job.begin}")
        yield _library.Job(
            job.datatype._as_parameter_.value,
            count,
            _origin(job.datatype, count, memory, job.offset, "memory"),
            _int64(job.begin).value,
            _int64(end).value,
            packed.address,
            direction,
        )


def _origin(datatype: Datatype, count: int, memory: Bytes, offset: int, name: str) -> int:
    """Where displacements count from. ValueError unless all bytes of all repetitions are in the object."""
    if datatype.size > 0 and count > 0:
        true_lower_bound, true_extent = datatype._pair("gapless_type_true_extent")
        last = (count - 1) * datatype.extent
        first = offset + true_lower_bound + min(last, 0)
        end = offset + true_lower_bound + true_extent + max(last, 0)
        if first < 0 or end > memory.length:
            raise ValueError(f"the type names bytes [{first}, {end}), {name} has {memory.length}")
    return (memory.address + offset) & ((1 << 64) - 1)


def _of(child: Datatype | str) -> Datatype:
    """ctypes would take a number or bytes for the address of a type."""
    if isinstance(child, str):
        return Datatype.parse(child)
    if not isinstance(child, Datatype):
        raise TypeError(f"a Datatype or a text such as 'double' is needed, and not {child!r}")
    return child


def _int64(value: int) -> c_int64:
    """ctypes would silently drop the upper bits."""
    value = operator.index(value)
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError(f"{value} does not fit in 63 bits")
    return c_int64(value)


def _lists(**named: Sequence[int]) -> tuple[int, list]:
    """Lists of one length as C arrays of int64, and that length."""
    arrays = {name: array("q", values) for name, values in named.items()}
    lengths = {name: len(values) for name, values in arrays.items()}
    count = next(iter(lengths.values()))
    if any(length != count for length in lengths.values()):
        raise ValueError("lists differ in length: " + ", ".join(f"{name} {n}" for name, n in lengths.items()))
    return count, [(c_int64 * count).from_buffer(values) for values in arrays.values()]


def _choice(choices: dict[str, int], chosen: str, what: str) -> int:
    if chosen not in choices:
        raise ValueError(f"{what} is {chosen!r}, must be one of {', '.join(choices)}")
    return choices[chosen]
