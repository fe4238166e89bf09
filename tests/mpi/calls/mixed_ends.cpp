// Messages and collectives whose two ends differ in everything that gapless looks at: memory of a host or of a GPU,
// gaps or none, a datatype that is understood or not, gapless in the one process and not in the other. Ranks exchange
// in pairs, of which in runs with half of the processes one has gapless.

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/messages.hpp"
#include "support/statistics.hpp"
#include "support/types/library_defects.hpp"
#include "support/types/memory.hpp"
#include "support/types/type.hpp"

namespace gapless::test {
namespace {

/// The other process of the pair: the first half of the ranks with the second.
int partner() { return size() < 2 ? 0 : (rank() + size() / 2) % size(); }

/// Does the process of that rank have a GPU?
bool has_gpu_at(int of) {
  static const std::vector<int> known = [] {
    std::vector<int> all(static_cast<std::size_t>(size()));
    const int mine = under_gapless() && has_gpu();
    MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
    return all;
  }();
  return known[static_cast<std::size_t>(of)] != 0;
}

/// Memory of a host or of a GPU, as MPI is given it.
class End {
 public:
  End(const Memory& memory, bool on_gpu) : base_(memory.origin()), host_(memory.bytes()) {
    if (on_gpu) gpu_ = std::make_unique<OnGpu>(host_);
  }
  void* address() { return gpu_ ? gpu_->at(base_) : host_.data() + base_; }
  std::vector<std::byte> bytes() const { return gpu_ ? gpu_->bytes() : host_; }

 private:
  std::ptrdiff_t base_;
  std::vector<std::byte> host_;
  std::unique_ptr<OnGpu> gpu_;
};

/// One end's datatype, and where its packed bytes lie.
struct Shape {
  Owned type;
  int count;
  std::vector<MPI_Aint> offsets;
  bool is_packed;  ///< where gapless packs what it can
};

enum class Form { contiguous, strided, scattered, not_understood };
constexpr std::array forms{Form::contiguous, Form::strided, Form::scattered, Form::not_understood};

constexpr int block = 3, apart = 5;

/// Nested too deeply to be understood.
MPI_Datatype nested(MPI_Datatype type) {
  for (int depth = 0; depth < 120; ++depth) {
    MPI_Datatype outer;
    MPI_Type_dup(type, &outer);
    MPI_Type_free(&type);
    type = outer;
  }
  return type;
}

/// `blocks` blocks of three ints.
Shape shape(Form form, int blocks) {
  std::vector<int> places;
  for (int k = 0; k < blocks; ++k) {
    const int scattered = apart * (k % 2 == 0 ? k + 1 : k - 1) + k % 3;
    places.push_back(form == Form::contiguous ? block * k : form == Form::scattered ? scattered : apart * k);
  }
  std::vector<MPI_Aint> offsets;
  for (const int place : places)
    for (int k = 0; k < block * static_cast<int>(sizeof(int)); ++k)
      offsets.push_back(place * static_cast<MPI_Aint>(sizeof(int)) + k);
  MPI_Datatype type;
  if (form == Form::contiguous) {
    MPI_Type_contiguous(block, MPI_INT, &type);
    return {Owned(type), blocks, std::move(offsets), false};
  }
  if (form == Form::scattered) {
    MPI_Type_create_indexed_block(blocks, block, places.data(), MPI_INT, &type);
  } else {
    MPI_Type_vector(blocks, block, apart, MPI_INT, &type);
  }
  const bool is_understood = form != Form::not_understood;
  return {Owned(is_understood ? type : nested(type)), 1, std::move(offsets), is_understood};
}

struct Side {
  const Shape& shape;
  bool on_gpu;
};

/// Sends from the one and receives into the other, while the partner does the like. All ranks draw the same numbers.
void exchange_ends(SendMode mode, ReceiveWay way, const Side& out, const Side& in, Random& random) {
  const bool from_gpu = out.on_gpu && has_gpu_at(rank()), to_gpu = in.on_gpu && has_gpu_at(rank());
  Memory source(out.shape.offsets, random), target(in.shape.offsets, random);
  End outgoing(source, from_gpu), incoming(target, to_gpu);
  const std::uint64_t packed = packed_messages(), by_gpu = gpu_messages();
  MPI_Status status;
  exchange(mode, way, {outgoing.address(), out.shape.count, out.shape.type},
           {incoming.address(), in.shape.count, in.shape.type}, partner(), &status);
  EXPECT_TRUE(same_bytes(target.after_unpacking(source.packed(out.shape.offsets), in.shape.offsets), incoming.bytes()));
  EXPECT_TRUE(same_bytes(source.bytes(), outgoing.bytes()));
  EXPECT_EQ(partner(), status.MPI_SOURCE);
  MPI_Count bytes = 0;
  MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  EXPECT_EQ(in.shape.offsets.size(), static_cast<std::size_t>(bytes));
  if (!out.shape.offsets.empty() && !library_reads_gpu()) {
    EXPECT_LE(by_gpu + from_gpu + to_gpu, gpu_messages());
  }
  if (is_everything_packed()) {
    EXPECT_EQ(packed + out.shape.is_packed + in.shape.is_packed, packed_messages());
  }
}

/// Where gapless looks at the datatypes of none, one or both ends, in messages of every length that is treated its own
/// way.
TEST(MixedEnds, OfMessages) {
  Random random(seed());
  int turn = 0;
  for (const int blocks : {5, 100, 3000, 60'000}) {
    for (const Form from : forms) {
      for (const Form to : forms) {
        const Shape out = shape(from, blocks), in = shape(to, blocks);
        for (const auto& [from_gpu, to_gpu] : {std::array{false, false}, {true, false}, {false, true}, {true, true}}) {
          // An opaque datatype in GPU memory is an error that says so.
          if ((from_gpu && from == Form::not_understood) || (to_gpu && to == Form::not_understood)) continue;
          const auto mode = static_cast<SendMode>(turn % send_modes);
          const auto way = static_cast<ReceiveWay>(turn / 2 % receive_ways);
          ++turn;
          SCOPED_TRACE(std::string(name(mode)) + ", " + name(way) + ", " + std::to_string(blocks) + " blocks, form " +
                       std::to_string(static_cast<int>(from)) + (from_gpu ? " of a GPU" : "") + " to " +
                       std::to_string(static_cast<int>(to)) + (to_gpu ? " of a GPU" : ""));
          exchange_ends(mode, way, {out, from_gpu}, {in, to_gpu}, random);
        }
      }
    }
  }
}

/// The two sides of a Sendrecv, of two requests, and of persistent requests, of different kinds in one process.
TEST(MixedEnds, OfExchanges) {
  Random random(seed() + 1);
  constexpr int blocks = 700;
  for (int turn = 0; turn < 48; ++turn) {
    const Form from = forms[static_cast<std::size_t>(turn % 4)], to = forms[static_cast<std::size_t>(turn / 4 % 4)];
    const bool from_gpu = turn % 3 != 0 && from != Form::not_understood && has_gpu_at(rank());
    const bool to_gpu = turn % 5 != 0 && to != Form::not_understood && has_gpu_at(rank());
    SCOPED_TRACE("turn " + std::to_string(turn));
    const Shape out = shape(from, blocks), in = shape(to, blocks);
    Memory source(out.offsets, random), target(in.offsets, random);
    End outgoing(source, from_gpu), incoming(target, to_gpu);
    void *const s = outgoing.address(), *const r = incoming.address();
    MPI_Request requests[2];
    if (turn % 3 == 0) {
      EXPECT_EQ(MPI_SUCCESS, MPI_Sendrecv(s, out.count, out.type, partner(), 5, r, in.count, in.type, partner(), 5,
                                          MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else if (turn % 3 == 1) {
      MPI_Irecv(r, in.count, in.type, partner(), 5, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(s, out.count, out.type, partner(), 5, MPI_COMM_WORLD, &requests[1]);
      EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    } else {
      MPI_Recv_init(r, in.count, in.type, partner(), 5, MPI_COMM_WORLD, &requests[0]);
      MPI_Send_init(s, out.count, out.type, partner(), 5, MPI_COMM_WORLD, &requests[1]);
      for (int again = 0; again < 2; ++again) {
        MPI_Startall(2, requests);
        EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
      }
      for (MPI_Request& request : requests) MPI_Request_free(&request);
    }
    EXPECT_TRUE(same_bytes(target.after_unpacking(source.packed(out.offsets), in.offsets), incoming.bytes()));
  }
}

/// Two structs of so many fields of two kinds that nobody keeps a list of their elements; made of them, nothing at all.
Shape of_many_fields() {
  constexpr int fields = 5000, bytes = 8, apart = 16;
  std::vector<int> lengths;
  std::vector<MPI_Aint> places, offsets;
  std::vector<MPI_Datatype> types;
  for (int k = 0; k < fields; ++k) {
    places.push_back(apart * k);
    lengths.push_back(k % 2 == 0 ? 1 : 2);
    types.push_back(k % 2 == 0 ? MPI_DOUBLE : MPI_INT);
  }
  MPI_Datatype made, resized, two;
  MPI_Type_create_struct(fields, lengths.data(), places.data(), types.data(), &made);
  MPI_Type_create_resized(made, 0, apart * fields, &resized);
  MPI_Type_contiguous(2, resized, &two);
  MPI_Type_free(&made);
  MPI_Type_free(&resized);
  for (int k = 0; k < 2 * fields; ++k) {
    for (int byte = 0; byte < bytes; ++byte) offsets.push_back(apart * k + byte);
  }
  return {Owned(two), 1, std::move(offsets), true};
}
Shape of_nothing() {
  MPI_Datatype nothing, twice;
  MPI_Type_create_struct(0, nullptr, nullptr, nullptr, &nothing);
  MPI_Type_dup(nothing, &twice);
  MPI_Type_free(&nothing);
  return {Owned(twice), 3, {}, false};
}

TEST(MixedEnds, OfDatatypesWhoseElementsNobodyLists) {
  Random random(seed() + 2);
  const Shape many = of_many_fields(), nothing = of_nothing();
  for (const bool on_gpu : {false, true}) {
    exchange_ends(SendMode::send, ReceiveWay::recv, {many, on_gpu}, {many, !on_gpu}, random);
    exchange_ends(SendMode::isend, ReceiveWay::irecv, {nothing, on_gpu}, {nothing, on_gpu}, random);
  }
}

/// Elements of many kinds, between the datatype that a rank has for them, a contiguous and a scattered one.
TEST(MixedEnds, OfRandomDatatypes) {
  for (int k = 0; k < iterations(25); ++k) {
    const std::uint64_t own_seed = seed() + 100 + static_cast<std::uint64_t>(k);
    Random random(own_seed);
    const Type type = random_type(random, random.between(1, 4));
    const int count = random.between(1, 3);
    const Type dense = contiguous_counterpart(type, count), scattered = scattered_counterpart(random, type, count);
    const Type* const types[] = {&type, &dense, &scattered};
    const int counts[] = {count, 1, 1};
    const bool from_gpu = random.one_in(2) && has_gpu_at(rank()), to_gpu = random.one_in(2) && has_gpu_at(rank());
    if (!library_packs_by_type_map(type, count)) continue;
    for (int out = 0; out < 3; ++out) {
      for (int in = 0; in < 3; ++in) {
        const std::vector<MPI_Aint> from = packed_offsets(types[out]->map(), counts[out]);
        const std::vector<MPI_Aint> to = packed_offsets(types[in]->map(), counts[in]);
        if (overlaps(to)) continue;
        SCOPED_TRACE("GAPLESS_TEST_SEED=" + std::to_string(own_seed - 100) + " GAPLESS_TEST_ITERATIONS=1, " +
                     types[out]->text() + " to " + types[in]->text());
        Memory source(from, random), target(to, random);
        End outgoing(source, from_gpu), incoming(target, to_gpu);
        MPI_Status status;
        exchange(static_cast<SendMode>(random.between(0, send_modes - 1)),
                 static_cast<ReceiveWay>(random.between(0, receive_ways - 1)),
                 {outgoing.address(), counts[out], types[out]->handle()},
                 {incoming.address(), counts[in], types[in]->handle()}, partner(), &status);
        EXPECT_TRUE(same_bytes(target.after_unpacking(source.packed(from), to), incoming.bytes()));
      }
    }
  }
}

/// One datatype for each rank, of the same size, in the memory that the rank has.
class MixedCollectives : public testing::Test {
 protected:
  static constexpr int blocks = 400, ints = block * blocks;
  std::size_t processes_ = static_cast<std::size_t>(size());
  /// In the first and last rank a vector, between them none: counts are equal, as libraries need them to be.
  bool has_gaps_ = rank() % 3 != 1;
  Owned type_{has_gaps_ ? strided(blocks, block, apart) : strided(1, ints, apart* blocks)};
  bool on_gpu_ = rank() % 2 == 0 && has_gpu_at(rank());

  static int value(int from, int to, int k) { return 1'000'000 * from + 100'000 * to + k; }
  std::size_t place(int part, int k) const {
    return static_cast<std::size_t>(apart * blocks * part + (has_gaps_ ? k / block * apart + k % block : k));
  }
  /// A part for each process, of which part k holds what `from` sends to `to`.
  template <class From, class To>
  std::vector<int> parts(const std::vector<int>& before, From from, To to) const {
    std::vector<int> all = before;
    for (int part = 0; part < size(); ++part) {
      for (int k = 0; k < ints; ++k) all[place(part, k)] = value(from(part), to(part), k);
    }
    return all;
  }
  std::vector<int> empty() const { return std::vector<int>(processes_ * static_cast<std::size_t>(apart * blocks), -1); }
};

TEST_F(MixedCollectives, OfEveryKind) {
  const auto part = [](int k) { return k; };
  const auto mine = [](int) { return rank(); };
  const auto zero = [](int) { return 0; };
  const std::vector<int> to_all = parts(empty(), mine, part), from_all = parts(empty(), part, mine);
  const std::uint64_t packed = packed_messages(), by_gpu = gpu_messages();
  for (const bool from_gpu : {false, true}) {
    for (const bool to_gpu : {false, true}) {
      SCOPED_TRACE(std::string(from_gpu ? "from a GPU" : "from a host") + (to_gpu ? " to a GPU" : " to a host"));
      const bool out_on_gpu = from_gpu && on_gpu_, in_on_gpu = to_gpu && on_gpu_;
      const std::vector<int> ones(processes_, 1);
      std::vector<int> places(processes_), bytes(processes_);
      for (int k = 0; k < size(); ++k) {
        places[static_cast<std::size_t>(k)] = k;
        bytes[static_cast<std::size_t>(k)] = static_cast<int>(sizeof(int)) * apart * blocks * k;
      }
      const std::vector<MPI_Datatype> types(processes_, type_);
      const auto look = [&](const char* what, const std::vector<int>& wanted, const Ints& got) {
        EXPECT_TRUE(wanted == got.values()) << what;
      };
      Ints out(to_all, out_on_gpu);
      {
        Ints in(empty(), in_on_gpu);
        EXPECT_EQ(MPI_SUCCESS, MPI_Alltoall(out.data(), 1, type_, in.data(), 1, type_, MPI_COMM_WORLD));
        look("MPI_Alltoall", from_all, in);
      }
      {
        Ints in(empty(), in_on_gpu);
        EXPECT_EQ(MPI_SUCCESS, MPI_Alltoallv(out.data(), ones.data(), places.data(), type_, in.data(), ones.data(),
                                             places.data(), type_, MPI_COMM_WORLD));
        look("MPI_Alltoallv", from_all, in);
      }
      {
        Ints in(empty(), in_on_gpu);
        EXPECT_EQ(MPI_SUCCESS, MPI_Alltoallw(out.data(), ones.data(), bytes.data(), types.data(), in.data(),
                                             ones.data(), bytes.data(), types.data(), MPI_COMM_WORLD));
        look("MPI_Alltoallw", from_all, in);
      }
      {
        Ints in(empty(), in_on_gpu);
        MPI_Request request;
        EXPECT_EQ(MPI_SUCCESS, MPI_Ialltoallw(out.data(), ones.data(), bytes.data(), types.data(), in.data(),
                                              ones.data(), bytes.data(), types.data(), MPI_COMM_WORLD, &request));
        EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
        look("MPI_Ialltoallw", from_all, in);
      }
      {
        Ints in(empty(), in_on_gpu);
        EXPECT_EQ(MPI_SUCCESS, MPI_Allgather(out.data(), 1, type_, in.data(), 1, type_, MPI_COMM_WORLD));
        look("MPI_Allgather", parts(empty(), part, zero), in);
      }
      for (const int root : {0, size() - 1}) {
        const bool is_root = rank() == root;
        {
          Ints in(empty(), in_on_gpu);
          EXPECT_EQ(MPI_SUCCESS, MPI_Gather(out.data(), 1, type_, in.data(), 1, type_, root, MPI_COMM_WORLD));
          look("MPI_Gather", is_root ? parts(empty(), part, zero) : empty(), in);
        }
        std::vector<int> first = empty();
        for (int k = 0; k < ints; ++k) first[place(0, k)] = value(root, rank(), k);
        {
          Ints in(empty(), in_on_gpu);
          EXPECT_EQ(MPI_SUCCESS, MPI_Scatter(out.data(), 1, type_, in.data(), 1, type_, root, MPI_COMM_WORLD));
          look("MPI_Scatter", first, in);
        }
        {
          for (int k = 0; k < ints; ++k) first[place(0, k)] = value(root, 0, k);
          Ints in(is_root ? to_all : empty(), in_on_gpu);
          EXPECT_EQ(MPI_SUCCESS, MPI_Bcast(in.data(), 1, type_, root, MPI_COMM_WORLD));
          look("MPI_Bcast", is_root ? to_all : first, in);
        }
      }
    }
  }
  if (on_gpu_) {
    EXPECT_LT(by_gpu + 3 * 8, gpu_messages());
  }
  if (is_everything_packed() && has_gaps_) {
    EXPECT_LT(packed + 4 * 8, packed_messages());
  }
}

}  // namespace
}  // namespace gapless::test
