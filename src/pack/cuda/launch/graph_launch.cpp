#include "pack/cuda/launch/graph_launch.hpp"

#include <cstring>
#include <new>

#include "device/cuda/driver_function.hpp"
#include "device/cuda/scopes.hpp"

namespace gapless::pack::gpu {
namespace {

using device::cuda::as_runtime_error;
using device::cuda::driver_function;
using device::cuda::OutsideCapture;

struct Driver {
  decltype(&cuGraphCreate) create = driver_function<decltype(&cuGraphCreate)>("cuGraphCreate");
  decltype(&cuGraphDestroy) destroy = driver_function<decltype(&cuGraphDestroy)>("cuGraphDestroy");
  decltype(&cuGraphAddKernelNode) add = driver_function<decltype(&cuGraphAddKernelNode)>("cuGraphAddKernelNode");
  decltype(&cuGraphKernelNodeSetAttribute) set_attribute =
      driver_function<decltype(&cuGraphKernelNodeSetAttribute)>("cuGraphKernelNodeSetAttribute");
  decltype(&cuGraphInstantiate) instantiate =
      driver_function<decltype(&cuGraphInstantiate)>("cuGraphInstantiateWithFlags");
  decltype(&cuGraphExecDestroy) destroy_executable =
      driver_function<decltype(&cuGraphExecDestroy)>("cuGraphExecDestroy");
  decltype(&cuGraphExecKernelNodeSetParams) change =
      driver_function<decltype(&cuGraphExecKernelNodeSetParams)>("cuGraphExecKernelNodeSetParams");
  decltype(&cuGraphLaunch) launch = driver_function<decltype(&cuGraphLaunch)>("cuGraphLaunch");

  bool has_all() const noexcept {
    return create != nullptr && destroy != nullptr && add != nullptr && set_attribute != nullptr &&
           instantiate != nullptr && destroy_executable != nullptr && change != nullptr && launch != nullptr;
  }
};

const Driver& driver() noexcept {
  static const Driver functions;
  return functions;
}

bool are_equal(const dim3& a, const dim3& b) noexcept { return a.x == b.x && a.y == b.y && a.z == b.z; }

/// What the driver calls a launch. Its array of parameters lies beside it, so it must not be moved.
class NodeParameters {
 public:
  explicit NodeParameters(const KernelLaunch& launch) noexcept : pointers_(pointers_to(launch.parameters)) {
    node_.func = launch.function;
    node_.gridDimX = launch.blocks.x;
    node_.gridDimY = launch.blocks.y;
    node_.gridDimZ = launch.blocks.z;
    node_.blockDimX = launch.threads.x;
    node_.blockDimY = launch.threads.y;
    node_.blockDimZ = launch.threads.z;
    node_.kernelParams = pointers_.data();
  }
  NodeParameters(const NodeParameters&) = delete;
  NodeParameters& operator=(const NodeParameters&) = delete;

  const CUDA_KERNEL_NODE_PARAMS* get() const noexcept { return &node_; }

 private:
  std::array<void*, most_parameters> pointers_;
  CUDA_KERNEL_NODE_PARAMS node_{};
};

}  // namespace

std::array<void*, most_parameters> pointers_to(std::span<const KernelParameter> parameters) noexcept {
  std::array<void*, most_parameters> pointers{};
  for (std::size_t i = 0; i < parameters.size(); ++i) pointers[i] = const_cast<void*>(parameters[i].value);
  return pointers;
}

bool GraphLaunches::CachedGraph::is_for(const KernelLaunch& wanted) const noexcept {
  if (function != wanted.function || !are_equal(blocks, wanted.blocks) || !are_equal(threads, wanted.threads)) {
    return false;
  }
  std::size_t at = 0;
  for (const KernelParameter& parameter : wanted.parameters) {
    if (parameters.size() - at < parameter.used) return false;
    if (std::memcmp(parameters.data() + at, parameter.value, parameter.used) != 0) return false;
    at += parameter.used;
  }
  return at == parameters.size();
}

void GraphLaunches::CachedGraph::note(const KernelLaunch& launched) noexcept {
  try {
    parameters.clear();
    for (const KernelParameter& parameter : launched.parameters) {
      const auto* bytes = static_cast<const std::byte*>(parameter.value);
      parameters.insert(parameters.end(), bytes, bytes + parameter.used);
    }
    function = launched.function;
    blocks = launched.blocks;
    threads = launched.threads;
  } catch (const std::bad_alloc&) {
    function = nullptr;
  }
}

cudaError_t GraphLaunches::CachedGraph::change_to(const KernelLaunch& wanted) noexcept {
  function = nullptr;
  const NodeParameters parameters_of_node(wanted);
  const cudaError_t error = as_runtime_error(driver().change(executable, node, parameters_of_node.get()));
  if (error == cudaSuccess) note(wanted);
  return error;
}

void GraphLaunches::CachedGraph::clear() noexcept {
  if (executable != nullptr) driver().destroy_executable(executable);
  if (graph != nullptr) driver().destroy(graph);
  graph = nullptr;
  executable = nullptr;
  function = nullptr;
}

cudaError_t GraphLaunches::CachedGraph::make_for(const KernelLaunch& wanted, int priority) noexcept {
  const OutsideCapture outside;
  clear();
  CUresult error = driver().create(&graph, 0);
  const NodeParameters parameters_of_node(wanted);
  if (error == CUDA_SUCCESS) error = driver().add(&node, graph, nullptr, 0, parameters_of_node.get());
  CUlaunchAttributeValue value{};
  value.priority = priority;
  if (error == CUDA_SUCCESS) error = driver().set_attribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
  if (error == CUDA_SUCCESS) error = driver().instantiate(&executable, graph, 0);
  if (error == CUDA_SUCCESS) {
    note(wanted);
  } else {
    clear();
  }
  return as_runtime_error(error);
}

cudaError_t GraphLaunches::prepare(CachedGraph& cached, const KernelLaunch& wanted) noexcept {
  if (cached.executable != nullptr && cached.change_to(wanted) == cudaSuccess) {
    ++changed_;
    return cudaSuccess;
  }
  ++made_;
  return cached.make_for(wanted, priority_);
}

cudaError_t GraphLaunches::launch(const KernelLaunch& wanted, cudaStream_t stream) noexcept {
  if (!driver().has_all()) return cudaErrorNotSupported;
  for (const CachedGraph& cached : cached_) {
    if (cached.is_for(wanted)) return as_runtime_error(driver().launch(cached.executable, stream));
  }
  CachedGraph& oldest = cached_[next_++ % cached_.size()];
  const cudaError_t error = prepare(oldest, wanted);
  return error == cudaSuccess ? as_runtime_error(driver().launch(oldest.executable, stream)) : error;
}

}  // namespace gapless::pack::gpu
