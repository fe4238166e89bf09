#include "endpoints/rings/sharing.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "base/settings.hpp"
#include "endpoints/endpoint.hpp"
#include "endpoints/inner.hpp"
#include "fabric/attached_memory.hpp"

namespace gapless::mpi::endpoints {
namespace {

/// What processes tell each other.
struct Neighbour {
  std::uint64_t node;  ///< the same where processes can see each other; 0: this one does not want to
  std::uint64_t name;  ///< of the memory, if this process makes it
  std::int64_t process;
  const std::uint64_t* word;  ///< in its memory
  std::uint64_t value;        ///< of that word
};

/// What each says of the others of its node, once it has tried.
struct Outcome {
  bool has_memory, can_attach;
};

/// Pairs have their places in the memory, whether they talk or not.
constexpr std::size_t most_endpoints = 256;

/// Each memory that is shared costs a file descriptor.
constexpr int most_shared = 256;

/// The boot of the system and the process's namespace, beyond which its number means another process.
std::uint64_t number_of_node() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> space{};  // the link reads "pid:[4026531836]"
  if (boot.empty() || ::readlink("/proc/self/ns/pid", space.data(), space.size() - 1) <= 0) return 0;
  return hash_of(boot + space.data() + ' ' + std::to_string(::geteuid()));
}

bool is_wanted() noexcept {
  return settings().headers && !settings().fabric_neighbours && Inboxes::shared_count() < most_shared;
}

Neighbour myself() {
  static const std::uint64_t node = number_of_node();
  std::random_device random;
  static const std::uint64_t word = (std::uint64_t{random()} << 32) | random();
  return {is_wanted() ? node : 0, (std::uint64_t{random()} << 32) | random(), ::getpid(), &word, word};
}

std::array<char, 32> name_of(const Neighbour& maker) noexcept {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "gapless-ep-%016llx", static_cast<unsigned long long>(maker.name));
  return text;
}

/// The processes that share memory with this one, itself among them.
std::vector<int> find_neighbours(const Communicator& communicator, const std::vector<Neighbour>& all) {
  const auto mine = static_cast<std::size_t>(communicator.process);
  std::vector<int> neighbours;
  for (std::size_t process = 0; process < all.size(); ++process) {
    const bool is_one = all[process].node != 0 && all[process].node == all[mine].node;
    if ((is_one || process == mine) && !communicator.ranks[process].empty())
      neighbours.push_back(static_cast<int>(process));
  }
  return neighbours;
}

/// Gives the ranks of these processes their inboxes, one after the other. Returns how many there are.
std::size_t number_inboxes(Communicator& communicator, const std::vector<int>& processes) {
  for (RankPlace& place : communicator.places) place.inbox = -1;
  communicator.ranks_of_inboxes.clear();
  for (const int process : processes) {
    for (const int rank : communicator.ranks[static_cast<std::size_t>(process)]) {
      communicator.places[static_cast<std::size_t>(rank)].inbox =
          static_cast<int>(communicator.ranks_of_inboxes.size());
      communicator.ranks_of_inboxes.push_back(rank);
    }
  }
  communicator.has_strangers = communicator.ranks_of_inboxes.size() != communicator.places.size();
  return communicator.ranks_of_inboxes.size();
}

/// The process's memory can be read, and is that of no other.
bool can_attach(const Neighbour& neighbour) noexcept {
  std::uint64_t found = 0;
  return fabric::read_attached(static_cast<pid_t>(neighbour.process), neighbour.word, &found, sizeof found) &&
         found == neighbour.value;
}

/// The first of the processes makes the memory, the others join it. Collective; `shared`: all of this node have it.
int share(Communicator& communicator, bool& shared) {
  const auto processes = communicator.ranks.size();
  const Neighbour mine = myself();
  std::vector<Neighbour> all(processes);
  int code = inner.Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, communicator.base);
  if (code != MPI_SUCCESS) return code;

  const std::vector<int> neighbours = find_neighbours(communicator, all);
  const std::size_t endpoints = number_inboxes(communicator, neighbours);
  const bool possible = communicator.local_count() != 0 && neighbours.size() > 1 && endpoints <= most_endpoints;
  const bool makes = possible && neighbours.front() == communicator.process;
  const auto neighbour = [&](int process) -> const Neighbour& { return all[static_cast<std::size_t>(process)]; };
  Outcome outcome{};
  if (makes) outcome.has_memory = communicator.inboxes.make_shared(endpoints, name_of(mine).data());
  if (code = inner.Barrier(communicator.base); code != MPI_SUCCESS) return code;
  if (possible && !makes) {
    const Neighbour& maker = neighbour(neighbours.front());
    outcome.has_memory = communicator.inboxes.join(endpoints, static_cast<pid_t>(maker.process), name_of(maker).data());
  }
  outcome.can_attach = possible && std::all_of(neighbours.begin(), neighbours.end(),
                                               [&](int process) { return can_attach(neighbour(process)); });
  std::vector<Outcome> outcomes(processes);
  code =
      inner.Allgather(&outcome, sizeof outcome, MPI_BYTE, outcomes.data(), sizeof outcome, MPI_BYTE, communicator.base);
  const auto have_all = [&](bool Outcome::*what) {
    return std::all_of(neighbours.begin(), neighbours.end(),
                       [&](int process) { return outcomes[static_cast<std::size_t>(process)].*what; });
  };
  shared = possible && have_all(&Outcome::has_memory);
  if (shared && have_all(&Outcome::can_attach)) {
    for (const Neighbour& each : all) communicator.attached.push_back(static_cast<pid_t>(each.process));
  }
  return code;
}

}  // namespace

int share_inboxes(Communicator& communicator) {
  bool shared = false;
  if (communicator.has_peers()) {
    if (const int code = share(communicator, shared); code != MPI_SUCCESS) return code;
  }
  if (shared) return MPI_SUCCESS;
  const std::size_t mine = number_inboxes(communicator, {communicator.process});
  return mine == 0 || communicator.inboxes.make(mine) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

}  // namespace gapless::mpi::endpoints
