// An MPI datatype together with the type map it must have, and a random source of such pairs.
#pragma once

#include <mpi.h>

#include <span>
#include <string>
#include <utility>

#include "support/random.hpp"
#include "support/types/typemap.hpp"

namespace gapless::test {

/// Owns its handle, unless it is predefined.
class Type {
 public:
  Type() = default;
  /// Takes the bounds from the MPI library: the standard leaves padding of structs and bounds of empty types to it, and
  /// they say where the next repetition starts.
  Type(MPI_Datatype handle, TypeMap map, std::string text);
  static Type predefined(MPI_Datatype handle, TypeMap map, std::string text);
  Type(Type&& other) noexcept { swap(other); }
  Type& operator=(Type&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Type();

  MPI_Datatype handle() const { return handle_; }
  const TypeMap& map() const { return map_; }
  const std::string& text() const { return text_; }
  void commit();

 private:
  void swap(Type& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(map_, other.map_);
    std::swap(text_, other.text_);
    std::swap(predefined_, other.predefined_);
  }

  MPI_Datatype handle_ = MPI_DATATYPE_NULL;
  TypeMap map_;
  std::string text_;
  bool predefined_ = false;
};

/// The predefined types the random types are made of, pair types included.
std::span<const Type> predefined_types();

/// A committed type nested at most `depth` deep, of at most `max_elements` basic elements, spanning less than a MiB,
/// made of `basics`.
Type random_type(Random& random, int depth, std::size_t max_elements = 512,
                 std::span<const Type> basics = predefined_types());

/// The elements of `count` repetitions of `type`, in order, one after another without gaps: what a contiguous receiver
/// uses.
Type contiguous_counterpart(const Type& type, int count);

/// The same elements in the same order at random places that do not overlap.
Type scattered_counterpart(Random& random, const Type& type, int count);

}  // namespace gapless::test
