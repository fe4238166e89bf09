// The MPI header of the variant being compiled, made harmless: nothing it declares may become an undefined symbol.
//
// Functions are only ever named inside decltype. Open MPI's predefined handles are addresses of data symbols, so their
// macro is redefined to take the addresses from a table that is filled when the variant is opened; MPI_INT and the
// others then work unchanged in the source.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(GAPLESS_VARIANT_ABI)
#include <mpi_abi.h>
#else
#define MPICH_SKIP_MPICXX 1
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#endif

#include "declared.hpp"

#define GAPLESS_CONCATENATE_(a, b) a##b
#define GAPLESS_CONCATENATE(a, b) GAPLESS_CONCATENATE_(a, b)
#define GAPLESS_IF_0(...)
#define GAPLESS_IF_1(...) __VA_ARGS__
/// The code if this ABI's header declares MPI_<name>, else nothing.
#define GAPLESS_IF_DECLARED(name, ...) GAPLESS_CONCATENATE(GAPLESS_IF_, GAPLESS_DECLARED_##name)(__VA_ARGS__)

#if defined(GAPLESS_VARIANT_OPENMPI)

// The predefined handles this layer names.
#define GAPLESS_OPENMPI_DATA(row)                                                                                      \
  row(ompi_mpi_comm_null) row(ompi_mpi_comm_world) row(ompi_mpi_comm_self) row(ompi_request_null)                      \
      row(ompi_message_no_proc) row(ompi_message_null) row(ompi_mpi_datatype_null) row(ompi_mpi_byte)                  \
          row(ompi_mpi_packed) row(ompi_mpi_2int) row(ompi_mpi_float_int) row(ompi_mpi_double_int)                     \
              row(ompi_mpi_longdbl_int) row(ompi_mpi_long_int) row(ompi_mpi_short_int) row(ompi_mpi_errors_return)     \
                  row(ompi_mpi_errors_are_fatal) row(ompi_mpi_info_null) row(ompi_mpi_int) row(ompi_mpi_op_max)        \
                      row(ompi_mpi_long_double) row(ompi_mpi_c_long_double_complex) row(ompi_mpi_op_min)               \
                          row(ompi_mpi_op_sum) row(ompi_mpi_op_prod) row(ompi_mpi_op_land) row(ompi_mpi_op_band)       \
                              row(ompi_mpi_op_lor) row(ompi_mpi_op_bor) row(ompi_mpi_op_lxor) row(ompi_mpi_op_bxor)    \
                                  row(ompi_mpi_op_minloc) row(ompi_mpi_op_maxloc) row(ompi_mpi_op_null)                \
                                      row(ompi_mpi_op_replace) row(ompi_mpi_op_no_op) row(ompi_mpi_group_empty)        \
                                          row(ompi_mpi_double) row(ompi_mpi_float) row(ompi_mpi_long)                  \
                                              row(ompi_mpi_long_long_int) row(ompi_mpi_unsigned)                       \
                                                  row(ompi_mpi_unsigned_long) row(ompi_mpi_int32_t)                    \
                                                      row(ompi_mpi_int64_t) row(ompi_mpi_uint64_t)                     \
                                                          row(ompi_mpi_file_null) row(ompi_mpi_unsigned_long_long)     \
                                                              row(ompi_mpi_uint32_t) row(ompi_mpi_c_float_complex)     \
                                                                  row(ompi_mpi_c_double_complex) row(ompi_mpi_integer) \
                                                                      row(ompi_mpi_real) row(ompi_mpi_dblprec)         \
                                                                          row(ompi_mpi_cplex) row(ompi_mpi_dblcplex)

namespace gapless::mpi {
struct OpenMpiData {
#define GAPLESS_ROW(symbol) void* symbol = nullptr;
  GAPLESS_OPENMPI_DATA(GAPLESS_ROW)
#undef GAPLESS_ROW
};
extern OpenMpiData open_mpi_data;
}  // namespace gapless::mpi

#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) (static_cast<type>(::gapless::mpi::open_mpi_data.global))

#endif

namespace gapless::mpi {

/// A handle as a number: an int in MPICH, a pointer elsewhere.
template <class Handle>
std::uintptr_t number_of(Handle handle) noexcept {
  if constexpr (std::is_integral_v<Handle>) {
    return static_cast<std::uint32_t>(handle);
  } else {
    return reinterpret_cast<std::uintptr_t>(handle);
  }
}

}  // namespace gapless::mpi
