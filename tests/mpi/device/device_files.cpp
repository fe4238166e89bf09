// File access from GPU memory, on libraries that cannot read it: every call leaves in the file, and in GPU memory, what
// the library's own leaves there from host memory. The table of a cosmological simulation, whose columns are
// allocations of their own, is written by one call of one datatype (Jenkins et al., TPDS 2014, figure 7).

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/same_as_on_host.hpp"

namespace gapless::test {
namespace {

constexpr int count = 4;

/// Moves n elements of a datatype between memory and this rank's part of the file, by the library's own call or ours.
using Access = std::function<int(MPI_File, void* memory, int n, MPI_Datatype, bool is_native)>;
struct Pair {
  const char* name;
  Access write, read;
};

/// Parts follow each other: what Open MPI leaves between them is anything. In ints, the etypes of all views here.
MPI_Offset part(int n, MPI_Datatype type) {
  int bytes = 0;
  MPI_Type_size(type, &bytes);
  return static_cast<MPI_Offset>(rank()) * n * (bytes / static_cast<int>(sizeof(int)));
}

#define GAPLESS_CALL(name) (is_native ? GAPLESS_TEST_NATIVE(name) : MPI_##name)
/// The end of a call that has begun an operation with that code.
int completed(int code, MPI_Request& request, bool is_native) {
  return code != MPI_SUCCESS ? code : GAPLESS_CALL(Wait)(&request, MPI_STATUS_IGNORE);
}

/// By the shared pointer, one rank after the other, or nobody knows who comes first.
int in_turns(MPI_File file, const std::function<int()>& access) {
  int code = MPI_SUCCESS;
  MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
  for (int turn = 0; turn < size(); ++turn) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (turn == rank()) code = access();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return code;
}

#define GAPLESS_AT(name)                                                      \
  [](MPI_File file, void* memory, int n, MPI_Datatype type, bool is_native) { \
    MPI_Status status;                                                        \
    return GAPLESS_CALL(name)(file, part(n, type), memory, n, type, &status); \
  }
#define GAPLESS_HERE(name)                                                    \
  [](MPI_File file, void* memory, int n, MPI_Datatype type, bool is_native) { \
    MPI_Status status;                                                        \
    MPI_File_seek(file, part(n, type), MPI_SEEK_SET);                         \
    return GAPLESS_CALL(name)(file, memory, n, type, &status);                \
  }
#define GAPLESS_SHARED(name)                                                  \
  [](MPI_File file, void* memory, int n, MPI_Datatype type, bool is_native) { \
    return in_turns(file, [&] {                                               \
      MPI_Status status;                                                      \
      return GAPLESS_CALL(name)(file, memory, n, type, &status);              \
    });                                                                       \
  }
#define GAPLESS_ORDERED(name)                                                 \
  [](MPI_File file, void* memory, int n, MPI_Datatype type, bool is_native) { \
    MPI_Status status;                                                        \
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);                              \
    return GAPLESS_CALL(name)(file, memory, n, type, &status);                \
  }
#define GAPLESS_ORDERED_SPLIT(name, begin)                                               \
  [](MPI_File file, void* memory, int n, MPI_Datatype type, bool is_native) {            \
    MPI_Status status;                                                                   \
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);                                         \
    const int code = GAPLESS_CALL(name##begin)(file, memory, n, type);                   \
    return code != MPI_SUCCESS ? code : GAPLESS_CALL(name##_end)(file, memory, &status); \
  }
#define GAPLESS_SPLIT_AT(name, begin)                                                    \
  [](MPI_File file, void* memory, int n, MPI_Datatype type, bool is_native) {            \
    MPI_Status status;                                                                   \
    const int code = GAPLESS_CALL(name##begin)(file, part(n, type), memory, n, type);    \
    return code != MPI_SUCCESS ? code : GAPLESS_CALL(name##_end)(file, memory, &status); \
  }
#define GAPLESS_SPLIT(name, begin)                                                       \
  [](MPI_File file, void* memory, int n, MPI_Datatype type, bool is_native) {            \
    MPI_Status status;                                                                   \
    MPI_File_seek(file, part(n, type), MPI_SEEK_SET);                                    \
    const int code = GAPLESS_CALL(name##begin)(file, memory, n, type);                   \
    return code != MPI_SUCCESS ? code : GAPLESS_CALL(name##_end)(file, memory, &status); \
  }
#define GAPLESS_LATER(name)                                                                    \
  [](MPI_File file, void* memory, int n, MPI_Datatype type, bool is_native) {                  \
    MPI_Request request;                                                                       \
    MPI_File_seek(file, part(n, type), MPI_SEEK_SET);                                          \
    return completed(GAPLESS_CALL(name)(file, memory, n, type, &request), request, is_native); \
  }
#define GAPLESS_LATER_AT(name)                                                           \
  [](MPI_File file, void* memory, int n, MPI_Datatype type, bool is_native) {            \
    MPI_Request request;                                                                 \
    const int code = GAPLESS_CALL(name)(file, part(n, type), memory, n, type, &request); \
    return completed(code, request, is_native);                                          \
  }
#define GAPLESS_SHARED_LATER(name)                                                               \
  [](MPI_File file, void* memory, int n, MPI_Datatype type, bool is_native) {                    \
    return in_turns(file, [&] {                                                                  \
      MPI_Request request;                                                                       \
      return completed(GAPLESS_CALL(name)(file, memory, n, type, &request), request, is_native); \
    });                                                                                          \
  }

const Pair pairs[] = {
    {"at", GAPLESS_AT(File_write_at), GAPLESS_AT(File_read_at)},
    {"at all", GAPLESS_AT(File_write_at_all), GAPLESS_AT(File_read_at_all)},
    {"individual", GAPLESS_HERE(File_write), GAPLESS_HERE(File_read)},
    {"all", GAPLESS_HERE(File_write_all), GAPLESS_HERE(File_read_all)},
    {"shared", GAPLESS_SHARED(File_write_shared), GAPLESS_SHARED(File_read_shared)},
    {"ordered", GAPLESS_ORDERED(File_write_ordered), GAPLESS_ORDERED(File_read_ordered)},
    {"at all, split", GAPLESS_SPLIT_AT(File_write_at_all, _begin), GAPLESS_SPLIT_AT(File_read_at_all, _begin)},
    {"all, split", GAPLESS_SPLIT(File_write_all, _begin), GAPLESS_SPLIT(File_read_all, _begin)},
    {"ordered, split", GAPLESS_ORDERED_SPLIT(File_write_ordered, _begin),
     GAPLESS_ORDERED_SPLIT(File_read_ordered, _begin)},
    {"at, nonblocking", GAPLESS_LATER_AT(File_iwrite_at), GAPLESS_LATER_AT(File_iread_at)},
    {"at all, nonblocking", GAPLESS_LATER_AT(File_iwrite_at_all), GAPLESS_LATER_AT(File_iread_at_all)},
    {"nonblocking", GAPLESS_LATER(File_iwrite), GAPLESS_LATER(File_iread)},
    {"all, nonblocking", GAPLESS_LATER(File_iwrite_all), GAPLESS_LATER(File_iread_all)},
    {"shared, nonblocking", GAPLESS_SHARED_LATER(File_iwrite_shared), GAPLESS_SHARED_LATER(File_iread_shared)},
#if !defined(OPEN_MPI)  // which lacks calls of large counts
    {"large, at", GAPLESS_AT(File_write_at_c), GAPLESS_AT(File_read_at_c)},
    {"large, at all", GAPLESS_AT(File_write_at_all_c), GAPLESS_AT(File_read_at_all_c)},
    {"large, individual", GAPLESS_HERE(File_write_c), GAPLESS_HERE(File_read_c)},
    {"large, all", GAPLESS_HERE(File_write_all_c), GAPLESS_HERE(File_read_all_c)},
    {"large, shared", GAPLESS_SHARED(File_write_shared_c), GAPLESS_SHARED(File_read_shared_c)},
    {"large, ordered", GAPLESS_ORDERED(File_write_ordered_c), GAPLESS_ORDERED(File_read_ordered_c)},
    {"large, at all, split", GAPLESS_SPLIT_AT(File_write_at_all, _begin_c),
     GAPLESS_SPLIT_AT(File_read_at_all, _begin_c)},
    {"large, all, split", GAPLESS_SPLIT(File_write_all, _begin_c), GAPLESS_SPLIT(File_read_all, _begin_c)},
    {"large, ordered, split", GAPLESS_ORDERED_SPLIT(File_write_ordered, _begin_c),
     GAPLESS_ORDERED_SPLIT(File_read_ordered, _begin_c)},
    {"large, at, nonblocking", GAPLESS_LATER_AT(File_iwrite_at_c), GAPLESS_LATER_AT(File_iread_at_c)},
    {"large, at all, nonblocking", GAPLESS_LATER_AT(File_iwrite_at_all_c), GAPLESS_LATER_AT(File_iread_at_all_c)},
    {"large, nonblocking", GAPLESS_LATER(File_iwrite_c), GAPLESS_LATER(File_iread_c)},
    {"large, all, nonblocking", GAPLESS_LATER(File_iwrite_all_c), GAPLESS_LATER(File_iread_all_c)},
    {"large, shared, nonblocking", GAPLESS_SHARED_LATER(File_iwrite_shared_c),
     GAPLESS_SHARED_LATER(File_iread_shared_c)},
#endif
};

#if defined(OPEN_MPI)
constexpr bool converts_later = true;
#else  // MPICH 5.0.2 frees what it has converted before that is in the file
constexpr bool converts_later = false;
#endif

/// The library's own call of host memory: as the program's would be, or of packed ints, since MPICH 5.0.2 writes behind
/// its buffers where it converts several elements with gaps.
int natively(const Access& access, MPI_File file, void* memory, MPI_Datatype type, bool is_packed) {
  if (!is_packed) return access(file, memory, count, type, true);
  int bytes = 0, position = 0;
  MPI_Type_size(type, &bytes);
  std::vector<int> packed(static_cast<std::size_t>(count * bytes) / sizeof(int));
  const auto n = static_cast<int>(packed.size());
  bytes *= count;
  GAPLESS_TEST_NATIVE(Pack)(memory, count, type, packed.data(), bytes, &position, MPI_COMM_SELF);
  const int code = access(file, packed.data(), n, MPI_INT, true);
  position = 0;
  GAPLESS_TEST_NATIVE(Unpack)(packed.data(), bytes, &position, memory, count, type, MPI_COMM_SELF);
  return code;
}

/// By every call, in files of that data representation. Returns what the last file has.
std::vector<std::byte> expect_same_files(const std::string& representation) {
  const bool is_converted = representation != "native";
  std::vector<std::byte> last;
  for_datatypes([&](MPI_Datatype type) {
    for (const auto& [name, write, read] : pairs) {
      // Ranks that share cores take long; which call is which is seen with two.
      if (size() > 2 && std::string(name).starts_with("large")) continue;
      if (is_converted && !converts_later && std::string(name).ends_with("nonblocking")) continue;
      SCOPED_TRACE(representation + ", " + name);
      TwoMemories host;
      OnGpu sent(host.sent), received(host.received);
      const std::uint64_t before = gpu_messages();
      {
        const File wanted, got;
        for (const File* file : {&wanted, &got}) file->view_as(representation.c_str());
        EXPECT_EQ(MPI_SUCCESS, natively(write, wanted, host.sent.data(), type, is_converted));
        EXPECT_EQ(MPI_SUCCESS, write(got, sent.at(), count, type, false));
        last = wanted.bytes();
        EXPECT_TRUE(same_bytes(last, got.bytes()));
        EXPECT_TRUE(same_bytes(host.sent, sent.bytes()));
        EXPECT_EQ(MPI_SUCCESS, natively(read, wanted, host.received.data(), type, is_converted));
        EXPECT_EQ(MPI_SUCCESS, read(wanted, received.at(), count, type, false));
        EXPECT_TRUE(same_bytes(host.received, received.bytes()));
      }
      EXPECT_LE(before + 2, gpu_messages());
    }
  });
  return last;
}

TEST(Files, OfEveryKind) { expect_same_files("native"); }

/// The library is told the elements, which it converts.
TEST(Files, OfEveryKindInExternal32) { EXPECT_NE(expect_same_files("native"), expect_same_files("external32")); }

/// The view is the library's: elements of the file's datatype alternate with those of other ranks.
TEST(Files, ThroughAView) {
  const Owned memory_type(strided(30, 2, 4));
  const auto seen_by = [&](MPI_File file, void* memory, bool is_native, bool writes) {
    MPI_Datatype every;
    MPI_Type_vector(60, 1, size(), MPI_INT, &every);
    const Owned of_file(every);
    MPI_File_set_view(file, static_cast<MPI_Offset>(sizeof(int)) * rank(), MPI_INT, of_file, "native", MPI_INFO_NULL);
    const int code = writes ? GAPLESS_CALL(File_write_all)(file, memory, 1, memory_type, MPI_STATUS_IGNORE)
                            : GAPLESS_CALL(File_read_all)(file, memory, 1, memory_type, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    return code;
  };
  TwoMemories host;
  OnGpu sent(host.sent), received(host.received);
  const File wanted, got;
  EXPECT_EQ(MPI_SUCCESS, seen_by(wanted, host.sent.data(), true, true));
  EXPECT_EQ(MPI_SUCCESS, seen_by(got, sent.at(), false, true));
  const std::vector<std::byte> written = got.bytes();
  EXPECT_EQ(60 * sizeof(int) * static_cast<std::size_t>(size()), written.size());
  EXPECT_TRUE(same_bytes(wanted.bytes(), written));
  EXPECT_EQ(MPI_SUCCESS, seen_by(wanted, host.received.data(), true, false));
  EXPECT_EQ(MPI_SUCCESS, seen_by(wanted, received.at(), false, false));
  EXPECT_TRUE(same_bytes(host.received, received.bytes()));
}

/// What a rank has of the tessellation: numbers and bounds, and eight columns, each an allocation of its own.
class Block {
 public:
  Block() {
    const auto particles = static_cast<std::size_t>(4096 + 700 * rank()), complete = particles - 300;
    const auto vertices = 7 * particles, faces = 15 * complete, face_vertices = 5 * faces;
    add(7 * sizeof(int) + 6 * sizeof(float), MPI_INT);
    for (const std::size_t floats : {3 * vertices, 3 * particles, complete, complete})
      add(floats * sizeof(float), MPI_FLOAT);
    for (const std::size_t ints : {complete, face_vertices, complete, faces}) add(ints * sizeof(int), MPI_INT);
    std::vector<MPI_Aint> places;
    std::vector<int> lengths;
    for (const auto& member : members_) {
      MPI_Aint place;
      MPI_Get_address(member->at(), &place);
      places.push_back(place);
    }
    for (const auto& bytes : values_) lengths.push_back(static_cast<int>(bytes.size() / sizeof(int)));
    MPI_Type_create_struct(static_cast<int>(places.size()), lengths.data(), places.data(), types_.data(), &type_);
    MPI_Type_commit(&type_);
  }
  ~Block() { MPI_Type_free(&type_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  MPI_Datatype type() const { return type_; }
  std::vector<std::byte> packed() const {
    std::vector<std::byte> all;
    for (const auto& bytes : values_) all.insert(all.end(), bytes.begin(), bytes.end());
    return all;
  }
  void clear() {
    for (const auto& member : members_) member->write(std::vector<std::byte>(member->bytes().size(), std::byte{0x11}));
  }
  void expect_values() const {
    for (std::size_t k = 0; k < members_.size(); ++k) EXPECT_TRUE(same_bytes(values_[k], members_[k]->bytes())) << k;
  }

 private:
  void add(std::size_t bytes, MPI_Datatype of) {
    std::vector<std::byte> values(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      values[i] = static_cast<std::byte>((i * 2654435761u >> 11) + 31 * values_.size() + static_cast<unsigned>(rank()));
    members_.push_back(std::make_unique<OnGpu>(values));
    values_.push_back(std::move(values));
    types_.push_back(of);
  }

  std::vector<std::vector<std::byte>> values_;
  std::vector<std::unique_ptr<OnGpu>> members_;
  std::vector<MPI_Datatype> types_;
  MPI_Datatype type_;
};

TEST(Files, ATableOfManyAllocationsIsWrittenByOneCall) {
  Block block;
  const std::vector<std::byte> mine = block.packed();
  const std::uint64_t messages = gpu_messages();
  const long launches = gpu_fails_on_request() ? gpu_count("launches") : 0;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(size()));
  const auto size_here = static_cast<std::int64_t>(mine.size());
  MPI_Allgather(&size_here, 1, MPI_INT64_T, sizes.data(), 1, MPI_INT64_T, MPI_COMM_WORLD);
  const auto place = std::accumulate(sizes.begin(), sizes.begin() + rank(), std::int64_t{0});
  const File file;
  MPI_Status status;
  EXPECT_EQ(MPI_SUCCESS, MPI_File_write_at_all(file, place, MPI_BOTTOM, 1, block.type(), &status));
  int written = 0;
  MPI_Get_elements(&status, MPI_BYTE, &written);
  EXPECT_EQ(static_cast<int>(mine.size()), written);
  EXPECT_EQ(messages + 1, gpu_messages());
  if (gpu_fails_on_request()) {
    EXPECT_EQ(launches + 1, gpu_count("launches"));
  }
  const std::vector<std::byte> all = file.bytes();
  EXPECT_EQ(static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0})), all.size());
  EXPECT_TRUE(same_bytes(mine, {all.begin() + place, all.begin() + place + size_here}));

  block.clear();
  EXPECT_EQ(MPI_SUCCESS, MPI_File_read_at_all(file, place, MPI_BOTTOM, 1, block.type(), &status));
  block.expect_values();
}

#if !defined(OPEN_MPI)  // which tells of the mistake when the access ends
int calls_of_handler = 0;
void count_call(MPI_File*, int*, ...) { ++calls_of_handler; }

void set_counting_handler(MPI_File file) {
  MPI_Errhandler handler;
  MPI_File_create_errhandler(count_call, &handler);
  MPI_File_set_errhandler(file, handler);
  MPI_Errhandler_free(&handler);
}

/// Once the program's handler has returned, MPICH returns MPI_SUCCESS from a call that has failed.
TEST(Files, ASplitReadThatFailsToBeginLeavesGpuMemoryAlone) {
  const TwoMemories memories;
  OnGpu received(memories.received);
  std::vector<std::byte> later(64);
  const File file;
  EXPECT_EQ(MPI_SUCCESS, MPI_File_write_at_all(file, 0, later.data(), 64, MPI_BYTE, MPI_STATUS_IGNORE));
  set_counting_handler(file);
  const int before = calls_of_handler;
  MPI_File_read_at_all_begin(file, -4, received.at(), 64, MPI_BYTE);
  EXPECT_EQ(before + 1, calls_of_handler);
  received.write(memories.sent);
  EXPECT_EQ(MPI_SUCCESS, MPI_File_read_at_all_begin(file, 0, later.data(), 64, MPI_BYTE));
  EXPECT_EQ(MPI_SUCCESS, MPI_File_read_at_all_end(file, later.data(), MPI_STATUS_IGNORE));
  EXPECT_TRUE(same_bytes(memories.sent, received.bytes()));
}
#endif

/// The library is not asked about it where its answer would end the program.
TEST(Files, ANullDatatypeOfGpuMemoryIsAnErrorOfTheFile) {
  const TwoMemories memories;
  OnGpu memory(memories.sent);
  const File file;
  EXPECT_EQ(MPI_ERR_TYPE,
            error_class(MPI_File_write_at(file, 0, memory.at(), 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE)));
  EXPECT_EQ(MPI_ERR_TYPE, error_class(MPI_File_read(file, memory.at(), 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE)));
  EXPECT_TRUE(same_bytes(memories.sent, memory.bytes()));
}

}  // namespace
}  // namespace gapless::test
