// Two processes with a pipe between them, for fabrics that need two.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <vector>

namespace gapless::tests {

/// What one process tells the other. Waiting makes progress meanwhile, for software fabrics do nothing by themselves.
class Wire {
 public:
  explicit Wire(int descriptor) : descriptor_(descriptor) {}

  template <class Value>
  void put(const Value& value) {
    put_bytes(std::as_bytes(std::span(&value, 1)));
  }
  template <class Value, class Progress>
  Value get(const Progress& progress) {
    Value value{};
    get_bytes(std::as_writable_bytes(std::span(&value, 1)), progress);
    return value;
  }
  void put_bytes(std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  /// False if the other process is gone.
  template <class Progress>
  bool get_bytes(std::span<std::byte> bytes, const Progress& progress) {
    while (!bytes.empty()) {
      pollfd ready{descriptor_, POLLIN, 0};
      if (::poll(&ready, 1, 0) == 0) {
        progress();
        sched_yield();
        continue;
      }
      const ssize_t count = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
      if (count <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return true;
  }
  template <class Progress>
  void meet(const Progress& progress) {
    put(char{1});
    get<char>(progress);
  }

 private:
  int descriptor_;
};

/// Runs each in a process of its own, for a minute (GAPLESS_TEST_LIMIT_S) at most. An exit status of 0 is expected, or,
/// of a process that is to die, SIGKILL.
inline void in_two_processes(const std::function<void(Wire&)>& left, const std::function<void(Wire&)>& right,
                             bool left_dies = false) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const std::function<void(Wire&)>* bodies[] = {&left, &right};
  pid_t children[2];
  std::fflush(nullptr);
  for (int i = 0; i < 2; ++i) {
    children[i] = fork();
    ASSERT_GE(children[i], 0);
    if (children[i] > 0) continue;
    const char* limit = std::getenv("GAPLESS_TEST_LIMIT_S");
    alarm(limit == nullptr ? 60 : static_cast<unsigned>(std::atoi(limit)));
    close(ends[1 - i]);
    Wire wire(ends[i]);
    (*bodies[i])(wire);
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  close(ends[0]);
  close(ends[1]);
  for (int i = 0; i < 2; ++i) {
    int status = 0;
    EXPECT_EQ(waitpid(children[i], &status, 0), children[i]);
    if (i == 0 && left_dies) {
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    } else {
      EXPECT_EQ(status, 0) << (i == 0 ? "left" : "right");
    }
  }
}

}  // namespace gapless::tests
