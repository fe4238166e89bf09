// A provider of libfabric for tests: tcp under the name "cxi", which reaches the memory of simulated GPUs. As a network
// card does, it moves such memory beside the CPU, which faults where it touches that memory itself.
//
// libfabric loads it from the folder that FI_PROVIDER_PATH names. With GAPLESS_TEST_GPU_PROVIDER=refuses it takes no
// GPU memory, though it has said that it would.
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/providers/fi_prov.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

constexpr const char *own_name = "cxi", *real_name = "tcp";
constexpr auto version = FI_VERSION(1, 0);
constexpr std::uint64_t mode_of_gpus = FI_MR_HMEM;

template <class Function>
Function* symbol(const char* library, const char* name) {
  void* const handle = library != nullptr ? dlopen(library, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  return handle != nullptr ? reinterpret_cast<Function*>(dlsym(handle, name)) : nullptr;
}
template <class Function>
Function* of_libfabric(const char* name) {
  return symbol<Function>("libfabric.so.1", name);
}

/// Where the provider reaches GPU memory; null where the address is no GPU's.
void* reached(const void* address, std::size_t bytes) {
  static auto* const alias =
      symbol<void*(const void*, std::size_t)>(std::getenv("GAPLESS_DEVICE_PLUGIN"), "simulated_device_alias");
  return alias != nullptr ? alias(address, bytes) : nullptr;
}

/// The same description as the real provider knows it.
fi_info* real_info(const fi_info& info) {
  fi_info* const real = of_libfabric<fi_info*(const fi_info*)>("fi_dupinfo")(&info);
  std::free(real->fabric_attr->prov_name);
  real->fabric_attr->prov_name = strdup(real_name);
  real->caps &= ~FI_HMEM;
  real->domain_attr->caps &= ~FI_HMEM;
  // Without addresses in keys, a region may lie elsewhere than it is said to.
  real->domain_attr->mr_mode &= ~static_cast<int>(mode_of_gpus | FI_MR_VIRT_ADDR);
  return real;
}

void free_info(fi_info* info) { of_libfabric<void(fi_info*)>("fi_freeinfo")(info); }

// One process has one fabric, one domain and one endpoint of this.
fi_ops_fabric fabric_operations;
fi_ops_domain domain_operations;
fi_ops_mr memory_operations;
fi_ops_rma rma_operations;
decltype(fi_ops_fabric::domain) real_domain;
decltype(fi_ops_domain::endpoint) real_endpoint;
decltype(fi_ops_mr::reg) real_register;
decltype(fi_ops_mr::regattr) real_register_as;
decltype(fi_ops_rma::writemsg) real_write;
decltype(fi_ops_rma::readmsg) real_read;

/// The object's table becomes a copy with other functions in it.
template <class Table>
Table* replaced(const Table& real, Table& copy) {
  std::memcpy(&copy, &real, std::min(real.size, sizeof copy));
  copy.size = std::min(real.size, sizeof copy);
  return &copy;
}

template <auto& real>
ssize_t move(fid_ep* endpoint, const fi_msg_rma* message, std::uint64_t flags) {
  std::array<iovec, 64> pieces{};
  for (std::size_t i = 0; i < message->iov_count; ++i) {
    pieces[i] = message->msg_iov[i];
    if (void* const there = reached(pieces[i].iov_base, pieces[i].iov_len)) pieces[i].iov_base = there;
  }
  fi_msg_rma moved = *message;
  moved.msg_iov = pieces.data();
  return real(endpoint, &moved, flags);
}

int register_host(fid* domain, const void* memory, std::size_t bytes, std::uint64_t access, std::uint64_t offset,
                  std::uint64_t key, std::uint64_t flags, fid_mr** region, void* context) {
  if (reached(memory, bytes) != nullptr) return -FI_EFAULT;
  return real_register(domain, memory, bytes, access, offset, key, flags, region, context);
}

int register_as(fid* domain, const fi_mr_attr* attributes, std::uint64_t flags, fid_mr** region) {
  const char* const wish = std::getenv("GAPLESS_TEST_GPU_PROVIDER");
  const bool refuses = wish != nullptr && std::string_view(wish) == "refuses";
  iovec all = attributes->mr_iov[0];
  all.iov_base = reached(all.iov_base, all.iov_len);
  if (attributes->iface != FI_HMEM_CUDA || all.iov_base == nullptr || refuses) return -FI_EOPNOTSUPP;
  fi_mr_attr real = *attributes;
  real.mr_iov = &all;
  real.iface = FI_HMEM_SYSTEM;
  real.device.reserved = 0;
  return real_register_as(domain, &real, flags, region);
}

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) {
  fi_info* const real = real_info(*info);
  const int error = real_endpoint(domain, real, endpoint, context);
  free_info(real);
  if (error != 0) return error;
  real_write = (*endpoint)->rma->writemsg;
  real_read = (*endpoint)->rma->readmsg;
  (*endpoint)->rma = replaced(*(*endpoint)->rma, rma_operations);
  rma_operations.writemsg = move<real_write>;
  rma_operations.readmsg = move<real_read>;
  return 0;
}

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
  fi_info* const real = real_info(*info);
  const int error = real_domain(fabric, real, domain, context);
  free_info(real);
  if (error != 0) return error;
  real_endpoint = (*domain)->ops->endpoint;
  real_register = (*domain)->mr->reg;
  real_register_as = (*domain)->mr->regattr;
  (*domain)->ops = replaced(*(*domain)->ops, domain_operations);
  (*domain)->mr = replaced(*(*domain)->mr, memory_operations);
  domain_operations.endpoint = open_endpoint;
  memory_operations.reg = register_host;
  memory_operations.regattr = register_as;
  return 0;
}

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  fi_fabric_attr real = *attributes;
  real.prov_name = const_cast<char*>(real_name);
  const int error = of_libfabric<int(fi_fabric_attr*, fid_fabric**, void*)>("fi_fabric")(&real, fabric, context);
  if (error != 0) return error;
  real_domain = (*fabric)->ops->domain;
  (*fabric)->ops = replaced(*(*fabric)->ops, fabric_operations);
  fabric_operations.domain = open_domain;
  return 0;
}

int get_info(std::uint32_t api, const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
             fi_info** info) {
  // Nobody gets it who does not ask for it.
  const bool is_wanted = hints != nullptr && hints->fabric_attr != nullptr &&
                         hints->fabric_attr->prov_name != nullptr &&
                         std::strcmp(hints->fabric_attr->prov_name, own_name) == 0;
  if (!is_wanted) return -FI_ENODATA;
  fi_info* const real = real_info(*hints);
  const int error =
      of_libfabric<int(std::uint32_t, const char*, const char*, std::uint64_t, const fi_info*, fi_info**)>(
          "fi_getinfo")(api, node, service, flags, real, info);
  free_info(real);
  for (fi_info* each = error == 0 ? *info : nullptr; each != nullptr; each = each->next) {
    std::free(each->fabric_attr->prov_name);
    each->fabric_attr->prov_name = nullptr;  // libfabric enters the provider's own
    each->caps |= hints->caps & FI_HMEM;
    each->domain_attr->mr_mode |= hints->domain_attr->mr_mode & static_cast<int>(mode_of_gpus);
  }
  return error;
}

fi_provider provider = {.version = version,
                        .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
                        .context = {},
                        .name = own_name,
                        .getinfo = get_info,
                        .fabric = open_fabric,
                        .cleanup = [] {}};

}  // namespace

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini() { return &provider; }
