#include "pack/cuda/route.hpp"

#include <new>

#include "pack/cuda/chunks.hpp"
#include "pack/of_thread.hpp"

namespace gapless::pack::cuda {
namespace {

/// Below, a kernel behind others is done before a copy engine has started.
constexpr Offset smallest_issued_copy = Offset{1} << 20;

Traffic traffic_of(Direction direction, device::Reach reach) {
  if (direction == Direction::pack) {
    return reach == device::Reach::beyond ? Traffic::to_host : Traffic::within_gpu;
  }
  return reach == device::Reach::from_beyond ? Traffic::from_host : Traffic::within_gpu;
}

/// nullptr where they cannot be copied in one call.
const RunCopies* list_runs(const Job& job) noexcept {
  try {
    auto& runs = of_this_thread<RunCopies>();
    return plan_runs(job, runs) ? &runs : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void plan_by_boxes(Route& route) noexcept {
  route.movement.by_runs = false;
  route.movement.copies = route.copies.count;
  route.movement.rows = route.copies.rows;
}

void plan_by_runs(Route& route, std::uint64_t runs) noexcept {
  route.movement.by_runs = true;
  route.movement.copies = static_cast<int>(runs);
  route.movement.rows = runs;
}

/// By `choose(movement)`. Runs are listed where their estimated number does not rule copies out, and then counted.
template <class Choose>
void settle_engine(const Job& job, Route& route, const Choose& choose) noexcept {
  route.engine = choose(route.movement);
  if (route.engine != Engine::copies || !route.movement.by_runs) return;
  route.runs = list_runs(job);
  if (route.runs != nullptr) {
    plan_by_runs(route, route.runs->count);
  } else {
    plan_by_boxes(route);
  }
  route.engine = choose(route.movement);
}

}  // namespace

/// Fills in all but the traffic and the engine.
void Router::describe(const Job& job, Route& route) const noexcept {
  Movement& movement = route.movement;
  movement.bytes = static_cast<std::uint64_t>(job.end - job.begin);
  movement.in_chunks = !forced() && pays_in_chunks(job, movement.traffic);
  const bool may_copy = movement.traffic != Traffic::within_gpu || forced() == Engine::copies;
  if (!may_copy) return;
  if (!plan_copies(job, route.copies)) route.copies.count = 0;
  plan_by_boxes(route);
  if (movement.traffic == Traffic::within_gpu) return;
  // Boxes of more rows than one take fewer copies.
  const Offset runs = estimated_runs(job);
  const bool has_rows = route.copies.count > 0 && route.copies.rows > unsigned_(route.copies.count);
  if (!has_rows && route.copies.count != 1 && runs <= most_runs) plan_by_runs(route, unsigned_(runs));
}

Route Router::route_waited(std::span<const Job> jobs, int device, device::Reach reach) const noexcept {
  Route route;
  if (jobs.empty()) return route;
  route.movement.traffic = traffic_of(jobs.front().direction, reach);
  if (jobs.size() == 1) {
    describe(jobs.front(), route);
  } else {
    for (const Job& job : jobs) route.movement.bytes += static_cast<std::uint64_t>(job.end - job.begin);
  }
  settle_engine(jobs.front(), route, [&, delays = of(device).delays(route.movement)](const Movement& movement) {
    return choose_engine(movement, delays, forced());
  });
  return route;
}

bool Router::has_choice(const Job& job) const noexcept {
  return job.end - job.begin >= smallest_issued_copy || forced() == Engine::copies;
}

Route Router::route_issued(const Job& job, const device::Location& packed) const noexcept {
  Route route;
  if (packed.kind == device::MemoryKind::pinned) {
    route.movement.traffic = job.direction == Direction::pack ? Traffic::to_host : Traffic::from_host;
  }
  describe(job, route);
  settle_engine(job, route, [&](const Movement& movement) { return choose_issued_engine(movement, forced()); });
  return route;
}

bool Router::should_ask(const Route& route, int device) const noexcept {
  return of(device).should_ask(route.engine, route.movement);
}

void Router::note(const Route& route, int device, std::int64_t elapsed_ns, Before before) noexcept {
  if (forced()) return;
  punctuality_[static_cast<std::size_t>(device) % remembered_devices].note(route.engine, route.movement, elapsed_ns,
                                                                           before);
}

}  // namespace gapless::pack::cuda
