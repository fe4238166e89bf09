// Messages between two processes, from a vector to a vector with as much gap as data: half a round trip. One line of
// JSON for each length and block; block 0 is a contiguous message of the same bytes.
//
//   messages gpu|host BYTES:BLOCK...
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace gapless::bench {
namespace {

int rank, other;

[[noreturn]] void give_up(const char* why) {
  std::printf("{\"wrong\": \"%s\"}\n", why);
  std::fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

/// The driver's functions, so that the program needs no toolkit.
template <class... Arguments>
void driver(const char* name, Arguments... arguments) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) give_up("there is no GPU driver");
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  if (function == nullptr || function(arguments...) != 0) give_up(name);
}

/// Memory of a GPU of the process's own, as far as there are some, or of the host.
class Memory {
 public:
  Memory(bool on_gpu, std::size_t bytes) : host_(bytes), on_gpu_(on_gpu) {
    if (on_gpu) driver("cuMemAlloc_v2", &address_, bytes);
  }
  ~Memory() {
    if (on_gpu_) driver("cuMemFree_v2", address_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* data() { return on_gpu_ ? reinterpret_cast<void*>(address_) : host_.data(); }
  std::vector<unsigned char>& contents() { return host_; }
  void write() {
    if (on_gpu_) driver("cuMemcpyHtoD_v2", address_, static_cast<const void*>(host_.data()), host_.size());
  }
  void read() {
    if (on_gpu_) driver("cuMemcpyDtoH_v2", static_cast<void*>(host_.data()), address_, host_.size());
  }

 private:
  std::vector<unsigned char> host_;
  bool on_gpu_;
  unsigned long long address_ = 0;
};

void use_gpu() {
  int count = 0, device = 0;
  void* context = nullptr;
  driver("cuInit", 0U);
  driver("cuDeviceGetCount", &count);
  if (count == 0) give_up("there is no GPU");
  driver("cuDeviceGet", &device, rank % count);
  driver("cuDevicePrimaryCtxRetain", &context, device);
  driver("cuCtxSetCurrent", context);
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
void check(std::vector<unsigned char>& received, std::size_t block) {
  for (std::size_t i = 0; i < received.size(); ++i) {
    const bool is_named = block == 0 || i / block % 2 == 0;
    if (received[i] != (is_named ? value(i, other) : 0xee)) give_up("wrong data");
  }
}

void run(bool on_gpu, std::size_t bytes, std::size_t block) {
  const std::size_t extent = block == 0 ? bytes : 2 * bytes;
  Memory sent(on_gpu, extent), received(on_gpu, extent);
  for (std::size_t i = 0; i < extent; ++i) sent.contents()[i] = value(i, rank);
  std::fill(received.contents().begin(), received.contents().end(), static_cast<unsigned char>(0xee));
  sent.write();
  received.write();
  MPI_Datatype type = type_of(bytes, block);
  const auto round_trip = [&] {
    if (rank == 1) MPI_Recv(received.data(), 1, type, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(sent.data(), 1, type, other, 0, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(received.data(), 1, type, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
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
  received.read();
  check(received.contents(), block);
  MPI_Type_free(&type);
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
  const bool on_gpu = argc > 1 && std::strcmp(argv[1], "gpu") == 0;
  if (processes != 2) give_up("two processes are needed");
  if (on_gpu) use_gpu();
  for (int i = 2; i < argc; ++i) {
    std::size_t bytes = 0, block = 0;
    if (std::sscanf(argv[i], "%zu:%zu", &bytes, &block) != 2) give_up("what is BYTES:BLOCK?");
    run(on_gpu, bytes, block);
  }
  MPI_Finalize();
}
