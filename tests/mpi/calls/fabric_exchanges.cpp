// MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw of noncontiguous host memory by a fabric, which all ranks agree upon:
// who goes which way, and that every int arrives where it belongs and no other is touched.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "headers/fabric_messages.hpp"
#include "support/allocations.hpp"

namespace gapless::test {
namespace {

std::uint64_t by_messages() { return count_by("gapless_exchanges_by_messages"); }
/// Have all ranks gapless and the fabric?
bool is_agreed() { return uses_fabric() && setting("GAPLESS_ALL_RANKS") == "1"; }

/// Blocks of ints; elements follow each other without overlap.
struct Blocks {
  int blocks, length, stride;
  int extent() const { return blocks * stride; }
};
// The same 32 KiB.
constexpr Blocks rows{64, 128, 131}, few{16, 512, 600}, one_block{1, 8192, 8192};

int value(int from, int to, int i) { return (from * 64 + to) * 100000 + i; }

/// One side of an exchange: a part for each rank, of so many elements.
struct Parts {
  Parts(const Blocks& blocks, int ranks, const std::function<int(int)>& count)
      : blocks(blocks), owned(std::make_shared<Owned>(strided(blocks.blocks, blocks.length, blocks.stride))) {
    int next = 3;
    for (int k = 0; k < ranks; ++k) {
      counts.push_back(count(k));
      places.push_back(next);
      next += counts.back() + 1;
    }
    ints.assign(static_cast<std::size_t>(next * blocks.extent()), -1);
  }
  /// As MPI_Alltoall has them.
  Parts(const Blocks& blocks, int ranks) : Parts(blocks, ranks, [](int) { return 1; }) {
    for (int k = 0; k < ranks; ++k) places[static_cast<std::size_t>(k)] = k;
  }

  /// What goes from one rank to another, to or from this one's part `k`.
  void fill(int k, int from, int to) {
    const auto part = static_cast<std::size_t>(k);
    int n = 0;
    for (int element = 0; element < counts[part]; ++element)
      for (int block = 0; block < blocks.blocks; ++block)
        for (int i = 0; i < blocks.length; ++i) {
          const int at = (places[part] + element) * blocks.extent() + block * blocks.stride + i;
          ints[static_cast<std::size_t>(at)] = value(from, to, n++);
        }
  }
  std::vector<int> byte_places() const {
    std::vector<int> bytes;
    for (const int place : places) bytes.push_back(place * blocks.extent() * static_cast<int>(sizeof(int)));
    return bytes;
  }
  std::vector<MPI_Datatype> types() const { return std::vector<MPI_Datatype>(counts.size(), type); }

  Blocks blocks;
  std::shared_ptr<const Owned> owned;
  MPI_Datatype type = *owned;
  std::vector<int> counts, places, ints;
};

enum class Call { alltoall, alltoallv, alltoallw };

int exchange(Call call, const Parts& out, Parts& in, MPI_Comm communicator) {
  if (call == Call::alltoall)
    return MPI_Alltoall(out.ints.data(), out.counts[0], out.type, in.ints.data(), in.counts[0], in.type, communicator);
  if (call == Call::alltoallv)
    return MPI_Alltoallv(out.ints.data(), out.counts.data(), out.places.data(), out.type, in.ints.data(),
                         in.counts.data(), in.places.data(), in.type, communicator);
  return MPI_Alltoallw(out.ints.data(), out.counts.data(), out.byte_places().data(), out.types().data(), in.ints.data(),
                       in.counts.data(), in.byte_places().data(), in.types().data(), communicator);
}

/// An exchange among ranks of a communicator that arrives as it should.
void expect_right(Call call, Parts out, Parts in, MPI_Comm communicator = MPI_COMM_WORLD) {
  Parts wanted(in.blocks, static_cast<int>(in.counts.size()),
               [&](int k) { return in.counts[static_cast<std::size_t>(k)]; });
  wanted.places = in.places;
  const int own = rank(communicator);
  for (int k = 0; k < size(communicator); ++k) {
    out.fill(k, own, k);
    wanted.fill(k, k, own);
  }
  wanted.ints.resize(in.ints.size(), -1);
  EXPECT_EQ(MPI_SUCCESS, exchange(call, out, in, communicator));
  EXPECT_TRUE(wanted.ints == in.ints);
}

/// What each call counts, in this process.
struct Counted {
  std::uint64_t exchanges = by_messages(), messages = fabric_messages();
};

class FabricExchanges : public Fabric {
 protected:
  void SetUp() override {
    Fabric::SetUp();
    // Neighbours are attentive from the second message on.
    expect_right(Call::alltoallw, Parts(rows, size()), Parts(rows, size()));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  /// `messages` that this process has sent or received.
  void expect_by_fabric(const Counted& before, int exchanges, int messages) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (!is_agreed()) return;
    EXPECT_EQ(before.exchanges + static_cast<std::uint64_t>(exchanges), by_messages());
    EXPECT_EQ(before.messages + static_cast<std::uint64_t>(messages), fabric_messages());
  }
};

/// By ranks that name what they exchange by other datatypes.
TEST_F(FabricExchanges, OfEveryKindByEveryScheme) {
  const Blocks own = rank() % 2 == 0 ? rows : few;
  for (const char* scheme : scheme_names) {
    force(scheme);
    for (const Call call : {Call::alltoall, Call::alltoallv, Call::alltoallw}) {
      const Counted before;
      expect_right(call, Parts(own, size()), Parts(rows, size()));
      expect_by_fabric(before, 1, 2 * (size() - 1));
    }
  }
}

/// Parts of different lengths, and none, in places with room between them.
TEST_F(FabricExchanges, OfDifferentCounts) {
  const auto count = [](int from, int to) { return (from + 2 * to) % 3; };
  for (const Call call : {Call::alltoallv, Call::alltoallw}) {
    const Counted before;
    const Parts out(rows, size(), [&](int k) { return count(rank(), k); });
    const Parts in(few, size(), [&](int k) { return count(k, rank()); });
    int messages = 0;
    for (int k = 0; k < size(); ++k) {
      if (k == rank()) continue;
      messages += (count(k, rank()) > 0 ? 1 : 0) + (count(rank(), k) > 0 ? 1 : 0);
    }
    expect_right(call, out, in);
    expect_by_fabric(before, 1, messages);
  }
}

/// Who gains decides for all: the others have nothing but contiguous memory.
TEST_F(FabricExchanges, OfOneRankThatGains) {
  const Counted before;
  expect_right(Call::alltoall, Parts(rank() == 0 ? rows : one_block, size()), Parts(one_block, size()));
  expect_by_fabric(before, 1, rank() == 0 ? size() - 1 : 1);
}

TEST_F(FabricExchanges, InPlaceAreTheLibrarys) {
  const Counted before;
  Parts both(rows, size()), wanted(rows, size());
  for (int k = 0; k < size(); ++k) {
    both.fill(k, rank(), k);
    wanted.fill(k, k, rank());
  }
  EXPECT_EQ(MPI_SUCCESS,
            MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, both.ints.data(), 1, both.type, MPI_COMM_WORLD));
  EXPECT_TRUE(wanted.ints == both.ints);
  expect_by_fabric(before, 0, 0);
}

/// All ranks know that it is too little, and need no agreement.
TEST_F(FabricExchanges, ShortOnesAreTheLibrarys) {
  const Counted before;
  constexpr Blocks short_rows{16, 8, 9};
  expect_right(Call::alltoall, Parts(short_rows, size()), Parts(short_rows, size()));
  const auto nothing = [](int) { return 0; };
  expect_right(Call::alltoall, Parts(rows, size(), nothing), Parts(rows, size(), nothing));
  expect_right(Call::alltoallv, Parts(rows, size(), nothing), Parts(rows, size(), nothing));
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(before.messages, fabric_messages());
}

TEST_F(FabricExchanges, ContiguousOnesAreTheLibrarys) {
  MPI_Comm all;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  force("");
  const Counted before;
  for (int times = 0; times < 3; ++times)
    expect_right(Call::alltoall, Parts(one_block, size()), Parts(one_block, size()), all);
  expect_by_fabric(before, 0, 0);
  MPI_Comm_free(&all);
}

/// Each rank of one half with each of the other.
TEST_F(FabricExchanges, OfIntercommunicatorsAreTheLibrarys) {
  const int half = size() / 2, is_upper = rank() >= half ? 1 : 0;
  MPI_Comm own, inter;
  MPI_Comm_split(MPI_COMM_WORLD, is_upper, 0, &own);
  MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, is_upper != 0 ? 0 : half, 3, &inter);
  int others = 0;
  MPI_Comm_remote_size(inter, &others);
  const Counted before;
  for (const Call call : {Call::alltoall, Call::alltoallv, Call::alltoallw}) {
    Parts out(rows, others), in(few, others), wanted(few, others);
    for (int k = 0; k < others; ++k) {
      const int other = is_upper != 0 ? k : half + k;
      out.fill(k, rank(), other);
      wanted.fill(k, other, rank());
    }
    EXPECT_EQ(MPI_SUCCESS, exchange(call, out, in, inter));
    EXPECT_TRUE(wanted.ints == in.ints);
  }
  expect_by_fabric(before, 0, 0);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&own);
}

/// Long blocks, of which the model says that each is sooner written where it belongs: first by messages, then packed by
/// the library, so that both are timed.
TEST_F(FabricExchanges, GoAsPredictedAndAreTimed) {
  force("");
  constexpr Blocks long_blocks{8, 32768, 32800};
  MPI_Comm all;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  const Parts parts(long_blocks, size());
  const Counted before;
  for (int times = 0; times < 3; ++times) expect_right(Call::alltoall, parts, parts, all);
  MPI_Barrier(MPI_COMM_WORLD);
  const Counted then;
  if (is_agreed()) {
    EXPECT_EQ(before.exchanges + 3, then.exchanges);
    EXPECT_EQ(before.messages + 3 * 2 * static_cast<std::uint64_t>(size() - 1), then.messages);
  }
  const std::uint64_t packed_before = packed_messages();
  for (int times = 3; times < 7; ++times) expect_right(Call::alltoall, parts, parts, all);
  expect_by_fabric(then, 0, 0);
  if (is_agreed()) {
    EXPECT_EQ(packed_before + 4 * 2, packed_messages());
  }
  expect_right(Call::alltoall, parts, parts, all);  // by the sooner one
  MPI_Comm_free(&all);
}

/// An exchange in which one rank may fail for want of memory, after which it is no other rank's business what that one
/// has received. The others come to an end all the same, with what the others have sent. The rank's code.
template <class Deprive>
int exchange_without_memory(Call call, const Blocks& blocks, int poor, MPI_Comm communicator, Deprive deprive) {
  Parts out(blocks, size()), in(blocks, size()), wanted(blocks, size());
  for (int k = 0; k < size(); ++k) {
    out.fill(k, rank(), k);
    if (k != poor) wanted.fill(k, k, rank());
  }
  const int code = rank() == poor ? deprive([&] { return exchange(call, out, in, communicator); })
                                  : exchange(call, out, in, communicator);
  if (rank() == poor) return code;
  EXPECT_EQ(MPI_SUCCESS, code);
  const auto theirs = in.ints.begin() + poor * blocks.extent();
  std::copy(wanted.ints.begin() + poor * blocks.extent(), wanted.ints.begin() + (poor + 1) * blocks.extent(), theirs);
  EXPECT_TRUE(wanted.ints == in.ints);
  return code;
}

/// No rank waits for one that lacks any memory on the way to and in the first exchanges of a communicator; and the
/// ranks stay in step.
TEST_F(FabricExchanges, WithoutAnyOneAllocation) {
  bool is_refused = true;
  int most = 0;
  for (unsigned after = 0; is_refused; ++after) {
    MPI_Comm all;
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    int was_refused = 0;
    for (const bool is_first : {true, false}) {
      const int poor = static_cast<int>(after) % size();
      const int code = exchange_without_memory(Call::alltoallv, rows, poor, all, [&](auto make) {
        const NoNew none(after);
        const int done = make();
        was_refused |= NoNew::is_refused() ? 1 : 0;
        return done;
      });
      const int error = error_class(code);  // a message that cannot be begun is a peer's failure to who fetches it
      EXPECT_TRUE(code == MPI_SUCCESS || error == MPI_ERR_NO_MEM || error == MPI_ERR_OTHER) << error << is_first;
    }
    expect_right(Call::alltoallw, Parts(rows, size()), Parts(rows, size()), all);
    expect_right(Call::alltoall, Parts(rows, size()), Parts(rows, size()), all);
    MPI_Comm_free(&all);
    MPI_Allreduce(MPI_IN_PLACE, &was_refused, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    is_refused = was_refused != 0;
    most += is_refused ? 1 : 0;
  }
  if (is_agreed()) {
    EXPECT_LE(5, most);
  }
}

/// What cannot be begun is the caller's mistake, on all ranks.
TEST_F(FabricExchanges, WithMistakes) {
  MPI_Comm all;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  Parts out(rows, size()), in(rows, size());
  const std::vector<MPI_Datatype> none(static_cast<std::size_t>(size()), MPI_DATATYPE_NULL);
  const int code = MPI_Alltoallw(out.ints.data(), out.counts.data(), out.byte_places().data(), out.types().data(),
                                 in.ints.data(), in.counts.data(), in.byte_places().data(), none.data(), all);
  EXPECT_EQ(MPI_ERR_TYPE, error_class(code));
  EXPECT_EQ(MPI_ERR_TYPE,
            error_class(MPI_Alltoall(out.ints.data(), 1, MPI_DATATYPE_NULL, in.ints.data(), 1, in.type, all)));
  EXPECT_EQ(MPI_ERR_COUNT, error_class(MPI_Alltoall(out.ints.data(), -1, out.type, in.ints.data(), -1, in.type, all)));
  // Of one part alone: no other one has been sent before it is found.
  std::vector<MPI_Datatype> last_is_none = out.types();
  last_is_none.back() = MPI_DATATYPE_NULL;
  const Counted before;
  EXPECT_EQ(MPI_ERR_TYPE, error_class(MPI_Alltoallw(out.ints.data(), out.counts.data(), out.byte_places().data(),
                                                    last_is_none.data(), in.ints.data(), in.counts.data(),
                                                    in.byte_places().data(), in.types().data(), all)));
  expect_by_fabric(before, 1, 0);
  expect_right(Call::alltoallw, out, in, all);
  expect_right(Call::alltoall, out, in, all);
  MPI_Comm_free(&all);
}

}  // namespace
}  // namespace gapless::test
