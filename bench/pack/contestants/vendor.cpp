#include "contestants/vendor.hpp"

#include <memory>

#include "gpu.hpp"

namespace gapless::bench {
namespace {

constexpr std::size_t most_blocks = 512;

std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

Contestant copy_2d(const Box& box) {
  return {"cudaMemcpy2DAsync", [box](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
            const std::size_t row = size(box.row), pitch = size(box.stride[0]), rows = size(box.count[0]);
            char* const memory = spot.memory + box.base;
            const cudaError_t error =
                direction == GAPLESS_PACK
                    ? cudaMemcpy2DAsync(spot.packed, row, memory, pitch, row, rows, cudaMemcpyDefault, stream)
                    : cudaMemcpy2DAsync(memory, pitch, spot.packed, row, row, rows, cudaMemcpyDefault, stream);
            check(error, "copying in 2-D");
          }};
}

Contestant copy_3d(const Box& box) {
  return {"cudaMemcpy3DAsync", [box](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
            const std::size_t row = size(box.row), rows = size(box.count[0]), planes = size(box.count[1]);
            const std::size_t pitch = size(box.stride[0]), plane = size(box.stride[1]) / pitch;
            for (std::int64_t i = 0; i < box.count[2]; ++i) {
              const cudaPitchedPtr memory = {spot.memory + box.base + i * box.stride[2], pitch, pitch, plane};
              const cudaPitchedPtr packed = {spot.packed + size(i) * row * rows * planes, row, row, rows};
              cudaMemcpy3DParms copy{};
              copy.srcPtr = direction == GAPLESS_PACK ? memory : packed;
              copy.dstPtr = direction == GAPLESS_PACK ? packed : memory;
              copy.extent = {row, rows, planes};
              copy.kind = cudaMemcpyDefault;
              check(cudaMemcpy3DAsync(&copy, stream), "copying in 3-D");
            }
          }};
}

using SharedBlocks = std::shared_ptr<const Blocks>;

Contestant copy_blocks(const SharedBlocks& blocks) {
  return {"cudaMemcpyAsync a block", [blocks](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
            char* packed = spot.packed;
            for (std::size_t i = 0; i < blocks->offsets.size(); ++i) {
              char* const memory = spot.memory + blocks->offsets[i];
              const std::size_t length = size(blocks->length_of(i));
              const bool packs = direction == GAPLESS_PACK;
              check(
                  cudaMemcpyAsync(packs ? packed : memory, packs ? memory : packed, length, cudaMemcpyDefault, stream),
                  "copying a block");
              packed += length;
            }
          }};
}

#if CUDART_VERSION >= 13000
Contestant copy_batch(const SharedBlocks& blocks) {
  const auto issue = [blocks](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
    thread_local std::vector<const void*> sources;
    thread_local std::vector<void*> targets;
    thread_local std::vector<std::size_t> lengths;
    sources.clear();
    targets.clear();
    lengths.clear();
    char* packed = spot.packed;
    for (std::size_t i = 0; i < blocks->offsets.size(); ++i) {
      char* const memory = spot.memory + blocks->offsets[i];
      sources.push_back(direction == GAPLESS_PACK ? memory : packed);
      targets.push_back(direction == GAPLESS_PACK ? packed : memory);
      lengths.push_back(size(blocks->length_of(i)));
      packed += lengths.back();
    }
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    std::size_t first = 0;
    check(cudaMemcpyBatchAsync(targets.data(), sources.data(), lengths.data(), lengths.size(), &attributes, &first, 1,
                               stream),
          "copying a batch");
  };
  return {"cudaMemcpyBatchAsync", issue, false};
}
#endif

}  // namespace

std::vector<Contestant> vendor_calls(const Workload& work) {
  std::vector<Contestant> calls;
  if (const Box* box = std::get_if<Box>(&work.hand)) {
    const bool one_mode = box->count[1] * box->count[2] == 1;
    if (one_mode && box->count[0] > 1) calls.push_back(copy_2d(*box));
    if (!one_mode && box->stride[1] % box->stride[0] == 0) calls.push_back(copy_3d(*box));
  }
  const auto blocks = std::make_shared<const Blocks>(work.blocks);
  if (blocks->offsets.size() <= most_blocks) {
    calls.push_back(copy_blocks(blocks));
#if CUDART_VERSION >= 13000
    if (blocks->offsets.size() > 1) calls.push_back(copy_batch(blocks));
#endif
  }
  return calls;
}

}  // namespace gapless::bench
