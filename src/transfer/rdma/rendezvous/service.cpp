#include "transfer/rdma/rendezvous/service.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/settings.hpp"
#include "fabric/libfabric/libfabric.hpp"
#include "layout/algebra/canonical.hpp"
#include "layout/algebra/facts.hpp"
#include "transfer/blocking.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::transfer::rdma {

using Clock = std::chrono::steady_clock;

struct Transfer {
  int rank = -1;
  Role role = Role::sender;
  Memory memory;
  Offer offer;
  Message* message = nullptr;    ///< a receiver has none before that can be had
  std::size_t letter_bytes = 0;  ///< to be mailed
  bool is_mailed = false;
  bool is_declined = false;
  bool is_detached = false;  ///< ends by itself
  bool is_over = false;
  transfer::Result result = transfer::Result::under_way;
  std::unique_ptr<std::byte[]> copy;
  Clock::time_point begun = Clock::now();
};

namespace {

constexpr std::chrono::seconds stall_limit{60};
constexpr std::chrono::milliseconds usual_patience{50}, idle_look{10};
constexpr std::chrono::microseconds busy_look{50};

transfer::Result result_of(Result result) noexcept {
  return result == Result::ok ? transfer::Result::ok : transfer::Result::peer_failed;
}

transfer::Scheme counted_as(Scheme scheme) noexcept {
  return static_cast<transfer::Scheme>(static_cast<std::size_t>(transfer::Scheme::fabric_pipelined) +
                                       static_cast<std::size_t>(scheme));
}
static_assert(static_cast<std::size_t>(transfer::Scheme::multi_write) -
                  static_cast<std::size_t>(transfer::Scheme::fabric_pipelined) + 1 ==
              scheme_count);

/// The schemes that GAPLESS_SCHEME leaves to choose from.
unsigned allowed_schemes() noexcept {
  for (unsigned i = 0; i < scheme_count; ++i) {
    if (is_forced(counted_as(static_cast<Scheme>(i)))) return 1u << i;
  }
  return ~0u;
}

struct Peer {
  int index = -1;  ///< the endpoint's
  bool is_connected = false;
  KnownLayouts layouts;
};

class Service {
 public:
  Service(std::unique_ptr<fabric::Endpoint> endpoint, int rank, int size)
      : endpoint_(std::move(endpoint)), peers_(static_cast<std::size_t>(size)), rank_(rank) {
    Options options;
    options.stall_limit = stall_limit;
    channel_ = std::make_unique<Channel>(*endpoint_, options);
    active_.reserve(512);
    const int first = endpoint_->open_peer();
    address_ = endpoint_->local_address(first);
  }

  bool is_usable() const noexcept {
    return channel_->ok() && !address_.empty() && address_.size() <= most_address_bytes;
  }
  int rank() const noexcept { return rank_; }
  std::span<const std::byte> address() const noexcept { return address_; }

  Transfer* send(int rank, const Memory& memory) noexcept;
  Transfer* receive(int rank, std::span<const std::byte> address, const Offer& offer, const Memory* memory) noexcept;
  void withdraw(Transfer* transfer) noexcept;
  transfer::Result poll(Transfer& transfer) noexcept;
  transfer::Result wait(Transfer& transfer) noexcept;
  transfer::Result complete_alone(Transfer& transfer) noexcept;
  void end(Transfer* transfer) noexcept;
  void drain(bool (*has_ended)(int rank)) noexcept;
  void stop() noexcept;
  void count(std::uint64_t* counts) noexcept;

 private:
  Peer* peer_of(int rank) noexcept;
  bool connect(Peer& peer, std::span<const std::byte> address) noexcept;
  bool enlist(Transfer* transfer) noexcept;
  void accept(Transfer& transfer) noexcept;
  void open_letter(Transfer& transfer) noexcept;
  bool copy_out(Transfer& transfer) noexcept;
  bool step(Transfer& transfer) noexcept;
  void progress() noexcept;
  void work() noexcept;

  std::mutex mutex_;  ///< guards all below, and the endpoint
  std::condition_variable begun_;
  std::unique_ptr<fabric::Endpoint> endpoint_;
  std::unique_ptr<Channel> channel_;
  std::vector<Peer> peers_;
  std::vector<std::byte> address_;
  LayoutNumbers numbers_;
  std::vector<Transfer*> active_;
  std::uint64_t copied_out_ = 0;
  int rank_;
  bool is_stopping_ = false;
  std::thread thread_;
};

Peer* Service::peer_of(int rank) noexcept {
  if (rank < 0 || static_cast<std::size_t>(rank) >= peers_.size()) return nullptr;
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.index < 0) peer.index = endpoint_->open_peer();
  return peer.index < 0 ? nullptr : &peer;
}

bool Service::connect(Peer& peer, std::span<const std::byte> address) noexcept {
  if (!peer.is_connected) peer.is_connected = endpoint_->connect(peer.index, address) == fabric::Status::ok;
  return peer.is_connected;
}

bool Service::enlist(Transfer* transfer) noexcept try {
  active_.push_back(transfer);
  if (!thread_.joinable()) {
    // Signals are the program's threads' business.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::exception&) {
      active_.pop_back();
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  if (!thread_.joinable()) return false;
  begun_.notify_one();
  return true;
} catch (const std::exception&) {
  return false;
}

Transfer* Service::send(int rank, const Memory& memory) noexcept {
  std::unique_ptr<Transfer> transfer(new (std::nothrow) Transfer);
  const std::lock_guard lock(mutex_);
  Peer* const peer = peer_of(rank);
  if (transfer == nullptr || peer == nullptr || is_stopping_) return nullptr;
  transfer->rank = rank;
  transfer->memory = memory;
  transfer->message = channel_->send(peer->index, memory);
  if (transfer->message == nullptr) return nullptr;
  transfer->offer = transfer->message->offer();
  if (enlist(transfer.get())) return transfer.release();
  transfer->message->decline();
  channel_->end(transfer->message);
  return nullptr;
}

Transfer* Service::receive(int rank, std::span<const std::byte> address, const Offer& offer,
                           const Memory* memory) noexcept {
  std::unique_ptr<Transfer> transfer(new (std::nothrow) Transfer);
  const std::lock_guard lock(mutex_);
  Peer* const peer = peer_of(rank);
  if (transfer == nullptr || peer == nullptr || is_stopping_ || !connect(*peer, address)) return nullptr;
  transfer->rank = rank;
  transfer->role = Role::receiver;
  transfer->offer = offer;
  transfer->is_declined = memory == nullptr;
  if (memory != nullptr) transfer->memory = *memory;
  return enlist(transfer.get()) ? transfer.release() : nullptr;
}

/// The receiver's choice, and its letter. Nothing happens where that cannot be had now.
void Service::accept(Transfer& transfer) noexcept {
  Peer& peer = *peer_of(transfer.rank);
  if (transfer.is_declined) {
    transfer.message = channel_->decline(peer.index, transfer.offer);
  } else {
    unsigned allowed = allowed_schemes();
    if (!fits_in_letter(transfer.memory.layout, address_.size(), numbers_, peer.layouts))
      allowed &= ~(1u << static_cast<unsigned>(Scheme::multi_write));
    transfer.message = channel_->receive(peer.index, transfer.memory, transfer.offer, allowed);
    constexpr unsigned always = 1u << static_cast<unsigned>(Scheme::pipelined);
    if (transfer.message == nullptr && (allowed & always) == 0)
      transfer.message = channel_->receive(peer.index, transfer.memory, transfer.offer, always);
  }
  if (transfer.message == nullptr) return;
  const std::span<std::byte, mailbox_bytes> mailbox(channel_->mailbox(*transfer.message), mailbox_bytes);
  transfer.letter_bytes =
      write_letter(mailbox, transfer.message->reply(), transfer.is_declined ? nullptr : &transfer.memory, address_,
                   numbers_, peer.layouts);
  if (transfer.letter_bytes == 0) transfer.message->fail(Result::failed);
}

void Service::open_letter(Transfer& transfer) noexcept {
  Peer& peer = *peer_of(transfer.rank);
  const std::span<const std::byte, mailbox_bytes> mailbox(channel_->mailbox(*transfer.message), mailbox_bytes);
  Letter letter;
  if (!read_letter(mailbox, letter, peer.layouts) || !connect(peer, letter.address)) {
    transfer.message->fail(Result::failed);
  } else if (letter.is_declined) {
    transfer.is_declined = true;
    transfer.message->decline();
  } else {
    transfer.message->start(letter.reply, letter.layout, letter.outer);
  }
}

/// Goes on. True once it is over.
bool Service::step(Transfer& transfer) noexcept {
  if (transfer.role == Role::receiver) {
    if (transfer.message == nullptr) accept(transfer);
    if (transfer.message == nullptr) return false;
    if (!transfer.is_mailed && transfer.letter_bytes != 0)
      transfer.is_mailed = channel_->mail(*transfer.message, transfer.letter_bytes);
  } else if (transfer.message->has_mail()) {
    open_letter(transfer);
  }
  const Result result = transfer.message->advance();
  if (result == Result::under_way) return false;
  const bool is_right = result == Result::ok;
  if (is_right && !transfer.message->is_quiet()) return false;
  if (is_right && transfer.role == Role::receiver && !transfer.is_mailed) return false;
  const Scheme scheme = transfer.message->scheme();
  if (is_right && !transfer.is_declined) {
    record(counted_as(scheme), static_cast<std::size_t>(transfer.offer.blocks.bytes));
    if (transfer.role == Role::receiver && scheme == Scheme::multi_write) {
      try {  // the sender has read that letter
        peer_of(transfer.rank)->layouts.told.insert(numbers_.number_of(transfer.memory.layout).number);
      } catch (const std::bad_alloc&) {
      }
    }
  }
  channel_->end(transfer.message);
  transfer.message = nullptr;
  transfer.result = result_of(result);
  transfer.is_over = true;
  return true;
}

void Service::progress() noexcept {
  channel_->progress();
  for (std::size_t i = 0; i < active_.size();) {
    Transfer* const transfer = active_[i];
    if (!step(*transfer)) {
      ++i;
      continue;
    }
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    if (transfer->is_detached) delete transfer;
  }
}

void Service::work() noexcept {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    // A peer's last acknowledgement may need a look of ours when nothing of ours is under way any more.
    // By the clock of the day: to wait by the steady one takes glibc 2.30.
    if (active_.empty()) begun_.wait_until(lock, std::chrono::system_clock::now() + idle_look);
    progress();
    lock.unlock();
    std::this_thread::sleep_for(busy_look);
    lock.lock();
  }
}

transfer::Result Service::poll(Transfer& transfer) noexcept {
  const std::lock_guard lock(mutex_);
  if (!transfer.is_over) progress();
  return transfer.is_over ? transfer.result : transfer::Result::under_way;
}

transfer::Result Service::wait(Transfer& transfer) noexcept {
  for (;;) {
    const transfer::Result result = poll(transfer);
    if (result != transfer::Result::under_way) return result;
    if (transfer.role == Role::sender && is_patience_over(transfer)) return complete_alone(transfer);
    ::sched_yield();
  }
}

/// Precondition: nobody has taken it.
bool Service::copy_out(Transfer& transfer) noexcept try {
  const layout::Offset bytes = transfer.memory.size();
  std::unique_ptr<std::byte[]> copy(new (std::nothrow) std::byte[static_cast<std::size_t>(bytes)]);
  if (copy == nullptr) return false;
  const layout::LayoutPointer contiguous = layout::block(0, bytes);
  const Memory memory = memory_of(contiguous, layout::facts_of(*contiguous), {1, bytes}, copy.get());
  if (run_on_host({transfer.memory.layout.get(), transfer.memory.outer, 0, bytes, pack::Direction::pack,
                   transfer.memory.origin, copy.get()}) != transfer::Result::ok)
    return false;
  transfer.message->move_to(memory);
  transfer.memory = memory;
  transfer.copy = std::move(copy);
  ++copied_out_;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

transfer::Result Service::complete_alone(Transfer& transfer) noexcept {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      progress();
      if (transfer.is_over) return transfer.result;
      if (transfer.copy != nullptr) return transfer::Result::ok;
      // What its receiver has taken comes to its end without an MPI call of either.
      const bool is_taken = transfer.message->is_started() || transfer.message->has_mail();
      if (!is_taken && copy_out(transfer)) return transfer::Result::ok;
    }
    ::sched_yield();
  }
}

void Service::withdraw(Transfer* transfer) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(active_, transfer);
  if (transfer->message != nullptr) {
    transfer->message->decline();
    channel_->end(transfer->message);
  }
  delete transfer;
}

void Service::end(Transfer* transfer) noexcept {
  if (transfer->role == Role::sender) {
    static_cast<void>(complete_alone(*transfer));
  } else if (!transfer->is_declined) {
    static_cast<void>(wait(*transfer));
  }
  const std::lock_guard lock(mutex_);
  if (transfer->is_over) {
    delete transfer;
  } else {
    transfer->is_detached = true;
  }
}

void Service::drain(bool (*has_ended)(int rank)) noexcept {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      progress();
      const bool may_go_on = std::ranges::any_of(active_, [&](const Transfer* transfer) {
        const bool is_taken = transfer->role == Role::receiver || transfer->message->is_started();
        return is_taken || !has_ended(transfer->rank);
      });
      if (!may_go_on) return;
    }
    ::sched_yield();
  }
}

void Service::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    begun_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Service::count(std::uint64_t* counts) noexcept {
  const std::lock_guard lock(mutex_);
  const Counts& all = channel_->counts();
  const auto set = [counts](Counted which, std::uint64_t value) { counts[static_cast<std::size_t>(which)] = value; };
  set(Counted::posts, all.posts);
  set(Counted::lists, all.lists);
  set(Counted::posted_bytes, all.posted_bytes);
  set(Counted::notifications, all.notifications);
  set(Counted::copied_bytes, all.copied_bytes);
  set(Counted::registrations, channel_->registrations().registrations());
  set(Counted::copied_out, copied_out_);
  set(Counted::abandoned, all.abandoned_segments);
}

// Never destroyed: its thread is ended by stop(), or when the process exits.
std::atomic<Service*> service{nullptr};

std::uint64_t hash_of(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

bool is_wanted() noexcept {
  return settings().fabric_neighbours && !settings().fabric.empty() && settings().fabric != "off";
}

void start(int rank, int size) noexcept try {
  if (!is_wanted() || service.load() != nullptr || size < 2) return;
  std::string why;
  auto endpoint = fabric::open_libfabric(std::string(settings().fabric), why);
  if (endpoint != nullptr) {
    auto made = std::make_unique<Service>(std::move(endpoint), rank, size);
    if (made->is_usable()) {
      service.store(made.release());
      // libfabric ends after this.
      std::atexit([] { service.load()->stop(); });
      return;
    }
    why = "no memory can be registered";
  }
  warn_about_fabric(why);
} catch (const std::exception&) {
}

void drain(bool (*has_ended)(int rank)) noexcept {
  if (Service* all = service.load()) all->drain(has_ended);
}

void stop() noexcept {
  if (Service* all = service.load()) all->stop();
}

std::uint64_t fabric_kind() noexcept { return service.load() != nullptr ? hash_of(settings().fabric) : 0; }

int own_rank() noexcept { return service.load()->rank(); }

std::span<const std::byte> own_address() noexcept { return service.load()->address(); }

void EndTransfer::operator()(Transfer* transfer) const noexcept { service.load()->end(transfer); }

OwnedTransfer begin_send(int rank, const Memory& memory) noexcept {
  Service* const all = service.load();
  return OwnedTransfer(all != nullptr ? all->send(rank, memory) : nullptr);
}

const Offer& offer_of(const Transfer& transfer) noexcept { return transfer.offer; }

void withdraw(OwnedTransfer& transfer) noexcept {
  if (transfer != nullptr) service.load()->withdraw(transfer.release());
}

OwnedTransfer begin_receive(int rank, std::span<const std::byte> address, const Offer& offer,
                            const Memory& memory) noexcept {
  Service* const all = service.load();
  return OwnedTransfer(all != nullptr ? all->receive(rank, address, offer, &memory) : nullptr);
}

void decline(int rank, std::span<const std::byte> address, const Offer& offer) noexcept {
  Service* const all = service.load();
  // It ends by itself.
  const OwnedTransfer transfer(all != nullptr ? all->receive(rank, address, offer, nullptr) : nullptr);
}

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
  if (Service* all = service.load()) all->count(counts);
}
