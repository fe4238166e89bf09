// GPU buffers on MPI libraries that know nothing of GPUs: packing in all four combinations of memory, and messages in
// every mode, blocking and not.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/messages.hpp"
#include "support/statistics.hpp"
#include "support/types/library_defects.hpp"
#include "support/types/memory.hpp"
#include "support/types/type.hpp"

namespace gapless::test {
namespace {

/// A user's buffer that can be given to MPI from either memory.
class Buffer {
 public:
  Buffer(const Memory& host, bool on_gpu, std::ptrdiff_t base) : base_(base), host_(host.bytes()) {
    if (on_gpu) gpu_ = std::make_unique<OnGpu>(host_);
  }
  void* address() { return gpu_ ? gpu_->at(base_) : host_.data() + base_; }
  std::vector<std::byte> bytes() const { return gpu_ ? gpu_->bytes() : host_; }

 private:
  std::ptrdiff_t base_;
  std::vector<std::byte> host_;
  std::unique_ptr<OnGpu> gpu_;
};

Buffer buffer_of(const Memory& memory, bool on_gpu) { return {memory, on_gpu, memory.origin()}; }

struct Case {
  Type type;
  int count;
};

std::vector<Case> cases(int random_ones) {
  const Type& real = predefined_types()[0];
  std::vector<Case> result;
  const auto add = [&](MPI_Datatype handle, const TypeMap& map, int count, const char* text) {
    result.push_back({Type(handle, map, text), count});
    result.back().type.commit();
  };
  MPI_Datatype handle;
  TypeMap dense;
  for (int i = 0; i < 3000; ++i) dense.place(real.map(), i * real.map().extent);
  MPI_Type_contiguous(3000, real.handle(), &handle);
  add(handle, dense, 2, "contiguous(3000)");
  // An empty block beyond all others, which MPICH's true bounds reach to.
  TypeMap few;
  for (int i = 0; i < 3; ++i) few.place(real.map(), 8 + i * real.map().extent);
  MPI_Datatype nothing;
  MPI_Type_contiguous(0, real.handle(), &nothing);
  const int lengths[2] = {3, 1};
  const MPI_Aint places[2] = {8, 500};
  const MPI_Datatype fields[2] = {real.handle(), nothing};
  MPI_Type_create_struct(2, lengths, places, fields, &handle);
  MPI_Type_free(&nothing);
  add(handle, few, 1, "struct(3, nothing)");  // Open MPI 5.0.11 packs two of it as if the extent were 3
  TypeMap rows;
  for (int i = 0; i < 700; ++i) rows.place(real.map(), 5 * i * real.map().extent);
  MPI_Type_vector(700, 1, 5, real.handle(), &handle);
  add(handle, rows, 3, "vector(700, 1, 5)");
  Random random(seed());
  for (int i = 0; i < random_ones; ++i) {
    Type type = random_type(random, random.between(1, 4));
    const int count = random.between(1, 3);
    if (library_packs_by_type_map(type, count)) result.push_back({std::move(type), count});
  }
  return result;
}

std::string place(bool on_gpu) { return on_gpu ? "GPU" : "host"; }

TEST(DeviceMemory, PackAndUnpackInEveryCombination) {
  Random random(seed() + 1);
  for (const auto& [type, count] : cases(40)) {
    const std::vector<MPI_Aint> offsets = packed_offsets(type.map(), count);
    for (const bool memory_on_gpu : {false, true}) {
      for (const bool packed_on_gpu : {false, true}) {
        SCOPED_TRACE(type.text() + ", memory " + place(memory_on_gpu) + ", packed " + place(packed_on_gpu));
        Memory memory(offsets, random);
        const std::vector<std::byte> expected = memory.packed(offsets);
        Buffer user = buffer_of(memory, memory_on_gpu);
        std::vector<std::byte> wanted(expected.size() + 16, std::byte{0x5A});
        OnGpu packed_gpu(wanted);
        std::vector<std::byte> packed_host = wanted;
        void* packed = packed_on_gpu ? packed_gpu.at() : packed_host.data();
        int position = 7;
        EXPECT_EQ(MPI_SUCCESS, MPI_Pack(user.address(), count, type.handle(), packed, static_cast<int>(wanted.size()),
                                        &position, MPI_COMM_WORLD));
        EXPECT_EQ(7 + static_cast<int>(expected.size()), position);
        std::ranges::copy(expected, wanted.begin() + 7);
        EXPECT_TRUE(same_bytes(wanted, packed_on_gpu ? packed_gpu.bytes() : packed_host));

        if (overlaps(offsets)) continue;
        Memory target(offsets, random);
        const std::vector<std::byte> after = target.after_unpacking(expected, offsets);
        Buffer receiver = buffer_of(target, memory_on_gpu);
        position = 7;
        EXPECT_EQ(MPI_SUCCESS, MPI_Unpack(packed, static_cast<int>(wanted.size()), &position, receiver.address(), count,
                                          type.handle(), MPI_COMM_WORLD));
        EXPECT_EQ(7 + static_cast<int>(expected.size()), position);
        EXPECT_TRUE(same_bytes(after, receiver.bytes()));
      }
    }
  }
}

/// Runs `pass(type, count, outgoing on GPU, incoming on GPU)` for every non-overlapping case where a GPU takes part.
void for_messages(int random_ones, const std::function<void(const Type&, int, bool, bool)>& pass) {
  for (const auto& [type, count] : cases(random_ones)) {
    if (overlaps(packed_offsets(type.map(), count))) continue;
    for (const auto& [out, in] : {std::pair{true, true}, {true, false}, {false, true}}) {
      SCOPED_TRACE(type.text() + ", from " + place(out) + " to " + place(in));
      pass(type, count, out, in);
    }
  }
}

TEST(DeviceMemory, MessagesInEveryMode) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  const int partner = rank() ^ 1;
  Random random(seed() + 2);
  for_messages(10, [&](const Type& type, int count, bool out, bool in) {
    const std::vector<MPI_Aint> offsets = packed_offsets(type.map(), count);
    for (const SendMode mode :
         {SendMode::send, SendMode::ssend, SendMode::bsend, SendMode::isend, SendMode::persistent}) {
      for (const ReceiveWay way : {ReceiveWay::recv, ReceiveWay::mrecv, ReceiveWay::irecv, ReceiveWay::persistent}) {
        SCOPED_TRACE(std::string(name(mode)) + ", " + name(way));
        Memory source(offsets, random);
        Memory target(offsets, random);
        Buffer outgoing = buffer_of(source, out);
        Buffer incoming = buffer_of(target, in);
        MPI_Status status;
        exchange(mode, way, {outgoing.address(), count, type.handle()}, {incoming.address(), count, type.handle()},
                 partner, &status);
        // Both ranks draw the same numbers, so what the partner sent is what this rank would have.
        EXPECT_TRUE(same_bytes(target.after_unpacking(source.packed(offsets), offsets), incoming.bytes()));
        EXPECT_EQ(partner, status.MPI_SOURCE);
        int received = -1;
        EXPECT_EQ(MPI_SUCCESS, MPI_Get_count(&status, type.handle(), &received));
        EXPECT_EQ(offsets.empty() ? 0 : count, received);
      }
    }
  });
}

TEST(DeviceMemory, SendrecvAndReplace) {
  const int partner = size() < 2 ? rank() : rank() ^ 1;
  Random random(seed() + 3);
  for_messages(10, [&](const Type& type, int count, bool out, bool in) {
    const std::vector<MPI_Aint> offsets = packed_offsets(type.map(), count);
    Memory source(offsets, random);
    Memory target(offsets, random);
    Buffer outgoing = buffer_of(source, out);
    Buffer incoming = buffer_of(target, in);
    EXPECT_EQ(MPI_SUCCESS, MPI_Sendrecv(outgoing.address(), count, type.handle(), partner, 3, incoming.address(), count,
                                        type.handle(), partner, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    EXPECT_TRUE(same_bytes(target.after_unpacking(source.packed(offsets), offsets), incoming.bytes()));
    EXPECT_TRUE(same_bytes(source.bytes(), outgoing.bytes()));
    EXPECT_EQ(MPI_SUCCESS, MPI_Sendrecv_replace(outgoing.address(), count, type.handle(), partner, 4, partner, 4,
                                                MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    EXPECT_TRUE(same_bytes(source.bytes(), outgoing.bytes()));
  });
}

TEST(DeviceMemory, EveryKindOfMemoryOfAGpu) {
  const int partner = size() < 2 ? rank() : rank() ^ 1;
  Random random(seed() + 7);
  std::vector<Case> all = cases(0);
  for (const auto& [type, count] : all) {
    const std::vector<MPI_Aint> offsets = packed_offsets(type.map(), count);
    for (const GpuMemory out : kinds_at_hand()) {
      for (const GpuMemory in : kinds_at_hand()) {
        SCOPED_TRACE(type.text() + ", from " + name(out) + " to " + name(in));
        Memory source(offsets, random);
        Memory target(offsets, random);
        OnGpu outgoing(source.bytes(), out);
        OnGpu incoming(target.bytes(), in);
        OnGpu packed(std::vector<std::byte>(offsets.size()), in);
        int position = 0;
        EXPECT_EQ(MPI_SUCCESS, MPI_Pack(outgoing.at(source.origin()), count, type.handle(), packed.at(),
                                        static_cast<int>(offsets.size()), &position, MPI_COMM_WORLD));
        EXPECT_TRUE(same_bytes(source.packed(offsets), packed.bytes()));
        EXPECT_EQ(MPI_SUCCESS, MPI_Sendrecv(outgoing.at(source.origin()), count, type.handle(), partner, 8,
                                            incoming.at(target.origin()), count, type.handle(), partner, 8,
                                            MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        EXPECT_TRUE(same_bytes(target.after_unpacking(source.packed(offsets), offsets), incoming.bytes()));
      }
    }
  }
}

TEST(DeviceMemory, ShortMessagesTouchNothingElseAndLongOnesAreTruncationErrors) {
  const int partner = size() < 2 ? rank() : rank() ^ 1;
  ReturnErrors errors(MPI_COMM_WORLD);
  std::vector<Case> all = cases(0);
  const auto& [type, count] = all.back();
  const std::vector<MPI_Aint> offsets = packed_offsets(type.map(), count);
  Random random(seed() + 4);
  Memory target(offsets, random);
  std::vector<std::byte> message(offsets.size() + 64, std::byte{0x3C});
  for (const std::size_t sent : {std::size_t{0}, std::size_t{1}, offsets.size() / 2 + 3, offsets.size()}) {
    Buffer incoming = buffer_of(target, true);
    MPI_Status status;
    EXPECT_EQ(MPI_SUCCESS, MPI_Sendrecv(message.data(), static_cast<int>(sent), MPI_BYTE, partner, 5,
                                        incoming.address(), count, type.handle(), partner, 5, MPI_COMM_WORLD, &status));
    EXPECT_TRUE(same_bytes(target.after_unpacking({message.data(), sent}, offsets), incoming.bytes()));
    int received = -1;
    MPI_Get_count(&status, MPI_BYTE, &received);
    EXPECT_EQ(static_cast<int>(sent), received);
  }
  Buffer incoming = buffer_of(target, true);
  const int code =
      MPI_Sendrecv(message.data(), static_cast<int>(message.size()), MPI_BYTE, partner, 6, incoming.address(), count,
                   type.handle(), partner, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#ifdef OPEN_MPI  // says nothing, in its own calls as well, when a short message to oneself is truncated
  if (partner == rank()) return;
#endif
  EXPECT_EQ(MPI_ERR_TRUNCATE, error_class(code));
}

/// Longer than a segment, and than what MPI libraries send at once.
TEST(DeviceMemory, LongMessagesGoTheForcedWay) {
  constexpr int rows = 50'000, length = 72, stride = 100;
  MPI_Datatype type;
  MPI_Type_vector(rows, length, stride, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  std::vector<std::byte> sent(rows * stride), received(rows * stride, std::byte{0xEE});
  for (std::size_t i = 0; i < sent.size(); ++i) {
    sent[i] = static_cast<std::byte>(i * 2654435761u >> 22);
  }
  OnGpu from(sent), to(received);
  const std::uint64_t by_gpu = gpu_messages(), pipelined = pipelined_messages(), in_gpu_memory = device_messages();
  const int partner = size() > 1 ? rank() ^ 1 : 0;
  MPI_Request request;
  EXPECT_EQ(MPI_SUCCESS, MPI_Irecv(to.at(), 1, type, partner, 7, MPI_COMM_WORLD, &request));
  EXPECT_EQ(MPI_SUCCESS, MPI_Send(from.at(), 1, type, partner, 7, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (std::size_t i = 0; i < received.size(); ++i) {
    if (i % stride < length) received[i] = sent[i];
  }
  EXPECT_TRUE(same_bytes(received, to.bytes()));
  MPI_Type_free(&type);
  if (!under_gapless()) return;
  const char* const forced = std::getenv("GAPLESS_SCHEME");
  const std::string scheme = forced != nullptr ? forced : "";
  EXPECT_EQ(by_gpu + 2, gpu_messages());
  EXPECT_EQ(pipelined + (scheme == "pipelined" ? 2 : 0), pipelined_messages());
  if (scheme == "device") {
    EXPECT_EQ(in_gpu_memory + 2, device_messages());
  }
}

/// The last of the cases: random bytes, and a copy of them in GPU memory.
struct OnGpu {
  explicit OnGpu(int number_of_test) : random(seed() + number_of_test) {}

  std::vector<Case> all = cases(0);
  const Type& type = all.back().type;
  int count = all.back().count;
  std::vector<MPI_Aint> offsets = packed_offsets(type.map(), count);
  Random random;
  Memory memory{offsets, random};
  Buffer buffer = buffer_of(memory, true);
};

TEST(DeviceMemory, NothingMovesToOrFromNoProcess) {
  OnGpu on_gpu(5);
  auto& [all, type, count, offsets, random, memory, buffer] = on_gpu;
  MPI_Status status;
  EXPECT_EQ(MPI_SUCCESS, MPI_Send(buffer.address(), count, type.handle(), MPI_PROC_NULL, 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_SUCCESS, MPI_Recv(buffer.address(), count, type.handle(), MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
  EXPECT_EQ(MPI_PROC_NULL, status.MPI_SOURCE);
  EXPECT_TRUE(same_bytes(memory.bytes(), buffer.bytes()));
}

/// What is wrong with the arguments is the library's to say, and no request is made.
TEST(DeviceMemory, MistakesOfTheProgramHaveTheirErrorClasses) {
  ReturnErrors world(MPI_COMM_WORLD), self(MPI_COMM_SELF);
  OnGpu on_gpu(8);
  auto& [all, type, count, offsets, random, memory, buffer] = on_gpu;
  struct Mistake {
    int wanted, count;
    MPI_Datatype type;
    int peer, tag;
  };
  const Mistake mistakes[] = {{MPI_ERR_RANK, count, type.handle(), size(), 0},
                              {MPI_ERR_RANK, count, type.handle(), -77, 0},
                              {MPI_ERR_TAG, count, type.handle(), 0, -77},
                              {MPI_ERR_COUNT, -1, type.handle(), 0, 0},
                              {MPI_ERR_TYPE, count, MPI_DATATYPE_NULL, 0, 0}};
  const MPI_Comm comm = MPI_COMM_WORLD;
  void* const at = buffer.address();
  for (const auto& [wanted, n, of, peer, tag] : mistakes) {
    SCOPED_TRACE("error class " + std::to_string(wanted) + ", rank " + std::to_string(peer));
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT_EQ(wanted, error_class(MPI_Send(at, n, of, peer, tag, comm)));
    EXPECT_EQ(wanted, error_class(MPI_Isend(at, n, of, peer, tag, comm, &request)));
    EXPECT_EQ(wanted, error_class(MPI_Irecv(at, n, of, peer, tag, comm, &request)));
    EXPECT_EQ(wanted, error_class(MPI_Send_init(at, n, of, peer, tag, comm, &request)));
    EXPECT_EQ(wanted, error_class(MPI_Recv_init(at, n, of, peer, tag, comm, &request)));
    EXPECT_EQ(wanted, error_class(MPI_Recv(at, n, of, peer, tag, comm, MPI_STATUS_IGNORE)));
    EXPECT_EQ(MPI_REQUEST_NULL, request);
  }
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPI_Send(at, count, type.handle(), 0, 0, MPI_COMM_NULL)));
  EXPECT_EQ(MPI_ERR_ROOT, error_class(MPI_Bcast(at, count, type.handle(), size(), comm)));
  EXPECT_EQ(MPI_ERR_TYPE, error_class(MPI_Bcast(at, count, MPI_DATATYPE_NULL, 0, comm)));
  EXPECT_TRUE(same_bytes(memory.bytes(), buffer.bytes()));
}

TEST(DeviceMemory, PackedBytesThatDoNotFitAreAnError) {
  ReturnErrors errors(MPI_COMM_WORLD);
  OnGpu on_gpu(7);
  auto& [all, type, count, offsets, random, memory, user] = on_gpu;
  const std::vector<std::byte> untouched(offsets.size());
  std::vector<std::byte> packed(offsets.size());
  const int too_few = static_cast<int>(packed.size()) - 1;
  int position = 0;
  EXPECT_EQ(MPI_ERR_TRUNCATE, error_class(MPI_Pack(user.address(), count, type.handle(), packed.data(), too_few,
                                                   &position, MPI_COMM_WORLD)));
  EXPECT_EQ(MPI_ERR_TRUNCATE, error_class(MPI_Unpack(packed.data(), too_few, &position, user.address(), count,
                                                     type.handle(), MPI_COMM_WORLD)));
  EXPECT_EQ(0, position);
  EXPECT_EQ(untouched, packed);
  EXPECT_TRUE(same_bytes(memory.bytes(), user.bytes()));
}

TEST(DeviceMemory, AFailureOfTheGpuIsAnErrorAndTheNextCallGoesThrough) {
  if (!gpu_fails_on_request()) GTEST_SKIP() << "a real GPU does not fail on request";
  ReturnErrors errors(MPI_COMM_WORLD);
  OnGpu on_gpu(6);
  auto& [all, type, count, offsets, random, memory, user] = on_gpu;
  std::vector<std::byte> packed(offsets.size());
  for (const char* operation : {"run", "synchronize"}) {
    fail_next(operation);
    for (const bool fails : {true, false}) {
      int position = 0;
      const int code = MPI_Pack(user.address(), count, type.handle(), packed.data(), static_cast<int>(packed.size()),
                                &position, MPI_COMM_WORLD);
      EXPECT_EQ(fails, code != MPI_SUCCESS) << operation;
    }
    EXPECT_TRUE(same_bytes(memory.packed(offsets), packed)) << operation;
  }
}

}  // namespace
}  // namespace gapless::test
