// Kernels start while the one before them in the stream still runs, and must wait for what it writes. A captured chain
// is replayed without gaps, so that one that did not wait would read old bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "cuda_test.hpp"
#include "device/device.hpp"
#include "random_layout.hpp"
#include "runtime_test.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

/// The same bytes of memory in two orders: unpacking in one and packing in the other permutes packed bytes.
struct TwoOrders {
  LayoutPointer one, other;
  std::vector<Offset> map_of_one, map_of_other;
};

/// edge x edge rows, by rows and by columns.
TwoOrders two_orders_of_rows(Offset length, Offset column, Offset row) {
  constexpr Offset edge = 192;
  TwoOrders orders;
  const auto block = layout::block(0, length);
  orders.one = layout::repeat(layout::repeat(block, edge, column), edge, row);
  orders.other = layout::repeat(layout::repeat(block, edge, row), edge, column);
  for (Offset k = 0; k < orders.one->size; ++k) {
    const Offset inner = k / length % edge, outer = k / length / edge;
    orders.map_of_one.push_back(inner * column + outer * row + k % length);
    orders.map_of_other.push_back(inner * row + outer * column + k % length);
  }
  return orders;
}

/// Forwards and backwards, too many words for a table.
TwoOrders two_orders_of_runs(RandomLayouts& random) {
  std::vector<layout::Segment> runs;
  Offset at = 0;
  for (int i = 0; i < 16000; ++i) {
    runs.push_back({at, random.number(1, 9) * 4});
    at += runs.back().length + random.number(1, 5) * 4;
  }
  const auto map_of = [](const std::vector<layout::Segment>& list) {
    std::vector<Offset> map;
    for (const auto& run : list) {
      for (Offset i = 0; i < run.length; ++i) map.push_back(run.offset + i);
    }
    return map;
  };
  const std::vector<layout::Segment> backwards(runs.rbegin(), runs.rend());
  return {layout::segments(runs), layout::segments(backwards), map_of(runs), map_of(backwards)};
}

struct CudaFree {
  void operator()(char* memory) const { cudaFree(memory); }
};
using DeviceBytes = std::unique_ptr<char, CudaFree>;

DeviceBytes on_gpu(const std::vector<char>& bytes) {
  char* memory = nullptr;
  // Kernels read aligned words around single bytes, which compute-sanitizer would take for reads past the end.
  EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory), (bytes.size() + 7) / 8 * 8), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), cudaSuccess);
  return DeviceBytes(memory);
}

std::vector<char> from_gpu(const DeviceBytes& memory, std::size_t count) {
  std::vector<char> bytes(count);
  EXPECT_EQ(cudaMemcpy(bytes.data(), memory.get(), count, cudaMemcpyDeviceToHost), cudaSuccess);
  return bytes;
}

void expect_order_kept(pack::GpuEngine& engine, RandomLayouts& random, const TwoOrders& orders) {
  constexpr int rounds = 20;
  const Offset size = orders.one->size;
  const Offset span = *std::max_element(orders.map_of_one.begin(), orders.map_of_one.end()) + 1;
  auto memory_bytes = random_bytes(random, static_cast<std::size_t>(span)),
       packed_bytes = random_bytes(random, static_cast<std::size_t>(size));
  memory_bytes.resize(static_cast<std::size_t>(span));
  const DeviceBytes memory = on_gpu(memory_bytes), packed = on_gpu(packed_bytes);
  CapturedGraph graph([&](cudaStream_t stream) {
    const auto run = [&](const LayoutPointer& layout, Direction direction) {
      const Job job{layout.get(), {1, 0}, 0, size, direction, memory.get(), packed.get()};
      EXPECT_EQ(engine.run({&job, 1}, 0, stream), Status::ok) << device::runtime()->last_error();
    };
    for (int i = 0; i < rounds; ++i) {
      run(orders.one, Direction::unpack);
      run(orders.other, Direction::pack);
    }
  });
  graph.replay();
  for (int i = 0; i < rounds; ++i) {
    for (std::size_t k = 0; k < packed_bytes.size(); ++k) memory_bytes[orders.map_of_one[k]] = packed_bytes[k];
    for (std::size_t k = 0; k < packed_bytes.size(); ++k) packed_bytes[k] = memory_bytes[orders.map_of_other[k]];
  }
  EXPECT_TRUE(from_gpu(packed, packed_bytes.size()) == packed_bytes);
  EXPECT_TRUE(from_gpu(memory, memory_bytes.size()) == memory_bytes);
}

TEST(StreamOrder, EachKernelSeesWhatTheOneBeforeWrote) {
  pack::GpuEngine* const engine = pack::gpu_engine();
  if (engine == nullptr) GTEST_SKIP() << pack::why_no_gpu_engine();
  RandomLayouts random(random_seed());
  const std::pair<const char*, TwoOrders> cases[] = {{"words", two_orders_of_rows(8, 12, 192 * 12 + 4)},
                                                     {"odd rows", two_orders_of_rows(17, 24, 192 * 24)},
                                                     {"rows of parts of sectors", two_orders_of_rows(36, 40, 192 * 40)},
                                                     {"a transpose", two_orders_of_rows(4, 4, 192 * 4 + 8)},
                                                     {"runs", two_orders_of_runs(random)}};
  for (const auto& [name, orders] : cases) {
    SCOPED_TRACE(name);
    expect_order_kept(*engine, random, orders);
  }
}

/// Keeps a stream busy until it may go on.
struct Gate {
  std::atomic<bool> may_go_on{false};
  static void CUDART_CB wait(void* gate) {
    while (!static_cast<Gate*>(gate)->may_go_on) std::this_thread::yield();
  }
};

/// What a stream that synchronises with the default stream has to do, a message from there has to wait for.
TEST(StreamOrder, TheDefaultStreamIsBusyAsLongAsABlockingStreamIs) {
  device::Runtime* const runtime = device::runtime();
  if (runtime == nullptr) GTEST_SKIP() << device::why_unavailable();
  for (const bool is_of_thread : {false, true}) {
    cudaStream_t stream = cudaStreamPerThread;
    if (!is_of_thread) {
      ASSERT_CUDA(cudaStreamCreate(&stream));
    }
    Gate gate;
    bool is_idle = true;
    ASSERT_CUDA(cudaLaunchHostFunc(stream, Gate::wait, &gate));
    EXPECT_EQ(runtime->query(0, nullptr, is_idle), device::Status::ok);
    EXPECT_FALSE(is_idle) << (is_of_thread ? "the thread's default stream" : "a stream of the program's");
    gate.may_go_on = true;
    EXPECT_EQ(runtime->synchronize(0, nullptr), device::Status::ok);
    EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
    EXPECT_EQ(runtime->query(0, nullptr, is_idle), device::Status::ok);
    EXPECT_TRUE(is_idle);
    if (!is_of_thread) {
      ASSERT_CUDA(cudaStreamDestroy(stream));
    }
  }
}

/// What is captured does not run, and whoever touches the default stream meanwhile spoils the graph.
TEST(StreamOrder, ACaptureIsLeftAlone) {
  device::Runtime* const runtime = device::runtime();
  if (runtime == nullptr) GTEST_SKIP() << device::why_unavailable();
  void* const own = runtime->stream(0);
  cudaStream_t stream = nullptr;
  ASSERT_CUDA(cudaStreamCreate(&stream));
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  bool is_idle = false;
  EXPECT_EQ(runtime->query(0, nullptr, is_idle), device::Status::ok);
  EXPECT_TRUE(is_idle);
  EXPECT_EQ(runtime->synchronize(0, nullptr), device::Status::ok);
  EXPECT_EQ(runtime->query(0, own, is_idle), device::Status::ok);
  EXPECT_EQ(runtime->synchronize(0, own), device::Status::ok);
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  ASSERT_CUDA(cudaGraphDestroy(graph));
  ASSERT_CUDA(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace gapless::tests
