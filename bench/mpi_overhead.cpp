// What does a call cost that gapless lets through? Every call is timed through the name the program uses and through
// the library's own symbol, interleaved in one process; run it with gapless preloaded. Prints one JSON line per call.
#include <cstdio>
#include <vector>

#include "measure.hpp"
#include "native_mpi.hpp"

namespace {

struct Pair {
  const char* call;
  std::function<void()> interposed;
  std::function<void()> native;
};

MPI_Datatype contiguous_type() {
  MPI_Datatype type;
  MPI_Type_contiguous(4, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

std::vector<Pair> pairs(int* data, char* packed) {
  const auto native_send = GAPLESS_BENCH_NATIVE(Send);
  const auto native_recv = GAPLESS_BENCH_NATIVE(Recv);
  const auto native_pack = GAPLESS_BENCH_NATIVE(Pack);
  const auto native_isend = GAPLESS_BENCH_NATIVE(Isend);
  const auto native_sendrecv = GAPLESS_BENCH_NATIVE(Sendrecv);
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
  return {
      {"MPI_Send of MPI_INT", send(&MPI_Send, MPI_INT), send(native_send, MPI_INT)},
      {"MPI_Send of a contiguous type", send(&MPI_Send, derived), send(native_send, derived)},
      {"MPI_Recv of MPI_INT", recv(&MPI_Recv), recv(native_recv)},
      {"MPI_Sendrecv of MPI_INT", sendrecv(&MPI_Sendrecv), sendrecv(native_sendrecv)},
      {"MPI_Pack of MPI_INT", pack(&MPI_Pack), pack(native_pack)},
      {"MPI_Isend of MPI_INT and MPI_Wait", isend(&MPI_Isend), isend(native_isend)},
  };
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int data[16] = {};
  char packed[64];
  for (const Pair& pair : pairs(data, packed)) {
    pair.interposed();  // the first call finds the library, which would mislead the calibration
    const auto timings = gapless::bench::measure({{"gapless", pair.interposed}, {"native", pair.native}}, 301, 2e-4);
    std::printf("{\"call\": \"%s\", \"interposed\": %s, \"gapless_ns\": %.2f, \"native_ns\": %.2f}\n", pair.call,
                gapless::bench::is_interposed() ? "true" : "false", timings[0].median * 1e9, timings[1].median * 1e9);
  }
  MPI_Finalize();
}
