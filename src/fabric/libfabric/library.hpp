// libfabric's functions, found at run time. All others are reached through what these return.
#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <string>

namespace gapless::fabric::libfabric {

struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_version) version = nullptr;
};

/// Null if there is none, or one older than the headers; `why` says which. Thread-safe. Never unloaded.
const Library* library(std::string& why) noexcept;

/// A description of a provider, or of what is asked for.
struct FreeInfo {
  const Library* library;
  void operator()(fi_info* info) const noexcept { library->freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// The first description of that provider that gapless can work with; null, and `why`. `with_gpus`: one that takes GPU
/// memory, if the provider has that.
Info find_provider(const Library& library, const std::string& provider, bool with_gpus, std::string& why) noexcept;

}  // namespace gapless::fabric::libfabric
