// Entry points of point-to-point calls that return a request, made from the roles of their arguments: calls that start
// a message, and calls that make a persistent request.
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>

#include "mpi/calls/message_call.hpp"
#include "mpi/calls/tried/burst.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/requests/new_request.hpp"
#include "mpi/requests/outstanding.hpp"
#include "mpi/requests/receives/looked_at.hpp"
#include "mpi/requests/receives/short_persistent.hpp"
#include "mpi/requests/work.hpp"
#include "mpi/table/rows.hpp"

namespace gapless::mpi {

/// Calls the library, and puts `pending` under the request that the library makes.
template <class CallLibrary>
int place_under_request(requests::Pending* pending, MPI_Request* request, CallLibrary call_library) noexcept {
  int code = MPI_SUCCESS;
  if (!requests::call_makes_request(request, code, call_library)) {
    requests::release(pending);
    return code;
  }
  // Libraries give one handle to all requests that are complete at once. No receive of ours is.
  int is_complete = 0;
  if (!pending->is_persistent && !pending->receives() &&
      native.Request_get_status(*request, &is_complete, MPI_STATUS_IGNORE) == MPI_SUCCESS && is_complete != 0) {
    requests::release(pending);
    return code;
  }
  requests::add(pending, *request);
  return code;
}

/// The call that makes a persistent request for the same message. A send that leaves later, or whose memory is needed
/// beyond the call, is a persistent request of the library's, which gapless starts, and frees when it is complete
/// (Pending::frees_request): the program has its handle at once.
template <class Row>
struct PersistentOf {
  static constexpr bool is_there = false;
};
#define GAPLESS_DEFERRABLE(name, persistent)                                 \
  GAPLESS_IF_DECLARED(                                                       \
      name, template <> struct PersistentOf<table::rows::name> {             \
        static constexpr bool is_there = true;                               \
        static auto native_function() noexcept { return native.persistent; } \
      };)
GAPLESS_DEFERRABLE(Isend, Send_init)
GAPLESS_DEFERRABLE(Isend_c, Send_init_c)
GAPLESS_DEFERRABLE(Issend, Ssend_init)
GAPLESS_DEFERRABLE(Issend_c, Ssend_init_c)
#undef GAPLESS_DEFERRABLE

template <class Row, Life life, class Function = decltype(Row::native_function())>
struct RequestCall;

/// A call with one side or two, and a new request.
template <class Row, Life life, class... Arguments>
struct RequestCall<Row, life, int (*)(Arguments...)> : MessageArguments<Row, Arguments...> {
  using Base = MessageArguments<Row, Arguments...>;
  using typename Base::RoleKind, typename Base::Tuple;
  static constexpr bool sends = Base::template has<RoleKind::send>;
  static constexpr bool receives = Base::template has<RoleKind::receive>;
  static constexpr RoleKind side = sends ? RoleKind::send : RoleKind::receive;
  using Count = typename Base::template Count<side>;
  using Sides = std::conditional_t<sends && receives, requests::Exchange<Count>,
                                   std::conditional_t<sends, Sending<Count>, Receiving<Count>>>;

  static int call(Arguments... arguments) {
    if constexpr (may_find_stashed) {
      if (headers::do_threads_probe()) [[unlikely]]
        return call_beside_probes(arguments...);
    }
    return post(arguments...);
  }

 private:
  /// Is the call a receive that is given to the library now, and that may match a stashed message?
  static constexpr bool may_find_stashed = life == Life::once && receives && Base::template has<RoleKind::source>;
  [[gnu::noinline]] static int call_beside_probes(Arguments... arguments) {
    const headers::Posting posting(
        [&] { return headers::is_refused_beside_probes(Base::receive_arguments(Tuple(arguments...))); });
    return post(arguments...);
  }

  static int post(Arguments... arguments) {
    const Tuple all(arguments...);
    // A persistent request is made to be started often, so the analysis of its datatype pays at once.
    if constexpr (life == Life::persistent) type_cache::find(std::get<Base::template place<side> + 2>(all));
    if (is_native<RoleKind::send>(all) && is_native<RoleKind::receive>(all)) [[likely]] {
      if constexpr (leaves_now) {
        if (!requests::are_none_deferred()) [[unlikely]]
          return call_behind_deferred(arguments...);
      }
      return Row::native_function()(arguments...);
    }
    // The library refuses the call.
    if (std::get<Base::template place<RoleKind::new_request>>(all) == nullptr) [[unlikely]]
      return Row::native_function()(arguments...);
    if constexpr (may_need_a_look) {
      if (const TypeRecord* record = Base::record_to_look_at(all, requests::is_on_gpu)) {
        if (!runtime::is_multithreaded()) [[likely]]
          return call_with_a_look(*record, all);
      }
    }
    if constexpr (life == Life::persistent && receives) {
      if (is_short(all)) return leave_short(all);
    }
    return call_slowly(arguments...);
  }

  /// Is the call a persistent receive that concerns gapless only where a message is stashed?
  static bool is_short(const Tuple& all) noexcept {
    const TypeRecord* record = type_cache::find_in_table(std::get<Base::template place<side> + 2>(all));
    return record != nullptr && record->is_predefined && !runtime::is_multithreaded() &&
           Base::template is_below_headers<Purpose::message>(all);
  }

  static int leave_short(const Tuple& all) noexcept {
    constexpr int in = Base::template place<RoleKind::receive>;
    MPI_Request& request = *std::get<Base::template place<RoleKind::new_request>>(all);
    int code = MPI_SUCCESS;
    if (!requests::call_makes_request(&request, code, [&] { return Base::call_library(all); })) return code;
    code = requests::short_persistent::add(
        request, {std::get<in>(all), static_cast<int>(std::get<in + 1>(all)), std::get<in + 2>(all),
                  std::get<Base::template place<RoleKind::source>>(all),
                  std::get<Base::template place<RoleKind::tag>>(all), Base::communicator(all)});
    if (code == MPI_SUCCESS) return code;
    native.Request_free(&request);
    return table::raise<Row>(code, all);
  }

  template <RoleKind one>
  static bool is_native(const Tuple& all) noexcept {
    if constexpr (life == Life::once) {
      return Base::template is_native<one, Purpose::request>(all, requests::is_on_gpu);
    } else {
      if constexpr (one == RoleKind::receive && receives) {
        // A start may match a message of any length that a probe has stashed by then.
        if (transfer::headers::is_listening()) return Base::template is_idle<one>(all);
      }
      return Base::template is_native<one>(all);
    }
  }

  /// Is the call a send that leaves at once, unless it is deferred?
  static constexpr bool leaves_now = life == Life::once && sends;

  /// May each start of the persistent send go by header?
  static constexpr bool is_offered_when_started =
      life == Life::persistent && sends && !receives && Base::is_standard_or_ready;
  static bool may_be_offered([[maybe_unused]] const Sides& mine) noexcept {
    if constexpr (is_offered_when_started) {
      return transfer::headers::is_listening() && mine.may_be_offered();
    } else {
      return false;
    }
  }

  /// Is the call a receive for which a look at its end may be enough?
  static constexpr bool may_need_a_look =
      life == Life::once && receives && !sends && Base::template has<RoleKind::source>;

  static int call_with_a_look(const TypeRecord& record, const Tuple& all, requests::looked_at::Blocks* blocks = nullptr,
                              bool is_unattended = false) noexcept {
    constexpr int in = Base::template place<RoleKind::receive>;
    void* const memory = std::get<in>(all);
    MPI_Request& request = *std::get<Base::template place<RoleKind::new_request>>(all);
    int code = MPI_SUCCESS;
    if (!requests::call_makes_request(&request, code, [&] { return Base::call_library(all); })) {
      if (blocks != nullptr) requests::looked_at::release(blocks);
      if (is_unattended) requests::looked_at::end_unattended();
      return code;
    }
    code = requests::looked_at::add({request, memory, std::get<in + 1>(all), std::get<in + 2>(all),
                                     Base::communicator(all), address_of(memory, record.first_byte), blocks,
                                     is_unattended});
    return code == MPI_SUCCESS ? code : table::raise<Row>(code, all);
  }

  // A send that is left to the library, while others are deferred. Sends to one destination leave in program order.
  [[gnu::noinline]] static int call_behind_deferred(Arguments... arguments) {
    const Tuple all(arguments...);
    if (is_behind_deferred(all)) {
      if constexpr (PersistentOf<Row>::is_there) {
        if (requests::Pending* pending = requests::acquire()) return defer(pending, all, 0);
      }
      requests::start_deferred_so_far();
    }
    return Row::native_function()(arguments...);
  }

  static bool is_behind_deferred(const Tuple& all) noexcept {
    return requests::is_deferred_to(Base::communicator(all),
                                    std::get<Base::template place<RoleKind::destination>>(all));
  }

  /// Makes a persistent request in place of the call. False: the call ends with `code`.
  static bool make_persistent(requests::Pending* pending, const Tuple& all, int& code) noexcept {
    pending->function = Row::name;
    pending->error_object = ErrorObject::of_communicator(Base::communicator(all));
    pending->frees_request = true;
    MPI_Request& request = *std::get<Base::template place<RoleKind::new_request>>(all);
    if (!requests::call_makes_request(&request, code,
                                      [&] { return std::apply(PersistentOf<Row>::native_function(), all); })) {
      requests::release(pending);
      return false;
    }
    requests::add(pending, request);
    return true;
  }

  /// Makes a persistent request that is started with the deferred sends.
  static int defer(requests::Pending* pending, const Tuple& all, std::size_t bytes) noexcept {
    int code = MPI_SUCCESS;
    if (make_persistent(pending, all, code))
      requests::defer(pending, Base::communicator(all), std::get<Base::template place<RoleKind::destination>>(all),
                      bytes);
    return code;
  }

  /// Makes a persistent request, and starts it at once.
  static int start_persistent(requests::Pending* pending, Sides& mine, Tuple& all) noexcept {
    Base::template substitute<side>(all, mine);
    int code = MPI_SUCCESS;
    if (!make_persistent(pending, all, code)) return code;
    code = native.Start(std::get<Base::template place<RoleKind::new_request>>(all));
    if (code == MPI_SUCCESS) mine.sent();
    return code;
  }

  /// How many bytes of a message may be packed, or awaited, later, together with other messages.
  static transfer::headers::Later later() noexcept {
    if (!requests::may_defer()) return {};
    const bool others_wait = !requests::are_none_deferred();
    return {requests::most_deferred_bytes, others_wait ? requests::most_awaited_bytes : requests::most_deferred_bytes};
  }

  /// Short messages in GPU memory that the library would move one by one join others in their row.
  static void gather([[maybe_unused]] Sides& mine) noexcept {
    if (!device::in_use() || !requests::may_defer()) return;
    constexpr bool may_wait = PersistentOf<Row>::is_there || life == Life::persistent;
    if constexpr (may_wait && sends && !receives) gather(mine, requests::gathered_sends);
    if constexpr (receives && !sends) gather(mine, requests::gathered_receives);
  }
  static void gather(Sides& mine, requests::Gathered& gathered) noexcept {
    const bool may_join = mine.may_join();
    if (may_join && gathered.are_others()) mine.join_others();
    if (may_join || mine.is_gathered(requests::most_deferred_bytes)) requests::count(gathered);
  }

  /// Is packing to wait for the packing of other sends?
  static bool is_to_be_deferred(const Sides& mine) noexcept {
    return mine.may_wait(requests::most_deferred_bytes) && requests::may_defer();
  }

  [[gnu::noinline]] static int call_slowly(Arguments... arguments) {
    if constexpr (life == Life::once) {
      const Tuple all(arguments...);
      std::optional<burst::Message> message;
      if (!device::has_met_gpu_memory()) message.emplace(Base::key_of(all));
      const int code = serve_once(all, arguments...);
      const bool is_started =
          code == MPI_SUCCESS && *std::get<Base::template place<RoleKind::new_request>>(all) != MPI_REQUEST_NULL;
      if (!is_started && device::in_use()) requests::forget_locations();
      return code;
    } else {
      const int code = serve(arguments...);
      if (code == MPI_SUCCESS) add_as_native(arguments...);
      return code;
    }
  }

  /// Gives a persistent request of ours a second one, which leaves the same message to the library, where that is worth
  /// trying.
  static void add_as_native(Arguments... arguments) {
    Tuple all(arguments...);
    auto& place = std::get<Base::template place<RoleKind::new_request>>(all);
    requests::Pending* const pending = requests::find(*place);
    if (pending == nullptr || !pending->may_be_tried()) return;
    MPI_Request handle = MPI_REQUEST_NULL;
    place = &handle;
    const auto way = transfer::choose_always(transfer::HostWay::native);
    if (std::apply(serve, all) == MPI_SUCCESS && handle != MPI_REQUEST_NULL)
      requests::have_as_native(pending, handle, Base::key_of(all));
  }

  /// Is the call a send of noncontiguous host memory that is the library's, by prediction or by the burst's way?
  static bool is_native_by_choice(const Tuple& all) noexcept {
    const TypeRecord* record = Base::template find_gaps<side>(all);
    if (record == nullptr || !requests::are_none_deferred()) return false;
    const auto simple = Base::template find_simple<side>(*record, all, requests::is_on_gpu);
    return simple && !transfer::goes_by_header(simple.buffer, true) &&
           Base::is_native_choice(simple.buffer, transfer::Side::sender);
  }

  static int serve_once([[maybe_unused]] const Tuple& all, Arguments... arguments) {
    if constexpr (leaves_now && !receives) {
      if (is_native_by_choice(all)) return Row::native_function()(arguments...);
    }
    if constexpr (may_need_a_look) {
      if (const TypeRecord* record = Base::record_to_look_at_in_blocks(all, requests::is_on_gpu)) {
        if (requests::looked_at::begin_unattended()) return call_with_a_look(*record, all, nullptr, true);
        Base::answer_peers();
        const void* const first_byte = address_of(std::get<Base::template place<side>>(all), record->first_byte);
        if (auto* const blocks = requests::looked_at::acquire(*record, first_byte))
          return call_with_a_look(*record, all, blocks);
      }
    }
    return serve(arguments...);
  }

  static int serve(Arguments... arguments) {
    Tuple all(arguments...);
    if constexpr (life == Life::once) {
      int done = MPI_SUCCESS;
      const auto finish = [&all](MPI_Message message, const auto& in) {
        return headers::begin_to_receive(message, in, std::get<Base::template place<RoleKind::new_request>>(all));
      };
      if (Base::receive_stashed(all, done, finish)) return done;
    }
    requests::Pending* pending = requests::acquire();
    if (pending == nullptr) return table::raise<Row>(MPI_ERR_NO_MEM, all);
    Sides& mine = make(pending, all);
    weigh_and_offer(pending, mine, all);
    bool is_mistake = false;
    if constexpr (!sends) is_mistake = Base::take_message(all, mine, pending->error_object);
    int code = MPI_SUCCESS;
    if (try_defer(pending, mine, all, code)) return code;
    return start_or_leave(pending, mine, all, is_mistake);
  }

  /// Weighs the sides, and offers the message of a send.
  static void weigh_and_offer(requests::Pending* pending, Sides& mine, Tuple& all) {
    if constexpr (receives) Base::name_source(all, in_of(mine));
    if constexpr (life == Life::once) mine.weigh_request();
    if constexpr (life == Life::persistent && receives) {
      pending->source = std::get<Base::template place<RoleKind::source>>(all);
      pending->tag = std::get<Base::template place<RoleKind::tag>>(all);
    }
    // A send may need its memory after the library has sent the header. Such a send has to have a request that stays.
    constexpr bool may_stay = !receives && PersistentOf<Row>::is_there;
    if constexpr (life == Life::once && sends) {
      Base::offer(all, out_of(mine), may_stay, nullptr, may_stay ? later() : transfer::headers::Later{});
    }
    gather(mine);
    if constexpr (life == Life::once) {
      if (is_chosen(mine)) burst::Message::note_chosen();
    }
    pending->error_object = table::error_object<Row>(all);
  }

  /// Defers the send, or starts it under a persistent request where its memory is needed longer. True: the call ends
  /// with `code`.
  static bool try_defer(requests::Pending* pending, Sides& mine, Tuple& all, int& code) {
    if constexpr (PersistentOf<Row>::is_there) {
      if (is_to_be_deferred(mine)) {
        if (mine.reserve(Row::name, code)) {
          Base::template substitute<side>(all, mine);
          code = defer(pending, all, mine.packed_size());
        } else {
          requests::release(pending);
          code = table::raise<Row>(code, all);
        }
        return true;
      }
    }
    if constexpr (leaves_now) {
      if (!requests::are_none_deferred() && is_behind_deferred(all)) requests::start_deferred_so_far();
    }
    if constexpr (PersistentOf<Row>::is_there) {
      if (mine.goes_on()) {
        code = start_persistent(pending, mine, all);
        return true;
      }
    }
    return false;
  }

  /// Puts the work that gapless has to do under the request; without any work, the call is the library's.
  static int start_or_leave(requests::Pending* pending, Sides& mine, Tuple& all, bool is_mistake) {
    // The start of any persistent receive may match a message that a probe has stashed.
    const bool may_be_stashed = life == Life::persistent && receives && transfer::headers::is_listening();
    int code = MPI_SUCCESS;
    const bool fails = !prepare(mine, code);
    const bool may_take_headers = may_be_offered(mine);
    if (!fails && (mine.takes_part() || may_be_stashed || may_take_headers)) {
      code = call_under_request(pending, mine, all);
      if constexpr (is_offered_when_started) {
        if (code == MPI_SUCCESS && may_take_headers && pending->is_persistent) {
          pending->prepare_headers(mine, Base::communicator(all),
                                   std::get<Base::template place<RoleKind::destination>>(all),
                                   std::get<Base::template place<RoleKind::tag>>(all));
        }
      }
      return code;
    }
    if constexpr (receives) Base::template substitute<RoleKind::receive>(all, in_of(mine));
    const ErrorObject object = pending->error_object;
    requests::release(pending);
    if (fails) return table::raise<Row>(code, all);
    code = Base::call_library(all);
    return is_mistake && code != MPI_SUCCESS ? raise_on(object, code) : code;
  }

  static Sides& make(requests::Pending* pending, const Tuple& all) noexcept {
    if constexpr (sends && receives) {
      return Base::template make_side<RoleKind::send>(all, [&](auto... out) -> Sides& {
        return Base::template make_side<RoleKind::receive>(
            all, [&](auto... in) -> Sides& { return pending->template make<Sides>(out..., in...); });
      });
    } else {
      return Base::template make_side<side>(all, [pending](auto... a) -> Sides& {
        if constexpr (life == Life::persistent) {
          return pending->template make<Sides>(a...);
        } else if constexpr (receives) {
          return pending->template make<Sides>(a..., Base::looks, requests::shared_locator());
        } else {
          return pending->template make<Sides>(a..., requests::shared_locator());
        }
      });
    }
  }

  /// Does gapless pack any side, or send it by header? A receive that is only looked at does not count.
  static bool is_chosen(Sides& mine) noexcept {
    if constexpr (sends && receives) {
      return mine.out.takes_part() || mine.in.packs();
    } else if constexpr (sends) {
      return mine.takes_part();
    } else {
      return mine.packs();
    }
  }

  static auto& out_of(Sides& mine) noexcept {
    if constexpr (receives) {
      return mine.out;
    } else {
      return mine;
    }
  }

  static auto& in_of(Sides& mine) noexcept {
    if constexpr (sends) {
      return mine.in;
    } else {
      return mine;
    }
  }

  static bool prepare(Sides& mine, int& code) noexcept {
    if constexpr (life == Life::persistent) {
      return mine.reserve(Row::name, code);
    } else {
      return mine.prepare(Row::name, code);
    }
  }

  static int call_under_request(requests::Pending* pending, Sides& mine, Tuple& all) noexcept {
    if constexpr (sends && receives) {
      Base::template substitute<RoleKind::send>(all, mine.out);
      Base::template substitute<RoleKind::receive>(all, mine.in);
    } else {
      Base::template substitute<side>(all, mine);
    }
    pending->is_persistent = life == Life::persistent;
    pending->function = Row::name;
    return place_under_request(pending, std::get<Base::template place<RoleKind::new_request>>(all), [&] {
      const int code = Base::call_library(all);
      if constexpr (sends) {
        if (code == MPI_SUCCESS) out_of(mine).sent();
      }
      return code;
    });
  }
};

template <class Row>
using NonblockingCall = RequestCall<Row, Life::once>;
template <class Row>
using PersistentCall = RequestCall<Row, Life::persistent>;

}  // namespace gapless::mpi
