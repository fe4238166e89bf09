// Packing of GPU memory through the C API: in the caller's stream, without a hidden synchronisation, and refused where
// the header says so. The GPU is the plugin that GAPLESS_DEVICE_PLUGIN names, a simulated one.
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "device/device.hpp"
#include "random_type.hpp"

namespace {

using gapless::device::MemoryKind;
using gapless::device::Status;

/// A function of the plugin's own (simulated_device.h).
template <class Function>
Function* plugin_function(const char* name) {
  static void* plugin = dlopen(std::getenv("GAPLESS_DEVICE_PLUGIN"), RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(plugin, name));
}

long count_of(const char* what) { return plugin_function<long(const char*)>("simulated_device_count")(what); }

void make_fail(const char* operation, long failures) {
  ASSERT_EQ(plugin_function<int(const char*, long, long)>("simulated_device_fail")(operation, 0, failures), 0);
}

/// Bytes in the memory of a GPU, or page-locked.
class Allocation {
 public:
  Allocation(MemoryKind kind, std::size_t bytes, int device = 0) : kind_(kind), bytes_(bytes), device_(device) {
    const Status status =
        gapless::device::runtime()->allocate(kind, device, std::max<std::size_t>(bytes, 1), &pointer_);
    EXPECT_EQ(status, Status::ok);
  }
  ~Allocation() { gapless::device::runtime()->release(kind_, device_, pointer_); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  void* at(std::int64_t offset = 0) const {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(pointer_) + static_cast<std::uintptr_t>(offset));
  }

  void fill(const std::vector<unsigned char>& contents) {
    if (kind_ == MemoryKind::pinned) {
      std::memcpy(pointer_, contents.data(), contents.size());
    } else if (!contents.empty()) {
      EXPECT_EQ(plugin_function<int(void*, const void*, std::size_t)>("simulated_device_write")(
                    pointer_, contents.data(), contents.size()),
                0);
    }
  }

  /// Waits for all work, as cudaMemcpy does.
  std::vector<unsigned char> contents() const {
    std::vector<unsigned char> result(bytes_);
    if (kind_ == MemoryKind::pinned) {
      std::memcpy(result.data(), pointer_, bytes_);
    } else if (bytes_ > 0) {
      EXPECT_EQ(plugin_function<int(void*, const void*, std::size_t)>("simulated_device_read")(result.data(), pointer_,
                                                                                               bytes_),
                0);
    }
    return result;
  }

 private:
  MemoryKind kind_;
  std::size_t bytes_;
  int device_;
  void* pointer_ = nullptr;
};

class GpuMemory : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(gapless::device::runtime(), nullptr) << gapless::device::why_unavailable();
    stream_ = gapless::device::runtime()->stream(0);
    ASSERT_NE(stream_, nullptr);
    plugin_function<void()>("simulated_device_reset_counts")();
  }

  void synchronize() { EXPECT_EQ(gapless::device::runtime()->synchronize(0, stream_), Status::ok); }

  void expect_refused(gapless_status got, gapless_status expected, const char* mentions) {
    EXPECT_EQ(got, expected);
    EXPECT_NE(std::strstr(gapless_last_error(), mentions), nullptr) << gapless_last_error();
    EXPECT_EQ(count_of("launches") + count_of("copies"), 0);
  }

  void* stream_ = nullptr;
  const TypeHandle vector_ = parse("vector(16, 1, 2, int)");  // 64 bytes of 124
};

}  // namespace

TEST_F(GpuMemory, RandomTypesAndRanges) {
  RandomTypes random;
  for (int i = 0; i < 400; ++i) {
    const TwiceMade made = random.type();
    const std::int64_t count = random.between(0, 3);
    const TypeMap map = map_repeated(count, made.map);
    const std::int64_t begin = random.between(0, map.size()), end = random.between(begin, map.size());
    const std::size_t length = static_cast<std::size_t>(end - begin);
    const MemoryKind packed_kind = random.between(0, 1) != 0 ? MemoryKind::device : MemoryKind::pinned;
    const auto before = random.bytes(static_cast<std::size_t>(map.end() - map.first()));
    const auto index = [&](std::int64_t k) { return std::size_t(map.bytes[std::size_t(k)] - map.first()); };

    // The origin may lie outside the allocation: only the bytes named are inside.
    Allocation memory(MemoryKind::device, before.size()), packed(packed_kind, length);
    void* origin = memory.at(-map.first());
    memory.fill(before);
    ASSERT_EQ(gapless_pack(made.type.get(), count, origin, begin, end, packed.at(), stream_), GAPLESS_SUCCESS)
        << gapless_last_error();
    synchronize();
    std::vector<unsigned char> expected;
    for (std::int64_t k = begin; k < end; ++k) expected.push_back(before[index(k)]);
    ASSERT_EQ(packed.contents(), expected) << "type " << i;

    const auto incoming = random.bytes(length);
    packed.fill(incoming);
    ASSERT_EQ(gapless_unpack(made.type.get(), count, origin, begin, end, packed.at(), stream_), GAPLESS_SUCCESS)
        << gapless_last_error();
    synchronize();
    expected = before;
    for (std::int64_t k = begin; k < end; ++k) expected[index(k)] = incoming[std::size_t(k - begin)];
    ASSERT_EQ(memory.contents(), expected) << "type " << i;
  }
}

TEST_F(GpuMemory, NothingWaitsForTheStream) {
  Allocation memory(MemoryKind::device, 124), packed(MemoryKind::pinned, 64);
  memory.fill(std::vector<unsigned char>(124, 5));
  packed.fill(std::vector<unsigned char>(64, 9));
  plugin_function<void()>("simulated_device_reset_counts")();
  ASSERT_EQ(gapless_pack(vector_.get(), 1, memory.at(), 0, 64, packed.at(), stream_), GAPLESS_SUCCESS);
  EXPECT_EQ(packed.contents(), std::vector<unsigned char>(64, 9));
  EXPECT_EQ(count_of("synchronisations"), 0);
  EXPECT_EQ(count_of("allocations"), 0);
  synchronize();
  EXPECT_EQ(packed.contents(), std::vector<unsigned char>(64, 5));
}

TEST_F(GpuMemory, TypesMayGoBeforeTheWorkIsDone) {
  Allocation memory(MemoryKind::device, 1000), packed(MemoryKind::device, 16);
  memory.fill(std::vector<unsigned char>(1000, 5));
  {
    const TypeHandle ragged = parse("hindexed([3, 1, 5, 7], [900, 1, 13, 300], byte)");
    ASSERT_EQ(gapless_pack(ragged.get(), 1, memory.at(), 0, 16, packed.at(), stream_), GAPLESS_SUCCESS);
  }
  synchronize();
  EXPECT_EQ(packed.contents(), std::vector<unsigned char>(16, 5));
}

TEST_F(GpuMemory, PageLockedMemoryAloneIsHostWork) {
  Allocation memory(MemoryKind::pinned, 124), packed(MemoryKind::pinned, 64);
  memory.fill(std::vector<unsigned char>(124, 5));
  ASSERT_EQ(gapless_pack(vector_.get(), 1, memory.at(), 0, 64, packed.at(), stream_), GAPLESS_SUCCESS);
  EXPECT_EQ(packed.contents(), std::vector<unsigned char>(64, 5));
  EXPECT_EQ(count_of("launches"), 0);
}

TEST_F(GpuMemory, ABatchMixesHostAndGpu) {
  Allocation memory(MemoryKind::device, 124), packed(MemoryKind::device, 64);
  memory.fill(std::vector<unsigned char>(124, 5));
  std::vector<unsigned char> host_memory(124, 6), host_packed(64, 0);
  const gapless_job jobs[] = {{vector_.get(), 1, memory.at(), 0, 64, packed.at(), GAPLESS_PACK},
                              {vector_.get(), 1, host_memory.data(), 0, 64, host_packed.data(), GAPLESS_PACK}};
  ASSERT_EQ(gapless_pack_batch(jobs, 2, stream_), GAPLESS_SUCCESS) << gapless_last_error();
  EXPECT_EQ(host_packed, std::vector<unsigned char>(64, 6));
  synchronize();
  EXPECT_EQ(packed.contents(), std::vector<unsigned char>(64, 5));
}

TEST_F(GpuMemory, AllRegionsOfAHaloAreOneLaunch) {
  constexpr std::int64_t points = 6, with_ghosts = points + 2, bytes = with_ghosts * with_ghosts * with_ghosts * 4;
  Allocation cube(MemoryKind::device, bytes), packed(MemoryKind::device, bytes);
  std::vector<unsigned char> contents(bytes);
  for (std::size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<unsigned char>(i * 37 + i / 256);
  cube.fill(contents);
  std::vector<TypeHandle> types;
  std::vector<gapless_job> jobs;
  std::vector<unsigned char> expected;
  for (int neighbour = 0; neighbour < 27; ++neighbour) {
    if (neighbour == 13) continue;
    std::array<std::int64_t, 3> size, start;
    for (int dimension = 0, rest = neighbour; dimension < 3; ++dimension, rest /= 3) {
      size[dimension] = rest % 3 == 1 ? points : 1;
      start[dimension] = rest % 3 == 2 ? points : 1;
    }
    const auto list = [](const auto& three) {
      return "[" + std::to_string(three[0]) + ", " + std::to_string(three[1]) + ", " + std::to_string(three[2]) + "]";
    };
    types.push_back(parse(("subarray([8, 8, 8], " + list(size) + ", " + list(start) + ", c, int)").c_str()));
    jobs.push_back({types.back().get(), 1, cube.at(), 0, size[0] * size[1] * size[2] * 4,
                    packed.at(static_cast<std::int64_t>(expected.size())), GAPLESS_PACK});
    for (std::int64_t z = start[0]; z < start[0] + size[0]; ++z) {
      for (std::int64_t y = start[1]; y < start[1] + size[1]; ++y) {
        const auto row = contents.begin() + ((z * with_ghosts + y) * with_ghosts + start[2]) * 4;
        expected.insert(expected.end(), row, row + size[2] * 4);
      }
    }
  }
  plugin_function<void()>("simulated_device_reset_counts")();
  ASSERT_EQ(gapless_pack_batch(jobs.data(), jobs.size(), stream_), GAPLESS_SUCCESS) << gapless_last_error();
  EXPECT_EQ(count_of("launches"), 1);
  EXPECT_EQ(count_of("copies") + count_of("uploads") + count_of("allocations"), 0);
  synchronize();
  auto got = packed.contents();
  got.resize(expected.size());
  EXPECT_EQ(got, expected);
}

TEST_F(GpuMemory, OrdinaryHostMemoryIsRefused) {
  Allocation memory(MemoryKind::device, 124);
  std::vector<unsigned char> host(124, 1);
  expect_refused(gapless_pack(vector_.get(), 1, memory.at(), 0, 64, host.data(), stream_), GAPLESS_ERROR_MEMORY_KIND,
                 "packed is ordinary host memory");
  expect_refused(gapless_unpack(vector_.get(), 1, host.data(), 0, 64, memory.at(), stream_), GAPLESS_ERROR_MEMORY_KIND,
                 "memory is ordinary host memory");
  EXPECT_EQ(host, std::vector<unsigned char>(124, 1));
}

TEST_F(GpuMemory, TwoGpusAreRefused) {
  Allocation memory(MemoryKind::device, 124, 0), other(MemoryKind::device, 124, 1), packed(MemoryKind::pinned, 64);
  expect_refused(gapless_pack(vector_.get(), 1, memory.at(), 0, 64, other.at(), stream_), GAPLESS_ERROR_UNSUPPORTED,
                 "GPU 0 and of GPU 1");
  const gapless_job jobs[] = {{vector_.get(), 1, memory.at(), 0, 64, packed.at(), GAPLESS_PACK},
                              {vector_.get(), 1, other.at(), 0, 64, packed.at(), GAPLESS_PACK}};
  expect_refused(gapless_pack_batch(jobs, 2, stream_), GAPLESS_ERROR_UNSUPPORTED, "job 1: memory of GPU");
}

TEST_F(GpuMemory, CopiesBetweenTypesAndGpus) {
  RandomTypes random;
  int copies = 0;
  for (int i = 0; i < 300; ++i) {
    const TwiceMade one = random.type(), other = random.type();
    if (one.map.size() == 0 || other.map.size() == 0 || one.map.size() * other.map.size() > 4096) continue;
    const TypeMap from = map_repeated(other.map.size(), one.map), to = map_repeated(one.map.size(), other.map);
    const auto source_bytes = random.bytes(static_cast<std::size_t>(from.end() - from.first()));
    auto expected = random.bytes(static_cast<std::size_t>(to.end() - to.first()));
    const MemoryKind source_kind = i % 5 == 0 ? MemoryKind::pinned : MemoryKind::device;
    Allocation source(source_kind, source_bytes.size(), 0);
    Allocation destination(MemoryKind::device, expected.size(), source_kind == MemoryKind::device ? i % 2 : 0);
    source.fill(source_bytes);
    destination.fill(expected);
    ASSERT_EQ(gapless_copy(one.type.get(), other.map.size(), source.at(-from.first()), other.type.get(), one.map.size(),
                           destination.at(-to.first()), stream_),
              GAPLESS_SUCCESS)
        << gapless_last_error();
    synchronize();
    for (std::size_t k = 0; k < from.bytes.size(); ++k) {
      expected[std::size_t(to.bytes[k] - to.first())] = source_bytes[std::size_t(from.bytes[k] - from.first())];
    }
    ASSERT_EQ(destination.contents(), expected) << "pair " << i;
    ++copies;
  }
  EXPECT_GT(copies, 20);
}

TEST_F(GpuMemory, CopiesThatCannotBeAreRefused) {
  Allocation memory(MemoryKind::device, 124), other(MemoryKind::device, 124, 1);
  std::vector<unsigned char> host(124, 1);
  expect_refused(gapless_copy(vector_.get(), 1, memory.at(), vector_.get(), 1, host.data(), stream_),
                 GAPLESS_ERROR_MEMORY_KIND, "destination_memory is ordinary host memory");
  expect_refused(gapless_copy(vector_.get(), 1, host.data(), vector_.get(), 1, memory.at(), stream_),
                 GAPLESS_ERROR_MEMORY_KIND, "source_memory is ordinary host memory");
  make_fail("enable_peer", 1);
  expect_refused(gapless_copy(vector_.get(), 1, memory.at(), vector_.get(), 1, other.at(), stream_),
                 GAPLESS_ERROR_UNSUPPORTED, "GPU 0: simulated failure of enable_peer");
  make_fail("run", 1);
  expect_refused(gapless_copy(vector_.get(), 1, memory.at(), vector_.get(), 1, memory.at(), stream_),
                 GAPLESS_ERROR_DEVICE, "simulated failure of run");
}

TEST_F(GpuMemory, FailuresOfTheGpuBecomeStatuses) {
  Allocation memory(MemoryKind::device, 1000), packed(MemoryKind::device, 64);
  std::vector<unsigned char> host_memory(124, 6), host_packed(64, 0);
  make_fail("run", 2);
  expect_refused(gapless_pack(vector_.get(), 1, memory.at(), 0, 64, packed.at(), stream_), GAPLESS_ERROR_DEVICE,
                 "GPU 0: simulated failure of run");
  const gapless_job jobs[] = {{vector_.get(), 1, host_memory.data(), 0, 64, host_packed.data(), GAPLESS_PACK},
                              {vector_.get(), 1, memory.at(), 0, 64, packed.at(), GAPLESS_PACK}};
  expect_refused(gapless_pack_batch(jobs, 2, stream_), GAPLESS_ERROR_DEVICE, "simulated failure of run");
  make_fail("upload", 1);
  const TypeHandle ragged = parse("hindexed([3, 1, 5, 9], [901, 2, 14, 301], byte)");
  expect_refused(gapless_pack(ragged.get(), 1, memory.at(), 0, 18, packed.at(), stream_), GAPLESS_ERROR_OUT_OF_MEMORY,
                 "GPU 0: ");
}
