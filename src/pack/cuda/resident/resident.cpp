#include "pack/cuda/resident/resident.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "base/settings.hpp"
#include "device/cuda/driver_numbers.hpp"
#include "device/cuda/scopes.hpp"
#include "device/cuda/streams.hpp"
#include "model/gpu.hpp"

namespace gapless::pack::gpu {
namespace {

using device::cuda::allocation_number;
using device::cuda::is_idle;
using device::cuda::OutsideCapture;

std::atomic<std::uint64_t> jobs_done{0};
std::atomic<bool> is_forked_child{false};  // whose CUDA context is its parent's, and of no use to it

std::uint32_t read(const NumberLine& shared) noexcept {
  return *const_cast<const volatile std::uint32_t*>(&shared.number);
}

/// A mailbox, and the kernels that take its messages, one after the other.
class Cluster {
 public:
  Cluster() = default;
  Cluster(MailBox* box, cudaStream_t stream, int blocks) noexcept : box_(box), stream_(stream), blocks_(blocks) {}

  /// Precondition: the message before is settled.
  void post(const ResidentJob& job) noexcept {
    const ResidentShares shares = shares_of(job.words, static_cast<std::uint32_t>(blocks_));
    Mail mail;
    mail.stops = false;
    mail.beyond_gpu = job.beyond_gpu;
    mail.blocks = static_cast<std::uint8_t>(shares.blocks);
    mail.is_pair = job.is_pair;
    mail.words_per_block = shares.words;
    std::memcpy(mail.work, job.work, job.work_bytes);
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
    cudaStream_t stream = nullptr;
    void* memory = nullptr;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaHostAlloc(&memory, sizeof(MailBox), cudaHostAllocPortable | cudaHostAllocMapped) != cudaSuccess) {
      if (stream != nullptr) cudaStreamDestroy(stream);
      cudaGetLastError();
      return;
    }
    std::memset(memory, 0, sizeof(MailBox));
    box_ = static_cast<MailBox*>(memory);
    box_number_ = allocation_number(memory);
    cluster_ = Cluster(box_, stream, resident_blocks_possible());
  }

  ResidentResult run(const ResidentJob& job) noexcept {
    if (box_ == nullptr || in_use_.test_and_set(std::memory_order_acquire)) return ResidentResult::unavailable;
    const bool done = post_and_wait(job);
    if (done) jobs_done.fetch_add(1, std::memory_order_relaxed);
    in_use_.clear(std::memory_order_release);
    return done ? ResidentResult::done : ResidentResult::unavailable;
  }

  /// Lets the kernel end now instead of a millisecond later, if their context is still there.
  void stop() noexcept {
    if (box_ == nullptr || allocation_number(box_) != box_number_) return;
    if (in_use_.test_and_set(std::memory_order_acquire)) return;
    cluster_.stop();
  }

 private:
  /// False if no kernel is to be had.
  bool post_and_wait(const ResidentJob& job) noexcept {
    if (cluster_.is_broken()) return false;
    cluster_.post(job);
    constexpr std::uint32_t polls_between_questions = 1 << 14;
    for (std::uint32_t polls = 1; !cluster_.is_settled(); ++polls) {
      if (polls % polls_between_questions == 0) cluster_.look_for_failure();
    }
    return !cluster_.is_broken();
  }

  MailBox* box_ = nullptr;
  std::uint64_t box_number_ = 0;
  Cluster cluster_;
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
    const std::string_view value = settings().resident;
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

bool is_small_for_resident(std::size_t bytes) noexcept { return bytes <= model::gpu_tuning.largest_resident_job; }

ResidentResult run_resident(const ResidentJob& job, Resident& resident) noexcept {
  if (resident_use() == ResidentUse::when_idle && !is_idle(cudaStreamLegacy)) return ResidentResult::unavailable;
  return resident.run(job);
}

}  // namespace gapless::pack::gpu

extern "C" __attribute__((visibility("default"))) std::uint64_t gapless_cuda_resident_jobs() {
  return gapless::pack::gpu::jobs_done.load(std::memory_order_relaxed);
}
