#include "mpi/calls/staged_argument.hpp"

#include "mpi/table/native.hpp"
#include "transfer/packing.hpp"

namespace gapless::mpi {

using transfer::Result;

StagedArgument::~StagedArgument() {
  for (MPI_Datatype& type : made_) native.Type_free(&type);
}

bool StagedArgument::describe(const std::vector<Part>& parts, bool keep_datatypes) {
  for (const Part& part : parts) {
    const UserBuffer& user =
        users_.emplace_back(identify(part.memory, part.count, part.datatype, Purpose::message, Analysis::now));
    offsets_.push_back(bytes_);
    if (user.opaque || !add_datatype(user, part, keep_datatypes)) return false;
    if (user.is_described()) bytes_ += user.buffer.size();
  }
  is_staged_ = true;
  return true;
}

bool StagedArgument::add_datatype(const UserBuffer& user, const Part& part, bool keep) {
  datatypes_.push_back(part.datatype);
  // Nothing of it moves.
  if (!user.is_described()) return true;
  const transfer::Described& type = *user.buffer.type;
  if (type.contiguous_repeats && (keep || type.layout->base == 0)) {
    base_ = type.layout->base;
    return true;
  }
  if (keep) return false;
  if (!made_.empty() && made_for_ == part.datatype) {
    datatypes_.back() = made_.back();
    return true;
  }
  const auto size = static_cast<int>(type.layout->size);
  if (size != type.layout->size) return false;
  MPI_Datatype made;
  if (native.Type_contiguous(size, MPI_BYTE, &made) != MPI_SUCCESS) return false;
  made_.push_back(made);
  if (native.Type_commit(&made_.back()) != MPI_SUCCESS) return false;
  datatypes_.back() = made_.back();
  made_for_ = part.datatype;
  return true;
}

Result StagedArgument::allocate(int gpu) noexcept {
  const auto bytes = static_cast<std::size_t>(bytes_);
  packed_ = transfer::PoolBuffer(device::MemoryKind::pinned, gpu, bytes);
  location_ = {device::MemoryKind::pinned, gpu};
  if (packed_) return Result::ok;
  packed_ = transfer::PoolBuffer(device::MemoryKind::host, -1, bytes);
  location_ = {};
  return packed_ ? Result::ok : Result::out_of_memory;
}

void* StagedArgument::memory() const noexcept {
  return const_cast<void*>(address_of(packed_.data(), static_cast<std::intptr_t>(-base_)));
}

Result StagedArgument::move(bool pack) noexcept {
  for (std::size_t i = 0; i < users_.size(); ++i) {
    if (!users_[i].is_described()) continue;
    std::byte* packed = packed_.data() + offsets_[i];
    const Result result = pack ? transfer::pack(users_[i].buffer, packed, location_)
                               : transfer::unpack(users_[i].buffer, packed, location_);
    if (result != Result::ok) return result;
  }
  return Result::ok;
}

}  // namespace gapless::mpi
