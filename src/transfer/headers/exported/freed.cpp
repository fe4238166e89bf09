#include "transfer/headers/exported/freed.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <mutex>
#include <span>
#include <thread>

#include "base/quiet_thread.hpp"
#include "device/device.hpp"
#include "fabric/registry.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer::headers {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds longest_wait{1};  ///< for a peer that is stopped, in a debugger for example

/// A set of peers' inboxes.
class Peers {
 public:
  /// False where there is no room.
  bool add(Inbox& inbox) noexcept {
    for (std::atomic<Inbox*>& place : places_) {
      Inbox* found = nullptr;
      if (place.compare_exchange_strong(found, &inbox, std::memory_order_acq_rel) || found == &inbox) return true;
    }
    return false;
  }
  template <class Visit>
  void for_each(const Visit& visit) noexcept {
    for (const std::atomic<Inbox*>& place : places_) {
      Inbox* const inbox = place.load(std::memory_order_acquire);
      if (inbox == nullptr) return;
      visit(*inbox);
    }
  }

 private:
  std::array<std::atomic<Inbox*>, introduction_count> places_{};
};

constinit Peers told, owners;
constinit std::atomic<std::uint64_t> calls{0};

/// The numbers of allocations that the library may get, a place each: no peer has freed memory of this process mapped
/// at their addresses.
constinit std::array<std::atomic<std::uint64_t>, 256> met{};

void wake(std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
}

bool has_answered(const Inbox& peer, std::uint32_t call) noexcept {
  const InboxHead& head = peer.head();
  return static_cast<std::int32_t>(head.freed_answered.load(std::memory_order_acquire) - call) >= 0;
}

void wait_for(const Inbox& peer) noexcept {
  if (!peer.head().answers_calls.load(std::memory_order_acquire)) return;  // the peer has mapped nothing
  const std::uint32_t call = peer.head().freed_calls.load(std::memory_order_relaxed);
  for (const auto end = Clock::now() + longest_wait; !has_answered(peer, call);) {
    if (Clock::now() > end || fabric::registry::is_gone(peer.speaker().process)) return;
    std::this_thread::sleep_for(std::chrono::microseconds(10));
  }
}

/// Makes sure that the library may get memory of that allocation: waits until no peer has freed memory at its addresses
/// mapped.
void watch(const void* address) noexcept {
  static std::mutex& mutex = *new std::mutex;
  static std::uint32_t called_for = 0;
  const std::uint64_t number = device::runtime()->allocation_number(address);
  std::atomic<std::uint64_t>& known = met[number % met.size()];
  if (known.load(std::memory_order_relaxed) == number) return;
  const std::lock_guard lock(mutex);
  tell_of_freed();
  const std::uint32_t freed = own_inbox().head().freed.count.load(std::memory_order_relaxed);
  if (freed != called_for) {
    called_for = freed;
    calls.fetch_add(1, std::memory_order_relaxed);
    told.for_each([](Inbox& peer) {
      peer.head().freed_calls.fetch_add(1, std::memory_order_acq_rel);
      wake(peer.head().freed_calls);
    });
    told.for_each([](Inbox& peer) { wait_for(peer); });
  }
  known.store(number, std::memory_order_relaxed);
}

[[noreturn]] void answer_calls() noexcept {
  InboxHead& own = own_inbox().head();
  for (;;) {
    if (const int gpu = accepting_device(); gpu >= 0) device::runtime()->adopt(gpu);
    const std::uint32_t call = own.freed_calls.load(std::memory_order_acquire);
    owners.for_each([](Inbox& owner) { unmap_freed(owner); });
    own.freed_answered.store(call, std::memory_order_release);
    sleep_while(own.freed_calls, call);
  }
}

bool has_thread() noexcept {
  static const bool answer = [] {
    std::thread thread = start_quiet_thread([] { answer_calls(); });
    if (!thread.joinable()) return false;
    thread.detach();
    own_inbox().head().answers_calls.store(true, std::memory_order_release);
    return true;
  }();
  return answer;
}

}  // namespace

// Never destroyed: messages may be sent while the process ends.
device::ExportedMemory& exported_memory() noexcept {
  static device::ExportedMemory& instance = *new device::ExportedMemory(*device::runtime());
  return instance;
}

void tell_of_freed() noexcept {
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  std::array<std::uint64_t, FreedAllocations::kept> numbers;
  FreedAllocations& freed = own_inbox().head().freed;
  for (std::size_t found = numbers.size(); found == numbers.size();) {
    found = exported_memory().take_freed(numbers);
    for (const std::uint64_t number : std::span(numbers).first(found)) {
      const std::uint32_t count = freed.count.load(std::memory_order_relaxed);
      freed.numbers[count % FreedAllocations::kept].store(number, std::memory_order_release);
      freed.count.store(count + 1, std::memory_order_release);
    }
  }
}

void unmap_freed(Inbox& owner) noexcept {
  static std::mutex& mutex = *new std::mutex;
  const FreedAllocations& freed = owner.head().freed;
  if (freed.count.load(std::memory_order_acquire) == owner.freed_seen.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex);
  const std::uint32_t count = freed.count.load(std::memory_order_acquire);
  const std::uint32_t found = count - owner.freed_seen.load(std::memory_order_relaxed);
  std::array<std::uint64_t, FreedAllocations::kept> numbers;
  for (std::uint32_t i = 0; i < std::min(found, FreedAllocations::kept); ++i)
    numbers[i] = freed.numbers[(count - 1 - i) % FreedAllocations::kept].load(std::memory_order_acquire);
  // The owner may be writing a number over the oldest of these, which it counts only afterwards.
  const std::uint32_t written = freed.count.load(std::memory_order_acquire) + 1 - count;
  const pid_t process = owner.speaker().process;
  if (found + written > FreedAllocations::kept) {
    // Too many are freed to be named, so all of the owner's allocations are unmapped; those that are not freed are
    // mapped again when they are read next.
    opened_memory().owner_has_ended(process);
  } else {
    opened_memory().owner_has_freed(process, std::span(numbers).first(found));
  }
  owner.freed_seen.store(count, std::memory_order_release);
}

void expect_mapping_by(Inbox& peer) noexcept {
  if (!library_reads_gpu_memory() || peer.speaker().process == own_process()) return;
  told.add(peer);
  device::watch_gpu_memory(watch);
}

bool answer_calls_of(Inbox& owner) noexcept {
  return !library_reads_gpu_memory() || (has_thread() && owners.add(owner));
}

}  // namespace gapless::transfer::headers

std::uint64_t gapless_freed_calls() { return gapless::transfer::headers::calls.load(std::memory_order_relaxed); }
