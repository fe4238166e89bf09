// Two fields of a repeated record in one pass over the records.
//
// Part of kernels.cpp, which is compiled once per instruction set: everything here has internal linkage.
#pragma once

#include "pack/host/kernels/loops.hpp"

namespace gapless::pack::host {
namespace {

/// The copy for fields of each class, see field_class.
template <int field_class>
struct FieldCopyOf;
// clang-format off
template <> struct FieldCopyOf<0> { using Type = Exact<1>; };
template <> struct FieldCopyOf<1> { using Type = Exact<2>; };
template <> struct FieldCopyOf<2> { using Type = Exact<3>; };
template <> struct FieldCopyOf<3> { using Type = Exact<4>; };
template <> struct FieldCopyOf<4> { using Type = Overlapped<4>; };
template <> struct FieldCopyOf<5> { using Type = Exact<8>; };
template <> struct FieldCopyOf<6> { using Type = Overlapped<8>; };
template <> struct FieldCopyOf<7> { using Type = Exact<12>; };
template <> struct FieldCopyOf<8> { using Type = Exact<16>; };
template <> struct FieldCopyOf<9> { using Type = Overlapped<16>; };
template <> struct FieldCopyOf<10> { using Type = Exact<20>; };
template <> struct FieldCopyOf<11> { using Type = Exact<24>; };
template <> struct FieldCopyOf<12> { using Type = Exact<32>; };
template <> struct FieldCopyOf<13> { using Type = Overlapped<32>; };
// clang-format on

template <class First, class Second>
void pair_of(const Pair& pair, const char* source, char* destination) {
  const First first(pair.length[0]);
  const Second second(pair.length[1]);
  const Offset source_gap = pair.source_gap, destination_gap = pair.destination_gap;
  const auto both = [&](const char* from, char* to) __attribute__((always_inline)) {
    first(from, to);
    second(from + source_gap, to + destination_gap);
  };
  near_rows(both, pair.records.count, pair.records.source_stride, pair.records.destination_stride, source, destination);
}

template <int first, int... second>
constexpr PairRow pairs_with(std::integer_sequence<int, second...>) {
  return {{pair_of<typename FieldCopyOf<first>::Type, typename FieldCopyOf<second>::Type>...}};
}

}  // namespace
}  // namespace gapless::pack::host
