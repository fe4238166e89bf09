// How core finds a GPU runtime, or says why not. Each test needs a process of its own, with the environment that
// CMakeLists.txt gives it, because core looks once.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "device/device.hpp"
#include "device/driver.hpp"
#include "device/host_memory.hpp"
#include "device/plugin.hpp"

namespace gapless::tests {
namespace {

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(Availability, TurnedOff) {
  EXPECT_FALSE(device::in_use());
  EXPECT_EQ(device::runtime(), nullptr);
  EXPECT_TRUE(contains(device::why_unavailable(), "GAPLESS_GPU=0")) << device::why_unavailable();
  int local = 0;
  EXPECT_EQ(device::locate(&local).kind, device::MemoryKind::host);
}

TEST(Availability, MissingPluginIsSaidOnce) {
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(device::in_use());
  EXPECT_EQ(device::runtime(), nullptr);
  EXPECT_EQ(device::runtime(), nullptr);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.rfind("gapless: ", 0), 0u) << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
  EXPECT_TRUE(contains(device::why_unavailable(), "could not be loaded")) << device::why_unavailable();
}

TEST(Availability, NoDriverIsNoNews) {
  ::testing::internal::CaptureStderr();
  if (device::driver::find()) {
    ::testing::internal::GetCapturedStderr();
    GTEST_SKIP() << "this machine has an NVIDIA driver";
  }
  EXPECT_FALSE(device::in_use());
  const auto large = std::make_unique<char[]>(1 << 24);
  EXPECT_EQ(device::locate(large.get()).kind, device::MemoryKind::host);
  EXPECT_EQ(device::runtime(), nullptr);
  EXPECT_NE(device::why_unavailable(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Availability, AnyLibraryIsNotAPlugin) {
  EXPECT_TRUE(contains(device::load_plugin("libm.so.6").why_unavailable, "not a GPU plugin"));
}

TEST(HostMemory, KnowsOnlyWhatIsCertain) {
  static int data;
  int local = 0;
  EXPECT_FALSE(device::is_surely_host(&data)) << "nothing is certain before it has looked";
  device::learn_host_memory();
  const auto heap = std::make_unique<int>();
  const auto mapped = std::make_unique<char[]>(1 << 26);
  EXPECT_TRUE(device::is_surely_host(&data));
  EXPECT_TRUE(device::is_surely_host(&local));
  EXPECT_TRUE(device::is_surely_host(heap.get()));
  EXPECT_FALSE(device::is_surely_host(mapped.get()));
  EXPECT_FALSE(device::is_surely_host(nullptr));
  EXPECT_FALSE(device::is_surely_host(reinterpret_cast<void*>(&std::strlen))) << "other libraries' memory";
  EXPECT_FALSE(device::is_surely_host(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(&local) - 100000)))
      << "stack that is not in use";
}

}  // namespace
}  // namespace gapless::tests
