// Every function of the table that takes a communicator, called with an endpoint's handle: what endpoints do not serve
// is refused, through the handle's error handler, by name. None reaches the library's communicator behind the handle.
// And before the first endpoint is made, nothing leads anywhere else than without endpoints.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "declared.hpp"
#include "gapless/endpoints.h"
#include "mpi/table/roles.hpp"
#include "support/environment.hpp"

#define CONCATENATE_(a, b) a##b
#define CONCATENATE(a, b) CONCATENATE_(a, b)
#define IF_0(...)
#define IF_1(...) __VA_ARGS__
#define GAPLESS_IF_DECLARED(name, ...) CONCATENATE(IF_, GAPLESS_DECLARED_##name)(__VA_ARGS__)

namespace gapless::test {
namespace {

namespace table = gapless::mpi::table;
using table::RoleKind;

std::set<std::string> treated() {
  std::set<std::string> names;
#define ENDPOINTS_SERVED(name) names.insert(#name);
#define ENDPOINTS_HANDLE(name) names.insert(#name);
#include "endpoints/served.def"
  return names;
}

/// Those that endpoints carry out by themselves.
std::set<std::string> carried_out() {
  std::set<std::string> names;
#define ENDPOINTS_SERVED(name) names.insert(#name);
#define ENDPOINTS_HANDLE(name)
#include "endpoints/served.def"
  return names;
}

std::string raised;

void remember_error(MPI_Comm*, int* code, ...) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(*code, text, &length);
  raised = text;
}

/// The codes of the calls that have the handle in the place of one of that kind, or its address in one of `place`, and
/// nothing elsewhere.
template <const auto& roles, RoleKind kind, RoleKind place, class Handle, class... Arguments>
std::vector<int> codes_of(int (*function)(Arguments...), Handle handle) {
  std::vector<int> codes;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    const auto call = [&]<std::size_t k>() {
      constexpr table::Role role = roles[k];
      std::tuple<Arguments...> arguments{};
      Handle copy = handle;
      if constexpr (role.kind == kind) {
        std::get<role.places[0]>(arguments) = handle;
        codes.push_back(std::apply(function, arguments));
      } else if constexpr (role.kind == place) {
        std::get<role.places[0]>(arguments) = &copy;
        codes.push_back(std::apply(function, arguments));
      }
    };
    (call.template operator()<i>(), ...);
  }
  (std::make_index_sequence<roles.size()>{});
  return codes;
}

/// Those that endpoints carry out for every group.
std::set<std::string> of_groups() {
  std::set<std::string> names;
  for (const char* name : {"size", "rank", "translate_ranks", "compare", "union", "intersection", "difference", "incl",
                           "excl", "range_incl", "range_excl", "free"})
    names.insert(std::string("Group_") + name);
  names.insert({"Comm_create_from_group", "Intercomm_create_from_groups"});
  return names;
}

struct Tally {
  std::set<std::string> refused;
  std::set<std::string> past_us;  ///< not exported, so the library's answer
};

template <const auto& roles, RoleKind kind, RoleKind place, class Handle, class Function>
void look_at(const char* name, bool is_exported, Function function, Handle handle, const std::set<std::string>& served,
             Tally& tally) {
  if constexpr (table::place_of(roles, kind) != table::nowhere || table::place_of(roles, place) != table::nowhere) {
    if (!is_exported) {
      tally.past_us.insert(name);
      return;
    }
    if (served.contains(name)) return;
    raised.clear();
    if constexpr (!std::is_null_pointer_v<Function>) {
      for (const int code : codes_of<roles, kind, place>(function, handle)) {
        EXPECT_EQ(MPI_ERR_UNSUPPORTED_OPERATION, error_class(code)) << name;
        EXPECT_EQ(0U, raised.find("MPI_" + std::string(name) + ":")) << name << ": " << raised;
        tally.refused.insert(name);
      }
    }
  }
}

template <const auto& roles>
constexpr bool has_a_result = std::ranges::any_of(roles, [](const table::Role& role) {
  return table::is_place_of_result(role.kind);
});

/// The handle is there, and nothing else, nor a place for a result.
template <const auto& roles, class Function>
void look_for_places(const char* name, Function function, MPI_Comm handle, const std::set<std::string>& served,
                     std::set<std::string>& refused) {
  if constexpr (has_a_result<roles>) {
    if (!served.contains(name)) return;
    for (const int code : codes_of<roles, RoleKind::communicator, RoleKind::communicator_place>(function, handle)) {
      EXPECT_EQ(MPI_ERR_ARG, error_class(code)) << name;
      refused.insert(name);
    }
  }
}

template <class... Arguments>
using Extension = int (*)(Arguments...);
/// Null where the library has none of that name.
template <class... Arguments>
Extension<Arguments...> extension(const std::string& name) {
  const bool is_there = dlsym(RTLD_NEXT, ("P" + name).c_str()) != nullptr;
  return is_there ? reinterpret_cast<Extension<Arguments...>>(dlsym(RTLD_DEFAULT, name.c_str())) : nullptr;
}

template <class First, class... Others>
void look_at_extension([[maybe_unused]] const std::string& name, [[maybe_unused]] MPI_Comm endpoint) {
  if constexpr (std::is_same_v<First, MPI_Comm>) {
    auto* const function = extension<First, Others...>(name);
    if (function == nullptr) return;
    raised.clear();
    EXPECT_EQ(MPI_ERR_UNSUPPORTED_OPERATION, error_class(function(endpoint, Others{}...))) << name;
    EXPECT_EQ(0U, raised.find(name + ":")) << name << ": " << raised;
  }
}

namespace roles_of {
using namespace table::vocabulary;  // NOLINT: the rows are written in it
#define GAPLESS_FUNCTION(name, mark, since, roles_) [[maybe_unused]] constexpr auto name = roles_;
#include "mpi/table/functions.def"
}  // namespace roles_of

// What is not exported need not be declared: Open MPI's header hides what MPI has removed.
#define LOOK_AT(name) look_at<roles_of::name, kind, place>(#name, true, &MPI_##name, handle, served, tally);
#define LOOK_AT_intercepted(name) LOOK_AT(name)
#define LOOK_AT_guarded(name) LOOK_AT(name)
#define LOOK_AT_endpoints(name) LOOK_AT(name)
#define LOOK_AT_waiting(name) LOOK_AT(name)
#define LOOK_AT_passed(name) look_at<roles_of::name, kind, place>(#name, false, nullptr, handle, served, tally);

template <RoleKind kind, RoleKind place, class Handle>
void walk(Handle handle, const std::set<std::string>& served, Tally& tally) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define GAPLESS_FUNCTION(name, mark, since, roles_) GAPLESS_IF_DECLARED(name, LOOK_AT_##mark(name))
#include "mpi/table/functions.def"
#pragma GCC diagnostic pop
}

#define LOOK_FOR_PLACES(name) look_for_places<roles_of::name>(#name, &MPI_##name, handle, served, refused);
#define LOOK_FOR_PLACES_intercepted(name) LOOK_FOR_PLACES(name)
#define LOOK_FOR_PLACES_guarded(name) LOOK_FOR_PLACES(name)
#define LOOK_FOR_PLACES_endpoints(name) LOOK_FOR_PLACES(name)
#define LOOK_FOR_PLACES_waiting(name) LOOK_FOR_PLACES(name)
#define LOOK_FOR_PLACES_passed(name)

/// The names of those that were called.
std::set<std::string> walk_without_places(MPI_Comm handle) {
  const std::set<std::string> served = carried_out();
  std::set<std::string> refused;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define GAPLESS_FUNCTION(name, mark, since, roles_) GAPLESS_IF_DECLARED(name, LOOK_FOR_PLACES_##mark(name))
#include "mpi/table/functions.def"
#pragma GCC diagnostic pop
  return refused;
}

TEST(Table, BeforeTheFirstEndpointCallsGoWhereTheyWent) {
  auto* slots = reinterpret_cast<std::size_t (*)(char*, std::size_t)>(dlsym(RTLD_DEFAULT, "gapless_shim_report"));
  ASSERT_NE(nullptr, slots);
  std::vector<char> report(4096);
  slots(report.data(), report.size());
  EXPECT_NE(nullptr, std::strstr(report.data(), "redirected=no")) << report.data();
}

TEST(Table, NoFunctionFallsThrough) {
  MPI_Comm endpoint;
  ASSERT_EQ(MPI_SUCCESS, MPIX_Comm_create_endpoints(MPI_COMM_SELF, 1, MPI_INFO_NULL, &endpoint));
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(remember_error, &handler);
  MPI_Comm_set_errhandler(endpoint, handler);
  Tally tally;
  walk<RoleKind::communicator, RoleKind::communicator_place>(endpoint, treated(), tally);
  for (const char* name : {"Comm_spawn", "Comm_accept", "File_open", "Win_create", "Win_allocate"})
    EXPECT_TRUE(tally.refused.contains(name)) << name;
  // Handle conversions, and the handler that the library keeps under the handle.
  for (const std::string& name : tally.past_us) {
    const std::set<std::string> right{"Comm_c2f", "Comm_toint", "Errhandler_get", "Errhandler_set"};
    EXPECT_TRUE(right.contains(name)) << name;
  }
  // Extensions that the library has are refused too.
#define GAPLESS_EXTENSION(name, ...) look_at_extension<__VA_ARGS__>("MPIX_" #name, endpoint);
#include "mpi/table/extensions.def"
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&endpoint);
}

TEST(Table, NoResultIsWithoutAPlace) {
  MPI_Comm endpoint;
  ASSERT_EQ(MPI_SUCCESS, MPIX_Comm_create_endpoints(MPI_COMM_SELF, 1, MPI_INFO_NULL, &endpoint));
  MPI_Comm_set_errhandler(endpoint, MPI_ERRORS_RETURN);
  const std::set<std::string> refused = walk_without_places(endpoint);
  for (const char* name : {"Comm_rank", "Comm_dup", "Comm_group", "Cart_shift", "Isend", "Send_init", "Iallreduce",
                           "Mprobe", "Dist_graph_create"})
    EXPECT_TRUE(refused.contains(name)) << name;
  MPI_Comm_free(&endpoint);
}

/// What an extension makes may have the handle that an endpoint had.
TEST(Table, WhatAnExtensionMakesIsNoFreedEndpoint) {
#if defined(MPIX_STREAM_NULL)
  // MPICH 5.0.2 ends in an assertion where it is to shrink a communicator.
  auto* const create = extension<MPI_Comm, int, MPI_Comm*>("MPIX_Stream_comm_create");
  const auto make = [create](MPI_Comm* made) { return create(MPI_COMM_SELF, MPIX_STREAM_NULL, made); };
#else
  auto* const create = extension<MPI_Comm, MPI_Comm*>("MPIX_Comm_shrink");
  const auto make = [create](MPI_Comm* made) { return create(MPI_COMM_SELF, made); };
#endif
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm made = MPI_COMM_NULL;
  int as_freed = 0;
  for (int round = 0; round < 64; ++round) {
    MPI_Comm endpoint = MPI_COMM_NULL;
    ASSERT_EQ(MPI_SUCCESS, MPIX_Comm_create_endpoints(MPI_COMM_SELF, 1, MPI_INFO_NULL, &endpoint));
    const MPI_Comm handle = endpoint;
    MPI_Comm_free(&endpoint);
    if (create == nullptr || make(&made) != MPI_SUCCESS) GTEST_SKIP() << "the library makes none";
    as_freed += made == handle ? 1 : 0;
    int size = 0;
    MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_SUCCESS, MPI_Comm_size(made, &size));
    EXPECT_EQ(1, size);
    if (size != 1) break;
    MPI_Comm_free(&made);
  }
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  RecordProperty("as_freed", as_freed);
}

/// A group of endpoints in a call that is not about endpoints.
TEST(Table, NoFunctionTakesAGroupOfEndpointsForOneOfProcesses) {
  MPI_Comm endpoint;
  MPI_Group group;
  ASSERT_EQ(MPI_SUCCESS, MPIX_Comm_create_endpoints(MPI_COMM_SELF, 1, MPI_INFO_NULL, &endpoint));
  ASSERT_EQ(MPI_SUCCESS, MPI_Comm_group(endpoint, &group));
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(remember_error, &handler);
  for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(comm, handler);
  Tally tally;
  walk<RoleKind::group, RoleKind::group_place>(group, of_groups(), tally);
  EXPECT_LE(4U, tally.refused.size());
  for (const std::string& name : tally.past_us) {
    const std::set<std::string> right{"Group_c2f", "Group_toint"};
    EXPECT_TRUE(right.contains(name)) << name;
  }
  for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  MPI_Group_free(&group);
  MPI_Comm_free(&endpoint);
}

}  // namespace
}  // namespace gapless::test
