! Fortran through the mpi_f08 module: point to point and a collective, checked.
program with_mpi_f08
  use mpi_f08
  implicit none
  integer :: rank, ranks, total, one = 1, sent(3), received(3)
  type(MPI_Status) :: status
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  sent = [1, 2, 3]
  received = 0
  call MPI_Sendrecv(sent, 3, MPI_INTEGER, rank, 7, received, 3, MPI_INTEGER, rank, 7, MPI_COMM_WORLD, status)
  if (any(received /= sent)) stop 1
  call MPI_Send(sent, 3, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD)
  call MPI_Allreduce(one, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (total /= ranks) stop 2
  if (rank == 0) print '(a)', 'right'
  call MPI_Finalize()
end program
