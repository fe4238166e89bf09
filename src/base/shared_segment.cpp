#include "base/shared_segment.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

namespace gapless {
namespace {

constexpr int nameless = -1;

/// What /proc shows of a memfd of that name.
std::array<char, 96> link_of(std::string_view name) noexcept {
  std::array<char, 96> text;
  std::snprintf(text.data(), text.size(), "/memfd:%.*s (deleted)", static_cast<int>(name.size()), name.data());
  return text;
}

bool leads_to(const char* path, std::string_view wanted) noexcept {
  std::array<char, 128> target;
  const ssize_t length = ::readlink(path, target.data(), target.size());
  return length > 0 && std::string_view(target.data(), static_cast<std::size_t>(length)) == wanted;
}

/// Opens the descriptor of `owner` that leads to a memfd of that name.
int open_descriptor(pid_t owner, std::string_view name) noexcept {
  std::array<char, 64> folder;
  std::snprintf(folder.data(), folder.size(), "/proc/%ld/fd", static_cast<long>(owner));
  DIR* const entries = ::opendir(folder.data());
  if (entries == nullptr) return nameless;
  const std::array<char, 96> wanted = link_of(name);
  int file = nameless;
  while (const dirent* entry = ::readdir(entries)) {
    std::array<char, 352> path;
    std::snprintf(path.data(), path.size(), "%s/%s", folder.data(), entry->d_name);
    if (!leads_to(path.data(), wanted.data())) continue;
    file = ::open(path.data(), O_RDWR | O_CLOEXEC);
    break;
  }
  ::closedir(entries);
  return file;
}

/// May a file of this process be so long? To make a longer one would be a SIGXFSZ.
bool may_be_made(std::size_t bytes) noexcept {
  rlimit longest;
  return ::getrlimit(RLIMIT_FSIZE, &longest) == 0 && bytes <= longest.rlim_cur;
}

}  // namespace

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : file_(std::exchange(other.file_, nameless)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) ::munmap(data_, size_);
  close_file();
}

void SharedSegment::close_file() noexcept {
  if (file_ >= 0) ::close(file_);
  file_ = nameless;
}

bool SharedSegment::map(std::size_t bytes) noexcept {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(memory);
  size_ = bytes;
  return true;
}

SharedSegment SharedSegment::make(std::string_view name, std::size_t bytes, std::size_t reserved) noexcept {
  SharedSegment segment;
  if (!may_be_made(bytes)) return segment;
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*s", static_cast<int>(name.size()), name.data());
  segment.file_ = ::memfd_create(text.data(), MFD_CLOEXEC);
  const bool made = segment.file_ >= 0 && ::ftruncate(segment.file_, static_cast<off_t>(bytes)) == 0 &&
                    segment.reserve(0, reserved) && segment.map(bytes);
  return made ? std::move(segment) : SharedSegment();
}

SharedSegment SharedSegment::open(pid_t owner, std::string_view name, std::size_t bytes) noexcept {
  SharedSegment segment;
  segment.file_ = open_descriptor(owner, name);
  const bool opened =
      segment.file_ >= 0 && ::lseek(segment.file_, 0, SEEK_END) == static_cast<off_t>(bytes) && segment.map(bytes);
  return opened ? std::move(segment) : SharedSegment();
}

bool SharedSegment::reserve(std::size_t begin, std::size_t bytes) noexcept {
  return ::posix_fallocate(file_, static_cast<off_t>(begin), static_cast<off_t>(bytes)) == 0;
}

}  // namespace gapless
