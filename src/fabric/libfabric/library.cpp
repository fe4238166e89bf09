#include "fabric/libfabric/library.hpp"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <cstring>

#include "base/optional_library.hpp"

namespace gapless::fabric::libfabric {
namespace {

constexpr std::uint32_t header_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

Library load(std::string& why) {
  OptionalLibrary file("libfabric.so.1");
  Library library;
  if (!file.find("fi_getinfo", library.getinfo) || !file.find("fi_freeinfo", library.freeinfo) ||
      !file.find("fi_dupinfo", library.dupinfo) || !file.find("fi_fabric", library.fabric) ||
      !file.find("fi_version", library.version)) {
    why = file.why_not();
    return {};
  }
  if (FI_VERSION_LT(library.version(), header_version)) {
    why = "libfabric.so.1 is older than the headers that gapless was built with";
    return {};
  }
  return library;
}

/// All that a provider may ask of us, and all that we ask of it.
void ask(fi_info& hints) noexcept {
  hints.caps = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  hints.mode = FI_CONTEXT | FI_CONTEXT2;
  hints.ep_attr->type = FI_EP_RDM;
  hints.domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints.domain_attr->threading = FI_THREAD_DOMAIN;
  hints.domain_attr->cq_data_size = 4;
  hints.domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints.tx_attr->op_flags = FI_DELIVERY_COMPLETE;
}

/// Null if there is none.
Info first_of(const Library& library, fi_info& hints, const std::string& provider) noexcept {
  fi_info* found = nullptr;
  // Freed with the hints.
  if (!provider.empty() && hints.fabric_attr->prov_name == nullptr)
    hints.fabric_attr->prov_name = strdup(provider.c_str());
  const int error = library.getinfo(header_version, nullptr, nullptr, 0, &hints, &found);
  const Info list(error == 0 ? found : nullptr, {&library});
  return {list != nullptr ? library.dupinfo(list.get()) : nullptr, {&library}};
}

}  // namespace

const Library* library(std::string& why) noexcept {
  static std::string why_not;
  static const Library loaded = load(why_not);
  if (loaded.getinfo != nullptr) return &loaded;
  why = why_not;
  return nullptr;
}

Info find_provider(const Library& library, const std::string& provider, bool with_gpus, std::string& why) noexcept {
  Info hints(library.dupinfo(nullptr), {&library});
  if (hints == nullptr) {
    why = "no memory";
    return hints;
  }
  ask(*hints);
  Info found = first_of(library, *hints, provider);
  if (found == nullptr) {
    why = "libfabric has no provider " + (provider.empty() ? "with remote memory access" : provider);
    return found;
  }
  if (!with_gpus) return found;
  // The same one: processes with and without a GPU have to reach each other.
  hints->caps |= FI_HMEM;
  hints->domain_attr->mr_mode |= FI_MR_HMEM;
  Info for_gpus = first_of(library, *hints, found->fabric_attr->prov_name);
  const bool is_same = for_gpus != nullptr && for_gpus->addr_format == found->addr_format &&
                       std::strcmp(for_gpus->domain_attr->name, found->domain_attr->name) == 0;
  return is_same ? std::move(for_gpus) : std::move(found);
}

}  // namespace gapless::fabric::libfabric
