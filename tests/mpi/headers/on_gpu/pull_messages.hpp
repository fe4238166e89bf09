// Messages that the receiver's GPU reads in the program's memory at the sender: what their tests share. A fixture has
// one allocation at each rank, and every shape of memory that a message can come out of, or go into.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headers/partners.hpp"
#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {

inline std::uint64_t offered() { return counted("gapless_pulls_received"); }
inline std::uint64_t fetched() { return counted("gapless_pulls_fetched"); }
inline std::uint64_t copied_out() { return counted("gapless_pulls_copied_out"); }
inline std::uint64_t mapped() { return counted("gapless_pulls_mapped"); }

/// Are messages read where they lie, in a run where exporting and mapping memory is not refused?
inline bool pulls() {
  const char *scheme = std::getenv("GAPLESS_SCHEME"), *setting = std::getenv("GAPLESS_PULL");
  return under_gapless() && (scheme == nullptr || std::string_view(scheme) == "direct") &&
         (setting == nullptr || std::string_view(setting) != "0") &&
         std::getenv("GAPLESS_TEST_SIMULATED_FAIL") == nullptr;
}

/// Does the MPI library read GPU memory itself, and keep what is contiguous?
inline bool is_aware() {
  const char* const aware = std::getenv("GAPLESS_GPU_AWARE");
  return aware != nullptr && std::string_view(aware) == "1";
}

/// Is every message offered, though some have had to be copied out?
inline bool is_forced() { return pulls() && std::getenv("GAPLESS_SCHEME") != nullptr; }

/// Places of ints in memory, as a program says them to MPI.
struct Shape {
  std::string name;
  MPI_Datatype type;        ///< committed; for the test's end to free
  int count;                ///< of it
  int origin;               ///< index of the int that MPI is given the address of
  std::vector<int> places;  ///< index of each int, in packed order
  bool is_strided = true;
};

inline constexpr int resized_length = 4;

/// Of 256, 40'000 and 270'336 ints: 1 KiB, more than a segment, more than the exported memory.
struct Amount {
  int ints;
  int box[3];  ///< the same as a product
};
inline const std::vector<Amount> amounts{{256, {4, 8, 8}}, {40'000, {20, 40, 50}}, {270'336, {64, 64, 66}}};
inline constexpr std::size_t memory_ints = 815'000;

inline std::vector<Shape> shapes_of(const Amount& amount) {
  const int n = amount.ints;
  std::vector<Shape> shapes;
  const auto add = [&](const char* name, MPI_Datatype type, int count, int origin, auto place) {
    MPI_Type_commit(&type);
    Shape shape{name, type, count, origin, std::vector<int>(static_cast<std::size_t>(n)), true};
    for (int k = 0; k < n; ++k) shape.places[static_cast<std::size_t>(k)] = place(k);
    shapes.push_back(std::move(shape));
  };
  MPI_Datatype type, inner;
  MPI_Type_dup(MPI_INT, &type);
  add("contiguous", type, n, 7, [](int k) { return 7 + k; });
  add("pairs", strided(n / 2, 2, 5), 1, 0, [](int k) { return k / 2 * 5 + k % 2; });
  MPI_Type_vector(n, 1, 3, MPI_INT, &type);
  add("single ints", type, 1, 3, [](int k) { return 3 + 3 * k; });
  MPI_Type_vector(resized_length, 1, 2, MPI_INT, &inner);
  MPI_Type_create_resized(inner, 0, 9 * sizeof(int), &type);
  MPI_Type_free(&inner);
  add("many elements", type, n / resized_length, 0,
      [](int k) { return k / resized_length * 9 + k % resized_length * 2; });
  const int* const box = amount.box;
  const int sizes[3] = {box[0] + 2, box[1] + 3, box[2] + 4}, starts[3] = {1, 2, 3};
  MPI_Type_create_subarray(3, sizes, box, starts, MPI_ORDER_C, MPI_INT, &type);
  add("box", type, 1, 0, [=](int k) {
    const int x = k % box[2], y = k / box[2] % box[1], z = k / box[2] / box[1];
    return ((z + 1) * sizes[1] + y + 2) * sizes[2] + x + 3;
  });
  MPI_Type_create_hvector(n / 2, 2, -5 * static_cast<MPI_Aint>(sizeof(int)), MPI_INT, &type);
  const int last = (n / 2 - 1) * 5;
  add("backwards", type, 1, last, [=](int k) { return last - k / 2 * 5 + k % 2; });
  std::vector<int> displacements(static_cast<std::size_t>(n / 2));
  for (int k = 0; k < n / 2; ++k) displacements[static_cast<std::size_t>(k)] = 4 * k + (k * k % 3 == 1 ? 1 : 0);
  MPI_Type_create_indexed_block(n / 2, 2, displacements.data(), MPI_INT, &type);
  add("list", type, 1, 0, [&](int k) { return displacements[static_cast<std::size_t>(k / 2)] + k % 2; });
  shapes.back().is_strided = false;
  return shapes;
}

/// One allocation of the program's, which every message of a test comes out of, or goes into.
class Memory {
 public:
  explicit Memory(int first) : values_(counting(memory_ints, first)), ints_(values_, true) {}
  int* at(const Shape& shape) { return static_cast<int*>(ints_.data()) + shape.origin; }
  void set(int first) {
    values_ = counting(memory_ints, first);
    ints_.set(values_);
  }
  std::vector<int> found() const { return ints_.values(); }
  /// What the memory holds once the first `ints` of a message from there, in that shape, have come into it.
  std::vector<int> with(const Shape& mine, int first_of_sender, const Shape& senders, std::size_t ints) const {
    std::vector<int> result = values_;
    for (std::size_t k = 0; k < ints; ++k)
      result[static_cast<std::size_t>(mine.places[k])] = first_of_sender + senders.places[k];
    return result;
  }

 private:
  std::vector<int> values_;
  Ints ints_;
};

class Pulls : public testing::Test {
 protected:
  static constexpr int senders_first = 1000, receivers_first = -5'000'000;

  Pulls() : memory_(sends() ? senders_first : receivers_first) {
    MPI_Barrier(MPI_COMM_WORLD);
    introduce();
  }
  ~Pulls() override {
    for (Shape& shape : shapes_) MPI_Type_free(&shape.type);
  }

  void use(const Amount& amount) {
    for (Shape& shape : shapes_) MPI_Type_free(&shape.type);
    shapes_ = shapes_of(amount);
  }

  /// Has partners find out that they can, and tells the receiver of the sender's memory.
  void introduce() {
    use(amounts.front());
    const Shape& shape = shapes_[1];
    Memory other(0);
    for (int times = 0; has_partner() && times < 10; ++times) {
      const auto go = [&](bool sending) {
        if (sending) MPI_Send(memory_.at(shape), 1, shape.type, partner(), tag, MPI_COMM_WORLD);
        if (!sending) MPI_Recv(other.at(shape), 1, shape.type, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      };
      go(sends());
      go(!sends());
    }
    if (!sends()) memory_.set(receivers_first);
  }

  using SendShape = std::function<void(const void*, int, MPI_Datatype)>;
  using ReceiveShape = std::function<void(void*, int, MPI_Datatype, MPI_Status*)>;

  static void send(const void* memory, int count, MPI_Datatype type) {
    EXPECT_EQ(MPI_SUCCESS, MPI_Send(memory, count, type, partner(), tag, MPI_COMM_WORLD));
  }
  static void receive(void* memory, int count, MPI_Datatype type, MPI_Status* status) {
    EXPECT_EQ(MPI_SUCCESS, MPI_Recv(memory, count, type, partner(), tag, MPI_COMM_WORLD, status));
  }

  /// One message from the even rank of each pair.
  void pass(const Shape& from, const Shape& into, const SendShape& by = send, const ReceiveShape& take = receive) {
    if (!has_partner()) return;
    const std::uint64_t before = offered();
    if (sends()) {
      by(memory_.at(from), from.count, from.type);
    } else {
      MPI_Status status{};
      take(memory_.at(into), into.count, into.type, &status);
      int got = -1;
      MPI_Get_elements(&status, into.type, &got);
      EXPECT_EQ(static_cast<int>(from.places.size()), got);
      EXPECT_TRUE(memory_.with(into, senders_first, from, from.places.size()) == memory_.found())
          << from.name << " to " << into.name << ", " << from.places.size();
      if (is_forced() || !pulls()) {
        const bool is_offered = pulls() && from.is_strided && !(is_aware() && from.name == "contiguous");
        EXPECT_EQ(before + (is_offered ? 1 : 0), offered())
            << from.name << " to " << into.name << ", " << from.places.size();
      }
      memory_.set(receivers_first);
    }
    // The receiver looks before the next message comes, and both start at once.
    MPI_Sendrecv(nullptr, 0, MPI_INT, partner(), tag + 1, nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }

  const ReturnErrors errors_{MPI_COMM_WORLD};
  std::vector<Shape> shapes_;
  Memory memory_;
};

}  // namespace gapless::test
