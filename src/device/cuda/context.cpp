#include "device/cuda/context.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <utility>
#include <vector>

#include "base/per_thread.hpp"
#include "device/cuda/driver_numbers.hpp"

namespace gapless::device::cuda {
namespace {

/// All contexts met that are still there.
class Contexts {
 public:
  /// Of the context that is current, which has that number; nullptr with the reason in `error`. Throws std::bad_alloc.
  std::shared_ptr<Context> find(std::uint64_t number, cudaError_t& error) {
    const std::lock_guard lock(mutex_);
    if (auto known = find(number)) return known;
    std::erase_if(contexts_, [](const auto& context) { return !context->is_there(); });
    const OutsideCapture outside;
    void* witness = nullptr;
    error = cudaMalloc(&witness, 1);
    if (error != cudaSuccess) return nullptr;
    return contexts_.emplace_back(std::make_shared<Context>(number, witness));
  }

  bool has(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto known = find(number);
    return known != nullptr && known->is_there();
  }

 private:
  std::shared_ptr<Context> find(std::uint64_t number) const noexcept {
    const auto is_it = [number](const auto& context) { return context->number() == number; };
    const auto it = std::find_if(contexts_.begin(), contexts_.end(), is_it);
    return it != contexts_.end() ? *it : nullptr;
  }

  std::mutex mutex_;
  std::vector<std::shared_ptr<Context>> contexts_;
};

/// Never destroyed: threads may end after static objects have.
Contexts& contexts() {
  static auto* const instance = new Contexts;
  return *instance;
}

void leave(ThreadPlace& place) noexcept {
  if (place.lane != nullptr) place.context->idle_lanes.give(std::move(place.lane));
}

/// A program may go to and fro between contexts of a GPU while work is under way in each, so there is a place in each.
struct ThreadPlaces {
  std::deque<ThreadPlace> all;  // in which places stay where they are

  ~ThreadPlaces() {
    for (ThreadPlace& place : all) leave(place);
  }
};

/// The number of the current device's context, which is made if need be.
std::uint64_t number_of_used_context(cudaError_t& error) noexcept {
  if (const std::uint64_t number = current_context_number(); number != 0) return number;
  const OutsideCapture outside;
  error = cudaFree(nullptr);
  return error == cudaSuccess ? current_context_number() : 0;
}

/// The thread's place in the context of that number, which is current; nullptr with the reason in `error`. It takes
/// that of a context which is gone.
ThreadPlace* enter(int device, std::uint64_t number, cudaError_t& error) {
  if (ThreadPlace* known = place_in(number)) return known;
  auto context = contexts().find(number, error);
  if (context == nullptr) return nullptr;
  auto& places = of_this_thread<ThreadPlaces>().all;
  const auto gone =
      std::find_if(places.begin(), places.end(), [](const ThreadPlace& place) { return !place.context->is_there(); });
  if (gone == places.end()) return &places.emplace_back(ThreadPlace{device, std::move(context), nullptr});
  leave(*gone);
  *gone = {device, std::move(context), nullptr};
  return &*gone;
}

}  // namespace

Context::Context(std::uint64_t number, const void* witness)
    : number_(number), handle_(current_context()), witness_(witness), witness_number_(allocation_number(witness)) {}

bool Context::is_there() const noexcept { return allocation_number(witness_) == witness_number_; }

std::atomic<std::uint64_t>* Context::accessible_peer(int peer) noexcept {
  const auto place = static_cast<std::size_t>(peer);
  return place < accessible_peers_.size() ? &accessible_peers_[place] : nullptr;
}

ThreadPlace* place_in(std::uint64_t context_number) noexcept {
  for (ThreadPlace& place : of_this_thread<ThreadPlaces>().all) {
    if (place.context->number() == context_number) return &place;
  }
  return nullptr;
}

std::uint64_t known_context(int device) noexcept {
  for (const ThreadPlace& place : of_this_thread<ThreadPlaces>().all) {
    if (place.device == device && place.context->is_there()) return place.context->number();
  }
  return 0;
}

bool is_there(std::uint64_t context_number) noexcept { return contexts().has(context_number); }

InContext::InContext(int device) noexcept {
  try {
    place_ = place_in(current_context_number());
    if (place_ != nullptr && place_->device == device) return;
    device_.emplace(device);
    error_ = device_->error();
    const std::uint64_t number = error_ == cudaSuccess ? number_of_used_context(error_) : 0;
    if (error_ == cudaSuccess) place_ = enter(device, number, error_);
  } catch (const std::exception&) {
    error_ = cudaErrorMemoryAllocation;
  }
}

Lane* InContext::lane(cudaError_t& error) const noexcept {
  error = cudaSuccess;
  std::unique_ptr<Lane>& lane = place_->lane;
  if (lane == nullptr) lane = context().idle_lanes.take();
  if (lane == nullptr) lane = make_lane(error);
  return lane.get();
}

}  // namespace gapless::device::cuda
