// Which way all processes go, with times that are injected.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/corrections/agreed_way.hpp"

namespace gapless::tests {
namespace {

using model::AgreedWay;
using Way = AgreedWay::Way;
using Wish = AgreedWay::Wish;

constexpr std::size_t processes = 3;

/// Processes whose calls take that long: by process, by way.
struct Job {
  std::array<AgreedWay, processes> all{};
  std::array<std::array<float, 2>, processes> ns;
  std::array<Wish, processes> wishes{Wish::sooner, Wish::library, Wish::library};
  int votes = 0;

  float most(Way way) const {
    float longest = 0;
    for (const AgreedWay& each : all) longest = std::max(longest, each.least_ns(way));
    return longest;
  }
  Way call() {
    bool is_due = false;
    for (AgreedWay& each : all) is_due = each.is_vote_due();
    if (is_due) {
      ++votes;
      const float library_ns = most(Way::library), other_ns = most(Way::other);
      for (AgreedWay& each : all) each.decide(*std::ranges::max_element(wishes), library_ns, other_ns);
    }
    for (std::size_t i = 0; i < processes; ++i) {
      EXPECT_EQ(all[0].way(), all[i].way());
      if (all[i].is_timed()) all[i].note(ns[i][static_cast<std::size_t>(all[i].way())]);
    }
    return all[0].way();
  }
  /// How many of so many calls go the other way.
  int others(int calls) {
    int count = 0;
    for (int i = 0; i < calls; ++i) count += call() == Way::other ? 1 : 0;
    return count;
  }
};

constexpr std::array<float, 2> other_is_sooner{100, 50}, library_is_sooner{50, 100}, near{95, 100};

TEST(AgreedWay, BothAreTimedAndThenTheSoonerOneIsGone) {
  Job job{.ns = {other_is_sooner, other_is_sooner, other_is_sooner}};
  std::vector<Way> ways;
  for (int i = 1; i < 9; ++i) ways.push_back(job.call());
  constexpr Way other = Way::other, library = Way::library;
  EXPECT_EQ((std::vector<Way>{other, other, other, library, library, library, library, other}), ways);
  EXPECT_EQ(1000, job.others(1000));
}

TEST(AgreedWay, WhatWasPredictedWrongIsLeft) {
  Job job{.ns = {library_is_sooner, library_is_sooner, library_is_sooner}};
  EXPECT_EQ(3, job.others(1000));
}

TEST(AgreedWay, TheProcessThatTakesLongestDecides) {
  Job job{.ns = {other_is_sooner, std::array<float, 2>{10, 101}, other_is_sooner}};
  job.others(8);
  // 100 by the library's way and 101 by the other.
  EXPECT_EQ(Way::library, job.call());
}

TEST(AgreedWay, VotesAreRare) {
  Job job{.ns = {other_is_sooner, other_is_sooner, other_is_sooner}};
  job.others(1 << 16);
  EXPECT_LE(job.votes, 2 * 16 + 1);
}

/// A program whose calls take GPU memory at odd calls, and host memory at even ones, or the reverse.
TEST(AgreedWay, BothKindsOfMemoryVoteWhereCallsAlternate) {
  for (const std::uint32_t of_gpu : {0U, 1U}) {
    AgreedWay way;
    int others = 0, votes_of_gpu = 0;
    for (std::uint32_t call = 1; call <= 1 << 10; ++call) {
      const bool is_on_gpu = call % 2 == of_gpu;
      if (way.is_vote_due()) {
        votes_of_gpu += is_on_gpu ? 1 : 0;
        way.decide(is_on_gpu ? Wish::other : Wish::library, AgreedWay::unknown_ns, AgreedWay::unknown_ns);
      }
      others += is_on_gpu && way.way() == Way::other ? 1 : 0;
    }
    EXPECT_LE(8, votes_of_gpu) << of_gpu;
    EXPECT_LE(1 << 5, others) << of_gpu;
  }
}

TEST(AgreedWay, TheSlowerOneIsTriedSeldom) {
  constexpr int calls = 1 << 14;
  Job job{.ns = {near, near, near}};
  const int others = job.others(calls);
  EXPECT_GT(others, 3);
  EXPECT_LE(others, calls / 8 + 16);
}

TEST(AgreedWay, AWayThatBecomesSoonerIsGone) {
  Job job{.ns = {near, near, near}};
  job.others(1000);
  job.ns = {std::array<float, 2>{95, 40}, std::array<float, 2>{95, 40}, std::array<float, 2>{95, 40}};
  job.others(1300);
  EXPECT_EQ(Way::other, job.call());
}

TEST(AgreedWay, OneDisturbedCallDecidesNothing) {
  Job job{.ns = {other_is_sooner, other_is_sooner, other_is_sooner}};
  job.others(30);
  job.ns[1] = {100, 1000};
  job.call();
  job.call();
  job.ns[1] = other_is_sooner;
  EXPECT_EQ(20, job.others(20));
}

TEST(AgreedWay, NobodyGains) {
  Job job{.ns = {other_is_sooner, other_is_sooner, other_is_sooner}};
  job.wishes = {};
  EXPECT_EQ(0, job.others(100));
  EXPECT_FALSE(job.all[0].is_timed());
  job.wishes[2] = Wish::sooner;
  EXPECT_LT(0, job.others(100));
}

TEST(AgreedWay, InAnyCase) {
  Job job{.ns = {library_is_sooner, library_is_sooner, library_is_sooner}};
  job.wishes[1] = Wish::other;
  EXPECT_EQ(100, job.others(100));
}

}  // namespace
}  // namespace gapless::tests
