// How the messages under way go on: what each tells its peer, and when each is over.
#include <algorithm>
#include <chrono>
#include <new>

#include "fabric/registry.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/rdma/rendezvous/transfers.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::transfer::rdma {
namespace {

constexpr std::chrono::milliseconds between_looks{100};

transfer::Result result_of(Result result) noexcept {
  return result == Result::ok ? transfer::Result::ok : transfer::Result::peer_failed;
}

transfer::Scheme counted_as(Scheme scheme) noexcept {
  return static_cast<transfer::Scheme>(static_cast<std::size_t>(transfer::Scheme::fabric_pipelined) +
                                       static_cast<std::size_t>(scheme));
}
static_assert(static_cast<std::size_t>(transfer::Scheme::multi_write) -
                  static_cast<std::size_t>(transfer::Scheme::fabric_pipelined) + 1 ==
              scheme_count);

/// The schemes that GAPLESS_SCHEME leaves to choose from.
unsigned allowed_schemes() noexcept {
  for (unsigned i = 0; i < scheme_count; ++i) {
    if (is_forced(counted_as(static_cast<Scheme>(i)))) return 1u << i;
  }
  return ~0u;
}

}  // namespace

/// May the sender's bytes be written to contiguous memory here without a copy? Many blocks would take many operations,
/// and are better copied together.
bool Transfers::goes_straight(const Offer& offer) const noexcept {
  constexpr unsigned straight = 1u << static_cast<unsigned>(Scheme::multi_write);
  return offer.blocks.count == 1 && (allowed_schemes() & straight) != 0 && channel_->limits().has_immediates;
}

/// Chooses the receiver's scheme and begins the receiver's message. Null where the scheme's resources are not free now.
Message* Transfers::choose_and_receive(Peer& peer, Transfer& transfer) noexcept {
  constexpr unsigned always = 1u << static_cast<unsigned>(Scheme::pipelined);
  const unsigned forced = allowed_schemes();
  unsigned allowed = forced & transfer.offer.schemes & schemes_of(transfer.memory, Side::receiver);
  if (!fits_in_letter(transfer.memory.layout, address_.size(), numbers_, peer.layouts))
    allowed &= ~(1u << static_cast<unsigned>(Scheme::multi_write));
  if (forced == ~0u && !transfer.turn) {
    const Ends ends{transfer.offer.blocks, transfer.memory.blocks, channel_->limits(),
                    segment_bytes_for(transfer.offer.blocks.bytes, channel_->staging().segment_bytes(),
                                      channel_->options().profile)};
    transfer.turn =
        corrected_.next(ends, channel_->options().profile, transfer.memory.layout.get(), transfer.rank, allowed);
  }
  // A scheme on trial has no substitute; the usual scheme may give way to the next best.
  const bool is_trial = transfer.turn && !transfer.turn->is_usual;
  const unsigned offered = is_trial ? 1u << static_cast<unsigned>(transfer.turn->scheme) : allowed;
  const auto first = transfer.turn ? std::optional(transfer.turn->scheme) : std::nullopt;
  Message* message = channel_->receive(peer.index, transfer.memory, transfer.offer, offered, first);
  if (message == nullptr && (offered & always) == 0)
    message = channel_->receive(peer.index, transfer.memory, transfer.offer, always);
  return message;
}

/// Begins the receiver's message, and writes its letter. Does nothing where that is not possible now.
void Transfers::accept(Transfer& transfer) noexcept {
  Peer& peer = *peer_of(transfer.rank);
  if (transfer.is_declined) {
    transfer.message = channel_->decline(peer.index, transfer.offer);
  } else {
    transfer.message = choose_and_receive(peer, transfer);
  }
  if (transfer.message == nullptr) return;
  const std::span<std::byte, mailbox_bytes> mailbox(channel_->mailbox(*transfer.message), mailbox_bytes);
  transfer.letter = write_letter(mailbox, transfer.message->reply(), transfer.is_declined ? nullptr : &transfer.memory,
                                 address_, numbers_, peer.layouts);
  if (transfer.letter.bytes == 0) transfer.message->fail(Result::failed);
}

void Transfers::open_letter(Transfer& transfer) noexcept {
  Peer& peer = *peer_of(transfer.rank);
  const std::span<const std::byte, mailbox_bytes> mailbox(channel_->mailbox(*transfer.message), mailbox_bytes);
  Letter letter;
  if (!read_letter(mailbox, letter, peer.layouts) || !connect(peer, letter.address)) {
    transfer.message->fail(Result::failed);
  } else if (letter.is_declined) {
    transfer.is_declined = true;
    transfer.message->decline();
  } else if (transfer.packed && !transfer.packed.buffer.is_there()) {
    // The program may reset its GPU once a send is complete: the packed bytes are lost then.
    transfer.message->lose(letter.reply);
  } else {
    transfer.message->start(letter.reply, letter.layout, letter.outer);
  }
}

/// Counts looks at neighbours that have ended: they do not answer, and software fabrics do not always say so. Peers of
/// other nodes are found gone by touches (Options::touch_after) or by the stall limit.
void Transfers::look_for_the_gone() noexcept {
  const Clock::time_point now = Clock::now();
  if (active_.empty() || now - looked_at_ < between_looks) return;
  looked_at_ = now;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const int rank = active_[i]->rank;
    const auto is_of_rank = [rank](const Transfer* each) { return each->rank == rank; };
    if (std::any_of(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(i), is_of_rank)) continue;
    Peer& peer = *peer_of(rank);
    if (!peer.is_neighbour) continue;
    peer.times_gone = fabric::registry::has_left(rank) ? peer.times_gone + 1 : 0;
  }
}

/// Does any receiver's message under way hold resources that a waiting receive may get?
bool Transfers::may_get_free() const noexcept {
  return std::ranges::any_of(active_,
                             [](const Transfer* each) { return each->side == Side::receiver && each->message; });
}

/// Moves a transfer on. True once the transfer is over.
bool Transfers::step(Transfer& transfer) noexcept {
  const bool is_gone = peer_of(transfer.rank)->is_gone();
  if (transfer.message == nullptr) accept(transfer);
  if (transfer.message == nullptr) {
    // Failed messages give nothing back.
    if (!is_gone && may_get_free()) return false;
    transfer.result = transfer::Result::peer_failed;
    return transfer.is_over = true;
  }
  advance(transfer);
  Result result = transfer.message->result();
  if (is_gone && result == Result::under_way) {
    transfer.message->fail(result = Result::peer_failed);
  } else if (!is_gone && !is_settled(transfer)) {
    return false;
  }
  finish(transfer, result);
  return true;
}

/// Tells the peer what the peer has to know, and moves bytes.
void Transfers::advance(Transfer& transfer) noexcept {
  if (transfer.side == Side::sender) {
    if (transfer.message->has_mail()) open_letter(transfer);
  } else if (!transfer.is_mailed && transfer.letter.bytes != 0) {
    transfer.is_mailed = channel_->mail(*transfer.message, transfer.letter.bytes);
  }
  static_cast<void>(transfer.message->advance());
}

/// Has the transfer nothing under way any more, and nothing to tell its peer?
bool Transfers::is_settled(const Transfer& transfer) const noexcept {
  const Result result = transfer.message->result();
  if (result != Result::ok) return result != Result::under_way;
  return transfer.message->is_quiet() && (transfer.side == Side::sender || transfer.is_mailed);
}

void Transfers::finish(Transfer& transfer, Result result) noexcept {
  const Scheme scheme = transfer.message->scheme();
  if (result == Result::ok && !transfer.is_declined) {
    record(counted_as(scheme), static_cast<std::size_t>(transfer.offer.blocks.bytes));
    if (transfer.packed.is_on_gpu()) gpu_bytes_ += transfer.offer.blocks.bytes;
    transfer.taken.scheme = counted_as(scheme);
    const Clock::time_point now = Clock::now();
    const auto ns_since = [now](Clock::time_point then) {
      return std::chrono::duration<double, std::nano>(now - then).count();
    };
    transfer.taken.ns = ns_since(transfer.begun);
    if (transfer.turn && transfer.turn->scheme == scheme) {
      transfer.taken.predicted_ns = transfer.turn->predicted_ns;
      // Of several messages under way at the same time, each counts from the end of the one before it.
      corrected_.note(*transfer.turn, ns_since(std::max(transfer.begun, finished_)));
    }
    finished_ = now;
    if (transfer.side == Side::receiver && scheme == Scheme::multi_write) {
      try {  // the sender has read the letter
        peer_of(transfer.rank)->layouts.told.insert(transfer.letter.layout);
      } catch (const std::bad_alloc&) {
      }
    }
  }
  channel_->end(transfer.message);
  transfer.message = nullptr;
  transfer.result = result_of(result);
  transfer.is_over = true;
}

void Transfers::progress() noexcept {
  channel_->progress();
  look_for_the_gone();
  for (std::size_t i = 0; i < active_.size();) {
    Transfer* const transfer = active_[i];
    if (!step(*transfer)) {
      ++i;
      continue;
    }
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    if (transfer->is_detached) destroy(transfer);
  }
}

}  // namespace gapless::transfer::rdma
