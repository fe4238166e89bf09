// The resident kernel: one cluster of blocks, of which one warp polls the mailbox.
//
// Nothing here may be spilled to local memory: the first-level cache is emptied by every wait, so a spilled number
// costs a trip to the second level. Hence two kinds of work, and no call.
#include <cuda_runtime.h>

#include "model/gpu.hpp"
#include "pack/cuda/resident/cluster.cuh"
#include "pack/cuda/resident/resident.hpp"

namespace gapless::pack::gpu {
namespace {

/// Memory past the first-level cache, in which a resident kernel would find what was there before other kernels wrote.
struct FreshSpace {
  template <class T>
  struct Fresh {
    const T* pointer;

    __device__ __forceinline__ T operator*() const {
      if constexpr (sizeof(T) == 16) {
        const ulonglong2 both = __ldcg(reinterpret_cast<const ulonglong2*>(pointer));
        return {both.x, both.y};
      } else {
        return __ldcg(pointer);
      }
    }
  };

  template <class T>
  __device__ __forceinline__ auto at(std::uintptr_t address) const {
    if constexpr (std::is_const_v<T>) {
      return Fresh<std::remove_const_t<T>>{reinterpret_cast<T*>(address)};
    } else {
      return reinterpret_cast<T*>(__cvta_global_to_generic(address));
    }
  }
};

struct WorkingBlock {
  FreshSpace space;

  template <class Phase>
  __device__ __forceinline__ void threads(const Phase& phase) const {
    phase(static_cast<int>(threadIdx.x));
  }
};

constexpr int warp_threads = 32;
constexpr int resident_threads = threads_per_block + warp_threads;  // one warp of the first block polls

#if __CUDA_ARCH__ >= 900
constexpr std::uint64_t idle_nanoseconds = 1'000'000;
constexpr std::uint64_t longest_life_nanoseconds = 20'000'000;

// A poll takes more than a microsecond, so several are under way. Left alone they fall into step, and see no more than
// one does; hence a least time from one to the next, less than what one takes divided by their number.
constexpr int polls_under_way = model::gpu_tuning.polls_under_way;
constexpr std::uint32_t cycles_between_polls = model::gpu_tuning.cycles_between_polls;

/// One warp's polls of the mailbox.
class Polls {
 public:
  using Places = uint4[polls_under_way][mail_chunks];

  __device__ Polls(const MailBox& box, Places& places) : box_(box), places_(places), lane_(threadIdx.x % warp_threads) {
    for (int i = 0; i < polls_under_way; ++i) start();
  }

  /// What the oldest poll has found, once it has. Lanes beyond the chunks have the first ones again.
  __device__ uint4 oldest() const {
    asm volatile("cp.async.wait_group %0;" ::"n"(polls_under_way - 1) : "memory");
    __syncwarp();
    return places_[oldest_][lane_ % mail_chunks];
  }

  /// Polls again. Precondition: all lanes have seen what the oldest poll found.
  __device__ void start() {
    while (cycles() - last_start_ < cycles_between_polls) {
    }
    last_start_ = cycles();
    if (lane_ < mail_chunks) copy_later(&places_[oldest_][lane_], &box_.mail[lane_]);
    asm volatile("cp.async.commit_group;" ::: "memory");
    oldest_ = (oldest_ + 1) % polls_under_way;
  }

  /// To be called before the block ends, whose shared memory must not be written then.
  __device__ void wait() const { asm volatile("cp.async.wait_all;" ::: "memory"); }

 private:
  /// To shared memory, past the first-level cache. Loads into registers would do, but the compiler waits for all of
  /// them at once; and if they were for the whole system, those of one line would wait for each other.
  static __device__ void copy_later(uint4* place, const MailChunk* chunk) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(unsigned(__cvta_generic_to_shared(place))),
                 "l"(__cvta_generic_to_global(chunk))
                 : "memory");
  }

  const MailBox& box_;
  Places& places_;
  unsigned lane_;
  int oldest_ = 0;
  std::uint32_t last_start_ = 0;
};

struct ResidentShared {
  Polls::Places polls;
  uint4 chunks[mail_chunks];
  ClusterBarrier arrived;   ///< a message, in each helper
  ClusterBarrier finished;  ///< the helpers' shares, in the first block
};

/// To be called by one thread of a block when all have done the block's share, of which every byte is then to be seen.
__device__ __forceinline__ void report(MailBox& box, unsigned block, bool beyond_gpu, std::uint32_t number) {
  if (beyond_gpu) {
    __threadfence_system();
  } else {
    __threadfence();
  }
  *const_cast<volatile std::uint32_t*>(&box.done[block].number) = number;
}

/// For the workers of a block, and for all of the first block.
template <int threads>
__device__ __forceinline__ void synchronise_threads() {
  asm volatile("barrier.sync 1, %0;" ::"n"(threads) : "memory");
}

/// The message in a block's shared memory.
__device__ __forceinline__ Mail read_mail(const ResidentShared& shared) {
  std::uint32_t words[mail_words];
#pragma unroll
  for (int i = 0; i < mail_chunks; ++i) {
    const uint4 chunk = shared.chunks[i];
    words[3 * i] = chunk.x;
    words[3 * i + 1] = chunk.y;
    words[3 * i + 2] = chunk.z;
  }
  Mail mail;
  memcpy(&mail, words, sizeof mail);
  return mail;
}

/// The warp that polls, of the first block.
class Poller {
 public:
  __device__ Poller(MailBox& box, ResidentShared& shared, std::uint32_t next)
      : box_(box), shared_(shared), next_(next), lane_(threadIdx.x % warp_threads) {}

  __device__ void serve(std::uint32_t kernel) {
    const std::uint64_t start = nanoseconds();
    std::uint64_t last_job = start;
    Polls polls(box_, shared_.polls);
    while (true) {
      const uint4 chunk = polls.oldest();
      const std::uint32_t number = __shfl_sync(~0u, chunk.w, 0);
      const bool is_whole = __all_sync(~0u, chunk.w == number);
      if (is_whole && static_cast<std::int32_t>(number - next_) >= 0) {
        const bool needs_help = stops(chunk) || blocks(chunk) > 1;
        deliver(chunk, needs_help);
        if (stops(chunk)) break;
        synchronise_threads<resident_threads>();  // this block's share is done
        if (lane_ == 0) report(box_, 0, is_beyond_gpu(chunk), number);
        if (needs_help) wait_for_helpers();  // whose memory must not be written while they read it
        next_ = number + 1;
        last_job = nanoseconds();
      } else if (is_time_to_retire(start, last_job)) {
        deliver({1, 0, 0, 0}, true);  // a message that stops
        break;
      }
      polls.start();
    }
    polls.wait();
    wait_for_helpers();  // the CPU takes a job that is not done when the kernel retires for one that it has not seen
    if (lane_ == 0) {
      __threadfence_system();
      *const_cast<volatile std::uint32_t*>(&box_.retired.number) = kernel;
    }
  }

 private:
  static_assert(mail_chunks <= warp_threads && offsetof(Mail, stops) == 0 && offsetof(Mail, beyond_gpu) == 1 &&
                offsetof(Mail, blocks) == 2);

  __device__ void deliver(uint4 chunk, bool to_helpers) {
    if (to_helpers) {
      constexpr unsigned blocks_at_once = warp_threads / mail_chunks;
      for (unsigned block = 1 + lane_ / mail_chunks; block < cluster_blocks(); block += blocks_at_once) {
        shared_.arrived.send(&shared_.chunks[lane_ % mail_chunks], chunk, block);
      }
    }
    // This block's own workers are told half a microsecond sooner.
    if (lane_ < mail_chunks) shared_.chunks[lane_] = chunk;
    synchronise_threads<resident_threads>();
  }

  __device__ void wait_for_helpers() {
    shared_.finished.wait(parity_);
    parity_ ^= 1;
  }

  static __device__ std::uint32_t first_word(uint4 chunk) { return __shfl_sync(~0u, chunk.x, 0); }
  static __device__ bool stops(uint4 chunk) { return (first_word(chunk) & 0xff) != 0; }
  static __device__ bool is_beyond_gpu(uint4 first_chunk) { return (first_chunk.x >> 8 & 0xff) != 0; }
  static __device__ std::uint32_t blocks(uint4 chunk) { return first_word(chunk) >> 16 & 0xff; }

  __device__ bool is_time_to_retire(std::uint64_t start, std::uint64_t last_job) const {
    const std::uint64_t now = nanoseconds();
    const bool is_time = now - last_job > idle_nanoseconds || now - start > longest_life_nanoseconds;
    return __shfl_sync(~0u, is_time, 0);
  }

  MailBox& box_;
  ResidentShared& shared_;
  std::uint32_t next_;
  unsigned lane_;
  unsigned parity_ = 0;
};

__device__ __forceinline__ void run_share(const Mail& mail, unsigned block) {
  if (mail.is_pair) {
    run_share(*reinterpret_cast<const ResidentPair*>(mail.work), mail.words_per_block, block, WorkingBlock{});
  } else {
    run_share(*reinterpret_cast<const SmallNest*>(mail.work), mail.words_per_block, block, WorkingBlock{});
  }
}

/// The threads of the first block that do not poll.
__device__ void work_beside_poller(const ResidentShared& shared) {
  while (true) {
    synchronise_threads<resident_threads>();
    const Mail mail = read_mail(shared);
    if (mail.stops) return;
    run_share(mail, 0);
    synchronise_threads<resident_threads>();
  }
}

/// The threads of a helper.
__device__ void help(MailBox& box, ResidentShared& shared, unsigned block) {
  for (unsigned parity = 0;; parity ^= 1) {
    shared.arrived.wait(parity);
    if (threadIdx.x == 0) shared.arrived.expect(sizeof shared.chunks);
    const Mail mail = read_mail(shared);
    const std::uint32_t number = shared.chunks[0].w;
    if (mail.stops) break;
    if (block < mail.blocks) run_share(mail, block);
    synchronise_threads<threads_per_block>();
    if (threadIdx.x != 0) continue;
    if (block < mail.blocks) report(box, block, mail.beyond_gpu, number);
    // After all else that this thread has seen it would wait until that number has crossed the bus.
    shared.finished.arrive_relaxed_at(0);
  }
  if (threadIdx.x == 0) shared.finished.arrive_at(0);
}
#endif

__global__ void __launch_bounds__(resident_threads)
    resident_kernel(MailBox* box, std::uint32_t next, std::uint32_t kernel) {
#if __CUDA_ARCH__ >= 900
  __shared__ ResidentShared shared;
  if (threadIdx.x == 0) {
    shared.arrived.initialise(1);
    shared.finished.initialise(cluster_blocks() - 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    shared.arrived.expect(sizeof shared.chunks);
  }
  synchronise_cluster();
  if (threadIdx.x < threads_per_block) {
    blockIdx.x == 0 ? work_beside_poller(shared) : help(*box, shared, blockIdx.x);
  } else if (blockIdx.x == 0) {
    Poller(*box, shared, next).serve(kernel);
  }
  synchronise_cluster();  // shared memory of a block that has ended must not be written
#endif
}

/// One cluster of so many blocks. The kernel itself is told that it may have as many.
struct ResidentConfiguration {
  cudaLaunchAttribute cluster{};
  cudaLaunchConfig_t launch{};

  ResidentConfiguration(int blocks, cudaStream_t stream) noexcept {
    if (blocks > promised_resident_blocks) {
      cudaFuncSetAttribute(resident_kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    }
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
    launch.gridDim = dim3(static_cast<unsigned>(blocks));
    launch.blockDim = dim3(resident_threads);
    launch.stream = stream;
    launch.attrs = &cluster;
    launch.numAttrs = 1;
  }
  ResidentConfiguration(const ResidentConfiguration&) = delete;  // points into itself
  ResidentConfiguration& operator=(const ResidentConfiguration&) = delete;
};

}  // namespace

int resident_blocks_possible() noexcept {
  ResidentConfiguration largest(most_resident_blocks, nullptr);
  int clusters = 0;
  const cudaError_t error = cudaOccupancyMaxActiveClusters(&clusters, resident_kernel, &largest.launch);
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess && clusters >= 1 ? most_resident_blocks : promised_resident_blocks;
}

cudaError_t launch_resident(MailBox* box, int blocks, std::uint32_t next, std::uint32_t kernel,
                            cudaStream_t stream) noexcept {
  const ResidentConfiguration configuration(blocks, stream);
  return cudaLaunchKernelEx(&configuration.launch, resident_kernel, box, next, kernel);
}

}  // namespace gapless::pack::gpu
