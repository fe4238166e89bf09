#include "model/measured.hpp"

namespace gapless::model {

double SchemeCosts::message_ns(const Shape& shape) const noexcept {
  if (message) return message->at(shape);
  if (!is_known()) return never_ns;
  return start_ns + pack->at(shape) + move->at(shape) + unpack->at(shape);
}

}  // namespace gapless::model
