// The text form: names, messages, descriptions. property_test.cpp reads random types of every constructor.
#include "layout/text/text.hpp"

#include <gtest/gtest.h>

#include "check_layout.hpp"

namespace gapless::testing {
namespace {

using namespace gapless::layout;

std::string message(const std::string& text) {
  try {
    parse_datatype(text);
  } catch (const ParseError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Parse, TheExamplesOfTheHeader) {
  EXPECT_EQ(describe(*parse_datatype("vector(1024, 1, 4, int)").layout), "block 4 B at 0, modes (1024 x 16)");
  expect_same(parse_datatype("subarray([64,64,64], [1,62,62], [0,1,1], c, double)"),
              type_map::subarray({64, 64, 64}, {1, 62, 62}, {0, 1, 1}, false, type_map::basic(8)));
  EXPECT_EQ(parse_datatype("struct([1,2,1], [0,8,16], [double, int, char])").size(), 17);
  const Datatype type = parse_datatype(" resized ( indexed ( [ 3 , 1 ] , [0,8],float ) ,0,\t64 )\n");
  EXPECT_EQ(type.size(), 16);
  EXPECT_EQ(type.extent(), 64);
}

TEST(Parse, PairTypesHaveTheirGaps) {
  expect_same(parse_datatype("double_int"), type_map::pair(8, 4, 8, 16));
  expect_same(parse_datatype("short_int"), type_map::pair(2, 4, 4, 8));
  expect_same(parse_datatype("long_int"), type_map::pair(8, 4, 8, 16));
  expect_same(parse_datatype("float_int"), type_map::pair(4, 4, 4, 8));
  expect_same(parse_datatype("2int"), type_map::basic(8));
  expect_same(parse_datatype("value_index(double, int)"), type_map::pair(8, 4, 8, 16));
  expect_same(parse_datatype("value_index(char, int64)"), type_map::pair(1, 8, 8, 16));
  if (sizeof(long double) == 16) expect_same(parse_datatype("long_double_int"), type_map::pair(16, 4, 16, 32));
}

TEST(Parse, EveryNameHasItsSize) {
  EXPECT_EQ(parse_datatype("c_long_double_complex").size(), Offset{2 * sizeof(long double)});
  EXPECT_EQ(parse_datatype("wchar").size(), Offset{sizeof(wchar_t)});
  EXPECT_EQ(parse_datatype("int64").size(), 8);
  EXPECT_EQ(parse_datatype("uint16_t").size(), 2);
  EXPECT_EQ(parse_datatype("double_precision").size(), 8);
  EXPECT_EQ(parse_datatype("complex32").size(), 32);
}

TEST(Parse, ErrorsNameTheColumnAndWhatWasExpected) {
  EXPECT_EQ(message(""), "column 1: expected a datatype");
  EXPECT_EQ(message("contiguous(2, MPI_INT)"),
            "column 15: expected a datatype in small letters and without MPI_, such as int");
  EXPECT_EQ(message("vektor(1,2,3,int)"), "column 1: no datatype or constructor is called 'vektor'");
  EXPECT_EQ(message("vector(1,2,int)"), "column 12: expected a number");
  EXPECT_EQ(message("vector(1;2"), "column 9: expected ','");
  EXPECT_EQ(message("vector(1,2,3,int"), "column 17: expected ')'");
  EXPECT_EQ(message("int int"), "column 5: expected the end");
  EXPECT_EQ(message("indexed([1 2],[0],int)"), "column 12: expected ',' or ']'");
  EXPECT_EQ(message("contiguous(99999999999999999999, int)"), "column 12: expected a number of at most 63 bits");
  EXPECT_EQ(message("subarray([2],[1],[0],d,int)"), "column 22: expected 'c' or 'fortran'");
  EXPECT_EQ(message("darray(1,0,[4],[blok],[1],[1],c,int)"), "column 17: expected 'none', 'block' or 'cyclic'");
  EXPECT_EQ(message("darray(1,0,[4],[block],[dflt],[1],c,int)"), "column 25: expected 'default' or a number");
}

TEST(Parse, TypesThatAreTooLargeAreOverflows) {
  for (const char* const text : {"contiguous(9223372036854775807, int)", "dup(contiguous(9223372036854775807, int))"}) {
    try {
      parse_datatype(text);
      ADD_FAILURE() << text;
    } catch (const ParsedOverflow& error) {
      const std::string column = text[0] == 'd' ? "column 5" : "column 1";
      EXPECT_EQ(error.what(), column + ": datatype reaches beyond 63-bit offsets");
    }
  }
}

TEST(Parse, WhatConstructorsRefuseIsAParseErrorToo) {
  EXPECT_EQ(message("contiguous(2, vector(-1,2,3,int))"), "column 22: negative count");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "dup(";
  EXPECT_NE(message(deep).find("nested too deeply"), std::string::npos);
}

// Beside each refusal of a constructor, a text with the caret below what it refuses.
TEST(Parse, TheColumnIsThatOfTheRefusedArgument) {
  const auto column = [](const std::string& caret) { return "column " + std::to_string(caret.find('^') + 1) + ": "; };
  const auto expect_refused = [&](const std::string& text, const std::string& caret, const std::string& why) {
    EXPECT_EQ(message(text), column(caret) + why) << text;
  };
  expect_refused("contiguous( -1, int)",  //
                 "            ^", "negative count");
  expect_refused("vector(2, -3, 1, int)",  //
                 "          ^", "negative block length");
  expect_refused("hvector(-2, 3, 1, vector(1,1,1,int))",  //
                 "        ^", "negative count");
  expect_refused("indexed([1,2, -3], [0,1,2], int)",  //
                 "              ^", "negative block length");
  expect_refused("hindexed([1,2], [0,1,2], int)",  //
                 "                ^", "lists of different lengths");
  expect_refused("indexed_block(-1, [0,1,2], int)",  //
                 "              ^", "negative block length");
  expect_refused("struct([1,-1], [0,8], [contiguous(2,int), int])",  //
                 "          ^", "negative block length");
  expect_refused("struct([1,1], [0,8], [int])",  //
                 "                     ^", "lists of different lengths");
  expect_refused("subarray([4,4],[2,5],[0,0],c,int)",  //
                 "                  ^", "subarray: part outside the array");
  expect_refused("subarray([4,4],[2,2],[3,0],c,int)",  //
                 "                      ^", "subarray: part outside the array");
  expect_refused("darray(4,4,[8],[block],[default],[4],c,int)",  //
                 "         ^", "darray: rank outside the processes");
  expect_refused("darray(4,0,[8,8],[block,block],[default,-2],[2,2],c,int)",  //
                 "                                        ^",
                 "darray: distribution arguments must be positive or the default");
  expect_refused("darray(4,0,[8,8],[block,none],[default,default],[2,2],c,int)",  //
                 "                                                   ^",
                 "darray: an undistributed dimension needs a process grid of 1");
  expect_refused("darray(4,0,[8],[block],[default],[2],c,int)",  //
                 "                                 ^", "darray: process grid does not hold the processes");
}

TEST(Parse, DefaultDistributionArguments) {
  EXPECT_EQ(*parse_datatype("darray(4,1,[10],[block],[default],[4],c,int)").layout, *block(12, 12));
  EXPECT_EQ(*parse_datatype("darray(4,1,[10],[block],[-1],[4],c,int)").layout, *block(12, 12));
}

TEST(Describe, IsOneShortLine) {
  EXPECT_EQ(describe(*empty()), "nothing");
  EXPECT_EQ(describe(*block(3, 5)), "block 5 B at 3");
  EXPECT_EQ(describe(*parse_datatype("indexed([3,1,2],[0,8,20],float)").layout),
            "3 runs [12 B at 0, 4 B at 32, 8 B at 80] at 0");
  std::string text = "indexed_block(1, [0";
  for (int i = 1; i < 1000; ++i) text += "," + std::to_string(i * i + i);
  EXPECT_EQ(describe(*parse_datatype(text + "], int)").layout),
            "1000 offsets [0, 8, 24, 48, …] of {block 4 B at 0} at 0");
}

}  // namespace
}  // namespace gapless::testing
