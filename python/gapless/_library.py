"""libgapless-core for Python: the prototypes of include/gapless/gapless.h, and statuses as exceptions."""

import ctypes
import functools
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p

from gapless import locate
from gapless.environment import VARIABLES
from gapless.errors import UserError


class Facts(ctypes.Structure):
    """gapless_facts: what choices are made from; one repetition of a type."""

    _fields_ = [
        ("block_count", c_int64),
        ("shortest_block", c_int64),
        ("longest_block", c_int64),
        ("alignment", c_int64),
        ("memory_bytes", c_int64),
        ("injective", c_int),
    ]


class Traffic(ctypes.Structure):
    """gapless_traffic: what moving some repetitions costs at least."""

    _fields_ = [("packed_bytes", c_int64), ("lines_touched", c_int64)]


class Prediction(ctypes.Structure):
    """gapless_prediction: what one scheme takes the sender and the receiver."""

    _fields_ = [("scheme", c_char_p), ("ns", c_double * 2), ("is_chosen", c_int * 2)]


class Outline(ctypes.Structure):
    """gapless_outline: the kernel that a GPU would be given."""

    _fields_ = [("regime", c_char_p), ("reason", c_char_p), ("word_bytes", c_int)]


FABRIC_WAYS = 5  # packed, and the schemes by a fabric
SCHEMES = len(next(v for v in VARIABLES if v.name == "GAPLESS_SCHEME").values.split(", "))


class Job(ctypes.Structure):
    """gapless_job: one pack or unpack of a batch."""

    _fields_ = [
        ("type", c_void_p),
        ("count", c_int64),
        ("memory", c_void_p),
        ("begin", c_int64),
        ("end", c_int64),
        ("packed", c_void_p),
        ("direction", c_int),
    ]


PACK, UNPACK = 0, 1

_TYPE = c_void_p
_NEW_TYPE = POINTER(c_void_p)
_LIST = POINTER(c_int64)

# Arguments of every function that returns a gapless_status.
_PROTOTYPES = {
    "gapless_type_named": (c_int64, c_int64, _NEW_TYPE),
    "gapless_type_contiguous": (c_int64, _TYPE, _NEW_TYPE),
    "gapless_type_vector": (c_int64, c_int64, c_int64, _TYPE, _NEW_TYPE),
    "gapless_type_hvector": (c_int64, c_int64, c_int64, _TYPE, _NEW_TYPE),
    "gapless_type_indexed": (c_int64, _LIST, _LIST, _TYPE, _NEW_TYPE),
    "gapless_type_hindexed": (c_int64, _LIST, _LIST, _TYPE, _NEW_TYPE),
    "gapless_type_indexed_block": (c_int64, c_int64, _LIST, _TYPE, _NEW_TYPE),
    "gapless_type_hindexed_block": (c_int64, c_int64, _LIST, _TYPE, _NEW_TYPE),
    "gapless_type_struct": (c_int64, _LIST, _LIST, POINTER(_TYPE), _NEW_TYPE),
    "gapless_type_subarray": (c_int, _LIST, _LIST, _LIST, c_int, _TYPE, _NEW_TYPE),
    "gapless_type_darray": (c_int64, c_int64, c_int, _LIST, POINTER(c_int), _LIST, _LIST, c_int, _TYPE, _NEW_TYPE),
    "gapless_type_resized": (_TYPE, c_int64, c_int64, _NEW_TYPE),
    "gapless_type_parse": (c_char_p, _NEW_TYPE, c_char_p, c_size_t),
    "gapless_type_retain": (_TYPE,),
    "gapless_type_size": (_TYPE, _LIST),
    "gapless_type_extent": (_TYPE, _LIST, _LIST),
    "gapless_type_true_extent": (_TYPE, _LIST, _LIST),
    "gapless_type_facts": (_TYPE, POINTER(Facts)),
    "gapless_type_traffic": (_TYPE, c_int64, POINTER(Traffic)),
    "gapless_type_describe": (_TYPE, c_char_p, c_size_t, POINTER(c_size_t)),
    "gapless_type_equal": (_TYPE, _TYPE, POINTER(c_int)),
    "gapless_pack": (_TYPE, c_int64, c_void_p, c_int64, c_int64, c_void_p, c_void_p),
    "gapless_unpack": (_TYPE, c_int64, c_void_p, c_int64, c_int64, c_void_p, c_void_p),
    "gapless_pack_batch": (POINTER(Job), c_size_t, c_void_p),
    "gapless_transfer_predict": (_TYPE, c_int64, c_int, c_char_p, POINTER(Prediction)),
    "gapless_transfer_predict_fabric": (_TYPE, c_int64, POINTER(Prediction)),
    "gapless_transfer_predict_in_node": (_TYPE, c_int64, c_char_p, c_char_p, POINTER(Prediction)),
    "gapless_copy": (_TYPE, c_int64, c_void_p, _TYPE, c_int64, c_void_p, c_void_p),
}

# By status, as Python's own exceptions: nobody has to import ours to catch them.
_EXCEPTIONS = {
    1: ValueError,  # ARGUMENT
    2: OverflowError,  # OVERFLOW
    3: ValueError,  # PARSE
    4: ValueError,  # RANGE
    5: BufferError,  # MEMORY_KIND
    6: MemoryError,  # OUT_OF_MEMORY
    7: NotImplementedError,  # UNSUPPORTED
    8: RuntimeError,  # DEVICE
    9: RuntimeError,  # INTERNAL
}


@functools.cache
def library() -> ctypes.CDLL:
    """The library, loaded at the first use; OSError says where it was looked for. Calls release the GIL."""
    try:
        path = locate.require(locate.CORE)
    except UserError as error:
        raise OSError(str(error)) from None
    loaded = ctypes.CDLL(str(path))
    for name, arguments in _PROTOTYPES.items():
        function = getattr(loaded, name)
        function.argtypes = arguments
        function.restype = c_int
    loaded.gapless_type_free.argtypes = (c_void_p,)
    loaded.gapless_type_free.restype = None
    loaded.gapless_error_string.argtypes = (c_int,)
    for name in ("gapless_error_string", "gapless_last_error", "gapless_version"):
        getattr(loaded, name).restype = c_char_p
    return loaded


def outline(text: str, count: int, direction: int) -> Outline | None:
    """The kernel for `count` of a type, which needs no GPU; None where there is no plugin, or nothing to be moved."""
    path = locate.find(locate.PLUGIN)
    if path is None:
        return None
    library()  # which the plugin is linked with
    result = Outline()
    found = ctypes.CDLL(str(path)).gapless_gpu_outline(text.encode(), c_int64(count), direction, ctypes.byref(result))
    return result if found else None


def call(name: str, *arguments) -> None:
    """Calls a function that returns a status; raises the exception that belongs to a failure, with its text."""
    loaded = library()
    status = getattr(loaded, name)(*arguments)
    if status != 0:
        raise _EXCEPTIONS.get(status, RuntimeError)(loaded.gapless_last_error().decode(errors="replace"))
