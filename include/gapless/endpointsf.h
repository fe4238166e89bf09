! The calls of gapless/endpoints.h for programs that include mpif.h or use the module mpi: include this file among the
! declarations. Handles are integers; the last argument is the error code, as everywhere in MPI.
!     MPIX_Comm_create_endpoints(parent, my_num_ep, info, handles, ierror)
!     MPIX_Query_endpoints(parent, count, ierror)
!     MPIX_Init_endpoints(count, tl_requested, tl_provided, ierror)
!     MPIX_Endpoint_attach(id, ierror)
      integer MPIX_ALIASED
      parameter (MPIX_ALIASED = 4747)
      external MPIX_Comm_create_endpoints, MPIX_Query_endpoints
      external MPIX_Init_endpoints, MPIX_Endpoint_attach
