#include "transfer/headers/speakers.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <utility>

#include "base/settings.hpp"
#include "fabric/registry.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/headers/attention.hpp"
#include "transfer/rdma/rendezvous/service.hpp"
#include "transfer/rings/outgoing.hpp"

namespace gapless::transfer::headers {

constinit std::atomic<bool> internal::listening{false};
constinit Nonce internal::own_nonce{};
constinit std::int32_t internal::own_process = -1;

namespace {

/// One rank, as far as it is known.
struct Peer {
  std::atomic<Inbox*> inbox{nullptr};  ///< never let go, for messages may be under way as long as the process runs
  std::atomic<std::uint32_t> looked_for{0};
};

struct Job {
  std::unique_ptr<Inbox> own;
  std::unique_ptr<Peer[]> peers;
  std::unique_ptr<Speaker[]> speakers;  ///< of all ranks; null where they have not told each other
  int rank = -1;
  int size = 0;
};

// Never destroyed: messages may be received while the process ends.
Job& job() noexcept {
  static Job& instance = *new Job;
  return instance;
}

std::array<char, 32> segment_name(int rank) noexcept {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "gapless-%d", rank);
  return text;
}

/// Is every message to go by header that can?
bool is_wanted_at_once() noexcept { return is_forced(Scheme::slots) || is_forced(Scheme::direct) || rdma::is_wanted(); }

bool make_inbox(Job& mine) noexcept {
  mine.own.reset(new (std::nothrow)
                     Inbox(SharedSegment::make(segment_name(mine.rank).data(), inbox_bytes, inbox_head_bytes)));
  if (mine.own == nullptr || !*mine.own) return false;
  InboxHead& head = *new (&mine.own->head()) InboxHead{};
  Nonce& nonce = head.speaker.nonce;
  const ssize_t length = ::getrandom(nonce.data(), nonce.size(), 0);
  if (length != static_cast<ssize_t>(nonce.size())) return false;
  internal::own_nonce = nonce;
  head.speaker.fabric = rdma::fabric_kind();
  head.speaker.rank = mine.rank;
  head.speaker.process = internal::own_process = ::getpid();
  head.free_slots.store(all_slots, std::memory_order_relaxed);
  if (is_wanted_at_once()) give_attention_for_good(head);
  internal::own_head.store(&head, std::memory_order_relaxed);
  head.magic = InboxHead::magic_of_version_12;
  return true;
}

/// The inbox of a process of this node.
std::unique_ptr<Inbox> map_inbox(int rank) noexcept {
  const auto process = fabric::registry::find(rank);
  if (!process) return nullptr;
  SharedSegment segment = SharedSegment::open(*process, segment_name(rank).data(), inbox_bytes);
  if (!segment || !segment.reserve(inbox_head_bytes, slot_count * slot_bytes)) return nullptr;
  segment.close_file();  // a process may have more neighbours than descriptors
  std::unique_ptr<Inbox> inbox(new (std::nothrow) Inbox(std::move(segment)));
  const bool can_be_used = inbox != nullptr && inbox->head().magic == InboxHead::magic_of_version_12;
  return can_be_used ? std::move(inbox) : nullptr;
}

/// The inbox of a process of another node, of which its speaker alone is known.
std::unique_ptr<Inbox> remote_inbox(int rank) noexcept {
  const Job& mine = job();
  if (mine.speakers == nullptr || mine.speakers[rank].fabric == 0) return nullptr;
  return std::unique_ptr<Inbox>(new (std::nothrow) Inbox(mine.speakers[rank]));
}

[[gnu::noinline]] Inbox* look_for(Peer& peer, int rank) noexcept {
  const std::uint32_t times = peer.looked_for.fetch_add(1, std::memory_order_relaxed);
  if (!std::has_single_bit(times + 1)) return nullptr;
  std::unique_ptr<Inbox> inbox = map_inbox(rank);
  if (inbox == nullptr) inbox = remote_inbox(rank);
  if (inbox == nullptr) return nullptr;
  Inbox* found = nullptr;
  if (peer.inbox.compare_exchange_strong(found, inbox.get(), std::memory_order_acq_rel)) found = inbox.release();
  return found;
}

}  // namespace

bool are_wanted() noexcept { return is_wanted_at_once() || (!is_any_forced() && settings().headers); }

void listen(int rank, int size) noexcept {
  Job& mine = job();
  if (mine.size != 0 || size < 2) return;
  mine.size = size;
  mine.rank = rank;
  mine.peers.reset(new (std::nothrow) Peer[static_cast<std::size_t>(size)]);
  if (mine.peers == nullptr || !make_inbox(mine)) return;
  // Before the first peer can find it.
  internal::listening.store(true, std::memory_order_release);
  if (!fabric::registry::enter(rank)) internal::listening.store(false, std::memory_order_release);
}

Speaker own_speaker() noexcept {
  if (!is_listening()) return {};
  return own_inbox().speaker();
}

void learn(std::unique_ptr<Speaker[]> speakers) noexcept { job().speakers = std::move(speakers); }

Inbox* find_inbox(int rank) noexcept {
  Job& mine = job();
  if (!is_listening() || rank < 0 || rank >= mine.size) return nullptr;
  if (rank == mine.rank) return mine.own.get();
  Peer& peer = mine.peers[static_cast<std::size_t>(rank)];
  Inbox* const inbox = peer.inbox.load(std::memory_order_acquire);
  return inbox != nullptr ? inbox : look_for(peer, rank);
}

Inbox& own_inbox() noexcept { return *job().own; }

int own_rank() noexcept { return job().rank; }

bool has_stopped_receiving() noexcept { return own_inbox().head().has_ended.load(std::memory_order_relaxed); }

void end(bool (*have_all_ended)()) noexcept {
  if (!is_listening()) return;
  own_inbox().head().has_ended.store(true, std::memory_order_release);
  static bool (*ask)() = nullptr;
  ask = have_all_ended;
  const auto has_ended = [](int rank) {
    const bool have_all = ask();
    const Inbox* const inbox = find_inbox(rank);
    if (inbox != nullptr && inbox->is_remote()) return have_all;
    return inbox == nullptr || inbox->head().has_ended.load(std::memory_order_acquire);
  };
  rings::drain(has_ended);
  rdma::drain(has_ended);
}

}  // namespace gapless::transfer::headers
