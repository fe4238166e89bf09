// The vocabulary of functions.def: the role of each argument of an MPI function.
//
// A role names arguments by their places, counted from 0: send(0, 1, 2) is memory at argument 0 that the function, or
// the operation it starts, reads: argument 1 elements of datatype argument 2. Whatever is made from the table asks for
// roles; nothing is guessed from an argument's place, type or name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gapless::mpi::table {

// clang-format off
// X(name) for each role. In the lists of places below, b is a buffer, n a count, d displacements and t a datatype; for
// _v n and d are arrays with an entry for each process or neighbour, for _w t is one as well.
#define GAPLESS_MEMORY_ROLES(X)                                                                 \
  X(send)                     /* b n t: read */                                                 \
  X(receive)                  /* b n t: written */                                              \
  X(replace)                  /* b n t: read, then written */                                   \
  X(broadcast)                /* b n t: read at the root, written elsewhere */                  \
  X(send_one)                 /* b t: one element, read */                                      \
  X(receive_one)              /* b t: one element, written */                                   \
  X(send_partitions)          /* b p n t: p partitions of n elements, read */                   \
  X(receive_partitions)       /* b p n t */                                                     \
  X(send_to_all)              /* b n t: n elements for each process */                          \
  X(send_to_all_v)            /* b n d t */                                                     \
  X(send_to_all_w)            /* b n d t */                                                     \
  X(receive_from_all)         /* b n t: n elements from each process */                         \
  X(receive_from_all_v)       /* b n d t */                                                     \
  X(receive_from_all_w)       /* b n d t */                                                     \
  X(send_to_neighbors)        /* b n t: n elements for each neighbour that is sent to */        \
  X(send_to_neighbors_v)      /* b n d t */                                                     \
  X(send_to_neighbors_w)      /* b n d t */                                                     \
  X(receive_from_neighbors)   /* b n t: n elements from each neighbour that is received from */ \
  X(receive_from_neighbors_v) /* b n d t */                                                     \
  X(receive_from_neighbors_w) /* b n d t */                                                     \
  X(operand)                  /* b n t: read by a reduction */                                  \
  X(operand_of_all)           /* b n t: n elements for the result of each process */            \
  X(operand_of_all_v)         /* b n t: n is an array, an entry for each process's result */    \
  X(result)                   /* b n t: written by a reduction */                               \
  X(result_v)                 /* b n t: as many elements as this process's entry of n */        \
  X(result_of_scan)           /* b n t: written by a scan, or left as it was */                 \
  X(packed_in)                /* b s p: s bytes, read from position *p on */                    \
  X(packed_out)               /* b s p: s bytes, written from position *p on */                 \
  X(memory)                   /* b s: s bytes that the library keeps */

// One place each, but for arrays: count and array. A role that ends in _place is the address of the handle, which the
// function may set to null; new_ ones are the addresses of handles that it makes.
#define GAPLESS_OTHER_ROLES(X)                                                                  \
  X(target) /* rank, displacement, n, t of a window */                                          \
  X(target_rank)                                                                                \
  X(communicator) X(communicator_place) X(new_communicator)                                     \
  X(window) X(window_place) X(new_window)                                                       \
  X(file) X(file_place) X(new_file)                                                             \
  X(file_offset)     /* where in the file, in etypes of its view */                             \
  X(file_pointer)    /* a file whose individual pointer says where, and moves */                \
  X(collective_file) /* a file whose processes all make the call */                             \
  X(session) X(session_place) X(new_session)                                                    \
  X(group) X(group_place) X(new_group)                                                          \
  X(message) X(message_place) X(new_message)                                                    \
  X(request) X(request_place) X(requests)                                                       \
  X(new_request) X(new_persistent_request)                                                      \
  X(datatype_place) X(operation)                                                                \
  X(destination) X(source) X(root) X(tag) X(send_tag) X(receive_tag)                            \
  X(synchronous) /* a destination whose receive ends the send */                                \
  X(buffered)    /* a destination of which the send needs nothing */                            \
  X(status) X(statuses)                                                                         \
  X(answer)      /* where the function puts what it is asked, never null */                     \
  X(answers)     /* n a: where it puts n of these at most, null only if n is 0 */
// clang-format on

enum class RoleKind : std::uint8_t {
#define GAPLESS_ROLE(name) name,
  GAPLESS_MEMORY_ROLES(GAPLESS_ROLE) GAPLESS_OTHER_ROLES(GAPLESS_ROLE)
#undef GAPLESS_ROLE
};

constexpr bool is_memory(RoleKind kind) noexcept { return kind <= RoleKind::memory; }

/// Where the function puts a result, never null.
constexpr bool is_place_of_result(RoleKind kind) noexcept {
  return kind == RoleKind::answer || kind == RoleKind::new_communicator || kind == RoleKind::new_group ||
         kind == RoleKind::new_message || kind == RoleKind::new_request || kind == RoleKind::new_persistent_request;
}

struct Role {
  RoleKind kind;
  bool only_at_root;  ///< its arguments mean something at the root alone
  std::array<std::int8_t, 4> places;
};

/// The roles' names as functions, for the rows of the table alone.
namespace vocabulary {

#define GAPLESS_ROLE(name)                                                 \
  [[maybe_unused]] constexpr Role name(auto... places) {                   \
    return {RoleKind::name, false, {static_cast<std::int8_t>(places)...}}; \
  }
GAPLESS_MEMORY_ROLES(GAPLESS_ROLE)
GAPLESS_OTHER_ROLES(GAPLESS_ROLE)
#undef GAPLESS_ROLE

[[maybe_unused]] constexpr Role at_root(Role role) {
  role.only_at_root = true;
  return role;
}

constexpr auto roles(auto... role) { return std::array<Role, sizeof...(role)>{role...}; }

}  // namespace vocabulary

inline constexpr int nowhere = -1;

/// The first place of the first role of that kind, or nowhere.
template <std::size_t n>
constexpr int place_of(const std::array<Role, n>& roles, RoleKind kind) {
  for (const Role& role : roles) {
    if (role.kind == kind) return role.places[0];
  }
  return nowhere;
}

}  // namespace gapless::mpi::table
