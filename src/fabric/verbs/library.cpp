#include "fabric/verbs/library.hpp"

#include <dlfcn.h>

namespace gapless::fabric::verbs {
namespace {

constexpr const char* soname = "libibverbs.so.1";

template <class Function>
bool find(void* handle, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

bool find_all(void* handle, Library& library) noexcept {
  return find(handle, "ibv_get_device_list", library.get_device_list) &&
         find(handle, "ibv_free_device_list", library.free_device_list) &&
         find(handle, "ibv_get_device_name", library.get_device_name) &&
         find(handle, "ibv_open_device", library.open_device) &&
         find(handle, "ibv_close_device", library.close_device) &&
         find(handle, "ibv_query_device", library.query_device) && find(handle, "ibv_query_port", library.query_port) &&
         find(handle, "ibv_query_gid", library.query_gid) && find(handle, "ibv_alloc_pd", library.alloc_pd) &&
         find(handle, "ibv_dealloc_pd", library.dealloc_pd) && find(handle, "ibv_reg_mr", library.reg_mr) &&
         find(handle, "ibv_dereg_mr", library.dereg_mr) && find(handle, "ibv_create_cq", library.create_cq) &&
         find(handle, "ibv_destroy_cq", library.destroy_cq) && find(handle, "ibv_create_qp", library.create_qp) &&
         find(handle, "ibv_modify_qp", library.modify_qp) && find(handle, "ibv_destroy_qp", library.destroy_qp);
}

Library load() noexcept {
  Library library;
  void* handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr || !find_all(handle, library)) return {};
  static_cast<void>(find(handle, "ibv_reg_dmabuf_mr", library.reg_dmabuf_mr));
  return library;
}

}  // namespace

const Library* library(std::string& why) noexcept {
  static const Library loaded = load();
  if (loaded.destroy_qp != nullptr) return &loaded;
  why = "libibverbs.so.1 is not there, or lacks functions";
  return nullptr;
}

}  // namespace gapless::fabric::verbs
