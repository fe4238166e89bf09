#include "endpoints/communicators/creation.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#include "endpoints/calls/calls.hpp"
#include "endpoints/communicators/assembly.hpp"
#include "endpoints/communicators/meeting.hpp"
#include "endpoints/communicators/parts.hpp"
#include "endpoints/communicators/static_world.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::endpoints {
namespace {

constexpr const char* create_name = "MPIX_Comm_create_endpoints";

gapless_redirect redirect_calls = nullptr;

/// What a rank of the parent asks for.
struct Wish {
  std::int64_t count;  ///< negative: an error class
  std::uint64_t process, first_number;
};

/// What `info` says under "thread_level" is one of MPI's levels, or nothing.
bool has_thread_level(MPI_Info info) noexcept {
  if (info == MPI_INFO_NULL) return true;
  char value[32] = "";
  int is_there = 0;
  native.Info_get(info, "thread_level", sizeof value - 1, value, &is_there);
  if (is_there == 0) return true;
  for (const char* level :
       {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"}) {
    if (std::strcmp(value, level) == 0) return true;
  }
  return false;
}

/// Handles are made of MPI_COMM_SELF, which is there from MPI_Init to MPI_Finalize.
bool has_world() noexcept {
  int is_initialised = 0, is_finalised = 0;
  native.Initialized(&is_initialised);
  native.Finalized(&is_finalised);
  return is_initialised != 0 && is_finalised == 0;
}

int check_arguments(int my_count, MPI_Info info, const MPI_Comm* handles) noexcept {
  if (!has_world()) return MPI_ERR_OTHER;
  int level = MPI_THREAD_SINGLE;
  native.Query_thread(&level);
  if (level != MPI_THREAD_MULTIPLE) return MPI_ERR_OTHER;
  if (my_count < 0 || (my_count > 0 && handles == nullptr)) return MPI_ERR_ARG;
  return has_thread_level(info) ? MPI_SUCCESS : MPI_ERR_INFO_VALUE;
}

int why_not(int error_class) noexcept {
  switch (error_class) {
    case MPI_ERR_OTHER:
      return code_with_text(MPI_ERR_OTHER, create_name,
                            "there is no MPI_COMM_WORLD, or MPI was not initialised with MPI_THREAD_MULTIPLE");
    case MPI_ERR_INFO_VALUE:
      return code_with_text(MPI_ERR_INFO_VALUE, create_name, "thread_level in info is no thread level of MPI");
    case MPI_ERR_NO_MEM:
      return code_with_text(MPI_ERR_NO_MEM, create_name, "some process has no communicators left for handles");
    default:
      return code_with_text(MPI_ERR_ARG, create_name,
                            "my_num_ep is negative, or the array of handles is null, in some process");
  }
}

/// The handles of the caller's ranks. They are made before the ranks agree, so that all fail if one has none. What can
/// fail in one process alone after that is to find room in the table of handles.
class Handles {
 public:
  Handles() = default;
  ~Handles() {
    for (MPI_Comm& handle : made_) inner.Comm_free(&handle);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  /// Throws nothing, for the other processes wait to hear of a failure. Memory for all of an absurd number at once may
  /// not be had, where the library runs out of communicators long before.
  int make(MPI_Comm parent, int count) noexcept {
    try {
      for (int i = 0; i < count; ++i) {
        made_.push_back(MPI_COMM_NULL);
        if (make_handle_like(parent, &made_.back()) == MPI_SUCCESS) continue;
        made_.pop_back();
        return MPI_ERR_NO_MEM;
      }
    } catch (const std::exception&) {
      return MPI_ERR_NO_MEM;
    }
    return MPI_SUCCESS;
  }
  /// The caller's ranks, from local index `first` on, get them: all or none.
  int give(Communicator& communicator, int first, MPI_Comm* handles) {
    for (std::size_t i = 0; i < made_.size(); ++i) {
      const int code = claim(communicator, first + static_cast<int>(i), made_[i]);
      if (code == MPI_SUCCESS) continue;
      while (i-- > 0) leave(*find(made_[i]));
      return code;
    }
    std::copy(made_.begin(), made_.end(), handles);
    made_.clear();
    return MPI_SUCCESS;
  }

 private:
  std::vector<MPI_Comm> made_;
};

Wish wish_of(MPI_Comm parent, int my_count, MPI_Info info, const MPI_Comm* handles, Handles& made) {
  int mistake = check_arguments(my_count, info, handles);
  if (mistake == MPI_SUCCESS) mistake = made.make(parent, my_count);
  const auto numbers = static_cast<std::uint64_t>(std::max(my_count, 0));
  return {mistake != MPI_SUCCESS ? -mistake : my_count, identity_of_process(), next_number(numbers)};
}

/// Every rank of the parent finds the same.
int mistake_in(const std::vector<Wish>& wishes) noexcept {
  for (const Wish& wish : wishes) {
    if (wish.count < 0) return why_not(static_cast<int>(-wish.count));
  }
  return MPI_SUCCESS;
}

bool one_each(const std::vector<Wish>& wishes) noexcept {
  return std::all_of(wishes.begin(), wishes.end(), [](const Wish& wish) { return wish.count == 1; });
}

Identity identity(const Wish& wish, std::int64_t index) noexcept {
  return {wish.process, wish.first_number + static_cast<std::uint64_t>(index)};
}

int make_first(MPI_Comm parent, const std::vector<Wish>& wishes, std::shared_ptr<Communicator>& made) {
  made = std::make_shared<Communicator>();
  inner.Comm_rank(parent, &made->process);
  for (std::size_t process = 0; process < wishes.size(); ++process) {
    for (int local = 0; local < wishes[process].count; ++local) {
      made->places.push_back({static_cast<int>(process), local});
      made->identities.push_back(one_each(wishes) ? Identity{wishes[process].process, 0}
                                                  : identity(wishes[process], local));
    }
  }
  const std::vector<int> ranks = headers::world_ranks_of(parent);
  for (std::size_t process = 0; process < ranks.size(); ++process)
    note_world_rank(wishes[process].process, ranks[process]);
  if (wishes.size() > 1) {
    if (const int code = inner.Comm_split(parent, 0, made->process, &made->base); code != MPI_SUCCESS) return code;
    inner.Comm_set_errhandler(made->base, MPI_ERRORS_RETURN);
  }
  return assemble(made, static_cast<int>(wishes.size()), MPI_SUCCESS);
}

void switch_calls() {
  static std::once_flag once;
  std::call_once(once, [] { redirect_calls(wrapped_entries().data(), wrapped_entries().size()); });
  begin_progress();
}

int create_from_processes(MPI_Comm parent, int my_count, MPI_Info info, MPI_Comm* handles) {
  int is_inter = 0, processes = 0;
  if (const int code = inner.Comm_test_inter(parent, &is_inter); code != MPI_SUCCESS) return code;
  if (is_inter != 0) return raise_on_communicator(parent, MPI_ERR_COMM);
  if (const int code = inner.Comm_size(parent, &processes); code != MPI_SUCCESS) return code;
  Handles mine_made;
  const Wish mine = wish_of(parent, my_count, info, handles, mine_made);
  std::vector<Wish> wishes(static_cast<std::size_t>(processes));
  int code = inner.Allgather(&mine, sizeof mine, MPI_BYTE, wishes.data(), sizeof mine, MPI_BYTE, parent);
  if (code != MPI_SUCCESS) return code;
  if (const int mistake = mistake_in(wishes); mistake != MPI_SUCCESS) return raise_on_communicator(parent, mistake);
  switch_calls();
  std::shared_ptr<Communicator> made;
  code = make_first(parent, wishes, made);
  if (code == MPI_SUCCESS) code = mine_made.give(*made, 0, handles);
  give_up(*made);
  return code == MPI_SUCCESS ? code : raise_on_communicator(parent, code);
}

/// Ranks follow the order of the parent's, and live where those live.
int create_from_endpoints(Endpoint& parent, int my_count, MPI_Info info, MPI_Comm* handles) {
  if (parent.sides.is_inter()) return calls::raise(parent, MPI_ERR_COMM);
  const Communicator& whole = *parent.communicator;
  Handles mine_made;
  const Wish my_wish = wish_of(parent.handle, my_count, info, handles, mine_made);
  std::vector<Wish> wishes(whole.places.size());
  int code = calls::Allgather(parent, &my_wish, sizeof my_wish, MPI_BYTE, wishes.data(), sizeof my_wish, MPI_BYTE,
                              parent.handle);
  if (code != MPI_SUCCESS) return code;
  if (const int mistake = mistake_in(wishes); mistake != MPI_SUCCESS) return calls::raise(parent, mistake);
  std::vector<Member> members;
  std::size_t mine = 0;
  for (int rank = 0; rank < whole.size(); ++rank) {
    const Wish& wish = wishes[static_cast<std::size_t>(rank)];
    if (rank == parent.rank) mine = members.size();
    for (std::int64_t i = 0; i < wish.count; ++i)
      members.push_back(
          {rank, one_each(wishes) ? whole.identities[static_cast<std::size_t>(rank)] : identity(wish, i)});
  }
  const auto meeting = meet(parent, MPI_SUCCESS, [&](Meeting& all) {
    all.code = make_part(whole, members, 0, MPI_SUCCESS, all.made.emplace_back());
  });
  code = meeting->code;
  if (code == MPI_SUCCESS && my_count > 0) {
    Communicator& made = *meeting->made[0];
    code = mine_made.give(made, made.places[mine].local, handles);
  }
  return code == MPI_SUCCESS ? code : calls::raise(parent, code);
}

}  // namespace

void set_redirect(gapless_redirect redirect) noexcept { redirect_calls = redirect; }

void translate_worlds() { redirect_calls(entries_of_threads().data(), entries_of_threads().size()); }

int free_handle(MPI_Comm* handle) noexcept {
  Endpoint* const endpoint = find(*handle);
  return endpoint == nullptr ? MPI_ERR_COMM : calls::Comm_free(*endpoint, handle);
}

int refuse_endpoint(MPI_Comm parent, const char* function) noexcept {
  const Endpoint* const endpoint = find_even_freed(parent);
  if (endpoint == nullptr) return MPI_SUCCESS;
  return endpoint == &freed_endpoint ? raise_without_object(code_of_freed(function))
                                     : raise_on_communicator(parent, unserved(function));
}

int create(MPI_Comm parent, int my_count, MPI_Info info, MPI_Comm* handles) noexcept {
  try {
    parent = meaning_of(parent);
    Endpoint* const endpoint = find_even_freed(parent);
    if (endpoint == nullptr) return create_from_processes(parent, my_count, info, handles);
    if (endpoint == &freed_endpoint) return raise_without_object(code_of_freed(create_name));
    return create_from_endpoints(*endpoint, my_count, info, handles);
  } catch (const std::exception&) {
    return raise_on_communicator(parent, MPI_ERR_NO_MEM);
  }
}

}  // namespace gapless::mpi::endpoints
