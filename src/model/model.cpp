// Predictions: of tables where something is measured, else sums of start-up costs and bytes over bandwidths.
#include "model/model.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

#include "model/gpu.hpp"

namespace gapless::model {

namespace {

constinit Profile in_use;
constinit std::atomic<std::uint32_t> changes{0};

/// What one side saves by that scheme, where it is measured beside the library's own.
std::optional<double> measured_saving_ns(std::size_t scheme, const Amount& amount) noexcept {
  const Profile& use = profile();
  if (use.measured == nullptr) return std::nullopt;
  const CostsByScheme& costs = use.measured->of(Memory::host, use.pair);
  if (!costs[native_scheme].is_known() || !costs[scheme].is_known()) return std::nullopt;
  const Shape shape = shape_of(amount);
  return (costs[native_scheme].message_ns(shape) - costs[scheme].message_ns(shape)) / 2;
}

}  // namespace

const Profile& profile() noexcept { return in_use; }

Profile& change_profile() noexcept {
  changes.fetch_add(1, std::memory_order_relaxed);
  return in_use;
}

std::uint32_t profile_changes() noexcept { return changes.load(std::memory_order_relaxed); }

double message_saving_ns(const Amount& amount) noexcept {
  const std::optional<double> measured = measured_saving_ns(packed_scheme, amount);
  return measured ? *measured : profile().host.message(amount).of(amount);
}

double received_saving_ns(const Amount& amount) noexcept {
  const std::optional<double> measured = measured_saving_ns(packed_scheme, amount);
  const HostProfile& host = profile().host;
  return measured ? *measured : (amount.bytes <= host.eager_bytes ? host.eager : host.received).of(amount);
}

double slots_over_native_ns(const Amount& amount) noexcept {
  const std::optional<double> measured = measured_saving_ns(slots_scheme, amount);
  return measured ? *measured : profile().host.slots(amount).of(amount);
}

double saving_to_contiguous_ns(const Amount& amount) noexcept {
  const HostProfile& host = profile().host;
  const double saving_ns = message_saving_ns(amount);
  return amount.bytes <= host.eager_bytes ? saving_ns : std::max(saving_ns, host.to_contiguous.of(amount));
}

namespace {

/// What a way saves over the sooner one of the library's own and packing, by what each saves over the library's. A
/// request costs both ways the same.
double over_both_ns(double way_ns, double packed_ns, double request_ns) noexcept {
  return way_ns - request_ns - std::max(packed_ns - request_ns, 0.0);
}

}  // namespace

double slots_saving_ns(const Amount& amount, bool gets_request) noexcept {
  const HostProfile& host = profile().host;
  const double request_ns = gets_request ? host.request_ns : 0;
  // Tables are compared with tables, and sums with sums.
  const std::optional<double> slots_ns = measured_saving_ns(slots_scheme, amount);
  const double packed_ns = slots_ns ? message_saving_ns(amount) : host.message(amount).of(amount);
  return over_both_ns(slots_ns.value_or(host.slots(amount).of(amount)), packed_ns, request_ns);
}

double ring_over_native_ns(const Amount& amount) noexcept { return profile().host.ring.of(amount); }

double ring_saving_ns(const Amount& amount, bool gets_request) noexcept {
  const HostProfile& host = profile().host;
  const double request_ns = gets_request ? host.request_ns : 0;
  return over_both_ns(ring_over_native_ns(amount), host.message(amount).of(amount), request_ns);
}

double pack_saving_ns(const Amount& amount) noexcept {
  const Profile& use = profile();
  if (use.measured != nullptr) {
    const CostsByScheme& costs = use.measured->of(Memory::host, use.pair);
    const Shape shape = shape_of(amount);
    if (costs[native_scheme].pack && costs[packed_scheme].pack) {
      return costs[native_scheme].pack->at(shape) - costs[packed_scheme].pack->at(shape);
    }
  }
  return use.host.pack.of(amount);
}

double oneshot_pack_ns(const GpuProfile& gpu, std::size_t bytes) noexcept {
  return gpu.launch_and_wait_ns + static_cast<double>(bytes) / gpu.mapped_write_bytes_per_ns;
}

double oneshot_unpack_ns(const GpuProfile& gpu, std::size_t bytes) noexcept {
  return gpu.launch_and_wait_ns + static_cast<double>(bytes) / gpu.mapped_read_bytes_per_ns;
}

double copy_ns(const GpuProfile& gpu, std::size_t bytes) noexcept {
  return gpu.launch_and_wait_ns + static_cast<double>(bytes) / gpu.copy_bytes_per_ns;
}

double staged_ns(const GpuProfile& gpu, std::size_t bytes) noexcept {
  return gpu.launch_and_wait_ns + gpu.copy_start_ns +
         static_cast<double>(bytes) * (1 / gpu.pack_bytes_per_ns + 1 / gpu.copy_bytes_per_ns);
}

double pipelined_ns(const GpuProfile& gpu, std::size_t bytes) noexcept {
  const double first = static_cast<double>(std::min<std::size_t>(bytes, gpu_tuning.segment_bytes));
  return gpu.launch_and_wait_ns + first / gpu.mapped_write_bytes_per_ns +
         static_cast<double>(bytes) / gpu.cpu_copy_bytes_per_ns;
}

double device_ns(const GpuProfile& gpu, std::size_t bytes) noexcept {
  return gpu.launch_and_wait_ns + gpu.gpu_message_ns + static_cast<double>(bytes) / gpu.pack_bytes_per_ns;
}

double direct_message_ns(const GpuProfile& gpu, Pair pair, std::size_t bytes) noexcept {
  if (pair == Pair::other_node) return never_ns;
  if (pair == Pair::same_node) {
    // Through page-locked memory; long messages are unpacked while they are packed.
    constexpr double header_ns = 1'000;
    const auto longest_whole = static_cast<std::size_t>(gpu_tuning.longest_whole_on_host);
    return 2 * gpu.launch_and_wait_ns + header_ns +
           static_cast<double>(std::min(bytes, longest_whole)) / gpu.mapped_write_bytes_per_ns +
           static_cast<double>(bytes) / gpu.mapped_read_bytes_per_ns;
  }
  const bool is_same = pair == Pair::same_gpu;
  const double unpack_bytes_per_ns = is_same ? gpu.pack_bytes_per_ns : gpu.peer_bytes_per_ns;
  return 2 * gpu.launch_and_wait_ns + (is_same ? gpu.change_process_ns : 0) +
         static_cast<double>(bytes) * (1 / gpu.pack_bytes_per_ns + 1 / unpack_bytes_per_ns);
}

double gpu_message_ns(const GpuProfile& gpu, Pair pair, std::size_t bytes) noexcept {
  return static_cast<double>(bytes) / (pair == Pair::same_gpu ? gpu.pack_bytes_per_ns : gpu.peer_bytes_per_ns);
}

double host_message_ns(const GpuProfile& gpu, std::size_t bytes) noexcept {
  return static_cast<double>(bytes) / gpu.host_message_bytes_per_ns;
}

double page_locking_ns(const GpuProfile& gpu, std::size_t bytes) noexcept {
  return static_cast<double>(bytes) / gpu.page_locking_bytes_per_ns;
}

}  // namespace gapless::model
