#include "model/profile_file.hpp"

#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace gapless::model {
namespace {

using nlohmann::json;

/// Far above what a calibration writes; far below what would hold up a program's start.
constexpr std::size_t most_bytes_of_file = 4 << 20;
constexpr std::size_t most_cells = 1 << 16;

const json& member(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) throw ProfileError(std::string("it has no \"") + name + '"');
  return *found;
}

std::string text_of(const json& object, const char* name) {
  const json& value = member(object, name);
  if (!value.is_string()) throw ProfileError(std::string("its \"") + name + "\" is no text");
  return value.get<std::string>();
}

template <std::size_t count>
std::size_t index_of(const json& table, const char* what, const std::array<const char*, count>& names) {
  const std::string name = text_of(table, what);
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw ProfileError("it has an unknown " + std::string(what) + " \"" + name + '"');
  return static_cast<std::size_t>(found - names.begin());
}

std::vector<double> axis_of(const json& table, const char* name) {
  const json& list = member(table, name);
  if (!list.is_array()) throw ProfileError(std::string("its \"") + name + "\" is no list");
  std::vector<double> axis;
  for (const json& value : list) {
    if (!value.is_number()) throw ProfileError(std::string("its \"") + name + "\" has something that is no number");
    axis.push_back(value.get<double>());
  }
  return axis;
}

/// Appends the times of nested lists, of which the lengths of `axes` are asked.
void append(const json& value, std::span<const std::vector<double>> axes, std::vector<double>& ns) {
  if (axes.empty()) {
    if (!value.is_number() && !value.is_null()) throw ProfileError("it has a time that is no number");
    ns.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
    return;
  }
  if (!value.is_array() || value.size() != axes.front().size()) {
    throw ProfileError("its \"ns\" has not as many times as the axes have points");
  }
  for (const json& inner : value) append(inner, axes.subspan(1), ns);
}

Table table_of(const json& table) {
  std::array axes = {axis_of(table, "bytes"), axis_of(table, "block"), axis_of(table, "row_blocks")};
  if (axes[0].size() > most_cells || axes[1].size() > most_cells || axes[2].size() > most_cells ||
      axes[0].size() * axes[1].size() * axes[2].size() > most_cells) {
    throw ProfileError("it has a table that is too large");
  }
  std::vector<double> ns;
  append(member(table, "ns"), axes, ns);
  try {
    return Table(std::move(axes), std::move(ns));
  } catch (const std::invalid_argument& error) {
    throw ProfileError(std::string("of a table ") + error.what());
  }
}

double start_of(const json& table) {
  const json& value = member(table, "ns");
  const double ns = value.is_number() ? value.get<double>() : -1;
  if (!std::isfinite(ns) || ns < 0) throw ProfileError("it has a start that is no time");
  return ns;
}

void add_table(const json& table, std::span<const char* const> schemes, Measured& measured) {
  if (!table.is_object()) throw ProfileError("one of its tables is none");
  const std::size_t memory = index_of(table, "memory", memory_names);
  const std::size_t pair = index_of(table, "pair", pair_names);
  const std::string scheme = text_of(table, "scheme");
  const auto found = std::ranges::find(schemes, scheme);
  if (found == schemes.end()) return;
  SchemeCosts& costs = measured.costs[memory][pair][static_cast<std::size_t>(found - schemes.begin())];
  constexpr std::array quantities = {"start", "pack", "unpack", "move", "message"};
  const std::size_t quantity = index_of(table, "quantity", quantities);
  if (quantity == 0) {
    costs.start_ns = start_of(table);
    return;
  }
  std::array tables = {&costs.pack, &costs.unpack, &costs.move, &costs.message};
  tables[quantity - 1]->emplace(table_of(table));
}

/// In host memory native and packed are compared with each other, so a profile must have both or neither.
void check_host(const Measured& measured) {
  for (std::size_t pair = 0; pair < pair_names.size(); ++pair) {
    const CostsByScheme& costs = measured.of(Memory::host, static_cast<Pair>(pair));
    if (costs[native_scheme].is_known() != costs[packed_scheme].is_known()) {
      throw ProfileError("of host memory it has not both native and packed");
    }
  }
}

/// Slots carry host memory within a node, and are compared with native and packed; direct carries GPU memory within a
/// node.
void check_by_header(const Measured& measured) {
  for (std::size_t i = 0; i < pair_names.size(); ++i) {
    const auto pair = static_cast<Pair>(i);
    const CostsByScheme& host = measured.of(Memory::host, pair);
    const CostsByScheme& gpu = measured.of(Memory::gpu, pair);
    const bool is_of_gpus = pair == Pair::same_gpu || pair == Pair::peer_gpu;
    if (gpu[slots_scheme].is_known() || (host[slots_scheme].is_known() && pair != Pair::same_node))
      throw ProfileError("it has slots of other memory than that of a node's hosts");
    if (host[direct_scheme].is_known() || (gpu[direct_scheme].is_known() && !is_of_gpus))
      throw ProfileError("it has direct of other memory than that of a node's GPUs");
    if (host[slots_scheme].is_known() && !host[native_scheme].is_known())
      throw ProfileError("of host memory it has slots, and not native and packed");
  }
}

void check_machine(const json& profile, const Machine& machine) {
  const json& version = member(profile, "gapless_profile");
  if (!version.is_number_integer()) throw ProfileError("its version is no number");
  if (version != profile_version) {
    throw ProfileError("its version is " + version.dump() + ", and not " + std::to_string(profile_version));
  }
  const std::string library = text_of(profile, "library");
  if (!machine.library.empty() && library != machine.library) {
    throw ProfileError("it is of " + library + ", and this is " + machine.library);
  }
  const json& gpu = member(profile, "gpu");
  if (gpu.is_null()) return;
  if (const std::string name = text_of(profile, "gpu"); name != machine.gpu) {
    throw ProfileError("it is of a " + name + ", and " +
                       (machine.gpu.empty() ? "there is none" : "this is a " + machine.gpu));
  }
}

double cost_of(const json& object, const char* name, bool may_be_nothing = false) {
  const json& value = member(object, name);
  const double ns = value.is_number() ? value.get<double>() : -1;
  if (!std::isfinite(ns) || ns < 0 || (ns == 0 && !may_be_nothing))
    throw ProfileError(std::string("its \"") + name + "\" is no time");
  return ns;
}

json checked_profile(std::string_view text, const Machine& machine) {
  json profile = json::parse(text);
  if (!profile.is_object()) throw ProfileError("it is no profile");
  check_machine(profile, machine);
  return profile;
}

/// Reads no more than a limit and does not wait, so that it comes to an end whatever the path names.
std::string text_of_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) throw ProfileError("it cannot be opened");
  std::string text(most_bytes_of_file + 1, '\0');
  std::size_t length = 0;
  ssize_t got = 1;
  while (got > 0 && length < text.size()) {
    got = read(file, text.data() + length, text.size() - length);
    if (got > 0) length += static_cast<std::size_t>(got);
  }
  close(file);
  if (got < 0) throw ProfileError("it cannot be read");
  if (length > most_bytes_of_file) throw ProfileError("it is too large");
  text.resize(length);
  return text;
}

}  // namespace

std::unique_ptr<Measured> parse_profile(std::string_view text, const Machine& machine,
                                        std::span<const char* const> schemes) {
  try {
    const json profile = checked_profile(text, machine);
    const json& tables = member(profile, "tables");
    if (!tables.is_array()) throw ProfileError("its \"tables\" is no list");
    auto measured = std::make_unique<Measured>();
    measured->library = text_of(profile, "library");
    for (const json& table : tables) add_table(table, schemes, *measured);
    check_host(*measured);
    check_by_header(*measured);
    return measured;
  } catch (const json::exception&) {
    throw ProfileError("it is not JSON");
  }
}

std::vector<MeasuredFabric> parse_fabrics(std::string_view text, const Machine& machine) {
  try {
    const json profile = checked_profile(text, machine);
    std::vector<MeasuredFabric> measured;
    const auto fabrics = profile.find("fabrics");
    if (fabrics == profile.end()) return measured;
    if (!fabrics->is_array()) throw ProfileError("its \"fabrics\" is no list");
    for (const json& each : *fabrics) {
      if (!each.is_object()) throw ProfileError("one of its fabrics is none");
      const auto pair = static_cast<Pair>(index_of(each, "pair", pair_names));
      measured.push_back({text_of(each, "fabric"), pair, cost_of(each, "operation_ns"), cost_of(each, "byte_ns"),
                          cost_of(each, "notification_ns"), cost_of(each, "copied_byte_ns"),
                          cost_of(each, "overlap", true), cost_of(each, "handshake_ns", true)});
    }
    return measured;
  } catch (const json::exception&) {
    throw ProfileError("it is not JSON");
  }
}

std::vector<MeasuredFabric> read_fabrics(const std::string& path, const Machine& machine) {
  return parse_fabrics(text_of_file(path), machine);
}

std::unique_ptr<Measured> read_profile(const std::string& path, const Machine& machine,
                                       std::span<const char* const> schemes) {
  auto measured = parse_profile(text_of_file(path), machine, schemes);
  measured->source = path;
  return measured;
}

std::string library_name(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  text = text.substr(0, text.find_first_of("\r\n,"));
  const auto word_at = [&](std::size_t place) {
    const std::size_t begin = std::min(text.find_first_not_of(blanks, place), text.size());
    return std::string(text.substr(begin, text.find_first_of(blanks, begin) - begin));
  };
  constexpr std::string_view open_mpi = "Open MPI v", mpich = "MPICH Version:";
  if (text.starts_with(open_mpi)) return "Open MPI " + word_at(open_mpi.size());
  if (text.starts_with(mpich)) return "MPICH " + word_at(mpich.size());
  return std::string(text);
}

std::string gpu_name() {
  // The driver's own list; asking CUDA would make a context before the program has chosen its GPU.
  glob_t found{};
  std::string first;
  if (glob("/proc/driver/nvidia/gpus/*/information", 0, nullptr, &found) == 0) first = found.gl_pathv[0];
  globfree(&found);
  constexpr std::string_view key = "Model:";
  std::ifstream information(first);
  for (std::string line; std::getline(information, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace gapless::model
