// The schemes of Wu et al., 2003 between two processes over one fabric: columns of a 128 x 4096 array of ints.
//
//   rdma FABRIC [REPETITIONS [MESSAGES]]
//
// FABRIC is verbs, or a provider of libfabric. Prints a JSON object a row: latency (half a ping-pong), bandwidth (so
// many messages one after the other), and the ablations of Wu et al., 2003, 8.4 to 8.6, each with what was posted,
// copied and registered for one message, by both sides together. Beside the schemes: contiguous memory of as many
// bytes, and packed, which is that with a pack before and an unpack after it, as users do it. Offers and replies go
// through shared memory, so that no MPI library is needed. Every row's bytes are verified.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "fabric/libfabric/libfabric.hpp"
#include "fabric/verbs/verbs.hpp"
#include "layout/algebra/canonical.hpp"
#include "pack/host/engine.hpp"
#include "transfer/rdma/channel.hpp"
#include "transfer/rdma/rendezvous/corrected_receives.hpp"
#include "transfer/rdma/scheme.hpp"

namespace gapless::bench {
namespace {

using namespace transfer::rdma;
using layout::Offset;

constexpr std::size_t matrix_rows = 128, matrix_columns = 4096, entry_bytes = 4, most_under_way = 16;
constexpr std::size_t matrix_bytes = matrix_rows * matrix_columns * entry_bytes;

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

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

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "rdma: %s\n", what.c_str());
  std::_Exit(1);
}

std::unique_ptr<fabric::Endpoint> open(const std::string& fabric) {
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

unsigned only(Scheme scheme) { return 1u << static_cast<unsigned>(scheme); }

double seconds_since(Clock::time_point start) { return seconds(Clock::now() - start); }

struct Case {
  const char* variant;
  std::size_t columns;
  unsigned allowed;
  const char* scheme;
};

class Rows {
 public:
  Rows(Process& process, const std::string& fabric, int repetitions, std::uint32_t messages)
      : process_(process), fabric_(fabric), repetitions_(repetitions), messages_(messages), matrix_(matrix_bytes) {}

  /// Both measures of all cases, after a verified message of each. The cases take turns, so that a disturbance of the
  /// machine meets all of them.
  void measure(const std::vector<Case>& cases) {
    std::vector<Contestant> all;
    for (const Case& one : cases) all.push_back(contestant(one));
    for (const Contestant& each : all) verify(each);
    latency(all);
    bandwidth(all);
  }

 private:
  struct Contestant {
    Case one;
    Memory memory;
    bool is_packed;
    std::vector<double> values{};
    Totals totals{};
    Scheme scheme = Scheme::pipelined;
  };

  Contestant contestant(const Case& one) {
    const auto bytes = static_cast<Offset>(one.columns * entry_bytes);
    const auto layout = std::string_view(one.scheme) == "contiguous"
                            ? layout::block(0, bytes * static_cast<Offset>(matrix_rows))
                            : layout::repeat(layout::block(0, bytes), matrix_rows, matrix_columns * entry_bytes);
    const Memory memory = memory_of(layout, layout::facts_of(*layout), {1, 0}, matrix_.data());
    const bool is_chosen_packed = std::string_view(one.scheme) == "chosen" && process_.chooses_packed(memory);
    return {one, memory, std::string_view(one.scheme) == "packed" || is_chosen_packed};
  }

  /// Process::move(), or the same with a pack before and an unpack after each message, in a buffer of its own.
  Scheme move(int sender, std::uint32_t count, const Memory& memory, unsigned allowed) {
    if (!is_packed_) return process_.move(sender, count, memory, allowed);
    const layout::LayoutPointer block = layout::block(0, memory.size());
    const layout::Facts facts = layout::facts_of(*block);
    const auto buffer = [&](std::uint32_t index) { return packed_[index % most_under_way].data(); };
    return process_.move({sender, count, only(Scheme::multi_write), false,
                          [&](std::uint32_t index) {
                            return memory_of(block, facts, {1, 0}, buffer(index));
                          },
                          [&](std::uint32_t index) { repack(memory, pack::Direction::pack, buffer(index)); },
                          [&](std::uint32_t index) { repack(memory, pack::Direction::unpack, buffer(index)); }});
  }

  void repack(const Memory& memory, pack::Direction direction, std::byte* buffer) {
    pack::host::run({memory.layout.get(), memory.outer, 0, memory.size(), direction, memory.origin, buffer});
    packed_bytes_ += memory.blocks.bytes;
  }

  void verify(const Contestant& contestant) {
    const auto& [one, memory, is_packed, values, totals, scheme] = contestant;
    is_packed_ = is_packed;
    const auto fill = static_cast<std::byte>(process_.rank() + 1);
    std::fill(matrix_.begin(), matrix_.end(), fill);
    process_.meet();
    move(0, 1, memory, one.allowed);
    if (process_.rank() == 0) return;
    const bool is_contiguous = memory.layout->is_contiguous();
    const std::size_t row = matrix_columns * entry_bytes, block = one.columns * entry_bytes;
    for (std::size_t i = 0; i < matrix_bytes; ++i) {
      const bool is_named = is_contiguous ? i < block * matrix_rows : i % row < block;
      if (matrix_[i] != (is_named ? std::byte{1} : fill)) give_up("wrong bytes");
    }
  }

  /// `call(contestant)` says the value of `messages` messages. Every contestant calls in turn, the first time
  /// unnoticed, and each round begins with another one, so that none always follows the same.
  template <class Call>
  void take_turns(std::vector<Contestant>& all, const char* measure, int rounds, double messages, Call call) {
    for (Contestant& each : all) each.values.clear(), each.totals = {};
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        Contestant& each = all[(i + static_cast<std::size_t>(round)) % all.size()];
        is_packed_ = each.is_packed;
        static_cast<void>(call(each));  // what the one before left in the caches is nobody's gain or loss
        packed_bytes_ = 0;
        process_.totals();
        const double value = call(each);
        process_.add_copies(packed_bytes_);
        const Totals totals = process_.totals();
        each.values.push_back(value);
        each.totals += totals;
      }
    }
    for (const Contestant& each : all) print(each, measure, rounds * messages);
  }

  /// What is chosen is corrected in use, which takes some messages.
  template <class Call>
  void settle(std::vector<Contestant>& all, Call call, int messages) {
    for (Contestant& each : all) {
      is_packed_ = each.is_packed;
      if (each.one.allowed != ~0u || is_packed_) continue;
      for (int i = 0; i < 640; i += messages) static_cast<void>(call(each));
    }
  }

  void latency(std::vector<Contestant>& all) {
    const auto call = [&](Contestant& each) {
      const auto start = Clock::now();
      each.scheme = move(0, 1, each.memory, each.one.allowed);
      move(1, 1, each.memory, each.one.allowed);
      return seconds_since(start) / 2 * 1e6;
    };
    settle(all, call, 1);
    take_turns(all, "latency", repetitions_, 2, call);
  }

  void bandwidth(std::vector<Contestant>& all) {
    constexpr int rounds = 31;
    const std::uint32_t messages = std::max(1u, messages_ / rounds);
    const auto call = [&](Contestant& each) {
      const auto start = Clock::now();
      each.scheme = move(0, messages, each.memory, each.one.allowed);
      process_.meet();
      return static_cast<double>(each.memory.blocks.bytes) * messages / seconds_since(start) / 1e6;
    };
    settle(all, call, static_cast<int>(messages));
    take_turns(all, "bandwidth", rounds, messages, call);
  }

  void print(const Contestant& contestant, const char* measure, double messages) {
    if (process_.rank() != 0) return;
    const auto& [one, memory, is_packed, values, totals, scheme] = contestant;
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const double value = sorted[sorted.size() / 2];
    std::string rounds;
    for (const double each : values) rounds += (rounds.empty() ? "" : ", ") + std::to_string(each);
    const auto each = [&](std::uint64_t total) { return static_cast<double>(total) / messages; };
    std::printf(
        "{\"fabric\": \"%s\", \"variant\": \"%s\", \"measure\": \"%s\", \"scheme\": \"%s\", \"moved_by\": \"%s\", "
        "\"columns\": %zu, \"bytes\": %llu, \"value\": %.2f, \"posts\": %.2f, \"lists\": %.2f, \"notifications\": "
        "%.2f, "
        "\"copies\": %.2f, \"registrations\": %.2f, "
        "\"segment\": %llu, \"rounds\": [%s]}\n",
        fabric_.c_str(), one.variant, measure, one.scheme, is_packed ? "packed" : name(scheme), one.columns,
        static_cast<unsigned long long>(memory.blocks.bytes), value, each(totals.posts), each(totals.lists),
        each(totals.notifications), each(totals.copied) / static_cast<double>(memory.blocks.bytes),
        each(totals.registrations), static_cast<unsigned long long>(process_.segment_bytes(memory)), rounds.c_str());
    std::fflush(stdout);
  }

  Process& process_;
  const std::string& fabric_;
  int repetitions_;
  std::uint32_t messages_;
  std::vector<std::byte> matrix_;
  /// One for each message under way, as MPI libraries and gapless have them.
  std::vector<std::vector<std::byte>> packed_{most_under_way, std::vector<std::byte>(matrix_bytes / 2)};
  bool is_packed_ = false;
  std::uint64_t packed_bytes_ = 0;  ///< of this row, by this process
};

/// What is varied: Wu et al., 2003, 8.2 and 8.4 to 8.6.
struct Variant {
  const char* name;
  Options options;
  std::vector<std::pair<const char*, unsigned>> schemes;
};

/// Messages of so many blocks of that length in the matrix.
class Calibration {
 public:
  explicit Calibration(Process& process) : process_(process) {}

  /// An operation for each block, and no copies: most costs are differences.
  Costs costs() {
    constexpr std::size_t few = 4, many = 128, bytes = 64 << 10, large = 1 << 20, small = 12 << 10;
    const double plain = message_ns(Scheme::multi_write, few, bytes);
    Costs found{};
    found.operation_ns = std::max((message_ns(Scheme::multi_write, many, bytes) - plain) / (many - few), 1.0);
    found.byte_ns = std::max((message_ns(Scheme::multi_write, few, large) - plain) / (large - bytes), 0.001);
    found.copied_byte_ns = std::max(copy_ns(many, large) / large, 0.001);
    const double told = message_ns(Scheme::multi_write, 1, small), untold = message_ns(Scheme::pipelined, 1, small);
    const double telling = std::max(told - untold + 2 * small * found.copied_byte_ns, 0.0);
    found.notification_ns = std::max(telling, found.operation_ns);
    // Eight segments: what remains of the copies.
    constexpr double segments = 8, hideable = 1 - 1 / segments;
    const double copies = 2 * large * found.copied_byte_ns;
    const double moved = plain - telling + (segments - few) * found.operation_ns + (large - bytes) * found.byte_ns;
    const double left = message_ns(Scheme::pipelined, many, large) - moved;
    found.overlap = std::clamp((copies - left) / (copies * hideable), 0.0, 1.0);
    return found;
  }

 private:
  Memory memory(std::size_t blocks, std::size_t bytes) {
    const auto layout = layout::repeat(layout::block(0, static_cast<Offset>(bytes / blocks)),
                                       static_cast<Offset>(blocks), static_cast<Offset>(matrix_.size() / blocks));
    return memory_of(layout, layout::facts_of(*layout), {1, 0}, matrix_.data());
  }

  template <class Call>
  double median_ns(Call call) {
    std::vector<double> times;
    for (int i = 0; i < 60; ++i) {
      process_.meet();
      const auto start = Clock::now();
      call();
      times.push_back(seconds_since(start) * 1e9);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  /// Half a round trip.
  double message_ns(Scheme scheme, std::size_t blocks, std::size_t bytes) {
    const Memory moved = memory(blocks, bytes);
    return median_ns([&] {
             process_.move(0, 1, moved, only(scheme));
             process_.move(1, 1, moved, only(scheme));
           }) /
           2;
  }

  double copy_ns(std::size_t blocks, std::size_t bytes) {
    const Memory copied = memory(blocks, bytes);
    return median_ns([&] {
      pack::host::run(
          {copied.layout.get(), copied.outer, 0, copied.size(), pack::Direction::pack, copied.origin, packed_.data()});
    });
  }

  Process& process_;
  std::vector<std::byte> matrix_ = std::vector<std::byte>(matrix_bytes);
  std::vector<std::byte> packed_ = std::vector<std::byte>(matrix_bytes / 2);
};

std::vector<Variant> variants(const std::string& fabric, const Costs& costs) {
  std::vector<std::pair<const char*, unsigned>> all;
  for (const Scheme scheme : {Scheme::pipelined, Scheme::gather_write, Scheme::scatter_read, Scheme::multi_write}) {
    all.emplace_back(name(scheme), only(scheme));
  }
  auto with_others = all;
  with_others.emplace_back("chosen", ~0u);
  with_others.emplace_back("packed", only(Scheme::multi_write));
  with_others.emplace_back("contiguous", only(Scheme::multi_write));
  Options kept;
  const model::MeasuredFabric measured{fabric,        model::Pair::same_node, costs.operation_ns,
                                       costs.byte_ns, costs.notification_ns,  costs.copied_byte_ns,
                                       costs.overlap};
  kept.profile = model::fabric_profile(fabric, model::Pair::same_node, {&measured, 1});
  Options whole = kept, single = kept, worst = kept;
  kept.registrations.memory_stays = whole.registrations.memory_stays = single.registrations.memory_stays = true;
  whole.segment_unpack = false;
  single.list_posting = false;
  worst.registrations.regions = 0;
  return {{"usual", kept, with_others},
          {"no segment unpack", whole, {{"gather-write", only(Scheme::gather_write)}}},
          {"single posts", single, {{"multi-write", only(Scheme::multi_write)}}},
          {"new buffers", worst, all}};
}

void run(const std::string& fabric, const Variant& variant, Shared& shared, int rank, int repetitions,
         std::uint32_t messages) {
  Process process(fabric, variant.options, shared, rank);
  Rows rows(process, fabric, repetitions, messages);
  for (std::size_t columns = 1; columns <= 2048; columns *= 2) {
    std::vector<Case> cases;
    for (const auto& [scheme, allowed] : variant.schemes) cases.push_back({variant.name, columns, allowed, scheme});
    rows.measure(cases);
  }
}

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

}  // namespace
}  // namespace gapless::bench

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: rdma FABRIC [REPETITIONS [MESSAGES]]\n");
    return 2;
  }
  const int repetitions = count > 2 ? std::max(1, std::atoi(arguments[2])) : 51;
  const int messages = count > 3 ? std::max(1, std::atoi(arguments[3])) : 100;
  using namespace gapless::bench;
  const std::string fabric = arguments[1];
  Costs costs{};
  const bool is_measured = in_two_processes(costs, [&](Shared& shared, int rank) {
    // As many segments as may be.
    Process process(fabric, variants(fabric, {1, 0.4, 1, 0.1, 1}).front().options, shared, rank);
    const Costs found = Calibration(process).costs();
    if (rank == 0) shared.costs = found;
  });
  if (!is_measured) return 1;
  std::fprintf(stderr,
               "rdma: over %s %.0f ns an operation, %.3f ns a byte, %.0f ns a notification, %.3f ns a byte copied, "
               "%.2f of that overlaps\n",
               fabric.c_str(), costs.operation_ns, costs.byte_ns, costs.notification_ns, costs.copied_byte_ns,
               costs.overlap);
  for (const Variant& variant : variants(fabric, costs)) {
    Costs unused{};
    const bool is_right = in_two_processes(unused, [&](Shared& shared, int rank) {
      run(fabric, variant, shared, rank, repetitions, static_cast<std::uint32_t>(messages));
    });
    if (!is_right) return 1;
  }
}
