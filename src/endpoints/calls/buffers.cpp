// The buffer that a program attaches to an endpoint's handle. The library keeps it, and nothing is put into it:
// buffered sends of endpoints have copies of their own. What is left is to wait for these where MPI says that the call
// waits until the buffer's messages have gone (MPI 5.0, 3.6).
#include "endpoints/calls/calls.hpp"
#include "endpoints/calls/forms.hpp"
#include "endpoints/delivery/progress.hpp"
#include "endpoints/inner.hpp"

namespace gapless::mpi::endpoints::calls {

namespace {

[[maybe_unused]] bool have_gone(const Endpoint& endpoint) noexcept {
  return endpoint.buffered->load(std::memory_order_acquire) == 0;
}

[[maybe_unused]] void wait_until_gone(Endpoint& endpoint) {
  drive_until(endpoint, [&] { return have_gone(endpoint); });
}

[[maybe_unused]] int start_to_wait(Endpoint& endpoint, MPI_Request* request) {
  auto schedule = std::make_unique<Schedule>(endpoint, true);
  schedule->wait_for([&endpoint](int&) { return have_gone(endpoint); });
  return start_under_request(std::move(schedule), request);
}

}  // namespace

GAPLESS_IF_DECLARED(
    Comm_detach_buffer, int Comm_detach_buffer(Endpoint& endpoint, MPI_Comm handle, void* buffer, int* size) {
      wait_until_gone(endpoint);
      return inner.Comm_detach_buffer(handle, buffer, size);
    })

GAPLESS_IF_DECLARED(
    Comm_detach_buffer_c, int Comm_detach_buffer_c(Endpoint& endpoint, MPI_Comm handle, void* buffer, MPI_Count* size) {
      wait_until_gone(endpoint);
      return inner.Comm_detach_buffer_c(handle, buffer, size);
    })

GAPLESS_IF_DECLARED(
    Comm_flush_buffer, int Comm_flush_buffer(Endpoint& endpoint, MPI_Comm) {
      wait_until_gone(endpoint);
      return MPI_SUCCESS;
    })

GAPLESS_IF_DECLARED(
    Comm_iflush_buffer, int Comm_iflush_buffer(Endpoint& endpoint, MPI_Comm, MPI_Request* request) {
      return raise(endpoint, start_to_wait(endpoint, request));
    })

}  // namespace gapless::mpi::endpoints::calls
