#include "device/plugin.hpp"

#include <dlfcn.h>

namespace gapless::device {
namespace {

std::string beside_this_library(const char* file) {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&load_plugin), &self) == 0 || self.dli_fname == nullptr) return file;
  const std::string path = self.dli_fname;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? file : path.substr(0, slash + 1) + file;
}

}  // namespace

Plugin load_plugin(const std::string& path) {
  const std::string file = path.empty() ? beside_this_library("libgapless-cuda.so") : path;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return {nullptr, "the GPU plugin could not be loaded: " + std::string(reason != nullptr ? reason : file.c_str())};
  }
  const auto open = reinterpret_cast<decltype(&gapless_device_open)>(dlsym(library, "gapless_device_open"));
  if (open == nullptr) return {nullptr, file + " is not a GPU plugin: it has no gapless_device_open"};
  Runtime* runtime = open(gapless_device_interface_version);
  if (runtime == nullptr) return {nullptr, file + " was built for another version of gapless"};
  if (runtime->device_count() == 0) {
    const char* reason = runtime->last_error();
    return {nullptr, std::string("the plugin \"") + runtime->name() + "\" finds no GPU" +
                         (*reason != '\0' ? std::string(": ") + reason : std::string())};
  }
  return {runtime, {}, library};
}

}  // namespace gapless::device
