// The GPU runtime interface: streams, and the ways of a call's jobs.
#include "pack/cuda/runtime.hpp"

#include <chrono>

#include "pack/cuda/context.hpp"
#include "pack/cuda/copy_engine.hpp"
#include "pack/cuda/errors.hpp"
#include "pack/cuda/kept.hpp"
#include "pack/cuda/kernels.hpp"
#include "pack/cuda/scopes.hpp"
#include "pack/cuda/tile_launch.hpp"
#include "pack/of_thread.hpp"

namespace gapless::pack::cuda {
namespace {

using device::Status;

/// While a stream that synchronises with the default stream is being captured, the default stream must not be touched,
/// and it has no work that could be waited for: what is captured does not run.
cudaError_t may_touch_default_stream(bool& may) noexcept {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(cudaStreamLegacy, &capture);
  may = error == cudaSuccess;
  if (error != cudaErrorStreamCaptureImplicit) return error;
  cudaGetLastError();
  return cudaSuccess;
}

/// Lets the lane's stream wait for `queue`; false if that failed, and then nothing has happened.
bool has_followed(const Lane& lane, cudaStream_t queue) noexcept {
  if (queue == lane.stream) return true;
  cudaError_t error = cudaEventRecord(lane.event, queue);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(lane.stream, lane.event, 0);
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess;
}

bool has_taken(cudaError_t error) noexcept {
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess;
}

/// False where the driver does not take the copies; a kernel then moves their bytes again.
bool have_issued(const Route& route, cudaStream_t queue) noexcept {
  if (route.runs != nullptr && has_taken(issue_copies(*route.runs, queue))) return true;
  return route.copies.count > 0 && has_taken(issue_copies(route.copies, queue));
}

Before state_of(cudaStream_t queue) noexcept { return is_idle(queue) ? Before::idle : Before::busy; }

Status issue(std::span<const Job> jobs, int device, Context& context, Launches& launches) noexcept {
  try {
    return issue(context.planner, jobs, device, launches);
  } catch (const std::bad_alloc&) {
    return failed("planning a pack or unpack", cudaErrorMemoryAllocation);
  }
}

/// One job, in chunks if there is memory for them.
Status issue_in_chunks(const Job& job, int device, Context& context, cudaStream_t queue, Launches& launches) noexcept {
  Staging& staging = context.staging;
  // A graph may be launched twice at a time, and the buffers serve one job after the other.
  if (is_capturing(queue) || !staging.acquire(queue)) return issue({&job, 1}, device, context, launches);
  Status status = Status::failed;
  try {
    status = issue_in_chunks(context.planner, job, device, launches, staging);
  } catch (const std::bad_alloc&) {
    status = failed("planning an unpack in chunks", cudaErrorMemoryAllocation);
  }
  if (status != Status::ok) staging.abandon();
  staging.release();
  return status;
}

/// Nothing where the job is no small nest. Throws std::bad_alloc.
std::optional<SmallNest> small_nest_of(const Job& job, int device, Planner& planner) {
  auto& kept = of_this_thread<KeptByJob<std::optional<SmallNest>>>();
  if (const auto* known = kept.find(job, device, planner.identity())) return *known;
  const auto preferred = planner.is_forced() ? std::nullopt : std::optional(Regime::nest);
  const std::optional<FusedWork> work = fused(planner.plan(job, device, preferred).launch);
  const auto* small = work ? std::get_if<SmallNest>(&*work) : nullptr;
  const std::optional<SmallNest> result = small != nullptr ? std::optional(*small) : std::nullopt;
  kept.remember(job, device, planner.identity(), result);
  return result;
}

/// False where it has to be launched.
bool has_run_resident(const Job& job, int device, device::Reach reach, Context& context) noexcept {
  try {
    const auto bytes = static_cast<std::size_t>(job.end - job.begin);
    const std::optional<SmallNest> nest = small_nest_of(job, device, context.planner);
    return nest &&
           run_resident(*nest, bytes, reach == device::Reach::beyond, context.resident(device)) == ResidentResult::done;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

void* CudaRuntime::stream(int device) noexcept {
  const InContext here(device);
  cudaError_t error = here.error();
  const Lane* own = error == cudaSuccess ? here.lane(error) : nullptr;
  if (own == nullptr) failed("creating a stream", error);
  return own != nullptr ? own->stream : nullptr;
}

Status CudaRuntime::follow_default_stream(int device, void* stream) noexcept {
  const InContext here(device);
  cudaError_t error = here.error();
  if (error != cudaSuccess) return failed("choosing the GPU", error);
  bool may = false;
  error = may_touch_default_stream(may);
  if (error == cudaSuccess && !may) return Status::ok;
  const Lane* own = error == cudaSuccess ? here.lane(error) : nullptr;
  if (own != nullptr) error = cudaEventRecord(own->event, cudaStreamLegacy);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), own->event, 0);
  return result("waiting for the default stream", error);
}

Status CudaRuntime::copy(void* destination, const void* source, std::size_t bytes, int device, void* stream) noexcept {
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return failed("choosing the GPU", current.error());
  return result("copying",
                cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream)));
}

Status CudaRuntime::synchronize(int device, void* stream) noexcept {
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return failed("choosing the GPU", current.error());
  return result("waiting for the GPU", cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
}

Status CudaRuntime::run(std::span<const Job> jobs, int device, void* stream) noexcept {
  const InContext here(device);
  if (here.error() != cudaSuccess) return failed("choosing the GPU", here.error());
  auto* const queue = static_cast<cudaStream_t>(stream);
  Context& context = here.context();
  Launches launches(context.memory, device, queue);
  if (jobs.size() != 1 || !router_.has_choice(jobs.front())) return issue(jobs, device, context, launches);
  const Route route = router_.route_issued(jobs.front(), locate(jobs.front().packed));
  if (route.engine == Engine::copies && have_issued(route, queue)) return Status::ok;
  return route.movement.in_chunks ? issue_in_chunks(jobs.front(), device, context, queue, launches)
                                  : issue(jobs, device, context, launches);
}

// The work goes to the default stream itself, which orders it after the program's own without an event to wait for.
Status CudaRuntime::run_and_wait(std::span<const Job> jobs, int device, device::Reach reach) noexcept {
  const InContext here(device);
  cudaError_t error = here.error();
  if (error != cudaSuccess) return failed("choosing the GPU", error);
  Context& context = here.context();
  const ResidentUse use = jobs.size() == 1 ? resident_use() : ResidentUse::never;
  if (use == ResidentUse::at_once && has_run_resident(jobs.front(), device, reach, context)) return Status::ok;
  bool may = false;
  error = may_touch_default_stream(may);
  if (use == ResidentUse::when_idle && may && has_run_resident(jobs.front(), device, reach, context)) return Status::ok;
  Lane* const own = error == cudaSuccess ? here.lane(error) : nullptr;
  if (own == nullptr) return failed("preparing to wait for the GPU", error);
  cudaStream_t queue = may ? cudaStreamLegacy : own->stream;
  Route route = router_.route_waited(jobs, device, reach);
  const Before before = router_.should_ask(route, device) ? state_of(queue) : Before::unknown;
  const std::uint64_t prepared_before = launches_prepared();
  const auto start = std::chrono::steady_clock::now();
  const Status status = run_and_wait(jobs, route, device, reach, context, *own, queue);
  const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
  // A run that had to load its kernel, to make a graph, or to plan many jobs and maybe to allocate a table, tells
  // nothing about engines.
  constexpr std::size_t soon_planned = 64;
  const bool tells = launches_prepared() == prepared_before && jobs.size() <= soon_planned;
  if (status == Status::ok && tells) router_.note(route, device, elapsed.count(), before);
  return status;
}

Status CudaRuntime::run_and_wait(std::span<const Job> jobs, Route& route, int device, device::Reach reach,
                                 Context& context, Lane& own, cudaStream_t queue) noexcept {
  if (route.engine == Engine::copies) {
    // The default stream takes no copies of runs.
    if (route.runs != nullptr && has_followed(own, queue)) queue = own.stream;
    if (have_issued(route, queue)) return result("waiting for copies", wait_for_copies(queue));
    route.engine = Engine::kernel;
  }
  GraphLaunches* graphs = queue == cudaStreamLegacy ? own.graphs.get() : nullptr;
  if (route.engine == Engine::ahead && has_followed(own, queue)) {
    queue = own.stream;
    graphs = own.graphs_ahead.get();
  }
  // The blocks of a long job would queue up to count themselves.
  constexpr std::uint64_t long_job = 8 << 20;
  Launches launches(context.memory, device, {queue, graphs},
                    route.movement.bytes < long_job ? own.next_completion(reach) : Completion{});
  const Status status = route.movement.in_chunks ? issue_in_chunks(jobs.front(), device, context, queue, launches)
                                                 : issue(jobs, device, context, launches);
  if (!launches.is_under_way()) return status;
  const bool polls = status == Status::ok && launches.completes();
  const Status finished = result("waiting for the GPU", polls ? own.wait(queue) : cudaStreamSynchronize(queue));
  return status == Status::ok ? finished : status;
}

Status CudaRuntime::copy(const PairJob& job, int device, void* stream) noexcept {
  const InContext here(device);
  if (here.error() != cudaSuccess) return failed("choosing the GPU", here.error());
  auto* const queue = static_cast<cudaStream_t>(stream);
  try {
    const PlannedPair planned = plan_pair(here.context().planner, job, device);
    if (planned.out_of_memory) return Status::out_of_memory;
    for (const auto& descriptor : {planned.source, planned.destination}) {
      if (!descriptor) continue;
      if (const Status status = here.context().memory.use({&descriptor, 1}, queue); status != Status::ok) return status;
    }
    return result("starting a copy between two layouts", launch(planned.launch, queue));
  } catch (const std::bad_alloc&) {
    return failed("planning a copy between two layouts", cudaErrorMemoryAllocation);
  }
}

}  // namespace gapless::pack::cuda

extern "C" __attribute__((visibility("default"))) gapless::device::Runtime* gapless_device_open(int interface_version) {
  if (interface_version != gapless_device_interface_version) return nullptr;
  // Never destroyed: at exit the driver may be gone first.
  static auto* const runtime = new gapless::pack::cuda::CudaRuntime;
  return runtime;
}
