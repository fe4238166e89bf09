#include "pack/gpu/batch/pair_batch.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <variant>

#include "model/gpu.hpp"

namespace gapless::pack::gpu {
namespace {

using device::Status;

constexpr int most_levels = static_cast<int>(std::size(SmallPair{}.levels));

/// Nothing where it has too many modes.
std::optional<PairWork<SmallPair>> small(const PairWork<RefinedPair>& work) {
  if (work.places.level_count > most_levels) return {};
  PairWork<SmallPair> result{
      work.word_count, work.word_shift, work.words_per_thread, {work.places.origin, work.places.level_count, {}}};
  std::copy_n(work.places.levels, most_levels, result.places.levels);
  return result;
}

/// A row; nothing where it is so long that it has a launch of its own.
std::optional<PairWork<SmallPair>> small(const ContiguousWork& work) {
  if (work.bytes > model::gpu_tuning.largest_fused_copy) return {};
  const int shift = std::min(largest_word_shift, std::countr_zero(work.memory | work.packed | work.bytes));
  const std::uint64_t words = work.bytes >> shift;
  PairWork<SmallPair> result{words, shift, pair_words_per_thread(words), {{work.memory, work.packed}, 1, {}}};
  result.places.levels[0] = {{}, 1 << shift, 1 << shift};
  return result;
}

/// False where it is no such work or has too many tiles, or the batch is full.
bool add(PairBatch& batch, const PlannedPair& planned) {
  std::optional<PairWork<SmallPair>> work;
  if (const auto* const pair = std::get_if<PairWork<RefinedPair>>(&planned.launch)) work = small(*pair);
  if (const auto* const row = std::get_if<ContiguousWork>(&planned.launch)) work = small(*row);
  if (!work || batch.count == PairBatch::most) return false;
  constexpr std::uint64_t most_tiles = std::uint64_t{1} << 20;
  const std::uint64_t tiles = batch.tiles() + work->tiles();
  if (tiles > most_tiles) return false;
  batch.works[batch.count] = *work;
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
