// Every exported function that takes a communicator or completes a request, wrapped: an endpoint's handle is served or
// refused by name, any other goes where it went before. Made from the table, so that no function is forgotten.
#include <cstring>
#include <exception>
#include <tuple>
#include <type_traits>
#include <vector>

#include "endpoints/calls/calls.hpp"
#include "endpoints/creation.hpp"
#include "endpoints/delivery/progress.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/table/entry_points.hpp"
#include "mpi/table/rows.hpp"

namespace gapless::mpi::endpoints {
namespace {

using table::Kind, table::nowhere, table::place_of;

enum class Answer { refused, served, handle };

template <class Row>
struct Treatment {
  static constexpr Answer answer = Answer::refused;
};
template <class Row>
struct InnerOf;

#define GAPLESS_INNER(name)                                                        \
  GAPLESS_IF_DECLARED(name, template <>                         \
                            struct InnerOf<table::rows::name> { \
                              static auto function() noexcept { return inner.name; \
  }                                                                                \
  }                                                                                \
  ;)
#define GAPLESS_INNER_intercepted(name) GAPLESS_INNER(name)
#define GAPLESS_INNER_guarded(name) GAPLESS_INNER(name)
#define GAPLESS_INNER_waiting(name) GAPLESS_INNER(name)
#define GAPLESS_INNER_refused(name) GAPLESS_INNER(name)
#define GAPLESS_INNER_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_INNER_##mark(name)
#include "mpi/table/functions.def"

#define ENDPOINTS_SERVED(name)                                \
  GAPLESS_IF_DECLARED(                                        \
      name, template <> struct Treatment<table::rows::name> { \
        static constexpr Answer answer = Answer::served;      \
        static constexpr auto function = &calls::name;        \
      };)
#define ENDPOINTS_HANDLE(name) \
  GAPLESS_IF_DECLARED(         \
      name, template <> struct Treatment<table::rows::name> { static constexpr Answer answer = Answer::handle; };)
#include "endpoints/served.def"

/// The endpoint that a call is about; null if none of its communicators is one's.
template <class Row, class Arguments>
Endpoint* endpoint_of(const Arguments& arguments) noexcept {
  Endpoint* found = nullptr;
  constexpr auto roles = Row::argument_roles;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    const auto look = [&]<std::size_t k>() {
      constexpr table::Role role = roles[k];
      if constexpr (role.kind == Kind::communicator) {
        if (found == nullptr) found = find(std::get<role.places[0]>(arguments));
      } else if constexpr (role.kind == Kind::communicator_place) {
        if (found == nullptr && std::get<role.places[0]>(arguments) != nullptr)
          found = find(*std::get<role.places[0]>(arguments));
      }
    };
    (look.template operator()<i>(), ...);
  }
  (std::make_index_sequence<roles.size()>{});
  return found;
}

template <class Row>
constexpr bool has_communicator = place_of(Row::argument_roles, Kind::communicator) != nowhere ||
                                  place_of(Row::argument_roles, Kind::communicator_place) != nowhere;

template <class Row, class Function>
struct Wrapped;

template <class Row, class... Arguments>
struct Wrapped<Row, int (*)(Arguments...)> {
  static int call(Arguments... arguments) {
    Endpoint* const endpoint = endpoint_of<Row>(std::tie(arguments...));
    if (endpoint != nullptr) [[unlikely]]
      return call_on(*endpoint, arguments...);
    if (outstanding_operations() == 0) [[likely]]
      return InnerOf<Row>::function()(arguments...);
    const InLibrary meanwhile;
    return InnerOf<Row>::function()(arguments...);
  }

 private:
  [[gnu::noinline]] static int call_on(Endpoint& endpoint, Arguments... arguments) noexcept {
    if constexpr (Treatment<Row>::answer == Answer::served) {
      try {
        return Treatment<Row>::function(endpoint, arguments...);
      } catch (const std::exception&) {
        return calls::raise(endpoint, MPI_ERR_NO_MEM);
      }
    } else if constexpr (Treatment<Row>::answer == Answer::handle) {
      return InnerOf<Row>::function()(arguments...);
    } else {
      return calls::raise(endpoint, unserved(Row::name));
    }
  }
};

template <class Row>
void add(std::vector<gapless_variant_entry>& entries, const char* name) {
  using Function = decltype(Row::native_function());
  if (InnerOf<Row>::function() == nullptr) return;
  if constexpr (has_communicator<Row>) {
    entries.push_back({name, reinterpret_cast<void*>(&Wrapped<Row, Function>::call)});
  }
}

template <class Handle>
Endpoint* endpoint_behind(Handle handle) noexcept {
  if constexpr (std::is_same_v<Handle, MPI_Comm>) return find(handle);
  return nullptr;
}

/// An extension of the library: an endpoint's handle is refused. Its first argument is the handle.
template <int number, class First, class... Others>
struct WrappedExtension {
  using Function = int (*)(First, Others...);
  static inline const char* name = nullptr;
  static inline Function function = nullptr;
  static int call(First first, Others... others) {
    if (const Endpoint* endpoint = endpoint_behind(first)) [[unlikely]]
      return calls::raise(*endpoint, unserved(name));
    const InLibrary meanwhile;
    return function(first, others...);
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

}  // namespace

const std::vector<gapless_variant_entry>& wrapped_entries() {
  static auto& entries = *new std::vector<gapless_variant_entry>;
  if (!entries.empty()) return entries;
#define GAPLESS_WRAP(name) GAPLESS_IF_DECLARED(name, add<table::rows::name>(entries, #name);)
#define GAPLESS_WRAP_intercepted(name) GAPLESS_WRAP(name)
#define GAPLESS_WRAP_guarded(name) GAPLESS_WRAP(name)
#define GAPLESS_WRAP_waiting(name) GAPLESS_WRAP(name)
#define GAPLESS_WRAP_refused(name) GAPLESS_WRAP(name)
#define GAPLESS_WRAP_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_WRAP_##mark(name)
#include "mpi/table/functions.def"
#define ENDPOINTS_ADD(name) \
  GAPLESS_IF_DECLARED(name, \
                      if (inner.name != nullptr) entries.push_back({#name, reinterpret_cast<void*>(&calls::name)});)
  ENDPOINTS_REPLACED(ENDPOINTS_ADD)
#undef ENDPOINTS_ADD
  add_extensions(entries);
  return entries;
}

}  // namespace gapless::mpi::endpoints
