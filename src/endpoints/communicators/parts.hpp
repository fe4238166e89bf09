// Communicators made from an endpoints communicator: by colour, of the members of a group, or as a duplicate. Every
// endpoint concerned calls; each gets an error code, which is not raised.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "endpoints/communicators/assembly.hpp"
#include "endpoints/endpoint.hpp"

namespace gapless::mpi::endpoints {

/// What an endpoint says in a split.
struct Choice {
  int colour = MPI_UNDEFINED;  ///< MPI_UNDEFINED: none of them
  int key = 0;                 ///< its place among those of its colour
  int mistake = MPI_SUCCESS;   ///< an error class that all endpoints get, and no communicator
};

/// A rank of a new communicator: the rank at whose process it lives, and who it is.
struct Member {
  int rank;
  Identity identity;
};

/// A rank of a new communicator: the process where it lives, by its rank in some communicator of the library, and who
/// it is.
struct PlacedMember {
  int process;
  Identity identity;
};

/// The communicator of some members, made by one thread of each process that has any of them, of which this is
/// `process`. Null in other processes. `tag` tells those apart that are made at a time. An error code; all processes
/// fail where one does.
int make_of_placed(MPI_Comm base, int process, const std::vector<PlacedMember>& members, int tag, Brought brought,
                   std::shared_ptr<Communicator>& made);
/// The communicator of some members, made by one thread of each process that has any of them. Null in other processes.
/// `tag` and `brought` are those of make_of_placed.
int make_part(const Communicator& whole, const std::vector<Member>& members, int tag, Brought brought,
              std::shared_ptr<Communicator>& made);

/// Collective over the endpoints. `made`: MPI_COMM_NULL for those without a colour. Of an intercommunicator, whose
/// parts are intercommunicators, also for those with a colour that nobody in the other group has.
int split(Endpoint& endpoint, const Choice& mine, MPI_Comm* made);
/// The same within one group, or both taken together, where every endpoint knows what all have chosen, by rank.
int split_as_chosen(Endpoint& endpoint, const std::vector<Choice>& choices, MPI_Comm* made);
/// Collective over the endpoints. `info`: the duplicate's; null: the same.
int duplicate(Endpoint& endpoint, const MPI_Info* info, MPI_Comm* made);
/// Collective over `members`, ranks of the communicator in their new order, of which the caller is one.
int make_of_group(Endpoint& endpoint, const std::vector<int>& members, int tag, MPI_Comm* made);

/// Begins a duplicate, the endpoints' next collective, and makes the caller's handle at `handle`, which stays there.
/// Returns a function that tells whether all is done, with the code; after that the handle is good. The function may be
/// called once all endpoints have called. A thread makes the communicator then: the library's own MPI_Comm_idup hangs
/// in Open MPI 5.0.11 where any communicator is made while one is under way.
std::function<bool(int& code)> begin_duplicate(Endpoint& endpoint, const MPI_Info* info, MPI_Comm* handle);

/// A number that endpoints have in common where MPI_Comm_split_type of their processes, which knows the hardware, puts
/// these together; MPI_UNDEFINED where it puts a process nowhere. Collective over the endpoints, which all say the
/// same.
int find_place(Endpoint& endpoint, int type, MPI_Info info, int& place);

}  // namespace gapless::mpi::endpoints
