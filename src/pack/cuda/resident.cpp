#include "pack/cuda/resident.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "pack/cuda/driver_numbers.hpp"
#include "pack/cuda/scopes.hpp"
#include "pack/cuda/streams.hpp"

namespace gapless::pack::cuda {
namespace {

std::atomic<std::uint64_t> jobs_done{0};
std::atomic<bool> is_forked_child{false};  // whose CUDA context is its parent's, and of no use to it

/// What GAPLESS_RESIDENT_BLOCKS asks for.
bool takes_few_blocks() noexcept {
  const char* blocks = std::getenv("GAPLESS_RESIDENT_BLOCKS");
  return blocks != nullptr && std::string_view(blocks) == "8";
}

std::uint32_t read(const NumberLine& shared) noexcept {
  return *const_cast<const volatile std::uint32_t*>(&shared.number);
}

/// One cluster's mailbox, and the kernels that take its messages, one after the other.
class Cluster {
 public:
  Cluster() = default;
  Cluster(MailBox* box, cudaStream_t stream, int blocks) noexcept : box_(box), stream_(stream), blocks_(blocks) {}

  int blocks() const noexcept { return blocks_; }

  /// Precondition: the message before is settled.
  void post(const SmallNest& nest, bool beyond_gpu) noexcept {
    const ResidentShares shares = shares_of(nest.word_count, static_cast<std::uint32_t>(blocks_));
    Mail mail;
    mail.stops = false;
    mail.beyond_gpu = beyond_gpu;
    mail.blocks = static_cast<std::uint8_t>(shares.blocks);
    mail.words_per_block = shares.words;
    std::memcpy(mail.nest, &nest, nest.size());
    write(mail);
    sharers_ = mail.blocks;
    done_ = 0;
  }

  /// Is the message done, or will it never be? Starts a kernel if the last one has retired.
  bool is_settled() noexcept {
    if (is_done() || is_broken_) return true;
    // A kernel may have done the job and retired since; to do it twice would be wrong.
    return !is_alive() && (is_done() || !start());
  }

  /// Looks for a kernel that has ended without saying so.
  void look_for_failure() noexcept {
    const cudaError_t error = cudaStreamQuery(stream_);
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
    } else {
      is_broken_ = error != cudaSuccess || is_alive();
    }
  }

  bool is_broken() const noexcept { return is_broken_; }

  void stop() noexcept {
    Mail mail{};
    mail.stops = true;
    write(mail);
  }

 private:
  void write(const Mail& mail) noexcept {
    ++message_;
#if defined(__x86_64__)
    std::array<std::uint32_t, mail_words> words;
    std::memcpy(words.data(), &mail, sizeof mail);
    for (int i = 0; i < mail_chunks; ++i) {
      const std::uint32_t* word = words.data() + 3 * i;
      const auto as_int = [](std::uint32_t value) { return static_cast<int>(value); };
      _mm_store_si128(reinterpret_cast<__m128i*>(&box_->mail[i]),
                      _mm_set_epi32(as_int(message_), as_int(word[2]), as_int(word[1]), as_int(word[0])));
    }
#endif
  }

  bool is_done() noexcept {
    while (done_ < sharers_ && read(box_->done[done_]) == message_) ++done_;
    std::atomic_thread_fence(std::memory_order_acquire);
    return done_ == sharers_;
  }

  bool is_alive() const noexcept {
    const bool alive = kernel_ != 0 && read(box_->retired) != kernel_;
    std::atomic_thread_fence(std::memory_order_acquire);
    return alive;
  }

  bool start() noexcept {
    if (launch_resident(box_, blocks_, message_, ++kernel_, stream_) == cudaSuccess) return true;
    cudaGetLastError();
    is_broken_ = true;
    return false;
  }

  MailBox* box_ = nullptr;
  cudaStream_t stream_ = nullptr;
  int blocks_ = 0;
  int sharers_ = 0;            ///< blocks that the message is for
  int done_ = 0;               ///< of which the first so many are known to have done their shares
  std::uint32_t message_ = 0;  ///< the last one written
  std::uint32_t kernel_ = 0;   ///< the last one started
  bool is_broken_ = false;
};

}  // namespace

class Resident {
 public:
  explicit Resident(int device) noexcept {
    int major = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess || major < 9) return;
    const OutsideCapture outside;
    std::array<cudaStream_t, most_resident_clusters> streams{};
    for (cudaStream_t& stream : streams) {
      if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return;
    }
    constexpr std::size_t size = sizeof(MailBox) * most_resident_clusters;
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, size, cudaHostAllocPortable | cudaHostAllocMapped) != cudaSuccess) return;
    std::memset(memory, 0, size);
    boxes_ = static_cast<MailBox*>(memory);
    boxes_number_ = allocation_number(memory);
    const int blocks = takes_few_blocks() ? promised_resident_blocks : resident_blocks_possible();
    for (std::size_t i = 0; i < streams.size(); ++i) clusters_[i] = Cluster(boxes_ + i, streams[i], blocks);
  }

  ResidentResult run(const SmallNest& nest, bool beyond_gpu) noexcept {
    if (boxes_ == nullptr || in_use_.test_and_set(std::memory_order_acquire)) return ResidentResult::unavailable;
    const bool done = post_and_wait(nest, beyond_gpu);
    if (done) jobs_done.fetch_add(1, std::memory_order_relaxed);
    in_use_.clear(std::memory_order_release);
    return done ? ResidentResult::done : ResidentResult::unavailable;
  }

  /// Lets the kernels end now instead of a millisecond later, if their context is still there.
  void stop() noexcept {
    if (boxes_ == nullptr || allocation_number(boxes_) != boxes_number_) return;
    if (in_use_.test_and_set(std::memory_order_acquire)) return;
    for (Cluster& cluster : clusters_) cluster.stop();
  }

 private:
  /// False if a kernel that was needed is not to be had.
  bool post_and_wait(const SmallNest& nest, bool beyond_gpu) noexcept {
    const std::uint32_t count = clusters_for(nest.word_count, clusters_.front().blocks());
    const std::span clusters(clusters_.data(), count);
    if (std::ranges::any_of(clusters, &Cluster::is_broken)) return false;
    for (std::uint32_t i = 0; i < count; ++i) clusters[i].post(part_of(nest, i, count), beyond_gpu);
    constexpr std::uint32_t polls_between_questions = 1 << 14;
    // A cluster may not go on after the caller has been told that another one has failed.
    for (std::uint32_t polls = 1; !are_settled(clusters); ++polls) {
      if (polls % polls_between_questions != 0) continue;
      for (Cluster& cluster : clusters) cluster.look_for_failure();
    }
    return std::ranges::none_of(clusters, &Cluster::is_broken);
  }

  /// Looks at all of them, so that none waits for another one's end to start.
  static bool are_settled(std::span<Cluster> clusters) noexcept {
    bool settled = true;
    for (Cluster& cluster : clusters) settled = cluster.is_settled() && settled;
    return settled;
  }

  MailBox* boxes_ = nullptr;
  std::uint64_t boxes_number_ = 0;
  std::array<Cluster, most_resident_clusters> clusters_;
  std::atomic_flag in_use_ = ATOMIC_FLAG_INIT;
};

namespace {

/// Never destroyed; at exit the kernels are told to end.
class Residents {
 public:
  Residents() {
    pthread_atfork(nullptr, nullptr, [] { is_forked_child.store(true, std::memory_order_relaxed); });
  }

  void add(const std::shared_ptr<Resident>& resident) {
    const std::lock_guard lock(mutex_);
    std::erase_if(residents_, [](const auto& known) { return known.expired(); });
    residents_.push_back(resident);
  }

  void stop_all() noexcept {
    const std::lock_guard lock(mutex_);
    for (const auto& known : residents_) {
      if (const auto resident = known.lock()) resident->stop();
    }
  }

 private:
  std::vector<std::weak_ptr<Resident>> residents_;
  std::mutex mutex_;
};

Residents& residents() {
  static auto* const instance = new Residents;
  struct StopsAtExit {
    ~StopsAtExit() {
      if (!is_forked_child.load(std::memory_order_relaxed)) instance->stop_all();
    }
  };
  static const StopsAtExit stops_at_exit;
  return *instance;
}

}  // namespace

ResidentUse resident_use() noexcept {
#if defined(__x86_64__)
  static const ResidentUse wanted = [] {
    const char* text = std::getenv("GAPLESS_RESIDENT");
    const std::string_view value = text != nullptr ? text : "";
    if (value == "ready") return ResidentUse::at_once;
    return value == "1" ? ResidentUse::when_idle : ResidentUse::never;
  }();
  return is_forked_child.load(std::memory_order_relaxed) ? ResidentUse::never : wanted;
#else
  return ResidentUse::never;  // messages are written 16 bytes at a time
#endif
}

std::shared_ptr<Resident> make_resident(int device) {
  auto resident = std::make_shared<Resident>(device);
  residents().add(resident);
  return resident;
}

ResidentResult run_resident(const SmallNest& nest, std::size_t bytes, bool beyond_gpu, Resident& resident) noexcept {
  if (bytes > largest_resident_job) return ResidentResult::unavailable;
  if (resident_use() == ResidentUse::when_idle && !is_idle(cudaStreamLegacy)) return ResidentResult::unavailable;
  return resident.run(nest, beyond_gpu);
}

}  // namespace gapless::pack::cuda

extern "C" __attribute__((visibility("default"))) std::uint64_t gapless_cuda_resident_jobs() {
  return gapless::pack::cuda::jobs_done.load(std::memory_order_relaxed);
}
