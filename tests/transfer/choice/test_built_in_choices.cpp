// The choices of the built-in profiles, over a grid of messages: built_in_choices.inc has them, one letter a size, the
// first of the scheme's name. A line of the grid that differs is printed, so a change that is meant can be taken over.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "layout/datatype/datatype.hpp"
#include "model/model.hpp"
#include "transfer/choice/choose.hpp"

namespace gapless::tests {
namespace {

using device::Location;
using device::MemoryKind;
using layout::Offset;
using transfer::Side;

constexpr const char* expected =
#include "built_in_choices.inc"
    ;

/// `blocks` blocks, each row of them followed by a larger gap.
layout::Datatype rows_of(Offset blocks, Offset block, Offset row_blocks) {
  const layout::Datatype byte = layout::named(1, 1);
  if (blocks == 1) return layout::contiguous(block, byte);
  if (blocks <= row_blocks) return layout::vector(blocks, block, 2 * block, byte);
  const layout::Datatype row = layout::vector(row_blocks, block, 2 * block, byte);
  return layout::hvector(blocks / row_blocks, 1, 2 * row.extent() + 64, row);
}

char letter(Offset blocks, Offset block, Offset row_blocks, MemoryKind kind, Side side, bool is_message) {
  if (blocks < 1) return '.';
  const layout::Datatype type = rows_of(blocks, block, row_blocks);
  const transfer::Described described{type.layout, layout::facts_of(*type.layout), type.extent(),
                                      type.layout->is_contiguous() && type.extent() == type.size()};
  const transfer::Buffer buffer{&described, 1, nullptr, Location{kind, kind == MemoryKind::host ? -1 : 0}};
  return transfer::name(is_message ? transfer::choose(buffer, side) : transfer::choose_packing(buffer))[0];
}

std::string choices() {
  std::ostringstream text;
  const auto line = [&](const char* what, MemoryKind kind, Side side, bool is_message) {
    for (Offset row_blocks : {Offset{2}, Offset{16}, Offset{1} << 40}) {
      for (Offset block = 1; block <= 1 << 18; block *= 4) {
        text << what << " rows of " << row_blocks << ", blocks of " << block << ": ";
        for (Offset bytes = 16; bytes <= Offset{1} << 26; bytes *= 2) {
          text << letter(bytes / block, block, row_blocks, kind, side, is_message);
        }
        text << '\n';
      }
    }
  };
  for (const auto& [name, host] :
       {std::pair{"MPICH", model::mpich_on_host}, std::pair{"Open MPI", model::open_mpi_on_host}}) {
    model::change_profile() = {};
    model::change_profile().host = host;
    line((std::string(name) + " message").c_str(), MemoryKind::host, Side::sender, true);
    line((std::string(name) + " receive").c_str(), MemoryKind::host, Side::receiver, true);
    line((std::string(name) + " pack").c_str(), MemoryKind::host, Side::sender, false);
  }
  model::change_profile() = {};
  line("GPU sender", MemoryKind::device, Side::sender, true);
  line("GPU receiver", MemoryKind::device, Side::receiver, true);
  return text.str();
}

TEST(BuiltInChoices, AreThoseOfTheGrid) {
  std::istringstream found(choices()), wanted(expected);
  std::string is, should_be;
  while (std::getline(found, is)) {
    ASSERT_TRUE(std::getline(wanted, should_be)) << is;
    EXPECT_EQ(is, should_be);
  }
  EXPECT_FALSE(std::getline(wanted, should_be));
}

}  // namespace
}  // namespace gapless::tests
