"""mpi4py on endpoints: every thread is a rank, and uses communicators, messages and collectives as a process would.

Run by as many processes as wanted, under gapless. Prints one line if everything is right; exits with 1 if not.
"""

import faulthandler
import sys
import threading
import traceback
from array import array

import mpi4py

mpi4py.rc.fast_reduce = False  # else a reduction of objects copies the communicator with the interpreter's lock held

from mpi4py import MPI  # noqa: E402

from gapless.endpoints import ALIASED, create_endpoints, useful_endpoints  # noqa: E402

EACH = 3
WORLD = MPI.COMM_WORLD


def messages(comm):
    rank, size = comm.rank, comm.size
    after, before = (rank + 1) % size, (rank - 1) % size
    # Python objects, and buffers.
    assert comm.sendrecv({"from": rank}, after, 1, source=before, recvtag=1) == {"from": before}
    sent, received = array("i", [rank] * 5000), array("i", [-1] * 5000)
    comm.Sendrecv(sent, after, 2, received, before, 2)
    assert received == array("i", [before] * 5000)
    requests = [comm.isend((rank, peer), peer, 3) for peer in range(size)]
    found = set()
    for _ in range(size):
        status = MPI.Status()
        assert comm.recv(source=MPI.ANY_SOURCE, tag=3, status=status) == (status.source, rank)
        found.add(status.source)
    MPI.Request.waitall(requests)
    comm.Barrier()
    if rank == 0:
        comm.send("any", after, 8)
    if rank == 1:
        assert comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG) == "any"
    comm.Barrier()
    assert found == set(range(size))
    # Probes, plain and matched; modes.
    request = comm.issend("matched", after, 4)
    message = comm.mprobe(before, 4)
    assert message.recv() == "matched"
    request.wait()
    pending = comm.Irecv([received, MPI.INT], before, 5)
    comm.Ssend([sent, 10, MPI.INT], after, 5)
    status = MPI.Status()
    pending.Wait(status)
    assert status.Get_count(MPI.INT) == 10
    assert not comm.iprobe(MPI.ANY_SOURCE, 99)
    comm.Send([sent, MPI.INT], MPI.PROC_NULL)
    # A vector into a vector, by the other end's layout.
    vector = MPI.INT.Create_vector(100, 1, 2).Commit()
    target = array("i", [-1] * 200)
    comm.Sendrecv([sent, 100, MPI.INT], after, 6, [target, 1, vector], before, 6)
    assert list(target[:199:2]) == [before] * 100 and set(target[1:199:2]) == {-1}
    vector.Free()
    truncated = comm.irecv(bytearray(1), before, 7)
    comm.send(list(range(100)), after, 7)
    try:
        truncated.wait()
        raise AssertionError("a message that is too long was taken")
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_TRUNCATE


def collectives(comm):
    rank, size = comm.rank, comm.size
    comm.Barrier()
    assert comm.allreduce(rank) == size * (size - 1) // 2
    assert comm.bcast({"root": rank} if rank == 1 else None, root=1) == {"root": 1}
    assert comm.gather(rank * rank, root=size - 1) == ([i * i for i in range(size)] if rank == size - 1 else None)
    assert comm.scatter([i + 10 for i in range(size)] if rank == 0 else None, root=0) == rank + 10
    assert comm.allgather(str(rank)) == [str(i) for i in range(size)]
    assert comm.alltoall([(rank, i) for i in range(size)]) == [(i, rank) for i in range(size)]
    assert comm.scan(1) == rank + 1
    assert comm.exscan(1) == (rank if rank > 0 else None)
    assert comm.reduce(rank, op=MPI.MAX, root=0) == (size - 1 if rank == 0 else None)
    mine, total = array("d", [rank] * 1000), array("d", [0] * 1000)
    comm.Allreduce(mine, total, op=MPI.SUM)
    assert set(total) == {size * (size - 1) / 2}
    comm.Allreduce(MPI.IN_PLACE, mine, op=MPI.MAX)
    assert set(mine) == {size - 1}
    counts = [i + 1 for i in range(size)]
    displacements = [sum(counts[:i]) for i in range(size)]
    whole = array("i", [-1] * sum(counts))
    comm.Allgatherv(array("i", [rank] * counts[rank]), [whole, counts, displacements, MPI.INT])
    assert list(whole) == [i for i in range(size) for _ in range(counts[i])]


def communicators(comm):
    rank, size = comm.rank, comm.size
    copy = comm.Dup()
    assert MPI.Comm.Compare(comm, copy) == MPI.CONGRUENT and MPI.Comm.Compare(comm, comm) == MPI.IDENT
    copy.name = f"copy {rank}"
    assert copy.name == f"copy {rank}"
    key = MPI.Comm.Create_keyval()
    copy.Set_attr(key, rank)
    assert copy.Get_attr(key) == rank
    copy.Delete_attr(key)
    MPI.Comm.Free_keyval(key)
    half = comm.Split(rank % 2, -rank)
    assert half.size == (size + 1 - rank % 2) // 2
    assert half.allreduce(rank) == sum(range(rank % 2, size, 2))
    assert not half.is_inter
    half.Free()
    copy.Free()
    try:
        comm.Send([array("i", [1]), MPI.INT], size)
        raise AssertionError("there is no such rank")
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_RANK


def run(comm, failures):
    try:
        comm.Set_errhandler(MPI.ERRORS_RETURN)
        messages(comm)
        collectives(comm)
        communicators(comm)
        comm.Free()
    except BaseException:  # the other ranks would wait for this one
        failures.append(traceback.format_exc())
        print(failures[-1], file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(1)


def main():
    faulthandler.dump_traceback_later(45, exit=True)  # where it hangs
    assert useful_endpoints(WORLD) >= 1
    try:
        create_endpoints(WORLD, -1 if WORLD.rank == 0 else 1)
        raise AssertionError("a negative number of endpoints")
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_ARG
    for number in (1 << 32, (1 << 31) + 1, -(1 << 31) - 1):  # refused without a call of MPI
        try:
            create_endpoints(WORLD, number)
        except OverflowError:
            continue
        raise AssertionError(f"{number} endpoints were not refused")
    ranks = create_endpoints(WORLD, EACH, thread_level="MPI_THREAD_SINGLE")
    assert MPI.Comm.Compare(ranks[0], ranks[1]) == ALIASED
    failures = []
    threads = [threading.Thread(target=run, args=(comm, failures)) for comm in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if WORLD.rank == 0 and not failures:
        print("threads as ranks: right")
    return 1 if failures else 0


sys.exit(main())
