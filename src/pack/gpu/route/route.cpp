#include "pack/gpu/route/route.hpp"

#include "model/gpu.hpp"

namespace gapless::pack::gpu {
namespace {

constexpr const model::GpuTuning& tuning = model::gpu_tuning;

bool fills_sectors(const Layout& layout) {
  if (layout.core == layout::Core::index) return fills_sectors(*layout.child);
  return !layout.is_strided() || layout.length % tuning.sector_bytes == 0;
}

/// Blocks that kernels unpack so slowly that the last chunk's kernel takes as long as all chunks save.
bool is_sparse(const Layout& layout) {
  constexpr Offset short_block = 8;
  return layout.is_strided() && layout.length <= short_block && !layout.modes.empty() &&
         layout.modes[0].stride >= tuning.line_bytes;
}

/// Multiprocessors read host memory in requests of 128 bytes, copy engines in longer ones: a twelfth faster, a sixth
/// where a kernel also writes parts of sectors. Below, starting the chunks costs more than that saves.
Offset smallest_job(const Layout& layout) {
  if (is_sparse(layout)) return tuning.from_sparse_blocks;
  return fills_sectors(layout) ? tuning.from_whole_sectors : tuning.from_parts_of_sectors;
}

Traffic traffic_of(Direction direction, Reach reach) {
  if (direction == Direction::pack) {
    return reach == Reach::beyond ? Traffic::to_host : Traffic::within_gpu;
  }
  return reach == Reach::from_beyond ? Traffic::from_host : Traffic::within_gpu;
}

}  // namespace

bool pays_in_chunks(const Job& job, Traffic traffic) noexcept {
  return traffic == Traffic::from_host && job.end - job.begin >= smallest_job(*job.layout);
}

/// Fills in all but the traffic and the engine.
void Router::describe(const Job& job, Route& route) const noexcept {
  Movement& movement = route.movement;
  movement.bytes = static_cast<std::uint64_t>(job.end - job.begin);
  movement.in_chunks = !forced() && pays_in_chunks(job, movement.traffic);
  const bool may_copy = movement.traffic != Traffic::within_gpu || forced() == Engine::copies;
  if (!may_copy) return;
  if (!plan_copies(job, route.copies)) route.copies.count = 0;
  movement.copies = route.copies.count;
  movement.rows = route.copies.rows;
}

Route Router::route_waited(std::span<const Job> jobs, int device, Reach reach, bool is_section) const noexcept {
  Route route;
  if (jobs.empty()) return route;
  route.movement.is_section = is_section;
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
  return job.end - job.begin >= tuning.smallest_issued_copy || forced() == Engine::copies;
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
  contention_[static_cast<std::size_t>(device) % most_devices].note(route.engine, route.movement, elapsed_ns, before);
}

}  // namespace gapless::pack::gpu
