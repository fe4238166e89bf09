// Blocking messages of noncontiguous host memory that are so short that packing is a small part of their time. The
// packed bytes lie on the stack.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "mpi/calls/sides/packed_type.hpp"
#include "mpi/calls/sides/received_status.hpp"
#include "mpi/datatypes/pieces.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/table/rows.hpp"
#include "transfer/blocking.hpp"
#include "transfer/choice/host_trial.hpp"
#include "transfer/headers/header.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::mpi {

/// One side of a short message; `Arguments` is the MessageArguments of the call.
template <class Row, class Arguments, table::RoleKind kind>
class ShortMessage {
  using Tuple = typename Arguments::Tuple;
  static constexpr bool sends = kind == table::RoleKind::send;
  static constexpr transfer::Side side = sends ? transfer::Side::sender : transfer::Side::receiver;

 public:
  static constexpr layout::Offset most_bytes = 8192;

  /// May the packed bytes lie on the stack? Precondition: host memory with gaps, not empty.
  static bool is_short(const transfer::Buffer& buffer) noexcept {
    const layout::Offset bytes = buffer.size();
    return bytes <= most_bytes && !would_lose_elements(static_cast<std::size_t>(bytes), *buffer.type);
  }

  /// `may_get_header`: a header may come in the place of the message.
  ShortMessage(const transfer::Buffer& buffer, bool may_get_header) noexcept
      : buffer_(buffer),
        may_get_header_(may_get_header),
        bytes_(static_cast<std::size_t>(buffer.size())),
        type_(bytes_, side, false) {}

  /// Makes the call, which returns `code`. False where there is no memory, and no call is made.
  bool call(const Tuple& arguments, int& code) noexcept {
    if (!type_.is_usable()) return false;
    if constexpr (sends) {
      if (!move(pack::Direction::pack)) return false;
      type_.split(memory());
      code = by_library(arguments);
    } else {
      code = receive(arguments);
    }
    return true;
  }

  // Of Arguments::substitute().
  void* memory() noexcept { return packed_.data(); }
  auto count() const noexcept { return type_.count(); }
  MPI_Datatype datatype() const noexcept { return type_.handle(); }

 private:
  bool move(pack::Direction direction) noexcept {
    transfer::record(transfer::Scheme::packed, bytes_);
    return transfer::run_on_host(buffer_.job(direction, 0, buffer_.size(), memory())) == transfer::Result::ok;
  }

  int by_library(Tuple arguments) noexcept {
    Arguments::template substitute<kind>(arguments, *this);
    return Arguments::call_library(arguments);
  }

  int receive(Tuple arguments) noexcept {
    auto& place = std::get<Arguments::template place<table::RoleKind::status>>(arguments);
    ReceivedStatus status(place);
    place = status.get();
    if (may_get_header_) Arguments::answer_peers();
    const int code = by_library(arguments);
    if (code != MPI_SUCCESS || !status.is_set()) {
      status.deliver();
      return code;
    }
    const std::size_t received = status.bytes();
    if (received == bytes_) type_.join(memory(), bytes_);
    const bool is_whole = received == bytes_ && !(may_get_header_ && transfer::headers::is_header(memory(), received));
    if (!is_whole || !move(pack::Direction::unpack)) return finish_part(arguments, status);
    status.deliver();
    return MPI_SUCCESS;
  }

  /// Leaves what is no whole message, or is a header, to the side of any receive.
  [[gnu::noinline]] int finish_part(const Tuple& arguments, ReceivedStatus& status) noexcept {
    const auto raise = [&](int error) { return table::raise<Row>(error, arguments); };
    const auto scope = transfer::choose_always(transfer::HostWay::packed);
    auto in = Arguments::make_in(arguments);
    int code = MPI_SUCCESS;
    if (!in.prepare(Row::name, code)) return raise(code);
    if (in.packs()) std::memcpy(in.memory(), memory(), status.bytes() == bytes_ ? bytes_ + 1 : bytes_);
    return in.finish_call(status, MPI_SUCCESS, Row::name, raise);
  }

  const transfer::Buffer buffer_;
  const bool may_get_header_;
  const std::size_t bytes_;
  const PackedType<typename Arguments::template Count<kind>> type_;
  std::array<std::byte, most_bytes + 1> packed_;  // NOLINT: packed or received before it is read
};

}  // namespace gapless::mpi
