// Blocking calls that send, receive or do both.
#pragma once

#include <optional>
#include <utility>

#include "base/hash.hpp"
#include "mpi/calls/message_call.hpp"
#include "mpi/calls/short_message.hpp"
#include "mpi/calls/tried/rounds.hpp"
#include "transfer/choice/host_trial.hpp"

namespace gapless::mpi {

template <class Row, class Function = decltype(Row::native_function())>
struct BlockingCall;

/// The first of these that can serve a call does:
///
///   call              plain buffers, straight to the library
///   call_in_round     gaps in host memory, one side: call_simply() packs on the stack or leaves the message alone
///   call              a contiguous receive at whose first bytes a look is enough
///   try_ways          both sides, in host memory: serve() by the way that has been best
///   serve             all others, by sides (mpi/calls/sides)
template <class Row, class... Arguments>
struct BlockingCall<Row, int (*)(Arguments...)> : MessageArguments<Row, Arguments...> {
  using Base = MessageArguments<Row, Arguments...>;
  using typename Base::RoleKind, typename Base::Simple, typename Base::Tuple;

  static int call(Arguments... arguments) {
    requests::start_deferred();
    if constexpr (may_find_stashed) {
      if (headers::do_threads_probe()) [[unlikely]]
        return call_by_request(arguments...);
    }
    const Tuple all(arguments...);
    const bool is_native = Base::template is_native<RoleKind::send>(all) &&
                           (Base::template is_native<RoleKind::receive>(all) || Base::is_unattended(all));
    if (is_native) [[likely]]
      return Row::native_function()(arguments...);
    if constexpr (has_round) {
      const TypeRecord* record = Base::template find_gaps<only_side>(all);
      if (record != nullptr && !device::has_met_gpu_memory()) return call_in_round(record, arguments...);
    }
    if constexpr (only_receives) {
      const TypeRecord* record = Base::record_to_look_at(all, is_gpu_memory);
      // Another thread may free a derived datatype, and with it the record, meanwhile.
      if (record != nullptr && (record->is_predefined || !runtime::is_multithreaded())) [[likely]] {
        const int code = Row::native_function()(arguments...);
        const void* landing = address_of(std::get<Base::template place<RoleKind::receive>>(all), record->first_byte);
        if (code == MPI_SUCCESS && transfer::headers::is_header(landing, transfer::headers::Header::size)) [[unlikely]]
          return fetch(arguments...);
        return code;
      }
    }
    return call_slowly(arguments...);
  }

 private:
  static constexpr bool may_find_stashed = Base::template has<RoleKind::source> &&
                                           Base::template has<RoleKind::status> &&
                                           Base::template has<RoleKind::receive>;
  static constexpr bool is_exchange = Base::template has<RoleKind::send> && Base::template has<RoleKind::receive>;
  static constexpr bool only_sends = Base::template has<RoleKind::send> && !Base::template has<RoleKind::receive>;
  static constexpr bool only_receives = may_find_stashed && !Base::template has<RoleKind::send>;
  static constexpr bool has_round = only_sends || only_receives;
  static constexpr RoleKind only_side = only_sends ? RoleKind::send : RoleKind::receive;
  using Short = ShortMessage<Row, Base, only_side>;

  [[gnu::noinline]] static int call_by_request(Arguments... arguments) {
    const Tuple all(arguments...);
    MPI_Status* const status = std::get<Base::template place<RoleKind::status>>(all);
    const auto in = Base::receive_arguments(all);
    if constexpr (only_receives) {
      return headers::receive_by_request(in, status);
    } else {
      return headers::exchange_by_request(headers::SendBeside::waits, Base::send_arguments(all), in, status);
    }
  }

  /// Fetches the message of a header that has landed.
  [[gnu::noinline]] static int fetch(Arguments... arguments) {
    const Tuple all(arguments...);
    auto in = Base::make_in(all);
    MPI_Status* const wanted = std::get<Base::template place<RoleKind::status>>(all);
    MPI_Status filled{};
    if (wanted != MPI_STATUS_IGNORE) filled = *wanted;
    ReceivedStatus status(filled, wanted == MPI_STATUS_IGNORE ? nullptr : wanted);
    status.set_bytes(transfer::headers::Header::size);
    return in.finish_call(status, MPI_SUCCESS, Row::name, [&](int error) { return table::raise<Row>(error, all); });
  }

  // Kept out of line, so that a call that goes straight through is a look-up and a jump.
  [[gnu::noinline]] static int call_slowly(Arguments... arguments) {
    if constexpr (is_exchange) {
      if (!device::has_met_gpu_memory()) return try_ways(arguments...);
    }
    return serve(nullptr, arguments...);
  }

  /// Makes an exchange in host memory the way that has been the best for its kind.
  static int try_ways(Arguments... arguments) {
    transfer::HostTrial trial(Base::key_of(Tuple(arguments...)));
    const auto scope = transfer::choose_always(trial.way());
    bool went_native = false;
    const int code = serve(&went_native, arguments...);
    if (code != MPI_SUCCESS) return code;
    if (went_native && trial.way() == transfer::HostWay::packed) {
      trial.went_native();
    } else {
      trial.end();
    }
    return code;
  }

  /// Sends or receives a datatype with gaps the way that has been the best for the round that the message belongs to.
  [[gnu::noinline]] static int call_in_round(const TypeRecord* record, Arguments... arguments) {
    const Tuple all(arguments...);
    const rounds::Call call(mix(Base::key_of(all), only_sends));
    const auto scope = transfer::choose_always(call.way());
    int code = MPI_SUCCESS;
    const Simply done = call_simply(*record, all, code);
    bool went_native = done == Simply::left_alone;
    if (done == Simply::not_done) code = serve(&went_native, arguments...);
    call.end(code, went_native);
    return code;
  }

  enum class Simply { not_done, packed, left_alone };

  /// Sends or receives a simple message, packed if that is short, or left alone; no other message. The call's code is
  /// `code`.
  static Simply call_simply(const TypeRecord& record, const Tuple& all, int& code) {
    const Simple simple = Base::template find_simple<only_side>(record, all, is_gpu_memory);
    if (!simple) return Simply::not_done;
    constexpr transfer::Side side = only_sends ? transfer::Side::sender : transfer::Side::receiver;
    if (only_sends && transfer::goes_by_header(simple.buffer)) return Simply::not_done;
    const transfer::Scheme scheme = transfer::choose(simple.buffer, side);
    if (scheme == transfer::Scheme::packed) {
      const bool is_done =
          Short::is_short(simple.buffer) && Short(simple.buffer, simple.may_get_header).call(all, code);
      return is_done ? Simply::packed : Simply::not_done;
    }
    const bool is_done = scheme == transfer::Scheme::native && leave_alone(record, simple, all, code);
    return is_done ? Simply::left_alone : Simply::not_done;
  }

  /// Leaves the message to the library, whose call returns `code`. False, and nothing has been done, where a header
  /// could not be told from a message.
  static bool leave_alone(const TypeRecord& record, const Simple& simple, const Tuple& all, int& code) {
    if constexpr (only_receives) {
      if (simple.may_get_header) return receive_with_a_look(record, all, code);
    }
    code = Base::call_library(all);
    return true;
  }
  /// The library would scatter a header into the blocks.
  static bool receive_with_a_look(const TypeRecord& record, Tuple all, int& code) {
    auto& place = std::get<Base::template place<RoleKind::status>>(all);
    const void* const landing = address_of(std::get<Base::template place<RoleKind::receive>>(all), record.first_byte);
    Scattered scattered;
    if (record.bytes_of_scattered_header == 0 || !scattered.begin(landing)) return false;
    Base::answer_peers();
    ReceivedStatus status(place);
    place = status.get();
    code = Base::call_library(all);
    if (code == MPI_SUCCESS && transfer::headers::begins_header(landing, record.bytes_of_scattered_header)) [[unlikely]]
      return fetch_scattered(record, std::move(scattered), status, all, code), true;
    status.deliver();
    return true;
  }
  [[gnu::noinline]] static void fetch_scattered(const TypeRecord& record, Scattered scattered, ReceivedStatus& status,
                                                const Tuple& all, int& code) {
    constexpr int memory = Base::template place<RoleKind::receive>;
    Receiving<int> in(nullptr, 0, MPI_BYTE, true);
    in.goes_on_scattered({.buffer = {record.described.get(), std::get<memory + 1>(all), std::get<memory>(all), {}},
                          .description = record.described},
                         std::move(scattered));
    code = in.finish_call(status, code, Row::name, [&](int error) { return table::raise<Row>(error, all); });
  }

  static int serve(bool* went_native, Arguments... arguments) {
    Tuple all(arguments...);
    if constexpr (Base::template has<RoleKind::status>) {
      int done = MPI_SUCCESS;
      const auto finish = [&all](MPI_Message message, const auto& in) {
        return headers::receive(message, in, std::get<Base::template place<RoleKind::status>>(all));
      };
      if (Base::receive_stashed(all, done, finish)) return done;
    }
    auto out = Base::make_out(all);
    auto in = Base::make_in(all);
    Base::name_source(all, in);
    std::optional<transfer::CorrectedSend> timed;
    Base::offer(all, out, true, &timed);
    Base::correct(all, out, timed);
    if (went_native != nullptr) *went_native = !out.takes_part() && !in.packs();
    ErrorObject object = table::error_object<Row>(all);
    [[maybe_unused]] const bool is_mistake = Base::take_message(all, in, object);
    int code = MPI_SUCCESS;
    if (!out.prepare(Row::name, code) || !in.prepare(Row::name, code)) return table::raise<Row>(code, all);
    Base::template substitute<RoleKind::send>(all, out);
    Base::template substitute<RoleKind::receive>(all, in);
    if constexpr (Base::template has<RoleKind::receive>) {
      code = in.takes_part() ? receive(in, all, object) : Base::call_library(all);
      if (is_mistake && code != MPI_SUCCESS) code = raise_on(object, code);
      // The library may have sent although it has failed to receive, but finds mistakes before that.
      if (is_mistake_of_call(code)) {
        out.forget_offer();
      } else {
        out.sent();
      }
    } else {
      code = Base::call_library(all);
      if (code == MPI_SUCCESS) {
        out.sent();
        if (timed) timed->end();
      }
    }
    const int sent = out.complete(Row::name);
    return code == MPI_SUCCESS && sent != MPI_SUCCESS ? raise_on(object, sent) : code;
  }

  static int receive(auto& in, Tuple& all, const ErrorObject& object) noexcept {
    auto& place = std::get<Base::template place<RoleKind::status>>(all);
    ReceivedStatus status(place);
    place = status.get();
    const int code = Base::call_library(all);
    return in.finish_call(status, code, Row::name, [&](int error) { return raise_on(object, error); });
  }
};

}  // namespace gapless::mpi
