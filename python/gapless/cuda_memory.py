"""GPU memory by the driver's own interface, for measuring messages between GPUs."""

import ctypes
from dataclasses import dataclass


@dataclass(frozen=True)
class GpuMemory:
    pointer: ctypes.c_void_p
    uuid: str

    @classmethod
    def allocate(cls, rank: int, size: int) -> "GpuMemory | None":
        """Memory of the GPU that a rank would take, in that GPU's primary context; it lives as long as the process.
        None where there is no GPU, or no memory."""
        try:
            driver = ctypes.CDLL("libcuda.so.1")
        except OSError:
            return None
        count, device, context, pointer = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        uuid = ctypes.create_string_buffer(16)
        if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
            return None
        steps = (
            lambda: driver.cuDeviceGet(ctypes.byref(device), rank % count.value),
            lambda: driver.cuDeviceGetUuid_v2(uuid, device),
            lambda: driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
            lambda: driver.cuCtxSetCurrent(context),
            lambda: driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)),
        )
        if any(step() != 0 for step in steps):
            return None
        return cls(pointer, uuid.raw.hex())
