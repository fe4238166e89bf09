#include "endpoints/communicators/groups.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "endpoints/inner.hpp"

namespace gapless::mpi::endpoints::groups {
namespace {

struct Records {
  std::mutex mutex;
  std::unordered_map<std::uintptr_t, std::shared_ptr<const Group>> all;  ///< by handle
};

Records& records() {
  static auto& one = *new Records;
  return one;
}

std::atomic<int> count{0};

/// One that the library has not given before.
int make_handle(MPI_Group* handle) noexcept {
  MPI_Group self;
  if (const int code = native.Comm_group(MPI_COMM_SELF, &self); code != MPI_SUCCESS) return code;
  const int first = 0;
  const int code = native.Group_incl(self, 1, &first, handle);
  native.Group_free(&self);
  return code;
}

}  // namespace

int make(Group group, MPI_Group* handle) {
  if (group.members.empty()) {
    *handle = MPI_GROUP_EMPTY;
    return MPI_SUCCESS;
  }
  auto record = std::make_shared<const Group>(std::move(group));
  if (const int code = make_handle(handle); code != MPI_SUCCESS) return code;
  const std::lock_guard lock(records().mutex);
  records().all.insert_or_assign(number_of(*handle), std::move(record));
  count.store(static_cast<int>(records().all.size()), std::memory_order_relaxed);
  return MPI_SUCCESS;
}

std::shared_ptr<const Group> find(MPI_Group handle) noexcept {
  if (are_none()) return nullptr;
  const std::lock_guard lock(records().mutex);
  const auto found = records().all.find(number_of(handle));
  return found == records().all.end() ? nullptr : found->second;
}

void forget(MPI_Group handle) noexcept {
  const std::lock_guard lock(records().mutex);
  records().all.erase(number_of(handle));
  count.store(static_cast<int>(records().all.size()), std::memory_order_relaxed);
}

bool are_none() noexcept { return count.load(std::memory_order_relaxed) == 0; }

int rank_of(const std::vector<Identity>& members, const Identity& one) noexcept {
  const auto found = std::find(members.begin(), members.end(), one);
  return found == members.end() ? MPI_UNDEFINED : static_cast<int>(found - members.begin());
}

int compare(std::vector<Identity> a, std::vector<Identity> b) {
  if (a == b) return MPI_IDENT;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b ? MPI_SIMILAR : MPI_UNEQUAL;
}

}  // namespace gapless::mpi::endpoints::groups
