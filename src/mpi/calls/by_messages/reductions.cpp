#include "mpi/calls/by_messages/reductions.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/device.hpp"
#include "mpi/calls/by_messages/combined_exchange.hpp"
#include "mpi/calls/by_messages/exchange.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "reduction/gpu_reducer.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/packing.hpp"
#include "transfer/rdma/rendezvous/service.hpp"

namespace gapless::mpi::by_messages {
namespace {

using transfer::Result;

constinit std::atomic<std::uint64_t> reductions{0}, kernels{0};

/// Of the other ranks' operands that a rank holds at a time. The longest buffer that a thread keeps.
constexpr std::size_t workspace_bytes = transfer::buffer_memory::longest_of_thread;

/// The most bytes of all ranks' operands that every rank gets whole. Up to so many, to read more takes an H200 no
/// longer than another exchange would (OSU's osu_allreduce).
constexpr std::size_t most_whole_bytes = std::size_t{2} << 20;

/// Of operands that are combined in the same order at every call, so never by the library and by messages in turns. A
/// compromise: processes that share a GPU take 0.9 ms at any size, and processes with a GPU each 50 µs.
constexpr layout::Offset least_ordered_bytes = 256 << 10;

/// Shares begin at multiples of so many elements, so that a kernel reads aligned words.
constexpr MPI_Count granule = 64;

/// Elements of an operand.
struct Share {
  MPI_Count first = 0, count = 0;

  /// Elements [begin, begin + most) of the share.
  Share part(MPI_Count begin, MPI_Count most) const noexcept {
    return {first + begin, std::clamp(count - begin, MPI_Count{0}, most)};
  }
};

MPI_Count size_of_element(MPI_Datatype datatype) noexcept {
  const TypeRecord* const known = type_cache::find_in_table(datatype);
  if (known != nullptr) return known->is_predefined ? known->size : -1;
  return runtime::is_usable(datatype) ? runtime::size_of(datatype) : -1;
}

ReductionForm form_of(const CallFacts& call, const MemoryArgument& operand) noexcept {
  if (call.has_root) return ReductionForm::to_root;
  return operand.kind == table::RoleKind::operand ? ReductionForm::to_all : ReductionForm::scattered;
}

/// Elements of an operand; negative for a mistake.
MPI_Count elements_of(const CallFacts& call, const MemoryArgument& operand) noexcept {
  if (operand.kind == table::RoleKind::operand) return operand.counts[0];
  const std::size_t ranks = peers_in(call, operand.kind);
  MPI_Count sum = 0;
  for (std::size_t k = 0; k < ranks; ++k) {
    const MPI_Count count = operand.counts[operand.counts.is_array() ? k : 0];
    if (count < 0 || __builtin_add_overflow(sum, count, &sum)) return -1;
  }
  return sum;
}

/// This process's memory of the call. False for a mistake.
bool find_memory(const CallFacts& call, const MemoryArgument& operand, const MemoryArgument& result,
                 ReductionCall& found) noexcept {
  const bool gets_result = !call.has_root || call.is_at_root();
  if (operand.is_in_place() && !gets_result) return false;
  if (gets_result) found.result = static_cast<std::byte*>(const_cast<void*>(result.memory));
  found.operand = operand.is_in_place() ? found.result : static_cast<const std::byte*>(operand.memory);
  // A rank whose share is empty may have no memory for it.
  const bool is_empty_share =
      operand.counts.is_array() && operand.counts[static_cast<std::size_t>(found.own_rank)] == 0;
  const bool needs_result = gets_result && !is_empty_share;
  return !is_null_with_displacement(found.operand) && !(needs_result && is_null_with_displacement(found.result));
}

/// One reduction, made in rounds of as many elements as the workspace has room for.
class Rounds {
 public:
  Rounds(const CallFacts& call, const ReductionCall& reduction, const AgreedExchange& agreed) noexcept
      : call_(call),
        reduction_(reduction),
        agreed_(agreed),
        size_(reduction.built_in.bytes_of_element()),
        ranks_(agreed.exchanged().sent.peers.size()),
        own_(static_cast<std::size_t>(reduction.own_rank)),
        is_whole_(reduction.form == ReductionForm::to_all && bytes(reduction.elements) <= most_whole_bytes / ranks_) {
    MPI_Count longest = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank) longest = std::max(longest, share_of(rank).count);
    longest_ = longest;
    const auto room = static_cast<MPI_Count>(workspace_bytes / (ranks_ * size_));
    most_ = std::min(std::max(room / granule, MPI_Count{1}) * granule, (longest + granule - 1) / granule * granule);
    choose_workspace();
    if (is_scattered() && reduction.operand == reduction.result) put_aside();
  }

  /// MPI_SUCCESS, or the error that is to be raised. Goes on after an error: the other ranks wait.
  int run() noexcept {
    for (MPI_Count done = 0; done < longest_; done += most_) {
      own_share_ = share_of(own_).part(done, most_);
      get_operands(done);
      const std::byte* const combined = combine(place_of_result(done));
      if (!is_scattered() && !is_whole_) give_result(combined, done);
    }
    if (aside_ != nullptr && code_ == MPI_SUCCESS) {
      const device::Location location = gpu_ >= 0 ? gpu_aside_.location() : device::Location{};
      copy(pack::Direction::unpack, reduction_.result, share_of(own_).count, aside_, location);
    }
    return code_;
  }

 private:
  void note(int code) noexcept {
    if (code_ == MPI_SUCCESS) code_ = code;
  }
  void note(Result result) noexcept {
    if (result != Result::ok) note(transfer_failure(call_.name, result));
  }

  std::size_t bytes(MPI_Count elements) const noexcept { return static_cast<std::size_t>(elements) * size_; }
  std::byte* slot(std::size_t rank) const noexcept { return workspace_ + rank * bytes(most_); }
  bool is_scattered() const noexcept { return reduction_.form == ReductionForm::scattered; }

  Share share_of(std::size_t rank) const noexcept {
    if (is_whole_) return {0, reduction_.elements};
    if (is_scattered()) {
      const Integers& counts = reduction_.counts.counts;
      Share share;
      for (std::size_t k = 0; k < rank; ++k) share.first += counts[k];
      share.count = counts[rank];
      return share;
    }
    const auto ranks = static_cast<MPI_Count>(ranks_);
    const MPI_Count each = ((reduction_.elements - 1) / (ranks * granule) + 1) * granule;
    const MPI_Count first = std::min(static_cast<MPI_Count>(rank) * each, reduction_.elements);
    return {first, std::min(each, reduction_.elements - first)};
  }

  /// Where the result of this round's share belongs; null where other ranks alone want it, or operands are missing.
  std::byte* place_of_result(MPI_Count done) const noexcept {
    if (code_ != MPI_SUCCESS) return nullptr;
    if (is_put_aside_) return aside_ != nullptr ? aside_ + bytes(done) : nullptr;
    if (reduction_.result == nullptr) return nullptr;
    return reduction_.result + bytes(is_scattered() ? done : own_share_.first);
  }

  /// On the GPU that has the operand or the result, if kernels reach both, else on the host.
  void choose_workspace() noexcept {
    workspace_ = agreed_.exchanged().workspace;
    const device::Location in = device::locate(reduction_.operand);
    const device::Location out = reduction_.result != nullptr ? device::locate(reduction_.result) : in;
    const int gpu = in.kind == device::MemoryKind::device ? in.device : out.device;
    const bool is_on_gpu = in.kind == device::MemoryKind::device || out.kind == device::MemoryKind::device;
    if (!is_on_gpu || !in.is_gpu_addressable(gpu) || !out.is_gpu_addressable(gpu)) return;
    const std::uintptr_t addresses =
        reinterpret_cast<std::uintptr_t>(reduction_.operand) | reinterpret_cast<std::uintptr_t>(reduction_.result);
    const bool is_aligned = addresses % reduction::bytes_of(reduction_.built_in.reduction.number) == 0;
    if (!is_aligned || reduction::gpu_reducer() == nullptr) return;
    on_gpu_ = transfer::PoolBuffer(device::MemoryKind::device, gpu, ranks_ * bytes(most_));
    if (!on_gpu_) return;
    gpu_ = gpu;
    workspace_ = on_gpu_.data();
  }

  /// A scattered result in the place of operands would replace numbers that are still to be read. Without memory, the
  /// result is lost.
  void put_aside() noexcept {
    const std::size_t needed = bytes(share_of(own_).count);
    is_put_aside_ = true;
    if (needed == 0) return;
    if (gpu_ >= 0) gpu_aside_ = transfer::PoolBuffer(device::MemoryKind::device, gpu_, needed);
    aside_ = gpu_aside_.data();
    if (aside_ != nullptr) return;
    gpu_ = -1;
    workspace_ = agreed_.exchanged().workspace;
    aside_ = addresses_aside_.reserve(0, static_cast<std::intptr_t>(needed));
    if (aside_ == nullptr) note(MPI_ERR_NO_MEM);
  }

  void make_exchange() noexcept {
    Exchanged& exchanged = agreed_.exchanged();
    exchanged.messages.begin(agreed_.lane());
    note(exchange_combined(call_.name, agreed_.lane(), exchanged, agreed_.unmapped()));
  }
  Part part(const std::byte* memory, MPI_Count count) const noexcept { return {memory, count, reduction_.datatype}; }

  /// Gets the other ranks' operands of this round's share.
  void get_operands(MPI_Count done) noexcept {
    std::vector<Part>&sent = agreed_.exchanged().sent.parts, &received = agreed_.exchanged().received.parts;
    sent.clear();
    received.clear();
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const Share theirs = share_of(rank).part(done, most_);
      const bool is_own = rank == own_;
      sent.push_back(part(reduction_.operand + bytes(theirs.first), is_own ? 0 : theirs.count));
      received.push_back(part(slot(rank), is_own ? 0 : own_share_.count));
    }
    make_exchange();
  }

  /// Gives this round's share of the result to the ranks that want it, and gets theirs.
  void give_result(const std::byte* combined, MPI_Count done) noexcept {
    std::vector<Part>&sent = agreed_.exchanged().sent.parts, &received = agreed_.exchanged().received.parts;
    sent.clear();
    received.clear();
    const bool is_to_all = reduction_.form == ReductionForm::to_all;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const Share theirs = share_of(rank).part(done, most_);
      const bool wants = rank != own_ && (is_to_all || static_cast<int>(rank) == call_.root);
      const bool has = rank != own_ && reduction_.result != nullptr;
      sent.push_back(part(combined, wants ? own_share_.count : 0));
      received.push_back(part(has ? reduction_.result + bytes(theirs.first) : nullptr, has ? theirs.count : 0));
    }
    make_exchange();
  }

  /// Combines all operands of this round's share. Returns where the result is: at `to`, if that is not null.
  const std::byte* combine(std::byte* to) noexcept {
    if (own_share_.count == 0) return to;
    const std::byte* const own = reduction_.operand + bytes(own_share_.first);
    if (gpu_ >= 0) {
      std::byte* const place = to != nullptr ? to : slot(own_);
      note(combine_on_gpu(own, place) == device::Status::ok ? Result::ok : Result::device_failed);
      return place;
    }
    copy(pack::Direction::pack, own, own_share_.count, slot(own_), {});
    const reduction::Combine into = reduction::combining(reduction_.built_in.reduction);
    for (std::size_t rank = 1; rank < ranks_; ++rank) into(slot(rank - 1), slot(rank), numbers());
    std::byte* const last = slot(ranks_ - 1);
    if (to == nullptr) return last;
    copy(pack::Direction::unpack, to, own_share_.count, last, {});
    return to;
  }

  std::uint64_t numbers() const noexcept {
    return static_cast<std::uint64_t>(own_share_.count) * reduction_.built_in.numbers_per_element;
  }

  /// Copies so many elements between memory of any kind and `there`.
  void copy(pack::Direction direction, const std::byte* memory, MPI_Count elements, std::byte* there,
            device::Location location) noexcept {
    const UserBuffer user = identify(memory, elements, reduction_.datatype, Purpose::message, Analysis::now);
    if (!user.is_described()) return note(Result::out_of_memory);
    note(transfer::move_range(direction, user.buffer, 0, user.buffer.size(), there, location));
  }

  /// The slot of this rank's own operand, which is elsewhere, holds what is combined of more operands than one kernel
  /// takes.
  device::Status combine_on_gpu(const std::byte* own, std::byte* to) noexcept {
    device::Runtime& runtime = *device::runtime();
    void* const stream = runtime.stream(gpu_);
    if (stream == nullptr) return device::Status::failed;
    device::Status status = runtime.follow_default_stream(gpu_, stream);
    reduction::Job job{reduction_.built_in.reduction, numbers(), nullptr, 0, {}};
    for (std::size_t rank = 0; rank < ranks_ && status == device::Status::ok; ++rank) {
      job.operands[job.operand_count++] = rank == own_ ? own : slot(rank);
      const bool is_last = rank + 1 == ranks_;
      if (!is_last && job.operand_count < reduction::Job::most_operands) continue;
      job.result = is_last ? to : slot(own_);
      status = reduction::gpu_reducer()->reduce(job, gpu_, stream);
      kernels.fetch_add(1, std::memory_order_relaxed);
      job.operands[0] = job.result;
      job.operand_count = 1;
    }
    const device::Status ended = runtime.synchronize(gpu_, stream);
    return status != device::Status::ok ? status : ended;
  }

  const CallFacts& call_;
  const ReductionCall& reduction_;
  const AgreedExchange& agreed_;
  std::size_t size_;  ///< of an element
  std::size_t ranks_, own_;
  bool is_whole_;          ///< is each rank's share everything?
  MPI_Count longest_ = 0;  ///< of all shares
  MPI_Count most_ = 0;     ///< elements of a share in one round
  Share own_share_;        ///< this round's
  int gpu_ = -1;           ///< -1: the CPU combines
  transfer::PoolBuffer on_gpu_;
  std::byte* workspace_ = nullptr;  ///< a slot of `most_` elements for each rank
  bool is_put_aside_ = false;       ///< is the result written once all operands have been read?
  std::byte* aside_ = nullptr;      ///< where it is until then; null if there is none, or no memory
  transfer::PoolBuffer gpu_aside_;
  transfer::Placeholder addresses_aside_;
  int code_ = MPI_SUCCESS;
};

}  // namespace

std::optional<ReductionCall> reduction_of(const CallFacts& call, const MemoryArgument& operand,
                                          const MemoryArgument& result, MPI_Op op) noexcept {
  const MPI_Count size = size_of_element(operand.datatype);
  ReductionCall found;
  found.form = form_of(call, operand);
  found.elements = elements_of(call, operand);
  found.kind = kind_of_reduction(found.form, found.elements, size);
  if (found.kind < 0 || transfer::rdma::is_wanted()) return std::nullopt;
  const std::optional<BuiltInReduction> built_in = built_in_reduction(op, operand.datatype, size);
  found.own_rank = own_rank(call.communicator);  // -1: between groups
  if (!built_in || found.own_rank < 0 || !find_memory(call, operand, result, found)) return std::nullopt;
  const int ranks = count_entries(call.communicator, CountsOf::processes);
  if (call.has_root && (call.root < 0 || call.root >= ranks)) return std::nullopt;
  found.built_in = *built_in;
  found.depends_on_order = reduction::depends_on_order(built_in->reduction) && ranks > 2;
  found.datatype = operand.datatype;
  found.counts = operand;
  return found;
}

Wish wish_of(const ReductionCall& reduction, Mapping mapping) noexcept {
  if (!device::in_use()) return Wish::library;
  const bool is_on_gpu =
      is_gpu_memory(reduction.operand) || (reduction.result != nullptr && is_gpu_memory(reduction.result));
  if (!is_on_gpu) return Wish::library;
  const MPI_Count bytes = reduction.elements * static_cast<MPI_Count>(reduction.built_in.bytes_of_element());
  if (reduction.depends_on_order) return bytes < least_ordered_bytes ? Wish::library : wish_for_gpu_memory();
  return wish_for_gpu_memory(bytes, mapping);
}

bool reserve_for_reductions(const CallFacts& call, Exchanged& exchanged) noexcept {
  if (!reserve_for_all(call, exchanged)) return false;
  if (exchanged.workspace == nullptr) exchanged.workspace = exchanged.workspace_pages.reserve(0, workspace_bytes);
  return exchanged.workspace != nullptr;
}

int reduce(const CallFacts& call, const ReductionCall& reduction, const AgreedExchange& agreed) noexcept {
  reductions.fetch_add(1, std::memory_order_relaxed);
  return Rounds(call, reduction, agreed).run();
}

}  // namespace gapless::mpi::by_messages

std::uint64_t gapless_reductions_by_messages() {
  return gapless::mpi::by_messages::reductions.load(std::memory_order_relaxed);
}
std::uint64_t gapless_reduction_kernels() { return gapless::mpi::by_messages::kernels.load(std::memory_order_relaxed); }
