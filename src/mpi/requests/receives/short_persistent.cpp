#include "mpi/requests/receives/short_persistent.hpp"

#include <exception>
#include <unordered_map>
#include <utility>

#include "mpi/requests/outstanding.hpp"
#include "mpi/requests/pending.hpp"

namespace gapless::mpi::requests::short_persistent {

constinit std::size_t internal::number = 0;

namespace {

using Receives = std::unordered_map<std::uint64_t, Receive>;

// Never destroyed: requests may be freed while the process ends.
Receives& receives() noexcept {
  static Receives& instance = *new Receives;
  return instance;
}

void count() noexcept { internal::number = receives().size(); }

/// MPI_SUCCESS, or an error that is not raised yet.
int make_pending(MPI_Request handle, const Receive& receive) noexcept {
  constexpr const char* function = "MPI_Recv_init";
  Pending* const pending = acquire();
  if (pending == nullptr) return MPI_ERR_NO_MEM;
  auto& side = pending->make<Receiving<int>>(receive.memory, receive.count, receive.datatype, false);
  side.comes_from(receive.communicator, receive.source);
  int code = MPI_SUCCESS;
  if (!side.reserve(function, code)) {
    release(pending);
    return code;
  }
  pending->is_persistent = true;
  pending->function = function;
  pending->source = receive.source;
  pending->tag = receive.tag;
  pending->error_object = ErrorObject::of_communicator(receive.communicator);
  requests::add(pending, handle);
  return MPI_SUCCESS;
}

}  // namespace

int add(MPI_Request handle, const Receive& receive) noexcept {
  try {
    receives().insert_or_assign(number_of(handle), receive);
    count();
    return MPI_SUCCESS;
  } catch (const std::exception&) {
    return MPI_ERR_NO_MEM;
  }
}

void forget(MPI_Request handle) noexcept {
  receives().erase(number_of(handle));
  count();
}

void forget_communicator(MPI_Comm communicator) noexcept {
  std::erase_if(receives(), [communicator](const auto& each) { return each.second.communicator == communicator; });
  count();
}

void rename(MPI_Request before, MPI_Request after) noexcept {
  auto node = receives().extract(number_of(before));
  if (node.empty()) return;
  node.key() = number_of(after);
  receives().insert(std::move(node));
}

int promote(MPI_Request handle) noexcept {
  const auto found = receives().find(number_of(handle));
  if (found == receives().end()) return MPI_SUCCESS;
  const int code = make_pending(handle, found->second);
  if (code != MPI_SUCCESS) return raise_on_communicator(found->second.communicator, code);
  receives().erase(found);
  count();
  return MPI_SUCCESS;
}

}  // namespace gapless::mpi::requests::short_persistent

std::uint64_t gapless_receives_short_persistent() { return gapless::mpi::requests::short_persistent::internal::number; }
