// All schemes, in the order of transfer::Scheme.
#include <array>

#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer {
namespace {

constexpr std::array<const char*, scheme_count> names = {"native", "packed", "oneshot", "staged", "slots"};

}  // namespace

const char* name(Scheme scheme) noexcept { return names[static_cast<std::size_t>(scheme)]; }

namespace schemes {
namespace {

const std::array<const Base*, scheme_count> all = {&native, &packed, &oneshot, &staged, &slots};

}  // namespace

const Base& of(Scheme scheme) noexcept { return *all[static_cast<std::size_t>(scheme)]; }

}  // namespace schemes
}  // namespace gapless::transfer
