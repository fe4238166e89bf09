! Threads of a Fortran program as ranks, by mpif.h: the dynamic interface.
program endpoints
  implicit none
  include 'mpif.h'
  include 'gapless/endpoints.fh'
  integer, parameter :: each = 2
  integer :: handles(each), level, ierror, process, processes, useful, wrong, compared, i
  wrong = 0
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, level, ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, process, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, processes, ierror)
  call MPIX_Query_endpoints(MPI_COMM_WORLD, useful, ierror)
  if (ierror /= MPI_SUCCESS .or. useful < 1) wrong = wrong + 1
  call MPIX_Comm_create_endpoints(MPI_COMM_WORLD, each, MPI_INFO_NULL, handles, ierror)
  if (ierror /= MPI_SUCCESS) wrong = wrong + 1
  call MPI_Comm_compare(handles(1), handles(2), compared, ierror)
  if (compared /= MPIX_ALIASED) wrong = wrong + 1
  !$omp parallel do num_threads(each) schedule(static, 1) reduction(+ : wrong)
  do i = 1, each
    call work(handles(i), each * processes, wrong)
  end do
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
  call MPIX_Comm_create_endpoints(MPI_COMM_WORLD, -1, MPI_INFO_NULL, handles, ierror)
  if (ierror == MPI_SUCCESS) wrong = wrong + 1
  call MPI_Finalize(ierror)
  if (wrong /= 0) error stop 1
  if (process == 0) print '(a)', 'right'

contains

  subroutine work(comm, expected, mistakes)
    integer, intent(inout) :: comm, mistakes
    integer, intent(in) :: expected
    integer :: rank, ranks, total, got, next, previous, error, request, status(MPI_STATUS_SIZE)
    call MPI_Comm_rank(comm, rank, error)
    call MPI_Comm_size(comm, ranks, error)
    if (ranks /= expected) mistakes = mistakes + 1
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, comm, error)
    if (total /= ranks * (ranks - 1) / 2) mistakes = mistakes + 1
    next = mod(rank + 1, ranks)
    previous = mod(rank + ranks - 1, ranks)
    call MPI_Irecv(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, 5, comm, request, error)
    call MPI_Send(rank, 1, MPI_INTEGER, next, 5, comm, error)
    call MPI_Wait(request, status, error)
    if (got /= previous .or. status(MPI_SOURCE) /= previous) mistakes = mistakes + 1
    call MPI_Comm_free(comm, error)
    if (comm /= MPI_COMM_NULL) mistakes = mistakes + 1
  end subroutine
end program
