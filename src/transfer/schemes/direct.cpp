#include "transfer/schemes/direct.hpp"

#include <algorithm>
#include <utility>

#include "model/gpu.hpp"
#include "transfer/blocking.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/packing.hpp"
#include "transfer/report/statistics.hpp"
#include "transfer/rings/incoming.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {

using headers::ExportedPool;
using headers::Inbox;
using model::gpu_tuning;

DirectOffer::Accepted DirectOffer::accepted_by(Inbox& inbox, const Buffer& buffer) noexcept {
  using Kind = headers::Answer::Kind;
  ExportedPool& on_gpu = headers::own_exported_pool();
  if (on_gpu.is_there(buffer.location.device)) {
    const headers::Answer answer = headers::introduce(inbox, inbox.introduction, on_gpu.handle());
    const bool is_accepted = answer.kind == Kind::accepted;
    if (is_accepted && goes_direct(buffer, answer.pair)) return {&on_gpu, answer.pair};
    if (is_accepted || answer.kind == Kind::none) return {};
  }
  constexpr model::Pair pair = model::Pair::same_node;
  const bool is_this_process = inbox.speaker().process == headers::own_process();
  if (is_this_process || !goes_direct(buffer, pair)) return {};
  ExportedPool& on_host = headers::own_pool_on_host();
  if (!on_host.is_there(buffer.location.device)) return {};
  const headers::Answer answer = headers::introduce(inbox, inbox.introduction_on_host, on_host.handle());
  return answer.kind == Kind::accepted ? Accepted{&on_host, pair} : Accepted{};
}

namespace {

/// For the copy of a message that may have to be copied out, at most.
constexpr std::size_t segments_kept = 4;

/// How messages of a pair go through a pool: up to `longest_whole` bytes as a whole, longer ones in sections.
struct Sizes {
  std::size_t longest_whole, section;
};

/// The section of a message of `bytes` bytes through memory of the host, of which `room` bytes exist.
std::size_t section_on_host(std::int64_t shortest, std::size_t bytes, std::size_t room) noexcept {
  const auto longest = static_cast<std::size_t>(gpu_tuning.longest_section_on_host);
  return std::min({longest, std::max(static_cast<std::size_t>(shortest), bytes / 16), room / 8});
}

Sizes sizes_of(model::Pair pair, std::size_t bytes, std::size_t room) noexcept {
  const auto at_most = [](std::int64_t tuned, std::size_t limit) {
    return std::min(static_cast<std::size_t>(tuned), limit);
  };
  if (pair == model::Pair::same_node) {
    return {at_most(gpu_tuning.longest_whole_on_host, room),
            section_on_host(gpu_tuning.shortest_section_on_host, bytes, room)};
  }
  if (pair == model::Pair::peer_gpu)
    return {at_most(gpu_tuning.longest_exported_whole, room), at_most(gpu_tuning.section_bytes, room / 16)};
  // Two processes take turns on one GPU: there few long sections are better than many, and none is best.
  return {room, room / 8};
}

}  // namespace

bool DirectOffer::secure(const Buffer& buffer, Inbox& inbox, bool may_stay, std::size_t packed_later,
                         headers::Header& header) noexcept {
  const auto bytes = static_cast<std::size_t>(buffer.size());
  // Asked first for the nearest pair: a program whose messages have better ways exports no memory.
  if (!goes_direct(buffer, model::Pair::peer_gpu)) return false;
  const Accepted accepted = accepted_by(inbox, buffer);
  if (accepted.pool == nullptr) return false;
  pair_ = accepted.pair;
  const auto [longest_whole, section] = sizes_of(pair_, bytes, accepted.pool->room());
  const bool is_long = bytes > longest_whole;
  if (is_long && may_stay && secure_ring(buffer, inbox, *accepted.pool, section, header)) return true;
  return secure_whole(buffer, *accepted.pool, packed_later, header);
}

bool DirectOffer::secure_from_host(const Buffer& buffer, Inbox& inbox, headers::Header& header) noexcept {
  ExportedPool& pool = headers::own_pool_on_host();
  const bool is_put_off = !is_any_forced() && inbox.rings_put_off.is_next();
  if (is_put_off || !pool.is_there(no_gpu)) return false;
  const headers::Answer answer = headers::introduce(inbox, inbox.introduction_on_host, pool.handle());
  if (answer.kind != headers::Answer::Kind::accepted) return false;
  pair_ = model::Pair::same_node;
  // Between two CPUs a ring is to stay in their caches, however long the message is.
  const bool is_for_gpu = inbox.head().takes_long_on_gpu.load(std::memory_order_relaxed);
  const std::size_t bytes = is_for_gpu ? static_cast<std::size_t>(buffer.size()) : 0;
  return secure_ring(buffer, inbox, pool, section_on_host(gpu_tuning.shortest_section_by_cpu, bytes, pool.room()),
                     header);
}

bool DirectOffer::secure_whole(const Buffer& buffer, ExportedPool& pool, std::size_t packed_later,
                               headers::Header& header) noexcept {
  buffer_ = buffer;
  const auto bytes = static_cast<std::size_t>(buffer.size());
  // A window of long messages leaves room for copies of messages that are not packed (keep_room).
  const bool is_long = pool.kind() == device::MemoryKind::device && bytes > segments_kept * pool.segment_bytes();
  run_ = pool.take(bytes, is_long ? headers::exported_segments / 4 : 0);
  if (run_.count == 0) return false;
  pool_ = &pool;
  if ((bytes <= packed_later || pack_alone() == Result::ok) && header.add(way_of(pool, run_, {}))) return true;
  withdraw();
  return false;
}

ExportedWay DirectOffer::way_of(const ExportedPool& pool, headers::SegmentRun run, const rings::Ring& ring) noexcept {
  return {pool.handle(), reinterpret_cast<std::uintptr_t>(pool.data(run)), headers::own_rank(), run.first, ring};
}

bool DirectOffer::keep_room(const Buffer& buffer, Inbox& inbox) noexcept {
  ExportedPool& pool = headers::own_exported_pool();
  buffer_ = buffer;
  const auto bytes = static_cast<std::size_t>(buffer.size());
  if (bytes > segments_kept * pool.segment_bytes()) {
    ring_ = rings::begin(buffer, inbox, pool, pool.segment_bytes());
    return ring_ != nullptr;
  }
  run_ = pool.take(bytes);
  if (run_.count != 0) pool_ = &pool;
  return pool_ != nullptr;
}

bool DirectOffer::use_room(headers::Header& header) noexcept {
  const ExportedPool& pool = headers::own_exported_pool();
  if (ring_ != nullptr) return header.add(way_of(pool, rings::run_of(*ring_), rings::ring_of(*ring_)));
  return pack_alone() == Result::ok && header.add(way_of(pool, run_, {}));
}

pack::Job DirectOffer::job() const noexcept {
  return buffer_.job(pack::Direction::pack, 0, buffer_.size(), pool_->data(run_));
}

double DirectOffer::predicted_ns() const noexcept { return predict_in_node_ns(Scheme::direct, buffer_, pair_); }

void DirectOffer::pack_in(Batch& batch) noexcept {
  batch.add(job(), buffer_.location.device, reach_of(pack::Direction::pack, pool_->kind()));
  is_packed_ = true;
}

Result DirectOffer::pack_alone() noexcept {
  MovementClock clock;
  clock.begin();
  const Result result = run_on_gpu(job(), buffer_.location.device, pool_->kind());
  packing_ns_ = clock.ns();
  is_packed_ = result == Result::ok;
  return result;
}

bool DirectOffer::secure_ring(const Buffer& buffer, Inbox& inbox, ExportedPool& pool, std::size_t section_bytes,
                              headers::Header& header) noexcept {
  buffer_ = buffer;
  ring_ = rings::begin(buffer, inbox, pool, section_bytes);
  if (ring_ == nullptr) return false;
  if (header.add(way_of(pool, rings::run_of(*ring_), rings::ring_of(*ring_)))) return true;
  withdraw();
  return false;
}

void DirectOffer::pack() noexcept {
  if (ring_ != nullptr && !std::exchange(is_packing_, true)) rings::start(*ring_);
}

void DirectOffer::hand_over() noexcept {
  if (ring_ == nullptr && pool_ == nullptr) return;
  pack();
  is_handed_over_ = true;
  pool_ = nullptr;
  const auto bytes = static_cast<std::size_t>(buffer_.size());
  record(Scheme::direct, bytes);
  if (report_wanted()) report_moved(buffer_, Side::sender, Scheme::direct, bytes, packing_ns_);
}

void DirectOffer::withdraw() noexcept {
  if (!is_handed_over_) rings::withdraw(ring_);
  if (pool_ == nullptr) return;
  pool_->give_back(run_);
  pool_ = nullptr;
}

namespace {

// What a header says was written by another process, and is believed only within bounds.

headers::InboxHead* head_of(const ExportedWay& way) noexcept {
  Inbox* const owner = headers::find_inbox(way.rank);
  return owner != nullptr && !owner->is_remote() ? &owner->head() : nullptr;
}

std::atomic<std::uint8_t>* word_of(const ExportedWay& way) noexcept {
  headers::InboxHead* const head = head_of(way);
  if (head == nullptr) return nullptr;
  headers::SegmentWords& words = way.memory.is_on_host() ? head->holds_message_on_host : head->holds_message;
  return &words[way.segment % headers::exported_segments];
}

headers::RingWords* ring_words_of(const ExportedWay& way) noexcept {
  headers::InboxHead* const head = head_of(way);
  return head != nullptr ? &head->rings[way.ring.words % headers::ring_count] : nullptr;
}

bool goes_through_ring(const ExportedWay& way) noexcept { return way.ring.sections != 0; }

device::MemoryKind kind_of(const ExportedWay& way) noexcept {
  return way.memory.is_on_host() ? device::MemoryKind::pinned : device::MemoryKind::device;
}

bool is_within(const ExportedWay& way, std::size_t bytes) noexcept { return way.memory.contains(way.address, bytes); }

}  // namespace

bool DirectFetch::map(const ExportedWay& way, int device) noexcept {
  device::OpenedMemory& opened = device == no_gpu ? headers::opened_pages() : headers::opened_memory();
  device::Status status = device::Status::failed;
  if (!use_) use_ = opened.use(way.memory, device, status);
  return static_cast<bool>(use_);
}

std::byte* DirectFetch::open(const ExportedWay& way, std::size_t bytes, int device) noexcept {
  if (word_ == nullptr && !goes_through_ring(way)) word_ = word_of(way);
  return is_within(way, bytes) && map(way, device) ? static_cast<std::byte*>(use_.at(way.address)) : nullptr;
}

template <class Fetch>
Result DirectFetch::fetch_ring(const headers::Header& header, const ExportedWay& way, int device,
                               Fetch fetch) noexcept {
  headers::RingWords* const words = ring_words_of(way);
  if (words == nullptr) return Result::peer_failed;
  const bool is_right = rings::is_right(way.ring, way.memory.bytes);
  std::byte* const memory = is_right ? open(way, way.ring.bytes(), device) : nullptr;
  if (memory == nullptr) {
    rings::refuse(*words);
    return Result::peer_failed;
  }
  const Result result = fetch(rings::Incoming{way.ring, *words, memory, kind_of(way), header.sender()});
  use_.end();
  return result;
}

Result DirectFetch::begin(const headers::Header& header, const ExportedWay& way, const Buffer& into, std::size_t bytes,
                          Batch& batch) noexcept {
  constexpr auto unpack = pack::Direction::unpack;
  const int device = into.gpu();
  record(Scheme::direct, bytes);
  if (report_wanted()) report_moved(into, Side::receiver, Scheme::direct, bytes, untimed_ns);
  if (device != no_gpu && !map(way, device)) {
    // Memory of the host may have been accepted for the CPU, and GPU memory for another GPU of this process.
    const bool may_go_by_host = way.memory.is_on_host() || headers::accepting_device(way.memory) != device;
    if (may_go_by_host) return begin_by_host(header, way, into, bytes);
  }
  if (goes_through_ring(way)) {
    return fetch_ring(header, way, device,
                      [&](const rings::Incoming& incoming) { return rings::fetch(incoming, into, bytes); });
  }
  std::byte* const packed = open(way, bytes, device);
  if (packed == nullptr) return Result::peer_failed;
  if (bytes == 0) return Result::ok;
  const pack::Job job = into.job(unpack, 0, static_cast<layout::Offset>(bytes), packed);
  if (device == no_gpu) return run_on_host(job);
  batch.add(job, device, reach_of(unpack, kind_of(way)));
  return Result::ok;
}

Result DirectFetch::begin_by_host(const headers::Header& header, const ExportedWay& way, const Buffer& into,
                                  std::size_t bytes) noexcept {
  const PoolBuffer packed(device::MemoryKind::host, -1, bytes);
  if (!packed) {
    release_exported(way);
    return Result::out_of_memory;
  }
  const Result copied = copy(header, way, packed.data(), bytes);
  if (copied != Result::ok) return copied;
  return move_range(pack::Direction::unpack, into, 0, static_cast<layout::Offset>(bytes), packed.data(),
                    packed.location());
}

Result DirectFetch::copy(const headers::Header& header, const ExportedWay& way, std::byte* into,
                         std::size_t bytes) noexcept {
  const int device = way.memory.is_on_host() ? no_gpu : headers::accepting_device(way.memory);
  if (goes_through_ring(way)) {
    return fetch_ring(header, way, device,
                      [&](const rings::Incoming& incoming) { return rings::fetch(incoming, into, bytes, device); });
  }
  const std::byte* const packed = open(way, bytes, device);
  if (packed == nullptr) return Result::peer_failed;
  return copy_packed(into, packed, bytes, device, kind_of(way));
}

void DirectFetch::end() noexcept {
  use_.end();
  if (word_ != nullptr) word_->store(0, std::memory_order_release);
  word_ = nullptr;
}

void release_exported(const ExportedWay& way) noexcept {
  if (goes_through_ring(way)) {
    if (auto* const words = ring_words_of(way)) rings::refuse(*words);
  } else if (auto* const word = word_of(way)) {
    word->store(0, std::memory_order_release);
  }
}

}  // namespace gapless::transfer::schemes
