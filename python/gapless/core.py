"""libgapless-core through its C API (include/gapless/gapless.h)."""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p

from gapless import locate
from gapless.errors import UserError


class Facts(ctypes.Structure):
    _fields_ = [
        ("block_count", c_int64),
        ("shortest_block", c_int64),
        ("longest_block", c_int64),
        ("alignment", c_int64),
        ("memory_bytes", c_int64),
        ("injective", c_int),
    ]


class Traffic(ctypes.Structure):
    _fields_ = [("packed_bytes", c_int64), ("lines_touched", c_int64)]


SIGNATURES = {
    "gapless_type_parse": (c_char_p, POINTER(c_void_p), c_char_p, c_size_t),
    "gapless_type_size": (c_void_p, POINTER(c_int64)),
    "gapless_type_extent": (c_void_p, POINTER(c_int64), POINTER(c_int64)),
    "gapless_type_true_extent": (c_void_p, POINTER(c_int64), POINTER(c_int64)),
    "gapless_type_facts": (c_void_p, POINTER(Facts)),
    "gapless_type_traffic": (c_void_p, c_int64, POINTER(Traffic)),
    "gapless_type_describe": (c_void_p, c_char_p, c_size_t, POINTER(c_size_t)),
}


class Core:
    def __init__(self):
        path = locate.require(locate.CORE)
        try:
            self.library = ctypes.CDLL(str(path))
            for name, arguments in SIGNATURES.items():
                getattr(self.library, name).argtypes = arguments
        except (OSError, AttributeError) as error:
            raise UserError(f"{path} cannot be used: {error}") from error
        self.library.gapless_type_free.argtypes = (c_void_p,)
        self.library.gapless_type_free.restype = None
        self.library.gapless_last_error.restype = c_char_p
        self.library.gapless_version.restype = c_char_p

    def version(self) -> str:
        return self.library.gapless_version().decode()

    def call(self, name: str, *arguments) -> None:
        if getattr(self.library, name)(*arguments) != 0:
            raise UserError(self.library.gapless_last_error().decode())


class Type:
    """A datatype named by its short text form. Free it by leaving the `with` block."""

    def __init__(self, core: Core, text: str):
        self.core = core
        self.handle = c_void_p()
        self.core.call("gapless_type_parse", text.encode(), byref(self.handle), None, 0)

    def __enter__(self):
        return self

    def __exit__(self, *exception) -> None:
        self.core.library.gapless_type_free(self.handle)

    def size(self) -> int:
        size = c_int64()
        self.core.call("gapless_type_size", self.handle, byref(size))
        return size.value

    def extent(self) -> tuple[int, int]:
        return self._pair("gapless_type_extent")

    def true_extent(self) -> tuple[int, int]:
        return self._pair("gapless_type_true_extent")

    def _pair(self, name: str) -> tuple[int, int]:
        first, second = c_int64(), c_int64()
        self.core.call(name, self.handle, byref(first), byref(second))
        return first.value, second.value

    def facts(self) -> Facts:
        facts = Facts()
        self.core.call("gapless_type_facts", self.handle, byref(facts))
        return facts

    def traffic(self, count: int) -> Traffic:
        traffic = Traffic()
        self.core.call("gapless_type_traffic", self.handle, count, byref(traffic))
        return traffic

    def describe(self) -> str:
        length = c_size_t()
        self.core.call("gapless_type_describe", self.handle, None, 0, byref(length))
        buffer = ctypes.create_string_buffer(length.value + 1)
        self.core.call("gapless_type_describe", self.handle, buffer, len(buffer), None)
        return buffer.value.decode()
