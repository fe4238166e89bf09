// Fabrics by libfabric: whatever provider it has with reliable datagrams (RDM) and remote memory access.
//
// libfabric is never linked, and never loaded by path: MPI libraries bring their own copy under the same name, and two
// in one process crash. The copy that is there is taken, else the one that the dynamic linker finds. So call this after
// MPI_Init.
#pragma once

#include <memory>
#include <string>

#include "fabric/remote/endpoint.hpp"

namespace gapless::fabric {

/// `provider` is a name that libfabric knows ("tcp", "shm", "verbs", "cxi", "efa"); empty: the first that will do.
/// Null if there is none, and `why` says why. `with_gpus`: one that reaches GPU memory too, if the provider can
/// (FI_HMEM).
std::unique_ptr<Endpoint> open_libfabric(const std::string& provider, std::string& why,
                                         bool with_gpus = false) noexcept;

}  // namespace gapless::fabric
