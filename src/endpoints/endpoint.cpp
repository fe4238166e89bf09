// Who is found under which handle, and what an endpoint leaves behind.
#include "endpoints/endpoint.hpp"

#include <algorithm>
#include <unordered_map>

#include "endpoints/inner.hpp"

namespace gapless::mpi::endpoints {

constinit std::array<internal::Slot, std::size_t{1} << internal::table_bits> internal::table{};

namespace {

using internal::first_of, internal::Slot, internal::table;
constexpr std::size_t table_size = table.size();
constexpr std::size_t most_probes = 64;

std::mutex mutex;
std::atomic<int> count{0};

std::unordered_map<Endpoint*, std::shared_ptr<Endpoint>>& owners() {
  static auto& all = *new std::unordered_map<Endpoint*, std::shared_ptr<Endpoint>>;
  return all;
}

std::vector<std::shared_ptr<Endpoint>>& lingering() {
  static auto& all = *new std::vector<std::shared_ptr<Endpoint>>;
  return all;
}

}  // namespace

Endpoint& freed_endpoint = *new Endpoint;

Endpoint* internal::find_past_first(std::uintptr_t key) noexcept {
  for (std::size_t i = 0, at = first_of(key); i < most_probes; ++i, at = (at + 1) % table_size) {
    const std::uintptr_t here = table[at].key.load(std::memory_order_acquire);
    if (here == key) return table[at].under(key);
    if (here == 0) return nullptr;
  }
  return nullptr;
}

Endpoint* find(MPI_Comm handle) noexcept {
  Endpoint* const found = find_even_freed(handle);
  return found == &freed_endpoint ? nullptr : found;
}

void reuse(MPI_Comm handle) noexcept {
  const std::uintptr_t key = number_of(handle);
  for (std::size_t i = 0, at = first_of(key); i < most_probes; ++i, at = (at + 1) % table_size) {
    const std::uintptr_t here = table[at].key.load(std::memory_order_acquire);
    if (here == 0) return;
    if (here != key) continue;
    Endpoint* expected = &freed_endpoint;
    table[at].endpoint.compare_exchange_strong(expected, nullptr, std::memory_order_release);
    return;
  }
}

bool enter(const std::shared_ptr<Endpoint>& endpoint) {
  const std::lock_guard lock(mutex);
  const std::uintptr_t key = number_of(endpoint->handle);
  Slot* place = nullptr;
  for (std::size_t i = 0, at = first_of(key); i < most_probes; ++i, at = (at + 1) % table_size) {
    const std::uintptr_t here = table[at].key.load(std::memory_order_relaxed);
    if (here == key) {
      place = &table[at];
      break;
    }
    Endpoint* const there = table[at].endpoint.load(std::memory_order_relaxed);
    if (place == nullptr && (there == nullptr || there == &freed_endpoint)) place = &table[at];
    if (here == 0) break;
  }
  if (place == nullptr) return false;
  owners().emplace(endpoint.get(), endpoint);
  place->key.store(key, std::memory_order_release);
  place->endpoint.store(endpoint.get(), std::memory_order_release);
  count.fetch_add(1);
  return true;
}

void leave(Endpoint& endpoint) noexcept {
  {
    const std::lock_guard one(endpoint.lock);
    transfer::record(std::exchange(endpoint.sent, {}));
  }
  std::shared_ptr<Endpoint> last;
  const std::lock_guard lock(mutex);
  const std::uintptr_t key = number_of(endpoint.handle);
  for (std::size_t i = 0, at = first_of(key); i < most_probes; ++i, at = (at + 1) % table_size) {
    if (table[at].key.load(std::memory_order_relaxed) != key) continue;
    Endpoint* expected = &endpoint;
    table[at].endpoint.compare_exchange_strong(expected, &freed_endpoint, std::memory_order_release);
    break;
  }
  const auto owner = owners().find(&endpoint);
  if (owner == owners().end()) return;
  last = std::move(owner->second);
  owners().erase(owner);
  count.fetch_sub(1);
}

std::shared_ptr<Endpoint> share(Endpoint& endpoint) noexcept { return endpoint.weak_from_this().lock(); }

void add_all_endpoints(std::vector<std::shared_ptr<Endpoint>>& all) {
  const std::lock_guard lock(mutex);
  for (const auto& owner : owners()) all.push_back(owner.second);
  all.insert(all.end(), lingering().begin(), lingering().end());
}

void linger(const std::shared_ptr<Endpoint>& endpoint) {
  const std::lock_guard lock(mutex);
  lingering().push_back(endpoint);
}

void end_lingering(const Endpoint& endpoint) noexcept {
  const std::lock_guard lock(mutex);
  std::erase_if(lingering(), [&](const auto& other) { return other.get() == &endpoint; });
}

void Endpoint::end_if_done() {
  const std::unique_lock others(schedules_mutex, std::try_to_lock);
  if (!others || is_needed()) return;
  close();
  end_lingering(*this);
}

int endpoint_count() noexcept { return count.load(std::memory_order_relaxed); }

Endpoint::~Endpoint() {
  transfer::record(sent);
  while (Message* message = matching.any()) {
    matching.take_out(*message);
    pool.give(*message);
  }
  for (IncomingRing& each : incoming) {
    while (each.arrived.is_linked()) {
      auto& message = static_cast<Message&>(*each.arrived.next);
      message.remove();
      pool.give(message);
    }
  }
}

Communicator::~Communicator() {
  for (MPI_Comm& lane : lanes) {
    if (lane != MPI_COMM_NULL) inner.Comm_free(&lane);
  }
  if (processes != MPI_COMM_NULL && processes != base) inner.Comm_free(&processes);
  if (base != MPI_COMM_NULL) inner.Comm_free(&base);
}

}  // namespace gapless::mpi::endpoints
