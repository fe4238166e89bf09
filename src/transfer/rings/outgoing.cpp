#include "transfer/rings/outgoing.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/quiet_thread.hpp"
#include "base/settings.hpp"
#include "base/steady_condition.hpp"
#include "fabric/registry.hpp"
#include "layout/algebra/canonical.hpp"
#include "transfer/blocking.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/filling.hpp"
#include "transfer/headers/speakers.hpp"

namespace gapless::transfer::rings {

using Clock = std::chrono::steady_clock;
using headers::RingWords;

/// A place is free; taken, by begin(); started, once the header leaves; over, when the receiver needs the ring no more,
/// which is then given back; and free again when the owner lets go. An owner that lets go of a message that is not over
/// leaves the place detached: the end of the message frees it.
class Outgoing {
 public:
  std::mutex mutex;                     ///< guards all below; the thread that holds the mutex drives
  std::atomic<bool> is_taken{false};    ///< also read without the mutex
  std::atomic<bool> is_started{false};  ///< has start() been called? Also read without the mutex
  bool is_detached = false;             ///< has no owner
  bool is_over = false;                 ///< the receiver does not need the ring any more
  Result result = Result::ok;

  Ring ring;
  headers::SegmentRun run;
  headers::ExportedPool* pool = nullptr;
  RingWords* words = nullptr;
  headers::Inbox* receiver = nullptr;
  Sections sections;
  layout::LayoutPointer layout;  ///< kept here, for the program may free its datatype
  PoolBuffer copy;               ///< of a message that is copied out: all that had not been packed
  /// For the copy of a message in host memory; untouched until then. The owner lets go of a reserved buffer, so that
  /// the helper never puts one into its own pools.
  PoolBuffer reserved;
  pack::Job rest{};     ///< the whole message; copy_out() derives its job from this one
  int device = no_gpu;  ///< the GPU that packs
  std::uint64_t context = 0;
  Clock::time_point begun, looked_for;

  /// Is the program's memory still to be read?
  bool needs_memory() const noexcept {
    return !is_over && result == Result::ok && !copy && sections.begun() != sections.total();
  }
  std::uint32_t fetched() const noexcept {
    return std::min(words->fetched.load(std::memory_order_acquire), sections.total());
  }
  void drive() noexcept;
  bool copy_out() noexcept;
  bool is_on_gpu() const noexcept { return device != no_gpu; }
  int rank() const noexcept { return receiver->speaker().rank; }  ///< the receiver's
  void give_ring_back() noexcept;
  void give_place_back() noexcept;

 private:
  void pack() noexcept;
  void fail(Result how) noexcept;
  bool is_receiver_there() noexcept;
};

namespace {

constexpr std::chrono::milliseconds least_patience{20}, receivers_look{100};
/// Between two looks of the helper. A receiver may come minutes after a message has been sent or copied out.
constexpr Clock::duration least_pause = std::chrono::microseconds{50}, longest_pause = std::chrono::milliseconds{5};

/// How long a sender waits for a receiver who fetches nothing.
Clock::duration patience() noexcept {
  const auto& wanted = settings().pull_patience_us;
  return wanted ? std::max<Clock::duration>(std::chrono::microseconds(*wanted), least_patience) : least_patience;
}

constinit std::atomic<std::uint64_t> copied_out{0}, helpers_looks{0};
/// Is this thread the helper? The helper does not end with MPI, so it keeps no buffers in its pools.
constinit thread_local bool is_helper = false;

/// All outgoing messages of this process, and the helper, the thread that packs where no other thread does.
class Service {
 public:
  /// False where there is no thread.
  bool start() noexcept;
  /// A free place, locked by the caller; null where there is none.
  Outgoing* take(std::unique_lock<std::mutex>& lock) noexcept;
  /// A message has started: the helper packs from now on.
  void started() noexcept;
  void ended() noexcept { active_.fetch_sub(1, std::memory_order_relaxed); }
  /// A section has been packed, by any thread: the receiver is there, or has room still.
  void moved() noexcept { moves_.fetch_add(1, std::memory_order_relaxed); }
  bool are_any() const noexcept { return active_.load(std::memory_order_relaxed) != 0; }
  void drive() noexcept;
  void stop() noexcept;

  std::array<Outgoing, headers::ring_count> places;

 private:
  void work() noexcept;

  std::mutex mutex_;  ///< guards the thread
  SteadyCondition begun_;
  std::atomic<unsigned> active_{0};
  std::atomic<std::uint64_t> moves_{0};  ///< messages that have started, and sections that have been packed
  bool is_stopping_ = false;
  std::thread thread_;
};

// Never destroyed: the thread is ended by stop(), when the process exits.
Service& service() noexcept {
  static Service& instance = *new Service;
  return instance;
}

constinit std::atomic<bool> is_used{false};

bool Service::start() noexcept try {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return true;
  if (is_stopping_) return false;
  thread_ = start_quiet_thread([this] { work(); });
  if (!thread_.joinable()) return false;
  end_at_exit<[] { service().stop(); }>();
  is_used.store(true, std::memory_order_release);
  return true;
} catch (const std::exception&) {
  return false;
}

void Service::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    begun_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

Outgoing* Service::take(std::unique_lock<std::mutex>& lock) noexcept {
  for (Outgoing& each : places) {
    if (each.is_taken.load(std::memory_order_relaxed)) continue;
    std::unique_lock mine(each.mutex, std::try_to_lock);
    if (!mine || each.is_taken) continue;
    each.is_taken = true;
    lock = std::move(mine);
    return &each;
  }
  return nullptr;
}

void Service::started() noexcept {
  const std::lock_guard lock(mutex_);
  active_.fetch_add(1, std::memory_order_relaxed);
  moved();
  begun_.notify_one();
}

void Service::drive() noexcept {
  for (Outgoing& each : places) {
    if (!each.is_started.load(std::memory_order_relaxed)) continue;
    const std::unique_lock lock(each.mutex, std::try_to_lock);
    if (lock && each.is_taken && each.is_started) each.drive();
  }
}

/// Looks seldom at messages of which nothing has moved for long, so that a receiver waits little longer than it has let
/// the sender wait.
void Service::work() noexcept {
  is_helper = true;
  std::uint64_t seen = 0;
  Clock::time_point last_move{};
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    begun_.wait(lock, [this] { return is_stopping_ || are_any(); });
    lock.unlock();
    drive();
    helpers_looks.fetch_add(1, std::memory_order_relaxed);
    const auto now = Clock::now();
    const std::uint64_t seen_before = std::exchange(seen, moves_.load(std::memory_order_relaxed));
    if (seen != seen_before) last_move = now;
    const auto pause = std::clamp((now - last_move) / 16, least_pause, longest_pause);
    if (pause == least_pause) std::this_thread::sleep_for(pause);
    lock.lock();
    const auto has_moved = [&] { return is_stopping_ || seen != moves_.load(std::memory_order_relaxed); };
    if (pause > least_pause) begun_.wait_for(lock, pause, has_moved);
  }
}

}  // namespace

// Packs the sections that the ring has room for, and ends the message once all are fetched. The call waits for the
// GPU's work, because a ticket belongs to the thread that got the ticket.
void Outgoing::drive() noexcept {
  if (is_over) return;
  if (result == Result::ok) pack();
  const bool is_fetched = fetched() == sections.total();
  // A message that has been copied out does not speak for its receiver, which has let the sender wait.
  if (is_fetched && !is_on_gpu() && !copy) receiver->rings_put_off.end();
  if (is_fetched || !is_receiver_there()) give_ring_back();
}

/// Packs sections as long as the ring has room.
void Outgoing::pack() noexcept {
  if (is_on_gpu() && !device::runtime()->has_context(context)) return fail(Result::device_failed);
  if (is_on_gpu() && is_helper) device::runtime()->adopt(device);
  for (;;) {
    const std::uint32_t gone = fetched();
    while (sections.may_begin() && sections.begun() - gone < ring.sections) sections.begin_next();
    if (!sections.are_under_way()) return;
    if (const Result packed = sections.end_oldest(); packed != Result::ok) return fail(packed);
    words->packed.store(sections.ended(), std::memory_order_release);
    service().moved();
  }
}

/// Tells the receiver that no more sections come.
void Outgoing::fail(Result how) noexcept {
  sections.end_all();
  words->packed.store(RingWords::has_failed, std::memory_order_release);
  result = how;
}

bool Outgoing::is_receiver_there() noexcept {
  const auto now = Clock::now();
  if (now - looked_for < receivers_look) return true;
  looked_for = now;
  if (!fabric::registry::is_gone(receiver->speaker().process)) return true;
  if (needs_memory()) result = Result::peer_failed;
  return false;
}

/// Packs the rest of the message into memory of gapless's own, from which the later sections come. False where there is
/// no memory. Precondition: no section is under way.
bool Outgoing::copy_out() noexcept try {
  const layout::Offset from = sections.next_byte();
  if (from >= rest.end) return true;
  const auto bytes = static_cast<std::size_t>(rest.end - from);
  const layout::LayoutPointer contiguous = layout::block(0, rest.end);
  PoolBuffer memory = is_on_gpu() ? PoolBuffer(device::MemoryKind::device, device, bytes) : std::move(reserved);
  if (!memory && is_on_gpu()) memory = PoolBuffer(device::MemoryKind::pinned, device, bytes);
  // Without a copy, two processes that wait for their sends before they look at a receive would wait for ever.
  if (!memory && is_on_gpu()) memory = PoolBuffer::indispensable(device, bytes);
  if (!memory) return false;
  pack::Job job = rest;
  job.begin = from;
  job.packed = memory.data();
  const Result packed = is_on_gpu() ? run_on_gpu(job, device, memory.kind()) : run_on_host(job);
  if (packed != Result::ok) return false;
  const bool is_ring_on_gpu = pool->kind() == device::MemoryKind::device;
  const pack::Reach reads = reach_of(pack::Direction::unpack, memory.kind());
  // Byte k of the packed message lies at origin + k.
  void* const origin =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(memory.data()) - static_cast<std::uintptr_t>(from));
  sections.move_to(*contiguous, origin, is_ring_on_gpu ? reads : pack::Reach::beyond);
  layout = contiguous;
  copy = std::move(memory);
  copied_out.fetch_add(1, std::memory_order_relaxed);
  return true;
} catch (const std::exception&) {
  return false;
}

void Outgoing::give_ring_back() noexcept {
  is_over = true;
  layout.reset();
  pool->give_back(run);
  if (copy) {
    copy = {};
    if (is_helper) drain_pools_of_thread();
  }
  if (is_detached) give_place_back();
}

void Outgoing::give_place_back() noexcept {
  if (is_started) service().ended();
  is_started = is_detached = false;
  is_taken = false;
}

namespace {

/// Does the helper work in that context of the GPU? Not if the program has made the context itself.
bool is_helpers_context(int device, std::uint64_t context) noexcept {
  static constinit std::array<std::atomic<std::uint64_t>, 64> known{};
  std::atomic<std::uint64_t>& last = known[static_cast<std::size_t>(device) % known.size()];
  if (last.load(std::memory_order_relaxed) == context) return true;
  std::thread asking = start_quiet_thread([&last, device] {
    device::runtime()->adopt(device);
    last.store(device::runtime()->context(device), std::memory_order_relaxed);
  });
  if (asking.joinable()) asking.join();
  return last.load(std::memory_order_relaxed) == context;
}

}  // namespace

OwnedOutgoing begin(const Buffer& buffer, headers::Inbox& receiver, headers::ExportedPool& pool,
                    std::size_t section_bytes) noexcept {
  constexpr std::size_t sections = 4, alignment = 256;
  static_assert(sections <= most_sections);
  const std::size_t section = section_bytes / alignment * alignment;
  const int device = buffer.gpu();
  const bool is_on_gpu = device != no_gpu;
  const std::uint64_t context = is_on_gpu ? device::runtime()->context(device) : 0;
  const layout::Offset not_in_ring = buffer.size() - static_cast<layout::Offset>(section * sections);
  PoolBuffer reserved;
  if (!is_on_gpu && not_in_ring > 0) {
    reserved = PoolBuffer(device::MemoryKind::host, no_gpu, static_cast<std::size_t>(not_in_ring));
    if (!reserved) return nullptr;
  }
  if (section == 0 || !service().start() || (is_on_gpu && !is_helpers_context(device, context))) return nullptr;
  headers::SegmentRun run = pool.take(section * sections);
  if (run.count == 0) {
    drive_all();  // frees the rings of messages that are fetched
    run = pool.take(section * sections);
  }
  if (run.count == 0) return nullptr;
  std::unique_lock<std::mutex> lock;
  Outgoing* const mine = service().take(lock);
  if (mine == nullptr) {
    pool.give_back(run);
    return nullptr;
  }
  mine->run = run;
  const auto number = static_cast<std::uint32_t>(mine - service().places.data());
  mine->ring = {section, sections, number};
  mine->pool = &pool;
  mine->words = &headers::own_inbox().head().rings[number];
  mine->words->packed.store(0, std::memory_order_relaxed);
  mine->words->fetched.store(0, std::memory_order_relaxed);
  mine->receiver = &receiver;
  mine->layout = buffer.type->layout;
  mine->device = device;
  mine->rest = buffer.job(pack::Direction::pack, 0, buffer.size(), pool.data(mine->run));
  const pack::Reach reach = reach_of(pack::Direction::pack, pool.kind());
  const bool is_read_by_cpu = !receiver.head().takes_long_on_gpu.load(std::memory_order_relaxed);
  mine->sections =
      Sections(mine->rest, mine->ring, mine->device, reach, is_read_by_cpu ? filling_of(receiver) : nullptr);
  mine->reserved = std::move(reserved);
  mine->context = context;
  mine->is_over = false;
  mine->result = Result::ok;
  return OwnedOutgoing(mine);
}

const Ring& ring_of(const Outgoing& outgoing) noexcept { return outgoing.ring; }

headers::SegmentRun run_of(const Outgoing& outgoing) noexcept { return outgoing.run; }

void start(Outgoing& outgoing) noexcept {
  const std::lock_guard lock(outgoing.mutex);
  outgoing.begun = outgoing.looked_for = Clock::now();
  outgoing.is_started = true;
  service().started();
  outgoing.drive();
}

void withdraw(OwnedOutgoing& outgoing) noexcept {
  if (outgoing == nullptr) return;
  Outgoing& withdrawn = *outgoing.release();
  const std::lock_guard lock(withdrawn.mutex);
  if (!withdrawn.is_over) withdrawn.give_ring_back();
  withdrawn.reserved = {};
  withdrawn.give_place_back();
}

Result complete_alone(Outgoing& outgoing) noexcept {
  for (;;) {
    {
      const std::lock_guard lock(outgoing.mutex);
      outgoing.drive();
      if (!outgoing.needs_memory()) return outgoing.result;
      // A receiver that has begun to fetch goes on until it has all, whatever MPI call either process is in.
      if (outgoing.fetched() == 0 && outgoing.copy_out()) return Result::ok;
    }
    ::sched_yield();
  }
}

Result poll(Outgoing& outgoing) noexcept {
  const std::unique_lock lock(outgoing.mutex, std::try_to_lock);
  if (!lock) return Result::under_way;
  outgoing.drive();
  if (!outgoing.needs_memory()) return outgoing.result;
  const bool is_left = outgoing.fetched() == 0 && Clock::now() - outgoing.begun >= patience();
  if (!is_left || !outgoing.copy_out()) return Result::under_way;
  if (!outgoing.is_on_gpu()) outgoing.receiver->rings_put_off.begin();
  return Result::ok;
}

Result wait(Outgoing& outgoing) noexcept {
  for (;;) {
    if (const Result result = poll(outgoing); result != Result::under_way) return result;
    ::sched_yield();
  }
}

void EndOutgoing::operator()(Outgoing* outgoing) const noexcept {
  static_cast<void>(complete_alone(*outgoing));
  const std::lock_guard lock(outgoing->mutex);
  outgoing->reserved = {};
  if (outgoing->is_over) {
    outgoing->give_place_back();
  } else {
    outgoing->is_detached = true;
  }
}

void drive_all() noexcept {
  if (is_used.load(std::memory_order_acquire) && service().are_any()) service().drive();
}

void drain(bool (*has_ended)(int rank)) noexcept {
  if (!is_used.load(std::memory_order_acquire)) return;
  for (Outgoing& each : service().places) {
    for (bool goes_on = true; goes_on;) {
      {
        const std::lock_guard lock(each.mutex);
        if (each.is_taken && each.is_started) each.drive();
        goes_on = each.is_taken && each.is_started && !has_ended(each.rank());
        if (each.is_detached && !goes_on) each.give_ring_back();
      }
      if (goes_on) ::sched_yield();
    }
  }
}

}  // namespace gapless::transfer::rings

std::uint64_t gapless_rings_copied_out() {
  return gapless::transfer::rings::copied_out.load(std::memory_order_relaxed);
}
std::uint64_t gapless_rings_helpers_looks() {
  return gapless::transfer::rings::helpers_looks.load(std::memory_order_relaxed);
}
