// A call's way from jobs to launches, step by step. submit() and wait() go all of them, run() those from the route on.
//
//   resident   run_resident()          one small job for the kernel that stays on the GPU        pack/cuda/resident
//   route      Router::route_*()       kernel, kernel of high priority, or copy engine; chunks   pack/gpu/route
//   issue      issue()                 which jobs share a launch                                 pack/gpu/batch
//     plan     Planner::plan()         a job's shape, its descriptor, and with prepare() its     pack/gpu/plan
//              choose_regime()         regime, word and tiles                                    pack/gpu/describe
//   launch     Launches::launch()      parameters or a table, a graph or a kernel                pack/cuda/launch
//   wait       Submission::wait()      for a number that the kernel's last block writes          pack/cuda/state.hpp
#include "pack/cuda/engine.hpp"

#include <chrono>
#include <new>

#include "base/per_thread.hpp"
#include "device/cuda/errors.hpp"
#include "device/cuda/runtime.hpp"
#include "device/cuda/streams.hpp"
#include "model/gpu.hpp"
#include "pack/cuda/kernels/kernels.hpp"
#include "pack/cuda/launch/copy_engine.hpp"
#include "pack/cuda/launch/tile_launch.hpp"
#include "pack/gpu/batch/job_cache.hpp"

namespace gapless::pack::gpu {
namespace {

using device::Status;
using device::cuda::failed;
using device::cuda::Lane;
using device::cuda::result;

/// The calling thread's place on a GPU, which is current while it lives.
class CallPlace {
 public:
  explicit CallPlace(int device) noexcept : here_(device), error_(here_.error()) {
    if (error_ != cudaSuccess) return;
    try {
      state_ = &here_.context().slots.of<ContextState>();
    } catch (const std::exception&) {
      error_ = cudaErrorMemoryAllocation;
    }
  }

  /// The functions below may be called only if this is cudaSuccess.
  cudaError_t error() const noexcept { return error_; }
  ContextState& state() const noexcept { return *state_; }
  const device::cuda::Context& context() const noexcept { return here_.context(); }
  /// The thread's lane, and this engine's state in it; nullptr with the reason in `error`.
  Lane* lane(LaneState*& state, cudaError_t& error) const noexcept {
    Lane* const lane = here_.lane(error);
    if (lane == nullptr) return nullptr;
    try {
      state = &lane->slots.of<LaneState>();
      error = state->prepare(lane->stream);
    } catch (const std::exception&) {
      error = cudaErrorMemoryAllocation;
    }
    return error == cudaSuccess ? lane : nullptr;
  }

 private:
  device::cuda::InContext here_;
  cudaError_t error_;
  ContextState* state_ = nullptr;
};

bool succeeded_else_clear(cudaError_t error) noexcept {
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess;
}

/// False where the driver does not take the copies; a kernel then moves their bytes again.
bool try_copies(const Route& route, cudaStream_t queue) noexcept {
  return route.copies.count > 0 && succeeded_else_clear(issue_copies(route.copies, queue));
}

Before state_of(cudaStream_t queue) noexcept { return device::cuda::is_idle(queue) ? Before::idle : Before::busy; }

Status issue(std::span<const Job> jobs, int device, ContextState& state, Launches& launches) noexcept {
  try {
    return issue(state.planner, jobs, device, launches);
  } catch (const std::bad_alloc&) {
    return failed("planning a pack or unpack", cudaErrorMemoryAllocation);
  }
}

/// One job, in chunks if there is memory for them.
Status issue_in_chunks(const Job& job, int device, ContextState& state, cudaStream_t queue,
                       Launches& launches) noexcept {
  Staging& staging = state.staging;
  // A graph may be launched twice at a time, and the buffers serve one job after the other.
  if (device::cuda::is_capturing(queue) || !staging.acquire(queue)) return issue({&job, 1}, device, state, launches);
  Status status = Status::failed;
  try {
    status = issue_in_chunks(state.planner, job, device, launches, staging);
  } catch (const std::bad_alloc&) {
    status = failed("planning an unpack in chunks", cudaErrorMemoryAllocation);
  }
  if (status != Status::ok) staging.abandon();
  staging.release();
  return status;
}

/// Nothing where the job is no small nest. Throws std::bad_alloc.
const std::optional<SmallNest>& small_nest_of(const Job& job, int device, Planner& planner) {
  CachedJob& cached = of_this_thread<JobCache>().at(job, device, planner.identity());
  if (!cached.is_nest_known) {
    const auto preferred = planner.is_forced() ? std::nullopt : std::optional(Regime::nest);
    const std::optional<FusedWork> work = fused(planner.plan(job, device, preferred).launch);
    if (const auto* small = work ? std::get_if<SmallNest>(&*work) : nullptr) cached.nest = *small;
    cached.is_nest_known = true;
  }
  return cached.nest;
}

bool try_resident(const ResidentJob& job, int device, ContextState& state) {
  return run_resident(job, state.resident(device)) == ResidentResult::done;
}

/// False where the job has to be launched.
bool try_resident(std::span<const Job> jobs, int device, Reach reach, ContextState& state) noexcept try {
  if (jobs.size() != 1) return false;
  const Job& job = jobs.front();
  if (!is_small_for_resident(static_cast<std::size_t>(job.end - job.begin))) return false;
  const std::optional<SmallNest>& nest = small_nest_of(job, device, state.planner);
  return nest && try_resident(ResidentJob(*nest, reach == Reach::beyond), device, state);
} catch (const std::bad_alloc&) {
  return false;
}

/// The same of a copy between two layouts.
bool try_resident(std::span<const PairJob> jobs, int device, ContextState& state) noexcept try {
  if (jobs.size() != 1) return false;
  const PairJob& job = jobs.front();
  if (!is_small_for_resident(static_cast<std::size_t>(job.source->size * job.source_outer.count))) return false;
  const std::optional<ResidentPair> pair = resident_pair(plan_pair(state.planner, job, device).launch);
  return pair && try_resident(ResidentJob(*pair), device, state);
} catch (const std::bad_alloc&) {
  return false;
}

Ticket ended(Status status) noexcept { return {nullptr, 0, -1, status}; }

/// nullptr if the ticket is not under way, or its context is gone, and the work with it.
Submission* submission_of(Ticket& ticket) noexcept {
  if (!ticket.is_under_way()) return nullptr;
  const device::cuda::ThreadPlace* const place = device::cuda::place_in(ticket.context);
  if (place != nullptr && place->context->is_there()) {
    return static_cast<Submission*>(ticket.work);
  }
  ticket = ended(failed("waiting for the GPU", cudaErrorContextIsDestroyed));
  return nullptr;
}

/// What has been launched is the submission's. After a failure nothing is under way.
Status note(Status status, const Launches& launches, cudaStream_t queue, Submission& submission) noexcept {
  submission.queue = nullptr;
  submission.completes = false;
  if (!launches.is_under_way()) return status;
  if (status != Status::ok) {
    static_cast<void>(cudaStreamSynchronize(queue));
    return status;
  }
  submission.queue = queue;
  submission.completes = launches.completes();
  return Status::ok;
}

/// By the route; what is noted in the route is how it went in the end. After a failure nothing is under way; without
/// one, nothing is unless the submission has a queue.
Status submit(std::span<const Job> jobs, int device, Reach reach, ContextState& state, const Waiting& waiting,
              Submission& submission) noexcept {
  Route& route = submission.route;
  cudaStream_t queue = waiting.queue;
  submission.queue = nullptr;
  submission.completes = false;
  if (route.engine == Engine::copies) {
    if (try_copies(route, queue)) {
      submission.queue = queue;
      return Status::ok;
    }
    route.engine = Engine::kernel;
  }
  GraphLaunches* graphs = queue == cudaStreamLegacy ? waiting.state->graphs.get() : nullptr;
  if (route.engine == Engine::high_priority && waiting.lane->follow(queue)) {
    queue = waiting.lane->stream;
    graphs = waiting.state->high_priority_graphs.get();
  }
  const bool is_polled = route.movement.bytes < model::gpu_tuning.longest_polled_job;
  Launches launches(state.memory, device, {queue, graphs},
                    is_polled ? submission.next_completion(reach) : Completion{});
  const Status status = route.movement.in_chunks ? issue_in_chunks(jobs.front(), device, state, queue, launches)
                                                 : issue(jobs, device, state, launches);
  return note(status, launches, queue, submission);
}

/// Where the calling thread waits, and what for. nullptr with the reason in `error`.
Submission* begin(const CallPlace& place, bool may_touch_default_stream, Waiting& waiting,
                  cudaError_t& error) noexcept {
  waiting.lane = error == cudaSuccess ? place.lane(waiting.state, error) : nullptr;
  if (waiting.lane == nullptr) return nullptr;
  waiting.queue = may_touch_default_stream ? cudaStreamLegacy : waiting.lane->stream;
  return waiting.state->acquire(waiting.lane->stream, error);
}

Ticket ticket_of(Status status, Submission* submission, const CallPlace& place, int device,
                 const Waiting& waiting) noexcept {
  if (status == Status::ok && submission->queue != nullptr) {
    submission->context = place.context().handle();
    return {submission, place.context().number(), device, status, !submission->completes};
  }
  waiting.state->release(*submission);
  return ended(status);
}

Status issue(std::span<const PairJob> jobs, int device, ContextState& state, Launches& launches) noexcept {
  try {
    return issue(state.planner, jobs, device, launches);
  } catch (const std::bad_alloc&) {
    return failed("planning a copy between two layouts", cudaErrorMemoryAllocation);
  }
}

}  // namespace

Status CudaEngine::run(std::span<const Job> jobs, int device, void* stream) noexcept {
  const CallPlace place(device);
  if (place.error() != cudaSuccess) return failed("choosing the GPU", place.error());
  auto* const queue = static_cast<cudaStream_t>(stream);
  ContextState& state = place.state();
  Launches launches(state.memory, device, queue);
  if (jobs.size() != 1 || !router_.has_choice(jobs.front())) return issue(jobs, device, state, launches);
  const Route route = router_.route_issued(jobs.front(), device::cuda::locate(jobs.front().packed));
  if (route.engine == Engine::copies && try_copies(route, queue)) return Status::ok;
  return route.movement.in_chunks ? issue_in_chunks(jobs.front(), device, state, queue, launches)
                                  : issue(jobs, device, state, launches);
}

Ticket CudaEngine::submit(std::span<const Job> jobs, int device, Reach reach) noexcept {
  return submit(jobs, device, reach, false);
}

Ticket CudaEngine::submit_section(const Job& job, int device, Reach reach) noexcept {
  return submit({&job, 1}, device, reach, true);
}

// The work goes to the default stream itself, which orders it after the program's own without an event to wait for.
Ticket CudaEngine::submit(std::span<const Job> jobs, int device, Reach reach, bool is_section) noexcept {
  const CallPlace place(device);
  cudaError_t error = place.error();
  if (error != cudaSuccess) return ended(failed("choosing the GPU", error));
  ContextState& state = place.state();
  const ResidentUse use = resident_use();
  if (use == ResidentUse::at_once && try_resident(jobs, device, reach, state)) return ended(Status::ok);
  bool may = false;
  error = device::cuda::may_touch_default_stream(may);
  if (use == ResidentUse::when_idle && may && try_resident(jobs, device, reach, state)) return ended(Status::ok);
  Waiting waiting;
  Submission* const submission = begin(place, may, waiting, error);
  if (submission == nullptr) return ended(failed("preparing to wait for the GPU", error));
  submission->route = router_.route_waited(jobs, device, reach, is_section);
  submission->before = router_.should_ask(submission->route, device) ? state_of(waiting.queue) : Before::unknown;
  submission->polls = 0;
  const std::uint64_t prepared_before = launches_prepared();
  submission->start = std::chrono::steady_clock::now();
  const Status status = gpu::submit(jobs, device, reach, state, waiting, *submission);
  // A run that had to load its kernel, to make a graph, or to plan many jobs and maybe to allocate a table, tells
  // nothing about engines.
  constexpr std::size_t soon_planned = 64;
  submission->tells = launches_prepared() == prepared_before && jobs.size() <= soon_planned;
  return ticket_of(status, submission, place, device, waiting);
}

Ticket CudaEngine::submit(std::span<const PairJob> jobs, int device) noexcept {
  const CallPlace place(device);
  cudaError_t error = place.error();
  if (error != cudaSuccess) return ended(failed("choosing the GPU", error));
  ContextState& state = place.state();
  const ResidentUse use = resident_use();
  if (use == ResidentUse::at_once && try_resident(jobs, device, state)) return ended(Status::ok);
  bool may = false;
  error = device::cuda::may_touch_default_stream(may);
  if (use == ResidentUse::when_idle && may && try_resident(jobs, device, state)) return ended(Status::ok);
  Waiting waiting;
  Submission* const submission = begin(place, may, waiting, error);
  if (submission == nullptr) return ended(failed("preparing to wait for the GPU", error));
  submission->route = {};
  submission->polls = 0;
  submission->tells = false;
  GraphLaunches* const graphs = may ? waiting.state->graphs.get() : nullptr;
  Launches launches(state.memory, device, {waiting.queue, graphs}, submission->next_completion(Reach::this_gpu));
  const Status issued = issue(jobs, device, state, launches);
  return ticket_of(note(issued, launches, waiting.queue, *submission), submission, place, device, waiting);
}

void CudaEngine::poll(Ticket& ticket) noexcept {
  Submission* const submission = submission_of(ticket);
  if (submission == nullptr) return;
  // What is looked at now and then tells nothing about engines.
  submission->tells = false;
  if (submission->has_ended()) static_cast<void>(wait(ticket));
}

Status CudaEngine::wait(Ticket& ticket) noexcept {
  Submission* const submission = submission_of(ticket);
  if (submission == nullptr) return ticket.status;
  const Status status = result("waiting for the GPU", submission->wait());
  if (status == Status::ok && submission->tells) {
    const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - submission->start;
    router_.note(submission->route, ticket.device, elapsed.count(), submission->before);
  }
  submission->owner->release(*submission);
  ticket = ended(status);
  return status;
}

Status CudaEngine::copy(const PairJob& job, int device, void* stream) noexcept {
  const CallPlace place(device);
  if (place.error() != cudaSuccess) return failed("choosing the GPU", place.error());
  Launches launches(place.state().memory, device, static_cast<cudaStream_t>(stream));
  return issue({&job, 1}, device, place.state(), launches);
}

}  // namespace gapless::pack::gpu

extern "C" __attribute__((visibility("default"))) gapless::pack::GpuEngine* gapless_pack_open(int interface_version) {
  if (interface_version != gapless_pack_interface_version) return nullptr;
  // Never destroyed: at exit the driver may be gone first.
  static auto* const engine = new gapless::pack::gpu::CudaEngine;
  return engine;
}
