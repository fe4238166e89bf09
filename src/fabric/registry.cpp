#include "fabric/registry.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/hash.hpp"

namespace gapless::fabric::registry {
namespace {

/// The whole of a file in /proc, as far as the buffer reaches.
template <std::size_t n>
std::string_view read(const char* path, std::array<char, n>& buffer) noexcept {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::size_t length = 0;
  for (ssize_t got = 1; got > 0 && length < n; length += static_cast<std::size_t>(std::max<ssize_t>(got, 0)))
    got = ::read(file, buffer.data() + length, n - length);
  ::close(file);
  return {buffer.data(), length};
}

/// When that process began, in the kernel's ticks; 0 where that is not known.
std::uint64_t start_of(pid_t process) noexcept {
  std::array<char, 64> path;
  std::array<char, 1024> buffer{};
  std::snprintf(path.data(), path.size(), "/proc/%ld/stat", static_cast<long>(process));
  const std::string_view text = read(path.data(), buffer);
  const std::size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string_view::npos || text.size() == buffer.size()) return 0;
  std::uint64_t start = 0;
  // Field 22 of proc(5).
  std::sscanf(text.data() + end_of_name + 1,
              " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64, &start);
  return start;
}

/// The process behind a connection of this one, if it is of this node; 0 where there is none.
pid_t process_behind(int connection) noexcept {
  ucred owner{};
  socklen_t length = sizeof owner;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &owner, &length) == 0 ? owner.pid : 0;
}

struct Job {
  std::uint64_t number = 0;  ///< that its ranks on one node have in common, and no others; 0 where it is not known
  int rank = -1;             ///< of this process in it; negative where that is not known
};

/// The job that a scheduler's variables name. A launcher that one of the job's processes has started hands these on,
/// but the processes of its own job then do not have the ranks that the variables say.
Job job_of_scheduler(std::uint64_t hash) noexcept {
  struct Scheduler {
    const char *job, *step, *rank;
  };
  // Slurm and Cray's PALS start the ranks of Cray MPICH, which say nothing else.
  for (const Scheduler& names : {Scheduler{"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID"},
                                 Scheduler{"PALS_APID", "PALS_APID", "PALS_RANKID"}}) {
    const char *const job = std::getenv(names.job), *const step = std::getenv(names.step);
    const char* const rank = std::getenv(names.rank);
    if (job == nullptr || step == nullptr || rank == nullptr) continue;
    return {hash_of(names.job, hash_of(step, hash_of(job, hash))), std::atoi(rank)};
  }
  return {};
}

Job find_job() noexcept {
  // Process numbers mean something within their name space alone.
  std::array<char, 64> name_space{};
  if (::readlink("/proc/self/ns/pid", name_space.data(), name_space.size() - 1) < 0) return {};
  std::uint64_t hash = hash_of(name_space.data());
  const char* const job = std::getenv("PMIX_NAMESPACE");
  if (job != nullptr) hash = hash_of(job, hash);
  // Open MPI 4 makes that name of 16 bits, so two jobs may share it. What their ranks on a node talk to is not shared.
  if (const char* const server = std::getenv("PMIX_SERVER_URI2"); server != nullptr) hash = hash_of(server, hash);
  // Hydra and Slurm have one process on a node for each job, which made the connection that the ranks talk to it by. Of
  // a job that is started within another one the name is the outer job's.
  const char* connection = std::getenv("PMI_FD");
  const pid_t launcher = connection == nullptr ? 0 : process_behind(std::atoi(connection));
  const std::uint64_t start = launcher <= 0 ? 0 : start_of(launcher);
  if (start == 0) return job == nullptr ? job_of_scheduler(hash) : Job{hash};
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%ld %" PRIu64, static_cast<long>(launcher), start);
  return {hash_of(text.data(), hash)};
}

const Job& own_job() noexcept {
  static const Job job = find_job();
  return job;
}

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
};

/// False where the job is not known.
bool address_of(int rank, Address& address) noexcept {
  const std::uint64_t job = own_job().number;
  if (job == 0) return false;
  address.name.sun_family = AF_UNIX;
  // A first byte of zero: the abstract name space.
  const int length = std::snprintf(address.name.sun_path + 1, sizeof address.name.sun_path - 1,
                                   "gapless/%ld/%016" PRIx64 "/%d", static_cast<long>(::geteuid()), job, rank);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
  return true;
}

}  // namespace

bool enter(int rank) noexcept {
  Address address;
  if (own_job().rank >= 0 && own_job().rank != rank) return false;
  if (!address_of(rank, address)) return false;
  const int file = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return false;
  const auto* name = reinterpret_cast<const sockaddr*>(&address.name);
  // Every process of the node looks here once, and is never accepted.
  if (::bind(file, name, address.length) == 0 && ::listen(file, SOMAXCONN) == 0)
    return true;  // open as long as it runs
  ::close(file);
  return false;
}

std::optional<pid_t> find(int rank) noexcept {
  Address address;
  if (!address_of(rank, address)) return {};
  const int file = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return {};
  ucred owner{};
  socklen_t length = sizeof owner;
  const bool found = ::connect(file, reinterpret_cast<const sockaddr*>(&address.name), address.length) == 0 &&
                     ::getsockopt(file, SOL_SOCKET, SO_PEERCRED, &owner, &length) == 0;
  ::close(file);
  if (!found || owner.pid <= 0 || owner.uid != ::geteuid()) return {};
  return owner.pid;
}

bool has_left(int rank) noexcept {
  Address address;
  if (!address_of(rank, address)) return false;
  const int file = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return false;
  // Who is there is not asked: it accepts no connections, and each one made would stay in its queue.
  const bool is_nobodys = ::bind(file, reinterpret_cast<const sockaddr*>(&address.name), address.length) == 0;
  ::close(file);
  return is_nobodys;
}

bool is_gone(pid_t process) noexcept {
#if defined(SYS_pidfd_open)
  // Tells also of a process that has ended and that its parent has not waited for.
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (descriptor >= 0) {
    pollfd asked{descriptor, POLLIN, 0};
    const bool has_ended = ::poll(&asked, 1, 0) == 1;
    ::close(descriptor);
    return has_ended;
  }
#endif
  return ::kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace gapless::fabric::registry
