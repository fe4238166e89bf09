! All threads of a Fortran program take part in one MPI_Allreduce: they add up the numbers from 1 to 1000000, each its
! share, as if every thread were a process. The module gapless_endpoints is compiled with the program:
!
!   mpif90 -fopenmp PREFIX/include/gapless/endpoints.f90 fortran_allreduce.f90 \
!     -Wl,--no-as-needed -LPREFIX/lib -lgapless -Wl,-rpath,PREFIX/lib
program fortran_allreduce
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi_f08
  use gapless_endpoints
  implicit none
  integer, parameter :: threads = 3
  integer(int64), parameter :: last = 1000000
  type(MPI_Comm) :: ranks(threads)
  integer :: level, wrong, thread
  wrong = 0
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, level)
  call MPIX_Comm_create_endpoints(MPI_COMM_WORLD, threads, MPI_INFO_NULL, ranks)
  !$omp parallel do num_threads(threads) schedule(static, 1) reduction(+ : wrong)
  do thread = 1, threads
    call add_up(ranks(thread), wrong)
  end do
  call MPI_Finalize()
  if (wrong /= 0) error stop 1

contains

  subroutine add_up(handle, mistakes)
    type(MPI_Comm), intent(inout) :: handle
    integer, intent(inout) :: mistakes
    integer(int64) :: number, mine, total
    integer :: rank, size
    call MPI_Comm_rank(handle, rank)
    call MPI_Comm_size(handle, size)
    mine = 0
    do number = 1 + rank, last, size
      mine = mine + number
    end do
    call MPI_Allreduce(mine, total, 1, MPI_INTEGER8, MPI_SUM, handle)
    if (total /= last * (last + 1) / 2) mistakes = mistakes + 1
    if (rank == 0) print '(i0, a, i0)', size, ' ranks, sum ', total
    call MPI_Comm_free(handle)
  end subroutine
end program
