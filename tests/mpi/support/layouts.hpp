// A few plain datatypes of the kind programs use, for tests whose subject is the message and not the type.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <numeric>
#include <vector>

namespace gapless::test {

/// Frees its datatype.
class Owned {
 public:
  explicit Owned(MPI_Datatype handle) : handle_(handle) { MPI_Type_commit(&handle_); }
  ~Owned() {
    if (handle_ != MPI_DATATYPE_NULL) MPI_Type_free(&handle_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  operator MPI_Datatype() const { return handle_; }

 private:
  MPI_Datatype handle_;
};

/// Column of an array of `rows` times `columns` ints.
inline MPI_Datatype column(int rows, int columns) {
  MPI_Datatype type;
  MPI_Type_vector(rows, 1, columns, MPI_INT, &type);
  return type;
}

/// `blocks` blocks of `length` ints, one in every `stride` ints; repetitions follow without overlap.
inline MPI_Datatype strided(int blocks, int length, int stride) {
  MPI_Datatype vector;
  MPI_Datatype result;
  MPI_Type_vector(blocks, length, stride, MPI_INT, &vector);
  MPI_Type_create_resized(vector, 0, static_cast<MPI_Aint>(sizeof(int)) * blocks * stride, &result);
  MPI_Type_free(&vector);
  return result;
}

/// A matrix of ints, column after column. Its extent is that of one row.
inline MPI_Datatype transposed(int rows, int columns) {
  MPI_Datatype one_column = column(rows, columns), as_item, all_columns;
  MPI_Type_create_resized(one_column, 0, sizeof(int), &as_item);
  MPI_Type_contiguous(columns, as_item, &all_columns);
  MPI_Type_free(&one_column);
  MPI_Type_free(&as_item);
  return all_columns;
}

/// first, first + 1, ...
inline std::vector<int> counting(std::size_t size, int first = 0) {
  std::vector<int> values(size);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// What `strided` picks out of `values`.
inline std::vector<int> picked(const std::vector<int>& values, int blocks, int length, int stride) {
  std::vector<int> result;
  for (int block = 0; block < blocks; ++block)
    for (int k = 0; k < length; ++k) result.push_back(values[static_cast<std::size_t>(block * stride + k)]);
  return result;
}

/// `into` with the blocks of `strided` replaced by the first of `values`.
inline std::vector<int> placed(std::vector<int> into, const std::vector<int>& values, int length, int stride) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    const std::size_t l = static_cast<std::size_t>(length);
    into[k / l * static_cast<std::size_t>(stride) + k % l] = values[k];
  }
  return into;
}

}  // namespace gapless::test
