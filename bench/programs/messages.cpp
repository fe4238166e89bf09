// Messages between two processes, from a vector to a vector with as much gap as data: half a round trip. One line of
// JSON for each length and block; block 0 is a contiguous message of the same bytes.
//
//   messages gpu|host|mixed datatype|by_hand|copy|bus|host_pack BYTES:BLOCK...
//
// `mixed`: the first process has GPU memory, the second one host memory and no GPU. `datatype` leaves the vector to
// MPI. `by_hand` is a careful program of GPUs: the driver's two-dimensional copy packs into GPU memory, a contiguous
// message goes from there, and another such copy unpacks. The others are no messages, but what the first process alone
// takes for as many bytes: `copy` is a contiguous copy within its GPU, `bus` between its GPU and page-locked memory,
// there and back, `host_pack` an MPI_Pack and an MPI_Unpack of the vector in host memory. All messages come out of one
// allocation and go into another, as in programs that allocate their fields once.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "gpu_memory.hpp"

namespace gapless::bench {
namespace {

int rank, other;

/// The driver's description of a two-dimensional copy (CUDA_MEMCPY2D), from GPU memory to GPU memory.
struct Copy2D {
  static constexpr unsigned gpu_memory = 2;
  struct End {
    std::size_t x = 0, y = 0;
    unsigned kind = gpu_memory;
    const void* host = nullptr;
    unsigned long long address = 0;
    void* array = nullptr;
    std::size_t pitch = 0;
  };
  End source, destination;
  std::size_t width = 0, height = 0;
};

/// `blocks` blocks of `block` bytes, `from_pitch` apart at `from`, to `to_pitch` apart at `to`; done on return.
void copy_blocks(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t block,
                 std::size_t blocks) {
  Copy2D copy;
  copy.source.address = reinterpret_cast<unsigned long long>(from);
  copy.source.pitch = from_pitch;
  copy.destination.address = reinterpret_cast<unsigned long long>(to);
  copy.destination.pitch = to_pitch;
  copy.width = block;
  copy.height = blocks;
  driver("cuMemcpy2DUnaligned_v2", static_cast<const Copy2D*>(&copy));
  driver("cuCtxSynchronize");
}

MPI_Datatype type_of(std::size_t bytes, std::size_t block) {
  MPI_Datatype type;
  const int length = static_cast<int>(block);
  if (block == 0) {
    MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type);
  } else {
    MPI_Type_vector(static_cast<int>(bytes / block), length, 2 * length, MPI_BYTE, &type);
  }
  MPI_Type_commit(&type);
  return type;
}

unsigned char value(std::size_t i, int from) {
  return static_cast<unsigned char>(i * 2654435761u >> 20 ^ static_cast<unsigned>(from) * 77u);
}

/// Every byte of the other's blocks has come, and no other byte.
void check(const std::vector<unsigned char>& received, std::size_t extent, std::size_t block) {
  for (std::size_t i = 0; i < extent; ++i) {
    const bool is_named = block == 0 || i / block % 2 == 0;
    if (received[i] != (is_named ? value(i, other) : 0xee)) give_up("wrong data");
  }
}

enum class Way { datatype, by_hand, copy, bus, host_pack };

bool is_message(Way way) { return way == Way::datatype || way == Way::by_hand; }

/// How many bytes of memory a message needs, of `bytes` bytes in blocks of `block` bytes.
std::size_t extent_of(std::size_t bytes, std::size_t block) { return block == 0 ? bytes : 2 * bytes; }

/// Allocated once.
struct Memories {
  Memory sent, received, packed;
};

/// What a message through host memory is made of; two copies each.
class Copies {
 public:
  Copies(Way way, Memories& memories, std::size_t bytes, std::size_t block)
      : way_(way), memories_(memories), bytes_(bytes), type_(type_of(bytes, block)) {
    if (way == Way::host_pack) packed_.resize(bytes);
    if (way == Way::bus) driver("cuMemAllocHost_v2", &locked_, bytes);
  }
  ~Copies() {
    if (way_ == Way::bus) driver("cuMemFreeHost", locked_);
    MPI_Type_free(&type_);
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  void there_and_back() {
    void *const sent = memories_.sent.data(), *const received = memories_.received.data();
    if (way_ == Way::bus) {
      driver("cuMemcpyDtoH_v2", locked_, reinterpret_cast<unsigned long long>(sent), bytes_);
      driver("cuMemcpyHtoD_v2", reinterpret_cast<unsigned long long>(received), static_cast<const void*>(locked_),
             bytes_);
      return;
    }
    if (way_ == Way::host_pack) {
      const int bytes = static_cast<int>(bytes_);
      int packed = 0, unpacked = 0;
      MPI_Pack(memories_.sent.contents().data(), 1, type_, packed_.data(), bytes, &packed, MPI_COMM_WORLD);
      MPI_Unpack(packed_.data(), bytes, &unpacked, memories_.received.contents().data(), 1, type_, MPI_COMM_WORLD);
      return;
    }
    for (int half = 0; half < 2 && way_ == Way::copy; ++half) copy_blocks(received, bytes_, sent, bytes_, bytes_, 1);
  }

 private:
  Way way_;
  Memories& memories_;
  std::size_t bytes_;
  MPI_Datatype type_;
  std::vector<unsigned char> packed_;
  void* locked_ = nullptr;
};

/// The two halves of an exchange of `bytes` bytes in blocks of `block` bytes, as much apart, by one way.
class Messages {
 public:
  Messages(Way way, Memory& packed, std::size_t bytes, std::size_t block)
      : way_(way), bytes_(static_cast<int>(bytes)), block_(block), type_(type_of(bytes, block)), packed_(packed) {}
  ~Messages() { MPI_Type_free(&type_); }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  void send(Memory& memory) {
    if (way_ == Way::datatype) MPI_Send(memory.data(), 1, type_, other, 0, MPI_COMM_WORLD);
    if (way_ != Way::by_hand) return;
    if (block_ != 0) copy_blocks(packed_.data(), block_, memory.data(), 2 * block_, block_, blocks());
    MPI_Send(block_ == 0 ? memory.data() : packed_.data(), bytes_, MPI_BYTE, other, 0, MPI_COMM_WORLD);
  }
  void receive(Memory& memory) {
    if (way_ == Way::datatype) MPI_Recv(memory.data(), 1, type_, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (way_ != Way::by_hand) return;
    void* const into = block_ == 0 ? memory.data() : packed_.data();
    MPI_Recv(into, bytes_, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (block_ != 0) copy_blocks(memory.data(), 2 * block_, packed_.data(), block_, block_, blocks());
  }

 private:
  std::size_t blocks() const { return static_cast<std::size_t>(bytes_) / block_; }
  Way way_;
  int bytes_;
  std::size_t block_;
  MPI_Datatype type_;
  Memory& packed_;
};

void run(Memories& memories, Way way, std::size_t bytes, std::size_t block) {
  const std::size_t extent = extent_of(bytes, block);
  Memory &sent = memories.sent, &received = memories.received;
  for (std::size_t i = 0; i < extent; ++i) sent.contents()[i] = value(i, rank);
  std::fill_n(received.contents().begin(), extent, static_cast<unsigned char>(0xee));
  sent.write(extent);
  received.write(extent);
  Messages messages(way, memories.packed, bytes, block);
  Copies copies(rank == 0 ? way : Way::datatype, memories, bytes, block);
  const auto round_trip = [&] {
    if (!is_message(way)) return copies.there_and_back();
    if (rank == 1) messages.receive(received);
    messages.send(sent);
    if (rank == 0) messages.receive(received);
  };
  const double start = MPI_Wtime();
  round_trip();
  double first = MPI_Wtime() - start;
  for (int i = 0; i < 2; ++i) round_trip();
  const double again = MPI_Wtime();
  round_trip();
  double seconds = MPI_Wtime() - again;
  MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  const int rounds = std::clamp(static_cast<int>(0.15 / seconds), 3, 400);
  std::vector<double> samples;
  for (int i = 0; i < rounds; ++i) {
    const double begin = MPI_Wtime();
    round_trip();
    samples.push_back((MPI_Wtime() - begin) / 2);
  }
  std::nth_element(samples.begin(), samples.begin() + rounds / 2, samples.end());
  received.read(extent);
  if (is_message(way)) check(received.contents(), extent, block);
  if (rank != 0) return;
  std::printf("{\"bytes\": %zu, \"block\": %zu, \"us\": %.2f, \"first_us\": %.2f}\n", bytes, block,
              samples[static_cast<std::size_t>(rounds / 2)] * 1e6, first / 2 * 1e6);
  std::fflush(stdout);
}

}  // namespace
}  // namespace gapless::bench

int main(int argc, char** argv) {
  using namespace gapless::bench;  // NOLINT: the program's own
  MPI_Init(&argc, &argv);
  int processes = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  other = 1 - rank;
  const std::string_view memory = argc > 1 ? argv[1] : "";
  const bool on_gpu = memory == "gpu" || (memory == "mixed" && rank == 0);
  if (processes != 2) give_up("two processes are needed");
  if (on_gpu) use_gpu(rank);
  const std::string_view named = argc > 2 ? argv[2] : "";
  const Way way = named == "copy"        ? Way::copy
                  : named == "by_hand"   ? Way::by_hand
                  : named == "bus"       ? Way::bus
                  : named == "host_pack" ? Way::host_pack
                                         : Way::datatype;
  if (way == Way::by_hand && memory != "gpu") give_up("by hand only between GPUs");
  if (way != Way::datatype && memory == "host") give_up("only where there is GPU memory");
  struct Row {
    std::size_t bytes = 0, block = 0;
  };
  std::vector<Row> rows(static_cast<std::size_t>(std::max(argc - 3, 0)));
  std::size_t most = 1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (std::sscanf(argv[i + 3], "%zu:%zu", &rows[i].bytes, &rows[i].block) != 2) give_up("what is BYTES:BLOCK?");
    most = std::max(most, extent_of(rows[i].bytes, rows[i].block));
  }
  {
    Memories memories{{on_gpu, most}, {on_gpu, most}, {on_gpu, way == Way::by_hand ? most : 1}};
    for (const Row& row : rows) run(memories, way, row.bytes, row.block);
  }
  MPI_Finalize();
}
