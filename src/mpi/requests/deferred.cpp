#include "mpi/requests/deferred.hpp"

#include <array>
#include <span>

#include "mpi/lifetime/runtime.hpp"
#include "mpi/requests/pending.hpp"

namespace gapless::mpi::requests {

constinit std::size_t internal::deferred = 0;
constinit bool internal::is_anything_shared = false;
constinit Gathered gathered_sends, gathered_receives;

namespace {

struct Send {
  Pending* pending;
  MPI_Comm communicator;
  int destination;
  bool* stays;  ///< null, or where it is noted that the message does not leave
};

// The first `internal::deferred`, in program order.
constinit std::array<Send, 32> sends{};
constinit std::size_t bytes_to_pack = 0;
constinit bool* note_of_staying = nullptr;
device::Locator locator;

void pack_and_start() noexcept {
  // An error handler of the program, called while sends are started, may send.
  const std::array<Send, 32> leaving = sends;
  const auto all = std::span(leaving).first(internal::deferred);
  internal::deferred = bytes_to_pack = 0;
  transfer::Batch batch;
  for (const Send& send : all) send.pending->start_in(batch);
  const transfer::Result result = batch.run();
  for (const Send& send : all) {
    Pending& pending = *send.pending;
    int code = result == transfer::Result::ok ? pending.started(result) : pending.pack_alone();
    if (code == MPI_SUCCESS) code = native.Start(&pending.handle);
    if (code == MPI_SUCCESS) continue;
    pending.settle(code);
    if (send.stays != nullptr) *send.stays = true;
  }
}

}  // namespace

bool may_defer() noexcept { return !runtime::is_multithreaded(); }

void internal::end_sharing() noexcept {
  is_anything_shared = false;
  gathered_sends.end();
  gathered_receives.end();
  locator.forget();
  if (deferred != 0) pack_and_start();
}

void start_deferred_so_far() noexcept {
  if (internal::deferred != 0) pack_and_start();
}

device::Locator* shared_locator() noexcept {
  if (runtime::is_multithreaded() || !device::in_use()) return nullptr;
  internal::is_anything_shared = true;
  return &locator;
}

void forget_locations() noexcept {
  // Where several threads call MPI, nothing is shared, and no thread writes here.
  if (internal::is_anything_shared) locator.forget();
}

bool is_deferred_to(MPI_Comm communicator, int destination) noexcept {
  for (const Send& send : std::span(sends).first(internal::deferred)) {
    if (send.communicator == communicator && send.destination == destination) return true;
  }
  return false;
}

NoteOfStaying::NoteOfStaying(bool& stays) noexcept {
  if (may_defer()) note_of_staying = &stays;
}
NoteOfStaying::~NoteOfStaying() {
  if (may_defer()) note_of_staying = nullptr;
}

void defer(Pending* pending, MPI_Comm communicator, int destination, std::size_t bytes) noexcept {
  if (bytes_to_pack + bytes > most_deferred_bytes) start_deferred_so_far();
  internal::is_anything_shared = true;
  sends[internal::deferred++] = {pending, communicator, destination, note_of_staying};
  bytes_to_pack += bytes;
  if (internal::deferred == sends.size()) start_deferred_so_far();
}

}  // namespace gapless::mpi::requests
