// Programs go to and fro between contexts, and between GPUs, while work is under way in each; and what fails in one
// call is no other's failure. Over a CUDA runtime that only notes what it is told, and two GPUs: nothing is computed.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "device/cuda/runtime.hpp"
#include "device/cuda/scopes.hpp"
#include "layout/algebra/canonical.hpp"
#include "noted_launches.hpp"
#include "pack/cuda/engine.hpp"
#include "pack/cuda/memory/descriptor_memory.hpp"
#include "reduction/gpu_reducer.hpp"

namespace gapless::tests {
namespace {

struct FakeContext {
  int device;
  std::uint64_t number;
  bool is_there = true;
  bool is_busy = false;                 ///< with a kernel
  std::vector<std::uint32_t*> flags{};  ///< that its kernels complete
};

/// Of one thread.
struct FakeRuntime {
  std::deque<FakeContext> contexts;
  FakeContext* current = nullptr;
  std::map<int, FakeContext*> primary;
  std::map<const void*, FakeContext*> memory;  ///< where each allocation is
  std::vector<FakeContext*> waited_for;
  cudaError_t last_error = cudaSuccess;
  int refusals = 0;  ///< of the next calls that a test has fail
  int launches = 0;

  FakeContext* make(int device) { return &contexts.emplace_back(FakeContext{device, contexts.size() + 1}); }
  void choose(int device) {
    FakeContext*& context = primary[device];
    if (context == nullptr) context = make(device);
    current = context;
  }
  /// What the runtime does before it uses a context.
  FakeContext& used() {
    if (current == nullptr) choose(0);
    return *current;
  }
  static void end_work(FakeContext& context) {
    for (std::uint32_t* flag : context.flags) *flag = 1;
    context.flags.clear();
    context.is_busy = false;
  }
};

FakeRuntime fake;

/// Fails, as often as a test has asked for.
cudaError_t maybe_refused(cudaError_t error) {
  if (fake.refusals == 0) return cudaSuccess;
  --fake.refusals;
  return fake.last_error = error;
}

cudaError_t allocate(void** memory, std::size_t bytes) {
  if (const cudaError_t error = maybe_refused(cudaErrorMemoryAllocation); error != cudaSuccess) return error;
  *memory = ::operator new(bytes);
  fake.memory[*memory] = &fake.used();
  return cudaSuccess;
}

cudaError_t launched(const pack::gpu::Completion& completion) {
  FakeContext& context = fake.used();
  context.is_busy = true;
  if (completion.flag != nullptr) context.flags.push_back(completion.flag);
  return cudaSuccess;
}

CUresult context_number(CUcontext, unsigned long long* number) {
  if (fake.current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *number = fake.current->number;
  return CUDA_SUCCESS;
}

CUresult current_context(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(fake.current);
  return CUDA_SUCCESS;
}

CUresult make_current(CUcontext context) {
  fake.current = reinterpret_cast<FakeContext*>(context);
  return CUDA_SUCCESS;
}

/// Of the number of an allocation alone.
CUresult pointer_attributes(unsigned, CUpointer_attribute*, void** values, CUdeviceptr pointer) {
  const auto at = fake.memory.find(reinterpret_cast<const void*>(pointer));
  const bool is_there = at != fake.memory.end() && at->second->is_there;
  *static_cast<unsigned long long*>(values[0]) = is_there ? 1 : 0;
  return CUDA_SUCCESS;
}

cudaError_t entry_point(std::string_view name, void** function, cudaDriverEntryPointQueryResult* found) {
  const std::map<std::string_view, void*> functions = {
      {"cuCtxGetId", reinterpret_cast<void*>(context_number)},
      {"cuCtxGetCurrent", reinterpret_cast<void*>(current_context)},
      {"cuCtxSetCurrent", reinterpret_cast<void*>(make_current)},
      {"cuPointerGetAttributes", reinterpret_cast<void*>(pointer_attributes)},
  };
  const auto at = functions.find(name);
  *function = at != functions.end() ? at->second : nullptr;
  *found = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

}  // namespace

extern "C" {
cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* found) {
  return entry_point(name, function, found);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  return entry_point(name, function, found);
}
cudaError_t cudaGetDevice(int* device) {
  *device = fake.current != nullptr ? fake.current->device : 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  fake.choose(device);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, std::size_t bytes) { return allocate(memory, bytes); }
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) { return allocate(memory, bytes); }
cudaError_t cudaFree(void*) {
  fake.used();
  return maybe_refused(cudaErrorInvalidValue);
}
cudaError_t cudaHostRegister(void*, std::size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
cudaError_t cudaHostGetDevicePointer(void**, void*, unsigned) { return maybe_refused(cudaErrorNotSupported); }
cudaError_t cudaGetLastError() { return std::exchange(fake.last_error, cudaSuccess); }
cudaError_t cudaMemcpyAsync(void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t) {
  ++fake.launches;
  return maybe_refused(cudaErrorInvalidConfiguration);
}
cudaError_t cudaMemsetAsync(void*, int, std::size_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = *highest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = reinterpret_cast<cudaStream_t>(&fake.used());
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(&fake.used());
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
// Each context has a default stream of its own, which is the current one's.
cudaError_t cudaStreamQuery(cudaStream_t) { return fake.used().is_busy ? cudaErrorNotReady : cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream != cudaStreamLegacy) return cudaSuccess;
  fake.waited_for.push_back(&fake.used());
  FakeRuntime::end_work(fake.used());
  return cudaSuccess;
}
}  // extern "C"

}  // namespace gapless::tests

namespace gapless::pack::gpu {

cudaError_t launched(const Completion& completion) noexcept { return tests::launched(completion); }
int resident_blocks_possible() noexcept { return 0; }
cudaError_t launch_resident(MailBox*, int, std::uint32_t, std::uint32_t, cudaStream_t) noexcept {
  return cudaErrorNotSupported;
}

}  // namespace gapless::pack::gpu

namespace gapless::tests {
namespace {

using device::Status;
using device::cuda::CurrentDevice;
using pack::Job;
using pack::Ticket;

/// Is the end of a job known by what its kernel writes, or by its queue's?
enum class End { flag, queue };

class Contexts : public ::testing::TestWithParam<End> {
 protected:
  void SetUp() override {
    engine_.force_engine("kernel");
    fake.waited_for.clear();
  }
  void TearDown() override { fake.current = nullptr; }

  Ticket submit(int device) {
    // Its memory is not touched.
    char* const memory = reinterpret_cast<char*>(std::uintptr_t{1} << 40);
    const layout::LayoutPointer& rows = GetParam() == End::flag ? few_ : many_;
    const Job job{rows.get(), {1, 0}, 0, rows->size, pack::Direction::pack, memory, memory + (1 << 30)};
    Ticket ticket = engine_.submit({&job, 1}, device, pack::Reach::this_gpu);
    EXPECT_TRUE(ticket.is_under_way());
    EXPECT_EQ(ticket.ends_with_queue, GetParam() == End::queue);
    return ticket;
  }
  void expect_waited_for(Ticket& ticket, FakeContext* context) {
    FakeContext* const current = fake.current;
    fake.waited_for.clear();
    EXPECT_EQ(engine_.wait(ticket), Status::ok);
    EXPECT_EQ(fake.waited_for, std::vector{context});
    EXPECT_FALSE(context->is_busy);
    EXPECT_EQ(fake.current, current);
  }

  pack::gpu::CudaEngine engine_;

 private:
  const layout::LayoutPointer few_ = layout::repeat(layout::block(0, 8), 1 << 15, 16),
                              many_ = layout::repeat(layout::block(0, 8), 1 << 21, 16);
};

TEST_P(Contexts, OfOneGpuHaveWorkUnderWayAtATime) {
  FakeContext *const one = fake.make(0), *const other = fake.make(0);
  fake.current = one;
  Ticket of_one = submit(0);
  fake.current = other;
  Ticket of_other = submit(0);
  fake.current = one;
  Ticket second_of_one = submit(0);
  expect_waited_for(of_other, other);
  fake.current = other;
  expect_waited_for(of_one, one);
  EXPECT_EQ(engine_.wait(second_of_one), Status::ok);
}

TEST_P(Contexts, OfAnotherGpuAreWaitedForWhileThisOnesIsCurrent) {
  fake.choose(0);
  FakeContext* const here = fake.current;
  Ticket ticket = submit(1);
  EXPECT_EQ(fake.current, here);
  engine_.poll(ticket);
  EXPECT_TRUE(ticket.is_under_way());
  expect_waited_for(ticket, fake.primary[1]);
}

TEST_P(Contexts, OfAnotherGpuArePolledWhileThisOnesIsCurrent) {
  fake.choose(0);
  Ticket ticket = submit(1);
  FakeRuntime::end_work(*fake.primary[1]);
  fake.current->is_busy = true;
  engine_.poll(ticket);
  EXPECT_FALSE(ticket.is_under_way());
  fake.current->is_busy = false;
}

TEST_P(Contexts, ThatAreGoneEndTheirTicketsWithAnError) {
  FakeContext *const gone = fake.make(0), *const there = fake.make(0);
  fake.current = there;
  Ticket other_ticket = submit(0);
  fake.current = gone;
  Ticket ticket = submit(0);
  gone->is_there = false;
  fake.current = fake.make(0);
  Ticket next_ticket = submit(0);
  EXPECT_NE(engine_.wait(ticket), Status::ok);
  EXPECT_FALSE(ticket.is_under_way());
  expect_waited_for(other_ticket, there);
  expect_waited_for(next_ticket, fake.current);
}

INSTANTIATE_TEST_SUITE_P(EndsWith, Contexts, ::testing::Values(End::flag, End::queue),
                         [](const auto& info) { return info.param == End::flag ? "Flag" : "Queue"; });

TEST(CurrentDevice, PutsAProgramsOwnContextBack) {
  FakeContext* const own = fake.current = fake.make(0);
  {
    const CurrentDevice other(1);
    EXPECT_EQ(fake.current, fake.primary[1]);
    const CurrentDevice same(1);
    EXPECT_EQ(fake.current, fake.primary[1]);
  }
  EXPECT_EQ(fake.current, own);
  {
    const CurrentDevice same(0);
    EXPECT_EQ(fake.current, own);
  }
  EXPECT_EQ(fake.current, own);
  fake.current = nullptr;
}

TEST(CurrentDevice, LeavesAThreadWithoutAContext) {
  const std::map<int, FakeContext*> made = std::exchange(fake.primary, {});
  {
    const CurrentDevice other(1);
    EXPECT_EQ(fake.current, fake.primary[1]);
  }
  EXPECT_EQ(fake.current, nullptr);
  EXPECT_FALSE(fake.primary.contains(0)) << "the first GPU has a context that nobody uses";
  fake.primary = made;
}

class Errors : public ::testing::Test {
 protected:
  void SetUp() override { fake.choose(0); }
  void TearDown() override {
    EXPECT_EQ(fake.refusals, 0) << "nothing failed";
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "what failed is found again";
    fake.current = nullptr;
  }
};

TEST_F(Errors, OfAnAllocationThatIsMadeAgain) {
  pack::gpu::CudaDescriptorMemory memory;
  const char bytes[16] = {};
  const pack::gpu::Upload first = memory.upload(0, bytes, sizeof bytes);
  memory.release(0, first, sizeof bytes);
  fake.refusals = 1;
  EXPECT_NE(memory.upload(0, bytes, sizeof bytes).bytes, nullptr);
  EXPECT_EQ(fake.last_error, cudaSuccess);
}

TEST_F(Errors, OfDescriptorsThatCannotBeFreed) {
  pack::gpu::CudaDescriptorMemory memory;
  const char bytes[16] = {};
  const pack::gpu::Upload large = memory.upload(0, bytes, sizeof bytes);
  memory.release(0, large, std::size_t{1} << 30);
  fake.refusals = 1;
  EXPECT_NE(memory.upload(0, bytes, sizeof bytes).bytes, nullptr);
}

TEST_F(Errors, OfPagesThatTheGpuDoesNotAddress) {
  char page[16];
  fake.refusals = 1;
  EXPECT_EQ(device::cuda::CudaRuntime().lock_pages(page, sizeof page, 0), Status::unsupported);
}

TEST_F(Errors, FromElsewhereAreNotAReductions) {
  float numbers[2] = {};
  const reduction::Job job{{reduction::Operator::sum, reduction::Number::float32}, 1, numbers, 1, {numbers + 1}};
  reduction::GpuReducer* const reducer = gapless_reduction_open(gapless_reduction_interface_version);
  ASSERT_NE(reducer, nullptr);
  const int launches = fake.launches;
  fake.last_error = cudaErrorNotReady;
  EXPECT_EQ(reducer->reduce(job, 0, nullptr), Status::ok);
  EXPECT_EQ(fake.last_error, cudaErrorNotReady);
  fake.refusals = 1;
  EXPECT_EQ(reducer->reduce(job, 0, nullptr), Status::failed);
  EXPECT_EQ(fake.launches, launches + 2);
}

}  // namespace
}  // namespace gapless::tests
