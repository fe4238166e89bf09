#include "endpoints/rings/inboxes.hpp"

#include <sys/mman.h>

#include <utility>

namespace gapless::mpi::endpoints {

namespace {
std::atomic<int> shared{0};
}  // namespace

int Inboxes::shared_count() noexcept { return shared.load(std::memory_order_relaxed); }

// Head and writers of each inbox, then the rings, by reader and writer, then the outboxes.

std::size_t Inboxes::head_bytes(std::size_t endpoints) noexcept {
  return sizeof(RingInboxHead) + (endpoints * sizeof(std::uint32_t) + 63) / 64 * 64;
}

std::size_t Inboxes::bytes(std::size_t endpoints) noexcept {
  return endpoints * head_bytes(endpoints) + endpoints * endpoints * sizeof(RingMemory) +
         endpoints * sizeof(OutboxMemory);
}

Inboxes::~Inboxes() { release(); }

void Inboxes::release() noexcept {
  if (segment_) {
    segment_ = {};
    shared.fetch_sub(1, std::memory_order_relaxed);
  } else if (memory_ != nullptr) {
    ::munmap(memory_, bytes(endpoints_));
  }
  memory_ = nullptr;
}

bool Inboxes::make(std::size_t endpoints) noexcept {
  release();
  endpoints_ = endpoints;
  void* const memory =
      ::mmap(nullptr, bytes(endpoints), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) memory_ = static_cast<std::byte*>(memory);
  return memory_ != nullptr;
}

bool Inboxes::share(std::size_t endpoints, SharedSegment segment) noexcept {
  release();
  if (!segment) return false;
  endpoints_ = endpoints;
  segment_ = std::move(segment);
  memory_ = segment_.data();
  shared.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool Inboxes::make_shared(std::size_t endpoints, std::string_view name) noexcept {
  return share(endpoints, SharedSegment::make(name, bytes(endpoints), endpoints * head_bytes(endpoints)));
}

bool Inboxes::join(std::size_t endpoints, pid_t owner, std::string_view name) noexcept {
  return share(endpoints, SharedSegment::open(owner, name, bytes(endpoints)));
}

RingInboxHead& Inboxes::head(int inbox) const noexcept {
  return *reinterpret_cast<RingInboxHead*>(memory_ + static_cast<std::size_t>(inbox) * head_bytes(endpoints_));
}

std::atomic<std::uint32_t>* Inboxes::writers(int inbox) const noexcept {
  return reinterpret_cast<std::atomic<std::uint32_t>*>(&head(inbox) + 1);
}

int Inboxes::writer(int inbox, std::uint32_t n) const noexcept {
  return static_cast<int>(writers(inbox)[n].load(std::memory_order_acquire)) - 1;
}

RingMemory& Inboxes::ring(int from, int to) const noexcept {
  const std::size_t number = static_cast<std::size_t>(to) * endpoints_ + static_cast<std::size_t>(from);
  return *reinterpret_cast<RingMemory*>(memory_ + endpoints_ * head_bytes(endpoints_) + number * sizeof(RingMemory));
}

OutboxMemory& Inboxes::outbox(int inbox) const noexcept {
  std::byte* const first = memory_ + bytes(endpoints_) - endpoints_ * sizeof(OutboxMemory);
  return reinterpret_cast<OutboxMemory*>(first)[inbox];
}

/// A write to shared memory that cannot be had would end the process.
bool Inboxes::reserve(const void* memory, std::size_t bytes) noexcept {
  return !segment_ ||
         segment_.reserve(static_cast<std::size_t>(static_cast<const std::byte*>(memory) - memory_), bytes);
}

bool Inboxes::begin_outbox(int inbox) noexcept { return reserve(&outbox(inbox), sizeof(OutboxMemory)); }

bool Inboxes::begin_ring(int from, int to) noexcept {
  if (!reserve(&ring(from, to), sizeof(RingMemory))) {
    head(to).takes_from_lane.store(true, std::memory_order_release);
    return false;
  }
  const std::uint32_t place = head(to).writers.fetch_add(1, std::memory_order_relaxed);
  writers(to)[place].store(static_cast<std::uint32_t>(from) + 1, std::memory_order_release);
  return true;
}

}  // namespace gapless::mpi::endpoints
