#include "pack/cuda/route.hpp"

#include "pack/cuda/chunks.hpp"

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

}  // namespace

/// Fills in all but the traffic and the engine.
void Router::describe(const Job& job, Route& route) const noexcept {
  Movement& movement = route.movement;
  movement.bytes = static_cast<std::uint64_t>(job.end - job.begin);
  movement.in_chunks = !forced() && pays_in_chunks(job, movement.traffic);
  const bool may_copy = movement.traffic != Traffic::within_gpu || forced() == Engine::copies;
  if (!may_copy || !plan_copies(job, route.copies)) return;
  movement.copies = route.copies.count;
  movement.rows = route.copies.rows;
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
  route.engine = choose_engine(route.movement, of(device).delays(route.movement), forced());
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
  route.engine = choose_issued_engine(route.movement, forced());
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
