// The plugin behind simulated_device.h. Kernels are the CUDA plugin's own bodies, run in loops over grid and block.
#include "simulated_device.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "device/runtime.hpp"
#include "pack/gpu/batch/issue.hpp"
#include "pack/gpu/batch/pair_batch.hpp"
#include "pack/gpu/plan/pair_plan.hpp"
#include "pack/gpu_engine.hpp"
#include "reduction/gpu_reducer.hpp"
#include "simulated_contexts.hpp"
#include "simulated_engines.hpp"
#include "simulated_executor.hpp"
#include "simulated_failures.hpp"
#include "simulated_memory.hpp"
#include "simulated_streams.hpp"
#include "simulated_tables.hpp"

namespace gapless::tests {
namespace {

using device::Location;
using device::MemoryKind;
using device::Status;
using pack::Job;
namespace gpu = pack::gpu;

thread_local std::string last_error_text;

SimulatedMemory& memory() {
  static auto* instance = new SimulatedMemory;
  return *instance;
}

constexpr std::array<const char*, 13> counter_names = {
    "launches",      "launches_of_high_priority", "copies", "synchronisations", "allocations", "uploads",
    "table_uploads", "default_stream_waits",      "polls",  "locates",          "queries",     "flushes",
    "reductions"};
std::array<std::atomic<long>, counter_names.size()> counters;

std::atomic<long>& counter(const char* name) {
  for (std::size_t i = 0; i < counter_names.size(); ++i) {
    if (std::strcmp(counter_names[i], name) == 0) return counters[i];
  }
  std::abort();  // a misspelt name in this file
}

Failures& failures() {
  static auto* instance = new Failures;
  return *instance;
}

bool fails_now(const char* operation) {
  const bool fails = failures().take(operation);
  if (fails) last_error_text = std::string("simulated failure of ") + operation;
  return fails;
}

Streams& streams() {
  static auto* instance = new Streams;
  return *instance;
}

/// A null stream is the legacy default stream, here one for all GPUs.
Stream& stream_of(void* handle) {
  static Stream* legacy_default = streams().create();
  return handle != nullptr ? *static_cast<Stream*>(handle) : *legacy_default;
}

class DescriptorMemory final : public gpu::DescriptorMemory {
 public:
  gpu::Upload upload(int, const void* bytes, std::size_t count) noexcept override {
    if (fails_now("upload")) return {};
    ++counter("uploads");
    void* descriptor = std::malloc(count);
    if (descriptor != nullptr) std::memcpy(descriptor, bytes, count);
    return {descriptor, nullptr};
  }
  void release(int, const gpu::Upload& upload, std::size_t) noexcept override { std::free(upload.bytes); }
};

SimulatedContexts& contexts() {
  static auto* const memory_of_tables = new SimulatedTables(
      memory(), [] { return !fails_now("allocate"); }, counter("table_uploads"));
  static auto* const instance = new SimulatedContexts(*memory_of_tables);
  return *instance;
}

/// Puts launches into a stream of a GPU, to be executed when somebody waits.
class PairLaunches final : public gpu::PairSink {
 public:
  explicit PairLaunches(Stream& stream) : stream_(stream) {}

  Status launch(const gpu::PlannedPair& planned, bool) override {
    if (std::holds_alternative<std::monostate>(planned.launch)) return Status::ok;
    ++counter(std::holds_alternative<gpu::ContiguousWork>(planned.launch) ? "copies" : "launches");
    stream_.add([planned] {
      Executor executor(memory());
      std::visit(executor, planned.launch);
      return !executor.fault;
    });
    return Status::ok;
  }
  Status launch(const gpu::PairBatch& batch, bool) override {
    ++counter("launches");
    stream_.add([batch] {
      Executor executor(memory());
      executor(batch);
      return !executor.fault;
    });
    return Status::ok;
  }

 private:
  Stream& stream_;
};

class Launches final : public gpu::LaunchSink {
 public:
  Launches(int device, Stream& stream) : device_(device), stream_(stream) {}

  Status launch(const gpu::Launch& work, const std::shared_ptr<gpu::Descriptor>& descriptor, bool) override {
    ++counter(std::holds_alternative<gpu::ContiguousWork>(work) ? "copies" : "launches");
    stream_.add([work, descriptor] {
      Executor executor(memory());
      std::visit(executor, work);
      return !executor.fault;
    });
    return Status::ok;
  }
  Status launch(const gpu::BatchPart& part, bool) override {
    part.visit_parameters({},
                          [&](const auto& parameters, std::size_t) { add(part.batch(), parameters, part.tiles()); });
    return Status::ok;
  }
  std::optional<Status> launch_from_table(const gpu::Batch& batch, bool) override {
    return contexts().tables(device_).run(batch, device_, &stream_, [&](const void* table) {
      add(batch, batch.table(table, {}), batch.tiles());
      return Status::ok;
    });
  }

 private:
  template <class Parameters>
  void add(const gpu::Batch& batch, const Parameters& parameters, std::uint32_t tiles) {
    ++counter("launches");
    const auto used = batch.descriptors();
    stream_.add([parameters, tiles, descriptors = std::vector(used.begin(), used.end())] {
      Executor executor(memory());
      executor.run_batch(parameters, tiles);
      return !executor.fault;
    });
  }

  int device_;
  Stream& stream_;
};

EngineDelays& engine_delays() {
  static auto* instance = new EngineDelays;
  return *instance;
}

/// What a call says that has waited.
Status finished(bool healthy) {
  if (fails_now("synchronize")) return Status::failed;
  if (!healthy) last_error_text = "an illegal memory access was encountered";
  return healthy ? Status::ok : Status::failed;
}

class SimulatedRuntime final : public device::Runtime {
 public:
  const char* name() const noexcept override { return "simulated"; }
  int device_count() noexcept override { return SimulatedMemory::device_count; }
  std::string describe(int device) override { return "simulated GPU " + std::to_string(device); }
  const char* last_error() noexcept override { return last_error_text.c_str(); }

  Location locate(const void* pointer) noexcept override {
    ++counter("locates");
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    const int owner = memory().owner(address, 1);
    if (owner >= 0) return {MemoryKind::device, owner};
    return memory().is_pinned(address, 1) ? Location{MemoryKind::pinned, 0} : Location{};
  }

  std::uint64_t context(int device) noexcept override { return contexts().number(device); }
  bool has_context(std::uint64_t number) noexcept override { return contexts().has(number); }

  Status allocate(MemoryKind kind, int device, std::size_t bytes, void** result) noexcept override {
    *result = nullptr;
    if (fails_now("allocate")) return Status::out_of_memory;
    ++counter("allocations");
    if (kind != MemoryKind::device && kind != MemoryKind::pinned) {
      last_error_text = "only device and pinned memory can be allocated";
      return Status::unsupported;
    }
    *result = kind == MemoryKind::device ? memory().allocate(device, bytes) : memory().allocate_pinned(device, bytes);
    if (*result != nullptr) return Status::ok;
    last_error_text = "the simulated GPU is full";
    return Status::out_of_memory;
  }

  void release(MemoryKind kind, int, void* pointer) noexcept override {
    streams().finish_all();
    if (kind == MemoryKind::device) {
      memory().release(pointer);
    } else {
      memory().release_pinned(pointer);
    }
  }

  void* stream(int device) noexcept override {
    thread_local std::array<Stream*, SimulatedMemory::device_count> own{};
    if (fails_now("stream")) return nullptr;
    if (own[device] == nullptr) own[device] = streams().create();
    return own[device];
  }

  Status follow_default_stream(int, void*) noexcept override {
    ++counter("default_stream_waits");
    return Status::ok;
  }

  Status copy(void* destination, const void* source, std::size_t bytes, int, void* stream) noexcept override {
    if (fails_now("copy")) return Status::failed;
    ++counter("copies");
    stream_of(stream).add([=] {
      Executor executor(memory());
      executor.copy(reinterpret_cast<std::uintptr_t>(destination), reinterpret_cast<std::uintptr_t>(source), bytes);
      return !executor.fault;
    });
    return Status::ok;
  }

  Status synchronize(int, void* stream) noexcept override {
    ++counter("synchronisations");
    return finished(stream_of(stream).finish());
  }

  Status query(int, void* stream, bool& is_idle) noexcept override {
    ++counter("queries");
    is_idle = stream_of(stream).is_idle_or_goes_on();
    return fails_now("query") ? Status::failed : Status::ok;
  }
  void adopt(int) noexcept override {}

  Status enable_peer(int, int) noexcept override { return fails_now("enable_peer") ? Status::unsupported : Status::ok; }

  /// Every process simulates GPUs of its own.
  std::uint64_t gpu_number(int device) noexcept override {
    return static_cast<std::uint64_t>(getpid()) * SimulatedMemory::device_count + static_cast<std::uint64_t>(device);
  }
  std::uint64_t allocation_number(const void* address) noexcept override {
    return memory().number(reinterpret_cast<std::uintptr_t>(address));
  }
  Status export_memory(const void* address, device::MemoryHandle& handle) noexcept override {
    if (fails_now("export")) return Status::unsupported;
    const bool is_there = memory().describe(reinterpret_cast<std::uintptr_t>(address), handle);
    if (is_there) handle.gpu = gpu_number(locate(address).device);
    return is_there ? Status::ok : Status::unsupported;
  }
  Status open_memory(const device::MemoryHandle& handle, int device, void** base) noexcept override {
    *base = fails_now("open") ? nullptr : memory().open(handle, device);
    return *base != nullptr ? Status::ok : Status::failed;
  }
  void close_memory(int, void* base) noexcept override {
    streams().finish_all();
    memory().close(base);
  }
  Status lock_pages(void* pages, std::size_t bytes, int device) noexcept override {
    if (fails_now("lock")) return Status::failed;
    return memory().lock(device, reinterpret_cast<std::uintptr_t>(pages), bytes) ? Status::ok : Status::out_of_memory;
  }
  void unlock_pages(void* pages, int) noexcept override {
    streams().finish_all();
    memory().unlock(reinterpret_cast<std::uintptr_t>(pages));
  }
  Status export_to_devices(const void*, std::size_t, int, int* descriptor) noexcept override {
    *descriptor = -1;
    return Status::unsupported;
  }
  Status flush_writes_of_devices(int) noexcept override {
    ++counter("flushes");
    return fails_now("flush") ? Status::failed : Status::ok;
  }
};

SimulatedRuntime& runtime() {
  static auto* instance = new SimulatedRuntime;
  return *instance;
}

class SimulatedEngine final : public pack::GpuEngine {
 public:
  Status run(std::span<const Job> jobs, int device, void* stream) noexcept override {
    if (fails_now("run")) return Status::failed;
    if (jobs.size() != 1 || !router_.has_choice(jobs.front())) return issue(jobs, device, stream);
    gpu::Route route = router_.route_issued(jobs.front(), runtime().locate(jobs.front().packed));
    return follow(route, jobs, device, stream);
  }

  pack::Ticket submit(std::span<const Job> jobs, int device, pack::Reach reach) noexcept override {
    return submit(jobs, device, reach, false);
  }

  pack::Ticket submit_section(const Job& job, int device, pack::Reach reach) noexcept override {
    return submit({&job, 1}, device, reach, true);
  }

  pack::Ticket submit(std::span<const pack::PairJob> jobs, int device) noexcept override {
    const Status status = issue(jobs, device, nullptr);
    if (status == Status::ok) return {new Submission{{}, gpu::Before::unknown, false}, 0, device, status};
    stream_of(nullptr).finish();
    return {nullptr, 0, -1, status};
  }

  void poll(pack::Ticket& ticket) noexcept override {
    if (!ticket.is_under_way()) return;
    ++counter("queries");
    if (stream_of(nullptr).is_idle_or_goes_on()) static_cast<void>(wait(ticket));
  }

  Status wait(pack::Ticket& ticket) noexcept override {
    const std::unique_ptr<Submission> submission(static_cast<Submission*>(ticket.work));
    const bool healthy = stream_of(nullptr).finish();
    ++counter("polls");
    if (submission->tells)
      router_.note(submission->route, ticket.device, engine_delays().elapsed_ns(submission->route), submission->before);
    ticket = {nullptr, 0, -1, finished(healthy)};
    return ticket.status;
  }

  Status copy(const pack::PairJob& job, int device, void* stream) noexcept override {
    return issue({&job, 1}, device, stream);
  }

  void force_engine(const char* name) noexcept override { router_.force(gpu::engine_named(name)); }

 private:
  struct Submission {
    gpu::Route route;
    gpu::Before before;
    bool tells = true;  ///< anything about engines
  };

  pack::Ticket submit(std::span<const Job> jobs, int device, pack::Reach reach, bool is_section) noexcept {
    if (fails_now("run")) return {nullptr, 0, -1, Status::failed};
    auto submission = std::make_unique<Submission>();
    submission->route = router_.route_waited(jobs, device, reach, is_section);
    const bool asks = router_.should_ask(submission->route, device);
    submission->before = asks ? gpu::Before::idle : gpu::Before::unknown;
    const Status status = follow(submission->route, jobs, device, nullptr);
    if (submission->route.engine == gpu::Engine::high_priority) ++counter("launches_of_high_priority");
    if (status == Status::ok) return {submission.release(), 0, device, status};
    stream_of(nullptr).finish();
    return {nullptr, 0, -1, status};
  }

  Status issue(std::span<const pack::PairJob> jobs, int device, void* stream) {
    if (fails_now("run")) return Status::failed;
    PairLaunches launches(stream_of(stream));
    return gpu::issue(planner_, jobs, device, launches);
  }

  Status issue(std::span<const Job> jobs, int device, void* stream) {
    Launches launches(device, stream_of(stream));
    return gpu::issue(planner_, jobs, device, launches);
  }

  /// As the CUDA plugin does: what copies or chunks cannot do is a launch.
  Status follow(gpu::Route& route, std::span<const Job> jobs, int device, void* stream) {
    if (route.engine == gpu::Engine::copies) {
      if (route.copies.count > 0 && issue_copies(route.copies, stream)) return Status::ok;
      route.engine = gpu::Engine::kernel;
    }
    if (!route.movement.in_chunks || fails_now("allocate")) return issue(jobs, device, stream);
    const auto bring = [&](void* to, const void* from, std::size_t bytes) {
      return runtime().copy(to, from, bytes, device, stream);
    };
    SimulatedChunks chunks(memory(), device, stream_of(stream), bring);
    if (!chunks.has_memory()) return issue(jobs, device, stream);
    Launches launches(device, stream_of(stream));
    return gpu::issue_in_chunks(planner_, jobs.front(), device, launches, chunks);
  }

  /// False where that failed.
  bool issue_copies(const gpu::CopyPlan& plan, void* stream) {
    if (fails_now("copy")) return false;
    counter("copies") += plan.count;
    stream_of(stream).add([plan] {
      Executor executor(memory());
      copy_boxes(plan, [&](auto to, auto from, auto bytes) { executor.copy(to, from, bytes); });
      return !executor.fault;
    });
    return true;
  }

  gpu::DescriptorCache descriptors_{std::make_shared<DescriptorMemory>(), std::size_t{1} << 20};
  gpu::Planner planner_{descriptors_};
  gpu::Router router_;
};

class SimulatedReducer final : public reduction::GpuReducer {
 public:
  Status reduce(const reduction::Job& job, int, void* stream) noexcept override {
    if (fails_now("reduce")) return Status::failed;
    ++counter("reductions");
    stream_of(stream).add([job] {
      Executor executor(memory());
      executor(job);
      return !executor.fault;
    });
    return Status::ok;
  }
};

SimulatedEngine& engine() {
  static auto* instance = new SimulatedEngine;
  return *instance;
}

/// Finishes all work and translates; nullptr unless every byte is allocated.
void* settled(const void* device_memory, std::size_t bytes) {
  streams().finish_all();
  const auto address = reinterpret_cast<std::uintptr_t>(device_memory);
  if (memory().owner(address, bytes) < 0) return nullptr;
  return reinterpret_cast<void*>(memory().alias(address));
}

}  // namespace
}  // namespace gapless::tests

#define EXPORTED extern "C" __attribute__((visibility("default")))
using namespace gapless::tests;  // NOLINT: definitions of the C interface

EXPORTED gapless::device::Runtime* gapless_device_open(int interface_version) {
  return interface_version == gapless_device_interface_version ? &runtime() : nullptr;
}

EXPORTED gapless::pack::GpuEngine* gapless_pack_open(int interface_version) {
  return interface_version == gapless_pack_interface_version ? &engine() : nullptr;
}

EXPORTED gapless::reduction::GpuReducer* gapless_reduction_open(int interface_version) {
  static SimulatedReducer reducer;
  return interface_version == gapless_reduction_interface_version ? &reducer : nullptr;
}

EXPORTED void* simulated_device_malloc(int device, size_t bytes) {
  return device >= 0 && device < SimulatedMemory::device_count ? memory().allocate(device, bytes) : nullptr;
}

EXPORTED void simulated_device_free(void* pointer) {
  streams().finish_all();
  memory().release(pointer);
}

EXPORTED void simulated_device_reset(int device) {
  streams().finish_all();
  memory().release_all(device);
  contexts().replace(device);
}

EXPORTED void* simulated_device_alias(const void* device_memory, size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(device_memory);
  return memory().owner(address, bytes) < 0 ? nullptr : reinterpret_cast<void*>(memory().alias(address));
}

EXPORTED int simulated_device_write(void* device_memory, const void* host, size_t bytes) {
  void* destination = settled(device_memory, bytes);
  if (destination == nullptr) return -1;
  std::memcpy(destination, host, bytes);
  return 0;
}

EXPORTED int simulated_device_read(void* host, const void* device_memory, size_t bytes) {
  const void* source = settled(device_memory, bytes);
  if (source == nullptr) return -1;
  std::memcpy(host, source, bytes);
  return 0;
}

EXPORTED long simulated_device_count(const char* what) {
  for (std::size_t i = 0; i < counter_names.size(); ++i) {
    if (std::strcmp(counter_names[i], what) == 0) return counters[i];
  }
  return -1;
}

EXPORTED void simulated_device_reset_counts(void) {
  for (auto& value : counters) value = 0;
}

EXPORTED size_t simulated_device_bytes_in_use(void) { return memory().bytes_in_use(); }

EXPORTED int simulated_device_delay(const char* engine, long long nanoseconds) {
  return engine_delays().set(engine, nanoseconds) ? 0 : -1;
}

EXPORTED int simulated_device_fail(const char* operation, long successes, long failures_wanted) {
  return failures().set(operation, successes, failures_wanted) ? 0 : -1;
}
