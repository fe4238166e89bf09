// In place of the other files where libibverbs's header was not there to build with.
#include "fabric/verbs/verbs.hpp"

namespace gapless::fabric {

std::unique_ptr<Endpoint> open_verbs(const std::string&, std::string& why) noexcept {
  why = "built without infiniband/verbs.h";
  return nullptr;
}

}  // namespace gapless::fabric
