// Profile files: a right one, and every kind of wrong one.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "model/profile_file.hpp"

namespace gapless::tests {
namespace {

using model::Memory;
using model::Pair;

const model::Machine here = {"MPICH 5.0.2", ""};
constexpr std::array schemes = {"native", "packed", "oneshot", "staged", "pipelined", "device", "slots", "direct"};

std::string table(const std::string& scheme, const std::string& quantity = "message",
                  const std::string& ns = "[[[8], [4]]]",
                  const std::string& rest = R"("bytes": [64], "block": [4, 16], "row_blocks": [2])",
                  const std::string& memory = "host", const std::string& pair = "same node") {
  return R"({"memory": ")" + memory + R"(", "pair": ")" + pair + R"(", "scheme": ")" + scheme + R"(", "quantity": ")" +
         quantity + R"(", "ns": )" + ns + (rest.empty() ? "" : ", " + rest) + "}";
}

std::string profile(const std::string& tables, const std::string& version = "1",
                    const std::string& library = "MPICH 5.0.2", const std::string& gpu = "null") {
  return R"({"gapless_profile": )" + version + R"(, "library": ")" + library + R"(", "gpu": )" + gpu +
         R"(, "tables": [)" + tables + "]}";
}

const std::string both = table("native") + ", " + table("packed");

/// What is said of a text, or the empty string if it is accepted.
std::string fault(const std::string& text, const model::Machine& machine = here) {
  try {
    model::parse_profile(text, machine, schemes);
    return "";
  } catch (const model::ProfileError& error) {
    return error.what();
  }
}

TEST(ProfileFile, HasTimesByMemoryPairAndScheme) {
  const std::string text = profile(both + ", " + table("packed", "start", "300", "") + ", " +
                                   table("oneshot", "message", "[[[null, 90]]]",
                                         R"("bytes": [64], "block": [4], "row_blocks": [2, 4])", "gpu", "peer GPU"));
  const auto measured = model::parse_profile(text, here, schemes);
  const model::CostsByScheme& host = measured->of(Memory::host, Pair::same_node);
  EXPECT_NEAR(host[0].message_ns({64, 4, 2}), 8, 1e-9);
  EXPECT_NEAR(host[1].message_ns({64, 16, 2}), 4, 1e-9);
  EXPECT_EQ(host[1].start_ns, 300);
  EXPECT_NEAR(measured->of(Memory::gpu, Pair::peer_gpu)[2].message_ns({64, 4, 2}), 90, 1e-9);
  EXPECT_FALSE(measured->of(Memory::host, Pair::other_node)[0].is_known());
}

/// What is said of a profile with such fabrics.
std::string fault_of_fabrics(const std::string& fabrics) {
  std::string text = profile(both);
  text.insert(text.size() - 1, R"(, "fabrics": )" + fabrics);
  try {
    model::parse_fabrics(text, here);
    return "";
  } catch (const model::ProfileError& error) {
    return error.what();
  }
}

TEST(ProfileFile, HasCostsOfFabricsByPair) {
  std::string text = profile(both);
  EXPECT_TRUE(model::parse_fabrics(text, here).empty());
  text.insert(text.size() - 1, R"(, "fabrics": [{"fabric": "tcp", "pair": "other node", "operation_ns": 20000, )"
                               R"("byte_ns": 0.8, "notification_ns": 9000, "copied_byte_ns": 0.2, "overlap": 0.25, )"
                               R"("handshake_ns": 0}])");
  const auto measured = model::parse_fabrics(text, here);
  const model::FabricProfile built_in = model::fabric_profile("tcp");
  const model::FabricProfile used = model::fabric_profile("tcp", Pair::other_node, measured);
  EXPECT_EQ(used.operation_ns, 20000);
  EXPECT_EQ(used.notification_ns, 9000);
  EXPECT_EQ(used.copied_byte_ns, 0.2);
  EXPECT_EQ(used.overlap, 0.25);
  EXPECT_EQ(used.handshake_ns, 0);
  EXPECT_EQ(used.byte_ns, 0.8);
  EXPECT_NEAR(used.read_byte_ns / used.byte_ns, built_in.read_byte_ns / built_in.byte_ns, 1e-9);
  EXPECT_EQ(used.copied_block_ns, built_in.copied_block_ns);
  EXPECT_EQ(model::fabric_profile("tcp", Pair::same_node, measured).operation_ns, built_in.operation_ns);
  EXPECT_EQ(model::fabric_profile("shm", Pair::other_node, measured).operation_ns, model::shm_profile.operation_ns);
}

TEST(ProfileFile, FabricsThatMakeNoSenseAreRefused) {
  EXPECT_EQ(fault_of_fabrics("3"), "its \"fabrics\" is no list");
  EXPECT_EQ(fault_of_fabrics("[3]"), "one of its fabrics is none");
  EXPECT_EQ(fault_of_fabrics(R"([{"pair": "same node"}])"), "it has no \"fabric\"");
  EXPECT_EQ(fault_of_fabrics(R"([{"fabric": "tcp", "pair": "moon"}])"), "it has an unknown pair \"moon\"");
  EXPECT_EQ(fault_of_fabrics(R"([{"fabric": "tcp", "pair": "same node", "operation_ns": -1}])"),
            "its \"operation_ns\" is no time");
  EXPECT_EQ(fault_of_fabrics(R"([{"fabric": "tcp", "pair": "same node", "operation_ns": 5, "byte_ns": "x"}])"),
            "its \"byte_ns\" is no time");
  const std::string costs = R"([{"fabric": "tcp", "pair": "same node", "operation_ns": 5, "byte_ns": 1, )"
                            R"("notification_ns": 5, "copied_byte_ns": 1, )";
  EXPECT_EQ(fault_of_fabrics(costs + R"("overlap": 0, "handshake_ns": 0}])"), "");
  EXPECT_EQ(fault_of_fabrics(costs + R"("overlap": -0.5, "handshake_ns": 0}])"), "its \"overlap\" is no time");
  EXPECT_EQ(fault_of_fabrics(costs + R"("overlap": 0}])"), "it has no \"handshake_ns\"");
}

TEST(ProfileFile, SchemesThatAreNotKnownHereArePassedOver) {
  EXPECT_EQ(fault(profile(both + ", " + table("teleported"))), "");
  EXPECT_EQ(fault(profile("")), "");
}

TEST(ProfileFile, IsOfOneVersionLibraryAndGpu) {
  EXPECT_EQ(fault(profile(both, "2")), "its version is 2, and not 1");
  EXPECT_EQ(fault(profile(both, "\"1\"")), "its version is no number");
  constexpr std::size_t deep = 100000;
  const std::string nest = std::string(deep, '[') + std::string(deep, ']');
  EXPECT_EQ(fault(profile(both, nest)), "its version is no number");
  EXPECT_EQ(fault(profile(both, "1", "MPICH 4.0")), "it is of MPICH 4.0, and this is MPICH 5.0.2");
  EXPECT_EQ(fault(profile(both, "1", "MPICH 4.0"), {"", ""}), "");
  EXPECT_EQ(fault(profile(both, "1", "MPICH 5.0.2", "\"H200\"")), "it is of a H200, and there is none");
  EXPECT_EQ(fault(profile(both, "1", "MPICH 5.0.2", "\"H200\""), {"MPICH 5.0.2", "A100"}),
            "it is of a H200, and this is a A100");
  EXPECT_EQ(fault(profile(both, "1", "MPICH 5.0.2", "\"H200\""), {"MPICH 5.0.2", "H200"}), "");
  EXPECT_EQ(fault(profile(both), {"MPICH 5.0.2", "H200"}), "");
}

TEST(ProfileFile, WhatIsNoProfileIsRefused) {
  for (const char* text : {"", "x", "{", "\"\xff\"", "{\"gapless_profile\": 1"})
    EXPECT_EQ(fault(text), "it is not JSON");
  EXPECT_EQ(fault(profile(both) + "x"), "it is not JSON");
  for (const char* text : {"1", "[]", "null"}) EXPECT_EQ(fault(text), "it is no profile");
  EXPECT_EQ(fault("{}"), "it has no \"gapless_profile\"");
  EXPECT_EQ(fault(R"({"gapless_profile": 1})"), "it has no \"library\"");
  EXPECT_EQ(fault(R"({"gapless_profile": 1, "library": 5})"), "its \"library\" is no text");
  EXPECT_EQ(fault(R"({"gapless_profile": 1, "library": "MPICH 5.0.2"})"), "it has no \"gpu\"");
  EXPECT_EQ(fault(R"({"gapless_profile": 1, "library": "MPICH 5.0.2", "gpu": null, "tables": 1})"),
            "its \"tables\" is no list");
  EXPECT_EQ(fault(profile("[]")), "one of its tables is none");
}

TEST(ProfileFile, WrongTablesAreRefused) {
  const auto of = [](const std::string& wrong) { return fault(profile(both + ", " + wrong)); };
  const std::string axes = R"("bytes": [64], "block": [4, 16], "row_blocks": [2])";
  EXPECT_EQ(of(table("packed", "message", "[[[1]]]")), "its \"ns\" has not as many times as the axes have points");
  EXPECT_EQ(of(table("packed", "message", "7")), "its \"ns\" has not as many times as the axes have points");
  EXPECT_EQ(of(table("packed", "message", "[[[1], [\"x\"]]]")), "it has a time that is no number");
  EXPECT_EQ(of(table("packed", "message", "[[[1], [-1]]]")), "of a table a time is not positive");
  EXPECT_EQ(of(table("packed", "message", "[[[null], [null]]]")),
            "of a table nothing is measured of some number of bytes");
  EXPECT_EQ(of(table("packed", "message", "[]", R"("bytes": [], "block": [4], "row_blocks": [2])")),
            "of a table an axis is empty");
  EXPECT_EQ(of(table("packed", "message", "[[[1], [1]]]", R"("bytes": [64], "block": [16, 4], "row_blocks": [2])")),
            "of a table an axis does not ascend");
  EXPECT_EQ(of(table("packed", "message", "[[[1]]]", R"("bytes": 64, "block": [4], "row_blocks": [2])")),
            "its \"bytes\" is no list");
  EXPECT_EQ(of(table("packed", "message", "[[[1]]]", R"("bytes": ["a"], "block": [4], "row_blocks": [2])")),
            "its \"bytes\" has something that is no number");
  EXPECT_EQ(of(table("packed", "speed")), "it has an unknown quantity \"speed\"");
  EXPECT_EQ(of(table("packed", "message", "[[[1], [1]]]", axes, "disk")), "it has an unknown memory \"disk\"");
  EXPECT_EQ(of(table("packed", "message", "[[[1], [1]]]", axes, "host", "moon")), "it has an unknown pair \"moon\"");
  EXPECT_EQ(of(table("packed", "start", "-1", "")), "it has a start that is no time");
  EXPECT_EQ(of(table("packed", "start", "1e999", "")), "it is not JSON");
  std::string points = "1";
  for (int i = 2; i <= 70000; ++i) points += "," + std::to_string(i);
  EXPECT_EQ(of(table("packed", "message", "[]", "\"bytes\": [" + points + R"(], "block": [4], "row_blocks": [2])")),
            "it has a table that is too large");
}

TEST(ProfileFile, HostMemoryNeedsNativeAndPacked) {
  EXPECT_EQ(fault(profile(table("native"))), "of host memory it has not both native and packed");
  EXPECT_EQ(fault(profile(table("packed"))), "of host memory it has not both native and packed");
}

TEST(ProfileFile, SlotsAndDirectAreOfThePlacesWhereTheyGo) {
  const std::string ns = "[[[8], [4]]]", axes = R"("bytes": [64], "block": [4, 16], "row_blocks": [2])";
  const auto of = [&](const std::string& scheme, const std::string& memory, const std::string& pair) {
    return fault(profile(both + ", " + table(scheme, "message", ns, axes, memory, pair)));
  };
  EXPECT_EQ(of("slots", "host", "same node"), "");
  EXPECT_EQ(of("direct", "gpu", "same GPU"), "");
  EXPECT_EQ(of("direct", "gpu", "peer GPU"), "");
  for (const char* memory : {"host", "gpu"}) {
    for (const char* pair : {"same GPU", "peer GPU", "same node", "other node"}) {
      const bool is_gpus = std::string(memory) == "gpu", are_gpus = std::string(pair).ends_with("GPU");
      if (is_gpus || std::string(pair) != "same node") {
        EXPECT_EQ(of("slots", memory, pair), "it has slots of other memory than that of a node's hosts");
      }
      if (!is_gpus || !are_gpus) {
        EXPECT_EQ(of("direct", memory, pair), "it has direct of other memory than that of a node's GPUs");
      }
    }
  }
  EXPECT_EQ(fault(profile(table("slots"))), "of host memory it has slots, and not native and packed");
  EXPECT_EQ(fault(profile(both + ", " + table("slots", "message", "[[[-8], [4]]]"))),
            "of a table a time is not positive");
}

TEST(ProfileFile, FilesThatCannotBeReadAreRefused) {
  const std::filesystem::path folder = testing::TempDir();
  const auto fault_of = [](const std::filesystem::path& path) -> std::string {
    try {
      return "accepted " + model::read_profile(path, here, schemes)->source;
    } catch (const model::ProfileError& error) {
      return error.what();
    }
  };
  const std::filesystem::path path = folder / "gapless-test-profile.json";
  std::ofstream(path) << profile(both);
  EXPECT_EQ(fault_of(path), "accepted " + path.string());
  std::ofstream(path) << profile(both).substr(0, 40);
  EXPECT_EQ(fault_of(path), "it is not JSON");
  std::filesystem::resize_file(path, (4 << 20) + 1);
  EXPECT_EQ(fault_of(path), "it is too large");
  std::filesystem::remove(path);
  EXPECT_EQ(fault_of(path), "it cannot be opened");
  EXPECT_EQ(fault_of(folder), "it cannot be read");
  EXPECT_EQ(fault_of("/dev/null"), "it is not JSON");
  EXPECT_EQ(fault_of("/dev/zero"), "it is too large");
}

TEST(ProfileFile, NamesOfLibraries) {
  EXPECT_EQ(model::library_name("MPICH Version:      5.0.2\nMPICH Release date: x"), "MPICH 5.0.2");
  EXPECT_EQ(model::library_name("Open MPI v5.0.11, package: Open MPI root@x"), "Open MPI 5.0.11");
  EXPECT_EQ(model::library_name("Some MPI 1\nmore"), "Some MPI 1");
  EXPECT_EQ(model::library_name(""), "");
}

}  // namespace
}  // namespace gapless::tests
