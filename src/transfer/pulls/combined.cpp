#include "transfer/pulls/combined.hpp"

#include <atomic>
#include <cstring>
#include <optional>

#include "fabric/registry.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/headers/exported/freed.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/pulls/allocations.hpp"
#include "transfer/report/report.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::transfer::pulls {

using headers::PullWords;
using layout::Offset;
using State = PullWords::State;

namespace {

constinit std::atomic<std::uint64_t> received{0}, received_parts{0};

// A description is a head, the handles of all allocations, and the parts, each with as many modes as it has.

struct Head {
  std::uint32_t parts = 0, memories = 0;
  std::int32_t rank = -1;   ///< of the process whose inbox has the words
  std::uint32_t words = 0;  ///< their number there
};
struct PartHead {
  std::uint64_t address = 0;
  std::int64_t count = 0, extent = 0, base = 0, length = 0;
  std::uint32_t memory = 0, modes = 0;
};

template <class T>
void append(std::vector<std::byte>& bytes, const T* values, std::size_t count) {
  const auto* const first = reinterpret_cast<const std::byte*>(values);
  bytes.insert(bytes.end(), first, first + count * sizeof(T));
}

/// Takes `count` values from the front of the bytes. False where there are fewer.
template <class T>
bool take(std::span<const std::byte>& bytes, T* values, std::size_t count) noexcept {
  if (bytes.size() < count * sizeof(T)) return false;
  std::memcpy(values, bytes.data(), count * sizeof(T));
  bytes = bytes.subspan(count * sizeof(T));
  return true;
}

void append_part(std::vector<std::byte>& bytes, const Buffer& part, const Strided& layout, std::uint32_t memory) {
  const PartHead head{
      reinterpret_cast<std::uintptr_t>(part.memory), part.count, part.type->extent, layout.base, layout.length, memory,
      static_cast<std::uint32_t>(layout.mode_count)};
  append(bytes, &head, 1);
  append(bytes, layout.modes.data(), static_cast<std::size_t>(layout.mode_count));
}

/// The allocations, mapped by the peer, that the parts of one description lie in.
class Allocations {
 public:
  explicit Allocations(headers::Inbox& peer) noexcept : peer_(peer) {}
  /// The number of the allocation that the part lies in; nothing where the peer cannot read the part. Throws
  /// std::bad_alloc.
  std::optional<std::uint32_t> number_of(const Buffer& part) {
    for (std::size_t i = all_.size(); i-- > 0;) {
      if (is_within(part, all_[i])) return static_cast<std::uint32_t>(i);
    }
    const auto* const first = static_cast<const std::byte*>(part.memory) + part.type->facts.true_lower_bound;
    const auto mapped = mapped_by(peer_, first);
    if (!mapped || !is_within(part, mapped->handle)) return {};
    all_.push_back(mapped->handle);
    return static_cast<std::uint32_t>(all_.size() - 1);
  }
  const std::vector<device::MemoryHandle>& all() const noexcept { return all_; }

 private:
  headers::Inbox& peer_;
  std::vector<device::MemoryHandle> all_;
};

bool is_allowed(const Buffer& part) noexcept {
  return (!is_any_forced() || is_forced(Scheme::direct)) && may_be_pulled(part);
}

}  // namespace

std::size_t longest_description(std::size_t parts) noexcept {
  constexpr std::size_t of_a_part =
      sizeof(device::MemoryHandle) + sizeof(PartHead) + Strided::most_modes * sizeof(layout::Mode);
  return sizeof(Head) + parts * of_a_part;
}

bool CombinedOffer::secure(std::span<const Buffer> parts, headers::Inbox& inbox, std::vector<std::byte>& description) {
  const int device = parts.front().location.device;
  Allocations allocations(inbox);
  std::vector<std::byte> described;
  for (const Buffer& part : parts) {
    if (part.location.is_cpu_addressable() || part.location.device != device || !is_allowed(part)) return false;
    const auto layout = describe(*part.type->layout);
    const auto memory = layout ? allocations.number_of(part) : std::nullopt;
    if (!memory) return false;
    append_part(described, part, *layout, *memory);
  }
  Head head{static_cast<std::uint32_t>(parts.size()), static_cast<std::uint32_t>(allocations.all().size()),
            headers::own_rank(), 0};
  description.clear();
  description.reserve(sizeof head + head.memories * sizeof(device::MemoryHandle) + described.size());
  words_ = take_words(head.words);
  if (words_ == nullptr) return false;
  words_->state.store(State::awaiting, std::memory_order_release);
  append(description, &head, 1);
  append(description, allocations.all().data(), allocations.all().size());
  append(description, described.data(), described.size());
  inbox_ = &inbox;
  device_ = device;
  for (const Buffer& part : parts) record_moved(part, Side::sender, Scheme::direct);
  return true;
}

void CombinedOffer::offer() noexcept {
  is_offered_ = true;
  watch_.begin(ReceiverWatch::Clock::now());
  // A receiver that cannot read the description sets `done` without waiting for the offer.
  State expected = State::awaiting;
  words_->state.compare_exchange_strong(expected, State::offered, std::memory_order_release, std::memory_order_relaxed);
}

void CombinedOffer::fail() noexcept {
  if (words_ == nullptr) return;
  // A receiver may still look at words that have been described and never offered: nobody uses such words again.
  if (is_offered_) {
    leave_words(words_);
  } else {
    words_->state.store(State::free, std::memory_order_release);
  }
  words_ = nullptr;
}

void CombinedOffer::withdraw() noexcept {
  if (words_ == nullptr) return;
  words_->state.store(State::free, std::memory_order_release);
  leave_words(words_);
  words_ = nullptr;
}

Result CombinedOffer::poll() noexcept {
  if (words_ == nullptr) return is_offered_ ? Result::ok : Result::device_failed;
  if (words_->state.load(std::memory_order_acquire) == State::done) {
    leave_words(words_);
    words_ = nullptr;
    return Result::ok;
  }
  return watch_.is_there(*inbox_, ReceiverWatch::Clock::now()) ? Result::under_way : Result::peer_failed;
}

Result CombinedFetch::read(std::span<const std::byte> description, std::size_t parts) {
  Head head;
  if (!take(description, &head, 1)) return Result::peer_failed;
  headers::Inbox* const owner = headers::find_inbox(head.rank);
  if (owner == nullptr || owner->is_remote()) return Result::peer_failed;
  headers::unmap_freed(*owner);
  words_ = &owner->head().pulls[head.words % headers::pull_count];
  if (head.parts != parts || head.memories > parts) return Result::peer_failed;
  process_ = owner->speaker().process;
  memories_.resize(head.memories);
  for (Memory& memory : memories_) {
    if (!take(description, &memory.handle, 1)) return Result::peer_failed;
  }
  parts_.resize(parts);
  for (Part& part : parts_) {
    PartHead of_part;
    if (!take(description, &of_part, 1) || of_part.memory >= head.memories || of_part.modes > Strided::most_modes)
      return Result::peer_failed;
    part.memory = of_part.memory;
    part.message = {of_part.address,
                    of_part.count,
                    of_part.extent,
                    {of_part.base, of_part.length, static_cast<Offset>(of_part.modes), {}}};
    if (!take(description, part.message.layout.modes.data(), of_part.modes)) return Result::peer_failed;
  }
  received.fetch_add(1, std::memory_order_relaxed);
  return description.empty() ? Result::ok : Result::peer_failed;
}

Result CombinedFetch::poll() noexcept {
  constexpr unsigned looks_between_questions = 1024;
  switch (words_->state.load(std::memory_order_acquire)) {
    case State::offered:
      return Result::ok;
    case State::awaiting:
      if (++looks_ % looks_between_questions == 0 && fabric::registry::is_gone(static_cast<pid_t>(process_)))
        return Result::peer_failed;
      return Result::under_way;
    default:
      words_ = nullptr;
      return Result::peer_failed;
  }
}

Offset CombinedFetch::size_of(std::size_t i, int device) noexcept {
  Part& part = parts_[i];
  Memory& memory = memories_[part.memory];
  if (memory.device != device) memory.use.end();
  memory.device = device;
  return open(part.message, memory.handle, device, memory.use, part.source) ? part.source.size : -1;
}

Result CombinedFetch::copy(std::size_t i, const Buffer& into, std::vector<pack::PairJob>& jobs) {
  const Source& source = parts_[i].source;
  record_moved(into, Side::receiver, Scheme::direct);
  received_parts.fetch_add(1, std::memory_order_relaxed);
  if (source.size != into.size()) return copy_first(source, into, source.size);
  jobs.push_back(source.into(into));
  return Result::ok;
}

Result CombinedFetch::copy(std::size_t i, std::byte* into) noexcept {
  const Part& part = parts_[i];
  received_parts.fetch_add(1, std::memory_order_relaxed);
  record(Scheme::direct, static_cast<std::size_t>(part.source.size));
  return copy_packed(part.source, memories_[part.memory].device, into, static_cast<std::size_t>(part.source.size));
}

void CombinedFetch::end() noexcept {
  for (Memory& memory : memories_) memory.use.end();
  if (words_ != nullptr) words_->state.store(State::done, std::memory_order_release);
  words_ = nullptr;
}

}  // namespace gapless::transfer::pulls

std::uint64_t gapless_combined_received() { return gapless::transfer::pulls::received.load(std::memory_order_relaxed); }
std::uint64_t gapless_combined_parts() {
  return gapless::transfer::pulls::received_parts.load(std::memory_order_relaxed);
}
