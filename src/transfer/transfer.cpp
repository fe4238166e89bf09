// Every movement of bytes is one pack::Job, run by the host engine or by the GPU that owns the memory.
#include "transfer/transfer.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#include "layout/cursor.hpp"
#include "pack/gpu_engine.hpp"
#include "pack/host/engine.hpp"
#include "transfer/statistics.hpp"

namespace gapless::transfer {
namespace {

using device::Location;
using device::MemoryKind;
using device::Runtime;
using device::Status;
using layout::Offset;
using pack::Direction;
using pack::Job;

// Pieces in which a packed stream passes through pinned memory when neither end is a message of its own.
constexpr Offset bounce_bytes = Offset{32} << 20;

Result result_of(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return Result::ok;
    case Status::out_of_memory:
      return Result::out_of_memory;
    default:
      return Result::device_failed;
  }
}

Job job_for(const Buffer& buffer, Direction direction, Offset begin, Offset end, void* packed) noexcept {
  return Job{
      buffer.type->layout.get(), {buffer.count, buffer.type->extent}, begin, end, direction, buffer.memory, packed};
}

Result run_on_host(const Job& job) noexcept {
  try {
    pack::host::run(job);
    return Result::ok;
  } catch (const std::exception&) {
    return Result::out_of_memory;
  }
}

// One copy per contiguous run, in packed order: for layouts the GPU engine declines, such as overlapping ones.
Status copy_runs(Runtime& runtime, const Job& job, int device, void* stream) noexcept {
  try {
    layout::Cursor cursor(*job.layout, job.outer, job.begin, job.end);
    layout::Segment run{0, 0};
    auto* packed = static_cast<std::byte*>(job.packed);
    while (cursor.next(run)) {
      auto* memory = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(job.memory) +
                                                  static_cast<std::uintptr_t>(run.offset));
      const auto bytes = static_cast<std::size_t>(run.length);
      const bool packs = job.direction == Direction::pack;
      const Status status = runtime.copy(packs ? packed : memory, packs ? memory : packed, bytes, device, stream);
      if (status != Status::ok) return status;
      packed += run.length;
    }
    return Status::ok;
  } catch (const std::exception&) {
    return Status::out_of_memory;
  }
}

// A GPU's stream for the length of one blocking call.
class GpuCall {
 public:
  explicit GpuCall(int device) noexcept : runtime_(device::runtime()), engine_(pack::gpu_engine()), device_(device) {
    if (engine_ == nullptr) return;
    stream_ = runtime_->stream(device);
    if (stream_ != nullptr) status_ = runtime_->follow_default_stream(device, stream_);
  }
  // Never leaves work behind that still uses buffers about to be reused.
  ~GpuCall() {
    if (issued_) static_cast<void>(runtime_->synchronize(device_, stream_));
  }
  GpuCall(const GpuCall&) = delete;
  GpuCall& operator=(const GpuCall&) = delete;

  void run(const Job& job) noexcept {
    if (status_ != Status::ok) return;
    issued_ = true;
    status_ = engine_->run(std::span(&job, 1), device_, stream_);
    if (status_ == Status::unsupported) status_ = transfer::copy_runs(*runtime_, job, device_, stream_);
  }
  void copy_runs(const Job& job) noexcept {
    if (status_ != Status::ok) return;
    issued_ = true;
    status_ = transfer::copy_runs(*runtime_, job, device_, stream_);
  }
  void copy(void* destination, const void* source, std::size_t bytes) noexcept {
    if (status_ != Status::ok) return;
    issued_ = true;
    status_ = runtime_->copy(destination, source, bytes, device_, stream_);
  }
  Result wait() noexcept {
    if (issued_) {
      const Status finished = runtime_->synchronize(device_, stream_);
      issued_ = false;
      if (status_ == Status::ok) status_ = finished;
    }
    return result_of(status_);
  }

 private:
  Runtime* runtime_;
  pack::GpuEngine* engine_;
  int device_;
  void* stream_ = nullptr;
  Status status_ = Status::failed;
  bool issued_ = false;
};

pack::Reach reach_of(Direction direction, MemoryKind packed) noexcept {
  if (packed == MemoryKind::device) return pack::Reach::this_gpu;
  return direction == Direction::pack ? pack::Reach::beyond : pack::Reach::from_beyond;
}

/// `packed`: what memory the packed bytes are in, page-locked mostly.
Result run_on_gpu(const Job& job, int device, MemoryKind packed = MemoryKind::pinned) noexcept {
  pack::GpuEngine* engine = pack::gpu_engine();
  if (engine == nullptr) return Result::device_failed;
  const Status status = engine->run_and_wait(std::span(&job, 1), device, reach_of(job.direction, packed));
  if (status != Status::unsupported) return result_of(status);
  GpuCall gpu(device);
  gpu.copy_runs(job);
  return gpu.wait();
}

// The wire is read and written by the MPI library, so it is host memory; where a GPU works on it, pinned.
Wire wire_for(const Buffer& buffer, Scheme scheme) noexcept {
  const auto bytes = static_cast<std::size_t>(buffer.size());
  if (scheme == Scheme::packed) return Wire(MemoryKind::host, -1, bytes);
  return Wire(MemoryKind::pinned, buffer.location.device, bytes);
}

Scheme scheme_for(const Buffer& buffer, Side side) noexcept {
  return buffer.size() == 0 ? Scheme::native : choose(buffer, side);
}

// Moves [begin, end) of the packed stream between GPU memory and a pinned buffer through packed GPU memory, or directly
// where there is none to be had.
Result run_staged(const Buffer& buffer, Direction direction, Offset begin, Offset end, std::byte* pinned) noexcept {
  const int device = buffer.location.device;
  const auto bytes = static_cast<std::size_t>(end - begin);
  const Wire packed(MemoryKind::device, device, bytes);
  if (!packed) return run_on_gpu(job_for(buffer, direction, begin, end, pinned), device);
  GpuCall gpu(device);
  const Job job = job_for(buffer, direction, begin, end, packed.data());
  if (direction == Direction::pack) {
    gpu.run(job);
    gpu.copy(pinned, packed.data(), bytes);
  } else {
    gpu.copy(packed.data(), pinned, bytes);
    gpu.run(job);
  }
  return gpu.wait();
}

Result run_scheme(const Buffer& buffer, Scheme scheme, Direction direction, Offset end, std::byte* wire) noexcept {
  switch (scheme) {
    case Scheme::packed:
      return run_on_host(job_for(buffer, direction, 0, end, wire));
    case Scheme::oneshot:
      return run_on_gpu(job_for(buffer, direction, 0, end, wire), buffer.location.device);
    case Scheme::staged:
      return run_staged(buffer, direction, 0, end, wire);
    case Scheme::native:
      break;
  }
  return Result::device_failed;
}

// Between pinned memory, which every GPU and the CPU address, and memory of any kind.
Result copy_bounce(std::byte* pinned, std::byte* other, Location location, std::size_t bytes,
                   Direction direction) noexcept {
  std::byte* destination = direction == Direction::pack ? other : pinned;
  const std::byte* source = direction == Direction::pack ? pinned : other;
  if (location.is_cpu_addressable()) {
    std::memcpy(destination, source, bytes);
    return Result::ok;
  }
  GpuCall gpu(location.device);
  gpu.copy(destination, source, bytes);
  return gpu.wait();
}

Result run_piece(const Buffer& buffer, Direction direction, Offset begin, Offset end, std::byte* pinned) noexcept {
  const Job job = job_for(buffer, direction, begin, end, pinned);
  return buffer.location.is_cpu_addressable() ? run_on_host(job) : run_on_gpu(job, buffer.location.device);
}

Result move_through_bounce(const Buffer& buffer, std::byte* packed, Location location, Direction direction) noexcept {
  const Offset size = buffer.size();
  const int device = buffer.location.is_cpu_addressable() ? location.device : buffer.location.device;
  const Wire pinned(MemoryKind::pinned, device, static_cast<std::size_t>(std::min(size, bounce_bytes)));
  if (!pinned) return device::runtime() == nullptr ? Result::device_failed : Result::out_of_memory;
  for (Offset begin = 0; begin < size; begin += bounce_bytes) {
    const Offset end = std::min(size, begin + bounce_bytes);
    const auto bytes = static_cast<std::size_t>(end - begin);
    const bool packs = direction == Direction::pack;
    Result result = packs ? run_piece(buffer, direction, begin, end, pinned.data())
                          : copy_bounce(pinned.data(), packed + begin, location, bytes, direction);
    if (result != Result::ok) return result;
    result = packs ? copy_bounce(pinned.data(), packed + begin, location, bytes, direction)
                   : run_piece(buffer, direction, begin, end, pinned.data());
    if (result != Result::ok) return result;
  }
  return Result::ok;
}

Result move(const Buffer& buffer, void* packed, Location location, Direction direction) noexcept {
  const auto bytes = static_cast<std::size_t>(buffer.size());
  const Job job = job_for(buffer, direction, 0, buffer.size(), packed);
  if (buffer.location.is_cpu_addressable() && location.is_cpu_addressable()) {
    record(Scheme::packed, bytes);
    return run_on_host(job);
  }
  record(Scheme::oneshot, bytes);
  const int device = buffer.location.device;
  if (!buffer.location.is_cpu_addressable() && location.is_gpu_addressable(device)) {
    return run_on_gpu(job, device, location.kind);
  }
  return move_through_bounce(buffer, static_cast<std::byte*>(packed), location, direction);
}

Result prepare_wire(const Buffer& buffer, Scheme scheme, Wire& wire) noexcept {
  wire = wire_for(buffer, scheme);
  if (wire) return Result::ok;
  return scheme != Scheme::packed && device::runtime() == nullptr ? Result::device_failed : Result::out_of_memory;
}

}  // namespace

Outgoing::Outgoing(const Buffer& buffer) noexcept : buffer_(buffer), scheme_(scheme_for(buffer, Side::sender)) {}

Result Outgoing::prepare() noexcept {
  const Result result = reserve();
  return result == Result::ok ? pack() : result;
}

Result Outgoing::reserve() noexcept { return prepare_wire(buffer_, scheme_, wire_); }

Result Outgoing::pack() noexcept {
  record(scheme_, wire_size());
  return run_scheme(buffer_, scheme_, Direction::pack, buffer_.size(), wire_.data());
}

void Outgoing::pack_in(PackBatch& batch) noexcept {
  if (scheme_ != Scheme::oneshot) return batch.note(pack());
  record(scheme_, wire_size());
  batch.add(job_for(buffer_, Direction::pack, 0, buffer_.size(), wire_.data()), buffer_.location.device);
}

void PackBatch::add(const Job& job, int device) noexcept {
  if (count_ == most_jobs || (count_ > 0 && device != device_)) static_cast<void>(run());
  jobs_[count_++] = job;
  device_ = device;
}

Result PackBatch::run() noexcept {
  pack::GpuEngine* engine = count_ > 0 ? pack::gpu_engine() : nullptr;
  if (engine != nullptr) {
    const Status status = engine->run_and_wait(std::span(jobs_).first(count_), device_, pack::Reach::beyond);
    if (status != Status::unsupported) note(result_of(status));
    // Each by itself tells which of them the engine declines.
    for (std::size_t i = 0; status == Status::unsupported && i < count_; ++i) note(run_on_gpu(jobs_[i], device_));
  } else if (count_ > 0) {
    note(Result::device_failed);
  }
  count_ = 0;
  return result_;
}

Incoming::Incoming(const Buffer& buffer) noexcept : buffer_(buffer), scheme_(scheme_for(buffer, Side::receiver)) {}

Result Incoming::prepare() noexcept { return prepare_wire(buffer_, scheme_, wire_); }

Result Incoming::finish(std::size_t received) noexcept {
  record(scheme_, received);
  if (received == 0) return Result::ok;
  return run_scheme(buffer_, scheme_, Direction::unpack, static_cast<Offset>(received), wire_.data());
}

Result pack(const Buffer& buffer, void* packed, Location packed_location) noexcept {
  return move(buffer, packed, packed_location, Direction::pack);
}

Result unpack(const Buffer& buffer, const void* packed, Location packed_location) noexcept {
  return move(buffer, const_cast<void*>(packed), packed_location, Direction::unpack);
}

}  // namespace gapless::transfer
