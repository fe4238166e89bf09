#include "pack/cuda/run_copies.hpp"

#include "pack/cuda/job_runs.hpp"

namespace gapless::pack::cuda {
namespace {

Offset estimated_runs(const Layout& layout) noexcept {
  const Offset repetitions = layout.size / layout.core_size;
  switch (layout.core) {
    case layout::Core::block:
      return repetitions;
    case layout::Core::index:
      return repetitions * static_cast<Offset>(layout.offsets.size()) * estimated_runs(*layout.child);
    case layout::Core::segments:
      return repetitions * static_cast<Offset>(layout.offsets.size());
    case layout::Core::sum:
      return repetitions * static_cast<Offset>(layout.parts.size());
  }
  return repetitions;
}

/// Do runs follow each other upwards, or all downwards, without overlap?
class Apart {
 public:
  bool add(std::uintptr_t begin, std::uintptr_t end) noexcept {
    if (is_first_) {
      is_first_ = false;
    } else {
      ascending_ = ascending_ && begin >= end_;
      descending_ = descending_ && end <= begin_;
    }
    begin_ = begin;
    end_ = end;
    return ascending_ || descending_;
  }

 private:
  bool is_first_ = true, ascending_ = true, descending_ = true;
  std::uintptr_t begin_ = 0, end_ = 0;  ///< of the run before
};

}  // namespace

Offset estimated_runs(const Job& job) noexcept {
  if (job.begin >= job.end) return 0;
  // Of a part of the job, as if all runs were of one length.
  const Offset runs = estimated_runs(*job.layout), mean_run = job.layout->size / runs;
  return std::max((job.end - job.begin) / mean_run, Offset{1});
}

bool plan_runs(const Job& job, RunCopies& runs) noexcept {
  runs.count = 0;
  runs.unpack = job.direction == Direction::unpack;
  std::uintptr_t packed = reinterpret_cast<std::uintptr_t>(job.packed);
  Apart apart;
  const auto add = [&](std::uintptr_t memory, Offset bytes) {
    if (runs.count == runs.bytes.size()) return false;
    if (runs.unpack && !apart.add(memory, memory + unsigned_(bytes))) return false;
    runs.destinations[runs.count] = reinterpret_cast<void*>(runs.unpack ? memory : packed);
    runs.sources[runs.count] = reinterpret_cast<const void*>(runs.unpack ? packed : memory);
    runs.bytes[runs.count] = unsigned_(bytes);
    ++runs.count;
    packed += unsigned_(bytes);
    return true;
  };
  return JobRuns(add).visit(job);
}

}  // namespace gapless::pack::cuda
