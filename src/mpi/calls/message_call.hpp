// Entry points of point-to-point calls, made from the roles of their arguments: what all such calls have in common.
// blocking_call.hpp has the blocking calls, mpi/requests/request_call.hpp the calls that return a request.
//
// A buffer that is ours travels as packed bytes on the program's own communicator and tag, so matching, ordering and
// status are the library's, and the peer need not run gapless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "base/hash.hpp"
#include "mpi/calls/sides/receiving.hpp"
#include "mpi/calls/sides/sending.hpp"
#include "mpi/datatypes/pieces.hpp"
#include "mpi/headers/posting.hpp"
#include "mpi/headers/stashed_receives.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/table/library_traits.hpp"
#include "mpi/table/rows.hpp"
#include "transfer/choice/host_trial.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/rdma/rendezvous/service.hpp"
#include "transfer/report/report.hpp"
#include "transfer/schemes/slots.hpp"

namespace gapless::mpi {

/// The arguments of a call that is made of a sending side, a receiving side, or both.
template <class Row, class... Arguments>
struct MessageArguments {
  using RoleKind = table::RoleKind;
  using Tuple = std::tuple<Arguments...>;
  template <RoleKind kind>
  static constexpr int place = table::place_of(Row::argument_roles, kind);
  template <RoleKind kind>
  static constexpr bool has = table::has_role<Row>(kind);

  static auto call_library(const Tuple& arguments) { return std::apply(Row::native_function(), arguments); }

  /// Has that side no peer? A matched message of nobody counts as one without a peer.
  template <RoleKind side>
  static bool is_idle(const Tuple& arguments) noexcept {
    if constexpr (side == RoleKind::send) {
      return std::get<place<RoleKind::destination>>(arguments) == MPI_PROC_NULL;
    } else if constexpr (has<RoleKind::source>) {
      return std::get<place<RoleKind::source>>(arguments) == MPI_PROC_NULL;
    } else {
      const MPI_Message* message = std::get<place<RoleKind::message_place>>(arguments);
      return message == nullptr || *message == MPI_MESSAGE_NO_PROC || *message == MPI_MESSAGE_NULL;
    }
  }

  /// Does that side go to the library as it came? The question that every call asks first, in a few nanoseconds.
  template <RoleKind side, Purpose purpose = Purpose::message, class IsOnGpu = decltype(&is_gpu_memory)>
  static bool is_native(const Tuple& arguments, IsOnGpu is_on_gpu = is_gpu_memory) noexcept {
    if constexpr (has<side>) {
      if (is_idle<side>(arguments)) return true;
      if (side == RoleKind::receive && transfer::headers::is_listening()) {
        if constexpr (!has<RoleKind::message_place>) return is_below_headers<purpose>(arguments);
        if (headers::are_given()) return false;
      }
      // A longer send may go to a GPU.
      constexpr MPI_Count most_bytes =
          side == RoleKind::send ? static_cast<MPI_Count>(transfer::schemes::most_slots_bytes) : any_bytes;
      return goes_straight_through<purpose, most_bytes>(std::get<place<side>>(arguments),
                                                        std::get<place<side> + 1>(arguments),
                                                        std::get<place<side> + 2>(arguments), is_on_gpu);
    } else {
      return true;
    }
  }

  /// Is this a receive that is too short for a header, so that the library gets the call as it came?
  template <Purpose purpose>
  static bool is_below_headers(const Tuple& arguments) noexcept {
    if constexpr (has<RoleKind::source>) {
      constexpr int in = place<RoleKind::receive>;
      const auto count = std::get<in + 1>(arguments);
      const TypeRecord* record = type_cache::find_in_table(std::get<in + 2>(arguments));
      constexpr auto header_bytes = static_cast<std::int64_t>(transfer::headers::Header::size);
      const bool is_native = record != nullptr && (record->plain || (count == 1 && record->one_is_native<purpose>()));
      const bool is_short = is_native && record->size != 0 && count < header_bytes &&
                            record->size * static_cast<std::int64_t>(count) < header_bytes;
      if (!is_short || counts_native_messages || headers::are_stashed()) return false;
      return !device::in_use() || !is_gpu_memory(address_of(std::get<in>(arguments), record->first_byte));
    } else {
      return false;
    }
  }

  /// When does a receive that ends in this call, or under a request of its own, look whether a header has come? A
  /// receive of a matched message always looks: a probe has looked at the message, which may be a header.
  static constexpr Looks looks = has<RoleKind::source> ? Looks::once_called : Looks::always;

  /// May a receive that ends within the call go to the library as it came? It may while no peer has called for
  /// attention, and no other thread of this process can become attentive meanwhile.
  static bool is_unattended(const Tuple& arguments) noexcept {
    if constexpr (has<RoleKind::receive> && has<RoleKind::source>) {
      constexpr int in = place<RoleKind::receive>;
      return transfer::headers::is_listening() && !transfer::headers::is_called() && !runtime::is_multithreaded() &&
             !headers::are_stashed() &&
             goes_straight_through<Purpose::message>(std::get<in>(arguments), std::get<in + 1>(arguments),
                                                     std::get<in + 2>(arguments));
    } else {
      return false;
    }
  }

  /// The record of that side's datatype, if the datatype is known to have gaps; else null.
  template <RoleKind side>
  static const TypeRecord* find_gaps(const Tuple& arguments) noexcept {
    const TypeRecord* record = type_cache::find_in_table(std::get<place<side> + 2>(arguments));
    return record != nullptr && !record->plain ? record : nullptr;
  }

  /// Can a contiguous receive go to the library as it came, with a look at the first bytes afterwards that tells a
  /// header from a message? Then the datatype's record, else null. `is_on_gpu(address)` is asked where a GPU is in use.
  template <class IsOnGpu>
  static const TypeRecord* record_to_look_at(const Tuple& all, IsOnGpu is_on_gpu) noexcept {
    constexpr int in = place<RoleKind::receive>;
    const TypeRecord* record = type_cache::find_in_table(std::get<in + 2>(all));
    const bool is_plain =
        record != nullptr && record->takes_headers && !counts_native_messages && !headers::are_stashed();
    if (!is_plain || bytes_of_long(*record, all) == 0 || !transfer::headers::is_listening()) return nullptr;
    if (device::in_use() && is_on_gpu(address_of(std::get<in>(all), record->first_byte))) return nullptr;
    answer_peers();
    return record;
  }
  /// A noncontiguous message in host memory that needs none of the objects of other messages, whether it is packed or
  /// left alone: the process has one thread, the message does not go by a fabric, and nothing is reported.
  struct Simple {
    transfer::Buffer buffer{};    ///< without a type: the message is none of these
    bool may_get_header = false;  ///< may a header come in its place?

    explicit operator bool() const noexcept { return buffer.type != nullptr; }
  };
  template <RoleKind side, class IsOnGpu>
  static Simple find_simple(const TypeRecord& record, const Tuple& all, IsOnGpu is_on_gpu) noexcept {
    constexpr bool sends = side == RoleKind::send;
    if (counts_native_messages || transfer::report_wanted() || runtime::is_multithreaded()) return {};
    if (sends ? transfer::rdma::is_wanted() : headers::are_stashed()) return {};
    const auto& memory = std::get<place<side>>(all);
    const auto count = static_cast<std::int64_t>(std::get<place<side> + 1>(all));
    std::int64_t bytes = 0;
    if (record.described == nullptr || __builtin_mul_overflow(record.size, count, &bytes) || bytes <= 0) return {};
    const void* const first_byte = address_of(memory, record.first_byte);
    if (is_null_with_displacement(first_byte)) return {};
    // A longer send may go to a GPU.
    const bool is_simple = sends ? bytes <= static_cast<std::int64_t>(transfer::schemes::most_slots_bytes)
                                 : !would_be_lost_in_pieces(static_cast<std::size_t>(bytes), *record.described);
    if (!is_simple) return {};
    if (device::in_use() && (record.one_is_lost_beside_gpu || is_on_gpu(first_byte))) return {};
    const bool is_long = bytes >= static_cast<std::int64_t>(transfer::headers::Header::size);
    return {{record.described.get(), count, const_cast<void*>(static_cast<const void*>(memory)), {}},
            !sends && is_long && transfer::headers::is_listening() && transfer::headers::is_called()};
  }

  /// Is the message of a request the library's, as it is chosen, or because packing gains less than a request costs?
  static bool is_native_choice(const transfer::Buffer& buffer, transfer::Side side) noexcept {
    const transfer::Scheme scheme = transfer::choose(buffer, side);
    return scheme == transfer::Scheme::native ||
           (scheme == transfer::Scheme::packed && !transfer::is_worth_a_request(buffer));
  }
  /// record_to_look_at() for a noncontiguous receive into host memory that is the library's: a header would be
  /// scattered into the blocks. Where headers come, long messages are not received so, because they are better unpacked
  /// while others arrive. Peers are not answered.
  template <class IsOnGpu>
  static const TypeRecord* record_to_look_at_in_blocks(const Tuple& all, IsOnGpu is_on_gpu) noexcept {
    const TypeRecord* record = find_gaps<RoleKind::receive>(all);
    if (record == nullptr || record->bytes_of_scattered_header == 0 || !transfer::headers::is_listening())
      return nullptr;
    const std::int64_t bytes = bytes_of_long(*record, all);
    if (bytes == 0 || (bytes >= static_cast<std::int64_t>(long_to_unpack) && Scattered::got_header_lately()))
      return nullptr;
    const Simple simple = find_simple<RoleKind::receive>(*record, all, is_on_gpu);
    return simple && is_native_choice(simple.buffer, transfer::Side::receiver) ? record : nullptr;
  }
  /// Answers peers, before a receive into host memory that the library makes alone.
  static void answer_peers() noexcept {
    transfer::headers::begin_look();
    transfer::headers::answer_introductions(transfer::no_gpu);
  }
  /// The bytes of a receive that is long enough for a header; 0 for a shorter one, whose memory must not be read, and
  /// for a wrong count, which is the library's business.
  static std::int64_t bytes_of_long(const TypeRecord& record, const Tuple& all) noexcept {
    constexpr auto header_bytes = static_cast<std::int64_t>(transfer::headers::Header::size);
    const auto count = static_cast<std::int64_t>(std::get<place<RoleKind::receive> + 1>(all));
    std::int64_t bytes = 0;
    return !__builtin_mul_overflow(record.size, count, &bytes) && bytes >= header_bytes ? bytes : 0;
  }

  template <RoleKind side>
  using Count = std::tuple_element_t<static_cast<std::size_t>(place<side> + 1), Tuple>;

  /// Stands where a call has no such side.
  struct NoSide {
    static bool takes_part() noexcept { return false; }
    static bool packs() noexcept { return false; }
    static void sent() noexcept {}
    static void forget_offer() noexcept {}
    static int complete(const char*) noexcept { return MPI_SUCCESS; }
    static bool prepare(const char*, int&) noexcept { return true; }
  };

  /// Makes the call's side of that kind by `make(memory, count, datatype, is_idle)`, which makes the side where it is
  /// to live.
  template <RoleKind side, class Make>
  static decltype(auto) make_side(const Tuple& arguments, Make make) noexcept {
    return make(std::get<place<side>>(arguments), std::get<place<side> + 1>(arguments),
                std::get<place<side> + 2>(arguments), is_idle<side>(arguments));
  }
  static auto make_out(const Tuple& arguments) noexcept {
    if constexpr (has<RoleKind::send>) {
      return make_side<RoleKind::send>(arguments, [](auto memory, auto count, auto datatype, bool idle) {
        return Sending<decltype(count)>(memory, count, datatype, idle);
      });
    } else {
      return NoSide();
    }
  }
  static auto make_in(const Tuple& arguments) noexcept {
    if constexpr (has<RoleKind::receive>) {
      return make_side<RoleKind::receive>(arguments, [](auto memory, auto count, auto datatype, bool idle) {
        return Receiving<decltype(count)>(memory, count, datatype, idle, looks);
      });
    } else {
      return NoSide();
    }
  }

  /// Puts the side's memory, count and datatype in the place of the program's.
  template <RoleKind side>
  static void substitute(Tuple& arguments, auto& with) noexcept {
    if constexpr (has<side>) {
      std::get<place<side>>(arguments) = with.memory();
      std::get<place<side> + 1>(arguments) = with.count();
      std::get<place<side> + 2>(arguments) = with.datatype();
    }
  }

  /// Tells kinds of messages apart, whatever memory they lie in.
  static std::uint64_t key_of(const Tuple& arguments) noexcept {
    std::uint64_t key = number_of(communicator(arguments));
    const auto add = [&key](auto value) { key = mix(key, static_cast<std::uint64_t>(value)); };
    const auto add_side = [&]<RoleKind side, RoleKind peer>() {
      add(std::get<place<side> + 1>(arguments));
      add(type_cache::kind_of(std::get<place<side> + 2>(arguments)));
      if constexpr (has<peer>) add(std::get<place<peer>>(arguments));
    };
    if constexpr (has<RoleKind::send>) add_side.template operator()<RoleKind::send, RoleKind::destination>();
    if constexpr (has<RoleKind::receive>) add_side.template operator()<RoleKind::receive, RoleKind::source>();
    return key;
  }

  /// Corrects the scheme of a call that only sends: most of an exchange's time is the other message's.
  static void correct([[maybe_unused]] const Tuple& arguments, [[maybe_unused]] auto& out,
                      [[maybe_unused]] std::optional<transfer::CorrectedSend>& timed) noexcept {
    if constexpr (has<RoleKind::send> && !has<RoleKind::receive>)
      out.correct(timed, communicator(arguments), std::get<place<RoleKind::destination>>(arguments));
  }

  /// May the call's message go by header? A synchronous send may not, because it ends with its receive; nor a buffered
  /// one, because it must need nothing of the peer.
  static constexpr bool is_standard_or_ready =
      has<RoleKind::send> && !has<RoleKind::synchronous> && !has<RoleKind::buffered>;

  /// Has the sending side go by header where it may. `may_stay`: Sending::offer().
  static void offer([[maybe_unused]] const Tuple& arguments, [[maybe_unused]] auto& out, [[maybe_unused]] bool may_stay,
                    [[maybe_unused]] std::optional<transfer::CorrectedSend>* timed = nullptr,
                    [[maybe_unused]] transfer::headers::Later later = {}) noexcept {
    if constexpr (is_standard_or_ready) {
      if (transfer::headers::is_listening()) {
        out.offer(communicator(arguments), std::get<place<RoleKind::destination>>(arguments),
                  std::get<place<send_tag>>(arguments), has<RoleKind::receive>, may_stay,
                  has<RoleKind::receive> ? nullptr : timed, later);
      }
    }
  }

  static constexpr RoleKind send_tag = has<RoleKind::receive> ? RoleKind::send_tag : RoleKind::tag;
  static constexpr RoleKind receive_tag = has<RoleKind::send> ? RoleKind::receive_tag : RoleKind::tag;

  static auto send_arguments(const Tuple& all) noexcept {
    constexpr int memory = place<RoleKind::send>;
    auto count = std::get<memory + 1>(all);
    return headers::SendArguments<decltype(count)>{
        std::get<memory>(all),          count,
        std::get<memory + 2>(all),      std::get<place<RoleKind::destination>>(all),
        std::get<place<send_tag>>(all), communicator(all)};
  }
  static auto receive_arguments(const Tuple& all) noexcept {
    constexpr int memory = place<RoleKind::receive>;
    auto count = std::get<memory + 1>(all);
    return headers::ReceiveArguments<decltype(count)>{std::get<memory>(all),
                                                      count,
                                                      std::get<memory + 2>(all),
                                                      std::get<place<RoleKind::source>>(all),
                                                      std::get<place<receive_tag>>(all),
                                                      communicator(all)};
  }

  /// Receives a stashed message by `finish(message, arguments)`, if the call matches one; else false.
  template <class Finish>
  static bool receive_stashed([[maybe_unused]] const Tuple& all, [[maybe_unused]] int& code,
                              [[maybe_unused]] Finish finish) noexcept {
    if constexpr (has<RoleKind::source> && has<RoleKind::receive>) {
      if (!headers::are_stashed()) return false;
      const auto in = receive_arguments(all);
      const auto receive = [&](MPI_Message message) { return finish(message, in); };
      if constexpr (has<RoleKind::send>) {
        constexpr auto how =
            has<RoleKind::new_request> ? headers::SendBeside::returns_at_once : headers::SendBeside::waits;
        return headers::receive_stashed(how, send_arguments(all), in, code, receive);
      } else {
        return headers::receive_stashed(in, code, receive);
      }
    } else {
      return false;
    }
  }

  /// Tells the receiving side whom the message is from.
  static void name_source([[maybe_unused]] const Tuple& arguments, [[maybe_unused]] auto& in) noexcept {
    if constexpr (has<RoleKind::source> && has<RoleKind::receive>) {
      in.comes_from(communicator(arguments), std::get<place<RoleKind::source>>(arguments));
    }
  }

  /// Tells a side that receives a matched message what is known of the message. True if the call is a mistake, which
  /// the library refuses, and the message has been put back. The error is then to be raised on `object`: to the library
  /// the message is one of gapless's own communicator.
  static bool take_message([[maybe_unused]] const Tuple& arguments, [[maybe_unused]] auto& in,
                           [[maybe_unused]] ErrorObject& object) noexcept {
    if constexpr (has<RoleKind::message_place>) {
      if (!transfer::headers::is_listening() || is_idle<RoleKind::receive>(arguments)) return false;
      constexpr int memory = place<RoleKind::receive>;
      const MPI_Message handle = *std::get<place<RoleKind::message_place>>(arguments);
      const bool is_mistake =
          is_refused(std::get<memory>(arguments), std::get<memory + 1>(arguments), std::get<memory + 2>(arguments));
      const auto matched = is_mistake ? headers::find_given(handle) : headers::take_given(handle);
      if (!matched) return false;
      if (is_mistake && !library_names_communicators_of_matched_messages) return false;
      constexpr bool has_communicator = library_names_communicators_of_matched_messages || has<RoleKind::new_request>;
      object = ErrorObject::of_communicator(has_communicator || matched->was_stashed ? matched->communicator
                                                                                     : told_of_no_communicator());
      if (is_mistake) return matched->was_put_back;
      in.take_match(*matched);
    }
    return false;
  }

  static MPI_Comm communicator(const Tuple& arguments) noexcept {
    if constexpr (has<RoleKind::communicator>) {
      return std::get<place<RoleKind::communicator>>(arguments);
    } else {
      return MPI_COMM_NULL;
    }
  }
};

template <class Row, auto slowly, class Function = decltype(Row::native_function())>
struct ReplaceCall;

/// A call that sends and receives through one memory. `slowly` takes the call's arguments, and serves a call that does
/// not go straight through.
template <class Row, auto slowly, class Count, class... Others>
struct ReplaceCall<Row, slowly, int (*)(void*, Count, MPI_Datatype, Others...)> {
  static int call(void* memory, Count count, MPI_Datatype datatype, Others... others) {
    requests::start_deferred();
    if (!transfer::headers::is_listening() && goes_straight_through<Purpose::message>(memory, count, datatype))
        [[likely]]
      return Row::native_function()(memory, count, datatype, others...);
    return slowly(memory, count, datatype, others...);
  }
};

}  // namespace gapless::mpi
