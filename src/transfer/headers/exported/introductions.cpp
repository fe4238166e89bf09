#include "transfer/headers/exported/introductions.hpp"

#include <atomic>
#include <mutex>

#include "device/device.hpp"
#include "transfer/headers/exported/freed.hpp"
#include "transfer/headers/speakers.hpp"

namespace gapless::transfer::headers {
namespace {

using State = Introduction::State;

constinit std::atomic<int> first_device{no_gpu};
constinit std::atomic<bool> are_pages_accepted{false};

/// In place of a place's number: others have taken all, which no process gives back.
constexpr unsigned no_place = introduction_count + 1;

/// Takes a place for an introduction of this process; null where others have taken all.
Introduction* find_place(Inbox& peer, std::atomic<unsigned>& introduction) noexcept {
  const unsigned known = introduction.load(std::memory_order_acquire);
  if (known < introduction_count) return &peer.head().introductions[known];
  for (unsigned i = 0; i < introduction_count; ++i) {
    Introduction& place = peer.head().introductions[i];
    State expected = State::none;
    if (!place.state.compare_exchange_strong(expected, State::being_written, std::memory_order_acq_rel)) continue;
    introduction.store(i, std::memory_order_release);
    return &place;
  }
  introduction.store(no_place, std::memory_order_release);
  return nullptr;
}

bool is_under_way(State state) noexcept { return state == State::asked || state == State::being_answered; }

/// Asks, unless the peer is still reading an earlier question.
void ask(Inbox& peer, Introduction& place, const device::MemoryHandle& handle) noexcept {
  State before = place.state.load(std::memory_order_acquire);
  if (is_under_way(before)) return;
  if (!place.state.compare_exchange_strong(before, State::being_written, std::memory_order_acq_rel)) return;
  place.rank = own_rank();
  place.handle = handle;
  place.state.store(State::asked, std::memory_order_release);
  peer.head().asked.fetch_add(1, std::memory_order_release);
}

/// Notes the first GPU for which memory is accepted.
void note_device(int device) noexcept {
  if (first_device.load(std::memory_order_relaxed) >= 0) return;
  int none = no_gpu;
  first_device.compare_exchange_strong(none, device, std::memory_order_seq_cst);
}

State answer_for_gpu(Introduction& introduction, Inbox& owner, int device) noexcept {
  device::Status status = device::Status::failed;
  const bool can = answer_calls_of(owner) && opened_memory().use(introduction.handle, device, status);
  introduction.is_of_the_same_gpu = introduction.handle.gpu == device::runtime()->gpu_number(device) ? 1 : 0;
  if (can) note_device(device);
  return can ? State::accepted : State::refused;
}

State answer_for_cpu(Introduction& introduction) noexcept {
  if (!introduction.handle.is_on_host()) return device::has_met_gpu_memory() ? State::asked : State::no_gpu_yet;
  device::Status status = device::Status::failed;
  const bool can = static_cast<bool>(opened_pages().use(introduction.handle, no_gpu, status));
  introduction.is_of_the_same_gpu = 0;
  if (can) are_pages_accepted.store(true, std::memory_order_seq_cst);
  return can ? State::accepted : State::refused;
}

}  // namespace

namespace internal {

constinit std::atomic<std::uint32_t> answered_for_gpu{0}, answered_for_cpu{0};

void answer(int device) noexcept {
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  const bool is_for_gpu = device != no_gpu;
  if (is_for_gpu && device::runtime() == nullptr) return;
  InboxHead& head = own_inbox().head();
  std::uint32_t all = head.asked.load(std::memory_order_acquire);
  for (Introduction& introduction : head.introductions) {
    const State state = introduction.state.load(std::memory_order_acquire);
    if (state != State::asked && !(is_for_gpu && state == State::no_gpu_yet)) continue;
    // Segments are let go of in their owner's inbox. An inbox that is not found yet is looked for again.
    Inbox* const owner = find_inbox(introduction.rank);
    if (owner == nullptr) {
      all = head.asked.load(std::memory_order_relaxed) - 1;
      continue;
    }
    State before = state;
    if (!introduction.state.compare_exchange_strong(before, State::being_answered, std::memory_order_acq_rel)) continue;
    const State said = is_for_gpu ? answer_for_gpu(introduction, *owner, device) : answer_for_cpu(introduction);
    introduction.state.store(said, std::memory_order_release);
  }
  (is_for_gpu ? answered_for_gpu : answered_for_cpu).store(all, std::memory_order_relaxed);
}

}  // namespace internal

Answer introduce(Inbox& peer, std::atomic<unsigned>& introduction, const device::MemoryHandle& handle) noexcept {
  static std::mutex& mutex = *new std::mutex;
  if (peer.speaker().process == handle.process) {
    if (accepting_device() < 0) note_device(accepting_device(handle));
    return {Answer::Kind::accepted, model::Pair::peer_gpu};
  }
  const unsigned known = introduction.load(std::memory_order_acquire);
  if (known < introduction_count) {
    const Introduction& place = peer.head().introductions[known];
    const State state = place.state.load(std::memory_order_acquire);
    const bool is_it = place.handle.number == handle.number;
    if (state == State::accepted && is_it)
      return {Answer::Kind::accepted, place.is_of_the_same_gpu != 0 ? model::Pair::same_gpu : model::Pair::peer_gpu};
    if (is_it && (state == State::refused || state == State::no_gpu_yet)) return {Answer::Kind::refused};
    if (is_it || is_under_way(state)) return {};
  }
  if (known == no_place) return {};
  const std::lock_guard lock(mutex);
  if (Introduction* const place = find_place(peer, introduction)) {
    if (place->handle.number != handle.number) ask(peer, *place, handle);
  }
  return {};
}

std::optional<model::Pair> accepted_by(Inbox& peer, const device::MemoryHandle& handle) noexcept {
  const Answer answer = introduce(peer, peer.introduction, handle);
  return answer.kind == Answer::Kind::accepted ? std::optional(answer.pair) : std::nullopt;
}

// Never destroyed: mappings are the driver's to end with the process.
device::OpenedMemory& opened_memory() noexcept {
  static device::OpenedMemory& instance = *new device::OpenedMemory(*device::runtime());
  return instance;
}

device::OpenedMemory& opened_pages() noexcept {
  static device::OpenedMemory& instance = *new device::OpenedMemory;
  return instance;
}

bool has_accepted_pages() noexcept { return are_pages_accepted.load(std::memory_order_seq_cst); }

int accepting_device() noexcept { return first_device.load(std::memory_order_seq_cst); }

int accepting_device(const device::MemoryHandle& handle) noexcept {
  if (handle.process != own_process()) return accepting_device();
  return device::runtime()->locate(reinterpret_cast<const void*>(handle.base)).device;
}

}  // namespace gapless::transfer::headers
