// What does a call cost that gapless lets through? Every call is timed through the name the program uses and through
// the library's own symbol, interleaved in one process; run it with gapless preloaded. With --gpu the process holds a
// CUDA context, so gapless has to find out of every buffer that it is host memory; how depends on where the buffer
// lies. Prints one JSON line per call and kind of memory, and with --gpu what one question to the driver takes there.
// Messages of 1 KiB, which the process sends to itself by the library's own symbols, may be headers (docs/concepts.md):
// gapless has a look at each.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "measure.hpp"
#include "native_mpi.hpp"

namespace {

struct Pair {
  const char* call;
  int buffers;  ///< that the call names
  std::function<void()> interposed;
  std::function<void()> native;
};

MPI_Datatype contiguous_type() {
  MPI_Datatype type;
  MPI_Type_contiguous(4, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

struct Buffers {
  int data[16];
  char packed[64];
  char long_message[1024];
};

std::vector<Pair> pairs(Buffers& buffers) {
  int* const data = buffers.data;
  char* const packed = buffers.packed;
  char* const long_message = buffers.long_message;
  const auto native_send = GAPLESS_BENCH_NATIVE(Send);
  const auto native_recv = GAPLESS_BENCH_NATIVE(Recv);
  const auto native_pack = GAPLESS_BENCH_NATIVE(Pack);
  const auto native_isend = GAPLESS_BENCH_NATIVE(Isend);
  const auto native_sendrecv = GAPLESS_BENCH_NATIVE(Sendrecv);
  const auto native_irecv = GAPLESS_BENCH_NATIVE(Irecv);
  const auto native_wait = GAPLESS_BENCH_NATIVE(Wait);
  const MPI_Datatype derived = contiguous_type();
  const auto send = [=](auto function, MPI_Datatype type) {
    return [=] { function(data, 1, type, MPI_PROC_NULL, 1, MPI_COMM_WORLD); };
  };
  const auto recv = [=](auto function) {
    return [=] { function(data, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); };
  };
  const auto pack = [=](auto function) {
    return [=] {
      int position = 0;
      function(data, 4, MPI_INT, packed, 64, &position, MPI_COMM_WORLD);
    };
  };
  const auto isend = [=](auto function) {
    return [=] {
      MPI_Request request;
      function(data, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    };
  };
  const auto sendrecv = [=](auto function) {
    return [=] {
      function(data, 1, MPI_INT, MPI_PROC_NULL, 1, data + 4, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
    };
  };
  constexpr int bytes = sizeof buffers.long_message;
  static char sent[bytes];
  const auto long_recv = [=](auto receive) {
    return [=] {
      MPI_Request request;
      native_isend(sent, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF, &request);
      receive(long_message, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
      native_wait(&request, MPI_STATUS_IGNORE);
    };
  };
  const auto long_irecv = [=](auto receive, auto wait) {
    return [=] {
      MPI_Request request;
      receive(long_message, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF, &request);
      native_send(sent, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF);
      wait(&request, MPI_STATUS_IGNORE);
    };
  };
  return {
      {"MPI_Send of MPI_INT", 1, send(&MPI_Send, MPI_INT), send(native_send, MPI_INT)},
      {"MPI_Send of a contiguous type", 1, send(&MPI_Send, derived), send(native_send, derived)},
      {"MPI_Recv of MPI_INT", 1, recv(&MPI_Recv), recv(native_recv)},
      {"MPI_Sendrecv of MPI_INT", 2, sendrecv(&MPI_Sendrecv), sendrecv(native_sendrecv)},
      {"MPI_Pack of MPI_INT", 2, pack(&MPI_Pack), pack(native_pack)},
      {"MPI_Isend of MPI_INT and MPI_Wait", 1, isend(&MPI_Isend), isend(native_isend)},
      {"MPI_Recv of 1 KiB", 1, long_recv(&MPI_Recv), long_recv(native_recv)},
      {"MPI_Irecv of 1 KiB and MPI_Wait", 1, long_irecv(&MPI_Irecv, &MPI_Wait), long_irecv(native_irecv, native_wait)},
  };
}

constexpr int samples = 151;
constexpr double seconds_per_sample = 2e-4;

/// Nanoseconds of one question to the driver about the buffer's memory; 0 where there is no driver to ask.
double query_of(void* buffer) {
  using Query = int (*)(unsigned count, int* attributes, void** values, unsigned long long pointer);
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return 0;
  const auto query = reinterpret_cast<Query>(dlsym(driver, "cuPointerGetAttributes"));
  if (query == nullptr) return 0;
  const auto ask = [=] {
    unsigned type = 0;
    int is_managed = 0, ordinal = 0;
    int attributes[] = {2, 8, 9};  // the memory's type, whether it is managed, whose it is
    void* values[] = {&type, &is_managed, &ordinal};
    query(3, attributes, values, reinterpret_cast<unsigned long long>(buffer));
  };
  return gapless::bench::measure({{"query", ask}}, samples, seconds_per_sample)[0].median * 1e9;
}

void measure_calls(const char* memory, Buffers& buffers, bool uses_gpu) {
  const double query = uses_gpu ? query_of(&buffers) : 0;
  for (const Pair& pair : pairs(buffers)) {
    pair.interposed();  // the first call finds the library, which would mislead the calibration
    const auto timings =
        gapless::bench::measure({{"gapless", pair.interposed}, {"native", pair.native}}, samples, seconds_per_sample);
    std::printf(
        "{\"call\": \"%s\", \"memory\": \"%s\", \"interposed\": %s, \"gapless_ns\": %.2f, \"native_ns\": %.2f, "
        "\"query_ns\": %.2f, \"buffers\": %d}\n",
        pair.call, memory, gapless::bench::is_interposed() ? "true" : "false", timings[0].median * 1e9,
        timings[1].median * 1e9, query, pair.buffers);
  }
}

/// So large that malloc asks the kernel for pages of its own, unless told otherwise.
constexpr std::size_t large_array = std::size_t{64} << 20;

/// What a program's first CUDA call does, without needing the CUDA toolkit to compile.
bool hold_cuda_context() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (driver == nullptr) return false;
  const auto initialise = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto retain = reinterpret_cast<int (*)(void**, int)>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
  const auto make_current = reinterpret_cast<int (*)(void*)>(dlsym(driver, "cuCtxSetCurrent"));
  void* context = nullptr;
  return initialise != nullptr && retain != nullptr && make_current != nullptr && initialise(0) == 0 &&
         retain(&context, 0) == 0 && make_current(context) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool uses_gpu = argc > 1 && std::strcmp(argv[1], "--gpu") == 0;
  if (uses_gpu && !hold_cuda_context()) {
    std::fprintf(stderr, "mpi_overhead: there is no GPU to hold a context of\n");
    return 1;
  }
  MPI_Init(&argc, &argv);
  static Buffers program_data{};
  Buffers on_stack{};
  const auto on_heap = std::make_unique<Buffers>();
  void* const pages = std::malloc(large_array);
  measure_calls("stack", on_stack, uses_gpu);
  measure_calls("program data", program_data, uses_gpu);
  measure_calls("heap", *on_heap, uses_gpu);
  if (pages != nullptr) measure_calls("pages of its own", *new (pages) Buffers{}, uses_gpu);
  MPI_Finalize();
}
