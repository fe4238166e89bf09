// Shared segments and the registry, each between this process and a child.

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string>

#include "base/shared_segment.hpp"
#include "fabric/registry.hpp"

namespace gapless::fabric {
namespace {

/// A child that does something, says whether it went well, and waits to be killed.
class Child {
 public:
  explicit Child(const std::function<bool()>& what) {
    int ends[2];
    EXPECT_EQ(0, ::pipe(ends));
    process_ = ::fork();
    if (process_ == 0) {
      const char answer = what() ? 1 : 0;
      if (::write(ends[1], &answer, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char answer = 0;
    EXPECT_EQ(1, ::read(ends[0], &answer, 1));
    went_well_ = answer != 0;
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Child() { kill(); }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  bool went_well() const { return went_well_; }
  pid_t process() const { return process_; }

 private:
  pid_t process_ = 0;
  bool went_well_ = false;
};

constexpr std::size_t bytes = 1 << 20;

/// A file that is longer than the process may make would be a SIGXFSZ, which ends it.
TEST(SharedSegment, IsNoLongerThanFilesOfTheProcessMayBe) {
  Child child([] {
    constexpr rlimit longest{std::size_t{1} << 20, std::size_t{1} << 20};
    if (::setrlimit(RLIMIT_FSIZE, &longest) != 0) return false;
    return !SharedSegment::make("long", std::size_t{1} << 24, 4096) && SharedSegment::make("short", 4096, 4096);
  });
  EXPECT_TRUE(child.went_well());
}

TEST(SharedSegment, WhatOneProcessWritesAnotherReads) {
  SharedSegment mine = SharedSegment::make("test-of-segments", bytes, 4096);
  ASSERT_TRUE(mine);
  const pid_t owner = ::getpid();
  const Child child([owner] {
    static SharedSegment theirs = SharedSegment::open(owner, "test-of-segments", bytes);
    if (!theirs || !theirs.reserve(0, bytes)) return false;
    theirs.data()[0] = std::byte{1};
    theirs.data()[bytes - 1] = std::byte{2};
    return true;
  });
  EXPECT_TRUE(child.went_well());
  EXPECT_EQ(std::byte{1}, mine.data()[0]);
  EXPECT_EQ(std::byte{2}, mine.data()[bytes - 1]);
}

TEST(SharedSegment, IsNotOpenedUnderAnotherNameOrSize) {
  const SharedSegment mine = SharedSegment::make("test-of-names", bytes, 4096);
  ASSERT_TRUE(mine);
  EXPECT_FALSE(SharedSegment::open(::getpid(), "test-of-name", bytes));
  EXPECT_FALSE(SharedSegment::open(::getpid(), "test-of-names", bytes / 2));
  EXPECT_FALSE(SharedSegment::open(-1, "test-of-names", bytes));
  EXPECT_TRUE(SharedSegment::open(::getpid(), "test-of-names", bytes));
}

/// The range is no range of a file, so the system refuses without trying to find the memory.
TEST(SharedSegment, MemoryThatCannotBeHadIsNoticed) {
  SharedSegment mine = SharedSegment::make("test-of-limits", bytes, 4096);
  ASSERT_TRUE(mine);
  EXPECT_FALSE(mine.reserve(~std::size_t{0} >> 1, bytes));
  EXPECT_TRUE(mine.reserve(0, bytes));
}

int open_descriptors() {
  DIR* const entries = ::opendir("/proc/self/fd");
  int count = 0;
  while (::readdir(entries) != nullptr) ++count;
  ::closedir(entries);
  return count;
}

TEST(SharedSegment, StaysMappedWithoutADescriptor) {
  const SharedSegment mine = SharedSegment::make("test-of-descriptors", bytes, 4096);
  ASSERT_TRUE(mine);
  const int before = open_descriptors();
  SharedSegment theirs = SharedSegment::open(::getpid(), "test-of-descriptors", bytes);
  ASSERT_TRUE(theirs && theirs.reserve(0, bytes));
  theirs.close_file();
  EXPECT_EQ(before, open_descriptors());
  EXPECT_FALSE(theirs.reserve(0, bytes));
  theirs.data()[bytes - 1] = std::byte{3};
  EXPECT_EQ(std::byte{3}, mine.data()[bytes - 1]);
  theirs = {};
  EXPECT_EQ(before, open_descriptors());
}

class Registry : public testing::Test {
 protected:
  /// The job is looked for once in a process, so every test has processes of its own.
  static bool in_child(const char* job, const std::function<bool()>& what) {
    return Child([=] {
             if (job == nullptr) {
               ::unsetenv("PMIX_NAMESPACE");
               ::unsetenv("PMI_FD");
             } else {
               ::setenv("PMIX_NAMESPACE", job, 1);
             }
             return what();
           })
        .went_well();
  }
};

TEST_F(Registry, AnEntryEndsWithItsProcess) {
  const std::string job = "test-" + std::to_string(::getpid());
  Child entered([&] {
    ::setenv("PMIX_NAMESPACE", job.c_str(), 1);
    return registry::enter(3);
  });
  ASSERT_TRUE(entered.went_well());
  const pid_t process = entered.process();
  EXPECT_TRUE(in_child(job.c_str(), [=] { return registry::find(3) == process; }));
  EXPECT_TRUE(in_child(job.c_str(), [] { return !registry::find(2); }));
  EXPECT_TRUE(in_child(job.c_str(), [] { return !registry::enter(3); })) << "a rank is one process";
  EXPECT_TRUE(in_child((job + "-other").c_str(), [] { return !registry::find(3); }));
  entered.kill();
  EXPECT_TRUE(in_child(job.c_str(), [] { return !registry::find(3); }));
}

TEST(Processes, AreGoneThoughTheirParentHasNotWaitedForThem) {
  EXPECT_FALSE(registry::is_gone(::getpid()));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_FALSE(registry::is_gone(child));
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(0, ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT));
  EXPECT_TRUE(registry::is_gone(child));
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(registry::is_gone(child));
}

/// Launchers that a process of a job starts hand that job's name to their own jobs.
TEST_F(Registry, JobsInsideAJobAreToldApart) {
  const std::string job = "test-inside-" + std::to_string(::getpid());
  const auto has_launcher = [] {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return false;
    ::setenv("PMI_FD", std::to_string(ends[0]).c_str(), 1);
    return true;
  };
  const Child first([&] {
    ::setenv("PMIX_NAMESPACE", job.c_str(), 1);
    return has_launcher() && registry::enter(3) && registry::find(3) == ::getpid();
  });
  EXPECT_TRUE(first.went_well());
  EXPECT_TRUE(in_child(job.c_str(), [=] { return has_launcher() && !registry::find(3) && registry::enter(3); }));
  EXPECT_TRUE(in_child(job.c_str(), [] { return !registry::find(3); }));
}

/// Open MPI 4 makes names of 16 bits.
TEST_F(Registry, JobsOfOneNameAreToldApartByWhatTheyTalkTo) {
  const std::string job = "test-servers-" + std::to_string(::getpid());
  const Child first([&] {
    ::setenv("PMIX_NAMESPACE", job.c_str(), 1);
    ::setenv("PMIX_SERVER_URI2", "one", 1);
    return registry::enter(3) && registry::find(3) == ::getpid();
  });
  EXPECT_TRUE(first.went_well());
  EXPECT_TRUE(in_child(job.c_str(), [=] {
    ::setenv("PMIX_SERVER_URI2", "other", 1);
    return !registry::find(3) && registry::enter(3);
  }));
}

/// Of Cray MPICH the scheduler's variables are all that is known.
TEST_F(Registry, SchedulersNameJobs) {
  const std::string job = "test-scheduled-" + std::to_string(::getpid());
  const auto in_step = [&](const char* step, const char* rank, const std::function<bool()>& what) {
    return in_child(nullptr, [=] {
      ::setenv("SLURM_JOB_ID", job.c_str(), 1);
      ::setenv("SLURM_STEP_ID", step, 1);
      ::setenv("SLURM_PROCID", rank, 1);
      return what();
    });
  };
  Child entered([&] {
    for (const char* const name : {"PMIX_NAMESPACE", "PMI_FD"}) ::unsetenv(name);
    ::setenv("SLURM_JOB_ID", job.c_str(), 1);
    ::setenv("SLURM_STEP_ID", "0", 1);
    ::setenv("SLURM_PROCID", "3", 1);
    return registry::enter(3);
  });
  ASSERT_TRUE(entered.went_well());
  const pid_t process = entered.process();
  EXPECT_TRUE(in_step("0", "2", [=] { return registry::find(3) == process && registry::enter(2); }));
  EXPECT_TRUE(in_step("1", "3", [] { return !registry::find(3) && registry::enter(3); }));
  EXPECT_TRUE(in_step("0", "0", [] { return !registry::enter(1); })) << "of a job inside the step";
  EXPECT_TRUE(in_child(nullptr, [&] {
    ::setenv("PALS_APID", job.c_str(), 1);
    ::setenv("PALS_RANKID", "3", 1);
    return !registry::find(3) && registry::enter(3) && registry::find(3) == ::getpid();
  }));
}

TEST_F(Registry, NobodyIsInAJobThatIsNotKnown) {
  EXPECT_TRUE(in_child(nullptr, [] { return !registry::enter(0) && !registry::find(0); }));
}

}  // namespace
}  // namespace gapless::fabric
