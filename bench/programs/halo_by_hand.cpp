// What a careful program of GPUs makes of the exchange of examples/halo3d.c: one launch packs all 26 pieces, contiguous
// messages travel, one launch unpacks. The launches are gapless's own batches, for a program could hardly write better
// ones. One line of JSON, verified.
//
//   halo_by_hand SIZE RADIUS ITERATIONS requests|alltoallv|requests_of_host
//
// `requests` sends a message a piece, and `alltoallv` one block a process, from GPU to GPU, on an MPI library that
// reads GPU memory. `requests_of_host` packs into page-locked memory and sends a message a piece from there, on any
// library.
#include <dlfcn.h>
#include <gapless/gapless.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "gpu_memory.hpp"

namespace gapless::bench {
namespace {

constexpr int piece_count = 26;

struct Piece {
  int to, from;  ///< ranks
  std::size_t bytes, out_at, in_at;
  gapless_type *given, *halo;
};

void check(gapless_status status) {
  if (status != GAPLESS_SUCCESS) give_up(gapless_last_error());
}

/// The process's box of doubles, and its place in a periodic grid of processes.
class Halo {
 public:
  Halo(int size, int radius) : size_(size), radius_(radius) {
    const int periodic[3] = {1, 1, 1};
    MPI_Comm_size(MPI_COMM_WORLD, &processes_);
    MPI_Dims_create(processes_, 3, dims_);
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims_, periodic, 0, &grid_);
    MPI_Comm_rank(grid_, &rank_);
    MPI_Cart_coords(grid_, rank_, 3, coordinates_);
    full_ = size + 2 * radius;
    make_pieces();
  }

  std::size_t points() const { return static_cast<std::size_t>(full_) * full_ * full_; }
  std::size_t bytes() const { return bytes_; }
  int rank() const { return rank_; }
  MPI_Comm grid() const { return grid_; }

  void prepare(Memory& field, Memory& out, Memory& in) {
    for (int n = 0; n < piece_count; ++n) {
      const auto i = static_cast<std::size_t>(n);
      const Piece& piece = pieces_[i];
      const auto length = static_cast<std::int64_t>(piece.bytes);
      packs_[i] = {piece.given, 1, field.data(), 0, length, at(out, piece.out_at), GAPLESS_PACK};
      unpacks_[i] = {piece.halo, 1, field.data(), 0, length, at(in, piece.in_at), GAPLESS_UNPACK};
    }
  }

  void exchange(Memory& out, Memory& in, bool by_alltoallv) {
    check(gapless_pack_batch(packs_.data(), packs_.size(), nullptr));
    driver("cuStreamSynchronize", static_cast<void*>(nullptr));
    if (by_alltoallv) {
      MPI_Alltoallv(out.data(), counts_.data(), starts_.data(), MPI_BYTE, in.data(), in_counts_.data(),
                    in_starts_.data(), MPI_BYTE, grid_);
    } else {
      MPI_Request requests[2 * piece_count];
      for (int n = 0; n < piece_count; ++n) {
        const Piece& piece = pieces_[static_cast<std::size_t>(n)];
        MPI_Irecv(at(in, piece.in_at), static_cast<int>(piece.bytes), MPI_BYTE, piece.from, n, grid_, &requests[n]);
      }
      for (int n = 0; n < piece_count; ++n) {
        const Piece& piece = pieces_[static_cast<std::size_t>(n)];
        MPI_Isend(at(out, piece.out_at), static_cast<int>(piece.bytes), MPI_BYTE, piece.to, n, grid_,
                  &requests[piece_count + n]);
      }
      MPI_Waitall(2 * piece_count, requests, MPI_STATUSES_IGNORE);
    }
    check(gapless_pack_batch(unpacks_.data(), unpacks_.size(), nullptr));
    driver("cuStreamSynchronize", static_cast<void*>(nullptr));
  }

  /// The value of a point as its owner has it, halo included.
  double value(std::size_t point) const {
    const auto full = static_cast<std::size_t>(full_);
    const std::size_t local[3] = {point / full / full, point / full % full, point % full};
    std::int64_t id = 0;
    for (int i = 0; i < 3; ++i) {
      const std::int64_t all = std::int64_t{dims_[i]} * size_;
      const std::int64_t place = std::int64_t{coordinates_[i]} * size_ + static_cast<std::int64_t>(local[i]) - radius_;
      id = id * all + (place + all) % all;
    }
    return static_cast<double>(id);
  }
  bool is_halo(std::size_t point) const {
    const auto full = static_cast<std::size_t>(full_);
    const std::size_t local[3] = {point / full / full, point / full % full, point % full};
    return std::any_of(local, local + 3, [&](std::size_t x) {
      return x < static_cast<std::size_t>(radius_) || x >= static_cast<std::size_t>(size_ + radius_);
    });
  }

 private:
  static void* at(Memory& memory, std::size_t offset) { return static_cast<std::byte*>(memory.data()) + offset; }

  gapless_type* box(const std::int64_t* extent, const std::int64_t* start) const {
    const std::int64_t full[3] = {full_, full_, full_};
    gapless_type *point = nullptr, *result = nullptr;
    check(gapless_type_named(sizeof(double), sizeof(double), &point));
    check(gapless_type_subarray(3, full, extent, start, GAPLESS_ORDER_C, point, &result));
    gapless_type_free(point);
    return result;
  }

  void make_pieces() {
    int n = 0;
    for (int direction = 0; direction < 27; ++direction) {
      const int d[3] = {direction / 9 - 1, direction / 3 % 3 - 1, direction % 3 - 1};
      if (d[0] == 0 && d[1] == 0 && d[2] == 0) continue;
      Piece& piece = pieces_[static_cast<std::size_t>(n++)];
      int to[3], from[3];
      std::int64_t extent[3], given[3], halo[3];
      piece.bytes = sizeof(double);
      for (int i = 0; i < 3; ++i) {
        to[i] = coordinates_[i] + d[i];
        from[i] = coordinates_[i] - d[i];
        extent[i] = d[i] != 0 ? radius_ : size_;
        given[i] = d[i] > 0 ? size_ : radius_;
        halo[i] = d[i] > 0 ? 0 : d[i] < 0 ? size_ + radius_ : radius_;
        piece.bytes *= static_cast<std::size_t>(extent[i]);
      }
      MPI_Cart_rank(grid_, to, &piece.to);
      MPI_Cart_rank(grid_, from, &piece.from);
      piece.given = box(extent, given);
      piece.halo = box(extent, halo);
    }
    lay_out(&Piece::to, &Piece::out_at, counts_, starts_);
    lay_out(&Piece::from, &Piece::in_at, in_counts_, in_starts_);
  }

  /// Pieces of one rank lie next to each other.
  void lay_out(int Piece::*rank, std::size_t Piece::*place, std::vector<int>& counts, std::vector<int>& starts) {
    bytes_ = 0;
    for (int other = 0; other < processes_; ++other) {
      starts.push_back(static_cast<int>(bytes_));
      for (Piece& piece : pieces_) {
        if (piece.*rank != other) continue;
        piece.*place = bytes_;
        bytes_ += piece.bytes;
      }
      counts.push_back(static_cast<int>(bytes_) - starts.back());
    }
  }

  int size_, radius_, full_ = 0, processes_ = 0, rank_ = 0;
  int dims_[3] = {}, coordinates_[3] = {};
  MPI_Comm grid_ = MPI_COMM_NULL;
  std::array<Piece, piece_count> pieces_{};
  std::array<gapless_job, piece_count> packs_{}, unpacks_{};
  std::vector<int> counts_, starts_, in_counts_, in_starts_;
  std::size_t bytes_ = 0;
};

enum class How : std::uint8_t { requests, alltoallv, requests_of_host };

How how_of(std::string_view word) {
  if (word == "requests") return How::requests;
  if (word == "alltoallv") return How::alltoallv;
  if (word != "requests_of_host") give_up("no such way");
  return How::requests_of_host;
}

/// Of the GPU, or page-locked.
class MessageMemory : public Memory {
 public:
  MessageMemory(bool on_gpu, std::size_t bytes) : Memory(on_gpu, bytes), is_locked_(!on_gpu) {
    if (is_locked_) driver("cuMemHostRegister_v2", data(), bytes, 0U);
  }
  ~MessageMemory() {
    if (is_locked_) driver("cuMemHostUnregister", data());
  }
  MessageMemory(const MessageMemory&) = delete;
  MessageMemory& operator=(const MessageMemory&) = delete;

 private:
  bool is_locked_;
};

double median_us(Halo& halo, Memory& out, Memory& in, int iterations, bool by_alltoallv) {
  std::vector<double> times;
  for (int i = -5; i < iterations; ++i) {
    MPI_Barrier(halo.grid());
    const double start = MPI_Wtime();
    halo.exchange(out, in, by_alltoallv);
    double seconds = MPI_Wtime() - start;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, halo.grid());
    if (i >= 0) times.push_back(seconds * 1e6);
  }
  std::nth_element(times.begin(), times.begin() + iterations / 2, times.end());
  return times[static_cast<std::size_t>(iterations / 2)];
}

void run(int size, int radius, int iterations, How how) {
  Halo halo(size, radius);
  use_gpu(halo.rank());
  const bool on_gpu = how != How::requests_of_host;
  Memory field(true, halo.points() * sizeof(double));
  MessageMemory out(on_gpu, halo.bytes()), in(on_gpu, halo.bytes());
  halo.prepare(field, out, in);
  auto* const values = reinterpret_cast<double*>(field.contents().data());
  for (std::size_t i = 0; i < halo.points(); ++i) values[i] = halo.is_halo(i) ? -1 : halo.value(i);
  field.write();
  const double us = median_us(halo, out, in, iterations, how == How::alltoallv);
  field.read();
  for (std::size_t i = 0; i < halo.points(); ++i) {
    if (values[i] != halo.value(i)) give_up("wrong data");
  }
  if (halo.rank() == 0) std::printf("{\"us\": %.2f, \"bytes\": %zu}\n", us, halo.bytes());
}

}  // namespace
}  // namespace gapless::bench

int main(int argc, char** argv) {
  using namespace gapless::bench;  // NOLINT: the program's own
  MPI_Init(&argc, &argv);
  if (argc != 5) give_up("halo_by_hand SIZE RADIUS ITERATIONS requests|alltoallv|requests_of_host");
  run(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]), how_of(argv[4]));
  MPI_Finalize();
}
