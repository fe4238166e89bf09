// One source for every instruction set: GAPLESS_KERNELS names the table this compilation defines.

#include "pack/host/kernels/kernels.hpp"

#include "pack/host/kernels/lists.hpp"
#include "pack/host/kernels/loops.hpp"
#include "pack/host/kernels/pairs.hpp"
#include "pack/host/kernels/tiles.hpp"

namespace gapless::pack::host {
namespace {

template <int... length, int... field>
constexpr Kernels table_of(const char* name, std::integer_sequence<int, length...>,
                           std::integer_sequence<int, field...> fields) {
  return {name,
          {{rows_of<length, true>, rows_of<length, false>}...},
          plain_bytes,
          {nest_of<typename CopyOf<length>::Type>...},
          streamed_nest,
          end_of_streams,
          {gather_of<typename CopyOf<length>::Type>...},
          {scatter_of<typename CopyOf<length>::Type>...},
          gather_runs,
          scatter_runs,
          {records_of<true>, records_of<false>},
          expand_runs,
          {transposer_of<1>(), transposer_of<2>(), transposer_of<4>(), transposer_of<8>(), transposer_of<16>()},
          {pairs_with<field>(fields)...}};
}

}  // namespace

#define GAPLESS_STRING_OF(x) #x
#define GAPLESS_STRING(x) GAPLESS_STRING_OF(x)
#define GAPLESS_TABLE_OF(x) x##_kernels
#define GAPLESS_TABLE(x) GAPLESS_TABLE_OF(x)

constexpr Kernels GAPLESS_TABLE(GAPLESS_KERNELS) = table_of(GAPLESS_STRING(GAPLESS_KERNELS),
                                                            std::make_integer_sequence<int, shortest_long + 1>(),
                                                            std::make_integer_sequence<int, field_classes>());

}  // namespace gapless::pack::host
