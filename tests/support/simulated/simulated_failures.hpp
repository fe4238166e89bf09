// Failures of a simulated GPU's operations that a test asked for.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace gapless::tests {

/// Those that GAPLESS_TEST_SIMULATED_FAIL asks for, at first.
class Failures {
 public:
  Failures() {
    const char* wanted = std::getenv("GAPLESS_TEST_SIMULATED_FAIL");
    std::istringstream list(wanted != nullptr ? wanted : "");
    for (std::string item; std::getline(list, item, ',');) {
      char operation[32] = "";
      long successes = 0, failures = -1;
      if (std::sscanf(item.c_str(), "%31[^:]:%ld:%ld", operation, &successes, &failures) >= 1) {
        set(operation, successes, failures);
      }
    }
  }

  bool set(const std::string& operation, long successes, long failures) {
    static const std::set<std::string> known = {"allocate",    "upload", "stream", "copy",  "run",  "synchronize",
                                                "enable_peer", "export", "open",   "flush", "lock", "reduce"};
    if (!known.contains(operation)) return false;
    const std::lock_guard lock(mutex_);
    wanted_[operation] = {successes, failures};
    return true;
  }

  /// Is the operation to fail this time?
  bool take(const char* operation) {
    const std::lock_guard lock(mutex_);
    const auto it = wanted_.find(operation);
    if (it == wanted_.end()) return false;
    auto& [successes, failures] = it->second;
    if (successes > 0) {
      --successes;
      return false;
    }
    if (failures == 0) return false;
    if (failures > 0) --failures;
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::pair<long, long>> wanted_;
};

}  // namespace gapless::tests
