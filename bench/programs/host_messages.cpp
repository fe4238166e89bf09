// Messages in host memory between two processes of a node: columns of an array (the benchmark of Wu et al., 2003),
// halos of grids, transposes, and contiguous ones. Each is sent by the library alone, packed, by slots, and as gapless
// chooses, in turn in one run, and every way's bytes are compared with the library's. One line of JSON for each case,
// with what half a round trip of 8 bytes by the library takes meanwhile: a virtual machine's cores may move apart.
//
//   host_messages [SAMPLES [CASE]]
//
// CASE: only cases whose name contains it.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "native_mpi.hpp"

namespace gapless::bench {
namespace {

int rank, other, samples = 15;
std::string_view wanted_case;

/// The functions that a way calls: the library's own, or those that gapless stands before.
struct Functions {
  decltype(&MPI_Send) send;
  decltype(&MPI_Recv) receive;
  decltype(&MPI_Sendrecv) exchange;
  decltype(&MPI_Isend) begin_to_send;
  decltype(&MPI_Irecv) begin_to_receive;
  decltype(&MPI_Send_init) prepare_to_send;
  decltype(&MPI_Recv_init) prepare_to_receive;
  decltype(&MPI_Startall) start_all;
  decltype(&MPI_Waitall) wait_all;
  decltype(&MPI_Alltoallw) transpose;
};

struct Way {
  const char* name;
  const char* scheme;  ///< that is forced; null: none
  bool is_chosen;
  Functions functions;
};

std::vector<Way> all_ways() {
  const Functions native{GAPLESS_BENCH_NATIVE(Send),      GAPLESS_BENCH_NATIVE(Recv),
                         GAPLESS_BENCH_NATIVE(Sendrecv),  GAPLESS_BENCH_NATIVE(Isend),
                         GAPLESS_BENCH_NATIVE(Irecv),     GAPLESS_BENCH_NATIVE(Send_init),
                         GAPLESS_BENCH_NATIVE(Recv_init), GAPLESS_BENCH_NATIVE(Startall),
                         GAPLESS_BENCH_NATIVE(Waitall),   GAPLESS_BENCH_NATIVE(Alltoallw)};
  const Functions ours{MPI_Send,      MPI_Recv,      MPI_Sendrecv, MPI_Isend,   MPI_Irecv,
                       MPI_Send_init, MPI_Recv_init, MPI_Startall, MPI_Waitall, MPI_Alltoallw};
  return {{"native", nullptr, false, native},
          {"packed", "packed", false, ours},
          {"slots", "slots", false, ours},
          {"chosen", nullptr, true, ours}};
}

/// A function of gapless, which no program needs to call.
template <class Function>
Function* core_function(const char* name) {
  void* core = nullptr;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* found) {
        if (std::strstr(object->dlpi_name, "/libgapless-core.so") == nullptr) return 0;
        *static_cast<void**>(found) = dlopen(object->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
        return 1;
      },
      &core);
  return core != nullptr ? reinterpret_cast<Function*>(dlsym(core, name)) : nullptr;
}

void force(const char* scheme) {
  static auto* const function = core_function<void(const char*)>("gapless_transfer_force_scheme");
  if (function != nullptr) function(scheme);
}

/// The datatypes of a case, made for each way: what is found out of a datatype is kept with it.
using Types = std::vector<MPI_Datatype>;

struct Case {
  std::string name;
  double bytes;
  std::size_t sent_bytes, received_bytes;  ///< of memory
  std::function<Types()> make_types;
  /// One call or exchange, the same on both processes.
  std::function<void(const Functions&, const Types&, const char* sent, char* received)> run;
  double messages = 1;  ///< that its time is divided by
};

/// Of the slower process.
double seconds_of(const std::function<void()>& call, int calls) {
  GAPLESS_BENCH_NATIVE(Barrier)(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call();
  double seconds = (MPI_Wtime() - start) / calls, slower = 0;
  GAPLESS_BENCH_NATIVE(Allreduce)(&seconds, &slower, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slower;
}

/// Has any process an answer to that?
bool is_any(bool mine) {
  int here = mine ? 1 : 0, anywhere = 0;
  GAPLESS_BENCH_NATIVE(Allreduce)(&here, &anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return anywhere != 0;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void round_trip(const Functions& by, const Types& types, const char* sent, char* received) {
  if (rank == 1) by.receive(received, 1, types[0], other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  by.send(sent, 1, types[0], other, 0, MPI_COMM_WORLD);
  if (rank == 0) by.receive(received, 1, types[0], other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/// Half a round trip of 8 bytes by those functions.
double plain_seconds(const Functions& by) {
  constexpr int times = 32;
  const Types types{MPI_DOUBLE};
  std::array<char, sizeof(double)> sent{}, received;
  return seconds_of([&] { round_trip(by, types, sent.data(), received.data()); }, times) / 2;
}

void measure(const Case& what) {
  if (what.name.find(wanted_case) == std::string::npos) return;
  constexpr double sample_seconds = 0.003;
  constexpr int first_uses = 40;     // until the datatype is analysed
  constexpr int first_chosen = 300;  // until the choice is settled too
  const std::vector<Way> ways = all_ways();
  std::vector<char> sent(what.sent_bytes), received(what.received_bytes), wanted;
  for (std::size_t i = 0; i < sent.size(); ++i)
    sent[i] = static_cast<char>(i * 2654435761u >> 20 ^ static_cast<unsigned>(rank) * 77u);
  std::vector<Types> types;
  std::vector<int> calls;
  bool is_wrong = false;
  for (const Way& way : ways) {
    force(way.scheme);
    types.push_back(what.make_types());
    std::fill(received.begin(), received.end(), '\xee');
    const auto call = [&] { what.run(way.functions, types.back(), sent.data(), received.data()); };
    seconds_of(call, way.is_chosen ? first_chosen : first_uses);
    if (wanted.empty()) wanted = received;
    is_wrong |= received != wanted;
    calls.push_back(std::clamp(static_cast<int>(sample_seconds / seconds_of(call, 5)), 1, 5000));
  }
  std::vector<std::vector<double>> seconds(ways.size());
  std::vector<double> plain;
  for (int sample = 0; sample < samples; ++sample) {
    plain.push_back(plain_seconds(ways.front().functions));
    for (std::size_t turn = 0; turn < ways.size(); ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(sample)) % ways.size();
      force(ways[i].scheme);
      seconds[i].push_back(
          seconds_of([&] { what.run(ways[i].functions, types[i], sent.data(), received.data()); }, calls[i]));
    }
  }
  force(nullptr);
  for (Types& of_way : types) {
    for (MPI_Datatype& type : of_way) MPI_Type_free(&type);
  }
  is_wrong = is_any(is_wrong);
  if (rank != 0) return;
  std::printf("{\"case\": \"%s\", \"bytes\": %.0f, \"wrong\": %s", what.name.c_str(), what.bytes,
              is_wrong ? "true" : "false");
  for (std::size_t i = 0; i < ways.size(); ++i)
    std::printf(", \"%s\": %.3f", ways[i].name, median(seconds[i]) / what.messages * 1e6);
  std::printf(", \"plain\": %.3f}\n", median(plain) * 1e6);
  std::fflush(stdout);
}

MPI_Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}

MPI_Datatype subarray(const std::vector<int>& sizes, const std::vector<int>& subsizes, const std::vector<int>& starts) {
  MPI_Datatype type;
  MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), subsizes.data(), starts.data(), MPI_ORDER_C,
                           MPI_DOUBLE, &type);
  return committed(type);
}

/// Messages from rank 0 to rank 1 one after the other, each to a place of its own, and an answer to the last.
template <int window, std::size_t place>
void stream(const Functions& by, const Types& types, const char* sent, char* received) {
  std::array<MPI_Request, window> requests;
  for (MPI_Request& request : requests) {
    if (rank == 0) {
      by.begin_to_send(sent, 1, types[0], other, 0, MPI_COMM_WORLD, &request);
    } else {
      by.begin_to_receive(received, 1, types[0], other, 0, MPI_COMM_WORLD, &request);
      received += place;
    }
  }
  by.wait_all(window, requests.data(), MPI_STATUSES_IGNORE);
  char done = 0;
  if (rank == 0) {
    by.receive(&done, 1, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    by.send(&done, 1, MPI_CHAR, other, 1, MPI_COMM_WORLD);
  }
}

/// Wu et al., 2003, figures 8 and 9: columns of a 128 x 4096 array of int, and contiguous messages of the same bytes.
void columns() {
  constexpr int rows = 128, row = 4096, window = 32;
  constexpr std::size_t bytes = std::size_t{rows} * row * sizeof(int);
  for (int count = 1; count <= 2048; count *= 2) {
    const double packed = static_cast<double>(rows) * count * sizeof(int);
    const auto some_columns = [count] {
      MPI_Datatype type;
      MPI_Type_vector(rows, count, row, MPI_INT, &type);
      return Types{committed(type)};
    };
    const auto contiguous = [count] {
      MPI_Datatype type;
      MPI_Type_contiguous(rows * count, MPI_INT, &type);
      return Types{committed(type)};
    };
    const std::string name = std::to_string(count);
    measure({"latency, columns, " + name, packed, bytes, bytes, some_columns, round_trip, 2});
    measure({"latency, contiguous, " + name, packed, bytes, bytes, contiguous, round_trip, 2});
    measure(
        {"bandwidth, columns, " + name, packed, bytes, window * bytes, some_columns, stream<window, bytes>, window});
    measure(
        {"bandwidth, contiguous, " + name, packed, bytes, window * bytes, contiguous, stream<window, bytes>, window});
  }
}

/// Blocks with gaps as long, of messages that are too long for slots.
void blocks() {
  for (const int mebibytes : {2, 8, 32}) {
    for (const int block : {64, 1024, 65536}) {
      const int bytes = mebibytes << 20;
      const auto type = [bytes, block] {
        MPI_Datatype made;
        MPI_Type_vector(bytes / block, block, 2 * block, MPI_BYTE, &made);
        return Types{committed(made)};
      };
      const auto room = std::size_t{2} * static_cast<std::size_t>(bytes);
      const std::string name =
          "latency, blocks, " + std::to_string(mebibytes) + " MiB of " + std::to_string(block) + " B";
      measure({name, static_cast<double>(bytes), room, room, type, round_trip, 2});
    }
  }
}

/// Short ones, which must cost no more than the library takes.
void contiguous() {
  for (const int bytes : {8, 256, 480, 4096}) {
    const auto type = [bytes] {
      MPI_Datatype made;
      MPI_Type_contiguous(bytes, MPI_BYTE, &made);
      return Types{committed(made)};
    };
    const auto room = static_cast<std::size_t>(bytes);
    measure({"latency, plain, " + std::to_string(bytes), static_cast<double>(bytes), room, room, type, round_trip, 2});
  }
}

/// All 26 parts of a halo, from one process to the other: those sent first, then those received.
Types halo_types(int n, int radius) {
  const int whole = n + 2 * radius;
  Types sent, received;
  for (int k = 0; k < 27; ++k) {
    const std::array<int, 3> direction{k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1};
    if (k == 13) continue;
    std::vector<int> sizes(3, whole), subsizes(3, n), inner(3, radius), outer(3, radius);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (direction[axis] == 0) continue;
      subsizes[axis] = radius;
      inner[axis] = direction[axis] > 0 ? n : radius;
      outer[axis] = direction[axis] > 0 ? 0 : n + radius;
    }
    sent.push_back(subarray(sizes, subsizes, inner));
    received.push_back(subarray(sizes, subsizes, outer));
  }
  sent.insert(sent.end(), received.begin(), received.end());
  return sent;
}

constexpr int neighbours = 26;

void one_by_one(const Functions& by, const Types& types, const char* sent, char* received) {
  for (std::size_t k = 0; k < neighbours; ++k)
    by.exchange(sent, 1, types[k], other, static_cast<int>(k), received, 1, types[neighbours + k], other,
                static_cast<int>(k), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void at_once(const Functions& by, const Types& types, const char* sent, char* received) {
  std::array<MPI_Request, std::size_t{2} * neighbours> requests;
  for (std::size_t k = 0; k < neighbours; ++k)
    by.begin_to_receive(received, 1, types[neighbours + k], other, static_cast<int>(k), MPI_COMM_WORLD, &requests[k]);
  for (std::size_t k = 0; k < neighbours; ++k)
    by.begin_to_send(sent, 1, types[k], other, static_cast<int>(k), MPI_COMM_WORLD, &requests[neighbours + k]);
  by.wait_all(2 * neighbours, requests.data(), MPI_STATUSES_IGNORE);
}

/// The same by persistent requests, which a way makes at its first exchange.
class Restarted {
 public:
  void operator()(const Functions& by, const Types& types, const char* sent, char* received) {
    std::vector<MPI_Request>& requests = made_->of_types[types.data()];
    if (requests.empty()) requests = prepared(by, types, sent, received);
    by.start_all(2 * neighbours, requests.data());
    by.wait_all(2 * neighbours, requests.data(), MPI_STATUSES_IGNORE);
  }

 private:
  struct Made {
    std::map<const MPI_Datatype*, std::vector<MPI_Request>> of_types;

    ~Made() {
      for (auto& [types, requests] : of_types) {
        for (MPI_Request& request : requests) MPI_Request_free(&request);
      }
    }
  };

  static std::vector<MPI_Request> prepared(const Functions& by, const Types& types, const char* sent, char* received) {
    std::vector<MPI_Request> requests(std::size_t{2} * neighbours);
    for (std::size_t k = 0; k < neighbours; ++k) {
      const int tag = static_cast<int>(k);
      by.prepare_to_receive(received, 1, types[neighbours + k], other, tag, MPI_COMM_WORLD, &requests[k]);
      by.prepare_to_send(sent, 1, types[k], other, tag, MPI_COMM_WORLD, &requests[neighbours + k]);
    }
    return requests;
  }

  std::shared_ptr<Made> made_ = std::make_shared<Made>();
};

void halos() {
  for (const int n : {64, 128}) {
    for (const int radius : {1, 2, 3}) {
      const auto whole = static_cast<std::size_t>(n + 2 * radius), inner = static_cast<std::size_t>(n);
      const std::size_t room = whole * whole * whole * sizeof(double);
      const auto bytes = static_cast<double>(room - inner * inner * inner * sizeof(double));
      const auto types = [n, radius] { return halo_types(n, radius); };
      const std::string name = std::to_string(n) + "^3, radius " + std::to_string(radius);
      measure({"halo, Sendrecv, " + name, bytes, room, room, types, one_by_one});
      measure({"halo, Isend and Irecv, " + name, bytes, room, room, types, at_once});
      measure({"halo, Startall, " + name, bytes, room, room, types, Restarted()});
    }
  }
}

/// As mpi4py-fft redistributes an array: `from` is whole before, and `to` after.
void transpose(const std::vector<int>& shape, std::size_t from, std::size_t to) {
  constexpr int processes = 2;
  const auto slabs = [](std::vector<int> sizes, std::size_t axis) {
    Types types;
    for (int k = 0; k < processes; ++k) {
      std::vector<int> subsizes = sizes, starts(sizes.size(), 0);
      subsizes[axis] /= processes;
      starts[axis] = k * subsizes[axis];
      types.push_back(subarray(sizes, subsizes, starts));
    }
    return types;
  };
  std::vector<int> before = shape, after = shape;
  before[to] /= processes;
  after[from] /= processes;
  std::size_t room = sizeof(double);
  for (const int size : before) room *= static_cast<std::size_t>(size);
  const auto types = [=] {
    Types both = slabs(before, from);
    const Types received = slabs(after, to);
    both.insert(both.end(), received.begin(), received.end());
    return both;
  };
  const auto run = [](const Functions& by, const Types& both, const char* sent, char* received) {
    constexpr int ones[processes] = {1, 1}, zeros[processes] = {0, 0};
    by.transpose(sent, ones, zeros, both.data(), received, ones, zeros, both.data() + processes, MPI_COMM_WORLD);
  };
  std::string name = "Alltoallw, ";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis != 0) name.push_back('x');
    name.append(std::to_string(shape[axis]));
  }
  name.append(", axes ").append(std::to_string(from)).append(" to ").append(std::to_string(to));
  measure({name, static_cast<double>(room) / processes, room, room, types, run});
}

void transposes() {
  transpose({64, 64, 64}, 1, 0);
  transpose({128, 128, 128}, 1, 0);
  transpose({128, 128, 128}, 2, 0);
  transpose({64, 64, 128}, 2, 1);
  transpose({512, 512}, 1, 0);
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
  if (argc > 1) samples = std::max(1, std::atoi(argv[1]));
  if (argc > 2) wanted_case = argv[2];
  if (processes != 2 || !is_interposed()) {
    std::printf("{\"case\": \"two processes under gapless\", \"wrong\": true}\n");
  } else {
    contiguous();
    columns();
    blocks();
    halos();
    transposes();
  }
  MPI_Finalize();
}
