#include "transfer/choice/choose.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <span>
#include <string_view>

#include "base/settings.hpp"
#include "model/model.hpp"
#include "transfer/choice/host_trial.hpp"
#include "transfer/rdma/rendezvous/service.hpp"
#include "transfer/schemes/direct.hpp"
#include "transfer/schemes/scheme.hpp"
#include "transfer/schemes/slots.hpp"

namespace gapless::transfer {
namespace {

constexpr std::array every_scheme = {Scheme::native,       Scheme::packed,       Scheme::oneshot,
                                     Scheme::staged,       Scheme::pipelined,    Scheme::device,
                                     Scheme::slots,        Scheme::direct,       Scheme::fabric_pipelined,
                                     Scheme::gather_write, Scheme::scatter_read, Scheme::multi_write};
static_assert(every_scheme.size() == scheme_count);
static_assert(static_cast<std::size_t>(Scheme::native) == model::native_scheme);
static_assert(static_cast<std::size_t>(Scheme::packed) == model::packed_scheme && scheme_count <= model::most_schemes);
static_assert(static_cast<std::size_t>(Scheme::slots) == model::slots_scheme);
static_assert(static_cast<std::size_t>(Scheme::direct) == model::direct_scheme);

/// The schemes that one process takes by itself. The other schemes need two processes, and never apply to a buffer
/// alone.
constexpr std::span schemes_of_one_process = std::span(every_scheme).first<6>();
static_assert(schemes_of_one_process.back() == Scheme::device);

constexpr int no_scheme = -1;

int number_of(std::string_view scheme_name) noexcept {
  for (const Scheme scheme : every_scheme) {
    if (scheme_name == name(scheme)) return static_cast<int>(scheme);
  }
  return no_scheme;
}

std::atomic<int>& forced() noexcept {
  static std::atomic<int> scheme = number_of(settings().scheme);
  return scheme;
}

constinit std::atomic<bool> library_reads_gpu{false};

/// How often anything that choices rest on has changed, but for the profile.
constinit std::atomic<std::uint16_t> changes{0};

void note_change() noexcept { changes.fetch_add(1, std::memory_order_relaxed); }

/// The version of all that choices rest on. A memo of another version is of no use.
std::uint16_t version() noexcept {
  return static_cast<std::uint16_t>(changes.load(std::memory_order_relaxed) + model::profile_changes());
}

void force(int scheme) noexcept {
  forced().store(scheme, std::memory_order_relaxed);
  note_change();
}

/// What is measured of a scheme for messages in such memory; null without a profile file.
const model::SchemeCosts* measured_costs(Scheme scheme, const Buffer& buffer) noexcept {
  const model::Profile& use = model::profile();
  if (use.measured == nullptr) return nullptr;
  const bool on_host = buffer.location.is_cpu_addressable();
  const bool is_gpu_of_node = !on_host && use.pair == model::Pair::same_node;
  const model::CostsByScheme& costs = use.measured->of(on_host ? model::Memory::host : model::Memory::gpu,
                                                       is_gpu_of_node ? model::Pair::peer_gpu : use.pair);
  return &costs[static_cast<std::size_t>(scheme)];
}

const model::SchemeCosts* measured_costs_between_gpus(Scheme scheme, model::Pair pair) noexcept {
  const model::Measured* const measured = model::profile().measured;
  return measured == nullptr ? nullptr : &measured->of(model::Memory::gpu, pair)[static_cast<std::size_t>(scheme)];
}

/// One side's half of a message's measured time. Precondition: is_measured().
double measured_ns(Scheme scheme, const Buffer& buffer) noexcept { return predict_message_ns(scheme, buffer) / 2; }

/// Are the schemes of the buffer compared by measured tables? Of GPU memory, if any scheme that applies has a table. Of
/// host memory never: predictions there are savings over the library's own way, and `packed` reads the tables itself.
bool is_measured(const Buffer& buffer) noexcept {
  if (model::profile().measured == nullptr || buffer.location.is_cpu_addressable()) return false;
  return std::ranges::any_of(schemes_of_one_process, [&](Scheme scheme) {
    return measured_costs(scheme, buffer)->is_known() && schemes::of(scheme).applies(buffer);
  });
}

/// The scheme with the least prediction among those that apply, but for `without`.
std::optional<Scheme> least(const Buffer& buffer, Side side, std::optional<Scheme> without) noexcept {
  const bool by_tables = is_measured(buffer);
  std::optional<Scheme> best;
  double least_ns = model::never_ns;
  for (const Scheme scheme : schemes_of_one_process) {
    if (scheme == without || !schemes::of(scheme).applies(buffer)) continue;
    const double ns = by_tables ? measured_ns(scheme, buffer) : schemes::of(scheme).predict_ns(buffer, side);
    if (ns >= least_ns) continue;
    best = scheme;
    least_ns = ns;
  }
  return best;
}

/// The predicted time of a whole message in GPU memory to a GPU at the distance `pair`; never_ns where nothing predicts
/// it.
double message_between_gpus_ns(Scheme scheme, const Buffer& buffer, model::Pair pair) noexcept {
  const auto bytes = static_cast<std::size_t>(buffer.size());
  if (const model::SchemeCosts* costs = measured_costs_between_gpus(scheme, pair);
      costs != nullptr && costs->is_known())
    return costs->message_ns(model::shape_of(amount_of(buffer)));
  if (scheme == Scheme::direct) return model::direct_message_ns(model::profile().gpu, pair, bytes);
  if (is_measured(buffer)) return predict_message_ns(scheme, buffer);
  // The other schemes' predictions leave out the library's message, which the schemes have in common where the library
  // reads no GPU memory.
  const double host_ns = library_reads_gpu_memory() ? 0 : model::host_message_ns(model::profile().gpu, bytes);
  const double library_ns =
      scheme == Scheme::device ? model::gpu_message_ns(model::profile().gpu, pair, bytes) : 2 * host_ns;
  return 2 * predict_ns(scheme, buffer, Side::sender) + library_ns;
}

bool is_too_long_for_slots(const Buffer& buffer) noexcept {
  return static_cast<std::size_t>(buffer.size()) > schemes::most_slots_bytes;
}

bool may_take_slots(const Buffer& buffer) noexcept {
  return schemes::may_take_slots(static_cast<std::size_t>(buffer.size()));
}

/// What is chosen for the sender and for the receiver of a message.
struct SidesChoice {
  Scheme sent, received;

  static constexpr unsigned scheme_bits = 4, bits = 2 * scheme_bits;
  static_assert(scheme_count <= 1U << scheme_bits && bits <= ChoiceMemo::bits);

  Scheme of(Side side) const noexcept { return side == Side::sender ? sent : received; }
  std::uint16_t encoded() const noexcept {
    return static_cast<std::uint16_t>(static_cast<unsigned>(sent) | static_cast<unsigned>(received) << scheme_bits);
  }
  static SidesChoice decoded(std::uint16_t code) noexcept {
    constexpr unsigned mask = (1U << scheme_bits) - 1;
    return {static_cast<Scheme>(code & mask), static_cast<Scheme>(code >> scheme_bits & mask)};
  }
};

/// All choices for a message in host memory, but for the choice of a fabric.
struct HostChoice {
  SidesChoice sides;
  bool goes_by_header, request_goes_by_header, is_worth_a_request;

  static constexpr unsigned flag_bits = 3;
  static_assert(SidesChoice::bits + flag_bits <= ChoiceMemo::bits);

  std::uint16_t encoded() const noexcept {
    const unsigned flags =
        unsigned{goes_by_header} | unsigned{request_goes_by_header} << 1 | unsigned{is_worth_a_request} << 2;
    return static_cast<std::uint16_t>(unsigned{sides.encoded()} << flag_bits | flags);
  }
  static HostChoice decoded(std::uint16_t code) noexcept {
    const auto sides = static_cast<std::uint16_t>(code >> flag_bits);
    return {SidesChoice::decoded(sides), (code & 1) != 0, (code & 2) != 0, (code & 4) != 0};
  }
};

/// The memo's choice; else the choice that `make()` returns, which the memo keeps.
template <class Choice, class Make>
Choice from_memo(const ChoiceMemo& memo, layout::Offset count, Make make) noexcept {
  const std::uint16_t now = version();
  if (const auto known = memo.find(count, now)) return Choice::decoded(*known);
  const Choice choice = make();
  memo.keep(count, now, choice.encoded());
  return choice;
}

/// The scheme that is forced, where the memory allows it, else the one with the least prediction.
Scheme forced_or_least(const Buffer& buffer, Side side) noexcept {
  for (const Scheme scheme : schemes_of_one_process) {
    if (is_forced(scheme) && schemes::of(scheme).applies(buffer)) return scheme;
  }
  return least(buffer, side, std::nullopt).value_or(Scheme::native);
}

SidesChoice forced_or_least(const Buffer& buffer) noexcept {
  return {forced_or_least(buffer, Side::sender), forced_or_least(buffer, Side::receiver)};
}

bool predict_header(const Buffer& buffer, bool gets_request) noexcept {
  if (is_any_forced()) return is_forced(header_scheme(buffer));
  const model::Amount amount = amount_of(buffer);
  if (is_too_long_for_slots(buffer)) return model::ring_saving_ns(amount, gets_request) > 0;
  return may_take_slots(buffer) && model::slots_saving_ns(amount, gets_request) > 0;
}

bool predict_worth_of_a_request(const Buffer& buffer) noexcept {
  return is_any_forced() || model::message_saving_ns(amount_of(buffer)) > model::profile().host.request_ns;
}

/// Precondition: host memory.
HostChoice host_choice(const Buffer& buffer) noexcept {
  if (const HostWay way = host_way(); way != HostWay::predicted) [[unlikely]] {
    const bool is_packed = way == HostWay::packed && !is_contiguous(buffer);
    const Scheme scheme = is_packed ? Scheme::packed : Scheme::native;
    return {{scheme, scheme}, false, false, true};
  }
  return from_memo<HostChoice>(buffer.type->host_choice, buffer.count, [&buffer] {
    return HostChoice{forced_or_least(buffer), predict_header(buffer, false), predict_header(buffer, true),
                      predict_worth_of_a_request(buffer)};
  });
}

/// Precondition: memory of a GPU, whichever GPU that is.
SidesChoice gpu_choice(const Buffer& buffer) noexcept {
  return from_memo<SidesChoice>(buffer.type->gpu_choice, buffer.count, [&buffer] { return forced_or_least(buffer); });
}

}  // namespace

bool library_reads_gpu_memory() noexcept { return library_reads_gpu.load(std::memory_order_relaxed); }

void set_library_reads_gpu_memory(bool reads) noexcept {
  library_reads_gpu.store(reads, std::memory_order_relaxed);
  note_change();
}

bool is_forced(Scheme scheme) noexcept {
  const int what = forced().load(std::memory_order_relaxed);
  if (what == static_cast<int>(scheme)) return true;
  return scheme == Scheme::packed && what != no_scheme && is_agreed(static_cast<Scheme>(what));
}

bool is_any_forced() noexcept { return forced().load(std::memory_order_relaxed) != no_scheme; }

void force_scheme(std::optional<Scheme> scheme) noexcept { force(scheme ? static_cast<int>(*scheme) : no_scheme); }

bool is_contiguous(const Buffer& buffer) noexcept {
  return buffer.type->contiguous_repeats || (buffer.count == 1 && buffer.type->layout->is_contiguous());
}

double part_saving_ns(const Buffer& part) noexcept {
  if (is_forced(Scheme::packed)) return model::never_ns;
  if (is_forced(Scheme::native)) return 0;
  const model::Amount amount = amount_of(part);
  const model::HostProfile& host = model::profile().host;
  return std::max(model::message_saving_ns(amount) - host.part_of(amount),
                  model::saving_to_contiguous_ns(amount) - host.part_ns);
}

model::Amount amount_of(const Buffer& buffer) noexcept {
  const layout::Facts& facts = buffer.type->facts;
  const auto count = static_cast<double>(buffer.count);
  return {count * static_cast<double>(facts.size), count * static_cast<double>(facts.block_count),
          count * static_cast<double>(facts.row_count)};
}

std::span<const char* const> scheme_names() noexcept {
  static const auto names = [] {
    std::array<const char*, scheme_count> all;
    for (const Scheme scheme : every_scheme) all[static_cast<std::size_t>(scheme)] = name(scheme);
    return all;
  }();
  return names;
}

namespace {

/// GPU memory goes by a fabric as packed bytes, so the times of packed bytes in page-locked memory are compared. A
/// library that reads GPU memory has its own way to the network.
bool is_sooner_by_fabric_from_gpu(const Buffer& buffer) noexcept {
  if (schemes::device.applies(buffer)) return false;
  constexpr Scheme by_library = Scheme::oneshot;
  const double library_ns = predict_message_ns(by_library, buffer) -
                            predict_movement_ns(by_library, buffer, Side::sender) -
                            predict_movement_ns(by_library, buffer, Side::receiver);
  const auto bytes = static_cast<std::uint64_t>(buffer.size());
  return rdma::is_sooner_than_others({bytes, 1, bytes, bytes}, library_ns);
}

}  // namespace

double predict_ns(Scheme scheme, const Buffer& buffer, Side side) noexcept {
  return is_measured(buffer) ? measured_ns(scheme, buffer) : schemes::of(scheme).predict_ns(buffer, side);
}

Scheme choose(const Buffer& buffer, Side side) noexcept {
  // A message that may go by a fabric is packed, also for a peer that the fabric does not reach.
  if (rdma::is_wanted() && !is_any_forced() && schemes::packed.applies(buffer) && goes_by_fabric(buffer))
    return Scheme::packed;
  return choose_without_fabric(buffer, side);
}

Scheme choose_without_fabric(const Buffer& buffer, Side side) noexcept {
  const bool is_on_host = buffer.location.is_cpu_addressable();
  return (is_on_host ? host_choice(buffer).sides : gpu_choice(buffer)).of(side);
}

double predict_movement_ns(Scheme scheme, const Buffer& buffer, Side side) noexcept {
  // Packing into slots is packing, by the same engine.
  const Scheme measured = scheme == Scheme::slots ? Scheme::packed : scheme;
  if (const model::SchemeCosts* costs = measured_costs(measured, buffer); costs != nullptr) {
    const std::optional<model::Table>& table = side == Side::sender ? costs->pack : costs->unpack;
    if (table) return table->at(model::shape_of(amount_of(buffer)));
  }
  return buffer.location.is_cpu_addressable() ? model::never_ns : schemes::of(scheme).predict_ns(buffer, side);
}

double predict_message_ns(Scheme scheme, const Buffer& buffer) noexcept {
  const model::SchemeCosts* const costs = measured_costs(scheme, buffer);
  return costs != nullptr ? costs->message_ns(model::shape_of(amount_of(buffer))) : model::never_ns;
}

std::optional<Scheme> next_best(const Buffer& buffer, Side side, Scheme best) noexcept {
  return least(buffer, side, best);
}

bool is_worth_a_request(const Buffer& buffer) noexcept { return host_choice(buffer).is_worth_a_request; }

Scheme header_scheme(const Buffer& buffer) noexcept {
  return is_too_long_for_slots(buffer) ? Scheme::direct : Scheme::slots;
}

bool goes_by_header(const Buffer& buffer, bool gets_request) noexcept {
  const HostChoice choice = host_choice(buffer);
  return gets_request ? choice.request_goes_by_header : choice.goes_by_header;
}

bool may_go_direct(const Buffer& buffer) noexcept {
  return static_cast<std::size_t>(buffer.size()) >= schemes::least_direct_bytes;
}

bool may_go_direct_from_host(const Buffer& buffer) noexcept {
  return is_too_long_for_slots(buffer) && (!is_any_forced() || is_forced(Scheme::direct));
}

bool goes_direct(const Buffer& buffer, model::Pair pair) noexcept {
  if (!may_go_direct(buffer)) return false;
  if (is_any_forced()) return is_forced(Scheme::direct);
  const std::optional<Scheme> other = least(buffer, Side::sender, std::nullopt);
  return !other ||
         message_between_gpus_ns(Scheme::direct, buffer, pair) < message_between_gpus_ns(*other, buffer, pair);
}

double predict_in_node_ns(Scheme scheme, const Buffer& buffer, model::Pair pair) noexcept {
  const bool is_on_host = buffer.location.is_cpu_addressable();
  if (scheme == Scheme::slots) {
    const bool may = is_on_host && !is_contiguous(buffer) && may_take_slots(buffer);
    return may ? -model::slots_over_native_ns(amount_of(buffer)) : model::never_ns;
  }
  if (scheme == Scheme::direct && is_on_host) {
    const bool may = !is_contiguous(buffer) && is_too_long_for_slots(buffer);
    return may ? -model::ring_over_native_ns(amount_of(buffer)) : model::never_ns;
  }
  if (scheme == Scheme::direct) {
    const bool may = may_go_direct(buffer);
    return may ? message_between_gpus_ns(scheme, buffer, pair) : model::never_ns;
  }
  if (!schemes::of(scheme).applies(buffer)) return model::never_ns;
  return is_on_host ? predict_ns(scheme, buffer, Side::sender) : message_between_gpus_ns(scheme, buffer, pair);
}

Scheme choose_in_node(const Buffer& buffer, model::Pair pair) noexcept {
  if (!buffer.location.is_cpu_addressable()) {
    return goes_direct(buffer, pair) ? Scheme::direct : choose(buffer, Side::sender);
  }
  const bool has_header = !is_contiguous(buffer) && goes_by_header(buffer);
  return has_header ? header_scheme(buffer) : choose(buffer, Side::sender);
}

bool goes_by_fabric(const Buffer& buffer) noexcept {
  if (!rdma::is_wanted() || buffer.size() < rdma::least_bytes) return false;
  const int what = forced().load(std::memory_order_relaxed);
  if (what != no_scheme) return what >= static_cast<int>(Scheme::fabric_pipelined);
  if (!buffer.location.is_cpu_addressable()) return is_sooner_by_fabric_from_gpu(buffer);
  const double library_ns =
      std::min(predict_message_ns(Scheme::native, buffer), predict_message_ns(Scheme::packed, buffer));
  return rdma::is_sooner_than_others(
      rdma::blocks_of(buffer.type->facts, *buffer.type->layout, {buffer.count, buffer.type->extent}), library_ns);
}

Scheme choose_packing(const Buffer& buffer) noexcept {
  if (is_contiguous(buffer) || is_forced(Scheme::native)) return Scheme::native;
  if (is_forced(Scheme::packed)) return Scheme::packed;
  return model::pack_saving_ns(amount_of(buffer)) > 0 ? Scheme::packed : Scheme::native;
}

}  // namespace gapless::transfer

extern "C" void gapless_transfer_force_scheme(const char* name) {
  gapless::transfer::force(gapless::transfer::number_of(name != nullptr ? name : ""));
}
