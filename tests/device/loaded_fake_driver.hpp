// The driver that is none (fake_driver.c), loaded from where FAKE_DRIVER says: before core looks for a driver.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <stdexcept>

extern "C" {
#include "fake_driver.h"
}

namespace gapless::tests {

struct LoadedFakeDriver {
  void* handle = dlopen(std::getenv("FAKE_DRIVER"), RTLD_NOW);
  const link_map* library = nullptr;
  const fake_driver* functions = nullptr;

  LoadedFakeDriver() {
    if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &library) != 0) throw std::runtime_error(dlerror());
    functions = static_cast<const fake_driver*>(dlsym(handle, "fake_driver"));
  }
};

inline const LoadedFakeDriver& loaded_fake_driver() {
  static const LoadedFakeDriver loaded;
  return loaded;
}

inline const fake_driver& driver() { return *loaded_fake_driver().functions; }

}  // namespace gapless::tests
