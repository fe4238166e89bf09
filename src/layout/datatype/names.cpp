// The table of basic datatypes. Pair types are C structs, with the gaps that C gives them.
#include "layout/datatype/names.hpp"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <utility>

#include "base/checked.hpp"

namespace gapless::layout {

namespace {

struct Basic {
  std::string_view name;
  Offset size;
};

constexpr Basic basic_types[] = {
    {"byte", 1},
    {"packed", 1},
    {"char", 1},
    {"signed_char", 1},
    {"unsigned_char", 1},
    {"wchar", sizeof(wchar_t)},
    {"short", sizeof(short)},
    {"unsigned_short", sizeof(short)},
    {"int", sizeof(int)},
    {"unsigned", sizeof(int)},
    {"long", sizeof(long)},
    {"unsigned_long", sizeof(long)},
    {"long_long", sizeof(long long)},
    {"long_long_int", sizeof(long long)},
    {"unsigned_long_long", sizeof(long long)},
    {"float", sizeof(float)},
    {"double", sizeof(double)},
    {"long_double", sizeof(long double)},
    {"c_bool", sizeof(bool)},
    {"cxx_bool", sizeof(bool)},
    {"int8", 1},
    {"int16", 2},
    {"int32", 4},
    {"int64", 8},
    {"uint8", 1},
    {"uint16", 2},
    {"uint32", 4},
    {"uint64", 8},
    {"int8_t", 1},
    {"int16_t", 2},
    {"int32_t", 4},
    {"int64_t", 8},
    {"uint8_t", 1},
    {"uint16_t", 2},
    {"uint32_t", 4},
    {"uint64_t", 8},
    {"c_complex", sizeof(std::complex<float>)},
    {"c_float_complex", sizeof(std::complex<float>)},
    {"c_double_complex", sizeof(std::complex<double>)},
    {"c_long_double_complex", sizeof(std::complex<long double>)},
    {"cxx_float_complex", sizeof(std::complex<float>)},
    {"cxx_double_complex", sizeof(std::complex<double>)},
    {"cxx_long_double_complex", sizeof(std::complex<long double>)},
    {"aint", sizeof(std::ptrdiff_t)},
    {"offset", 8},
    {"count", 8},
    {"integer", 4},
    {"real", 4},
    {"double_precision", 8},
    {"complex", 8},
    {"double_complex", 16},
    {"logical", 4},
    {"character", 1},
    {"integer1", 1},
    {"integer2", 2},
    {"integer4", 4},
    {"integer8", 8},
    {"integer16", 16},
    {"logical1", 1},
    {"logical2", 2},
    {"logical4", 4},
    {"logical8", 8},
    {"logical16", 16},
    {"real2", 2},
    {"real4", 4},
    {"real8", 8},
    {"real16", 16},
    {"complex4", 4},
    {"complex8", 8},
    {"complex16", 16},
    {"complex32", 32},
    {"2int", 8},
    {"2integer", 8},
    {"2real", 8},
    {"2double_precision", 16},
};

template <class Value>
Datatype pair_with_int() {
  struct Pair {
    Value value;
    int index;
  };
  return pair(sizeof(Value), sizeof(int), offsetof(Pair, index), sizeof(Pair));
}

using Maker = Datatype (*)();

constexpr std::pair<std::string_view, Maker> pair_types[] = {
    {"short_int", pair_with_int<short>},
    {"long_int", pair_with_int<long>},
    {"float_int", pair_with_int<float>},
    {"double_int", pair_with_int<double>},
    {"long_double_int", pair_with_int<long double>},
};

/// Alignment of a basic type in a C struct: its size, but no more than the widest alignment.
Offset alignment_of(const Datatype& type) {
  const Offset size = std::max<Offset>(type.size(), 1);
  return std::min<Offset>(size & -size, alignof(std::max_align_t));
}

Offset round_up(Offset value, Offset alignment) { return checked::add(value, alignment - 1) / alignment * alignment; }

}  // namespace

std::optional<Datatype> basic_datatype(std::string_view name) {
  if (const auto* basic = std::ranges::find(basic_types, name, &Basic::name); basic != std::end(basic_types)) {
    return named(basic->size, basic->size);
  }
  for (const auto& [pair_name, make] : pair_types) {
    if (pair_name == name) return make();
  }
  return std::nullopt;
}

Datatype value_and_index(const Datatype& value, const Datatype& index) {
  const Offset alignment = std::max(alignment_of(value), alignment_of(index));
  const Offset index_offset = round_up(value.size(), alignment_of(index));
  return pair(value.size(), index.size(), index_offset, round_up(checked::add(index_offset, index.size()), alignment));
}

}  // namespace gapless::layout
