// The four schemes between two processes over libfabric's tcp and shared memory, and what goes wrong there.
#include "between.hpp"
#include "fabric/libfabric/libfabric.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

std::unique_ptr<fabric::Endpoint> open(const char* provider) {
  std::string why;
  auto endpoint = fabric::open_libfabric(provider, why);
  if (endpoint == nullptr) {
    ADD_FAILURE() << why;
    std::fflush(nullptr);
    _exit(1);
  }
  return endpoint;
}

class Libfabric : public testing::TestWithParam<const char*> {
 protected:
  /// `body` in both processes; the left one sends.
  template <class Body>
  void between(const Body& body, const Options& options = {}, bool sender_dies = false) {
    const auto process = [&](bool is_sender) {
      return [&, is_sender](Wire& wire) {
        Options own = options;
        if (sender_dies && is_sender) own.stall_limit = {};  // it ends by a signal alone
        Side side(open(GetParam()), wire, is_sender, own);
        body(side);
      };
    };
    in_two_processes(process(true), process(false), sender_dies);
  }
};

TEST_P(Libfabric, ColumnsByEveryScheme) { between(columns_by_every_scheme); }

TEST_P(Libfabric, RandomLayoutsByEveryScheme) {
  const std::uint64_t seed = random_seed();
  between([&](Side& side) { random_layouts(side, seed, 12); });
}

TEST_P(Libfabric, AMessageLongerThanAllStaging) {
  Options options;
  options.segment_bytes = 16 << 10;
  options.segments = 4;
  between(
      [](Side& side) {
        Arena from(vector_sample(256, 4096, 8192), 1, 0, 1), to(vector_sample(512, 2048, 3000), 1, 0, 2);
        for (const Scheme scheme : every_scheme) EXPECT_EQ(side.move(from, to, only(scheme)), Result::ok);
      },
      options);
}

TEST_P(Libfabric, APeerThatIsKilledMidwayEndsTheMessage) {
  Options options;
  options.stall_limit = std::chrono::seconds(1);
  options.segment_bytes = 4096;
  options.segments = 4;
  for (const Scheme scheme : every_scheme) {
    between(
        [&](Side& side) {
          Arena from(vector_sample(256, 4096, 8192), 1, 0, 1), to(vector_sample(512, 2048, 3000), 1, 0, 2);
          if (side.is_sender()) side.die_after(2);
          const Result result = side.move(from, to, only(scheme));
          EXPECT_FALSE(side.is_sender());
          EXPECT_TRUE(result == Result::peer_failed || result == Result::timed_out) << static_cast<int>(result);
        },
        options, true);
  }
}

TEST_P(Libfabric, AWrongKeyIsAnErrorAndNoCrash) {
  Options options;
  options.stall_limit = std::chrono::seconds(2);
  between(
      [](Side& side) {
        Arena from(vector_sample(64, 512, 1024), 1, 0, 1), to(vector_sample(64, 512, 2048), 1, 0, 2);
        const Result result =
            side.move(from, to, only(Scheme::gather_write), [](Reply& reply) { reply.pool.key += 77; });
        EXPECT_NE(result, Result::ok);
      },
      options);
}

TEST(LibfabricAbsent, AnUnknownProviderIsNamed) {
  std::string why;
  EXPECT_EQ(fabric::open_libfabric("no_such_provider", why), nullptr);
  EXPECT_NE(why, "");
}

INSTANTIATE_TEST_SUITE_P(Providers, Libfabric, testing::Values("tcp", "shm"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace gapless::tests
