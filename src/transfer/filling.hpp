// Packing into memory that another process reads: slots, and rings on the host.
#pragma once

#include "model/corrections/filling.hpp"
#include "pack/job.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer {

/// What is known of filling memory for that process. Null where nothing is measured, or there is but one way.
model::Filling* filling_of(headers::Inbox& reader) noexcept;

/// Packs on the host, as `filling` says for the process that reads job.packed next; straight if null. Thread-safe. The
/// first fill of a thread through a buffer allocates the buffer.
Result fill(const pack::Job& job, model::Filling* filling) noexcept;

}  // namespace gapless::transfer
