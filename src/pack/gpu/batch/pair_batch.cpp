#include "pack/gpu/batch/pair_batch.hpp"

#include <algorithm>
#include <variant>

namespace gapless::pack::gpu {
namespace {

using device::Status;

/// False where it has too many modes or too many tiles, or the batch is full.
bool add(PairBatch& batch, const PlannedPair& planned) {
  const auto* const work = std::get_if<PairWork<RefinedPair>>(&planned.launch);
  constexpr int most_levels = static_cast<int>(std::size(SmallPair{}.levels));
  if (work == nullptr || work->places.level_count > most_levels || batch.count == PairBatch::most) return false;
  constexpr std::uint64_t most_tiles = std::uint64_t{1} << 20;
  const std::uint64_t tiles = batch.tiles() + work->tiles();
  if (tiles > most_tiles) return false;
  PairWork<SmallPair>& added = batch.works[batch.count];
  added.word_count = work->word_count;
  added.word_shift = work->word_shift;
  added.words_per_thread = work->words_per_thread;
  added.places.origin = work->places.origin;
  added.places.level_count = work->places.level_count;
  std::copy_n(work->places.levels, most_levels, added.places.levels);
  batch.first_tiles[++batch.count] = static_cast<std::uint32_t>(tiles);
  return true;
}

}  // namespace

Status issue(Planner& planner, std::span<const PairJob> jobs, int device, PairSink& sink) {
  PairBatch batch;
  const bool are_several = jobs.size() > 1;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const PlannedPair planned = plan_pair(planner, jobs[i], device);
    if (planned.out_of_memory) return Status::out_of_memory;
    if (are_several && add(batch, planned)) continue;
    if (batch.count != 0) {
      if (const Status status = sink.launch(batch, false); status != Status::ok) return status;
      batch.count = 0;
      if (add(batch, planned)) continue;
    }
    const Status status = sink.launch(planned, i + 1 == jobs.size());
    if (status != Status::ok) return status;
  }
  return batch.count == 0 ? Status::ok : sink.launch(batch, true);
}

}  // namespace gapless::pack::gpu
