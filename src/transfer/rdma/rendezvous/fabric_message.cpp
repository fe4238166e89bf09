#include "transfer/rdma/rendezvous/fabric_message.hpp"

#include <algorithm>
#include <exception>

#include "base/settings.hpp"
#include "transfer/blocking.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/packing.hpp"
#include "transfer/report/report.hpp"

namespace gapless::transfer::rdma {
namespace {

/// The memory of the buffer's first `bytes` packed bytes.
Memory memory_of_buffer(const Buffer& buffer, std::uint64_t bytes) {
  Memory memory =
      memory_of(buffer.type->layout, buffer.type->facts, {buffer.count, buffer.type->extent}, buffer.memory);
  // About as many blocks as the bytes reach over.
  if (memory.blocks.bytes != 0) {
    const double part = static_cast<double>(bytes) / static_cast<double>(memory.blocks.bytes);
    memory.blocks.count =
        std::max<std::uint64_t>(1, static_cast<std::uint64_t>(part * static_cast<double>(memory.blocks.count)));
  }
  memory.blocks.bytes = bytes;
  return memory;
}

std::span<const std::byte> address_of(const FabricWay& way) noexcept {
  return std::span(way.address).first(std::min<std::size_t>(way.address_bytes, most_address_bytes));
}

void report(const Buffer& into, const Transfer& transfer, const FabricWay& way) noexcept {
  if (!report_wanted()) return;
  const Taken& taken = taken_by(transfer);
  report_moved(into, Side::receiver, taken.scheme, static_cast<std::size_t>(way.offer.blocks.bytes), taken.ns,
               taken.predicted_ns);
}

/// `into`, if any, is the buffer that the report names.
transfer::Result fetch(const FabricWay& way, const Memory& memory, const Buffer* into = nullptr) noexcept {
  const OwnedTransfer transfer = begin_receive(way.rank, address_of(way), way.offer, memory);
  if (transfer == nullptr) {
    decline(way.rank, address_of(way), way.offer);  // else the sender waits for a receiver
    return transfer::Result::peer_failed;
  }
  const transfer::Result result = wait(*transfer);
  if (result == transfer::Result::ok && into != nullptr) report(*into, *transfer, way);
  return result;
}

/// Begins to send GPU memory, as packed bytes.
OwnedTransfer begin_packed(const Buffer& buffer, int rank) noexcept {
  const layout::Offset bytes = buffer.size();
  OwnedTransfer transfer = begin_packed_send(rank, buffer.location.device, static_cast<std::size_t>(bytes));
  if (transfer == nullptr) return transfer;
  const PoolBuffer& packed = packed_of(*transfer);
  if (move_range(pack::Direction::pack, buffer, 0, bytes, packed.data(), packed.location()) != transfer::Result::ok)
    withdraw(transfer);
  return transfer;
}

}  // namespace

bool FabricOffer::secure(const Buffer& buffer, const headers::Inbox& inbox, headers::Header& header) noexcept try {
  const headers::Speaker& receiver = inbox.speaker();
  if (fabric_kind() == 0 || receiver.fabric != fabric_kind() || buffer.size() < least_bytes) return false;
  if (receiver.rank == own_rank()) return false;
  // Between GPUs of a node messages go direct, unless a scheme is forced.
  const bool may_take_neighbours =
      settings().fabric_neighbours && (buffer.location.is_cpu_addressable() || is_any_forced());
  if (!inbox.is_remote() && !may_take_neighbours) return false;
  const auto bytes = static_cast<std::uint64_t>(buffer.size());
  transfer_ = buffer.location.is_cpu_addressable() ? begin_send(receiver.rank, memory_of_buffer(buffer, bytes))
                                                   : begin_packed(buffer, receiver.rank);
  if (transfer_ == nullptr) return false;
  FabricWay way;
  way.offer = offer_of(*transfer_);
  way.rank = own_rank();
  const std::span<const std::byte> address = own_address();
  way.address_bytes = static_cast<std::uint32_t>(address.size());
  std::ranges::copy(address, way.address.begin());
  if (header.add(way)) return true;
  withdraw(transfer_);
  return false;
} catch (const std::exception&) {
  return false;
}

bool FabricOffer::is_under_way() noexcept {
  if (transfer_ == nullptr || !is_handed_over_) return false;
  if (poll(*transfer_) != transfer::Result::under_way) return false;
  return !is_patience_over(*transfer_) || complete_alone() == transfer::Result::under_way;
}

transfer::Result FabricOffer::wait() noexcept {
  return transfer_ != nullptr && is_handed_over_ ? rdma::wait(*transfer_) : transfer::Result::ok;
}

transfer::Result FabricOffer::complete_alone() noexcept {
  return transfer_ != nullptr && is_handed_over_ ? rdma::complete_alone(*transfer_) : transfer::Result::ok;
}

transfer::Result FabricFetch::begin(const FabricWay& way, const Buffer& into, std::size_t bytes,
                                    Batch& batch) noexcept {
  const int device = into.location.device;
  transfer_ = begin_receive_on_gpu(way.rank, address_of(way), way.offer, device);
  if (transfer_ == nullptr) return transfer::Result::peer_failed;
  const transfer::Result result = wait(*transfer_);
  if (result != transfer::Result::ok) return result;
  if (const auto flushed = device::runtime()->flush_writes_of_devices(device); flushed != device::Status::ok)
    return result_of(flushed);
  const pack::Job unpacking{into.type->layout.get(),
                            {into.count, into.type->extent},
                            0,
                            static_cast<layout::Offset>(bytes),
                            pack::Direction::unpack,
                            into.memory,
                            packed_of(*transfer_).data()};
  if (bytes != 0) batch.add(unpacking, device, pack::Reach::this_gpu);
  report(into, *transfer_, way);
  return transfer::Result::ok;
}

transfer::Result fetch_by_fabric(const FabricWay& way, const Buffer& into) noexcept try {
  return fetch(way, memory_of_buffer(into, way.offer.blocks.bytes), &into);
} catch (const std::exception&) {
  return transfer::Result::peer_failed;
}

transfer::Result fetch_by_fabric(const FabricWay& way, std::byte* into) noexcept try {
  return fetch(way, packed_memory(into, way.offer.blocks.bytes));
} catch (const std::exception&) {
  return transfer::Result::peer_failed;
}

void refuse_by_fabric(const FabricWay& way) noexcept { decline(way.rank, address_of(way), way.offer); }

}  // namespace gapless::transfer::rdma
