// The environment variables of gapless. All are read when the first of them is needed, once, and whatever is wrong with
// them is said then, one line each on stderr. What they mean is documented in python/gapless/environment.py.
//
// The shim reads GAPLESS and GAPLESS_VERBOSE itself, because it decides by them whether this library is loaded at all.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gapless {

/// One field a variable. A variable that is not set, is empty, or has a value that is not accepted leaves its field as
/// it is here. A word is one of the accepted ones, or empty.
struct Settings {
  bool gpu = true;                                ///< GAPLESS_GPU
  bool statistics = false;                        ///< GAPLESS_STATISTICS
  bool all_ranks = false;                         ///< GAPLESS_ALL_RANKS
  bool headers = true;                            ///< GAPLESS_HEADERS
  bool pull = true;                               ///< GAPLESS_PULL
  bool ipc = true;                                ///< GAPLESS_IPC
  std::optional<std::size_t> pull_patience_us;    ///< GAPLESS_PULL_PATIENCE
  std::string_view scheme;                        ///< GAPLESS_SCHEME
  std::string_view host_engine;                   ///< GAPLESS_HOST_ENGINE
  std::string_view gpu_aware;                     ///< GAPLESS_GPU_AWARE
  std::string_view resident;                      ///< GAPLESS_RESIDENT
  std::string_view gpu_regime;                    ///< GAPLESS_GPU_REGIME
  std::string_view gpu_engine;                    ///< GAPLESS_GPU_ENGINE
  std::string_view gpu_launch;                    ///< GAPLESS_GPU_LAUNCH
  std::optional<std::size_t> pool_bytes;          ///< GAPLESS_POOL_BYTES
  std::string_view fabric;                        ///< GAPLESS_FABRIC
  bool fabric_neighbours = false;                 ///< GAPLESS_FABRIC_NEIGHBOURS
  std::optional<std::size_t> fabric_patience_ms;  ///< GAPLESS_FABRIC_PATIENCE
  std::string_view model;                         ///< GAPLESS_MODEL
  std::array<char, 4096> profile{};               ///< GAPLESS_PROFILE: a path, the word built-in, or the empty string
  std::array<char, 4096> report{};                ///< GAPLESS_REPORT: a path, or the empty string
  std::array<char, 4096> device_plugin{};         ///< GAPLESS_DEVICE_PLUGIN: a path, or the empty string
};

/// What this process was started with. Thread-safe; there until the process has ended.
const Settings& settings() noexcept;

/// Where the profile of an MPI library of that name is looked for: GAPLESS_PROFILE, else a file of the library's name
/// among the user's configuration; empty where there is none of these. Throws std::bad_alloc.
std::string profile_path(std::string_view library);

// One line on stderr each. They throw std::bad_alloc.

/// Why the report cannot be written to that file.
void warn_about_report(const std::string& path, const char* fault);
/// Why the profile in that file is not used.
void warn_about_profile(const std::string& path, const char* fault);
/// Why the fabric that is asked for cannot be had.
void warn_about_fabric(const std::string& fault);

/// Told of one variable that is wrong: its name and value, as far as they can be printed, and what is wrong.
using FaultSink = void (*)(const char* name, const char* value, const char* fault, void* context);

/// Reads the environment as it is now, and tells `sink` about unknown values, and about names that begin with GAPLESS_
/// and are no variable; those that begin with GAPLESS_TEST_ belong to tests.
Settings read_settings(FaultSink sink, void* context) noexcept;

}  // namespace gapless

/// For `gapless info`: writes lines "name=fault" about the environment as it is now. Returns the length of the whole
/// text, like snprintf.
extern "C" std::size_t gapless_settings_faults(char* buffer, std::size_t size);
