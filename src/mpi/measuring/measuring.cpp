#include "mpi/measuring/measuring.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>

#include "mpi/datatypes/type_cache.hpp"
#include "mpi/table/entry_points.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/report/statistics.hpp"

#define GAPLESS_EXPORTED [[gnu::visibility("default")]]

namespace gapless::mpi {
namespace {

using transfer::Scheme;
using Clock = std::chrono::steady_clock;
constexpr double failed = -1;
constexpr int tag = 0;

std::optional<Scheme> scheme_of(std::string_view name) noexcept {
  for (std::size_t i = 0; i < transfer::scheme_count; ++i) {
    if (transfer::name(static_cast<Scheme>(i)) == name) return static_cast<Scheme>(i);
  }
  return std::nullopt;
}

/// Forces a scheme while it lives.
class Forced {
 public:
  explicit Forced(Scheme scheme) noexcept { transfer::force_scheme(scheme); }
  ~Forced() { transfer::force_scheme(std::nullopt); }
  Forced(const Forced&) = delete;
  Forced& operator=(const Forced&) = delete;
};

/// The datatype of a shape. It is made after the scheme is forced, for what is found out of a datatype is kept.
class ShapeType {
 public:
  explicit ShapeType(const gapless_measured_shape& shape) noexcept {
    const auto block = static_cast<int>(shape.block), gaps = 2 * block;
    const auto blocks = static_cast<int>(shape.bytes / shape.block);
    const int in_row = static_cast<int>(std::min<std::int64_t>(shape.row_blocks, blocks)), rows = blocks / in_row;
    int code = native.Type_vector(in_row, block, gaps, MPI_BYTE, &row_);
    // The rows' distance does not continue that of their blocks, so that rows stay rows.
    if (code == MPI_SUCCESS) code = native.Type_create_hvector(rows, 1, row_distance(shape), row_, &type_);
    if (code == MPI_SUCCESS) code = native.Type_commit(&type_);
    is_made_ = code == MPI_SUCCESS;
    // Else the first uses would be the library's, until they have cost what the analysis does.
    if (is_made_) type_cache::find(type_);
  }
  ~ShapeType() {
    if (row_ != MPI_DATATYPE_NULL) native.Type_free(&row_);
    if (type_ != MPI_DATATYPE_NULL) entry::Type_free(&type_);
  }
  ShapeType(const ShapeType&) = delete;
  ShapeType& operator=(const ShapeType&) = delete;

  bool is_made() const noexcept { return is_made_; }
  MPI_Datatype handle() const noexcept { return type_; }

  static MPI_Aint row_distance(const gapless_measured_shape& shape) noexcept {
    const std::int64_t in_row = std::min(shape.row_blocks, shape.bytes / shape.block);
    return static_cast<MPI_Aint>(2 * in_row * shape.block + shape.block);
  }

 private:
  MPI_Datatype row_ = MPI_DATATYPE_NULL, type_ = MPI_DATATYPE_NULL;
  bool is_made_ = false;
};

bool is_right(const gapless_measured_shape& shape) noexcept {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  return shape.block > 0 && shape.row_blocks > 0 && shape.bytes >= shape.block && shape.bytes <= most;
}

double ns_since(Clock::time_point begin) noexcept {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

std::uint64_t messages_by(Scheme scheme) noexcept {
  return transfer::statistics()[static_cast<std::size_t>(scheme)].messages;
}

/// Round trips of one of the two processes.
struct PingPong {
  decltype(Native::Send) send;
  decltype(Native::Recv) receive;
  void* memory;
  MPI_Datatype type;
  bool begins;
  int peer;

  int run(int times) const noexcept {
    int code = MPI_SUCCESS;
    for (int i = 0; i < times && code == MPI_SUCCESS; ++i) {
      for (const bool sends : {begins, !begins}) {
        if (code != MPI_SUCCESS) break;
        code = sends ? send(memory, 1, type, peer, tag, MPI_COMM_WORLD)
                     : receive(memory, 1, type, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
    return code;
  }
};

/// Until the scheme carries both messages of a round trip. Two processes that are to agree on one have to meet first,
/// so both try as often: each counts the same messages. False if it carries none, or MPI has failed with `code`.
bool warm_up(Scheme scheme, const PingPong& messages, int& code) noexcept {
  const int most = transfer::is_agreed(scheme) ? 16 : 1;
  const std::uint64_t wanted = transfer::is_agreed(scheme) ? 2 : 1;
  for (int i = 0; i < most; ++i) {
    const std::uint64_t before = messages_by(scheme);
    code = messages.run(1);
    if (code != MPI_SUCCESS) return false;
    if (scheme == Scheme::native || messages_by(scheme) - before >= wanted) return true;
  }
  return false;
}

double measure_message(Scheme scheme, const gapless_measured_shape& shape, void* memory, int peer, bool begins,
                       int round_trips) noexcept {
  const Forced forced(scheme);
  const ShapeType type(shape);
  if (!type.is_made()) return failed;
  const bool is_native = scheme == Scheme::native;
  PingPong messages{native.Send, native.Recv, memory, type.handle(), begins, peer};
  if (!is_native) {
    messages.send = entry::Send;
    messages.receive = entry::Recv;
  }
  int code = MPI_SUCCESS;
  if (!warm_up(scheme, messages, code)) return code == MPI_SUCCESS ? 0 : failed;
  const auto begin = Clock::now();
  if (messages.run(round_trips) != MPI_SUCCESS) return failed;
  return ns_since(begin) / (2.0 * round_trips);
}

double measure_pack(Scheme scheme, const gapless_measured_shape& shape, void* memory, void* packed, bool unpacks,
                    int times) noexcept {
  const Forced forced(scheme);
  const ShapeType type(shape);
  if (!type.is_made()) return failed;
  const auto size = static_cast<int>(shape.bytes);
  const auto pack = scheme == Scheme::native ? native.Pack : entry::Pack;
  const auto unpack = scheme == Scheme::native ? native.Unpack : entry::Unpack;
  const auto move = [&] {
    int position = 0;
    return unpacks ? unpack(packed, size, &position, memory, 1, type.handle(), MPI_COMM_WORLD)
                   : pack(memory, 1, type.handle(), packed, size, &position, MPI_COMM_WORLD);
  };
  if (move() != MPI_SUCCESS) return failed;
  const auto begin = Clock::now();
  for (int i = 0; i < times; ++i) {
    if (move() != MPI_SUCCESS) return failed;
  }
  return ns_since(begin) / times;
}

}  // namespace
}  // namespace gapless::mpi

using namespace gapless::mpi;

extern "C" {

GAPLESS_EXPORTED int gapless_measure_world(int* rank, int* size) {
  const int code = native.Comm_rank(MPI_COMM_WORLD, rank);
  return code == MPI_SUCCESS ? native.Comm_size(MPI_COMM_WORLD, size) : code;
}

GAPLESS_EXPORTED int gapless_measure_broadcast(void* bytes, int count, int root) {
  return native.Bcast(bytes, count, MPI_BYTE, root, MPI_COMM_WORLD);
}

GAPLESS_EXPORTED std::int64_t gapless_measure_reach(const gapless_measured_shape* shape) {
  if (!is_right(*shape)) return 0;
  const std::int64_t blocks = shape->bytes / shape->block, in_row = std::min(shape->row_blocks, blocks);
  return ShapeType::row_distance(*shape) * (blocks / in_row);
}

GAPLESS_EXPORTED double gapless_measure_message(const char* scheme, const gapless_measured_shape* shape, void* memory,
                                                int first, int second, int round_trips) {
  int rank = 0;
  if (native.Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) return failed;
  if (rank != first && rank != second) return 0;
  const auto named = scheme_of(scheme);
  if (!named || !is_right(*shape) || first == second || round_trips < 1) return 0;
  return measure_message(*named, *shape, memory, rank == first ? second : first, rank == first, round_trips);
}

GAPLESS_EXPORTED double gapless_measure_pack(const char* scheme, const gapless_measured_shape* shape, void* memory,
                                             void* packed, int unpacks, int times) {
  const auto named = scheme_of(scheme);
  if (!named || !is_right(*shape) || times < 1) return 0;
  if (*named != gapless::transfer::Scheme::native && *named != gapless::transfer::Scheme::packed) return 0;
  return measure_pack(*named, *shape, memory, packed, unpacks != 0, times);
}
}
