// Packing into memory that another process reads: slots, and rings on the host.
#pragma once

#include "model/corrections/filling.hpp"
#include "pack/job.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer {

/// What is known of the process that will read a buffer's packed bytes. Null where that does not matter: blocks so long
/// are copied by the string instruction in any case.
model::Filling* filling_of(headers::Inbox& reader, const Buffer& buffer) noexcept;

/// Packs on the host, as `filling` says of the process that reads job.packed next; straight without. Thread-safe;
/// allocates a buffer of a thread when it first copies.
Result fill(const pack::Job& job, model::Filling* filling) noexcept;

}  // namespace gapless::transfer
