#include "transfer/choice/profiles.hpp"

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.hpp"
#include "model/profile_file.hpp"
#include "transfer/choice/choose.hpp"

namespace gapless::transfer {
namespace {

constexpr std::string_view none = "built-in";

struct File {
  std::unique_ptr<model::Measured> measured;
  std::vector<model::MeasuredFabric> fabrics;
};

File read(const std::string& path, const std::string& library) {
  const model::Machine machine{library, model::gpu_name()};
  return {model::read_profile(path, machine, scheme_names()), model::read_fabrics(path, machine)};
}

// Never destroyed: a fabric may be opened by a static object.
std::vector<model::MeasuredFabric>& fabrics() noexcept {
  static auto& all = *new std::vector<model::MeasuredFabric>;
  return all;
}

/// Null where the user has no profile, or none that can be used.
const model::Measured* find_measured(std::string_view version_text) {
  const std::string library = model::library_name(version_text), path = profile_path(library);
  const bool is_named = settings().profile.front() != '\0';
  if (path.empty() || path == none || (!is_named && access(path.c_str(), F_OK) != 0)) return nullptr;
  try {
    File file = read(path, library);
    fabrics() = std::move(file.fabrics);
    return file.measured.release();
  } catch (const model::ProfileError& error) {
    warn_about_profile(path, error.what());
    return nullptr;
  }
}

std::size_t write(const char* text, char* buffer, std::size_t size) noexcept {
  return static_cast<std::size_t>(std::snprintf(buffer, size, "%s", text));
}

}  // namespace

void use_profile(const model::HostProfile& built_in, std::string_view version_text) noexcept {
  model::change_profile().host = built_in;
  try {
    model::change_profile().measured = find_measured(version_text);
  } catch (const std::exception&) {
    // No memory, or a file system that fails: the built-in profile serves.
  }
}

std::span<const model::MeasuredFabric> measured_fabrics() noexcept { return fabrics(); }

const model::Measured* named_profile(std::string_view library) noexcept {
  try {
    const std::string path = settings().profile.data();
    if (path.empty() || path == none) return nullptr;
    static const std::unique_ptr<const model::Measured> named = read(path, "").measured;
    return named->library.starts_with(library) ? named.get() : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace gapless::transfer

namespace {

/// Writes the text that `make` returns; none where there is no memory for the text.
template <class Make>
std::size_t write_made(char* buffer, std::size_t size, Make make) noexcept {
  try {
    return gapless::transfer::write(make().c_str(), buffer, size);
  } catch (const std::exception&) {
    return gapless::transfer::write("", buffer, size);
  }
}

}  // namespace

std::size_t gapless_profile_library(const char* version_text, char* buffer, std::size_t size) {
  return write_made(buffer, size, [&] { return gapless::model::library_name(version_text); });
}

std::size_t gapless_profile_path(const char* library, char* buffer, std::size_t size) {
  return write_made(buffer, size, [&] { return gapless::profile_path(library); });
}

std::size_t gapless_profile_fault(const char* path, const char* library, char* buffer, std::size_t size) {
  try {
    gapless::transfer::read(path, library);
    return gapless::transfer::write("", buffer, size);
  } catch (const std::exception& error) {
    return gapless::transfer::write(error.what(), buffer, size);
  }
}
