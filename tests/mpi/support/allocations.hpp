// How often this process, its libraries included, has asked for heap memory.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace gapless::test {

std::uint64_t allocations();

}  // namespace gapless::test
