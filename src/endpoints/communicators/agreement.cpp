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

std::shared_ptr<Agreement> arrive_at_agreement(Endpoint& endpoint, const AgreementKey& key, int expected,
                                               bool& is_last) {
  Communicator& communicator = *endpoint.communicator;
  const std::lock_guard lock(communicator.mutex);
  auto& all = communicator.agreements;
  auto found = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == key; });
  if (found == all.end()) {
    all.emplace_back(key, std::make_shared<Agreement>());
    found = all.end() - 1;
  }
  auto agreement = found->second;
  is_last = ++agreement->arrived == expected;
  if (is_last) all.erase(found);
  return agreement;
}

}  // namespace gapless::mpi::endpoints
