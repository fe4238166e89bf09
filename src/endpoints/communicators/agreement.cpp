#include "endpoints/communicators/agreement.hpp"

#include <algorithm>

#include "endpoints/communicators/assembly.hpp"

namespace gapless::mpi::endpoints {

Agreement::~Agreement() {
  if (worker.joinable()) worker.join();
  for (const auto& communicator : made) {
    if (communicator != nullptr) give_up(*communicator);
  }
}

std::shared_ptr<Agreement> arrive_at_agreement(Agreements& all, const AgreementKey& key, int expected, bool& is_last) {
  const std::lock_guard lock(all.mutex);
  auto& begun = all.begun;
  auto found = std::find_if(begun.begin(), begun.end(), [&](const auto& entry) { return entry.first == key; });
  if (found == begun.end()) {
    begun.emplace_back(key, std::make_shared<Agreement>());
    found = begun.end() - 1;
  }
  auto agreement = found->second;
  is_last = ++agreement->arrived == expected;
  if (is_last) begun.erase(found);
  return agreement;
}

}  // namespace gapless::mpi::endpoints
