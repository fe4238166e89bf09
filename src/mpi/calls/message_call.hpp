// Entry points of point-to-point calls, made from the roles of their arguments: one template for the calls that block,
// one for those that return a request.
//
// A buffer that is ours travels as packed bytes on the program's own communicator and tag, so matching, ordering and
// status are the library's, and the peer need not run gapless. After an error the receive buffer is untouched.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "mpi/calls/side.hpp"
#include "mpi/requests/outstanding.hpp"
#include "mpi/table/rows.hpp"

namespace gapless::mpi {

/// The arguments of a call that is made of a sending side, a receiving side, or both.
template <class Row, class... Arguments>
struct MessageArguments {
  using Kind = table::Kind;
  using Tuple = std::tuple<Arguments...>;
  template <Kind kind>
  static constexpr int place = table::place_of(Row::argument_roles, kind);
  template <Kind kind>
  static constexpr bool has = place<kind> != table::nowhere;

  static auto call_library(const Tuple& arguments) { return std::apply(Row::native_function(), arguments); }

  /// Is the peer of that side none? A matched message of nobody is one that is received from none.
  template <Kind side>
  static bool is_idle(const Tuple& arguments) noexcept {
    if constexpr (side == Kind::send) {
      return std::get<place<Kind::destination>>(arguments) == MPI_PROC_NULL;
    } else if constexpr (has<Kind::source>) {
      return std::get<place<Kind::source>>(arguments) == MPI_PROC_NULL;
    } else {
      const MPI_Message* message = std::get<place<Kind::message_place>>(arguments);
      return message == nullptr || *message == MPI_MESSAGE_NO_PROC || *message == MPI_MESSAGE_NULL;
    }
  }

  /// Does that side go to the library as it came? The question that every call asks first, in a few nanoseconds.
  template <Kind side>
  static bool is_native(const Tuple& arguments) noexcept {
    if constexpr (has<side>) {
      if (is_idle<side>(arguments)) return true;
      return goes_straight_through<Purpose::message>(
          std::get<place<side>>(arguments), std::get<place<side> + 1>(arguments), std::get<place<side> + 2>(arguments));
    } else {
      return true;
    }
  }

  template <Kind side>
  using Count = std::tuple_element_t<static_cast<std::size_t>(place<side> + 1), Tuple>;

  /// Stands where a call has no such side.
  struct NoSide {
    static bool packs() noexcept { return false; }
    static bool prepare(const char*, int&) noexcept { return true; }
  };

  /// That side of the call, made in the place where it is to live.
  template <Kind side, class Make>
  static decltype(auto) make_side(const Tuple& arguments, Make make) noexcept {
    return make(std::get<place<side>>(arguments), std::get<place<side> + 1>(arguments),
                std::get<place<side> + 2>(arguments), is_idle<side>(arguments));
  }
  static auto make_out(const Tuple& arguments) noexcept {
    if constexpr (has<Kind::send>) {
      return make_side<Kind::send>(arguments, [](auto memory, auto count, auto datatype, bool idle) {
        return Sending<decltype(count)>(memory, count, datatype, idle);
      });
    } else {
      return NoSide();
    }
  }
  static auto make_in(const Tuple& arguments) noexcept {
    if constexpr (has<Kind::receive>) {
      return make_side<Kind::receive>(arguments, [](auto memory, auto count, auto datatype, bool idle) {
        return Receiving<decltype(count)>(memory, count, datatype, idle);
      });
    } else {
      return NoSide();
    }
  }

  /// Puts what the library is given in the place of what the program gave.
  template <Kind side>
  static void substitute(Tuple& arguments, auto& with) noexcept {
    if constexpr (has<side>) {
      std::get<place<side>>(arguments) = with.memory();
      std::get<place<side> + 1>(arguments) = with.count();
      std::get<place<side> + 2>(arguments) = with.datatype();
    }
  }

  static MPI_Comm communicator(const Tuple& arguments) noexcept {
    if constexpr (has<Kind::communicator>) {
      return std::get<place<Kind::communicator>>(arguments);
    } else {
      return MPI_COMM_NULL;
    }
  }
};

template <class Row, class Function = decltype(Row::native_function())>
struct BlockingCall;

template <class Row, class... Arguments>
struct BlockingCall<Row, int (*)(Arguments...)> : MessageArguments<Row, Arguments...> {
  using Base = MessageArguments<Row, Arguments...>;
  using typename Base::Kind, typename Base::Tuple;

  static int call(Arguments... arguments) {
    const Tuple all(arguments...);
    if (Base::template is_native<Kind::send>(all) && Base::template is_native<Kind::receive>(all)) [[likely]]
      return Row::native_function()(arguments...);
    return call_slowly(arguments...);
  }

 private:
  // Kept out of line, so that a call that goes straight through is a look-up and a jump.
  [[gnu::noinline]] static int call_slowly(Arguments... arguments) {
    Tuple all(arguments...);
    auto out = Base::make_out(all);
    auto in = Base::make_in(all);
    int code = MPI_SUCCESS;
    if (!out.prepare(Row::name, code) || !in.prepare(Row::name, code)) return table::raise<Row>(code, all);
    Base::template substitute<Kind::send>(all, out);
    Base::template substitute<Kind::receive>(all, in);
    if constexpr (Base::template has<Kind::receive>) {
      if (in.packs()) return receive(in, all);
    }
    return Base::call_library(all);
  }

  static int receive(auto& in, Tuple& all) noexcept {
    auto& place = std::get<Base::template place<Kind::status>>(all);
    ReceivedStatus status(place);
    place = status.get();
    const int code = Base::call_library(all);
    return in.finish_call(status, code, Base::communicator(all), Row::name,
                          [&](int error) { return table::raise<Row>(error, all); });
  }
};

template <class Row, class Function = decltype(Row::native_function())>
struct NonblockingCall;

/// A call with one side and a new request.
template <class Row, class... Arguments>
struct NonblockingCall<Row, int (*)(Arguments...)> : MessageArguments<Row, Arguments...> {
  using Base = MessageArguments<Row, Arguments...>;
  using typename Base::Kind, typename Base::Tuple;
  static constexpr Kind side = Base::template has<Kind::send> ? Kind::send : Kind::receive;
  using Count = typename Base::template Count<side>;
  using Side = std::conditional_t<side == Kind::send, Sending<Count>, Receiving<Count>>;

  static int call(Arguments... arguments) {
    if (Base::template is_native<side>(Tuple(arguments...))) [[likely]]
      return Row::native_function()(arguments...);
    return call_slowly(arguments...);
  }

 private:
  [[gnu::noinline]] static int call_slowly(Arguments... arguments) {
    Tuple all(arguments...);
    requests::Pending* pending = requests::acquire();
    if (pending == nullptr) return Base::call_library(all);
    auto& mine = Base::template make_side<side>(
        all, [pending](auto... a) -> auto& { return pending->template make<Side>(a...); });
    int code = MPI_SUCCESS;
    const bool fails = !mine.prepare(Row::name, code);
    if (!fails && mine.packs()) return start(pending, mine, all);
    requests::release(pending);
    return fails ? table::raise<Row>(code, all) : Base::call_library(all);
  }

  static int start(requests::Pending* pending, auto& mine, Tuple& all) noexcept {
    Base::template substitute<side>(all, mine);
    // A library that fails may say MPI_SUCCESS after an error handler of the program has returned: then there is no
    // request.
    MPI_Request* request = std::get<Base::template place<Kind::new_request>>(all);
    const MPI_Request before = std::exchange(*request, MPI_REQUEST_NULL);
    const int code = Base::call_library(all);
    if (code != MPI_SUCCESS || *request == MPI_REQUEST_NULL) {
      if (code == MPI_SUCCESS) *request = before;
      requests::release(pending);
      return code;
    }
    if (side == Kind::send && is_complete(*request)) {
      requests::release(pending);
      return code;
    }
    pending->function = Row::name;
    pending->communicator = Base::communicator(all);
    requests::add(pending, *request);
    return code;
  }

  static bool is_complete(MPI_Request request) noexcept {
    int flag = 0;
    return native.Request_get_status(request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag != 0;
  }
};

}  // namespace gapless::mpi
