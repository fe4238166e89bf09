// Runs cases and writes what came of each. See run.py, which starts this program with gapless and without, and
// compares.
//
//   mpi-differential-<mpi> --job FILE --out PREFIX --seed N (--cases FIRST LAST | --list FILE) [--threads N]
//                          [--preload LIBRARY --on all|even|odd] [--contiguous out|in|both] [--all]
//   mpi-differential-<mpi> --seed N --cases FIRST LAST --print-families
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "cases/calls.hpp"
#include "sides/heap.hpp"
#include "sides/sides.hpp"
#include "support/environment.hpp"

namespace gapless::test::differential {
namespace {

struct Options {
  std::string job;
  std::string out;
  std::uint64_t seed = 1;
  std::vector<std::uint64_t> cases;
  int threads = 1;
  std::string preload;
  std::string on = "all";
  std::string contiguous;
  bool writes_all = false;
  bool prints_families = false;
};

Options parse(int argc, char** argv) {
  Options options;
  const auto number = [](const char* text) { return std::strtoull(text, nullptr, 0); };
  for (int k = 1; k < argc; ++k) {
    const std::string name = argv[k];
    const auto next = [&] { return k + 1 < argc ? argv[++k] : ""; };
    if (name == "--job") options.job = next();
    if (name == "--out") options.out = next();
    if (name == "--seed") options.seed = number(next());
    if (name == "--threads") options.threads = std::min(std::atoi(next()), max_threads);
    if (name == "--preload") options.preload = next();
    if (name == "--on") options.on = next();
    if (name == "--contiguous") options.contiguous = next();
    if (name == "--all") options.writes_all = true;
    if (name == "--print-families") options.prints_families = true;
    if (name == "--cases") {
      const std::uint64_t first = number(next()), last = number(next());
      for (std::uint64_t at = first; at < last; ++at) options.cases.push_back(at);
    }
    if (name == "--list") {
      std::ifstream file(next());
      for (std::uint64_t at; file >> at;) options.cases.push_back(at);
    }
  }
  return options;
}

/// Starts the program again with gapless before it, if this rank is among those that have it.
void preload(const Options& options, char** argv) {
  if (options.preload.empty() || std::getenv("LD_PRELOAD") != nullptr) return;
  const char* text = nullptr;
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (text == nullptr) text = std::getenv(name);
  const bool is_odd = text != nullptr && std::atoi(text) % 2 == 1;
  if ((options.on == "even" && is_odd) || (options.on == "odd" && !is_odd)) return;
  setenv("LD_PRELOAD", options.preload.c_str(), 1);
  execv("/proc/self/exe", argv);
  std::perror("execv");
}

int print_families(const Options& options) {
  for (const std::uint64_t number : options.cases)
    std::printf("%llu %s\n", static_cast<unsigned long long>(number), name(family_of(options.seed, number)));
  return 0;
}

/// Messages that nobody received after an error: they must not meet a later case.
int take_stray_messages(MPI_Comm communicator) {
  const auto probe = GAPLESS_TEST_NATIVE(Improbe);
  const auto receive = GAPLESS_TEST_NATIVE(Mrecv);
  int found = 0;
  std::vector<char> bytes;
  for (int tries = 0; tries < 3; ++tries) {
    int flag = 0, count = 0;
    MPI_Message message;
    MPI_Status status;
    probe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator, &flag, &message, &status);
    if (!flag) continue;
    MPI_Get_count(&status, MPI_PACKED, &count);
    bytes.resize(static_cast<std::size_t>(count));
    receive(bytes.data(), count, MPI_PACKED, &message, MPI_STATUS_IGNORE);
    ++found;
    tries = -1;
  }
  return found;
}

/// The same bytes in contiguous memory, at the ends that `which` names: what the library does with those, it does to
/// gapless.
void make_contiguous(Case& plan, const std::string& which) {
  if (which == "out" || which == "both") plan.out = plain_bytes(plan.out.bytes, MPI_PACKED);
  if (which == "in" || which == "both") plan.in = plain_bytes(plan.in.bytes, MPI_PACKED);
}

void set_handler(const Case& plan, const Context& context, bool for_all) {
  const MPI_Errhandler handler = plan.user_handler ? context.handler : MPI_ERRORS_RETURN;
  MPI_Comm_set_errhandler(context.communicator(plan), handler);
  if (!for_all) return;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
}

void run(const Case& plan, const Context& context, Outcome& outcome) {
  handler_calls();
  if (plan.family == Family::packing) return run_packing(plan, context, outcome);
  if (plan.family == Family::misuse) return run_misuse(plan, context, outcome);
  if (plan.exchanges) return run_exchange(plan, context, outcome);
  run_message(plan, context, outcome);
}

std::uint64_t packed_messages() {
  using Statistics = void (*)(std::uint64_t*, std::uint64_t*);
  static const auto statistics = [] {
    void* core = dlopen("libgapless-core.so", RTLD_LAZY | RTLD_NOLOAD);
    return core ? reinterpret_cast<Statistics>(dlsym(core, "gapless_transfer_statistics")) : nullptr;
  }();
  if (statistics == nullptr) return 0;
  std::uint64_t messages[8] = {}, bytes[8] = {};
  statistics(messages, bytes);
  constexpr int packed = 1, slots = 6;
  return messages[packed] + messages[slots];
}

/// The part of the cases that one thread of every rank runs, in step.
class Runner {
 public:
  Runner(const Options& options, Context context)
      : options_(options), context_(context), slot_(context.job->mine(context.thread)) {
    const std::string path = options.out + "." + std::to_string(context.rank()) + "." + std::to_string(context.thread);
    out_ = std::fopen(path.c_str(), "w");
  }
  ~Runner() { std::fclose(out_); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void run_all() {
    set_thread_number(context_.thread);
    slot_.state = static_cast<std::int64_t>(State::running);
    const auto threads = static_cast<std::size_t>(options_.threads);
    for (std::size_t k = static_cast<std::size_t>(context_.thread); k < options_.cases.size(); k += threads) {
      run_one(options_.cases[k]);
      ++context_.ordinal;
    }
    slot_.case_number = -1;
    slot_.state = static_cast<std::int64_t>(State::done);
  }

 private:
  void run_one(std::uint64_t number) {
    slot_.case_number = static_cast<std::int64_t>(number);
    Case plan = differential::plan(options_.seed, number, context_.ranks());
    make_contiguous(plan, options_.contiguous);
    if (options_.writes_all && context_.rank() == 0) std::printf("%s\n", plan.text().c_str()), std::fflush(stdout);
    set_handler(plan, context_, options_.threads == 1);
    context_.reach(Stage::begun);
    wait_for_all(Stage::begun);
    Outcome outcome;
    run(plan, context_, outcome);
    context_.reach(Stage::finished);
    wait_for_all(Stage::finished);
    if (plan.is_erroneous()) outcome.note("stray", take_stray_messages(context_.communicator(plan)));
    const std::ptrdiff_t damaged = plan.is_erroneous() || !outcome.is_right() ? damaged_block() : -1;
    if (damaged >= 0) {
      outcome.note("heap", damaged);
      outcome.find_wrong();
    }
    write(plan, outcome);
    slot_.checks += outcome.checks();
    slot_.packed_messages = static_cast<std::int64_t>(packed_messages());
    if (damaged >= 0) {
      slot_.state = static_cast<std::int64_t>(State::heap_damaged);
      _exit(3);
    }
    context_.reach(Stage::cleared);
    if (plan.is_erroneous()) wait_for_all(Stage::cleared);
  }

  void wait_for_all(Stage stage) const {
    for (int rank = 0; rank < context_.ranks(); ++rank) context_.wait_for(rank, stage);
  }

  void write(const Case& plan, const Outcome& outcome) {
    if (!options_.writes_all && !plan.is_erroneous() && outcome.is_right()) return;
    std::fprintf(out_, "%llu\t%s\t%s\t%s\n", static_cast<unsigned long long>(plan.number), name(plan.family),
                 outcome.is_right() ? "right" : "wrong", outcome.text().c_str());
    std::fflush(out_);
  }

  const Options& options_;
  Context context_;
  Slot& slot_;
  std::FILE* out_;
};

MPI_Comm make_intercommunicator(MPI_Comm intra) {
  const int ranks = size(intra);
  if (ranks < 2) return MPI_COMM_NULL;
  const int lower = ranks / 2;
  const bool is_lower = rank(intra) < lower;
  MPI_Comm half, inter;
  MPI_Comm_split(intra, is_lower, rank(intra), &half);
  MPI_Intercomm_create(half, 0, intra, is_lower ? lower : 0, 0, &inter);
  MPI_Comm_free(&half);
  return inter;
}

int run_program(const Options& options) {
  int provided = MPI_THREAD_SINGLE;
  const int wanted = options.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, wanted, &provided);
  if (provided < wanted) {
    std::fprintf(stderr, "This MPI library has no MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const Job job(options.job.c_str(), rank(), size());
  job.mine(0).under_gapless = under_gapless();
  job.mine(0).process = getpid();
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(count_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  BsendBuffer::attach_roomy();

  std::vector<Context> contexts;
  for (int thread = 0; thread < options.threads; ++thread) {
    Context context{&job, thread, 0, MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL, handler, options.threads == 1};
    MPI_Comm_dup(MPI_COMM_WORLD, &context.intra);
    MPI_Comm_dup(MPI_COMM_WORLD, &context.quiet);
    context.inter = make_intercommunicator(context.intra);
    contexts.push_back(context);
  }
  predefined_types();
  job.note_ends();
  const auto run = [&](const Context& context) { Runner(options, context).run_all(); };
  std::vector<std::thread> threads;
  for (std::size_t k = 1; k < contexts.size(); ++k) threads.emplace_back(run, contexts[k]);
  run(contexts[0]);
  for (std::thread& thread : threads) thread.join();

  for (Context& context : contexts)
    for (MPI_Comm* comm : {&context.intra, &context.quiet, &context.inter})
      if (*comm != MPI_COMM_NULL) MPI_Comm_free(comm);
  BsendBuffer::detach();
  MPI_Errhandler_free(&handler);
  MPI_Finalize();
  return 0;
}

}  // namespace
}  // namespace gapless::test::differential

int main(int argc, char** argv) {
  using namespace gapless::test::differential;
  const Options options = parse(argc, argv);
  if (options.prints_families) return print_families(options);
  preload(options, argv);
  testing::InitGoogleTest();
  return run_program(options);
}
