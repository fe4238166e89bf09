// The profile of a program: the built-in profile of the program's MPI library, and the profile file measured with that
// library.
#pragma once

#include <span>
#include <string_view>

#include "model/fabric.hpp"
#include "model/model.hpp"

namespace gapless::transfer {

/// Sets model::profile(), before any message: to `built_in`, with the tables of the profile file of the library with
/// that version text. A file that cannot be used is ignored, with one line on stderr.
void use_profile(const model::HostProfile& built_in, std::string_view version_text) noexcept;

/// What the profile file says of fabrics. Does not change after use_profile().
std::span<const model::MeasuredFabric> measured_fabrics() noexcept;

/// The tables of the file that GAPLESS_PROFILE names, if that file is of the library, in any version; else null. For
/// explanations.
const model::Measured* named_profile(std::string_view library) noexcept;

}  // namespace gapless::transfer

extern "C" {

/// For the gapless command. A library's name, from its version text, and what is wrong with a profile file for that
/// library and this machine, the empty string if nothing is. Both return the length of the text, like snprintf.
std::size_t gapless_profile_library(const char* version_text, char* buffer, std::size_t size);
std::size_t gapless_profile_fault(const char* path, const char* library, char* buffer, std::size_t size);
/// The path where the profile of a library is looked for.
std::size_t gapless_profile_path(const char* library, char* buffer, std::size_t size);
}
