// Which process of this node is which rank of this job. No call here waits for another process.
//
// An entry is a bound socket in the kernel's abstract namespace, named by user, job and rank: the kernel vouches for
// the process behind it, and takes it away with the process, however that ends (and with its children that were forked
// and run no other program). Nothing is ever sent through it.
#pragma once

#include <sys/types.h>

#include <optional>

namespace gapless::fabric::registry {

/// Enters this process as that rank of its job, until it ends. False where the job cannot be told from others, or the
/// system refuses.
bool enter(int rank) noexcept;

/// The process that stands in the registry as that rank of this job. Nothing where there is none on this node.
std::optional<pid_t> find(int rank) noexcept;

/// Has the process ended that stood in the registry as that rank of this job? Precondition: one did, on this node.
bool has_left(int rank) noexcept;

/// Has that process of this node ended? Also if its parent has not waited for it; before Linux 5.3 only afterwards.
bool is_gone(pid_t process) noexcept;

}  // namespace gapless::fabric::registry
