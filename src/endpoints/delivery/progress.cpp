#include "endpoints/delivery/progress.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

#include "base/quiet_thread.hpp"
#include "base/steady_condition.hpp"
#include "device/device.hpp"
#include "endpoints/inner.hpp"
#include "endpoints/tasks/requests.hpp"
#include "endpoints/tasks/schedule.hpp"

namespace gapless::mpi::endpoints {
namespace {

/// Held by the thread that asks the library for news: many libraries have one lock for that, on which others would go
/// to sleep, and who finds it taken can ask a moment later.
alignas(64) constinit Lock asking;

void look_at_active(Endpoint& endpoint) {
  for (std::size_t i = 0; i < endpoint.active.size();) {
    Operation& operation = *endpoint.active[i];
    int flag = 0, code = MPI_SUCCESS;
    {
      const std::unique_lock turn(asking, std::try_to_lock);
      if (!turn) return;
      code = inner.Test(&operation.moving, &flag, MPI_STATUS_IGNORE);
    }
    if (flag == 0 && code == MPI_SUCCESS) {
      ++i;
      continue;
    }
    endpoint.active[i] = endpoint.active.back();
    endpoint.active.pop_back();
    finish_moving(operation, code);
  }
}

void take_in_messages(Endpoint& endpoint) {
  const Communicator& communicator = *endpoint.communicator;
  const TagFormat& format = communicator.format;
  constexpr int most_at_once = 16;
  for (int i = 0; i < most_at_once && prepare_for_arrival(endpoint); ++i) {
    int flag = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status{};
    {
      const std::unique_lock turn(asking, std::try_to_lock);
      if (!turn) return;
      const int code = inner.Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, endpoint.lane(), &flag, &message, &status);
      if (code != MPI_SUCCESS || flag == 0) return;
    }
    MPI_Count bytes = 0;
    native.Get_elements_x(&status, MPI_BYTE, &bytes);
    const int from = format.source_of(status.MPI_TAG);
    const int source = communicator.ranks[static_cast<std::size_t>(status.MPI_SOURCE)][static_cast<std::size_t>(from)];
    arrive(endpoint, message, {source, format.tag_of(status.MPI_TAG), format.context_of(status.MPI_TAG)}, bytes,
           format.is_marked(status.MPI_TAG));
  }
}

struct Helper {
  std::mutex mutex;
  SteadyCondition wanted;
  std::atomic<int> threads_in_library{0};
  std::atomic<bool> is_over{false};
  std::atomic<int> gpu{-1};  ///< the first whose memory operations move
  std::thread thread;
};

Helper& helper() {
  static auto& one = *new Helper;  // its thread outlives every static object where MPI is not finalised
  return one;
}

bool has_work() noexcept {
  return helper().threads_in_library.load(std::memory_order_relaxed) != 0 && has_outstanding_operations();
}

void help_once() noexcept {
  constexpr std::size_t many = 256;
  requests::release_abandoned(many);
  try {
    if (has_outstanding_operations()) progress_of_all();
  } catch (const std::exception&) {  // no memory: the next round may have some
  }
}

void help() {
  constexpr std::chrono::milliseconds longest_sleep{10};
  while (!helper().is_over) {
    if (const int gpu = helper().gpu.load(std::memory_order_relaxed); gpu >= 0) device::runtime()->adopt(gpu);
    help_once();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    std::unique_lock lock(helper().mutex);
    helper().wanted.wait_for(lock, longest_sleep, [] { return helper().is_over || has_work(); });
  }
}

/// May a message come on the endpoint's lane? Those who share its memory send there only what its rings tell of.
bool may_come_on_lane(const Endpoint& endpoint) noexcept {
  return endpoint.communicator->has_strangers || endpoint.waits_for_lane ||
         endpoint.inbox().takes_from_lane.load(std::memory_order_acquire);
}

/// Asks the library how far it is with what it moves for the endpoint. False if there is nothing to ask.
bool ask_library(Endpoint& endpoint) {
  const bool lane = endpoint.has_peers() && may_come_on_lane(endpoint);
  if (!lane && endpoint.active.empty()) return false;
  // Messages that need no library come first, but a peer that never stops sending them holds up no other.
  constexpr unsigned most_busy_rounds = 16;
  if (endpoint.busy_rounds % most_busy_rounds != 0) return true;
  look_at_active(endpoint);
  if (lane) take_in_messages(endpoint);
  return true;
}

/// Nothing of this endpoint is in the library, but a peer may wait for what else this process has there. Asking takes
/// as long as a message, so who waits for messages that come soon does not ask.
void poke_now_and_then(Endpoint& endpoint, bool found) noexcept {
  constexpr unsigned long_wait = 4096, often = 256, seldom = 8192;
  endpoint.idle_rounds = found ? 0 : endpoint.idle_rounds + 1;
  const bool waits_long = endpoint.idle_rounds >= long_wait && endpoint.idle_rounds % often == 0;
  if (waits_long || ++endpoint.rounds % seldom == 0) poke_library();
}

}  // namespace

void progress(Endpoint& endpoint) {
  if (const std::unique_lock lock(endpoint.lock, std::try_to_lock); lock) {
    const bool found = empty_rings(endpoint);
    send_stalled(endpoint);
    look_at_loans(endpoint);
    endpoint.busy_rounds = found ? endpoint.busy_rounds + 1 : 0;
    if (!ask_library(endpoint)) poke_now_and_then(endpoint, found);
    if (endpoint.is_freed.load(std::memory_order_relaxed)) endpoint.end_if_done();
  }
  advance_schedules(endpoint);
}

void poke_library() noexcept {
  const std::unique_lock turn(asking, std::try_to_lock);
  if (!turn) return;
  // A question about a request that is not complete makes each library do what it can, on all that it has. Not so a
  // probe: MPICH 5.0.2 looks only at what is there already where the communicator is of one process.
  int flag = 0;
  native.Request_get_status(requests::of_sent(), &flag, MPI_STATUS_IGNORE);
}

void progress_of_all() {
  static thread_local std::vector<std::shared_ptr<Endpoint>> all;  // kept, so that waiting costs no allocation
  struct LetGo {
    ~LetGo() { all.clear(); }
  } const afterwards;
  add_all_endpoints(all);
  for (const auto& endpoint : all) progress(*endpoint);
}

void progress_now_and_then() {
  constexpr unsigned calls_at_once = 64;
  static constinit thread_local unsigned calls = 0;
  if (++calls % calls_at_once == 0 && has_outstanding_operations()) progress_of_all();
}

void InLibrary::enter(bool wakes) noexcept {
  helper().threads_in_library.fetch_add(1);
  if (wakes) helper().wanted.notify_one();
}

void note_gpu(int device) noexcept {
  if (helper().gpu.load(std::memory_order_relaxed) < 0) helper().gpu.store(device, std::memory_order_relaxed);
}

void begin_progress() noexcept {
  static std::once_flag once;
  // Without a thread, calls that wait for a peer's progress may wait longer.
  std::call_once(once, [] {
    helper().thread = start_quiet_thread(help);
    end_at_exit<end_progress>();
  });
}

namespace {

bool is_sending(Endpoint& endpoint) noexcept {
  const std::lock_guard lock(endpoint.lock);
  return !endpoint.stalled.empty() || endpoint.lending.is_linked() ||
         std::ranges::any_of(endpoint.active, [](const Operation* operation) { return !operation->receives; });
}

}  // namespace

void finish_sends() {
  std::vector<std::shared_ptr<Endpoint>> all;
  add_all_endpoints(all);
  for (const auto& endpoint : all) drive_until(*endpoint, [&] { return !is_sending(*endpoint); });
}

void end_progress() {
  {
    const std::lock_guard lock(helper().mutex);
    helper().is_over = true;
    helper().wanted.notify_one();
  }
  // An error handler or an operation of the program may have that thread exit.
  const bool is_other = helper().thread.get_id() != std::this_thread::get_id();
  if (helper().thread.joinable() && is_other) helper().thread.join();
}

void InLibrary::leave() noexcept { helper().threads_in_library.fetch_sub(1); }

}  // namespace gapless::mpi::endpoints
