// Where does the time of the reference algorithm go (Jenkins et al., 2012, Fig. 7)? A thread finds the place of its
// primitive by walking the type from the outermost level inwards with 64-bit division: walking alone, reading and
// writing alone, both; and gapless.
#include <cuda_runtime.h>

#include "contestants/words.cuh"
#include "gpu.hpp"
#include "tables/tables.hpp"

namespace gapless::bench {
namespace {

enum class Stage { traversal, read_write, both };

struct Level {
  std::int64_t elements;  ///< primitives in one repetition
  std::int64_t stride;
  const std::int64_t* offsets;  ///< instead of the stride
};

struct Tree {
  Level levels[4];  ///< outermost first
  int depth;
  std::int64_t elements;
};

template <class Word, Stage stage>
__global__ void __launch_bounds__(block_threads)
    walk(const __grid_constant__ Tree tree, const char* memory, Word* packed, std::int64_t never) {
  const std::int64_t element = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  if (element >= tree.elements) return;
  std::int64_t offset = element * static_cast<std::int64_t>(sizeof(Word));
  if constexpr (stage != Stage::read_write) {
    offset = 0;
    std::int64_t rest = element;
    for (int i = 0; i < tree.depth; ++i) {
      const Level& level = tree.levels[i];
      const std::int64_t at = rest / level.elements;
      rest %= level.elements;
      offset += level.offsets != nullptr ? level.offsets[at] : at * level.stride;
    }
    offset += rest * static_cast<std::int64_t>(sizeof(Word));
  }
  if constexpr (stage == Stage::traversal) {
    if (offset == never) packed[element] = Word();  // keeps the walk from being optimised away
  } else {
    packed[element] = *reinterpret_cast<const Word*>(memory + offset);
  }
}

template <class Word, Stage stage>
Contestant walker(const char* name, const Tree& tree) {
  return {name, [tree](const Spot& spot, gapless_direction, cudaStream_t stream) {
            walk<Word, stage>
                <<<blocks_for(static_cast<std::uint64_t>(tree.elements), block_threads), block_threads, 0, stream>>>(
                    tree, spot.memory, reinterpret_cast<Word*>(spot.packed), -1);
            launched();
          }};
}

template <class Word>
void measure(const Setting& setting, const Workload& work, const Tree& tree) {
  const Contestant mine = gapless_calls(work);
  const Contestant stages[] = {walker<Word, Stage::traversal>("traversal alone", tree),
                               walker<Word, Stage::read_write>("reading and writing alone", tree),
                               walker<Word, Stage::both>("a primitive a thread", tree)};
  const std::vector<Spot> spots = setting.arena.spots(work);
  setting.arena.verify(work, {&mine}, spots);
  const std::vector<double> seconds =
      gpu_seconds({&mine, &stages[0], &stages[1], &stages[2]}, spots, GAPLESS_PACK, setting.effort);
  Row row;
  row.table = "stages";
  row.labels = {{"family", work.family}, {"layout", work.name}, {"direction", "pack"}};
  row.bytes = work.packed_bytes();
  row.value = seconds[0] * 1e6;
  row.unit = "us";
  row.bound = static_cast<double>(work.traffic()) / setting.copy_bandwidth * 1e6;
  for (std::size_t i = 0; i < 3; ++i) row.peers.emplace_back(stages[i].name, seconds[i + 1] * 1e6);
  print(row);
}

/// The same nest for a vector or a box; rows are the innermost level.
Tree tree_of(const Box& box, std::int64_t word) {
  Tree tree{{}, 3, box.row / word * box.count[0] * box.count[1] * box.count[2]};
  std::int64_t elements = tree.elements;
  for (int i = 0; i < 3; ++i) {
    elements /= box.count[2 - i];
    tree.levels[i] = {elements, box.stride[2 - i], nullptr};
  }
  return tree;
}

}  // namespace

void print_stages(const Setting& setting) {
  constexpr std::int64_t bytes = std::int64_t{4} << 20;
  for (const std::int64_t length : {8, 128}) {
    const Workload work = vector(bytes / length, length, 512);
    measure<std::uint64_t>(setting, work, tree_of(std::get<Box>(work.hand), 8));
  }
  const Workload box = subarray("4-D", {64, 64, 64, 64}, {32, 32, 32, 32}, {0, 0, 0, 0}, 4);
  measure<std::uint32_t>(setting, box, tree_of(std::get<Box>(box.hand), 4));
  const Workload list = indexed_block(bytes / 8, 8, 8);
  const auto offsets = on_gpu(list.blocks.offsets);
  const Level listed{1, 0, reinterpret_cast<const std::int64_t*>(offsets->data())};
  measure<std::uint64_t>(setting, list, Tree{{listed}, 1, bytes / 8});
}

}  // namespace gapless::bench
