// All 26 faces, edges and corners of a 3-D halo: one batch that is waited for as MPI calls wait, one through the C API,
// 26 calls, and a CUDA graph of 26 calls.
#include "api/type.hpp"
#include "gpu.hpp"
#include "pack/gpu_engine.hpp"
#include "tables/tables.hpp"
#include "wall.hpp"

namespace gapless::bench {
namespace {

using Size = std::int64_t;

/// The regions next to the halo of a cube of `edge` floats, `radius` deep, in an array with a halo around it.
std::vector<Workload> halo_regions(Size edge, Size radius) {
  const Size whole = edge + 2 * radius;
  std::vector<Workload> regions;
  for (int direction = 0; direction < 27; ++direction) {
    const int side[3] = {direction / 9 - 1, direction / 3 % 3 - 1, direction % 3 - 1};
    if (side[0] == 0 && side[1] == 0 && side[2] == 0) continue;
    std::vector<Size> sub, start;
    for (const int d : side) {
      sub.push_back(d == 0 ? edge : radius);
      start.push_back(d > 0 ? edge : radius);
    }
    regions.push_back(subarray("halo", {whole, whole, whole}, sub, start, 4));
  }
  return regions;
}

class Halo {
 public:
  Halo(const Setting& setting, const std::vector<Workload>& regions) {
    Size at = 0;
    for (const Workload& region : regions) {
      const Spot spot = setting.arena.one_spot()[0];
      // Each region's packed bytes begin on a line of their own, as messages in separate buffers would.
      jobs_.push_back({region.type.get(), 1, spot.memory, 0, region.packed_bytes(), spot.packed + at, GAPLESS_PACK});
      at += (region.packed_bytes() + 255) / 256 * 256;
      const gapless_job& job = jobs_.back();
      const layout::Datatype& type = region.type->datatype;
      waited_jobs_.push_back(
          {type.layout.get(), {1, type.extent()}, 0, type.size(), pack::Direction::pack, job.memory, job.packed});
    }
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "beginning a capture");
    issue_calls();
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream_, &graph), "ending a capture");
    check(cudaGraphInstantiate(&graph_, graph, 0), "making a graph");
    check(cudaGraphDestroy(graph), "freeing a graph");
  }
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;
  ~Halo() { cudaGraphExecDestroy(graph_); }

  void waited_batch() const {
    const device::Status status = pack::gpu_engine()->run_and_wait(waited_jobs_, 0, pack::Reach::this_gpu);
    check(status == device::Status::ok ? cudaSuccess : cudaErrorUnknown, "packing a batch");
  }
  void batch() const {
    check(gapless_pack_batch(jobs_.data(), jobs_.size(), stream_), "packing");
    stream_.wait();
  }
  void calls() const {
    issue_calls();
    stream_.wait();
  }
  void graph() const {
    check(cudaGraphLaunch(graph_, stream_), "launching a graph");
    stream_.wait();
  }
  void largest() const {
    check(gapless_pack_batch(&jobs_[4], 1, stream_), "packing");
    stream_.wait();
  }
  Size bytes() const {
    Size sum = 0;
    for (const gapless_job& job : jobs_) sum += job.end;
    return sum;
  }

  /// The batches pack what single calls pack, which other tables verify.
  void verify() const {
    char* const packed = static_cast<char*>(jobs_[0].packed);
    const auto size = static_cast<std::size_t>(static_cast<char*>(jobs_.back().packed) + jobs_.back().end - packed);
    std::vector<char> wanted(size), got(size);
    check(cudaMemset(packed, 1, size), "poisoning");
    calls();
    check(cudaMemcpy(wanted.data(), packed, size, cudaMemcpyDeviceToHost), "reading packed data");
    for (const bool waited : {false, true}) {
      check(cudaMemset(packed, 1, size), "poisoning");
      waited ? waited_batch() : batch();
      check(cudaMemcpy(got.data(), packed, size, cudaMemcpyDeviceToHost), "reading packed data");
      if (wanted != got) fail("the batch and the calls differ");
    }
  }

 private:
  void issue_calls() const {
    for (const gapless_job& job : jobs_) {
      check(gapless_pack(job.type, job.count, job.memory, job.begin, job.end, job.packed, stream_), "packing");
    }
  }

  Stream stream_;
  std::vector<gapless_job> jobs_;
  std::vector<pack::Job> waited_jobs_;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace

void print_halo(const Setting& setting) {
  for (const Size edge : {8, 16, 32, 64, 128, 256}) {
    const std::vector<Workload> regions = halo_regions(edge, 1);
    const Halo halo(setting, regions);
    halo.calls();
    halo.verify();
    static Launches launches;
    const std::vector<WaitedCall> waiting{
        {"gapless", [&] { halo.waited_batch(); }},
        {"one batch of the C API, synchronised", [&] { halo.batch(); }},
        {"26 calls", [&] { halo.calls(); }},
        {"graph of 26 calls", [&] { halo.graph(); }},
        {"the largest face alone", [&] { halo.largest(); }},
        {"empty kernel, completion polled", [&] { launches.launch_and_poll(); }},
        {"empty kernel, synchronised", [&] { launches.launch_and_synchronise(); }},
    };
    const std::vector<double> seconds = wall_seconds(waiting, setting.quick ? 51 : 201);
    Row row;
    row.table = "halo";
    row.labels = {{"layout", "26 regions of " + std::to_string(edge) + "^3 floats"},
                  {"largest face", std::to_string(edge * edge * 4) + " B"}};
    row.bytes = halo.bytes();
    set_times(row, waiting, seconds);
    print(row);
  }
}

}  // namespace gapless::bench
