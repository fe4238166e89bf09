// From jobs to launches: which jobs go out together, and which batches a thread has cached.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "device/runtime.hpp"
#include "pack/gpu/batch/batch.hpp"

namespace gapless::pack::gpu {

/// Makes launches. `is_last`: nothing follows in this call.
class LaunchSink {
 public:
  virtual ~LaunchSink() = default;
  virtual device::Status launch(const Launch& work, const std::shared_ptr<Descriptor>& descriptor, bool is_last) = 0;
  /// From parameters.
  virtual device::Status launch(const BatchPart& part, bool is_last) = 0;
  /// All of it from a table. Nothing where there is no memory for one; then nothing has been launched.
  virtual std::optional<device::Status> launch_from_table(const Batch& batch, bool is_last) = 0;
};

/// Hands all jobs to the sink in as few launches as pays: jobs too large to mind a launch of their own get one. The
/// sink's first failure ends it. Throws std::bad_alloc.
device::Status issue(Planner& planner, std::span<const Job> jobs, int device, LaunchSink& sink);

}  // namespace gapless::pack::gpu
