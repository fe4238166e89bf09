// MPI_Pack of a few pieces into one buffer, and MPI_Unpack of them into other types; some of the calls by the library
// itself, since the packed format is the library's.
#include <vector>

#include "cases/calls.hpp"
#include "sides/sides.hpp"
#include "support/environment.hpp"

namespace gapless::test::differential {
namespace {

/// Who makes a call: what the program's names lead to, in both forms, or the library.
enum class Maker { usual, large, library };

Maker draw_maker(Random& random) { return static_cast<Maker>(random.between(0, 2)); }

struct PackedMemory {
  std::byte* bytes;
  int size;
  int position;
};

int pack(Maker maker, const Argument& from, PackedMemory& to, MPI_Comm comm) {
  if (maker == Maker::library)
    return GAPLESS_TEST_NATIVE(Pack)(from.address, from.count, from.type, to.bytes, to.size, &to.position, comm);
#if MPI_VERSION >= 4
  if (maker == Maker::large) {
    MPI_Count position = to.position;
    const int code = MPI_Pack_c(from.address, from.count, from.type, to.bytes, to.size, &position, comm);
    to.position = static_cast<int>(position);
    return code;
  }
#endif
  return MPI_Pack(from.address, from.count, from.type, to.bytes, to.size, &to.position, comm);
}

int unpack(Maker maker, PackedMemory& from, const Argument& to, MPI_Comm comm) {
  if (maker == Maker::library)
    return GAPLESS_TEST_NATIVE(Unpack)(from.bytes, from.size, &from.position, to.address, to.count, to.type, comm);
#if MPI_VERSION >= 4
  if (maker == Maker::large) {
    MPI_Count position = from.position;
    const int code = MPI_Unpack_c(from.bytes, from.size, &position, to.address, to.count, to.type, comm);
    from.position = static_cast<int>(position);
    return code;
  }
#endif
  return MPI_Unpack(from.bytes, from.size, &from.position, to.address, to.count, to.type, comm);
}

/// The elements of all `pieces`, one after another from `start`.
Side packed_side(std::span<const Pair> pieces, int start) {
  Side packed;
  MPI_Aint next = start;
  for (const Pair& piece : pieces) {
    for (const Element& element : piece.out.elements) {
      packed.elements.push_back({next, element.size, element.basic});
      packed.bytes += element.size;
      next += static_cast<MPI_Aint>(element.size);
    }
  }
  return packed;
}

}  // namespace

void run_packing(const Case& plan, const Context& context, Outcome& outcome) {
  Random random = random_for(plan, 1);
  const MPI_Comm comm = context.communicator(plan);
  std::vector<Pair> pieces;
  for (int k = random.between(1, 3); k > 0; --k) pieces.push_back(random_pair(random, Fit::equal));
  const int start = random.one_in(2) ? 0 : random.between(1, 9);
  const int room_behind = random.one_in(2) ? 0 : random.between(1, 20);

  const Side packed = packed_side(pieces, start);
  Buffer packed_buffer(packed, plan.key * 3 + static_cast<std::uint64_t>(context.rank()), 256);
  PackedMemory memory{packed_buffer.base(), start + static_cast<int>(packed.bytes) + room_behind, start};
  Stream stream;
  for (const Pair& piece : pieces) {
    Buffer from(piece.out, plan.key * 5 + stream.bytes.size(), 256);
    const Argument out(piece.out, from, plan.bottom_send);
    int size = 0;
    MPI_Pack_size(out.count, out.type, comm, &size);
    outcome.begin("Pack");
    outcome.expect("size_suffices", 1, size >= static_cast<int>(piece.out.bytes));
    const int code = pack(draw_maker(random), out, memory, comm);
    note_return(outcome, plan, code);
    stream.append(from.stream());
    outcome.expect("position", start + static_cast<long long>(stream.bytes.size()), memory.position);
    note_untouched(outcome, from);
  }
  note_received(outcome, plan, packed_buffer, stream, false);

  memory.position = start;
  std::size_t done = 0;
  for (const Pair& piece : pieces) {
    Buffer into(piece.in, plan.key * 7 + done, 256);
    const Argument in(piece.in, into, plan.bottom_receive);
    outcome.begin("Unpack");
    note_return(outcome, plan, unpack(draw_maker(random), memory, in, comm));
    note_received(outcome, plan, into, stream.part(done, piece.in.bytes), false);
    done += piece.in.bytes;
    outcome.expect("position", start + static_cast<long long>(done), memory.position);
  }
}

}  // namespace gapless::test::differential
