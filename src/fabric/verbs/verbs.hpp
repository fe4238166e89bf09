// InfiniBand and RoCE by libibverbs itself, the interface of Wu et al., 2003: writes that gather up to the device's
// limit, reads that scatter, immediates, and lists posted in one call. One reliable connection a peer.
//
// libibverbs is not linked; it is looked for when this is called. Messages go by libfabric's provider of that name;
// this endpoint is what tests and benchmarks compare it with.
#pragma once

#include <memory>
#include <string>

#include "fabric/remote/endpoint.hpp"

namespace gapless::fabric {

/// `device` is a name that libibverbs knows ("mlx5_0", "rxe0"); empty: the first with an active port. Null if there is
/// none, and `why` says why. After an operation that failed, its peer cannot be reached any more.
std::unique_ptr<Endpoint> open_verbs(const std::string& device, std::string& why) noexcept;

}  // namespace gapless::fabric
