#include "contestants/contestant.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "gpu.hpp"

namespace gapless::bench {
namespace {

/// A fixed number of calls that can be issued again and again.
class Batch {
 public:
  Batch(const Contestant& contestant, const std::vector<Spot>& spots, gapless_direction direction, int calls,
        cudaStream_t stream)
      : contestant_(contestant), spots_(spots), direction_(direction), calls_(calls), stream_(stream) {
    if (!contestant.capturable || calls == 1) return;
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture");
    issue_calls();
    check(cudaStreamEndCapture(stream, &graph), "ending a capture");
    check(cudaGraphInstantiate(&graph_, graph, 0), "making a graph");
    check(cudaGraphDestroy(graph), "freeing a graph");
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }

  double seconds_a_call() const {
    start_.record(stream_);
    if (graph_ != nullptr) {
      check(cudaGraphLaunch(graph_, stream_), "launching a graph");
    } else {
      issue_calls();
    }
    end_.record(stream_);
    return end_.seconds_since(start_) / calls_;
  }

 private:
  void issue_calls() const {
    for (int i = 0; i < calls_; ++i) {
      contestant_.issue(spots_[static_cast<std::size_t>(i) % spots_.size()], direction_, stream_);
    }
  }

  const Contestant& contestant_;
  const std::vector<Spot>& spots_;
  gapless_direction direction_;
  int calls_;
  cudaStream_t stream_;
  cudaGraphExec_t graph_ = nullptr;
  Event start_, end_;
};

constexpr int most_calls = 256;

/// A multiple of the number of spots where that is affordable, so that all of them are visited equally often, and by
/// every contestant: a few of them fit the cache. A single call seems longer than it is when many follow each other.
int calls_for(double seconds_a_call, double sample_seconds, std::size_t spots) {
  constexpr double affordable = 8;
  const double calls = std::clamp(sample_seconds / seconds_a_call, 1.0, static_cast<double>(most_calls));
  const auto round = static_cast<double>(spots);
  const bool is_affordable = calls > round || round * seconds_a_call <= affordable * sample_seconds;
  return static_cast<int>(is_affordable ? std::ceil(calls / round) * round : calls);
}

std::unique_ptr<Batch> batch_for(const Contestant& contestant, const std::vector<Spot>& spots,
                                 gapless_direction direction, double sample_seconds, cudaStream_t stream) {
  const Batch probe(contestant, spots, direction, 1, stream);
  probe.seconds_a_call();
  const int calls = calls_for(probe.seconds_a_call(), sample_seconds, spots.size());
  return std::make_unique<Batch>(contestant, spots, direction, calls, stream);
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<double> gpu_seconds(const std::vector<const Contestant*>& contestants, const std::vector<Spot>& spots,
                                gapless_direction direction, const Effort& effort) {
  const Stream stream;
  std::vector<std::unique_ptr<Batch>> batches;
  for (const Contestant* contestant : contestants) {
    batches.push_back(batch_for(*contestant, spots, direction, effort.sample_seconds, stream));
    batches.back()->seconds_a_call();
  }
  std::vector<std::vector<double>> samples(contestants.size());
  for (int sample = 0; sample < effort.samples; ++sample) {
    for (std::size_t i = 0; i < batches.size(); ++i) samples[i].push_back(batches[i]->seconds_a_call());
  }
  std::vector<double> medians;
  for (auto& values : samples) medians.push_back(median(std::move(values)));
  return medians;
}

std::size_t fastest(const std::vector<Contestant>& contestants, const std::vector<Spot>& spots,
                    gapless_direction direction) {
  std::vector<const Contestant*> all;
  for (const Contestant& contestant : contestants) all.push_back(&contestant);
  const std::vector<double> seconds = gpu_seconds(all, spots, direction, {3, 2e-4});
  return static_cast<std::size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
}

}  // namespace gapless::bench
