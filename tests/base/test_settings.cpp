// What becomes of every kind of value, what is said about wrong ones, and that it is said once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "pack/host/engine.hpp"
#include "transfer/message.hpp"

namespace gapless::testing {
namespace {

/// Sets a variable for as long as it is there.
class Set {
 public:
  Set(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Set() { unsetenv(name_); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  const char* name_;
};

struct Reading {
  Settings settings;
  std::vector<std::string> faults;
};

Reading read() {
  Reading reading;
  const auto note = [](const char* name, const char* value, const char* fault, void* faults) {
    const std::string text = std::string(name) + "=" + value + ": " + fault;
    static_cast<std::vector<std::string>*>(faults)->push_back(text);
  };
  reading.settings = read_settings(note, &reading.faults);
  return reading;
}

using Faults = std::vector<std::string>;

TEST(Settings, AreAsDocumentedWhereNothingIsSet) {
  const Reading reading = read();
  EXPECT_EQ(reading.faults, Faults());
  EXPECT_TRUE(reading.settings.gpu);
  EXPECT_FALSE(reading.settings.statistics);
  EXPECT_EQ(reading.settings.scheme, "");
  EXPECT_FALSE(reading.settings.pool_bytes.has_value());
  EXPECT_EQ(reading.settings.model, "");
  EXPECT_STREQ(reading.settings.profile.data(), "");
  EXPECT_STREQ(reading.settings.report.data(), "");
  EXPECT_STREQ(reading.settings.device_plugin.data(), "");
}

TEST(Settings, EmptyIsNotSet) {
  const Set gpu("GAPLESS_GPU", ""), scheme("GAPLESS_SCHEME", ""), bytes("GAPLESS_POOL_BYTES", ""), off("GAPLESS", "");
  EXPECT_EQ(read().faults, Faults());
  EXPECT_TRUE(read().settings.gpu);
}

TEST(Settings, FlagsAreZeroOrOne) {
  for (const bool value : {false, true}) {
    const Set gpu("GAPLESS_GPU", value ? "1" : "0"), statistics("GAPLESS_STATISTICS", value ? "1" : "0");
    const Set all_ranks("GAPLESS_ALL_RANKS", value ? "1" : "0");
    EXPECT_EQ(read().faults, Faults());
    EXPECT_EQ(read().settings.all_ranks, value);
    EXPECT_EQ(read().settings.gpu, value);
    EXPECT_EQ(read().settings.statistics, value);
  }
  const Set gpu("GAPLESS_GPU", "off"), statistics("GAPLESS_STATISTICS", "yes");
  EXPECT_EQ(read().faults,
            (Faults{"GAPLESS_STATISTICS=yes: ignored; accepted: 0, 1", "GAPLESS_GPU=off: ignored; accepted: 0, 1"}));
  EXPECT_TRUE(read().settings.gpu);
  EXPECT_FALSE(read().settings.statistics);
}

TEST(Settings, WordsGoIntoTheirOwnFields) {
  using Word = std::string_view Settings::*;
  const std::map<const char*, std::pair<const char*, Word>> last_words = {
      {"GAPLESS_SCHEME", {"staged", &Settings::scheme}},
      {"GAPLESS_HOST_ENGINE", {"scalar", &Settings::host_engine}},
      {"GAPLESS_GPU_AWARE", {"auto", &Settings::gpu_aware}},
      {"GAPLESS_RESIDENT", {"ready", &Settings::resident}},
      {"GAPLESS_GPU_REGIME", {"tree", &Settings::gpu_regime}},
      {"GAPLESS_GPU_ENGINE", {"dma", &Settings::gpu_engine}},
      {"GAPLESS_GPU_LAUNCH", {"kernel", &Settings::gpu_launch}},
      {"GAPLESS_MODEL", {"fixed", &Settings::model}},
  };
  for (const auto& [name, expected] : last_words) {
    const auto& [word, field] = expected;
    const Set set(name, word);
    const Reading reading = read();
    EXPECT_EQ(reading.faults, Faults()) << name;
    for (const auto& [other, of_other] : last_words) {
      EXPECT_EQ(reading.settings.*of_other.second, other == name ? word : "") << other << " by " << name;
    }
  }
}

TEST(Settings, PathsGoIntoTheirOwnFields) {
  const Set profile("GAPLESS_PROFILE", "a"), report("GAPLESS_REPORT", "b"), plugin("GAPLESS_DEVICE_PLUGIN", "c");
  const Reading reading = read();
  EXPECT_EQ(reading.faults, Faults());
  EXPECT_STREQ(reading.settings.profile.data(), "a");
  EXPECT_STREQ(reading.settings.report.data(), "b");
  EXPECT_STREQ(reading.settings.device_plugin.data(), "c");
}

TEST(Settings, AWordIsAcceptedAsAWhole) {
  for (const char* wrong : {"stage", "staged ", "packed, oneshot", ",", " ", "PACKED", "native,"}) {
    const Set scheme("GAPLESS_SCHEME", wrong);
    EXPECT_EQ(read().faults.size(), 1u) << wrong;
    EXPECT_EQ(read().settings.scheme, "") << wrong;
  }
}

TEST(Settings, EverySchemeAndHostEngineIsAccepted) {
  for (std::size_t i = 0; i < transfer::scheme_count; ++i) {
    const char* const name = transfer::name(static_cast<transfer::Scheme>(i));
    const Set scheme("GAPLESS_SCHEME", name);
    EXPECT_EQ(read().settings.scheme, name);
  }
  for (const std::string_view name : pack::host::implementations()) {
    const Set engine("GAPLESS_HOST_ENGINE", std::string(name));
    EXPECT_EQ(read().settings.host_engine, name);
  }
}

TEST(Settings, BytesAreDigitsThatFit) {
  for (const char* right : {"0", "1", "67108864", "18446744073709551615"}) {
    const Set bytes("GAPLESS_POOL_BYTES", right);
    EXPECT_EQ(read().faults, Faults());
    EXPECT_EQ(std::to_string(read().settings.pool_bytes.value()), right);
  }
  for (const char* wrong : {"64M", "-1", "+1", " 1", "1 ", "0x10", "1e6", "18446744073709551616"}) {
    const Set bytes("GAPLESS_POOL_BYTES", wrong);
    EXPECT_EQ(read().faults,
              Faults{std::string("GAPLESS_POOL_BYTES=") + wrong + ": ignored; accepted: a number of bytes"});
    EXPECT_FALSE(read().settings.pool_bytes.has_value());
  }
}

TEST(Settings, APathIsCopiedWhole) {
  const std::string longest(4095, 'x');
  {
    const Set plugin("GAPLESS_DEVICE_PLUGIN", longest);
    EXPECT_EQ(read().faults, Faults());
    EXPECT_EQ(read().settings.device_plugin.data(), longest);
  }
  const Set plugin("GAPLESS_DEVICE_PLUGIN", longest + "x");
  EXPECT_EQ(read().faults.size(), 1u);
  EXPECT_STREQ(read().settings.device_plugin.data(), "");
}

TEST(Settings, WhatOthersReadIsCheckedToo) {
  const Set off("GAPLESS", "off"), verbose("GAPLESS_VERBOSE", "2"), anywhere("GAPLESS_LIBRARY_DIRECTORY", "any where");
  EXPECT_EQ(read().faults,
            (Faults{"GAPLESS=off: ignored; accepted: 0, 1", "GAPLESS_VERBOSE=2: ignored; accepted: 0, 1"}));
}

TEST(Settings, AnUnknownNameHasANearestOne) {
  const std::map<const char*, const char*> nearest = {
      {"GAPLESS_SHEME", "GAPLESS_SCHEME"},         {"GAPLESS_GPU_REGIMES", "GAPLESS_GPU_REGIME"},
      {"GAPLESS_STATISTIC", "GAPLESS_STATISTICS"}, {"GAPLESS_POOL_BITES", "GAPLESS_POOL_BYTES"},
      {"GAPLESS_verbose", "GAPLESS_VERBOSE"},      {"GAPLESS_GP", "GAPLESS_GPU"},
  };
  for (const auto& [typed, meant] : nearest) {
    const Set unknown(typed, "packed");
    EXPECT_EQ(read().faults, Faults{std::string(typed) + "=packed: no such variable; the nearest is " + meant});
  }
}

TEST(Settings, AnUnknownNameThatIsLikeNoneHasNone) {
  const Set unknown("GAPLESS_FOO", "1");
  EXPECT_EQ(read().faults, Faults{"GAPLESS_FOO=1: no such variable"});
}

TEST(Settings, NamesOfInstallationsAreNoMistakes) {
  const Set root("GAPLESS_ROOT", "/opt/gapless"), directory("GAPLESS_DIR", "/opt/gapless");
  EXPECT_EQ(read().faults, Faults());
}

TEST(Settings, OtherNamesAreNotOurs) {
  const Set test("GAPLESS_TEST_ANYTHING", "1"), other("GAPLESSLY", "1"), ending("MY_GAPLESS_SCHEME", "1");
  EXPECT_EQ(read().faults, Faults());
}

TEST(Settings, AFaultIsOneLineOfBearableLength) {
  const Set lines("GAPLESS_SCHEME", "one\ntwo\x1b[1m"), name(("GAPLESS_" + std::string(5000, 'X')).c_str(), "");
  const Faults faults = read().faults;
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0],
            "GAPLESS_SCHEME=one?two?[1m: ignored; accepted: native, packed, oneshot, staged, pipelined, device, slots, "
            "direct, fabric-pipelined, gather-write, scatter-read, multi-write");
  EXPECT_LT(faults[1].size(), 200u);
}

// First in its process, as every test that CTest runs: what was wrong is said once, at the first need.
TEST(SettingsOfTheProcess, AreReadOnceAndFaultsAreSaidOnce) {
  const Set scheme("GAPLESS_SCHEME", "pack"), typo("GAPLESS_SHEME", "packed");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(settings().scheme, "");
  const Set later("GAPLESS_SCHEME", "packed");
  EXPECT_EQ(settings().scheme, "");
  EXPECT_EQ(&settings(), &settings());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "gapless: GAPLESS_SCHEME=pack: ignored; accepted: native, packed, oneshot, staged, pipelined, device, "
            "slots, direct, fabric-pipelined, gather-write, scatter-read, multi-write\n"
            "gapless: GAPLESS_SHEME=packed: no such variable; the nearest is GAPLESS_SCHEME\n");
}

TEST(SettingsFaults, AreWrittenAsFarAsThereIsRoom) {
  const Set scheme("GAPLESS_SCHEME", "pack"), typo("GAPLESS_SHEME", "packed");
  const std::string whole =
      "GAPLESS_SCHEME=ignored; accepted: native, packed, oneshot, staged, pipelined, device, slots, direct, "
      "fabric-pipelined, gather-write, scatter-read, multi-write\n"
      "GAPLESS_SHEME=no such variable; the nearest is GAPLESS_SCHEME\n";
  EXPECT_EQ(gapless_settings_faults(nullptr, 0), whole.size());
  for (const std::size_t size : {std::size_t{1}, std::size_t{30}, std::size_t{66}, whole.size(), whole.size() + 1}) {
    std::vector<char> text(size + 1, '#');
    EXPECT_EQ(gapless_settings_faults(text.data(), size), whole.size());
    EXPECT_EQ(std::string(text.data()), whole.substr(0, size - 1));
    EXPECT_EQ(text[size], '#');
  }
}

// After what is read once has been looked at.
TEST(SettingsOfTheProcess, AProfileIsTheLibrarysAmongTheUsersConfiguration) {
  const Set configuration("XDG_CONFIG_HOME", "/c"), home("HOME", "/h");
  EXPECT_EQ(profile_path("Open MPI 5.0.11"), "/c/gapless/open-mpi-5.0.11.json");
  const Set relative("XDG_CONFIG_HOME", "c");
  EXPECT_EQ(profile_path("../../x"), "/h/.config/gapless/..-..-x.json");
  const Set nowhere("HOME", "");
  EXPECT_EQ(profile_path("MPICH 5.0.2"), "");
}

}  // namespace
}  // namespace gapless::testing
