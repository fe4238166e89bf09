#include "mpi/calls/staged/staged_argument.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

#include "base/per_thread.hpp"
#include "device/device.hpp"
#include "model/model.hpp"
#include "mpi/calls/staged/staged_memory.hpp"
#include "mpi/datatypes/pieces.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/packing.hpp"

namespace gapless::mpi {

using transfer::Result;

namespace {

/// Memory of finished arguments, for the thread's next ones, so that a call that goes to the library allocates nothing.
struct SpareParts {
  static constexpr std::size_t most_parts = 1024;  ///< of an argument whose memory is kept
  std::array<StagedParts, StagedMemory::most_arguments> parts;
  std::size_t count = 0;
};

}  // namespace

void StagedParts::clear() noexcept {
  named.clear();
  users.clear();
  offsets.clear();
  datatypes.clear();
  made.clear();
  packed.clear();
}

StagedArgument::~StagedArgument() {
  if (joined_ != MPI_DATATYPE_NULL) native.Type_free(&joined_);
  if (parts_.users.capacity() == 0 || parts_.users.capacity() > SpareParts::most_parts) return;
  parts_.clear();
  try {
    SpareParts& spare = of_this_thread<SpareParts>();
    if (spare.count < spare.parts.size()) spare.parts[spare.count++] = std::move(parts_);
  } catch (const std::exception&) {
  }
}

void StagedArgument::describe(const CallFacts& call, const MemoryArgument& argument, Analysis analysis) {
  SpareParts& spare = of_this_thread<SpareParts>();
  if (spare.count > 0) parts_ = std::move(spare.parts[--spare.count]);
  list_parts(call, argument, parts_.named);
  // Packed parts point to the buffers in `users`, which therefore must not move.
  parts_.users.reserve(parts_.named.size());
  const bool library_reads_gpu = runtime::library_reads_gpu_memory();
  for (const Part& part : parts_.named) describe(part, argument.counts, analysis, library_reads_gpu);
}

void StagedArgument::describe(const Part& part, const Integers& counts, Analysis analysis, bool library_reads_gpu) {
  const UserBuffer& user =
      parts_.users.emplace_back(identify(part.memory, part.count, part.datatype, Purpose::message, analysis));
  parts_.offsets.push_back(bytes_);
  parts_.datatypes.push_back(part.datatype);
  transfer::PackedPart& packed = parts_.packed.emplace_back();
  is_opaque_ |= user.opaque;
  is_described_ &= part.count <= 0 || user.is_described();
  if (user.is_gpu_memory() && !library_reads_gpu && gpu_ < 0) gpu_ = user.buffer.location.device;
  if (!user.is_described()) {
    const bool is_librarys =
        part.count <= 0 || part.is_missing || user.opaque || user.is_empty_type || library_reads_gpu;
    const bool is_on_gpu = !is_librarys && device::in_use() && is_gpu_memory(part.memory);
    has_no_datatype_ |= is_on_gpu && !runtime::is_usable(part.datatype);
    return;
  }
  if (shared_ == nowhere) shared_ = parts_.users.size() - 1;
  bytes_ += user.buffer.size();
  packed.buffer = part.is_missing ? nullptr : &user.buffer;
  stays_whole_ |= would_lose_elements(static_cast<std::size_t>(user.buffer.size()), *user.buffer.type);
  // The parts of all processes may be one part here, each of `counts[0]` elements.
  const MPI_Count of_process = counts.is_array() ? part.count : counts[0];
  const layout::Layout& element = *user.buffer.type->layout;
  const bool has_gaps_between = element.is_contiguous() && !user.buffer.type->contiguous_repeats;
  loses_end_ |= has_gaps_between && would_lose_end_of_own_part(static_cast<std::size_t>(element.size),
                                                               static_cast<std::size_t>(of_process));
}

void StagedArgument::choose(table::RoleKind kind, const CallFacts& call, bool may_pack_host_memory,
                            bool meets_contiguous, bool is_sent_on) {
  const bool may_pack = may_pack_host_memory && is_described_ && !is_opaque_;
  if (runtime::library_reads_gpu_memory() && may_pack && !call.keeps_datatypes && bytes_ > 0 && !is_contiguous()) {
    gpu_of_library_ = transfer::gpu_of_all(parts_.packed);
    is_staged_ = gpu_of_library_ >= 0 && choose_datatypes(false);
    if (is_staged_) return;
  }
  if (is_opaque_ || (gpu_ < 0 && (!may_pack_host_memory || !is_described_))) return;
  if (gpu_ < 0 && stays_whole_ && (!is_received(kind) || (is_sent_on && !device::in_use()))) return;
  // Other processes of the collective may send packed bytes of GPU memory, which the library cannot receive as
  // elements.
  const bool must_be_packed = stays_whole_ && device::in_use() && is_received(kind) && !is_contiguous();
  const bool is_cut_by_extent = library_cuts_by_extent && is_sent_on && has_displacements(kind) && changes_extent();
  if (gpu_ < 0 && !must_be_packed && is_cut_by_extent) return;
  if (gpu_ < 0 && !must_be_packed && !(loses_end_ && is_sent(kind)) && !is_worth_packing(call, meets_contiguous))
    return;
  is_staged_ = choose_datatypes(call.keeps_datatypes);
}

/// Of two processes with the same datatype one might pack and the other not.
bool StagedArgument::changes_extent() const noexcept {
  return shared_ != nowhere && parts_.users[shared_].buffer.type->extent != shared_size();
}

bool StagedArgument::is_contiguous() const noexcept {
  const auto has_gaps = [](const transfer::PackedPart& part) {
    return part.buffer != nullptr && !transfer::is_contiguous(*part.buffer);
  };
  return bytes_ > 0 && std::ranges::none_of(parts_.packed, has_gaps);
}

bool StagedArgument::is_worth_packing(const CallFacts& call, bool meets_contiguous) const noexcept {
  if (transfer::is_forced(transfer::Scheme::native)) return false;
  const model::HostProfile& host = model::profile().host;
  double saving_ns = 0;
  bool any = false;
  for (const transfer::PackedPart& part : parts_.packed) {
    if (part.buffer == nullptr) continue;
    if (!part.buffer->location.is_cpu_addressable()) return false;
    const model::Amount amount = transfer::amount_of(*part.buffer);
    const bool has_gaps = !transfer::is_contiguous(*part.buffer);
    if (!has_gaps) saving_ns -= host.part_ns + host.copied_byte_ns * amount.bytes;
    if (has_gaps)
      saving_ns += meets_contiguous ? model::saving_to_contiguous_ns(amount) - host.part_ns
                                    : model::message_saving_ns(amount) - host.part_of(amount);
    any |= has_gaps;
  }
  return any && (saving_ns > 0 || call.packs_gaps || transfer::is_forced(transfer::Scheme::packed));
}

bool StagedArgument::choose_datatypes(bool keep) {
  for (std::size_t i = 0; i < parts_.users.size(); ++i) {
    if (!parts_.users[i].is_described()) continue;
    const transfer::Described& type = *parts_.users[i].buffer.type;
    if (keep) {
      first_byte_ = type.layout->base;
      if (!type.contiguous_repeats) measure_span();
      continue;
    }
    if (type.contiguous_repeats && type.layout->base == 0) continue;
    ByteType made(type.layout->size);
    if (!made) return false;
    parts_.datatypes[i] = made.handle();
    parts_.made.push_back(std::move(made));
  }
  return true;
}

bool StagedArgument::displace(std::size_t i) {
  if (!parts_.users[i].is_described()) return true;  // nothing lies there
  ByteType made = ByteType::displaced(parts_.datatypes[i], parts_.offsets[i]);
  if (!made) return false;
  parts_.datatypes[i] = made.handle();
  parts_.made.push_back(std::move(made));
  return true;
}

/// Measures the span of the only part, which keeps its datatype.
void StagedArgument::measure_span() noexcept {
  const transfer::Buffer& buffer = parts_.users.front().buffer;
  const layout::Offset last = buffer.type->extent * (buffer.count - 1);
  first_byte_ = std::min<layout::Offset>(last, 0) + buffer.type->facts.true_lower_bound;
  span_ = std::max<layout::Offset>(last, 0) + buffer.type->facts.true_upper_bound - first_byte_;
}

Result StagedArgument::allocate() noexcept {
  const auto bytes = static_cast<std::size_t>(bytes_);
  if (gpu_of_library_ >= 0) {
    packed_ = transfer::PoolBuffer(device::MemoryKind::device, gpu_of_library_, bytes);
    location_ = {device::MemoryKind::device, gpu_of_library_};
    return packed_ ? Result::ok : Result::out_of_memory;
  }
  if (span_ > 0) {
    spread_ = transfer::PoolBuffer(device::MemoryKind::host, -1, static_cast<std::size_t>(span_));
    if (!spread_) return Result::out_of_memory;
  }
  if (gpu_ >= 0) {
    packed_ = transfer::PoolBuffer(device::MemoryKind::pinned, gpu_, bytes);
    location_ = {device::MemoryKind::pinned, gpu_};
    if (packed_) return Result::ok;
  }
  packed_ = transfer::PoolBuffer(device::MemoryKind::host, -1, bytes);
  location_ = {};
  return packed_ ? Result::ok : Result::out_of_memory;
}

void* StagedArgument::memory() const noexcept {
  return const_cast<void*>(address_of(first_byte(), static_cast<std::intptr_t>(-first_byte_)));
}

// One datatype, because MPICH 5.0.2 converts in memory that is too short for several elements with gaps, or for an
// element behind a gap.
MPI_Datatype StagedArgument::join() noexcept {
  const Part& part = parts_.named.front();
  const auto place = static_cast<MPI_Aint>(-first_byte_);
  if (part.count > std::numeric_limits<int>::max()) return MPI_DATATYPE_NULL;
  const int count = static_cast<int>(part.count);
  if (native.Type_create_struct(1, &count, &place, &part.datatype, &joined_) != MPI_SUCCESS) return MPI_DATATYPE_NULL;
  return native.Type_commit(&joined_) == MPI_SUCCESS ? joined_ : MPI_DATATYPE_NULL;
}

/// The only part, in host memory with its gaps.
transfer::Buffer StagedArgument::spread() const noexcept {
  const transfer::Buffer& buffer = parts_.users.front().buffer;
  return {buffer.type, buffer.count, memory(), {}};
}

Result StagedArgument::move(pack::Direction direction) noexcept {
  for (std::size_t i = 0; i < parts_.packed.size(); ++i) parts_.packed[i].packed = packed_.data() + parts_.offsets[i];
  return transfer::move_parts(direction, parts_.packed, location_);
}

Result StagedArgument::pack() noexcept {
  Result result = move(pack::Direction::pack);
  if (result == Result::ok && span_ > 0) result = transfer::unpack(spread(), packed_.data(), location_);
  if (result != Result::ok) clear();
  return result;
}

void StagedArgument::clear() noexcept {
  if (!packed_.is_there() || !location_.is_cpu_addressable()) return;
  std::memset(packed_.data(), 0, static_cast<std::size_t>(bytes_));
  if (span_ > 0) std::memset(spread_.data(), 0, static_cast<std::size_t>(span_));
}

Result StagedArgument::unpack() noexcept {
  if (span_ > 0) {
    const Result result = transfer::pack(spread(), packed_.data(), location_);
    if (result != Result::ok) return result;
  }
  return move(pack::Direction::unpack);
}

}  // namespace gapless::mpi
