// What tests on a real GPU share: graphs made of what is issued to a stream, and memory at addresses of one's choice.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "device/cuda/driver_function.hpp"

#define ASSERT_CUDA(call) ASSERT_EQ(call, cudaSuccess)
#define EXPECT_CUDA(call) EXPECT_EQ(call, cudaSuccess)

namespace gapless::tests {

/// Empty where there is a GPU.
inline std::string why_no_gpu() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  return error == cudaSuccess ? "" : std::string("no GPU: ") + cudaGetErrorString(error);
}

/// A graph of what `issue(stream)` issues, and the stream it was captured from.
class CapturedGraph {
 public:
  template <class Issue>
  explicit CapturedGraph(const Issue& issue, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal,
                         unsigned stream_flags = cudaStreamDefault) {
    EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, stream_flags));
    EXPECT_CUDA(cudaStreamBeginCapture(stream_, mode));
    issue(stream_);
    EXPECT_CUDA(cudaStreamEndCapture(stream_, &graph_));
  }
  ~CapturedGraph() {
    if (executable_ != nullptr) {
      EXPECT_CUDA(cudaGraphExecDestroy(executable_));
    }
    if (graph_ != nullptr) {
      EXPECT_CUDA(cudaGraphDestroy(graph_));
    }
    EXPECT_CUDA(cudaStreamDestroy(stream_));
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  std::size_t node_count() const {
    std::size_t nodes = 0;
    EXPECT_CUDA(cudaGraphGetNodes(graph_, nullptr, &nodes));
    return nodes;
  }

  /// Runs it so many times, to its end. Instantiated at the first time, when what it was captured from may be gone.
  void replay(int times = 1) {
    instantiate();
    for (int i = 0; i < times; ++i) EXPECT_CUDA(cudaGraphLaunch(executable_, stream_));
    EXPECT_CUDA(cudaStreamSynchronize(stream_));
  }

  /// Destroys what was captured, of which only what is launched is left.
  void keep_only_what_is_launched() {
    instantiate();
    EXPECT_CUDA(cudaGraphDestroy(graph_));
    graph_ = nullptr;
  }

 private:
  void instantiate() {
    if (executable_ == nullptr) {
      EXPECT_CUDA(cudaGraphInstantiate(&executable_, graph_, 0));
    }
  }

  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

/// 2 MiB of GPU 0's memory, made by virtual memory management.
class VirtualMemory {
 public:
  static constexpr std::size_t size = std::size_t{2} << 20;

  /// At `wanted`, a multiple of the size, if the driver can.
  explicit VirtualMemory(const void* wanted = nullptr) {
    const auto create = device::cuda::driver_function<decltype(&cuMemCreate)>("cuMemCreate");
    const auto reserve = device::cuda::driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
    const auto map = device::cuda::driver_function<decltype(&cuMemMap)>("cuMemMap");
    const auto set_access = device::cuda::driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess");
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = 0;
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_EQ(create(&handle_, size, &properties, 0), CUDA_SUCCESS);
    EXPECT_EQ(reserve(&address_, size, 0, reinterpret_cast<CUdeviceptr>(wanted), 0), CUDA_SUCCESS);
    EXPECT_EQ(map(address_, size, 0, handle_, 0), CUDA_SUCCESS);
    EXPECT_EQ(set_access(address_, size, &access, 1), CUDA_SUCCESS);
  }
  ~VirtualMemory() {
    const auto unmap = device::cuda::driver_function<decltype(&cuMemUnmap)>("cuMemUnmap");
    const auto release = device::cuda::driver_function<decltype(&cuMemRelease)>("cuMemRelease");
    const auto address_free = device::cuda::driver_function<decltype(&cuMemAddressFree)>("cuMemAddressFree");
    EXPECT_EQ(unmap(address_, size), CUDA_SUCCESS);
    EXPECT_EQ(release(handle_), CUDA_SUCCESS);
    EXPECT_EQ(address_free(address_, size), CUDA_SUCCESS);
  }
  VirtualMemory(const VirtualMemory&) = delete;
  VirtualMemory& operator=(const VirtualMemory&) = delete;

  std::byte* begin() const { return reinterpret_cast<std::byte*>(address_); }

 private:
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;
};

}  // namespace gapless::tests
