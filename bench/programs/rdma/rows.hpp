// Rows of the RDMA benchmark: latency and bandwidth of columns of an array by several ways, which take turns, each with
// what was posted, copied and registered for a message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "layout/algebra/canonical.hpp"
#include "pack/host/engine.hpp"
#include "process.hpp"

namespace gapless::bench {

/// One way to move so many columns.
struct Case {
  const char* variant;
  std::size_t columns;
  unsigned allowed;
  const char* scheme;
};

/// All rows of one variant.
class Rows {
 public:
  Rows(Process& process, const std::string& fabric, int rounds, std::uint32_t messages)
      : process_(process), fabric_(fabric), rounds_(rounds), messages_(messages), matrix_(matrix_bytes) {}

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
  /// unnoticed, and in each round in another order, the same in both processes: who follows the same way finds the
  /// caches as that left them.
  template <class Call>
  void take_turns(std::vector<Contestant>& all, const char* measure, double messages, Call call) {
    for (Contestant& each : all) each.values.clear(), each.totals = {};
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::minstd_rand random;
    for (int round = 0; round < rounds_; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t i : order) {
        Contestant& each = all[i];
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
    for (const Contestant& each : all) print(each, measure, rounds_ * messages);
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
    take_turns(all, "latency", 2, call);
  }

  void bandwidth(std::vector<Contestant>& all) {
    const auto call = [&](Contestant& each) {
      const auto start = Clock::now();
      each.scheme = move(0, messages_, each.memory, each.one.allowed);
      process_.meet();
      return static_cast<double>(each.memory.blocks.bytes) * messages_ / seconds_since(start) / 1e6;
    };
    settle(all, call, static_cast<int>(messages_));
    take_turns(all, "bandwidth", messages_, call);
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
  int rounds_;
  std::uint32_t messages_;  ///< of a round of bandwidth
  std::vector<std::byte> matrix_;
  /// One for each message under way, as MPI libraries and gapless have them.
  std::vector<std::vector<std::byte>> packed_{most_under_way, std::vector<std::byte>(matrix_bytes / 2)};
  bool is_packed_ = false;
  std::uint64_t packed_bytes_ = 0;  ///< of this row, by this process
};

}  // namespace gapless::bench
