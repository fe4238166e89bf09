! Threads of a Fortran program as ranks, by mpi_f08: the static interface, and the dynamic one beside it.
program endpoints
  use mpi_f08
  use gapless_endpoints
  implicit none
  integer, parameter :: each = 2
  type(MPI_Comm) :: handles(each)
  integer :: level, ierror, process, processes, wrong, compared, i
  wrong = 0
  call MPIX_Init_endpoints(each, MPI_THREAD_MULTIPLE, level, ierror)
  if (ierror /= MPI_SUCCESS .or. level /= MPI_THREAD_MULTIPLE) error stop 2
  call MPI_Comm_rank(MPI_COMM_WORLD, process)
  call MPI_Comm_size(MPI_COMM_WORLD, processes)
  ! A second communicator, by handles.
  call MPIX_Comm_create_endpoints(MPI_COMM_WORLD, each, MPI_INFO_NULL, handles)
  call MPI_Comm_compare(handles(1), handles(2), compared)
  if (compared /= MPIX_ALIASED) wrong = wrong + 1
  !$omp parallel do num_threads(each) schedule(static, 1) reduction(+ : wrong) private(ierror)
  do i = 1, each
    call MPIX_Endpoint_attach(i - 1, ierror)
    if (ierror /= MPI_SUCCESS) wrong = wrong + 1
    call work(MPI_COMM_WORLD, each * processes, wrong)
    call work(handles(i), each * processes, wrong)
    call MPI_Comm_free(handles(i))
  end do
  call MPI_Finalize()
  if (wrong /= 0) error stop 1
  if (process == 0) print '(a)', 'right'

contains

  subroutine work(comm, expected, mistakes)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: expected
    integer, intent(inout) :: mistakes
    integer :: rank, ranks, total, got, next, previous
    type(MPI_Status) :: status
    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, ranks)
    if (ranks /= expected) mistakes = mistakes + 1
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, comm)
    if (total /= ranks * (ranks - 1) / 2) mistakes = mistakes + 1
    next = mod(rank + 1, ranks)
    previous = mod(rank + ranks - 1, ranks)
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, next, 5, got, 1, MPI_INTEGER, previous, 5, comm, status)
    if (got /= previous .or. status%MPI_SOURCE /= previous) mistakes = mistakes + 1
  end subroutine
end program
