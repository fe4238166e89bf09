"""Endpoints for mpi4py: threads as MPI ranks. Needs mpi4py, and a process that runs under `gapless run`.

    import mpi4py
    mpi4py.rc.fast_reduce = False
    from mpi4py import MPI
    from gapless.endpoints import create_endpoints

    ranks = create_endpoints(MPI.COMM_WORLD, 4)
    # in thread i: ranks[i].allreduce(1); ranks[i].Free()

Without fast_reduce = False, the reductions of Python objects (reduce, allreduce, scan, exscan in small letters) would
wait for ever: mpi4py copies the communicator on the way, with the interpreter locked, and no other rank gets there.
What an endpoints communicator serves stands in docs/endpoints.md.
"""

import ctypes
import operator

from gapless.errors import UserError

ALIASED = 4747
"""What MPI.Comm.Compare gives for two ranks of one endpoints communicator (MPIX_ALIASED)."""


def create_endpoints(parent, count: int, thread_level: str | None = None) -> list:
    """`count` ranks of one communicator, which has those of all processes of `parent` (MPIX_Comm_create_endpoints).

    Collective over `parent`, called by one thread of each process; `count` may differ and may be 0. `thread_level` is
    one of MPI's words, such as "MPI_THREAD_SINGLE": a promise of how threads share each of these ranks. The ranks are
    mpi4py communicators; each is freed by its Free(). Raises MPI.Exception as MPIX_Comm_create_endpoints fails,
    OverflowError for a count that is no int of C, and UserError where there is no gapless.
    """
    from mpi4py import MPI

    handle = _handle_type(MPI)
    number = _int(count)
    made = (handle * max(number.value, 1))()
    info = MPI.Info.Create() if thread_level is not None else MPI.INFO_NULL
    try:
        if thread_level is not None:
            info.Set("thread_level", thread_level)
        code = _function("MPIX_Comm_create_endpoints")(
            handle(MPI._handleof(parent)), number, handle(MPI._handleof(info)), made
        )
    finally:
        if thread_level is not None:
            info.Free()
    _check(MPI, code)
    return [MPI.Intracomm.fromhandle(made[i] or 0) for i in range(number.value)]


def useful_endpoints(parent) -> int:
    """How many ranks the calling process has cores for (MPIX_Query_endpoints). Collective over `parent`."""
    from mpi4py import MPI

    count = ctypes.c_int(0)
    _check(MPI, _function("MPIX_Query_endpoints")(_handle_type(MPI)(MPI._handleof(parent)), ctypes.byref(count)))
    return count.value


def _int(value: int) -> ctypes.c_int:
    """ctypes would silently drop the upper bits."""
    value = operator.index(value)
    if not -(1 << 31) <= value < 1 << 31:
        raise OverflowError(f"{value} does not fit in 31 bits")
    return ctypes.c_int(value)


def _handle_type(MPI):
    """What handles are in C: numbers in MPICH, pointers elsewhere."""
    return ctypes.c_uint if MPI._sizeof(MPI.Comm) == ctypes.sizeof(ctypes.c_uint) else ctypes.c_void_p


def _function(name: str):
    try:
        return getattr(ctypes.CDLL(None), name)
    except AttributeError:
        raise UserError("this process does not run under gapless: start it by gapless run") from None


def _check(MPI, code: int):
    if code != MPI.SUCCESS:
        raise MPI.Exception(code)
