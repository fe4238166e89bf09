#include "endpoints/delivery/messages.hpp"

#include <unordered_map>

namespace gapless::mpi::endpoints::messages {
namespace {

struct Taken {
  Message* message = nullptr;  ///< of the endpoint's pool
  std::shared_ptr<Endpoint> endpoint{};
};

std::mutex mutex;
std::atomic<int> count{0};

std::unordered_map<MPI_Message, Taken>& all() {
  static auto& known = *new std::unordered_map<MPI_Message, Taken>;
  return known;
}

}  // namespace

int make(Endpoint& endpoint, Message* message, MPI_Message* handle) {
  Taken taken{message, share(endpoint)};
  {
    const std::lock_guard lock(endpoint.lock);
    endpoint.keep();  // the handle may be freed before the message is received, whose sender may wait
  }
  MPI_Request request = MPI_REQUEST_NULL;
  int code = native.Isend(nullptr, 0, MPI_BYTE, 0, 0, endpoint.handle, &request);
  for (int flag = 0; code == MPI_SUCCESS && flag == 0;)
    code = native.Improbe(0, 0, endpoint.handle, &flag, handle, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) {
    endpoint.let_go(1);
    return code;
  }
  {
    const std::lock_guard lock(mutex);
    all()[*handle] = std::move(taken);
    count.fetch_add(1, std::memory_order_relaxed);
  }
  // Some libraries complete it only when the handle is received from.
  return native.Request_free(&request);
}

std::shared_ptr<Endpoint> endpoint_of(const MPI_Message* handle) {
  if (handle == nullptr || count.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard lock(mutex);
  const auto found = all().find(*handle);
  return found == all().end() ? nullptr : found->second.endpoint;
}

Message& take(MPI_Message* handle) {
  Taken taken;
  {
    const std::lock_guard lock(mutex);
    taken = std::move(all().extract(*handle).mapped());
    count.fetch_sub(1, std::memory_order_relaxed);
  }
  native.Mrecv(nullptr, 0, MPI_BYTE, handle, MPI_STATUS_IGNORE);
  return *taken.message;
}

}  // namespace gapless::mpi::endpoints::messages
