// What every file of the GPU packing benchmark needs of CUDA: an error ends the program with a message on stderr, and
// memory, streams and events free themselves.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "fail.hpp"

namespace gapless::bench {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(std::string(what) + ": " + cudaGetErrorString(error));
}

enum class Place { device, mapped_host };

class Memory {
 public:
  explicit Memory(std::size_t bytes, Place place = Place::device) : place_(place), bytes_(bytes) {
    void* pointer = nullptr;
    if (place == Place::device) {
      check(cudaMalloc(&pointer, bytes), "allocating GPU memory");
    } else {
      check(cudaHostAlloc(&pointer, bytes, cudaHostAllocMapped), "allocating page-locked memory");
    }
    data_ = static_cast<char*>(pointer);
  }
  Memory(Memory&& other) noexcept : place_(other.place_), data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
  }
  Memory& operator=(Memory&&) = delete;
  ~Memory() {
    if (data_ != nullptr) place_ == Place::device ? cudaFree(data_) : cudaFreeHost(data_);
  }

  char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Place place_;
  char* data_ = nullptr;
  std::size_t bytes_;
};

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "waiting for the GPU"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "creating an event"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  void record(cudaStream_t stream) const { check(cudaEventRecord(event_, stream), "recording an event"); }
  double seconds_since(const Event& start) const {
    float milliseconds = 0;
    check(cudaEventSynchronize(event_), "waiting for the GPU");
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "reading the time between events");
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace gapless::bench
