// Every exported function wrapped: an endpoint's handle is served or refused by name, any other call goes where it went
// before. Made from the table, so that no function is forgotten.
#include <algorithm>
#include <cstring>
#include <exception>
#include <tuple>
#include <type_traits>
#include <vector>

#include "endpoints/calls/calls.hpp"
#include "endpoints/communicators/creation.hpp"
#include "endpoints/communicators/groups.hpp"
#include "endpoints/communicators/static_world.hpp"
#include "endpoints/delivery/messages.hpp"
#include "endpoints/delivery/progress.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "endpoints/tasks/requests.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/table/entry_points.hpp"
#include "mpi/table/rows.hpp"

namespace gapless::mpi::endpoints {
namespace {

using table::RoleKind, table::has_role, table::nowhere, table::place_of;

/// What becomes of a call on an endpoint.
enum class Course { refused, served, handle, replaced };

template <class Row>
struct Treatment {
  static constexpr Course course = Course::refused;
};

/// Where a call goes that is about no endpoint.
template <class Row>
auto inner_function() noexcept {
  return inner.*Row::member;
}

#define ENDPOINTS_SERVED(name)                                \
  GAPLESS_IF_DECLARED(                                        \
      name, template <> struct Treatment<table::rows::name> { \
        static constexpr Course course = Course::served;      \
        static constexpr auto function = &calls::name;        \
      };)
/// Calls that are about one group.
template <class Row>
constexpr bool is_inside = false;
#define ENDPOINTS_SERVED_INSIDE(name) \
  ENDPOINTS_SERVED(name)              \
  GAPLESS_IF_DECLARED(name, template <> constexpr bool is_inside<table::rows::name> = true;)
#define ENDPOINTS_HANDLE(name) \
  GAPLESS_IF_DECLARED(         \
      name, template <> struct Treatment<table::rows::name> { static constexpr Course course = Course::handle; };)
#include "endpoints/served.def"

#define ENDPOINTS_REPLACE(name) \
  GAPLESS_IF_DECLARED(          \
      name, template <> struct Treatment<table::rows::name> { static constexpr Course course = Course::replaced; };)
ENDPOINTS_REPLACED(ENDPOINTS_REPLACE)
#undef ENDPOINTS_REPLACE

/// `look(i)`, a constant, for each of the roles of a function's arguments.
template <class Row, class Look>
constexpr void for_each_role(Look look) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (look(std::integral_constant<std::size_t, i>()), ...); }
  (std::make_index_sequence<Row::argument_roles.size()>{});
}

/// `look(communicator)` for each that a call names.
template <class Row, class Arguments, class Look>
void for_each_communicator(const Arguments& arguments, Look look) noexcept {
  for_each_role<Row>([&](auto i) {
    constexpr table::Role role = Row::argument_roles[i];
    if constexpr (role.kind == RoleKind::communicator) {
      look(std::get<role.places[0]>(arguments));
    } else if constexpr (role.kind == RoleKind::communicator_place) {
      if (std::get<role.places[0]>(arguments) != nullptr) look(*std::get<role.places[0]>(arguments));
    }
  });
}

template <class Row, class Arguments>
bool is_surely_about_others(const Arguments& arguments) noexcept {
  bool are_others = true;
  for_each_communicator<Row>(arguments, [&](MPI_Comm one) { are_others = are_others && is_surely_no_endpoint(one); });
  return are_others;
}

/// The endpoint that a call is about; null if none of its communicators is one's. `freed_endpoint` if one was freed.
template <class Row, class Arguments>
Endpoint* endpoint_of(const Arguments& arguments) noexcept {
  Endpoint* found = nullptr;
  for_each_communicator<Row>(arguments, [&](MPI_Comm one) {
    if (found == nullptr) found = find_even_freed(one);
  });
  return found;
}

template <class Row>
constexpr bool has_group = has_role<Row>(RoleKind::group);

/// Does the call name a communicator? Calls that name none, such as MPI_Put or MPI_Parrived, may be so frequent that a
/// system call in each would cost noticeable time.
template <class Row>
constexpr bool has_communicator = has_role<Row>(RoleKind::communicator) || has_role<Row>(RoleKind::communicator_place);

/// Is a group, a request or a message of endpoints among the arguments of a call that names no endpoint?
template <class Row, class Arguments>
bool concerns_endpoints(const Arguments& arguments) noexcept {
  const auto is_of_one = [](MPI_Request handle) { return requests::find(handle) != nullptr; };
  bool found = false;
  for_each_role<Row>([&](auto i) {
    constexpr table::Role role = Row::argument_roles[i];
    [[maybe_unused]] const auto argument = std::get<role.places[0]>(arguments);
    if constexpr (role.kind == RoleKind::group) {
      found = found || groups::find(argument) != nullptr;
    } else if constexpr (role.kind == RoleKind::request) {
      found = found || is_of_one(argument);
    } else if constexpr (role.kind == RoleKind::request_place) {
      found = found || (argument != nullptr && is_of_one(*argument));
    } else if constexpr (role.kind == RoleKind::requests) {
      const auto all = std::get<role.places[1]>(arguments);
      found = found || (all != nullptr && std::any_of(all, all + std::max(argument, 0), is_of_one));
    } else if constexpr (role.kind == RoleKind::message_place) {
      found = found || messages::endpoint_of(argument) != nullptr;
    }
  });
  return found;
}

template <class Row>
constexpr bool has_results = std::ranges::any_of(Row::argument_roles, [](const table::Role& role) {
  return role.kind == RoleKind::answers || table::is_place_of_result(role.kind);
});

/// False for a mistake of the program: a null pointer where a result belongs.
template <class Row, class Arguments>
bool has_places_of_results(const Arguments& arguments) noexcept {
  bool are_there = true;
  for_each_role<Row>([&](auto i) {
    constexpr table::Role role = Row::argument_roles[i];
    [[maybe_unused]] const auto argument = std::get<role.places[0]>(arguments);
    if constexpr (table::is_place_of_result(role.kind)) {
      are_there = are_there && argument != nullptr;
    } else if constexpr (role.kind == RoleKind::answers) {
      are_there = are_there && (argument <= 0 || std::get<role.places[1]>(arguments) != nullptr);
    }
  });
  return are_there;
}

template <class Row>
constexpr bool makes_communicator = has_role<Row>(RoleKind::new_communicator);

/// The handle that the calling thread is freeing, which callbacks may still use. Null: none.
constinit thread_local const MPI_Comm* being_freed = nullptr;

class BeingFreed {
 public:
  explicit BeingFreed(MPI_Comm handle) noexcept : handle_(handle), outer_(being_freed) { being_freed = &handle_; }
  ~BeingFreed() { being_freed = outer_; }
  BeingFreed(const BeingFreed&) = delete;
  BeingFreed& operator=(const BeingFreed&) = delete;

 private:
  MPI_Comm handle_;
  const MPI_Comm* outer_;  ///< of the callback that this happens in
};

template <class Row, class Arguments>
MPI_Comm first_communicator(const Arguments& arguments) noexcept {
  constexpr int place = place_of(Row::argument_roles, RoleKind::communicator);
  constexpr int address = place_of(Row::argument_roles, RoleKind::communicator_place);
  if constexpr (place != nowhere) {
    return std::get<place>(arguments);
  } else if constexpr (address != nowhere) {
    return *std::get<address>(arguments);
  } else {
    return MPI_COMM_NULL;
  }
}

template <class Row, class Function>
struct Wrapped;

template <class Row, class... Arguments>
struct Wrapped<Row, int (*)(Arguments...)> {
  /// Hands its arguments on as they came, so that nothing is saved or moved for a call that is about others.
  static int call(Arguments... arguments) {
    if (!is_surely_about_others<Row>(std::tie(arguments...))) [[unlikely]]
      return call_on_any(arguments...);
    if (has_outstanding_operations()) [[unlikely]]
      return pass_on_meanwhile(arguments...);
    return pass_on(arguments...);
  }

 private:
  static int pass_on(Arguments... arguments) {
    if constexpr (has_group<Row>) {
      if (concerns_endpoints<Row>(std::tie(arguments...))) return raise_without_object(unserved(Row::name));
    }
    const int code = inner_function<Row>()(arguments...);
    if constexpr (makes_communicator<Row>) {
      const auto made = std::get<place_of(Row::argument_roles, RoleKind::new_communicator)>(std::tie(arguments...));
      if (code == MPI_SUCCESS && made != nullptr) reuse(*made);
    }
    return code;
  }

  [[gnu::noinline]] static int call_on_freed(Arguments... arguments) noexcept {
    if (being_freed != nullptr && first_communicator<Row>(std::tie(arguments...)) == *being_freed) {
      return inner_function<Row>()(arguments...);
    }
    return raise_without_object(code_of_freed(Row::name));
  }

  [[gnu::noinline]] static int pass_on_meanwhile(Arguments... arguments) {
    const InLibrary meanwhile(has_communicator<Row> || has_group<Row>);
    return pass_on(arguments...);
  }

  [[gnu::noinline]] static int call_on_any(Arguments... arguments) {
    Endpoint* const endpoint = endpoint_of<Row>(std::tie(arguments...));
    if (endpoint == nullptr) return pass_on_meanwhile(arguments...);
    if (endpoint == &freed_endpoint) return call_on_freed(arguments...);
    if constexpr (has_role<Row>(RoleKind::communicator_place)) {
      const BeingFreed meanwhile(endpoint->handle);
      return carry_out(*endpoint, arguments...);
    } else {
      return carry_out(*endpoint, arguments...);
    }
  }

  static int carry_out(Endpoint& endpoint, Arguments... arguments) noexcept {
    if constexpr (is_inside<Row>) {
      if (endpoint.sides.is_inter()) return calls::raise(endpoint, unserved(Row::name));
    }
    if constexpr (Treatment<Row>::course == Course::served) {
      if (!has_places_of_results<Row>(std::tie(arguments...))) [[unlikely]]
        return calls::raise(endpoint, MPI_ERR_ARG);
      try {
        return Treatment<Row>::function(endpoint, arguments...);
      } catch (const std::exception&) {
        return calls::raise(endpoint, MPI_ERR_NO_MEM);
      }
    } else if constexpr (Treatment<Row>::course == Course::handle) {
      return inner_function<Row>()(arguments...);
    } else {
      return calls::raise(endpoint, unserved(Row::name));
    }
  }
};

/// A call that endpoints carry out for every handle.
template <class Row, auto function>
struct Replaced;

template <class Row, class... Arguments, int (*function)(Arguments...)>
struct Replaced<Row, function> {
  static void* entry() noexcept { return reinterpret_cast<void*>(has_results<Row> ? &call : function); }

 private:
  static int call(Arguments... arguments) {
    const auto all = std::tie(arguments...);
    if (!has_places_of_results<Row>(all) && concerns_endpoints<Row>(all)) [[unlikely]]
      return raise_without_object(MPI_ERR_ARG);
    return function(arguments...);
  }
};

/// Wrapped for programs with a static world: MPI_COMM_WORLD and MPI_COMM_SELF are those of the calling thread.
template <class Row, class Function>
struct OfThread;

template <class Row, class... Arguments>
struct OfThread<Row, int (*)(Arguments...)> {
  static int call(Arguments... arguments) {
    if (attached_to != nullptr) translate(std::tie(arguments...));
    return Wrapped<Row, int (*)(Arguments...)>::call(arguments...);
  }

 private:
  template <class All>
  static void translate(const All& arguments) noexcept {
    for_each_role<Row>([&](auto i) {
      constexpr table::Role role = Row::argument_roles[i];
      if constexpr (role.kind == RoleKind::communicator) {
        MPI_Comm& communicator = std::get<role.places[0]>(arguments);
        communicator = meaning_of(communicator);
      }
    });
  }
};

template <class Row, template <class, class> class Entry>
void add(std::vector<gapless_variant_entry>& entries, const char* name) {
  using Function = decltype(Row::native_function());
  if (inner_function<Row>() == nullptr) return;
  // A call that names no communicator may wait for other processes, too.
  if constexpr (Treatment<Row>::course != Course::replaced)
    entries.push_back({name, reinterpret_cast<void*>(&Entry<Row, Function>::call)});
}

/// `freed_endpoint` if one was freed.
template <class Handle>
Endpoint* endpoint_behind(Handle handle) noexcept {
  if constexpr (std::is_same_v<Handle, MPI_Comm>) return find_even_freed(meaning_of(handle));
  return nullptr;
}

/// The library has made a communicator there, under a handle that an endpoint may have had.
template <class Argument>
void reuse_made(Argument made) noexcept {
  if constexpr (std::is_same_v<Argument, MPI_Comm*>) {
    if (made != nullptr) reuse(*made);
  }
}

/// An extension of the library: an endpoint's handle is refused. Its first argument is the handle.
template <int number, class First, class... Others>
struct WrappedExtension {
  using Function = int (*)(First, Others...);
  static inline const char* name = nullptr;
  static inline Function function = nullptr;
  static int call(First first, Others... others) {
    if (const Endpoint* endpoint = endpoint_behind(first)) [[unlikely]] {
      return endpoint == &freed_endpoint ? raise_without_object(code_of_freed(name))
                                         : calls::raise(*endpoint, unserved(name));
    }
    if constexpr (std::is_same_v<First, MPI_Request> && sizeof...(Others) == 0) {
      if (const requests::Request* request = requests::find(first); request != nullptr && request->task != nullptr) {
        if (request->endpoint != nullptr) progress(*request->endpoint);
        return !request->is_active || request->is_done() ? 1 : 0;  // MPIX_Request_is_complete
      }
    }
    const InLibrary meanwhile;
    const int code = function(first, others...);
    if (code == MPI_SUCCESS) (reuse_made(others), ...);
    return code;
  }
};

void add_extensions(std::vector<gapless_variant_entry>& entries) {
  std::vector<gapless_variant_entry> found;
  for (const gapless_variant_entry& entry : entries_of_this_layer()) {
#define GAPLESS_EXTENSION(bare, ...)                                           \
  if (std::strcmp(entry.name, #bare) == 0) {                                   \
    using Entry = WrappedExtension<__COUNTER__, __VA_ARGS__>;                  \
    Entry::name = "MPIX_" #bare;                                               \
    Entry::function = reinterpret_cast<Entry::Function>(entry.implementation); \
    found.push_back({#bare, reinterpret_cast<void*>(&Entry::call)});           \
  }
#include "mpi/table/extensions.def"
  }
  entries.insert(entries.end(), found.begin(), found.end());
}

template <template <class, class> class Entry>
std::vector<gapless_variant_entry> all_entries() {
  std::vector<gapless_variant_entry> entries;
#define GAPLESS_WRAP(name) GAPLESS_IF_DECLARED(name, (add<table::rows::name, Entry>(entries, #name));)
#define GAPLESS_WRAP_intercepted(name) GAPLESS_WRAP(name)
#define GAPLESS_WRAP_guarded(name) GAPLESS_WRAP(name)
#define GAPLESS_WRAP_waiting(name) GAPLESS_WRAP(name)
#define GAPLESS_WRAP_endpoints(name) GAPLESS_WRAP(name)
#define GAPLESS_WRAP_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_WRAP_##mark(name)
#include "mpi/table/functions.def"
#define ENDPOINTS_ADD(name)                            \
  GAPLESS_IF_DECLARED(name, if (inner.name != nullptr) \
                                entries.push_back({#name, Replaced<table::rows::name, &calls::name>::entry()});)
  ENDPOINTS_REPLACED(ENDPOINTS_ADD)
#undef ENDPOINTS_ADD
  add_extensions(entries);
  return entries;
}

}  // namespace

const std::vector<gapless_variant_entry>& wrapped_entries() {
  static const auto& entries = *new std::vector<gapless_variant_entry>(all_entries<Wrapped>());
  return entries;
}

const std::vector<gapless_variant_entry>& entries_of_threads() {
  static const auto& entries = *new std::vector<gapless_variant_entry>(all_entries<OfThread>());
  return entries;
}

}  // namespace gapless::mpi::endpoints
