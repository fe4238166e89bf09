// How GPU memory is registered with an RDMA device: which ways are tried, and which are not tried again. The device and
// the GPU are lists of what they are asked; that hardware answers so is not tested.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fabric/verbs/gpu_memory.hpp"
#include "refusing_runtime.hpp"

namespace gapless::fabric::verbs {
namespace {

int attempts_by_dma_buf, attempts_by_address, last_descriptor;
bool takes_dma_buf, takes_address;
std::uint64_t last_address;
ibv_mr registered;

ibv_mr* add_dma_buf(ibv_pd*, std::uint64_t offset, std::size_t, std::uint64_t address, int descriptor, int) {
  ++attempts_by_dma_buf;
  EXPECT_EQ(offset, 0u);
  EXPECT_NE(::fcntl(descriptor, F_GETFD), -1) << "closed too early";
  last_descriptor = descriptor;
  last_address = address;
  return takes_dma_buf ? &registered : nullptr;
}

ibv_mr* add_address(ibv_pd*, void*, std::size_t, int) {
  ++attempts_by_address;
  return takes_address ? &registered : nullptr;
}

/// A GPU whose memory can be exported, or not.
class Gpu final : public tests::RefusingRuntime {
 public:
  bool exports = true;

  device::Status export_to_devices(const void*, std::size_t, int, int* descriptor) noexcept override {
    *descriptor = exports ? ::open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    return exports ? device::Status::ok : device::Status::unsupported;
  }
};

class RegisteredGpuMemory : public testing::Test {
 protected:
  RegisteredGpuMemory() {
    attempts_by_dma_buf = attempts_by_address = 0;
    takes_dma_buf = takes_address = true;
    library_.reg_dmabuf_mr = add_dma_buf;
    library_.reg_mr = add_address;
  }
  bool add() { return memory_.add(nullptr, gpu_, bytes_, sizeof bytes_, 0, IBV_ACCESS_LOCAL_WRITE) == &registered; }

  Gpu gpu_;
  Library library_;
  GpuMemory memory_{library_};
  char bytes_[4096];
};

TEST_F(RegisteredGpuMemory, IsADmaBufThatPeersNameByItsAddress) {
  EXPECT_TRUE(add());
  EXPECT_EQ(attempts_by_address, 0);
  EXPECT_EQ(last_address, reinterpret_cast<std::uintptr_t>(bytes_));
  EXPECT_EQ(::fcntl(last_descriptor, F_GETFD), -1) << "left open";
}

TEST_F(RegisteredGpuMemory, IsNamedByItsAddressWhereDmaBufsAreRefused) {
  takes_dma_buf = false;
  EXPECT_TRUE(add());
  EXPECT_EQ(::fcntl(last_descriptor, F_GETFD), -1) << "left open";
  EXPECT_TRUE(add());
  EXPECT_EQ(attempts_by_dma_buf, 1) << "the refusal is remembered";
  EXPECT_EQ(attempts_by_address, 2);
}

TEST_F(RegisteredGpuMemory, IsNamedByItsAddressWhereTheGpuExportsNothing) {
  gpu_.exports = false;
  EXPECT_TRUE(add());
  gpu_.exports = true;
  EXPECT_TRUE(add());
  EXPECT_EQ(attempts_by_dma_buf, 0);
}

TEST_F(RegisteredGpuMemory, IsNamedByItsAddressWhereTheLibraryIsOld) {
  library_.reg_dmabuf_mr = nullptr;
  EXPECT_TRUE(add());
  EXPECT_EQ(attempts_by_address, 1);
}

TEST_F(RegisteredGpuMemory, IsRefusedOnceAndForAll) {
  takes_dma_buf = takes_address = false;
  EXPECT_FALSE(add());
  takes_dma_buf = takes_address = true;
  EXPECT_FALSE(add());
  EXPECT_EQ(attempts_by_dma_buf + attempts_by_address, 2);
}

TEST_F(RegisteredGpuMemory, IsTriedAgainWhereItHasWorked) {
  EXPECT_TRUE(add());
  takes_dma_buf = takes_address = false;
  EXPECT_FALSE(add());
  takes_dma_buf = true;
  EXPECT_TRUE(add());
}

}  // namespace
}  // namespace gapless::fabric::verbs
