// Loading the plugin that does the GPU work.
#pragma once

#include <string>

#include "device/runtime.hpp"

namespace gapless::device {

/// A loaded plugin, or a sentence saying why there is none.
struct Plugin {
  Runtime* runtime = nullptr;
  std::string why_unavailable;
  void* library = nullptr;  ///< from dlopen
};

/// Loads `path`, or libgapless-cuda.so from the directory of this library when it is empty.
Plugin load_plugin(const std::string& path);

}  // namespace gapless::device
