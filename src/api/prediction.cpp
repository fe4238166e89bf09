// What the model predicts of messages, for `gapless explain`.
#include <array>
#include <cmath>
#include <cstring>

#include "api/type.hpp"
#include "layout/algebra/facts.hpp"
#include "model/model.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/choice/profiles.hpp"
#include "transfer/schemes/scheme.hpp"

using namespace gapless;
using namespace gapless::api;

/// One scheme's predictions for the sender and for the receiver, in nanoseconds (schemes/scheme.hpp says of what); NaN
/// where it does not apply.
struct gapless_prediction {
  const char* scheme;
  double ns[2];
  int is_chosen[2];
};

/// Fills in one prediction for each scheme, `transfer::scheme_count` of them, for messages of `count` of the type in
/// memory of a GPU or of the host, and that MPI library ("MPICH", "Open MPI"). Changes the profile: not for processes
/// that communicate.
extern "C" gapless_status gapless_transfer_predict(const gapless_type* type, std::int64_t count, int on_gpu,
                                                   const char* library, gapless_prediction* predictions) {
  return guard([&] {
    require(type, "type");
    require(library, "library");
    require(predictions, "predictions");
    require_not_negative(count, "count");
    model::profile().host = std::strcmp(library, "Open MPI") == 0 ? model::open_mpi_on_host : model::mpich_on_host;
    model::profile().measured = transfer::named_profile(library);
    const layout::Datatype& datatype = type->datatype;
    const transfer::Described described{datatype.layout, layout::facts_of(*datatype.layout), datatype.extent(),
                                        datatype.layout->is_contiguous() && datatype.extent() == datatype.size()};
    const auto location = on_gpu != 0 ? device::Location{device::MemoryKind::device, 0} : device::Location{};
    const transfer::Buffer buffer{&described, count, nullptr, location};
    const bool is_empty = buffer.size() == 0;
    constexpr std::array sides = {transfer::Side::sender, transfer::Side::receiver};
    for (std::size_t i = 0; i < transfer::scheme_count; ++i) {
      const auto scheme = static_cast<transfer::Scheme>(i);
      predictions[i].scheme = transfer::name(scheme);
      const bool applies = !is_empty && transfer::schemes::of(scheme).applies(buffer);
      for (std::size_t side = 0; side < sides.size(); ++side) {
        predictions[i].ns[side] = applies ? transfer::predict_ns(scheme, buffer, sides[side]) : std::nan("");
        predictions[i].is_chosen[side] = !is_empty && transfer::choose(buffer, sides[side]) == scheme;
      }
    }
    return GAPLESS_SUCCESS;
  });
}
