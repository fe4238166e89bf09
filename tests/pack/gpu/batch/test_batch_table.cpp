// Where a tile of a batch finds its job, in parameters and in tables, against counting from the first job on.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "pack/gpu/batch/batch.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

using namespace pack::gpu;

constexpr std::uint32_t words_per_tile = fused_words_per_thread * threads_per_block;

/// Work of so many tiles, recognised by its address.
SmallNest work_of_tiles(std::uint32_t tiles, std::uintptr_t address) {
  SmallNest nest{};
  nest.memory = address;
  nest.word_count = tiles * words_per_tile - address % words_per_tile;
  nest.shift = static_cast<std::uint8_t>(address % 5);
  nest.level_count = static_cast<std::uint8_t>(1 + address % SmallNest::most_levels);
  return nest;
}

struct Tiles {
  std::vector<std::uint32_t> of_job;
  Batch batch;

  explicit Tiles(std::vector<std::uint32_t> counts) : of_job(std::move(counts)) {
    batch.clear();
    for (std::size_t job = 0; job < of_job.size(); ++job) {
      EXPECT_TRUE(batch.add(work_of_tiles(of_job[job], job), nullptr));
    }
  }

  /// find(tile) is to return a BatchTile, work(found) where its work lies, for tiles of the jobs from `first` up to
  /// `end`.
  template <class Find, class Work>
  void expect_found(std::size_t first, std::size_t end, const Find& find, const Work& work) const {
    std::uint32_t tile = 0;
    for (std::size_t job = first; job < end; ++job) {
      for (std::uint32_t of_job_tile = 0; of_job_tile < of_job[job]; ++of_job_tile, ++tile) {
        const BatchTile found = find(tile);
        ASSERT_EQ(found.tile, of_job_tile) << "tile " << tile << ", job " << job;
        ASSERT_EQ(reinterpret_cast<const SmallNest*>(work(found))->memory, job) << "tile " << tile;
        ASSERT_EQ(found.tag.kind, FusedKind::small_nest);
        ASSERT_EQ(found.tag.word_shift, job % 5);
      }
    }
  }

  void expect_found_in_table() const {
    const TableParts parts = batch.table_parts();
    ASSERT_LE(parts.allocation(), largest_table);
    const auto memory = std::make_unique<Word16[]>(parts.allocation() / sizeof(Word16) + 1);
    batch.write_table(reinterpret_cast<std::byte*>(memory.get()));
    const BatchTable table = batch.table(memory.get(), {});
    constexpr DirectSpace space;
    expect_found(
        0, of_job.size(), [&](std::uint32_t tile) { return find_tile(table, tile, space); },
        [&](const BatchTile& found) { return work_of(table, found, space); });
  }

  void expect_found_in_parts() const {
    std::uint32_t first = 0;
    while (first < batch.job_count()) {
      const BatchPart part(batch, first);
      ASSERT_GT(part.end(), first);
      ASSERT_LE(part.end() - first, LargeBatch::max_jobs);
      part.visit_parameters({}, [&](const auto& parameters, std::size_t) {
        expect_found(
            first, part.end(), [&](std::uint32_t tile) { return find_tile(parameters, tile); },
            [&](const BatchTile& found) { return parameters.works + found.position; });
      });
      first = part.end();
    }
    EXPECT_EQ(batch.fits_parameters(), batch.empty() || BatchPart(batch, 0).end() == batch.job_count());
  }

  void expect_found() const {
    ASSERT_NO_FATAL_FAILURE(expect_found_in_table());
    ASSERT_NO_FATAL_FAILURE(expect_found_in_parts());
  }
};

TEST(BatchTable, OneTileEach) {
  for (const std::size_t jobs : {1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 257, 512, 513, 5000}) {
    ASSERT_NO_FATAL_FAILURE(Tiles(std::vector<std::uint32_t>(jobs, 1)).expect_found()) << jobs << " jobs";
  }
}

TEST(BatchTable, FewAndManyTilesInAnyOrder) {
  std::mt19937_64 random(random_seed());
  for (int round = 0; round < 40; ++round) {
    std::vector<std::uint32_t> tiles(1 + random() % 3000);
    const std::uint64_t seldom = 2 + random() % 60;
    for (auto& count : tiles) {
      const bool is_long = random() % seldom == 0;
      count = static_cast<std::uint32_t>(1 + random() % (is_long ? 200 : 3));
    }
    ASSERT_NO_FATAL_FAILURE(Tiles(tiles).expect_found()) << "round " << round;
  }
}

TEST(BatchTable, IsFullBeforeItsMemoryIs) {
  Batch batch;
  batch.clear();
  std::uint32_t jobs = 0;
  while (batch.add(work_of_tiles(1 + jobs % 7 * 100, jobs), nullptr)) ++jobs;
  EXPECT_EQ(batch.job_count(), jobs);
  const TableParts parts = batch.table_parts();
  EXPECT_LE(parts.allocation(), largest_table);
  EXPECT_GT(parts.allocation() + 4096, largest_table);
}

TEST(BatchTable, NoTwoBatchesAreTakenForEachOther) {
  Tiles first({1, 2}), second({1, 2});
  EXPECT_NE(first.batch.identity(), second.batch.identity());
  const std::uint64_t before = first.batch.identity();
  first.batch.clear();
  EXPECT_NE(first.batch.identity(), before);
  EXPECT_NE(first.batch.identity(), 0u);
}

}  // namespace
}  // namespace gapless::tests
