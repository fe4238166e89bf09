! Fortran through mpif.h, or with -DWITH_MPI through the mpi module: point to point and a collective, checked.
program with_integers
#ifdef WITH_MPI
  use mpi
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer :: error, rank, ranks, total, sent(3), received(3), status(MPI_STATUS_SIZE)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  sent = [1, 2, 3]
  received = 0
  call MPI_Sendrecv(sent, 3, MPI_INTEGER, rank, 7, received, 3, MPI_INTEGER, rank, 7, MPI_COMM_WORLD, status, error)
  if (any(received /= sent)) stop 1
  call MPI_Send(sent, 3, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, error)
  call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (total /= ranks) stop 2
  if (rank == 0) print '(a)', 'right'
  call MPI_Finalize(error)
end program
