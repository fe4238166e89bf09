// What the model predicts of messages, for `gapless explain`.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "api/error.hpp"
#include "api/span.hpp"
#include "api/type.hpp"
#include "base/settings.hpp"
#include "layout/algebra/facts.hpp"
#include "model/model.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/choice/profiles.hpp"
#include "transfer/rdma/channel.hpp"
#include "transfer/rdma/rendezvous/service.hpp"
#include "transfer/rdma/scheme.hpp"
#include "transfer/schemes/scheme.hpp"

using namespace gapless;
using namespace gapless::api;

namespace {

/// Throws if they are not what the functions below take.
void check_messages(const gapless_type* type, std::int64_t count) {
  require(type, "type");
  require_not_negative(count, "count");
  Span span;
  if (!span_of(type->datatype, count, span)) throw std::overflow_error("the repetitions do not fit in 63 bits");
}

transfer::Described described(const layout::Datatype& datatype) {
  return {datatype.layout, layout::facts_of(*datatype.layout), datatype.extent(),
          datatype.layout->is_contiguous() && datatype.extent() == datatype.size()};
}

void use_profile_of(const char* library) {
  model::change_profile().host = std::strcmp(library, "Open MPI") == 0 ? model::open_mpi_on_host : model::mpich_on_host;
  model::change_profile().measured = transfer::named_profile(library);
}

device::Location location_of(bool is_on_gpu) noexcept {
  return is_on_gpu ? device::Location{device::MemoryKind::device, 0} : device::Location{};
}

/// What libfabric's tcp and shm say of themselves.
constexpr fabric::Limits software_limits{.gather_entries = 4,
                                         .scatter_entries = 4,
                                         .operation_bytes = std::size_t{1} << 30,
                                         .outstanding = 128,
                                         .has_immediates = true,
                                         .is_ordered = true,
                                         .posts_lists = false,
                                         .follows_mappings = true};

}  // namespace

/// One scheme's predictions for the sender and for the receiver, in nanoseconds (transfer/schemes/scheme.hpp says of
/// what); NaN where it does not apply.
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
    check_messages(type, count);
    require(library, "library");
    require(predictions, "predictions");
    use_profile_of(library);
    const transfer::Described description = described(type->datatype);
    const transfer::Buffer buffer{&description, count, nullptr, location_of(on_gpu != 0)};
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

/// The same for messages to a process of the node that gapless serves too, in memory of the host ("same node"), or of
/// GPUs that are that far from each other ("same GPU", "peer GPU"). Both sides' are the same: of host memory one side's
/// time beside the library's own way, of GPU memory the whole message's.
extern "C" gapless_status gapless_transfer_predict_in_node(const gapless_type* type, std::int64_t count,
                                                           const char* pair, const char* library,
                                                           gapless_prediction* predictions) {
  return guard([&] {
    check_messages(type, count);
    require(pair, "pair");
    require(library, "library");
    require(predictions, "predictions");
    const auto* const named = std::ranges::find(model::pair_names, std::string_view(pair));
    if (named == model::pair_names.end()) return fail(GAPLESS_ERROR_ARGUMENT, "pair: there is no \"%s\"", pair);
    const auto far = static_cast<model::Pair>(named - model::pair_names.begin());
    use_profile_of(library);
    const transfer::Described description = described(type->datatype);
    const bool is_on_gpu = far == model::Pair::same_gpu || far == model::Pair::peer_gpu;
    const transfer::Buffer buffer{&description, count, nullptr, location_of(is_on_gpu)};
    const bool is_empty = buffer.size() == 0;
    const transfer::Scheme chosen = is_empty             ? transfer::Scheme::native
                                    : settings().headers ? transfer::choose_in_node(buffer, far)
                                                         : transfer::choose(buffer, transfer::Side::sender);
    for (std::size_t i = 0; i < transfer::scheme_count; ++i) {
      const auto scheme = static_cast<transfer::Scheme>(i);
      const double ns = is_empty ? model::never_ns : transfer::predict_in_node_ns(scheme, buffer, far);
      const double shown = std::isfinite(ns) ? ns : std::nan("");
      const bool is_chosen = !is_empty && scheme == chosen;
      predictions[i] = {transfer::name(scheme), {shown, shown}, {is_chosen, is_chosen}};
    }
    return GAPLESS_SUCCESS;
  });
}

/// Fills in `transfer::rdma::scheme_count` + 1 predictions for messages by a fabric like libfabric's tcp, of `count` of
/// the type in host memory at both sides: packed by the sender and left to the MPI library, then each scheme of
/// fabrics. Both sides' are the whole message's. Nothing is predicted of a message that never goes by a fabric, because
/// there is nothing to pack or the message is short.
extern "C" gapless_status gapless_transfer_predict_fabric(const gapless_type* type, std::int64_t count,
                                                          gapless_prediction* predictions) {
  namespace rdma = transfer::rdma;
  return guard([&] {
    check_messages(type, count);
    require(predictions, "predictions");
    const transfer::Described description = described(type->datatype);
    const rdma::Blocks blocks = rdma::blocks_of(description.facts, *description.layout, {count, description.extent});
    const rdma::Options options;
    const rdma::Ends ends{blocks, blocks, software_limits,
                          rdma::segment_bytes_for(blocks.bytes, options.segment_bytes, options.profile)};
    const transfer::Buffer buffer{&description, count, nullptr, location_of(false)};
    const bool may_go = !transfer::is_contiguous(buffer) && buffer.size() >= rdma::least_bytes;
    const auto set = [&](gapless_prediction& prediction, transfer::Scheme scheme, double ns, bool is_chosen) {
      const double shown = may_go ? ns : std::nan("");
      prediction = {transfer::name(scheme), {shown, shown}, {may_go && is_chosen, may_go && is_chosen}};
    };
    const std::optional<rdma::Scheme> chosen = rdma::choose_beside_packed(ends, options.profile);
    set(predictions[0], transfer::Scheme::packed, model::fabric_packed_ns(options.profile, rdma::message_of(ends)),
        !chosen);
    for (std::size_t i = 0; i < rdma::scheme_count; ++i) {
      const auto scheme = static_cast<rdma::Scheme>(i);
      const auto named =
          static_cast<transfer::Scheme>(static_cast<std::size_t>(transfer::Scheme::fabric_pipelined) + i);
      set(predictions[i + 1], named, rdma::of(scheme).predict_ns(ends, options.profile), chosen == scheme);
    }
    return GAPLESS_SUCCESS;
  });
}
