#include "transfer/rdma/rendezvous/service.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <string>

#include "base/hash.hpp"
#include "base/quiet_thread.hpp"
#include "base/settings.hpp"
#include "device/device.hpp"
#include "fabric/libfabric/libfabric.hpp"
#include "model/model.hpp"
#include "transfer/choice/profiles.hpp"
#include "transfer/rdma/rendezvous/transfers.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::transfer::rdma {
namespace {

constexpr std::chrono::milliseconds usual_patience{50};

// Never destroyed: stop() ends its thread, at the latest when the process exits.
std::atomic<Transfers*> service{nullptr};
std::atomic<bool> has_nodes{false};

}  // namespace

void join_nodes() noexcept { has_nodes.store(true, std::memory_order_relaxed); }

bool is_wanted() noexcept {
  const bool has_somebody = settings().fabric_neighbours || has_nodes.load(std::memory_order_relaxed);
  return has_somebody && !settings().fabric.empty() && settings().fabric != "off";
}

void start(int rank, int size) noexcept try {
  if (!is_wanted() || service.load() != nullptr || size < 2) return;
  std::string why;
  auto endpoint = fabric::open_libfabric(std::string(settings().fabric), why, device::in_use());
  if (endpoint != nullptr) {
    // The profile of the farthest pair of the job's processes.
    const auto profile = model::fabric_profile(settings().fabric, model::profile().pair, measured_fabrics());
    auto made = std::make_unique<Transfers>(std::move(endpoint), profile, rank, size, has_nodes.load());
    if (made->is_usable()) {
      service.store(made.release());
      end_at_exit<[] { service.load()->stop(); }>();  // before libfabric's own end
      return;
    }
    why = "no memory can be registered";
  }
  warn_about_fabric(why);
} catch (const std::exception&) {
}

void drain(bool (*has_ended)(int rank)) noexcept {
  if (Transfers* all = service.load()) all->drain(has_ended);
}

std::uint64_t held_registrations() noexcept {
  Transfers* const all = service.load();
  return all != nullptr ? all->held_registrations() : 0;
}

void stop() noexcept {
  Transfers* const all = service.load();
  if (all == nullptr) return;
  all->stop();
  all->close();
}

std::uint64_t fabric_kind() noexcept { return service.load() != nullptr ? hash_of(settings().fabric) : 0; }

int own_rank() noexcept { return service.load()->rank(); }

std::span<const std::byte> own_address() noexcept { return service.load()->address(); }

bool is_sooner_than_others(const Blocks& blocks, double others_ns) noexcept {
  const Transfers* const all = service.load();
  return all != nullptr && all->is_sooner_than_others(blocks, others_ns);
}

void EndTransfer::operator()(Transfer* transfer) const noexcept { service.load()->end(transfer); }

OwnedTransfer begin_send(int rank, const Memory& memory) noexcept {
  Transfers* const all = service.load();
  return OwnedTransfer(all != nullptr ? all->send(rank, memory) : nullptr);
}

OwnedTransfer begin_packed_send(int rank, int device, std::size_t bytes) noexcept {
  Transfers* const all = service.load();
  return OwnedTransfer(all != nullptr ? all->send_packed(rank, device, bytes) : nullptr);
}

const PoolBuffer& packed_of(const Transfer& transfer) noexcept { return transfer.packed.buffer; }

const Offer& offer_of(const Transfer& transfer) noexcept { return transfer.offer; }

void withdraw(OwnedTransfer& transfer) noexcept {
  if (transfer != nullptr) service.load()->withdraw(transfer.release());
}

OwnedTransfer begin_receive(int rank, std::span<const std::byte> address, const Offer& offer,
                            const Memory& memory) noexcept {
  Transfers* const all = service.load();
  return OwnedTransfer(all != nullptr ? all->receive(rank, address, offer, &memory) : nullptr);
}

OwnedTransfer begin_receive_on_gpu(int rank, std::span<const std::byte> address, const Offer& offer,
                                   int device) noexcept {
  Transfers* const all = service.load();
  return OwnedTransfer(all != nullptr ? all->receive_on_gpu(rank, address, offer, device) : nullptr);
}

void decline(int rank, std::span<const std::byte> address, const Offer& offer) noexcept {
  Transfers* const all = service.load();
  // The transfer ends by itself.
  const OwnedTransfer transfer(all != nullptr ? all->receive(rank, address, offer, nullptr) : nullptr);
}

const Taken& taken_by(const Transfer& transfer) noexcept { return transfer.taken; }

transfer::Result poll(Transfer& transfer) noexcept { return service.load()->poll(transfer); }
transfer::Result wait(Transfer& transfer) noexcept { return service.load()->wait(transfer); }
transfer::Result complete_alone(Transfer& transfer) noexcept { return service.load()->complete_alone(transfer); }

bool is_patience_over(const Transfer& transfer) noexcept {
  static const Clock::duration patience =
      settings().fabric_patience_ms ? std::chrono::milliseconds(*settings().fabric_patience_ms) : usual_patience;
  return Clock::now() - transfer.begun >= patience;
}

}  // namespace gapless::transfer::rdma

extern "C" void gapless_fabric_counts(std::uint64_t* counts) {
  using namespace gapless::transfer::rdma;
  std::fill_n(counts, static_cast<std::size_t>(Counted::count), 0);
  if (Transfers* all = service.load()) all->count(counts);
}
