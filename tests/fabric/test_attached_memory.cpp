// Which numbers are those of a process's threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "fabric/attached_memory.hpp"

namespace gapless::fabric {
namespace {

TEST(AttachedMemory, IsReadAndWrittenByAnyThreadOfItsProcess) {
  const std::string there = "some bytes";
  std::string here(there.size(), ' ');
  std::thread([&] {
    EXPECT_NE(own_thread(), ::getpid());
    EXPECT_TRUE(read_attached(own_thread(), there.data(), here.data(), here.size()));
    EXPECT_EQ(there, here);
    std::memset(here.data(), ' ', here.size());
    EXPECT_TRUE(write_attached(own_thread(), there.data(), here.data(), here.size()));
  }).join();
  EXPECT_EQ(there, here);
}

TEST(AttachedMemory, IsOfNoThreadThatHasEndedOrIsAnothersProcess) {
  EXPECT_TRUE(is_thread_of(::getpid(), own_thread()));
  pid_t thread = 0;
  std::thread([&] {
    thread = own_thread();
    EXPECT_TRUE(is_thread_of(::getpid(), thread));
    EXPECT_FALSE(is_thread_of(::getppid(), thread));
  }).join();
  // The system may have it for a while after it has been joined.
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (is_thread_of(::getpid(), thread) && std::chrono::steady_clock::now() < late) std::this_thread::yield();
  EXPECT_FALSE(is_thread_of(::getpid(), thread));
}

}  // namespace
}  // namespace gapless::fabric
