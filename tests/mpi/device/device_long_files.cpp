// Much GPU memory to and from files, on libraries that cannot read it: independent, blocking, nonatomic calls go in
// pieces, with memory for one piece, and leave what one call of the library's own leaves. All others go whole.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/allocations.hpp"
#include "support/files.hpp"
#include "support/same_as_on_host.hpp"

namespace gapless::test {
namespace {

// Pieces are a quarter of the pools. Read by gapless when MPI is initialised.
const int little_pools = setenv("GAPLESS_POOL_BYTES", "4194304", 1);
constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr int piece_ints = piece_bytes / sizeof(int);

/// Elements of 100 blocks of 2 ints, each in 3 ints: three and a half pieces.
constexpr int count = 4500, ints_packed = count * 200, ints_spread = count * 300;
constexpr long pieces = 4;

bool has_threads() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

std::vector<std::byte> bytes_of(const std::vector<int>& values) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return {bytes, bytes + values.size() * sizeof(int)};
}

/// Ints that tell their rank and their place.
std::vector<int> spread(int salt) { return counting(ints_spread, 10'000'000 * (salt + 1)); }

std::vector<int> packed(const std::vector<int>& from) {
  std::vector<int> result;
  for (std::size_t i = 0; i < from.size(); i += 3) result.insert(result.end(), {from[i], from[i + 1]});
  return result;
}

/// `into` with the first `some` of the packed ints in their places.
std::vector<int> with(std::vector<int> into, const std::vector<int>& packed, int some) {
  for (int i = 0; i < some; ++i)
    into[static_cast<std::size_t>(i / 2 * 3 + i % 2)] = packed[static_cast<std::size_t>(i)];
  return into;
}

enum class By { offset, pointer, large_offset, large_pointer };
constexpr By plain_ways[] = {By::offset, By::pointer};
#if MPI_VERSION >= 4 && !defined(OPEN_MPI)  // which lacks large counts
constexpr By ways[] = {By::offset, By::pointer, By::large_offset, By::large_pointer};
#define GAPLESS_LARGE(name) MPI_##name##_c
#else
constexpr auto& ways = plain_ways;
#define GAPLESS_LARGE(name) MPI_##name
#endif

bool is_by_pointer(By by) { return by == By::pointer || by == By::large_pointer; }
/// Another thread of the program might move the pointer between two pieces.
bool goes_in_pieces(By by) { return !is_by_pointer(by) || !has_threads(); }

int write(By by, MPI_File file, MPI_Offset at, const void* memory, int n, MPI_Datatype type, MPI_Status* status) {
  if (is_by_pointer(by)) MPI_File_seek(file, at, MPI_SEEK_SET);
  switch (by) {
    case By::offset:
      return MPI_File_write_at(file, at, memory, n, type, status);
    case By::pointer:
      return MPI_File_write(file, memory, n, type, status);
    case By::large_offset:
      return GAPLESS_LARGE(File_write_at)(file, at, memory, n, type, status);
    default:
      return GAPLESS_LARGE(File_write)(file, memory, n, type, status);
  }
}

int read(By by, MPI_File file, MPI_Offset at, void* memory, int n, MPI_Datatype type, MPI_Status* status) {
  if (is_by_pointer(by)) MPI_File_seek(file, at, MPI_SEEK_SET);
  switch (by) {
    case By::offset:
      return MPI_File_read_at(file, at, memory, n, type, status);
    case By::pointer:
      return MPI_File_read(file, memory, n, type, status);
    case By::large_offset:
      return GAPLESS_LARGE(File_read_at)(file, at, memory, n, type, status);
    default:
      return GAPLESS_LARGE(File_read)(file, memory, n, type, status);
  }
}

/// The library's own call of contiguous host memory.
int native_read(By by, MPI_File file, MPI_Offset at, std::vector<int>& into, MPI_Status* status) {
  const int n = static_cast<int>(into.size());
  if (!is_by_pointer(by)) return GAPLESS_TEST_NATIVE(File_read_at)(file, at, into.data(), n, MPI_INT, status);
  MPI_File_seek(file, at, MPI_SEEK_SET);
  return GAPLESS_TEST_NATIVE(File_read)(file, into.data(), n, MPI_INT, status);
}
int native_write(MPI_File file, MPI_Offset at, const std::vector<int>& from) {
  return GAPLESS_TEST_NATIVE(File_write_at)(file, at, from.data(), static_cast<int>(from.size()), MPI_INT,
                                            MPI_STATUS_IGNORE);
}

int ints_in(const MPI_Status& status) {
  int n = 0;
  MPI_Get_elements(&status, MPI_INT, &n);
  return n;
}
MPI_Offset position(MPI_File file) {
  MPI_Offset at = 0;
  MPI_File_get_position(file, &at);
  return at;
}

/// Of a call that goes in pieces: no packed memory for two of them. The real GPU's packed memory is the driver's.
class MemoryForAPiece {
 public:
  explicit MemoryForAPiece(bool is_little) {
    if (is_little && gpu_fails_on_request()) none_.emplace(2 * piece_bytes);
  }

 private:
  std::optional<NoAlignedMemory> none_;
};

long launches() { return gpu_fails_on_request() ? gpu_count("launches") : 0; }
void expect_launches(long since, long wanted) {
  if (gpu_fails_on_request()) {
    EXPECT_EQ(since + wanted, launches());
  }
}

class LongFiles : public testing::Test {
 protected:
  void through_a_view_with_holes(int etype_ints, int first, long pieces_wanted);

  const Owned type_{strided(100, 2, 3)};
  const std::vector<int> mine_ = spread(rank()), other_ = spread(size() + rank());
  const MPI_Offset part_ = static_cast<MPI_Offset>(rank()) * ints_packed;
};

TEST_F(LongFiles, AreWritten) {
  for (const By by : ways) {
    const File file;
    file.view_as("native");
    OnGpu memory(bytes_of(mine_));
    const auto messages = gpu_messages();
    const long before = launches();
    MPI_Status status;
    {
      const MemoryForAPiece little(goes_in_pieces(by));
      EXPECT_EQ(MPI_SUCCESS, write(by, file, part_, memory.at(), count, type_, &status));
    }
    expect_launches(before, goes_in_pieces(by) ? pieces : 1);
    EXPECT_EQ(messages + 1, gpu_messages());
    int elements = 0;
    MPI_Get_count(&status, type_, &elements);
    EXPECT_EQ(count, elements);
    EXPECT_EQ(ints_packed, ints_in(status));
    if (is_by_pointer(by)) {
      EXPECT_EQ(part_ + ints_packed, position(file));
    }
    std::vector<int> wanted;
    for (int k = 0; k < size(); ++k) {
      const std::vector<int> theirs = packed(spread(k));
      wanted.insert(wanted.end(), theirs.begin(), theirs.end());
    }
    EXPECT_TRUE(same_bytes(bytes_of(wanted), file.bytes()));
    EXPECT_TRUE(same_bytes(bytes_of(mine_), memory.bytes()));
  }
}

TEST_F(LongFiles, AreRead) {
  const std::vector<int> values = packed(mine_);
  for (const By by : ways) {
    const File file;
    file.view_as("native");
    EXPECT_EQ(MPI_SUCCESS, native_write(file, part_, values));
    OnGpu memory(bytes_of(other_));
    const auto messages = gpu_messages();
    MPI_Status status;
    {
      const MemoryForAPiece little(goes_in_pieces(by));
      EXPECT_EQ(MPI_SUCCESS, read(by, file, part_, memory.at(), count, type_, &status));
    }
    EXPECT_EQ(messages + 2, gpu_messages());
    EXPECT_EQ(ints_packed, ints_in(status));
    if (is_by_pointer(by)) {
      EXPECT_EQ(part_ + ints_packed, position(file));
    }
    EXPECT_TRUE(same_bytes(bytes_of(with(other_, values, ints_packed)), memory.bytes()));
    EXPECT_EQ(MPI_SUCCESS, read(by, file, part_, memory.at(), count, type_, MPI_STATUS_IGNORE));
  }
}

/// Etypes of 300 ints, of which no piece of a power of two is a whole number, alternate with those of other ranks.
TEST_F(LongFiles, ThroughAViewWithHoles) { through_a_view_with_holes(300, 7, pieces); }

/// Each is a piece.
TEST_F(LongFiles, ThroughAViewOfLongEtypes) { through_a_view_with_holes(300'000, 1, 3); }

void LongFiles::through_a_view_with_holes(int etype_ints, int first, long pieces_wanted) {
  const int etypes = ints_packed / etype_ints;
  const auto etype_bytes = static_cast<MPI_Aint>(sizeof(int)) * etype_ints;
  const bool is_long = etype_ints > piece_ints;
  MPI_Datatype made;
  MPI_Type_contiguous(etype_ints, MPI_INT, &made);
  const Owned etype(made);
  MPI_Type_create_resized(etype, 0, etype_bytes * size(), &made);
  const Owned with_holes(made);
  const std::vector<int> values = packed(mine_);
  for (const By by : plain_ways) {
    const File file;
    EXPECT_EQ(MPI_SUCCESS, MPI_File_set_view(file, etype_bytes * rank(), etype, with_holes, "native", MPI_INFO_NULL));
    OnGpu written(bytes_of(mine_)), got(bytes_of(other_));
    MPI_Status status;
    for (int turn = 0; turn < size(); ++turn) {
      MPI_Barrier(MPI_COMM_WORLD);
      if (turn != rank()) continue;
      const MemoryForAPiece little(goes_in_pieces(by) && !is_long);
      const long before = launches();
      EXPECT_EQ(MPI_SUCCESS, write(by, file, first, written.at(), count, type_, &status));
      expect_launches(before, goes_in_pieces(by) ? pieces_wanted : 1);
    }
    EXPECT_EQ(ints_packed, ints_in(status));
    if (is_by_pointer(by)) {
      EXPECT_EQ(first + etypes, position(file));
    }
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    {
      const MemoryForAPiece little(goes_in_pieces(by) && !is_long);
      EXPECT_EQ(MPI_SUCCESS, read(by, file, first, got.at(), count, type_, &status));
    }
    EXPECT_EQ(ints_packed, ints_in(status));
    EXPECT_TRUE(same_bytes(bytes_of(with(other_, values, ints_packed)), got.bytes()));
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    const std::vector<std::byte> all = file.bytes(), wanted = bytes_of(values);
    bool is_same = all.size() == static_cast<std::size_t>((first + etypes) * size() * etype_bytes);
    EXPECT_TRUE(is_same) << all.size();
    for (int k = 0; is_same && k < etypes; ++k) {
      const auto there = all.begin() + ((first + k) * size() + rank()) * etype_bytes;
      is_same = std::equal(there, there + etype_bytes, wanted.begin() + k * etype_bytes);
      EXPECT_TRUE(is_same) << "etype " << k;
    }
  }
}

/// The count, the pointer and the bytes are those of one call of the library's.
TEST_F(LongFiles, ThatEndEarly) {
  constexpr int first = 100;
  for (const int there : {0, piece_ints, 2 * piece_ints + piece_ints / 2 + 1}) {
    const std::vector<int> values = counting(static_cast<std::size_t>(first + there), 77);
    const File file;
    file.view_as("native");
    if (rank() == 0) {
      EXPECT_EQ(MPI_SUCCESS, native_write(file, 0, values));
    }
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    for (const By by : plain_ways) {
      SCOPED_TRACE(std::to_string(there) + " ints, way " + std::to_string(static_cast<int>(by)));
      MPI_Status wanted, got;
      std::vector<int> instead(ints_packed);
      EXPECT_EQ(MPI_SUCCESS, native_read(by, file, first, instead, &wanted));
      EXPECT_EQ(there, ints_in(wanted));
      const MPI_Offset behind = position(file);
      OnGpu memory(bytes_of(other_));
      {
        const MemoryForAPiece little(goes_in_pieces(by));
        EXPECT_EQ(MPI_SUCCESS, read(by, file, first, memory.at(), count, type_, &got));
      }
      EXPECT_EQ(there, ints_in(got));
      EXPECT_EQ(behind, position(file));
      EXPECT_TRUE(same_bytes(bytes_of(with(other_, {values.begin() + first, values.end()}, there)), memory.bytes()));
    }
  }
}

/// Every byte of a call at once, or none: not in pieces.
TEST_F(LongFiles, OfAtomicModeGoWhole) {
  const File file;
  file.view_as("native");
  EXPECT_EQ(MPI_SUCCESS, MPI_File_set_atomicity(file, 1));
  OnGpu memory(bytes_of(mine_));
  OnGpu longer(std::vector<std::byte>(2 * ints_spread * sizeof(int)));  // no call has left a buffer for so much
  for (const By by : plain_ways) {
    if (gpu_fails_on_request()) {
      const MemoryForAPiece little(true);
      EXPECT_EQ(MPI_ERR_NO_MEM, error_class(write(by, file, part_, longer.at(), 2 * count, type_, MPI_STATUS_IGNORE)));
    }
    const long before = launches();
    EXPECT_EQ(MPI_SUCCESS, write(by, file, part_, memory.at(), count, type_, MPI_STATUS_IGNORE));
    expect_launches(before, 1);
  }
  std::vector<int> got(ints_packed);
  EXPECT_EQ(MPI_SUCCESS, native_read(By::offset, file, part_, got, MPI_STATUS_IGNORE));
  EXPECT_TRUE(same_bytes(bytes_of(packed(mine_)), bytes_of(got)));
}

/// The shared pointer may be moved by others, who wait for nobody; of elements that are converted the library is told.
TEST_F(LongFiles, OfASharedPointerOrConvertedGoWhole) {
  OnGpu memory(bytes_of(mine_));
  const File shared(MPI_COMM_SELF), converted(MPI_COMM_SELF), wanted(MPI_COMM_SELF);
  shared.view_as("native");
  long before = launches();
  EXPECT_EQ(MPI_SUCCESS, MPI_File_write_shared(shared, memory.at(), count, type_, MPI_STATUS_IGNORE));
  expect_launches(before, 1);
  EXPECT_TRUE(same_bytes(bytes_of(packed(mine_)), shared.bytes()));
  for (const File* file : {&converted, &wanted}) file->view_as("external32");
  EXPECT_EQ(MPI_SUCCESS, native_write(wanted, 0, packed(mine_)));
  before = launches();
  EXPECT_EQ(MPI_SUCCESS, write(By::offset, converted, 0, memory.at(), count, type_, MPI_STATUS_IGNORE));
  expect_launches(before, 1);
  EXPECT_TRUE(same_bytes(wanted.bytes(), converted.bytes()));
}

/// Of files that cannot be written, or not further than that, or not at all any more.
class FaultyFiles : public LongFiles {
 protected:
  /// A write fails as the library's own does, and reads nothing but its memory.
  void expect_the_librarys_error(MPI_File file) {
    const std::vector<int> values = packed(mine_);
    const int wanted = error_class(native_write(file, 0, values));
    EXPECT_NE(MPI_SUCCESS, wanted);
    OnGpu memory(bytes_of(mine_));
    for (const By by : plain_ways) {
      const MemoryForAPiece little(goes_in_pieces(by));
      MPI_Status status;
      EXPECT_EQ(wanted, error_class(write(by, file, 0, memory.at(), count, type_, &status)));
    }
    EXPECT_TRUE(same_bytes(bytes_of(mine_), memory.bytes()));
  }

  /// Of the process, that the file is open by; -1 if there is none.
  static int descriptor_of(const std::string& name) {
    for (int descriptor = 3; descriptor < 1024; ++descriptor) {
      char target[256];
      const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
      const ssize_t length = readlink(link.c_str(), target, sizeof target);
      if (length > 0 && name == std::string(target, static_cast<std::size_t>(length))) return descriptor;
    }
    return -1;
  }
};

TEST_F(FaultyFiles, ThatAreReadOnly) {
  const File there(MPI_COMM_SELF);
  MPI_File file;
  EXPECT_EQ(MPI_SUCCESS, MPI_File_open(MPI_COMM_SELF, there.name().c_str(), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  expect_the_librarys_error(file);
  MPI_File_close(&file);
  EXPECT_TRUE(there.bytes().empty());
}

TEST_F(FaultyFiles, WhoseDescriptorIsClosed) {
  const File file(MPI_COMM_SELF);
  file.view_as("native");
  const int descriptor = descriptor_of(file.name());
  ASSERT_GE(descriptor, 0);
  const int copy = dup(descriptor);
  close(descriptor);
  expect_the_librarys_error(file);
  OnGpu memory(bytes_of(other_));
  EXPECT_NE(MPI_SUCCESS, read(By::offset, file, 0, memory.at(), count, type_, MPI_STATUS_IGNORE));
  EXPECT_TRUE(same_bytes(bytes_of(other_), memory.bytes()));
  dup2(copy, descriptor);
  close(copy);
}

/// In the third piece. Those before it are in the file, and the status tells of them.
TEST_F(FaultyFiles, ThatMayNotGrow) {
  const File file(MPI_COMM_SELF);
  file.view_as("native");
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{2 * piece_bytes + piece_bytes / 2, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &little);
  expect_the_librarys_error(file);
  OnGpu memory(bytes_of(other_));
  MPI_Status status;
  EXPECT_NE(MPI_SUCCESS, write(By::offset, file, 0, memory.at(), count, type_, &status));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(2 * piece_ints, ints_in(status));
  std::vector<int> got(2 * piece_ints), wanted = packed(other_);
  EXPECT_EQ(MPI_SUCCESS, native_read(By::offset, file, 0, got, MPI_STATUS_IGNORE));
  wanted.resize(got.size());
  EXPECT_TRUE(same_bytes(bytes_of(wanted), bytes_of(got)));
}

/// In the first piece, in the third of a write, and when what has been read is unpacked.
TEST_F(LongFiles, AfterAFailureOfTheGpu) {
  if (!gpu_fails_on_request()) GTEST_SKIP() << "a real GPU does not fail on request";
  const File file(MPI_COMM_SELF);
  file.view_as("native");
  OnGpu memory(bytes_of(mine_));
  for (const By by : plain_ways) {
    fail_next("run");
    EXPECT_NE(MPI_SUCCESS, write(by, file, 0, memory.at(), count, type_, MPI_STATUS_IGNORE));
    EXPECT_TRUE(file.bytes().empty());
    fail_next("run");
    EXPECT_NE(MPI_SUCCESS, read(by, file, 0, memory.at(), count, type_, MPI_STATUS_IGNORE));
    EXPECT_TRUE(same_bytes(bytes_of(mine_), memory.bytes()));
  }
  MPI_Status status;
  fail_next("run", 1, 2);
  EXPECT_NE(MPI_SUCCESS, write(By::offset, file, 0, memory.at(), count, type_, &status));
  EXPECT_EQ(2 * piece_ints, ints_in(status));
  std::vector<int> wanted = packed(mine_);
  wanted.resize(2 * piece_ints);
  EXPECT_TRUE(same_bytes(bytes_of(wanted), file.bytes()));
  OnGpu other(bytes_of(other_));
  fail_next("run", 1, 1);
  EXPECT_NE(MPI_SUCCESS, read(By::offset, file, 0, other.at(), count, type_, MPI_STATUS_IGNORE));
  EXPECT_TRUE(same_bytes(bytes_of(other_), other.bytes()));
  EXPECT_EQ(MPI_SUCCESS, write(By::offset, file, 0, memory.at(), count, type_, MPI_STATUS_IGNORE));
  EXPECT_TRUE(same_bytes(bytes_of(packed(mine_)), file.bytes()));
}

/// One call's bytes lie together, whichever comes first.
TEST_F(LongFiles, OfTwoThreadsDoNotMix) {
  if (!has_threads()) GTEST_SKIP() << "the program has one thread";
  const File file(MPI_COMM_SELF);
  file.view_as("native");
  OnGpu one(bytes_of(mine_)), two(bytes_of(other_));
  const auto write_from = [&](OnGpu& memory) {
    EXPECT_EQ(MPI_SUCCESS, MPI_File_write(file, memory.at(), count, type_, MPI_STATUS_IGNORE));
  };
  std::thread second(write_from, std::ref(two));
  write_from(one);
  second.join();
  std::vector<std::byte> first = bytes_of(packed(mine_)), last = bytes_of(packed(other_));
  const std::vector<std::byte> got = file.bytes();
  if (got.front() != first.front() || !std::equal(first.begin(), first.end(), got.begin())) std::swap(first, last);
  first.insert(first.end(), last.begin(), last.end());
  EXPECT_TRUE(same_bytes(first, got));
}

std::vector<int> classes_told;
void note_class(MPI_File*, int* code, ...) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(*code, &error_class);
  classes_told.push_back(error_class);
}

/// Pieces would move the individual pointer, which such a file lacks.
TEST(SequentialFiles, RefuseLongReadsWithOneError) {
  char name[] = "/tmp/gapless-files-XXXXXX";
  close(mkstemp(name));
  MPI_File file;
  ASSERT_EQ(MPI_SUCCESS,
            MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_SEQUENTIAL | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE,
                          MPI_INFO_NULL, &file));
  MPI_Errhandler handler;
  MPI_File_create_errhandler(note_class, &handler);
  MPI_File_set_errhandler(file, handler);
  MPI_Errhandler_free(&handler);
  std::vector<int> on_host = spread(0);
  OnGpu on_gpu(bytes_of(on_host));
  classes_told.clear();
  GAPLESS_TEST_NATIVE(File_read)(file, on_host.data(), ints_spread, MPI_INT, MPI_STATUS_IGNORE);
  const std::vector<int> wanted = classes_told;
  classes_told.clear();
  MPI_File_read(file, on_gpu.at(), ints_spread, MPI_INT, MPI_STATUS_IGNORE);
  EXPECT_EQ(wanted, classes_told);
  MPI_File_close(&file);
}

}  // namespace
}  // namespace gapless::test
