// How many entries the count arrays of a collective have, and which process each entry is of.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/table/abi.hpp"

namespace gapless::mpi {

enum class CountsOf {
  processes,     ///< of the group, or of the remote group of an intercommunicator
  sources,       ///< neighbours that this process receives from
  destinations,  ///< neighbours that this process sends to
  results,       ///< processes of the own group, over which a reduction's result is scattered
};

/// 0 where the communicator has no neighbours, or the handle names none: the library will tell.
int count_entries(MPI_Comm communicator, CountsOf what) noexcept;

/// The entry of this process itself; -1 on intercommunicators, where no process has one.
int own_rank(MPI_Comm communicator) noexcept;

/// The neighbours of this process, as the library tells. To be made once a call.
class Neighbors {
 public:
  /// No neighbours.
  Neighbors() noexcept = default;
  /// The neighbours in the communicator's topology; none where it has no topology.
  explicit Neighbors(MPI_Comm communicator) noexcept;

  bool has_topology() const noexcept { return topology_ != MPI_UNDEFINED; }
  /// Precondition: `what` is sources or destinations.
  int count(CountsOf what) const noexcept { return what == CountsOf::sources ? sources_ : destinations_; }
  /// Is the neighbour beyond the border of a grid, where there is no process? Nothing moves then, whatever the count
  /// is.
  bool is_missing(int neighbor) const noexcept;
  /// Are the neighbours before and behind in a grid one process, whose two messages nobody tells apart? The same on all
  /// ranks of the grid.
  bool are_twins() const noexcept { return are_twins_; }
  /// The neighbours' ranks, in the order of the arrays; MPI_PROC_NULL for missing neighbours. Throws std::bad_alloc.
  struct Ranks {
    std::vector<int> sources, destinations;
  };
  Ranks ranks() const;

 private:
  /// In grids with more dimensions, the library is asked about each neighbour.
  static constexpr int most_dimensions = 32;

  void look_at_grid() noexcept;
  void look_at_graph() noexcept;

  MPI_Comm communicator_{};
  int topology_ = MPI_UNDEFINED;
  int sources_ = 0, destinations_ = 0;
  std::uint64_t missing_ = 0;  ///< a bit for each neighbour
  bool are_twins_ = false;
  bool are_many_ = false;  ///< in a grid of more dimensions: `missing_` tells nothing
};

/// Is this process the root, where alone some buffers matter?
bool is_root(MPI_Comm communicator, int root) noexcept;

}  // namespace gapless::mpi
