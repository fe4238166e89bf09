// The two processes of the RDMA benchmark, and the messages between them: offers and replies go through shared memory,
// so that no MPI library is needed.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "fabric/libfabric/libfabric.hpp"
#include "fabric/verbs/verbs.hpp"
#include "transfer/rdma/channel.hpp"
#include "transfer/rdma/rendezvous/corrected_receives.hpp"
#include "transfer/rdma/scheme.hpp"

namespace gapless::bench {

using namespace transfer::rdma;
using layout::Offset;

constexpr std::size_t matrix_rows = 128, matrix_columns = 4096, entry_bytes = 4, most_under_way = 16;
constexpr std::size_t matrix_bytes = matrix_rows * matrix_columns * entry_bytes;

using Clock = std::chrono::steady_clock;

inline double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

/// For one message after the other: number n uses place n % most_under_way.
struct Mailbox {
  std::atomic<std::uint32_t> offered, replied;  ///< numbers
  Offer offer;
  Reply reply;
};

struct Totals {
  std::uint64_t posts, lists, notifications, copied, registrations;

  Totals& operator+=(const Totals& more) {
    posts += more.posts;
    lists += more.lists;
    notifications += more.notifications;
    copied += more.copied;
    registrations += more.registrations;
    return *this;
  }
};

/// What `gapless calibrate` measures of a fabric.
struct Costs {
  double operation_ns, byte_ns, notification_ns, copied_byte_ns, overlap;
};

struct Shared {
  Costs costs;
  std::atomic<std::uint32_t> arrivals[2];
  std::size_t address_bytes[2];
  std::byte addresses[2][512];
  Mailbox mailboxes[2][most_under_way];  ///< by sender
  Totals totals[2];                      ///< by process, of the present row
};

[[noreturn]] inline void give_up(const std::string& what) {
  std::fprintf(stderr, "rdma: %s\n", what.c_str());
  std::_Exit(1);
}

inline std::unique_ptr<fabric::Endpoint> open(const std::string& fabric) {
  std::string why;
  auto endpoint = fabric == "verbs" ? fabric::open_verbs("", why) : fabric::open_libfabric(fabric, why);
  if (endpoint == nullptr) give_up(why);
  return endpoint;
}

/// One of the two processes.
class Process {
 public:
  Process(const std::string& fabric, const Options& options, Shared& shared, int rank)
      : endpoint_(open(fabric)), shared_(shared), rank_(rank) {
    peer_ = endpoint_->open_peer();
    const auto address = endpoint_->local_address(peer_);
    if (address.empty() || address.size() > sizeof shared_.addresses[rank]) give_up("no address");
    shared_.address_bytes[rank] = address.size();
    std::memcpy(shared_.addresses[rank], address.data(), address.size());
    meet();
    const std::span theirs(shared_.addresses[1 - rank], shared_.address_bytes[1 - rank]);
    if (endpoint_->connect(peer_, theirs) != fabric::Status::ok) give_up("no connection");
    meet();
    channel_ = std::make_unique<Channel>(*endpoint_, options);
    if (!channel_->ok()) give_up("the fabric takes no memory");
    meet();
  }

  void meet() {
    const std::uint32_t round = shared_.arrivals[rank_].fetch_add(1) + 1;
    while (shared_.arrivals[1 - rank_].load() < round) wait();
  }

  /// Messages from one rank to the other: the memory of each, and what is to be done before it leaves and after it has
  /// arrived.
  struct Job {
    int sender;
    std::uint32_t count;
    unsigned allowed;
    bool is_corrected;
    std::function<Memory(std::uint32_t)> memory;
    std::function<void(std::uint32_t)> before = [](std::uint32_t) {};
    std::function<void(std::uint32_t)> after = [](std::uint32_t) {};
  };

  /// Returns the scheme of the last.
  Scheme move(const Job& job) {
    Scheme scheme = Scheme::pipelined;
    std::uint32_t begun = 0, ended = 0;
    std::deque<UnderWay> all;
    while (ended < job.count) {
      if (begun < job.count && all.size() < most_under_way && begin(job, begun, all)) ++begun;
      wait();
      for (UnderWay& one : all) proceed(job.sender, one);
      for (; !all.empty() && all.front().message->result() == Result::ok; all.pop_front()) {
        scheme = all.front().message->scheme();
        note(all.front());
        channel_->end(all.front().message);
        if (job.sender != rank_) job.after(ended);
        ++ended;
      }
    }
    return scheme;
  }

  Scheme move(int sender, std::uint32_t count, const Memory& memory, unsigned allowed) {
    return move({sender, count, allowed, allowed == ~0u, [&](std::uint32_t) { return memory; }});
  }

  /// What both processes have done since the last call.
  Totals totals() {
    const Counts& counts = channel_->counts();
    const Totals now{counts.posts, counts.lists, counts.notifications, counts.copied_bytes,
                     channel_->registrations().registrations()};
    shared_.totals[rank_] = {now.posts - before_.posts, now.lists - before_.lists,
                             now.notifications - before_.notifications, now.copied - before_.copied + own_copies_,
                             now.registrations - before_.registrations};
    own_copies_ = 0;
    before_ = now;
    meet();
    const Totals &a = shared_.totals[0], &b = shared_.totals[1];
    const Totals sum{a.posts + b.posts, a.lists + b.lists, a.notifications + b.notifications, a.copied + b.copied,
                     a.registrations + b.registrations};
    meet();
    return sum;
  }

  std::uint64_t segment_bytes(const Memory& memory) const {
    const Options& options = channel_->options();
    return segment_bytes_for(memory.blocks.bytes, options.segment_bytes, options.profile);
  }

  /// Is a message with such memory at both sides predicted to be sooner packed? All ways have the same handshake here.
  bool chooses_packed(const Memory& memory) const {
    const model::FabricProfile& profile = channel_->options().profile;
    const Ends ends{memory.blocks, memory.blocks, channel_->limits(), segment_bytes(memory)};
    return model::fabric_packed_ns(profile, message_of(ends)) < of(choose(ends, profile)).predict_ns(ends, profile);
  }

  /// What the benchmark has packed and unpacked itself, for the next totals().
  void add_copies(std::uint64_t bytes) { own_copies_ = bytes; }

  int rank() const { return rank_; }

 private:
  struct UnderWay {
    Message* message;
    std::uint32_t number;
    Memory memory;
    bool is_started;
    std::optional<CorrectedReceives::Turn> turn;
    Clock::time_point begun = Clock::now();
  };

  void wait() {
    if (channel_ != nullptr) channel_->progress();
    sched_yield();
  }

  bool begin(const Job& job, std::uint32_t index, std::deque<UnderWay>& all) {
    const std::uint32_t number = numbers_[job.sender] + 1;
    Mailbox& box = shared_.mailboxes[job.sender][number % most_under_way];
    const Memory memory = job.memory(index);
    Message* message = nullptr;
    if (job.sender == rank_) {
      if (packed_ahead_ != number) job.before(index);
      packed_ahead_ = number;
      message = channel_->send(peer_, memory);
      if (message == nullptr) return false;
      box.offer = message->offer();
      box.offered.store(number);
    } else {
      if (box.offered.load() != number) return false;
      if (job.is_corrected && !turn_) turn_ = next_turn(memory, box.offer, job.allowed);
      message =
          channel_->receive(peer_, memory, box.offer, job.allowed, turn_ ? std::optional(turn_->scheme) : std::nullopt);
      if (message == nullptr) return false;
      box.reply = message->reply();
      box.replied.store(number);
    }
    numbers_[job.sender] = number;
    all.push_back({message, number, memory, job.sender != rank_, std::exchange(turn_, std::nullopt)});
    return true;
  }

  CorrectedReceives::Turn next_turn(const Memory& memory, const Offer& offer, unsigned allowed) {
    const Options& options = channel_->options();
    const Ends ends{offer.blocks, memory.blocks, channel_->limits(), segment_bytes(memory)};
    return corrected_.next(ends, options.profile, memory.layout.get(), 1 - rank_, allowed);
  }

  /// As receives by MPI are timed.
  void note(const UnderWay& one) {
    const auto now = Clock::now();
    if (one.turn && one.turn->scheme == one.message->scheme())
      corrected_.note(*one.turn, seconds(now - std::max(one.begun, finished_)) * 1e9);
    finished_ = now;
  }

  void proceed(int sender, UnderWay& one) {
    Mailbox& box = shared_.mailboxes[sender][one.number % most_under_way];
    if (!one.is_started && box.replied.load() == one.number) {
      one.message->start(box.reply, one.memory.layout, one.memory.outer);
      one.is_started = true;
    }
    const Result result = one.message->advance();
    if (result != Result::ok && result != Result::under_way) give_up("a message failed");
  }

  std::unique_ptr<fabric::Endpoint> endpoint_;
  std::unique_ptr<Channel> channel_;
  Shared& shared_;
  int rank_, peer_ = -1;
  std::uint32_t numbers_[2] = {0, 0};  ///< of the last message, by sender
  CorrectedReceives corrected_{true};
  std::optional<CorrectedReceives::Turn> turn_;  ///< of the next message
  Clock::time_point finished_{};
  std::uint32_t packed_ahead_ = 0;  ///< the last message of this process that is ready to leave
  Totals before_{};
  std::uint64_t own_copies_ = 0;
};

inline unsigned only(Scheme scheme) { return 1u << static_cast<unsigned>(scheme); }

inline double seconds_since(Clock::time_point start) { return seconds(Clock::now() - start); }

/// Runs `body(shared, rank)` in two processes of its own, for libfabric does not survive a fork.
template <class Body>
bool in_two_processes(Costs& costs, const Body& body) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) give_up("no shared memory");
  auto& shared = *new (memory) Shared{};
  pid_t children[2];
  for (int rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    if (children[rank] < 0) give_up("no process");
    if (children[rank] > 0) continue;
    alarm(600);
    body(shared, rank);
    std::_Exit(0);
  }
  bool is_right = true;
  for (const pid_t child : children) {
    int status = 0;
    is_right = waitpid(child, &status, 0) == child && status == 0 && is_right;
  }
  costs = shared.costs;
  munmap(memory, sizeof(Shared));
  return is_right;
}

}  // namespace gapless::bench
