#include "transfer/pulls/fetch.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "fabric/registry.hpp"
#include "transfer/blocking.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/pulls/allocations.hpp"
#include "transfer/report/report.hpp"
#include "transfer/report/statistics.hpp"
#include "transfer/rings/outgoing.hpp"

namespace gapless::transfer::pulls {

using headers::Header;
using headers::PullWords;
using layout::Offset;
using schemes::ExportedWay;
using State = PullWords::State;

namespace {

constinit std::atomic<std::uint64_t> received{0}, fetched{0};

// What a header says was written by another process, and is believed only within bounds.

PullWords* words_of(const PulledWay& way) noexcept {
  headers::Inbox* const owner = headers::find_inbox(way.rank);
  if (owner == nullptr || owner->is_remote()) return nullptr;
  unmap_freed(*owner);
  return &owner->head().pulls[way.words % headers::pull_count];
}

enum class Claim : std::uint8_t { claimed, copied, lost };

/// Makes the message this process's to fetch, or finds how the sender has copied it out.
Claim claim(PullWords& words, pid_t sender, ExportedWay& copy) noexcept {
  constexpr unsigned looks = 1024;
  received.fetch_add(1, std::memory_order_relaxed);
  for (unsigned times = 1;; ++times) {
    State state = State::offered;
    if (words.state.compare_exchange_strong(state, State::fetching, std::memory_order_acq_rel)) return Claim::claimed;
    if (state == State::copied) {
      std::memcpy(&copy, words.copy.data(), sizeof copy);
      words.state.store(State::done, std::memory_order_release);
      return Claim::copied;
    }
    const bool is_senders_turn = state == State::copying || state == State::awaiting;
    if (!is_senders_turn || (times % looks == 0 && fabric::registry::has_ended(sender))) return Claim::lost;
    ::sched_yield();
  }
}

}  // namespace

bool PullFetch::open(const PulledWay& way, int device) noexcept {
  const Understood* const source = device < 0 ? nullptr : understand(way.layout);
  const auto span = source != nullptr ? span_of(source->facts, way.count, way.extent) : std::nullopt;
  if (!span || __builtin_mul_overflow(source->layout->size, way.count, &size_)) return false;
  const std::uint64_t first = way.address + static_cast<std::uint64_t>(span->first);
  const auto bytes = static_cast<std::uint64_t>(span->last) - static_cast<std::uint64_t>(span->first);
  if (!way.memory.contains(first) || bytes > way.memory.bytes - (first - way.memory.base)) return false;
  device::Status status = device::Status::failed;
  use_ = headers::opened_memory().use(way.memory, device, status);
  if (!use_) return false;
  layout_ = source->layout;
  outer_ = {way.count, way.extent};
  memory_ = static_cast<std::byte*>(use_.at(first)) - span->first;
  return true;
}

pack::Job PullFetch::packing(Offset begin, Offset end, void* packed) const noexcept {
  return {layout_.get(), outer_, begin, end, pack::Direction::pack, memory_, packed};
}

/// With both ends noncontiguous one kernel goes from one layout to the other; a message that is shorter than the
/// receive goes through memory of this GPU.
Result PullFetch::begin_noncontiguous(const Buffer& into, Offset bytes, Batch& batch) noexcept {
  const int device = into.location.device;
  if (bytes == into.size() && bytes == size_) {
    batch.add({layout_.get(), outer_, memory_, into.type->layout.get(), {into.count, into.type->extent}, into.memory},
              device);
    return Result::ok;
  }
  between_ = PoolBuffer(device::MemoryKind::device, device, static_cast<std::size_t>(bytes));
  if (!between_) return Result::out_of_memory;
  const Result packed = run_on_gpu(packing(0, bytes, between_.data()), device, device::MemoryKind::device);
  if (packed != Result::ok) return packed;
  batch.add({into.type->layout.get(),
             {into.count, into.type->extent},
             0,
             bytes,
             pack::Direction::unpack,
             into.memory,
             between_.data()},
            device, pack::Reach::this_gpu);
  return Result::ok;
}

Result PullFetch::begin(const Header& header, const PulledWay& way, const Buffer& into, std::size_t bytes,
                        Batch& batch) noexcept {
  PullWords* const words = words_of(way);
  if (words == nullptr) return Result::peer_failed;
  ExportedWay copy;
  const Claim found = claim(*words, header.sender(), copy);
  if (found == Claim::copied) return copied_.begin(header, copy, into, bytes, batch);
  if (found == Claim::lost) return Result::peer_failed;
  words_ = words;
  record(Scheme::direct, bytes);
  if (report_wanted()) report_moved(into, Side::receiver, Scheme::direct, bytes, untimed_ns);
  if (bytes == 0) return Result::ok;
  if (!open(way, into.location.device)) return Result::peer_failed;
  fetched.fetch_add(1, std::memory_order_relaxed);
  const auto end = static_cast<Offset>(bytes);
  const bool is_source_contiguous = size_ == layout_->size && layout_->is_contiguous();
  if (!is_source_contiguous && !is_contiguous(into)) return begin_noncontiguous(into, end, batch);
  if (is_source_contiguous) {
    batch.add({into.type->layout.get(),
               {into.count, into.type->extent},
               0,
               end,
               pack::Direction::unpack,
               into.memory,
               memory_ + layout_->base},
              into.location.device, pack::Reach::this_gpu);
  } else {
    auto* const packed = static_cast<std::byte*>(into.memory) + into.type->layout->base;
    batch.add(packing(0, end, packed), into.location.device, pack::Reach::this_gpu);
  }
  return Result::ok;
}

Result PullFetch::copy(const Header& header, const PulledWay& way, std::byte* into, std::size_t bytes) noexcept {
  const int device = headers::accepting_device();
  PullWords* const words = words_of(way);
  if (words == nullptr) return Result::peer_failed;
  ExportedWay copy;
  const Claim found = claim(*words, header.sender(), copy);
  if (found == Claim::copied) return copied_.copy(header, copy, into, bytes);
  if (found == Claim::lost) return Result::peer_failed;
  words_ = words;
  record(Scheme::direct, bytes);
  if (bytes == 0) return Result::ok;
  if (!open(way, device)) return Result::peer_failed;
  fetched.fetch_add(1, std::memory_order_relaxed);
  constexpr std::size_t piece = std::size_t{4} << 20;
  between_ = PoolBuffer(device::MemoryKind::device, device, std::min(piece, bytes));
  Result result = between_ ? Result::ok : Result::out_of_memory;
  for (std::size_t at = 0; result == Result::ok && at < bytes; at += piece) {
    const std::size_t end = std::min(at + piece, bytes);
    result = run_on_gpu(packing(static_cast<Offset>(at), static_cast<Offset>(end), between_.data()), device,
                        device::MemoryKind::device);
    if (result == Result::ok) result = copy_on_gpu(into + at, between_.data(), end - at, device);
  }
  return result;
}

void PullFetch::end() noexcept {
  use_.end();
  between_ = {};
  copied_.end();
  if (words_ != nullptr) words_->state.store(State::done, std::memory_order_release);
  words_ = nullptr;
}

void release_pulled(const Header& header, const PulledWay& way) noexcept {
  PullWords* const words = words_of(way);
  if (words == nullptr) return;
  ExportedWay copy;
  switch (claim(*words, header.sender(), copy)) {
    case Claim::claimed:
      return words->state.store(State::done, std::memory_order_release);
    case Claim::copied:
      return schemes::release_exported(copy);
    case Claim::lost:
      return;
  }
}

}  // namespace gapless::transfer::pulls

std::uint64_t gapless_pulls_received() { return gapless::transfer::pulls::received.load(std::memory_order_relaxed); }
std::uint64_t gapless_pulls_fetched() { return gapless::transfer::pulls::fetched.load(std::memory_order_relaxed); }
