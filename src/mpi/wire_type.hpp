// How packed bytes are given to the library: as MPI_PACKED, which matches every datatype on the other side.
#pragma once

#include <cstddef>
#include <limits>
#include <type_traits>

#include "mpi/abi.hpp"

namespace gapless::mpi {

/// May the library cut `bytes` packed bytes of this datatype where it likes, whatever the receiver's datatype? MPICH
/// sends long messages in pieces, and fails to receive one in a noncontiguous buffer if a piece ends inside a basic
/// element. Of noncontiguous messages of its own it sends whole elements; packed bytes it cuts every so many.
bool may_be_cut(MPI_Datatype datatype, std::size_t bytes) noexcept;

/// Makes a committed datatype of exactly `bytes` bytes, to be sent with count 1. False if the library cannot.
bool make_large_type(std::size_t bytes, MPI_Datatype& type) noexcept;
void free_large_type(MPI_Datatype& type) noexcept;

/// Count and datatype that name `bytes` packed bytes; Count is what the function called takes.
template <class Count>
class WireType {
 public:
  explicit WireType(std::size_t bytes) noexcept : count_(static_cast<Count>(bytes)), type_(MPI_PACKED) {
    if constexpr (std::is_same_v<Count, int>) {
      if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max())) [[unlikely]] {
        count_ = 1;
        is_large_ = true;
        is_usable_ = make_large_type(bytes, type_);
      }
    }
  }
  ~WireType() {
    if (is_large_ && is_usable_) free_large_type(type_);
  }
  WireType(const WireType&) = delete;
  WireType& operator=(const WireType&) = delete;

  bool is_usable() const noexcept { return is_usable_; }
  Count count() const noexcept { return count_; }
  MPI_Datatype type() const noexcept { return type_; }

 private:
  Count count_;
  MPI_Datatype type_;
  bool is_large_ = false;
  bool is_usable_ = true;
};

}  // namespace gapless::mpi
