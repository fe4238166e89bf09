"""Threads of Python as MPI ranks, by mpi4py: all of them add up the numbers from 1 to 1000000, each its share.

gapless run mpirun -n 2 python3 examples/endpoints/python_allreduce.py

A checkout, where gapless is not installed, has the module in python/: PYTHONPATH=python before the line.
"""

import sys
import threading

import mpi4py

mpi4py.rc.fast_reduce = False  # else allreduce copies the communicator with the interpreter locked, and waits for ever

from mpi4py import MPI  # noqa: E402

from gapless.endpoints import create_endpoints  # noqa: E402

THREADS = 3
LAST = 1_000_000


def add_up(handle, sums):
    mine = sum(range(1 + handle.rank, LAST + 1, handle.size))
    sums.append(handle.allreduce(mine))
    if handle.rank == 0:
        print(f"{handle.size} ranks, sum {sums[-1]}")
    handle.Free()


def main() -> int:
    sums = []
    threads = [
        threading.Thread(target=add_up, args=(handle, sums)) for handle in create_endpoints(MPI.COMM_WORLD, THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0 if sums == [LAST * (LAST + 1) // 2] * THREADS else 1


sys.exit(main())
