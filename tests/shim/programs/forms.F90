! Derived datatypes in Fortran: nonblocking and persistent messages, a collective and a file, each checked, through the
! mpi_f08 module, with array sections where the library takes them, with -DWITH_MPI through the mpi module, or with
! -DWITH_MPIF through mpif.h.
#if defined(WITH_MPIF) || defined(WITH_MPI)
#define HAS_INTEGER_HANDLES
#endif
#ifdef HAS_INTEGER_HANDLES
#define HANDLE(name) integer
#else
#define HANDLE(name) type(name)
#endif
program forms
#ifdef WITH_MPI
  use mpi
#elif !defined(WITH_MPIF)
  use mpi_f08
#endif
  implicit none
#ifdef WITH_MPIF
  include 'mpif.h'
#endif
  integer, parameter :: n = 40, m = 30, rounds = 60
  double precision, asynchronous :: field(0:n + 1, 0:m + 1), columns(n, m), other(n, m)
  HANDLE(MPI_Datatype) :: row, column, block, inner
  HANDLE(MPI_Datatype), allocatable :: types_out(:), types_in(:)
  HANDLE(MPI_Request) :: requests(4)
  HANDLE(MPI_File) :: file
  integer, allocatable :: ones(:), zeros(:)
  integer :: rank, ranks, next, previous, ierror, round, i, j
  integer(MPI_OFFSET_KIND) :: at
  character(256) :: name

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call MPI_Type_vector(m, 1, n + 2, MPI_DOUBLE_PRECISION, row, ierror)
  call MPI_Type_commit(row, ierror)
  call MPI_Type_contiguous(n, MPI_DOUBLE_PRECISION, column, ierror)
  call MPI_Type_commit(column, ierror)
  call MPI_Type_create_subarray(2, [n + 2, m + 2], [n, m], [1, 1], MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, inner, ierror)
  call MPI_Type_commit(inner, ierror)

  ! Rows and columns of the box to the halo of the next process, by messages and by requests that are made once.
  do round = 1, rounds
    call fill(round)
    call MPI_Irecv(field(0, 1), 1, row, previous, 1, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Irecv(field(1, 0), 1, column, previous, 2, MPI_COMM_WORLD, requests(2), ierror)
    call MPI_Isend(field(n, 1), 1, row, next, 1, MPI_COMM_WORLD, requests(3), ierror)
    call MPI_Isend(field(1, m), 1, column, next, 2, MPI_COMM_WORLD, requests(4), ierror)
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierror)
    call check_halo(round, 1)
  end do
  call MPI_Recv_init(field(0, 1), 1, row, previous, 3, MPI_COMM_WORLD, requests(1), ierror)
  call MPI_Recv_init(field(1, 0), 1, column, previous, 4, MPI_COMM_WORLD, requests(2), ierror)
  call MPI_Send_init(field(n, 1), 1, row, next, 3, MPI_COMM_WORLD, requests(3), ierror)
  call MPI_Send_init(field(1, m), 1, column, next, 4, MPI_COMM_WORLD, requests(4), ierror)
  do round = 1, rounds
    call fill(round)
    call MPI_Startall(4, requests, ierror)
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierror)
    call check_halo(round, 2)
  end do
  do i = 1, 4
    call MPI_Request_free(requests(i), ierror)
  end do
  ! Array sections: in mpi_f08 the library is told of their strides, elsewhere the compiler copies them for a blocking call.
  do round = 1, rounds
    call fill(round)
    call MPI_Sendrecv(field(n, 1:m), m, MPI_DOUBLE_PRECISION, next, 7, field(0, 1:m), m, MPI_DOUBLE_PRECISION, previous, 7, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call MPI_Sendrecv(field(1:n, m), n, MPI_DOUBLE_PRECISION, next, 8, field(1:n, 0), n, MPI_DOUBLE_PRECISION, previous, 8, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call check_halo(round, 7)
  end do
#ifndef HAS_INTEGER_HANDLES
  if (MPI_SUBARRAYS_SUPPORTED) then
    do round = 1, rounds
      call fill(round)
      call MPI_Irecv(field(0, 1:m), m, MPI_DOUBLE_PRECISION, previous, 5, MPI_COMM_WORLD, requests(1), ierror)
      call MPI_Irecv(field(1:n, 0), n, MPI_DOUBLE_PRECISION, previous, 6, MPI_COMM_WORLD, requests(2), ierror)
      call MPI_Isend(field(n, 1:m), m, MPI_DOUBLE_PRECISION, next, 5, MPI_COMM_WORLD, requests(3), ierror)
      call MPI_Isend(field(1:n, m), n, MPI_DOUBLE_PRECISION, next, 6, MPI_COMM_WORLD, requests(4), ierror)
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierror)
      call check_halo(round, 3)
    end do
  end if
#endif

  ! Every process's inner box to every other, into a plain array: the last one stays.
  allocate (types_out(ranks), types_in(ranks), ones(ranks), zeros(ranks))
  call MPI_Type_contiguous(n*m, MPI_DOUBLE_PRECISION, block, ierror)
  call MPI_Type_commit(block, ierror)
  types_out = inner
  types_in = block
  ones = 0
  ones(next + 1) = 1
  zeros = 0
  do round = 1, rounds
    call fill(round)
    columns = -1
    call exchange_boxes()
    call check_box(columns, previous, round, 4)
  end do

  ! The inner box to a file and back into a plain array.
  call get_command_argument(1, name)
  call MPI_File_open(MPI_COMM_WORLD, trim(name), MPI_MODE_RDWR + MPI_MODE_CREATE + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &
                     file, ierror)
  if (ierror /= MPI_SUCCESS) call fail(5)
  at = int(rank, MPI_OFFSET_KIND)*n*m*8
  call MPI_File_write_at_all(file, at, field, 1, inner, MPI_STATUS_IGNORE, ierror)
  other = -1
  call MPI_File_read_at_all(file, at, other, n*m, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, ierror)
  call check_box(other, rank, rounds, 6)
  call MPI_File_close(file, ierror)

  call MPI_Type_free(row, ierror)
  call MPI_Type_free(column, ierror)
  call MPI_Type_free(inner, ierror)
  call MPI_Type_free(block, ierror)
  if (rank == 0) print '(a)', 'right'
  call MPI_Finalize(ierror)

contains

  double precision function value_at(i, j, owner, round)
    integer, intent(in) :: i, j, owner, round
    value_at = i + 100*j + 10000*owner + 0.001d0*round
  end function

  subroutine fill(round)
    integer, intent(in) :: round
    field = -1
    do j = 1, m
      do i = 1, n
        field(i, j) = value_at(i, j, rank, round)
      end do
    end do
  end subroutine

  subroutine check_halo(round, step)
    integer, intent(in) :: round, step
    do j = 1, m
      if (field(0, j) /= value_at(n, j, previous, round)) call fail(step)
    end do
    do i = 1, n
      if (field(i, 0) /= value_at(i, m, previous, round)) call fail(step)
    end do
    if (any(field(n + 1, :) /= -1) .or. any(field(:, m + 1) /= -1) .or. field(0, 0) /= -1) call fail(step)
  end subroutine

  subroutine check_box(box, owner, round, step)
    double precision, intent(in) :: box(n, m)
    integer, intent(in) :: owner, round, step
    do j = 1, m
      do i = 1, n
        if (box(i, j) /= value_at(i, j, owner, round)) call fail(step)
      end do
    end do
  end subroutine

  subroutine exchange_boxes()
    integer :: received(ranks)
    received = 0
    received(previous + 1) = 1
    call MPI_Alltoallw(field, ones, zeros, types_out, columns, received, zeros, types_in, MPI_COMM_WORLD, ierror)
  end subroutine

  subroutine fail(step)
    integer, intent(in) :: step
    print '(a, i0, a, i0)', 'wrong in step ', step, ' on rank ', rank
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine
end program
