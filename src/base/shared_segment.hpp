// Memory that several processes of a node map: a memfd, which has no name in any file system.
//
// Its owner makes it; others open it through /proc/<owner>/fd, which the kernel allows to processes of the same user.
// So nothing has to be unlinked, nothing stays after processes that were killed, and /dev/shm may be full or read-only.
// Pages are reserved before they are written: a write to memory that cannot be had would be a SIGBUS.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>

namespace gapless {

class SharedSegment {
 public:
  SharedSegment() noexcept = default;
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  /// A segment of this process, zeros, with its first `reserved` bytes reserved. Empty where the system refuses.
  static SharedSegment make(std::string_view name, std::size_t bytes, std::size_t reserved) noexcept;
  /// The segment of that name of another process of this user. Empty where there is none, or the system refuses.
  static SharedSegment open(pid_t owner, std::string_view name, std::size_t bytes) noexcept;

  /// Makes sure that [begin, begin + bytes) can be written. False where there is no memory for it.
  bool reserve(std::size_t begin, std::size_t bytes) noexcept;
  /// Lets go of the descriptor, and keeps the memory. From then on nothing can be reserved, and nobody can open the
  /// segment through this process.
  void close_file() noexcept;

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  bool map(std::size_t bytes) noexcept;

  int file_ = -1;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace gapless
