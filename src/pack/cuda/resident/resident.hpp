// A kernel that stays on the GPU for a while and takes small jobs from a mailbox, so that a job costs a trip over the
// bus each way and no launch. Chosen by GAPLESS_RESIDENT: 1 asks each time whether the program's default stream is
// idle, which takes as long as half a job; ready takes the program's word that its buffers are.
//
// One warp of one block polls the mailbox, which is page-locked host memory, and hands what it finds to its own block
// and, if there is enough to do, to the other blocks of its cluster, through shared memory. The blocks share the job;
// each writes the job's number to a line of page-locked memory of its own when its share is done, and the CPU polls
// them all.
//
// Nobody waits for a kernel for long: it retires after a millisecond without a job, and after 20 in any case, so that
// cudaDeviceSynchronize, cudaFree and kernels that need the whole GPU proceed. It says so in page-locked memory; a job
// that it did not see any more starts it again.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "pack/gpu/batch/resident_share.hpp"

namespace gapless::pack::gpu {

// The blocks of a cluster: the largest number that is promised everywhere, and the largest there is.
inline constexpr int promised_resident_blocks = 8;
inline constexpr int most_resident_blocks = 16;

/// A message crosses the bus in chunks that are read and written whole; each carries the number of its message, so that
/// an old chunk is told from a new one.
struct alignas(16) MailChunk {
  std::uint32_t words[3];
  std::uint32_t number;
};
inline constexpr int mail_chunks = 8;
inline constexpr int mail_words = 3 * mail_chunks;

/// What the chunks' words are together.
struct Mail {
  bool stops;       ///< the kernel is to end
  bool beyond_gpu;  ///< the job writes memory that others than this GPU read
  std::uint8_t blocks;
  bool is_pair;
  std::uint32_t words_per_block;
  alignas(8) std::byte work[mail_words * 4 - 8];  ///< a ResidentPair, or as much of a SmallNest as is worth carrying
};
static_assert(sizeof(Mail) == mail_words * sizeof(std::uint32_t) && sizeof(Mail::work) >= sizeof(ResidentPair) &&
              sizeof(Mail::work) >= sizeof(SmallNest) - sizeof(SmallNest::Level::count));

/// A number in a cache line of its own.
struct alignas(64) NumberLine {
  std::uint32_t number;
};

/// Page-locked.
struct MailBox {
  alignas(256) MailChunk mail[mail_chunks];
  alignas(256) NumberLine done[most_resident_blocks];  ///< the last message of which a block has done its share
  alignas(256) NumberLine retired;                     ///< the last kernel that takes no more messages
};

/// The blocks that the resident kernel can have on the current device.
int resident_blocks_possible() noexcept;

/// Starts kernel number `kernel`, which expects message number `next` or a later one.
cudaError_t launch_resident(MailBox* box, int blocks, std::uint32_t next, std::uint32_t kernel,
                            cudaStream_t stream) noexcept;

enum class ResidentResult : std::uint8_t { done, unavailable };

/// The resident kernel of one context. Forgotten, not destroyed: its end calls no CUDA function.
class Resident;

/// The resident kernel of the current context, which is one of `device`. Throws std::bad_alloc.
std::shared_ptr<Resident> make_resident(int device);

/// A job as resident kernels take it; the nest or pair must outlive it.
struct ResidentJob {
  ResidentJob(const SmallNest& nest, bool writes_beyond_gpu) noexcept
      : work(&nest), work_bytes(nest.size()), words(nest.word_count), is_pair(false), beyond_gpu(writes_beyond_gpu) {}
  explicit ResidentJob(const ResidentPair& pair) noexcept
      : work(&pair), work_bytes(sizeof pair), words(pair.word_count), is_pair(true), beyond_gpu(false) {}

  const void* work;
  std::size_t work_bytes;
  std::uint32_t words;
  bool is_pair;
  bool beyond_gpu;
};

/// Are so many bytes soon moved by one multiprocessor or a few?
bool is_small_for_resident(std::size_t bytes) noexcept;

/// Runs the job in the current context, whose resident kernel is given, and waits for it. Unavailable, and nothing
/// happened, where there is no resident kernel to be had, another thread uses it, or the program's default stream has
/// to be idle and is not. Precondition: is_small_for_resident() of its bytes.
ResidentResult run_resident(const ResidentJob& job, Resident& resident) noexcept;

/// Which jobs go to resident kernels: none, those that come when the program's default stream is idle, or all.
enum class ResidentUse : std::uint8_t { never, when_idle, at_once };

/// What GAPLESS_RESIDENT asks for.
ResidentUse resident_use() noexcept;

}  // namespace gapless::pack::gpu

/// Jobs that resident kernels have done in this process, for tests.
extern "C" std::uint64_t gapless_cuda_resident_jobs();
