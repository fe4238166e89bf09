// Libraries that are there or not, and their functions.
#include <gtest/gtest.h>

#include <cstddef>

#include "base/optional_library.hpp"

namespace gapless {
namespace {

TEST(OptionalLibrary, FindsFunctionsOfTheProcessesOwn) {
  OptionalLibrary library("libc.so.6", false);
  ASSERT_TRUE(library.is_there());
  std::size_t (*length)(const char*) = nullptr;
  ASSERT_TRUE(library.find("strlen", length));
  EXPECT_EQ(3u, length("abc"));
}

TEST(OptionalLibrary, SaysWhatIsMissing) {
  OptionalLibrary there("libc.so.6"), absent("libnone-such.so.1");
  void (*function)() = [] {};
  EXPECT_FALSE(there.find("no_such_function", function));
  EXPECT_EQ(nullptr, function);
  EXPECT_EQ("libc.so.6 lacks no_such_function", there.why_not());
  function = [] {};
  EXPECT_FALSE(absent.find("strlen", function)) << "not one of another library";
  EXPECT_EQ(nullptr, function);
  EXPECT_EQ("libnone-such.so.1 is not there", absent.why_not());
}

}  // namespace
}  // namespace gapless
