#include "support/types/type.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace gapless::test {

Type::Type(MPI_Datatype handle, TypeMap map, std::string text)
    : handle_(handle), map_(std::move(map)), text_(std::move(text)) {
  EXPECT_EQ(MPI_SUCCESS, MPI_Type_get_extent(handle_, &map_.lower_bound, &map_.extent)) << text_;
}

Type Type::predefined(MPI_Datatype handle, TypeMap map, std::string text) {
  Type type(handle, std::move(map), std::move(text));
  type.predefined_ = true;
  return type;
}

Type::~Type() {
  if (handle_ != MPI_DATATYPE_NULL && !predefined_) MPI_Type_free(&handle_);
}

void Type::commit() { EXPECT_EQ(MPI_SUCCESS, MPI_Type_commit(&handle_)) << text_; }

namespace {

template <typename Value>
Type basic(MPI_Datatype handle, const char* name) {
  return Type::predefined(handle, {{{0, sizeof(Value), handle}}}, name);
}

template <typename Value>
Type pair(MPI_Datatype handle, MPI_Datatype value, const char* name) {
  struct Pair {
    Value value;
    int index;
  };
  const TypeMap map{{{0, sizeof(Value), value}, {offsetof(Pair, index), sizeof(int), MPI_INT}}};
  return Type::predefined(handle, map, name);
}

Type fortran(MPI_Datatype handle, const char* name) {
  int size = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Type_size(handle, &size)) << name;
  return Type::predefined(handle, {{{0, static_cast<std::size_t>(size), handle}}}, name);
}

// Without long double: 6 of its 16 bytes are padding on x86-64, which MPICH does not copy. known_wrong_data.cpp has its
// tests.
std::vector<Type> make_predefined_types() {
  std::vector<Type> types;
  types.push_back(basic<char>(MPI_CHAR, "CHAR"));
  types.push_back(basic<std::byte>(MPI_BYTE, "BYTE"));
  types.push_back(basic<unsigned char>(MPI_UNSIGNED_CHAR, "UNSIGNED_CHAR"));
  types.push_back(basic<short>(MPI_SHORT, "SHORT"));
  types.push_back(basic<wchar_t>(MPI_WCHAR, "WCHAR"));
  types.push_back(basic<int>(MPI_INT, "INT"));
  types.push_back(basic<long>(MPI_LONG, "LONG"));
  types.push_back(basic<float>(MPI_FLOAT, "FLOAT"));
  types.push_back(basic<double>(MPI_DOUBLE, "DOUBLE"));
  types.push_back(basic<std::int16_t>(MPI_INT16_T, "INT16_T"));
  types.push_back(basic<std::uint64_t>(MPI_UINT64_T, "UINT64_T"));
  types.push_back(basic<MPI_Aint>(MPI_AINT, "AINT"));
  types.push_back(pair<float>(MPI_FLOAT_INT, MPI_FLOAT, "FLOAT_INT"));
  types.push_back(pair<double>(MPI_DOUBLE_INT, MPI_DOUBLE, "DOUBLE_INT"));
  types.push_back(pair<long>(MPI_LONG_INT, MPI_LONG, "LONG_INT"));
  types.push_back(pair<short>(MPI_SHORT_INT, MPI_SHORT, "SHORT_INT"));
  types.push_back(pair<int>(MPI_2INT, MPI_INT, "2INT"));
  types.push_back(fortran(MPI_INTEGER, "INTEGER"));
  types.push_back(fortran(MPI_DOUBLE_PRECISION, "DOUBLE_PRECISION"));
  MPI_Datatype handle;
  if (MPI_Type_create_f90_integer(8, &handle) == MPI_SUCCESS) types.push_back(fortran(handle, "f90_integer(8)"));
  if (MPI_Type_create_f90_real(6, 30, &handle) == MPI_SUCCESS) types.push_back(fortran(handle, "f90_real(6,30)"));
#if MPI_VERSION >= 5
  if (MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &handle) == MPI_SUCCESS && handle != MPI_DATATYPE_NULL)
    types.push_back(pair<double>(handle, MPI_DOUBLE, "value_index(DOUBLE,INT)"));
#endif
#ifndef OPEN_MPI  // 5.0.11 sends noncontiguous complex numbers wrong, in its own calls as well
  types.push_back(basic<double[2]>(MPI_C_DOUBLE_COMPLEX, "C_DOUBLE_COMPLEX"));
  types.push_back(basic<float[2]>(MPI_C_FLOAT_COMPLEX, "C_FLOAT_COMPLEX"));
  if (MPI_Type_create_f90_complex(6, 30, &handle) == MPI_SUCCESS) types.push_back(fortran(handle, "f90_complex(6,30)"));
#endif
  return types;
}

}  // namespace

std::span<const Type> predefined_types() {
  // Lives until the process ends: predefined types need no MPI_Type_free.
  static const std::vector<Type>* types = new std::vector<Type>(make_predefined_types());
  return *types;
}

namespace {

Type from_blocks(const std::vector<Element>& elements, const std::vector<MPI_Aint>& displacements, std::string text) {
  TypeMap map;
  std::vector<MPI_Datatype> types;
  for (std::size_t k = 0; k < elements.size(); ++k) {
    map.elements.push_back({displacements[k], elements[k].size, elements[k].basic});
    types.push_back(elements[k].basic);
  }
  const std::vector<int> lengths(elements.size(), 1);
  MPI_Datatype handle;
  MPI_Type_create_struct(static_cast<int>(elements.size()), lengths.data(), displacements.data(), types.data(),
                         &handle);
  Type type(handle, std::move(map), std::move(text));
  type.commit();
  return type;
}

std::vector<Element> repeated_elements(const Type& type, int count) {
  std::vector<Element> elements;
  for (int k = 0; k < count; ++k)
    elements.insert(elements.end(), type.map().elements.begin(), type.map().elements.end());
  return elements;
}

}  // namespace

Type contiguous_counterpart(const Type& type, int count) {
  const std::vector<Element> elements = repeated_elements(type, count);
  std::vector<MPI_Aint> displacements;
  MPI_Aint next = 0;
  for (const Element& element : elements) {
    displacements.push_back(next);
    next += static_cast<MPI_Aint>(element.size);
  }
  return from_blocks(elements, displacements, "contiguous counterpart of " + type.text());
}

Type scattered_counterpart(Random& random, const Type& type, int count) {
  const std::vector<Element> elements = repeated_elements(type, count);
  std::vector<std::size_t> order(elements.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t k = order.size(); k > 1; --k)
    std::swap(order[k - 1], order[static_cast<std::size_t>(random.between(0, static_cast<int>(k) - 1))]);
  std::vector<MPI_Aint> displacements(elements.size());
  MPI_Aint next = 8 * random.between(-4, 4);
  for (std::size_t k : order) {
    displacements[k] = next;
    next += static_cast<MPI_Aint>(elements[k].size) + (random.one_in(2) ? 0 : random.between(0, 24));
  }
  return from_blocks(elements, displacements, "scattered counterpart of " + type.text());
}

}  // namespace gapless::test
