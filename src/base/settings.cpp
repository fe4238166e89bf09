// One table of variables: a row's type of field says how its value is read.
#include "base/settings.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>

namespace gapless {
namespace {

/// Values that are read by others, and only checked here.
enum class Elsewhere { word, path };

using Field = std::variant<bool Settings::*, std::string_view Settings::*, std::optional<std::size_t> Settings::*,
                           std::array<char, 4096> Settings::*, Elsewhere>;

struct Variable {
  const char* name;
  const char* accepted;  ///< as documentation lists them
  Field field;
};

// tests/python/test_environment.py compares the rows with the documented ones.
constexpr Variable variables[] = {
    {"GAPLESS", "0, 1", Elsewhere::word},          // the shim
    {"GAPLESS_VERBOSE", "0, 1", Elsewhere::word},  // the shim
    {"GAPLESS_STATISTICS", "0, 1", &Settings::statistics},
    {"GAPLESS_ALL_RANKS", "0, 1", &Settings::all_ranks},
    {"GAPLESS_HEADERS", "0, 1", &Settings::headers},
    {"GAPLESS_PULL", "0, 1", &Settings::pull},
    {"GAPLESS_IPC", "0, 1", &Settings::ipc},
    {"GAPLESS_PULL_PATIENCE", "a number of microseconds", &Settings::pull_patience_us},
    {"GAPLESS_SCHEME",
     "native, packed, oneshot, staged, pipelined, device, slots, direct, fabric-pipelined, gather-write, "
     "scatter-read, multi-write",
     &Settings::scheme},
    {"GAPLESS_PROFILE", "a path, or built-in", &Settings::profile},
    {"GAPLESS_MODEL", "corrected, fixed", &Settings::model},
    {"GAPLESS_REPORT", "a path", &Settings::report},
    {"GAPLESS_HOST_ENGINE", "avx512, avx2, scalar", &Settings::host_engine},
    {"GAPLESS_GPU", "0, 1", &Settings::gpu},
    {"GAPLESS_GPU_AWARE", "0, 1, auto", &Settings::gpu_aware},
    {"GAPLESS_RESIDENT", "0, 1, ready", &Settings::resident},
    {"GAPLESS_GPU_REGIME", "nest, shifted, sectors, transpose, interleaved, segments, tree", &Settings::gpu_regime},
    {"GAPLESS_GPU_ENGINE", "kernel, ahead, dma", &Settings::gpu_engine},
    {"GAPLESS_GPU_LAUNCH", "graph, kernel", &Settings::gpu_launch},
    {"GAPLESS_POOL_BYTES", "a number of bytes", &Settings::pool_bytes},
    {"GAPLESS_FABRIC", "off, tcp, shm, verbs, efa, cxi", &Settings::fabric},
    {"GAPLESS_FABRIC_NEIGHBOURS", "0, 1", &Settings::fabric_neighbours},
    {"GAPLESS_FABRIC_PATIENCE", "a number of milliseconds", &Settings::fabric_patience_ms},
    {"GAPLESS_DEVICE_PLUGIN", "a path", &Settings::device_plugin},
    {"GAPLESS_LIBRARY_DIRECTORY", "a directory", Elsewhere::path},  // the gapless command
};

constexpr std::string_view our_prefix = "GAPLESS_", prefix_of_tests = "GAPLESS_TEST_";

/// What modules of clusters, and CMake, call an installation behind our prefix. Each rank would complain.
constexpr std::string_view ends_of_installations[] = {"BASE", "DIR", "HOME", "INC", "LIB", "PREFIX", "ROOT", "VERSION"};

/// The one of the accepted words that the value is, or an empty one. It lies in the table, so it stays.
std::string_view word_of(std::string_view accepted, std::string_view value) noexcept {
  constexpr std::string_view separator = ", ";
  while (!accepted.empty()) {
    const std::string_view word = accepted.substr(0, accepted.find(separator));
    if (word == value) return word;
    accepted.remove_prefix(std::min(word.size() + separator.size(), accepted.size()));
  }
  return {};
}

/// Puts a value into its field. False, and the field is as it was, if the value is not accepted.
struct Taker {
  std::string_view accepted, value;
  Settings& settings;

  bool operator()(bool Settings::*flag) const noexcept {
    const std::string_view word = word_of(accepted, value);
    if (!word.empty()) settings.*flag = word == "1";
    return !word.empty();
  }

  bool operator()(std::string_view Settings::*word) const noexcept {
    settings.*word = word_of(accepted, value);
    return !(settings.*word).empty();
  }

  bool operator()(std::optional<std::size_t> Settings::*number) const noexcept {
    std::size_t read = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), read);
    if (error != std::errc() || end != value.data() + value.size()) return false;
    settings.*number = read;
    return true;
  }

  bool operator()(std::array<char, 4096> Settings::*path) const noexcept {
    if (value.size() >= (settings.*path).size()) return false;
    *std::copy(value.begin(), value.end(), (settings.*path).begin()) = '\0';
    return true;
  }

  bool operator()(Elsewhere kind) const noexcept {
    return kind == Elsewhere::path || !word_of(accepted, value).empty();
  }
};

char upper(char c) noexcept { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

/// The letters that have to be put in, taken out or exchanged to make one name of the other (Levenshtein). Small and
/// capital letters are alike.
std::size_t edit_distance(std::string_view a, std::string_view b) noexcept {
  std::array<std::size_t, 65> row;  // of the distances of the beginning of a from every beginning of b
  a = a.substr(0, row.size() - 1);
  b = b.substr(0, row.size() - 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t exchanged = diagonal + (upper(a[i]) == upper(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({exchanged, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

/// The variable that the name is a slip of; null if it is like none.
const char* nearest_name(std::string_view name) noexcept {
  constexpr std::size_t most_slips = 2;
  const auto distance = [&](const Variable& v) { return edit_distance(name, v.name); };
  const Variable& nearest = *std::ranges::min_element(variables, {}, distance);
  return distance(nearest) <= most_slips ? nearest.name : nullptr;
}

bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

/// Text of the environment in one line of bearable length.
struct Printable {
  std::array<char, 80> text{};

  explicit Printable(std::string_view from) noexcept {
    const std::size_t length = std::min(from.size(), text.size() - 1);
    std::replace_copy_if(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(length), text.begin(), is_control,
                         '?');
  }
};

/// Tells about one fault: the sentence is the fault, and the detail behind it.
void tell(FaultSink sink, void* context, std::string_view name, std::string_view value, const char* fault,
          const char* detail) noexcept {
  std::array<char, 160> sentence;
  std::snprintf(sentence.data(), sentence.size(), "%s%s", fault, detail);
  sink(Printable(name).text.data(), Printable(value).text.data(), sentence.data(), context);
}

bool is_variable(std::string_view name) noexcept {
  return std::ranges::any_of(variables, [&](const Variable& v) { return name == v.name; });
}

bool is_of_installation(std::string_view name) noexcept {
  return std::ranges::find(ends_of_installations, name.substr(our_prefix.size())) != std::end(ends_of_installations);
}

void look_for_unknown_names(FaultSink sink, void* context) noexcept {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with(our_prefix) || text.starts_with(prefix_of_tests)) continue;
    const std::size_t end = std::min(text.find('='), text.size());
    const std::string_view name = text.substr(0, end);
    if (is_variable(name) || is_of_installation(name)) continue;
    const std::string_view value = text.substr(std::min(end + 1, text.size()));
    const char* const nearest = nearest_name(name);
    tell(sink, context, name, value, nearest != nullptr ? "no such variable; the nearest is " : "no such variable",
         nearest != nullptr ? nearest : "");
  }
}

/// Of profiles, as the XDG Base Directory Specification has it; the empty string where the user has no home.
std::string directory_of_profiles() {
  const auto value_of = [](const char* name) {
    const char* value = ::secure_getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  const std::string configuration = value_of("XDG_CONFIG_HOME"), home = value_of("HOME");
  if (configuration.starts_with('/')) return configuration + "/gapless/";
  return home.starts_with('/') ? home + "/.config/gapless/" : "";
}

void warn(const char* name, const char* value, const char* fault, void*) {
  std::fprintf(stderr, "gapless: %s=%s: %s\n", name, value, fault);
}

/// `variable` is what names the file, with a colon behind it, or empty.
void warn_about_file(const char* variable, const std::string& path, const char* fault) {
  // The fault may quote the file.
  std::string line = std::string("gapless: ") + variable + path + ": ignored; " + fault;
  std::ranges::replace_if(line, is_control, '?');
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace

Settings read_settings(FaultSink sink, void* context) noexcept {
  Settings result;
  for (const Variable& variable : variables) {
    // Who starts a program that has more rights than they have says neither what it loads nor where it writes.
    const char* value = ::secure_getenv(variable.name);
    if (value == nullptr || *value == '\0') continue;
    if (!std::visit(Taker{variable.accepted, value, result}, variable.field)) {
      tell(sink, context, variable.name, value, "ignored; accepted: ", variable.accepted);
    }
  }
  look_for_unknown_names(sink, context);
  return result;
}

const Settings& settings() noexcept {
  static const Settings result = read_settings(warn, nullptr);
  return result;
}

std::string profile_path(std::string_view library) {
  if (settings().profile.front() != '\0') return settings().profile.data();
  const std::string directory = directory_of_profiles();
  if (directory.empty()) return "";
  std::string name(library);
  for (char& c : name) {
    const bool is_upper = c >= 'A' && c <= 'Z', is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
    c = is_upper ? static_cast<char>(c - 'A' + 'a') : is_plain ? c : '-';
  }
  return directory + name + ".json";
}

void warn_about_report(const std::string& path, const char* fault) { warn_about_file("GAPLESS_REPORT: ", path, fault); }

void warn_about_profile(const std::string& path, const char* fault) {
  warn_about_file(settings().profile.front() != '\0' ? "GAPLESS_PROFILE: " : "", path, fault);
}

void warn_about_fabric(const std::string& fault) {
  warn("GAPLESS_FABRIC", std::string(settings().fabric).c_str(), ("ignored; " + fault).c_str(), nullptr);
}

}  // namespace gapless

std::size_t gapless_settings_faults(char* buffer, std::size_t size) {
  struct Text {
    char* buffer;
    std::size_t size, length;
  } text{buffer, size, 0};
  const auto append = [](const char* name, const char*, const char* fault, void* context) {
    auto& [begin, room, length] = *static_cast<Text*>(context);
    const std::size_t used = std::min(length, room);
    length += static_cast<std::size_t>(std::snprintf(begin + used, room - used, "%s=%s\n", name, fault));
  };
  gapless::read_settings(append, &text);
  return text.length;
}
