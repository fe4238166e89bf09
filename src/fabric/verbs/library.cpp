#include "fabric/verbs/library.hpp"

#include "base/optional_library.hpp"

namespace gapless::fabric::verbs {
namespace {

bool find_all(OptionalLibrary& file, Library& library) noexcept {
  return file.find("ibv_get_device_list", library.get_device_list) &&
         file.find("ibv_free_device_list", library.free_device_list) &&
         file.find("ibv_get_device_name", library.get_device_name) &&
         file.find("ibv_open_device", library.open_device) && file.find("ibv_close_device", library.close_device) &&
         file.find("ibv_query_device", library.query_device) && file.find("ibv_query_port", library.query_port) &&
         file.find("ibv_query_gid", library.query_gid) && file.find("ibv_alloc_pd", library.alloc_pd) &&
         file.find("ibv_dealloc_pd", library.dealloc_pd) && file.find("ibv_reg_mr", library.reg_mr) &&
         file.find("ibv_dereg_mr", library.dereg_mr) && file.find("ibv_create_cq", library.create_cq) &&
         file.find("ibv_destroy_cq", library.destroy_cq) && file.find("ibv_create_qp", library.create_qp) &&
         file.find("ibv_modify_qp", library.modify_qp) && file.find("ibv_destroy_qp", library.destroy_qp);
}

Library load(std::string& why) {
  OptionalLibrary file("libibverbs.so.1");
  Library library;
  if (!find_all(file, library)) {
    why = file.why_not();
    return {};
  }
  static_cast<void>(file.find("ibv_reg_dmabuf_mr", library.reg_dmabuf_mr));
  return library;
}

}  // namespace

const Library* library(std::string& why) noexcept {
  static std::string why_not;
  static const Library loaded = load(why_not);
  if (loaded.destroy_qp != nullptr) return &loaded;
  why = why_not;
  return nullptr;
}

}  // namespace gapless::fabric::verbs
