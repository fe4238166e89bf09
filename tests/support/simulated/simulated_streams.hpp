// Streams of a simulated GPU, whose work is done when somebody waits for it.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace gapless::tests {

/// Work that waits until somebody synchronises.
class Stream {
 public:
  void add(std::function<bool()> work) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }

  /// False if any of the work was at fault, now or since the last call, as an error of asynchronous work shows late.
  bool finish() {
    const std::lock_guard lock(mutex_);
    for (; !waiting_.empty(); waiting_.pop_front()) healthy_ = waiting_.front()() && healthy_;
    return std::exchange(healthy_, true);
  }

  /// Was all done? If not, one more piece of the work is done, as a GPU goes on while it is asked.
  bool is_idle_or_goes_on() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return true;
    healthy_ = waiting_.front()() && healthy_;
    waiting_.pop_front();
    return false;
  }

  void finish_quietly() {
    const std::lock_guard lock(mutex_);
    for (; !waiting_.empty(); waiting_.pop_front()) healthy_ = waiting_.front()() && healthy_;
  }

 private:
  std::mutex mutex_;
  std::deque<std::function<bool()>> waiting_;
  bool healthy_ = true;
};

/// Every stream ever made; they live until the process ends.
class Streams {
 public:
  Stream* create() {
    const std::lock_guard lock(mutex_);
    return &streams_.emplace_back();
  }
  void finish_all() {
    const std::lock_guard lock(mutex_);
    for (Stream& stream : streams_) stream.finish_quietly();
  }

 private:
  std::mutex mutex_;
  std::deque<Stream> streams_;
};

}  // namespace gapless::tests
