// Reductions of GPU memory among processes of one node, by messages and kernels.
//
// Every rank has a share of the numbers. By one exchange, the rank gets the other ranks' operands of its share. The
// rank combines them, on its GPU, with its own, in the order of the ranks. By another exchange, the rank gives its
// share of the result to all ranks that want the result. That is the reduce-scatter and the gather of Rabenseifner's
// algorithm (Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH, 2005,
// section 4.5), each as one exchange among all: within a node, all GPUs reach each other. Where all ranks want a short
// result, each gets all operands and combines all numbers: one exchange less.
//
// A rank without GPU memory, or without room on the GPU, combines on the CPU, in the same order.
#pragma once

#include <optional>

#include "mpi/calls/by_messages/agreement.hpp"
#include "mpi/datatypes/built_in_reduction.hpp"

namespace gapless::mpi::by_messages {

/// A reduction that may go by messages, as this rank calls it.
struct ReductionCall {
  BuiltInReduction built_in;
  ReductionForm form{};
  int kind = -1;                       ///< as of other exchanges: a number that is the same on all ranks
  const std::byte* operand = nullptr;  ///< of all elements
  std::byte* result = nullptr;         ///< null where this rank gets none
  MPI_Datatype datatype{};
  int own_rank = -1;
  MPI_Count elements = 0;         ///< of an operand
  MemoryArgument counts;          ///< of shares, where the result is scattered
  bool depends_on_order = false;  ///< do the bits of the result depend on the order of the ranks?
};

/// `operand` and `result` are the call's memory arguments. Nothing where the reduction is the library's, on all ranks
/// or because of a mistake, which the library tells.
std::optional<ReductionCall> reduction_of(const CallFacts& call, const MemoryArgument& operand,
                                          const MemoryArgument& result, MPI_Op op) noexcept;

/// What this rank wants of a reduction. As in exchanges without a root, one rank's wish is enough.
Wish wish_of(const ReductionCall& reduction, Mapping mapping) noexcept;

/// Gets the memory for reductions on that communicator, before any rank counts on this one. False if there is none.
bool reserve_for_reductions(const CallFacts& call, Exchanged& exchanged) noexcept;

/// Makes the reduction. MPI_SUCCESS, or the error that is to be raised. Precondition: the exchange has a lane.
int reduce(const CallFacts& call, const ReductionCall& reduction, const AgreedExchange& agreed) noexcept;

}  // namespace gapless::mpi::by_messages

/// For tests: how many reductions of this process have gone by messages, and how many kernels have combined for them.
extern "C" [[gnu::visibility("default")]] std::uint64_t gapless_reductions_by_messages();
extern "C" [[gnu::visibility("default")]] std::uint64_t gapless_reduction_kernels();
