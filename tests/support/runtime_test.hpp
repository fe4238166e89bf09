// What tests of the plugin interface share: one fixture for every plugin, and memory of each kind that a test can fill
// and read.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "device/plugin.hpp"
#include "pack/gpu_engine.hpp"
#include "random_layout.hpp"
#include "seed.hpp"

namespace gapless::tests {

using device::MemoryKind;
using device::Runtime;
using device::Status;
using layout::Mode;
using pack::Direction;
using pack::GpuEngine;
using pack::Job;
using pack::Reach;

/// Where the plugins are; the build says, and GAPLESS_TEST_PLUGIN_DIRECTORY says otherwise.
inline std::string plugin_path(const std::string& name) {
  const char* directory = std::getenv("GAPLESS_TEST_PLUGIN_DIRECTORY");
  return std::string(directory != nullptr ? directory : PLUGIN_DIRECTORY) + "/libgapless-" + name + ".so";
}

class RuntimeTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    static std::map<std::string, device::Plugin> plugins;
    const std::string name = GetParam();
    if (!plugins.contains(name)) plugins[name] = device::load_plugin(plugin_path(name));
    runtime_ = plugins[name].runtime;
    if (runtime_ == nullptr) {
      ASSERT_EQ(name, "cuda") << plugins[name].why_unavailable;
      GTEST_SKIP() << plugins[name].why_unavailable;
    }
    const auto open = reinterpret_cast<decltype(&gapless_pack_open)>(dlsym(plugins[name].library, "gapless_pack_open"));
    ASSERT_NE(open, nullptr);
    engine_ = open(gapless_pack_interface_version);
    ASSERT_NE(engine_, nullptr);
    stream_ = runtime_->stream(0);
    ASSERT_NE(stream_, nullptr) << runtime_->last_error();
  }

  void expect_ok(Status status) { EXPECT_EQ(status, Status::ok) << runtime_->last_error(); }

  Runtime* runtime_ = nullptr;
  GpuEngine* engine_ = nullptr;
  void* stream_ = nullptr;
};

/// Memory of one kind, with a pinned buffer through which the test fills and reads it.
class Memory {
 public:
  Memory(Runtime& runtime, MemoryKind kind, std::size_t bytes, int device = 0)
      : runtime_(runtime), kind_(kind), bytes_(bytes), device_(device) {
    EXPECT_EQ(runtime.allocate(kind, device, bytes, &pointer_), Status::ok) << runtime.last_error();
    EXPECT_EQ(runtime.allocate(MemoryKind::pinned, device, bytes, &window_), Status::ok) << runtime.last_error();
  }
  ~Memory() {
    runtime_.release(kind_, device_, pointer_);
    runtime_.release(MemoryKind::pinned, device_, window_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  char* pointer() const { return static_cast<char*>(pointer_); }

  void fill(const std::vector<char>& contents) {
    std::memcpy(window_, contents.data(), contents.size());
    move(pointer_, window_);
  }
  std::vector<char> contents() {
    move(window_, pointer_);
    return {static_cast<char*>(window_), static_cast<char*>(window_) + bytes_};
  }

 private:
  void move(void* destination, const void* source) {
    void* stream = runtime_.stream(device_);
    EXPECT_EQ(runtime_.copy(destination, source, bytes_, device_, stream), Status::ok) << runtime_.last_error();
    EXPECT_EQ(runtime_.synchronize(device_, stream), Status::ok) << runtime_.last_error();
  }

  Runtime& runtime_;
  MemoryKind kind_;
  std::size_t bytes_;
  int device_;
  void* pointer_ = nullptr;
  void* window_ = nullptr;
};

inline std::vector<char> random_bytes(RandomLayouts& random, std::size_t count) {
  std::vector<std::uint64_t> words(count / 8 + 1);
  for (auto& word : words) word = random.bits();
  std::vector<char> bytes(count);
  std::memcpy(bytes.data(), words.data(), count);
  return bytes;
}

#define GAPLESS_FOR_EVERY_PLUGIN(Fixture)                                                  \
  INSTANTIATE_TEST_SUITE_P(Plugin, Fixture, ::testing::Values("simulated-device", "cuda"), \
                           [](const auto& info) { return std::string(info.param) == "cuda" ? "cuda" : "simulated"; })

}  // namespace gapless::tests
