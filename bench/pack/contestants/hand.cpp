#include "contestants/hand.hpp"

namespace gapless::bench {
namespace {

struct KernelsFor {
  std::int64_t bytes;

  std::vector<Contestant> operator()(const Contiguous&) const { return copies(bytes); }
  std::vector<Contestant> operator()(const Box& box) const {
    return box.count[0] * box.count[1] * box.count[2] == 1 ? copies(bytes) : box_kernels(box);
  }
  std::vector<Contestant> operator()(const Transposed& matrix) const { return transpose_kernels(matrix); }
  std::vector<Contestant> operator()(const UniformList& list) const { return uniform_list_kernels(list); }
  std::vector<Contestant> operator()(const RaggedList& list) const { return ragged_list_kernels(list); }
  std::vector<Contestant> operator()(const Records& records) const { return record_kernels(records); }
};

}  // namespace

std::vector<Contestant> hand_written(const Workload& work) {
  return std::visit(KernelsFor{work.packed_bytes()}, work.hand);
}

}  // namespace gapless::bench
