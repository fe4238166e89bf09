// What `gapless explain` asks the plugin of a datatype's kernels. No GPU is needed for the answer, nor a driver.
#include "layout/text/text.hpp"
#include "pack/gpu/plan/outline.hpp"

using namespace gapless;

/// Static strings, and bytes.
struct gapless_outline {
  const char* regime;
  const char* reason;
  int word_bytes;
};

/// Of a call that moves `count` of a type, which is given in its text form. False where nothing is to be moved, the
/// text is wrong, or memory is short.
extern "C" __attribute__((visibility("default"))) int gapless_gpu_outline(const char* type, long long count,
                                                                          int unpacks, gapless_outline* result) {
  try {
    const layout::Datatype datatype = layout::parse_datatype(type);
    if (count <= 0 || datatype.layout->is_empty()) return 0;
    const auto direction = unpacks != 0 ? pack::Direction::unpack : pack::Direction::pack;
    const pack::gpu::Outline found = pack::gpu::outline(*datatype.layout, {count, datatype.extent()}, direction);
    *result = {pack::gpu::name(found.regime), pack::gpu::reason_for(found.regime), found.word_bytes};
    return 1;
  } catch (const std::exception&) {
    return 0;
  }
}
