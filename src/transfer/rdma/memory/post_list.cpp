#include "transfer/rdma/memory/post_list.hpp"

#include <algorithm>

namespace gapless::transfer::rdma {

using fabric::Opcode;
using fabric::Piece;

void PostList::trim() noexcept {
  constexpr std::size_t most_kept = 4096;  // pieces, of a list that waits for the next message
  clear();
  if (std::max(posts_.capacity(), pieces_.capacity()) > most_kept) *this = PostList();
}

void PostList::open(Opcode opcode, fabric::RemoteAddress remote, std::uint64_t key) {
  fabric::Post post;
  post.opcode = opcode;
  post.remote = remote;
  post.key = key;
  first_piece_.push_back(pieces_.size());
  posts_.push_back(post);
  last_bytes_ = 0;
}

namespace {

std::size_t most_entries(Opcode opcode, const fabric::Limits& limits) noexcept {
  return opcode == Opcode::write ? limits.gather_entries : limits.scatter_entries;
}

}  // namespace

bool PostList::follows(Opcode opcode, fabric::RemoteAddress remote, std::uint64_t key,
                       const fabric::Limits& limits) const noexcept {
  return !posts_.empty() && posts_.back().opcode == opcode && posts_.back().key == key &&
         posts_.back().remote + last_bytes_ == remote && last_bytes_ < limits.operation_bytes;
}

bool PostList::continues(Opcode opcode, fabric::RemoteAddress remote, std::uint64_t key,
                         const fabric::Limits& limits) const noexcept {
  return follows(opcode, remote, key, limits) && pieces_.size() - first_piece_.back() < most_entries(opcode, limits);
}

void PostList::add(Opcode opcode, fabric::RemoteAddress remote, std::uint64_t key, Piece piece,
                   const fabric::Limits& limits) {
  while (piece.bytes > 0) {
    Piece* last = follows(opcode, remote, key, limits) ? &pieces_.back() : nullptr;
    const bool joins = last != nullptr && last->region == piece.region && last->memory + last->bytes == piece.memory;
    if (!joins && !continues(opcode, remote, key, limits)) open(opcode, remote, key);

    const std::size_t bytes = std::min(piece.bytes, limits.operation_bytes - last_bytes_);
    if (joins) {
      last->bytes += bytes;
    } else {
      pieces_.push_back({piece.memory, bytes, piece.region});
    }
    last_bytes_ += bytes;
    remote += bytes;
    piece.memory += bytes;
    piece.bytes -= bytes;
  }
}

std::span<const Piece> PostList::pieces_of(std::size_t i) const noexcept {
  const std::size_t end = i + 1 < posts_.size() ? first_piece_[i + 1] : pieces_.size();
  return std::span(pieces_).subspan(first_piece_[i], end - first_piece_[i]);
}

std::size_t PostList::bytes_of(std::size_t i) const noexcept {
  std::size_t bytes = 0;
  for (const Piece& piece : pieces_of(i)) bytes += piece.bytes;
  return bytes;
}

std::span<const fabric::Post> PostList::rest() noexcept {
  for (std::size_t i = taken_; i < posts_.size(); ++i) posts_[i].local = pieces_of(i);
  return std::span<const fabric::Post>(posts_).subspan(taken_);
}

}  // namespace gapless::transfer::rdma
