// More jobs in one call than a kernel's parameters have room for: the same jobs again, other jobs each time, as many
// calls as parameters need, and a CUDA graph.
#include <algorithm>
#include <span>

#include "api/type.hpp"
#include "gpu.hpp"
#include "pack/gpu_engine.hpp"
#include "tables/tables.hpp"
#include "wall.hpp"

namespace gapless::bench {
namespace {

using pack::Job;
using Size = std::int64_t;

constexpr std::size_t most_in_parameters = 256;

/// Small pieces of three kinds in turn, 256 packed bytes each.
class Pieces {
 public:
  explicit Pieces(const Setting& setting) : spot_(setting.arena.one_spot()[0]) {
    for (const Size rows : {8, 16, 32}) types_.push_back(vector(rows, 256 / rows, 64));
  }

  /// The jobs of variant 0 lie elsewhere than those of variant 1, and so on.
  std::vector<Job> jobs(std::size_t count, std::size_t variant) const {
    constexpr Size piece = 4096, packed = 256;
    std::vector<Job> jobs;
    for (std::size_t i = 0; i < count; ++i) {
      const layout::Datatype& type = types_[i % types_.size()].type->datatype;
      const auto place = static_cast<Size>(variant * count + i);
      jobs.push_back({type.layout.get(),
                      {1, type.extent()},
                      0,
                      type.size(),
                      pack::Direction::pack,
                      spot_.memory + place * piece,
                      spot_.packed + place * packed});
    }
    return jobs;
  }

 private:
  Spot spot_;
  std::vector<Workload> types_;
};

void issue(std::span<const Job> jobs, cudaStream_t stream) {
  const device::Status status = pack::gpu_engine()->run(jobs, 0, stream);
  check(status == device::Status::ok ? cudaSuccess : cudaErrorUnknown, "packing a batch");
}

void issue_in_parts(std::span<const Job> jobs, cudaStream_t stream) {
  for (; !jobs.empty(); jobs = jobs.subspan(std::min(jobs.size(), most_in_parameters))) {
    issue(jobs.first(std::min(jobs.size(), most_in_parameters)), stream);
  }
}

class Graph {
 public:
  Graph(std::span<const Job> jobs, cudaStream_t stream) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture");
    issue(jobs, stream);
    check(cudaStreamEndCapture(stream, &graph), "ending a capture");
    check(cudaGraphInstantiate(&executable_, graph, 0), "making a graph");
    check(cudaGraphDestroy(graph), "freeing a graph");
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(executable_); }

  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream), "launching a graph"); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

/// All ways pack what single jobs pack, which other tables verify.
void verify(const std::vector<Job>& jobs, const Graph& graph, const Stream& stream) {
  char* const packed = static_cast<char*>(jobs[0].packed);
  const std::size_t size = jobs.size() * 256;
  std::vector<char> wanted(size), got(size);
  for (const int way : {0, 1, 2, 3}) {
    check(cudaMemset(packed, 1, size), "poisoning");
    if (way == 0) {
      for (const Job& job : jobs) issue({&job, 1}, stream);
    } else if (way == 1) {
      issue_in_parts(jobs, stream);
    } else if (way == 2) {
      issue(jobs, stream);
    } else {
      graph.launch(stream);
    }
    stream.wait();
    check(cudaMemcpy(got.data(), packed, size, cudaMemcpyDeviceToHost), "reading packed data");
    if (way == 0) wanted = got;
    if (wanted != got) fail("a batch and its jobs one by one differ");
  }
}

/// A row of `count` jobs. Calls that are to find what they left are measured by themselves.
Row measure(const Pieces& pieces, std::size_t count, int samples) {
  constexpr std::size_t variants = 8;  // more than a thread remembers
  std::vector<std::vector<Job>> lists;
  for (std::size_t variant = 0; variant < variants; ++variant) lists.push_back(pieces.jobs(count, variant));
  const Stream stream;
  const Graph graph(lists[0], stream);
  verify(lists[0], graph, stream);
  static Launches launches;
  std::size_t turn = 0;
  const auto next = [&]() -> const std::vector<Job>& { return lists[turn++ % variants]; };
  const auto waited = [&](const auto& issue_all) {
    return [&stream, issue_all] {
      issue_all();
      stream.wait();
    };
  };
  const std::vector<WaitedCall> same{{"gapless", waited([&] { issue(lists[0], stream); })}};
  const std::vector<WaitedCall> others{
      {"other jobs each time", waited([&] { issue(next(), stream); })},
      {"in calls of 256 jobs", waited([&] { issue_in_parts(next(), stream); })},
      {"a graph of one call", waited([&] { graph.launch(stream); })},
      {"empty kernel, synchronised", [&] { launches.launch_and_synchronise(); }},
  };
  std::vector<WaitedCall> calls = same;
  std::vector<double> seconds = wall_seconds(same, samples);
  const std::vector<double> of_others = wall_seconds(others, samples);
  calls.insert(calls.end(), others.begin(), others.end());
  seconds.insert(seconds.end(), of_others.begin(), of_others.end());
  Row row;
  row.table = "many";
  row.labels = {{"layout", std::to_string(count) + " pieces of 256 B"}};
  row.bytes = static_cast<Size>(count) * 256;
  set_times(row, calls, seconds);
  return row;
}

}  // namespace

void print_many(const Setting& setting) {
  const Pieces pieces(setting);
  for (const std::size_t count : {128, 257, 1000, 5000}) print(measure(pieces, count, setting.quick ? 51 : 201));
}

}  // namespace gapless::bench
