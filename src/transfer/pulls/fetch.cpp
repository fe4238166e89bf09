#include "transfer/pulls/fetch.hpp"

#include <sched.h>

#include <atomic>
#include <cstring>

#include "fabric/registry.hpp"
#include "transfer/headers/exported/freed.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/report/report.hpp"
#include "transfer/report/statistics.hpp"

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
  headers::unmap_freed(*owner);
  return &owner->head().pulls[way.words % headers::pull_count];
}

enum class Claim : std::uint8_t { claimed, copied, lost };

/// Claims the message for this process, or finds where the sender has copied the message out to.
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
    if (!is_senders_turn || (times % looks == 0 && fabric::registry::is_gone(sender))) return Claim::lost;
    ::sched_yield();
  }
}

}  // namespace

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
  const int device = into.location.device;
  const auto end = static_cast<Offset>(bytes);
  fetched.fetch_add(1, std::memory_order_relaxed);
  if (!open(way, way.memory, device, use_, source_)) {
    const int other = headers::accepting_device(way.memory);
    if (other == device || !open(way, way.memory, other, use_, source_)) return Result::peer_failed;
    return source_.size < end ? Result::peer_failed : copy_by_host(source_, other, into, end);
  }
  if (source_.size < end) return Result::peer_failed;
  if (source_.is_contiguous()) {
    batch.add(into.job(pack::Direction::unpack, 0, end, source_.memory + source_.layout->base), device,
              pack::Reach::this_gpu);
  } else if (is_contiguous(into)) {
    auto* const packed = static_cast<std::byte*>(into.memory) + into.type->layout->base;
    batch.add(source_.packing(0, end, packed), device, pack::Reach::this_gpu);
  } else if (end == into.size() && end == source_.size) {
    batch.add(source_.into(into), device);
  } else {
    return copy_first(source_, into, end);
  }
  return Result::ok;
}

Result PullFetch::copy(const Header& header, const PulledWay& way, std::byte* into, std::size_t bytes) noexcept {
  const int device = headers::accepting_device(way.memory);
  PullWords* const words = words_of(way);
  if (words == nullptr) return Result::peer_failed;
  ExportedWay copy;
  const Claim found = claim(*words, header.sender(), copy);
  if (found == Claim::copied) return copied_.copy(header, copy, into, bytes);
  if (found == Claim::lost) return Result::peer_failed;
  words_ = words;
  record(Scheme::direct, bytes);
  if (bytes == 0) return Result::ok;
  if (!open(way, way.memory, device, use_, source_)) return Result::peer_failed;
  if (source_.size < static_cast<Offset>(bytes)) return Result::peer_failed;
  fetched.fetch_add(1, std::memory_order_relaxed);
  return copy_packed(source_, device, into, bytes);
}

void PullFetch::end() noexcept {
  use_.end();
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
