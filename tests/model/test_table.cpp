// Interpolation against functions that it must meet exactly, gaps, ends, and what is no table.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "model/model.hpp"

namespace gapless::tests {
namespace {

using model::Shape;
using model::Table;
using Axis = std::vector<double>;
constexpr double gap = std::numeric_limits<double>::quiet_NaN();

/// A product of powers is linear in logarithms.
double power(const Shape& shape) { return 7 * std::pow(shape.bytes, 0.8) / std::sqrt(shape.block) * shape.row_blocks; }

template <class Function>
Table table_of(const Axis& bytes, const Axis& block, const Axis& rows, Function function) {
  std::vector<double> ns;
  for (const double i : bytes) {
    for (const double j : block) {
      for (const double k : rows) ns.push_back(function(Shape{i, j, k}));
    }
  }
  return Table({bytes, block, rows}, ns);
}

TEST(Table, MeetsItsPointsAndPowersBetweenThem) {
  const Table table = table_of({64, 1000, 1 << 20}, {4, 100, 4096}, {2, 32}, power);
  for (const double bytes : {64.0, 99.0, 1000.0, 54321.0, 1048576.0}) {
    for (const double block : {4.0, 5.0, 100.0, 4095.0}) {
      for (const double rows : {2.0, 3.0, 32.0}) {
        const Shape shape{bytes, block, rows};
        EXPECT_NEAR(table.at(shape) / power(shape), 1, 1e-9) << bytes << ' ' << block << ' ' << rows;
      }
    }
  }
}

TEST(Table, BeyondItsEndsTheNearestPointCountsAndBytesGrowOn) {
  const Table table = table_of({64, 1024}, {8, 64}, {2}, power);
  EXPECT_NEAR(table.at({1, 8, 2}), table.at({64, 8, 2}), 1e-9);
  EXPECT_NEAR(table.at({64, 1, 1}), table.at({64, 8, 2}), 1e-9);
  EXPECT_NEAR(table.at({64, 1e6, 1e6}), table.at({64, 64, 2}), 1e-9);
  EXPECT_NEAR(table.at({4096, 64, 2}), 4 * table.at({1024, 64, 2}), 1e-6);
}

TEST(Table, ASinglePointIsATable) {
  const Table table({Axis{64}, Axis{1}, Axis{1}}, {5});
  EXPECT_NEAR(table.at({1, 1, 1}), 5, 1e-9);
  EXPECT_NEAR(table.at({128, 9, 9}), 10, 1e-9);
}

TEST(Table, GapsGetTheTimeOfTheNearestRowAndThenTheNearestBlock) {
  const Table table({Axis{64}, Axis{4, 16, 64}, Axis{2, 32}}, {3, gap, gap, gap, gap, 9});
  EXPECT_NEAR(table.at({64, 4, 32}), 3, 1e-9);
  EXPECT_NEAR(table.at({64, 16, 2}), 3, 1e-9);
  EXPECT_NEAR(table.at({64, 64, 2}), 9, 1e-9);
}

TEST(Table, AGapBetweenTwoTimesGetsTheNearerOne) {
  const Table table({Axis{64}, Axis{1}, Axis{1, 2, 4, 8, 16}}, {3, gap, gap, gap, 9});
  EXPECT_NEAR(table.at({64, 1, 2}), 3, 1e-9);
  EXPECT_NEAR(table.at({64, 1, 8}), 9, 1e-9);
}

TEST(Table, WhatIsNoTableIsRefused) {
  const Axis one = {1};
  EXPECT_THROW(Table({Axis{}, one, one}, {}), std::invalid_argument);
  EXPECT_THROW(Table({Axis{2, 1}, one, one}, {1, 1}), std::invalid_argument);
  EXPECT_THROW(Table({Axis{1, 1}, one, one}, {1, 1}), std::invalid_argument);
  EXPECT_THROW(Table({Axis{0, 1}, one, one}, {1, 1}), std::invalid_argument);
  EXPECT_THROW(Table({Axis{-1}, one, one}, {1}), std::invalid_argument);
  EXPECT_THROW(Table({Axis{INFINITY}, one, one}, {1}), std::invalid_argument);
  EXPECT_THROW(Table({Axis{1, 2}, one, one}, {1}), std::invalid_argument);
  EXPECT_THROW(Table({one, one, one}, {0}), std::invalid_argument);
  EXPECT_THROW(Table({one, one, one}, {-3}), std::invalid_argument);
  EXPECT_THROW(Table({one, one, one}, {INFINITY}), std::invalid_argument);
  EXPECT_THROW(Table({one, one, one}, {gap}), std::invalid_argument);
  EXPECT_THROW(Table({Axis{1, 2}, one, one}, {1, gap}), std::invalid_argument);
}

Table constant(double ns) { return Table({Axis{1 << 20}, Axis{1}, Axis{1}}, {ns}); }

TEST(SchemeCosts, AreTheSumOfTheirStagesUnlessTheWholeIsMeasured) {
  model::SchemeCosts costs{
      .start_ns = 100, .pack = constant(1), .unpack = constant(20), .move = constant(300), .message = {}};
  EXPECT_NEAR(costs.message_ns({1, 1, 1}), 421, 1e-9);
  costs.message = constant(400);
  EXPECT_NEAR(costs.message_ns({1, 1, 1}), 400, 1e-9);
  costs.message.reset();
  costs.unpack.reset();
  EXPECT_FALSE(costs.is_known());
  EXPECT_EQ(costs.message_ns({1, 1, 1}), model::never_ns);
}

class Prediction : public ::testing::Test {
 protected:
  void TearDown() override { model::change_profile() = {}; }
};

TEST_F(Prediction, TablesOfTheJobsPairTakeThePlaceOfTheBuiltInCosts) {
  constexpr model::Amount amount = {4096, 64, 1};
  const double built_in = model::mpich_on_host.message(amount).of(amount);
  EXPECT_EQ(model::message_saving_ns(amount), built_in);
  model::Measured measured;
  auto& costs = measured.costs[static_cast<std::size_t>(model::Memory::host)];
  auto& on_node = costs[static_cast<std::size_t>(model::Pair::same_node)];
  on_node[model::native_scheme].message = constant(1000);
  on_node[model::packed_scheme].message = constant(1400);
  on_node[model::native_scheme].pack = constant(50);
  on_node[model::packed_scheme].pack = constant(30);
  model::change_profile().measured = &measured;
  EXPECT_NEAR(model::message_saving_ns(amount), -200, 1e-9);
  EXPECT_NEAR(model::pack_saving_ns(amount), 20, 1e-9);
  model::change_profile().pair = model::Pair::other_node;
  EXPECT_EQ(model::message_saving_ns(amount), built_in);
  EXPECT_EQ(model::pack_saving_ns(amount), model::mpich_on_host.pack.of(amount));
}

}  // namespace
}  // namespace gapless::tests
