#include "transfer/schemes/direct.hpp"

#include "transfer/blocking.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/headers/introductions.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/report/statistics.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {

using headers::ExportedPool;
using headers::Inbox;

bool DirectOffer::secure(const Buffer& buffer, Inbox& inbox, headers::Header& header) noexcept {
  const auto bytes = static_cast<std::size_t>(buffer.size());
  const int device = buffer.location.device;
  ExportedPool& pool = headers::own_exported_pool();
  if (bytes < least_direct_bytes || !pool.is_there(device) || !headers::has_accepted(inbox, pool.handle()))
    return false;
  run_ = pool.take(bytes);
  if (run_.count == 0) return false;
  pool_ = &pool;
  bytes_ = bytes;
  std::byte* const packed = pool.data(run_);
  const Result result = run_on_gpu({buffer.type->layout.get(),
                                    {buffer.count, buffer.type->extent},
                                    0,
                                    buffer.size(),
                                    pack::Direction::pack,
                                    buffer.memory,
                                    packed},
                                   device, device::MemoryKind::device);
  const ExportedWay way{pool.handle(), reinterpret_cast<std::uintptr_t>(packed), headers::own_rank(), run_.first};
  if (result == Result::ok && header.add(way)) return true;
  withdraw();
  return false;
}

void DirectOffer::release() noexcept {
  if (pool_ == nullptr) return;
  pool_ = nullptr;
  record(Scheme::direct, bytes_);
}

void DirectOffer::withdraw() noexcept {
  if (pool_ == nullptr) return;
  pool_->give_back(run_);
  pool_ = nullptr;
}

namespace {

/// What a header says was written by another process, and is believed only within bounds.
std::atomic<std::uint8_t>* word_of(const ExportedWay& way) noexcept {
  Inbox* const owner = headers::find_inbox(way.rank);
  return owner != nullptr ? &owner->head().holds_message[way.segment % headers::exported_segments] : nullptr;
}

bool is_within(const ExportedWay& way, std::size_t bytes) noexcept {
  const std::uint64_t begin = way.address - way.memory.base;
  return way.memory.contains(way.address) && bytes <= way.memory.bytes - begin;
}

}  // namespace

std::byte* DirectFetch::open(const ExportedWay& way, std::size_t bytes, int device) noexcept {
  if (word_ == nullptr) word_ = word_of(way);
  if (device < 0 || !is_within(way, bytes)) return nullptr;
  device::Status status = device::Status::failed;
  use_ = headers::opened_memory().use(way.memory, device, status);
  return use_ ? static_cast<std::byte*>(use_.at(way.address)) : nullptr;
}

Result DirectFetch::begin(const ExportedWay& way, const Buffer& into, std::size_t bytes, Batch& batch) noexcept {
  const int device = into.location.device;
  std::byte* const packed = open(way, bytes, device);
  if (packed == nullptr) return Result::peer_failed;
  // Only this GPU's memory is written.
  if (bytes != 0) {
    batch.add({into.type->layout.get(),
               {into.count, into.type->extent},
               0,
               static_cast<layout::Offset>(bytes),
               pack::Direction::unpack,
               into.memory,
               packed},
              device, pack::Reach::this_gpu);
  }
  record(Scheme::direct, bytes);
  return Result::ok;
}

Result DirectFetch::copy(const ExportedWay& way, std::byte* into, std::size_t bytes) noexcept {
  const int device = headers::accepting_device();
  const std::byte* const packed = open(way, bytes, device);
  if (packed == nullptr) return Result::peer_failed;
  return bytes == 0 ? Result::ok : copy_on_gpu(into, packed, bytes, device);
}

void DirectFetch::end() noexcept {
  use_.end();
  if (word_ != nullptr) word_->store(0, std::memory_order_release);
  word_ = nullptr;
}

void release_exported(const ExportedWay& way) noexcept {
  if (auto* const word = word_of(way)) word->store(0, std::memory_order_release);
}

}  // namespace gapless::transfer::schemes
