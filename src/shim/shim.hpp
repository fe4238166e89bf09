// What the trampolines and the code behind them share, and what libgapless.so exports besides MPI functions.
#pragma once

#include <cstddef>

namespace gapless::shim {

/// Where calls of MPI_X and PMPI_X go.
struct Slots {
  void* mpi;
  void* pmpi;
};

}  // namespace gapless::shim

extern "C" {

/// One pair for each exported function, in the order of mpi/table/functions.def, mpi/table/extensions.def and
/// mpi/table/additions.def. Before the first call they lead to gapless_shim_resolve.
extern gapless::shim::Slots gapless_shim_slots[];

/// Called by a trampoline on the first call of any function: returns where this call goes on.
void* gapless_shim_resolve(void** slot, const void* return_address);

/// Writes lines "key=value" about what the shim found (state: active or disabled, why, libmpi, abi, variant,
/// redirected: yes once endpoints were made), looking for an MPI library first if no MPI function has been called yet.
/// Returns the length of the whole text, like snprintf.
__attribute__((visibility("default"))) std::size_t gapless_shim_report(char* buffer, std::size_t size);
}
