// Copies between two layouts in the GPU memory of two processes, which have nothing but a handle in common. The other
// process is this program, started again.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "device/exported_memory.hpp"
#include "device/opened_memory.hpp"
#include "runtime_test.hpp"

extern char** environ;

namespace gapless::tests {
namespace {

using device::ExportedMemory;
using device::MemoryHandle;
using device::OpenedMemory;
using layout::Layout;
using layout::Offset;
using pack::PairJob;

constexpr const char* handle_variable = "GAPLESS_TEST_MEMORY_HANDLE";
constexpr const char* address_variable = "GAPLESS_TEST_MEMORY_ADDRESS";
constexpr Offset rows_of_owner = 3000, bytes_of_row = 24, stride_of_owner = 56;
constexpr Offset rows_of_peer = rows_of_owner / 2, stride_of_peer = 80;
constexpr std::size_t owners_bytes = 512 << 10, peers_bytes = 512 << 10, begin = 4096 + 8;

char owners(std::size_t i) { return static_cast<char>(i * 2654435761u >> 21); }
char peers(std::size_t i) { return static_cast<char>(i * 40503u >> 5); }
std::size_t place_at_owner(Offset k) {
  return begin + static_cast<std::size_t>(k / bytes_of_row * stride_of_owner + k % bytes_of_row);
}
std::size_t place_at_peer(Offset k) {
  return static_cast<std::size_t>(k / (2 * bytes_of_row) * stride_of_peer + k % (2 * bytes_of_row));
}
constexpr Offset packed_bytes = rows_of_owner * bytes_of_row;

template <class Value>
std::vector<char> filled(std::size_t bytes, Value value) {
  std::vector<char> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = value(i);
  return result;
}

std::string as_text(const MemoryHandle& handle) {
  std::string text;
  for (std::size_t i = 0; i < sizeof handle; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", reinterpret_cast<const unsigned char*>(&handle)[i]);
    text += digits;
  }
  return text;
}

MemoryHandle from_text(const char* text) {
  MemoryHandle handle;
  for (std::size_t i = 0; i < sizeof handle; ++i) {
    unsigned value = 0;
    if (std::sscanf(text + 2 * i, "%2x", &value) != 1) break;
    reinterpret_cast<unsigned char*>(&handle)[i] = static_cast<unsigned char>(value);
  }
  return handle;
}

class OtherProcess : public RuntimeTest {
 protected:
  const layout::LayoutPointer at_owner_ =
      layout::repeat(layout::block(0, bytes_of_row), rows_of_owner, stride_of_owner);
  const layout::LayoutPointer at_peer_ =
      layout::repeat(layout::block(0, 2 * bytes_of_row), rows_of_peer, stride_of_peer);

  /// The exit status of the test DISABLED_Peer of this program in a process of its own.
  int run_peer(const MemoryHandle& handle, const void* address) {
    char text[32];
    std::snprintf(text, sizeof text, "%p", address);
    setenv(address_variable, text, 1);
    setenv(handle_variable, as_text(handle).c_str(), 1);
    const std::string plugin = std::string(GetParam()) == "cuda" ? "cuda" : "simulated";
    std::string filter = "--gtest_filter=*DISABLED_Peer/" + plugin, also = "--gtest_also_run_disabled_tests";
    std::string program = "test_other_process", quiet = "--gtest_brief=1";
    char* const arguments[] = {program.data(), filter.data(), also.data(), quiet.data(), nullptr};
    pid_t peer = -1;
    const int error = posix_spawn(&peer, "/proc/self/exe", nullptr, nullptr, arguments, environ);
    unsetenv(handle_variable);
    if (error != 0) return -1;
    int status = -1;
    waitpid(peer, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

// What the peer does: takes the owner's rows into rows of its own, and puts rows of its own into the owner's place.
TEST_P(OtherProcess, DISABLED_Peer) {
  const char* const text = std::getenv(handle_variable);
  ASSERT_NE(text, nullptr) << "to be run by the other tests";
  const MemoryHandle handle = from_text(text);
  const int device = runtime_->device_count() > 1 ? 1 : 0;
  Memory memory(*runtime_, MemoryKind::device, peers_bytes, device);
  std::vector<char> expected = filled(peers_bytes, peers);
  memory.fill(expected);
  for (Offset k = 0; k < packed_bytes; ++k) expected[place_at_peer(k)] = owners(place_at_owner(k));
  OpenedMemory opened(*runtime_);
  Status status = Status::failed;
  const OpenedMemory::Use use = opened.use(handle, device, status);
  ASSERT_EQ(status, Status::ok) << runtime_->last_error();
  // The driver may export more than the allocation: the owner's address is not its base.
  void* const there = use.at(std::strtoull(std::getenv(address_variable), nullptr, 16) + begin);
  void* const stream = runtime_->stream(device);
  const PairJob take{at_owner_.get(), {1, 0}, there, at_peer_.get(), {1, 0}, memory.pointer()};
  expect_ok(engine_->copy(take, device, stream));
  expect_ok(runtime_->synchronize(device, stream));
  ASSERT_EQ(memory.contents(), expected);
  expected = filled(peers_bytes, peers);
  memory.fill(expected);
  const PairJob put{at_peer_.get(), {1, 0}, memory.pointer(), at_owner_.get(), {1, 0}, there};
  expect_ok(engine_->copy(put, device, stream));
  expect_ok(runtime_->synchronize(device, stream));
}

TEST_P(OtherProcess, TakesAndPutsRows) {
  ExportedMemory exported(*runtime_);
  for (int round = 0; round < 2; ++round) {  // the second time at the same address, if the driver likes it
    Memory memory(*runtime_, MemoryKind::device, owners_bytes);
    std::vector<char> expected = filled(owners_bytes, owners);
    memory.fill(expected);
    MemoryHandle handle;
    ASSERT_EQ(exported.handle_of(memory.pointer() + begin, handle), Status::ok) << runtime_->last_error();
    ASSERT_TRUE(handle.contains(reinterpret_cast<std::uintptr_t>(memory.pointer())));
    ASSERT_EQ(run_peer(handle, memory.pointer()), 0);
    for (Offset k = 0; k < packed_bytes; ++k) expected[place_at_owner(k)] = peers(place_at_peer(k));
    ASSERT_EQ(memory.contents(), expected);
  }
  std::uint64_t freed[4];
  EXPECT_GE(exported.take_freed(freed), 1u);
}

TEST_P(OtherProcess, HostMemoryIsNotExported) {
  MemoryHandle handle;
  int on_stack = 0;
  EXPECT_NE(runtime_->export_memory(&on_stack, handle), Status::ok);
  ExportedMemory exported(*runtime_);
  EXPECT_EQ(exported.handle_of(&on_stack, handle), Status::unsupported);
}

TEST_P(OtherProcess, WhatIsNoHandleIsRefused) {
  MemoryHandle nothing;
  nothing.bytes = 4096;
  nothing.process = -1;
  OpenedMemory opened(*runtime_);
  Status status = Status::ok;
  EXPECT_FALSE(opened.use(nothing, 0, status));
  EXPECT_NE(status, Status::ok);
  EXPECT_EQ(opened.counts().refused, 1u);
}

GAPLESS_FOR_EVERY_PLUGIN(OtherProcess);

}  // namespace
}  // namespace gapless::tests
