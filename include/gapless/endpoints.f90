! The calls of gapless/endpoints.h for programs that use the module mpi_f08: compile this file with the program, and
! use gapless_endpoints. Where gapless is off the calls do nothing, and leave ierror as it was: a program sets it to
! MPI_ERR_OTHER before.
module gapless_endpoints
  use mpi_f08, only: MPI_Comm, MPI_Info
  implicit none
  integer, parameter :: MPIX_ALIASED = 4747
  interface
    subroutine MPIX_Comm_create_endpoints(parent, my_num_ep, info, handles, ierror) &
        bind(C, name="mpix_comm_create_endpoints_")
      import :: MPI_Comm, MPI_Info
      type(MPI_Comm), intent(in) :: parent
      integer, intent(in) :: my_num_ep
      type(MPI_Info), intent(in) :: info
      type(MPI_Comm), intent(out) :: handles(*)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Query_endpoints(parent, count, ierror) bind(C, name="mpix_query_endpoints_")
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: parent
      integer, intent(out) :: count
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Init_endpoints(count, tl_requested, tl_provided, ierror) bind(C, name="mpix_init_endpoints_")
      integer, intent(in) :: count, tl_requested
      integer, intent(out) :: tl_provided
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Endpoint_attach(id, ierror) bind(C, name="mpix_endpoint_attach_")
      integer, intent(in) :: id
      integer, optional, intent(out) :: ierror
    end subroutine
  end interface
end module
