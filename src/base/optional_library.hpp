// Libraries that gapless uses where they are there. It is not linked to them.
#pragma once

#include <dlfcn.h>

#include <string>

namespace gapless {

/// Never unloaded.
class OptionalLibrary {
 public:
  /// Takes the one that the process has already, wherever that was found. Else looks for one, where `may_load`.
  explicit OptionalLibrary(const char* soname, bool may_load = true) noexcept
      : soname_(soname), handle_(::dlopen(soname, RTLD_NOW | RTLD_LOCAL | (may_load ? 0 : RTLD_NOLOAD))) {}

  bool is_there() const noexcept { return handle_ != nullptr; }

  /// Null, and false, where the library or that function is not there.
  template <class Function>
  bool find(const char* name, Function& function) noexcept {
    function = reinterpret_cast<Function>(is_there() ? ::dlsym(handle_, name) : nullptr);
    if (function == nullptr) missing_ = name;
    return function != nullptr;
  }

  /// Why something has not been found. Throws std::bad_alloc.
  std::string why_not() const {
    return std::string(soname_) + (is_there() ? std::string(" lacks ") + missing_ : " is not there");
  }

 private:
  const char* soname_;
  void* handle_;
  const char* missing_ = "";  ///< the function that has been looked for in vain last
};

}  // namespace gapless
