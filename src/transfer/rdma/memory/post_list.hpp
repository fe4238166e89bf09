// A list of operations, built from runs. A run that continues a post joins the post; a run that is too long is split.
#pragma once

#include <vector>

#include "fabric/remote/endpoint.hpp"

namespace gapless::transfer::rdma {

/// clear() keeps the memory for the next list, and trim() gives up what a long list needed.
class PostList {
 public:
  /// Forgets all operations.
  void clear() noexcept {
    posts_.clear();
    pieces_.clear();
    first_piece_.clear();
    taken_ = 0;
  }

  /// As clear().
  void trim() noexcept;

  /// Moves `piece` from or to a peer's memory. A piece that begins where the last one ended, at both sides, becomes
  /// part of the last post, as far as the limits allow. Throws std::bad_alloc.
  void add(fabric::Opcode opcode, fabric::RemoteAddress remote, std::uint64_t key, fabric::Piece piece,
           const fabric::Limits& limits);

  /// Would a further piece, if short enough, become part of the last post?
  bool continues(fabric::Opcode opcode, fabric::RemoteAddress remote, std::uint64_t key,
                 const fabric::Limits& limits) const noexcept;

  std::size_t size() const noexcept { return posts_.size(); }
  fabric::Post& operator[](std::size_t i) noexcept { return posts_[i]; }
  std::size_t bytes_of(std::size_t i) const noexcept;
  bool is_posted() const noexcept { return taken_ == posts_.size(); }

  /// The posts that are left, once all pieces have been added. take() says how many of them have been posted.
  std::span<const fabric::Post> rest() noexcept;
  void take(std::size_t count) noexcept { taken_ += count; }

 private:
  std::span<const fabric::Piece> pieces_of(std::size_t i) const noexcept;
  /// Does memory at `remote` begin where the last post ends, and has the last post room for more bytes?
  bool follows(fabric::Opcode opcode, fabric::RemoteAddress remote, std::uint64_t key,
               const fabric::Limits& limits) const noexcept;
  void open(fabric::Opcode opcode, fabric::RemoteAddress remote, std::uint64_t key);

  std::vector<fabric::Post> posts_;
  std::vector<fabric::Piece> pieces_;
  std::vector<std::size_t> first_piece_;  ///< of each post
  std::size_t last_bytes_ = 0;            ///< of the post that is open
  std::size_t taken_ = 0;
};

}  // namespace gapless::transfer::rdma
