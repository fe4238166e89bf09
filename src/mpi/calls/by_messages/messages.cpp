#include "mpi/calls/by_messages/messages.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "mpi/lifetime/runtime.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi::by_messages {
namespace {

constexpr int tag = 0;

bool fits(MPI_Count count) noexcept { return count <= std::numeric_limits<int>::max(); }

/// The calls as gapless serves them.
struct Ours {
  static int send(const void* memory, MPI_Count count, MPI_Datatype datatype, int peer, MPI_Comm lane,
                  MPI_Request* request) noexcept {
    if (fits(count)) return entry::Isend(memory, static_cast<int>(count), datatype, peer, tag, lane, request);
    GAPLESS_IF_DECLARED(Isend_c, if (native.Isend_c != nullptr) return entry::Isend_c(memory, count, datatype, peer,
                                                                                      tag, lane, request);)
    return MPI_ERR_COUNT;
  }
  static int receive(void* memory, MPI_Count count, MPI_Datatype datatype, int peer, MPI_Comm lane,
                     MPI_Request* request) noexcept {
    if (fits(count)) return entry::Irecv(memory, static_cast<int>(count), datatype, peer, tag, lane, request);
    GAPLESS_IF_DECLARED(Irecv_c, if (native.Irecv_c != nullptr) return entry::Irecv_c(memory, count, datatype, peer,
                                                                                      tag, lane, request);)
    return MPI_ERR_COUNT;
  }
};

/// The library's calls, which need no memory of gapless.
struct Library {
  static int send(const void* memory, MPI_Count bytes, int peer, MPI_Comm lane, MPI_Request* request) noexcept {
    if (fits(bytes)) return native.Isend(memory, static_cast<int>(bytes), MPI_BYTE, peer, tag, lane, request);
    GAPLESS_IF_DECLARED(Isend_c, if (native.Isend_c != nullptr) return native.Isend_c(memory, bytes, MPI_BYTE, peer,
                                                                                      tag, lane, request);)
    return MPI_ERR_COUNT;
  }
  static int receive(void* memory, MPI_Count bytes, int peer, MPI_Comm lane, MPI_Request* request) noexcept {
    if (fits(bytes)) return native.Irecv(memory, static_cast<int>(bytes), MPI_BYTE, peer, tag, lane, request);
    GAPLESS_IF_DECLARED(Irecv_c, if (native.Irecv_c != nullptr) return native.Irecv_c(memory, bytes, MPI_BYTE, peer,
                                                                                      tag, lane, request);)
    return MPI_ERR_COUNT;
  }
};

}  // namespace

bool is_empty(const Part& part) noexcept {
  return part.count == 0 || (runtime::is_usable(part.datatype) && runtime::size_of(part.datatype) == 0);
}

int mistake_in(const Part& part, const UserBuffer& user) noexcept {
  if (part.count < 0) return MPI_ERR_COUNT;
  if (user.opaque) return MPI_SUCCESS;
  if (!runtime::is_usable(part.datatype)) return MPI_ERR_TYPE;
  const bool is_nowhere = is_null_with_displacement(part.memory) && runtime::size_of(part.datatype) != 0;
  return is_nowhere ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

void Messages::reserve(std::size_t most) {
  if (most <= most_) return;
  auto requests = std::make_unique<MPI_Request[]>(most);
  messages_ = std::make_unique<Message[]>(most);
  requests_ = std::move(requests);
  most_ = most;
}

std::byte* Messages::Message::reserve_placeholder(MPI_Count& bytes) noexcept {
  if (!runtime::is_usable(part.datatype)) return nullptr;
  if (__builtin_mul_overflow(runtime::size_of(part.datatype), part.count, &bytes) || bytes <= 0) return nullptr;
  return placeholder.reserve(0, static_cast<std::intptr_t>(bytes));
}

Messages::Message& Messages::add(const Part& part, int peer) noexcept {
  requests_[count_] = MPI_REQUEST_NULL;
  Message& message = messages_[count_++];
  message.part = part;
  message.peer = peer;
  message.stays = false;
  return message;
}

void Messages::send_placeholder(Message& message, MPI_Request& request) noexcept {
  MPI_Count bytes = 0;
  const std::byte* const instead = message.reserve_placeholder(bytes);
  if (instead != nullptr) Library::send(instead, bytes, message.peer, lane_, &request);
}

int Messages::send(const Part& part, int peer) noexcept {
  MPI_Request& request = requests_[count_];
  Message& message = add(part, peer);
  const requests::NoteOfStaying note(message.stays);
  const int code = Ours::send(part.memory, part.count, part.datatype, peer, lane_, &request);
  if (code != MPI_SUCCESS) send_placeholder(message, request);
  return code;
}

int Messages::receive(const Part& part, int peer) noexcept {
  MPI_Request& request = requests_[count_];
  Message& message = add(part, peer);
  void* const memory = const_cast<void*>(part.memory);
  const int code = Ours::receive(memory, part.count, part.datatype, peer, lane_, &request);
  if (code == MPI_SUCCESS || request != MPI_REQUEST_NULL) return code;  // the library may have begun to receive
  MPI_Count bytes = 0;
  std::byte* const instead = message.reserve_placeholder(bytes);
  // gapless's own receive looks at a header that comes, and gives the sender its memory back.
  const bool is_begun =
      instead != nullptr &&
      (Ours::receive(instead, bytes, MPI_BYTE, peer, lane_, &request) == MPI_SUCCESS || request != MPI_REQUEST_NULL);
  if (instead != nullptr && !is_begun) Library::receive(instead, bytes, peer, lane_, &request);
  return code;
}

int Messages::replace_staying() noexcept {
  requests::start_deferred();
  int first_code = MPI_SUCCESS;
  for (std::size_t k = 0; k < count_; ++k) {
    if (!messages_[k].stays) continue;
    const int code = entry::Wait(&requests_[k], MPI_STATUS_IGNORE);
    if (first_code == MPI_SUCCESS) first_code = code;
    send_placeholder(messages_[k], requests_[k]);
  }
  return first_code;
}

int Messages::finish() noexcept {
  int first_code = replace_staying();
  std::array<MPI_Status, at_a_time> statuses;
  for (std::size_t done = 0; done < count_; done += at_a_time) {
    const std::size_t count = std::min(at_a_time, count_ - done);
    const int code = entry::Waitall(static_cast<int>(count), requests_.get() + done, statuses.data());
    if (code == MPI_SUCCESS || first_code != MPI_SUCCESS) continue;
    first_code = code;
    for (std::size_t k = 0; k < count; ++k) {
      const int one = statuses[k].MPI_ERROR;
      if (one == MPI_SUCCESS || one == MPI_ERR_PENDING) continue;
      first_code = one;
      break;
    }
  }
  let_go();
  return first_code;
}

void Messages::let_go() noexcept {
  for (std::size_t k = 0; k < count_; ++k) {
    MPI_Request& request = requests_[k];
    if (request != MPI_REQUEST_NULL) {
      entry::Cancel(&request);
      entry::Request_free(&request);
    }
    messages_[k].placeholder.release();
  }
  count_ = 0;
}

}  // namespace gapless::mpi::by_messages
