// Kernels written by hand for one class of layouts each, as somebody with only that layout to care for would write and
// tune them: every variant (word width, words in flight, how threads are laid over the data) is tried, the best counts.
#pragma once

#include <cstdint>
#include <vector>

#include "contestants/contestant.hpp"
#include "workload.hpp"

namespace gapless::bench {

/// Ways to copy contiguous bytes: the vendor's call and kernels.
std::vector<Contestant> copies(std::int64_t bytes);

std::vector<Contestant> box_kernels(const Box& box);
std::vector<Contestant> transpose_kernels(const Transposed& matrix);
std::vector<Contestant> uniform_list_kernels(const UniformList& list);
std::vector<Contestant> ragged_list_kernels(const RaggedList& list);
std::vector<Contestant> record_kernels(const Records& records);

/// The kernels for the work's class.
std::vector<Contestant> hand_written(const Workload& work);

}  // namespace gapless::bench
