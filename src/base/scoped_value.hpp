// A variable that has another value for as long as an object lives.
#pragma once

#include <utility>

namespace gapless {

/// Gives the variable that value until it ends, then the one from before. Of a variable of a thread: in that thread.
template <class Value>
class [[nodiscard]] ScopedValue {
 public:
  ScopedValue(Value& variable, Value value) noexcept : variable_(variable), before_(std::exchange(variable, value)) {}
  ~ScopedValue() { variable_ = before_; }
  ScopedValue(const ScopedValue&) = delete;
  ScopedValue& operator=(const ScopedValue&) = delete;

 private:
  Value& variable_;
  Value before_;
};

}  // namespace gapless
