// The four schemes between two processes over raw verbs. Where there is no RDMA device there is nothing to test:
// tests/fabric/roce/run.sh boots a kernel that has one in software, and runs this.
#include "between.hpp"
#include "fabric/verbs/verbs.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

std::unique_ptr<fabric::Endpoint> open() {
  std::string why;
  auto endpoint = fabric::open_verbs("", why);
  if (endpoint == nullptr) {
    ADD_FAILURE() << why;
    std::fflush(nullptr);
    _exit(1);
  }
  return endpoint;
}

template <class Body>
void between(const Body& body, const Options& options = {}, bool sender_dies = false) {
  const auto process = [&](bool is_sender) {
    return [&, is_sender](Wire& wire) {
      Options own = options;
      if (sender_dies && is_sender) own.stall_limit = {};  // it ends by a signal alone
      Side side(open(), wire, is_sender, own);
      body(side);
    };
  };
  in_two_processes(process(true), process(false), sender_dies);
}

TEST(Verbs, ColumnsByEveryScheme) { between(columns_by_every_scheme); }

TEST(Verbs, TheDeviceGathersAsInThePaper) {
  between([](Side& side) {
    EXPECT_GE(side.limits().gather_entries, 16u);
    EXPECT_TRUE(side.limits().is_ordered && side.limits().posts_lists && side.limits().has_immediates);
    Arena from(vector_sample(128, 256, 16384), 1, 0, 1), to(vector_sample(128, 256, 1024), 1, 0, 2);
    const Counts before = side.channel().counts();
    EXPECT_EQ(side.move(from, to, only(Scheme::multi_write)), Result::ok);
    const Counts after = side.channel().counts();
    if (side.is_sender()) {
      EXPECT_EQ(after.posts - before.posts, 128u);
      EXPECT_EQ(after.lists - before.lists, 1u) << "128 writes in one call";
      EXPECT_EQ(after.notifications, before.notifications) << "the last write carries the immediate";
    }
  });
}

TEST(Verbs, NothingIsRegisteredInTheSteadyStateOfMemoryThatStays) {
  Options options;
  options.registrations.memory_stays = true;
  between(
      [](Side& side) {
        Arena from(vector_sample(128, 256, 16384), 1, 0, 1), to(vector_sample(128, 256, 1024), 1, 0, 2);
        for (const Scheme scheme : every_scheme) EXPECT_EQ(side.move(from, to, only(scheme)), Result::ok);
        const auto before = side.channel().registrations().registrations();
        for (const Scheme scheme : every_scheme) EXPECT_EQ(side.move(from, to, only(scheme)), Result::ok);
        EXPECT_EQ(side.channel().registrations().registrations(), before);
      },
      options);
}

TEST(Verbs, RandomLayoutsByEveryScheme) {
  const std::uint64_t seed = random_seed();
  between([&](Side& side) { random_layouts(side, seed, 10); });
}

TEST(Verbs, AWrongKeyIsAnError) {
  Options options;
  options.stall_limit = std::chrono::seconds(3);
  between(
      [](Side& side) {
        Arena from(vector_sample(64, 512, 1024), 1, 0, 1), to(vector_sample(64, 512, 2048), 1, 0, 2);
        const Result result =
            side.move(from, to, only(Scheme::gather_write), [](Reply& reply) { reply.pool.key ^= 0x7700; });
        if (side.is_sender()) {
          EXPECT_TRUE(result == Result::failed || result == Result::peer_failed) << static_cast<int>(result);
        } else {
          EXPECT_EQ(result, Result::timed_out);
        }
      },
      options);
}

TEST(Verbs, APeerThatIsKilledMidwayEndsTheMessage) {
  Options options;
  options.stall_limit = std::chrono::seconds(3);
  options.segment_bytes = 4096;
  options.segments = 4;
  for (const Scheme scheme : every_scheme) {
    between(
        [&](Side& side) {
          Arena from(vector_sample(256, 4096, 8192), 1, 0, 1), to(vector_sample(512, 2048, 3000), 1, 0, 2);
          if (side.is_sender()) side.die_after(2);
          const Result result = side.move(from, to, only(scheme));
          EXPECT_TRUE(result == Result::peer_failed || result == Result::timed_out) << static_cast<int>(result);
        },
        options, true);
  }
}

}  // namespace
}  // namespace gapless::tests
