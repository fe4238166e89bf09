#include "endpoints/tasks/schedule.hpp"

#include <algorithm>
#include <limits>
#include <new>

#include "endpoints/delivery/progress.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "mpi/datatypes/types_by_size.hpp"
#include "mpi/lifetime/runtime.hpp"

namespace gapless::mpi::endpoints {

Scratch::Scratch(MPI_Count count, MPI_Datatype datatype) noexcept : count_(count), datatype_(datatype) {
  MPI_Count lower_bound = 0, extent = 0, true_lower_bound = 0, true_extent = 0;
  native.Type_get_extent_x(datatype, &lower_bound, &extent);
  native.Type_get_true_extent_x(datatype, &true_lower_bound, &true_extent);
  const MPI_Count last = extent * (count > 0 ? count - 1 : 0);
  const MPI_Count span = true_extent + (last < 0 ? -last : last);
  memory_.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(span > 0 ? span : 1)]);
  first_ = const_cast<void*>(
      address_of(memory_.get(), static_cast<std::intptr_t>((last < 0 ? -last : 0) - true_lower_bound)));
}

namespace {

int combine_now(const Data& left, const Data& right, MPI_Op op) noexcept {
  void* const result = const_cast<void*>(right.memory);
  if (left.count <= std::numeric_limits<int>::max())
    return inner.Reduce_local(left.memory, result, static_cast<int>(left.count), left.datatype, op);
#if GAPLESS_DECLARED_Reduce_local_c
  if (inner.Reduce_local_c != nullptr) return inner.Reduce_local_c(left.memory, result, left.count, left.datatype, op);
#endif
  return MPI_ERR_COUNT;
}

}  // namespace

Schedule::Schedule(Endpoint& of, bool outlives) {
  endpoint = &of;
  outlives_call = outlives;
}

Schedule::~Schedule() {
  for (auto& [program, mine] : owned_) {
    if (mine != program) inner.Type_free(&mine);
  }
}

void Schedule::send(const Data& data, int to, int tag, Context context, Mode mode) {
  if (accepts(data)) steps_.push_back({Step::Kind::send, data, {}, to, tag, context, mode, false, {}});
}

void Schedule::receive(const Data& data, int from, int tag, Context context, bool tell) {
  if (accepts(data)) steps_.push_back({Step::Kind::receive, data, {}, from, tag, context, Mode::standard, tell, {}});
}

void Schedule::copy(const Data& from, const Data& to) {
  if (accepts(from) && accepts(to)) steps_.push_back({Step::Kind::copy, from, to});
}

void Schedule::combine(const Data& left, const Data& right, MPI_Op op) {
  Step step{Step::Kind::combine, left, right};
  step.op = op;
  step.data.datatype = step.other.datatype = programs(left.datatype);
  steps_.push_back(step);
}

void Schedule::fence() { steps_.push_back({Step::Kind::fence}); }

void Schedule::wait_for(std::function<bool(int& code)> is_over) {
  Step step{Step::Kind::wait};
  step.is_over = std::move(is_over);
  steps_.push_back(std::move(step));
}

Scratch* Schedule::scratch(MPI_Count count, MPI_Datatype datatype) {
  scratch_.push_back(std::make_unique<Scratch>(count, datatype));
  if (!*scratch_.back()) fail(MPI_ERR_NO_MEM);
  return scratch_.back().get();
}

MPI_Datatype Schedule::own(MPI_Datatype datatype) {
  if (!outlives_call || datatype == MPI_DATATYPE_NULL) return datatype;
  for (const auto& [program, mine] : owned_) {
    if (program == datatype) return mine;
  }
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  MPI_Datatype mine = datatype;
  // Not a duplicate, for which the library would call the program's callbacks of attributes. What is made of a datatype
  // keeps it.
  const bool is_derived = native.Type_get_envelope(datatype, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
                          combiner != MPI_COMBINER_NAMED;
  if (is_derived && !runtime::is_usable(datatype)) {
    fail(MPI_ERR_TYPE);
    return datatype;
  }
  if (is_derived && (native.Type_contiguous(1, datatype, &mine) != MPI_SUCCESS || !commit(mine))) mine = datatype;
  owned_.emplace_back(datatype, mine);
  return mine;
}

MPI_Datatype Schedule::programs(MPI_Datatype owned) const noexcept {
  const auto found = std::ranges::find(owned_, owned, [](const auto& pair) { return pair.second; });
  return found == owned_.end() ? owned : found->first;
}

void Schedule::restart() {
  next_ = 0;
  round_.clear();
  told_ = nullptr;
  code = MPI_SUCCESS;
  cancelled = false;
  source = MPI_PROC_NULL;
  tag = MPI_ANY_TAG;
  bytes = 0;
  begin(*this);
}

void Schedule::start_message(const Step& step) {
  round_.push_back(std::make_unique<Operation>());
  Operation& operation = *round_.back();
  operation.receives = step.kind == Step::Kind::receive;
  const bool has_failed = !operation.receives && code != MPI_SUCCESS;
  const Data data = has_failed ? Data{nullptr, 0, MPI_BYTE} : step.data;
  const int refused = set_buffer(operation, *endpoint, data);
  if (refused != MPI_SUCCESS) {
    round_.pop_back();
    return give_up(refused);
  }
  if (step.tell) told_ = &operation;
  if (operation.receives) {
    start_receive(operation, step.peer, step.tag, step.context);
  } else if (has_failed) {
    start_failed_send(operation, step.peer, step.tag, step.context);
  } else {
    start_send(operation, data, step.peer, step.tag, step.context, step.mode);
  }
}

void Schedule::take(const Step& step) {
  int failure = MPI_SUCCESS;
  if (code != MPI_SUCCESS && (step.kind == Step::Kind::copy || step.kind == Step::Kind::combine)) return;
  switch (step.kind) {
    case Step::Kind::send:
    case Step::Kind::receive:
      return start_message(step);
    case Step::Kind::copy:
      failure = copy_data(*endpoint, step.data, step.other);
      break;
    case Step::Kind::combine:
      failure = combine_now(step.data, step.other, step.op);
      break;
    case Step::Kind::fence:
    case Step::Kind::wait:
      break;
  }
  if (failure != MPI_SUCCESS && code == MPI_SUCCESS) code = failure;
}

/// No further step; what can be taken back is.
void Schedule::give_up(int failure) {
  if (code == MPI_SUCCESS) code = failure;
  next_ = steps_.size();
  for (const auto& operation : round_) operation->cancel();
}

bool Schedule::is_round_done() noexcept {
  return std::all_of(round_.begin(), round_.end(), [](const auto& operation) { return operation->is_done(); });
}

void Schedule::end_round() {
  for (const auto& operation : round_) {
    if (code == MPI_SUCCESS) code = operation->code;
    if (operation.get() == told_) {
      source = told_->source;
      tag = told_->tag;
      bytes = told_->bytes;
      told_ = nullptr;
    }
    cancelled = cancelled || operation->cancelled;
  }
  round_.clear();
}

bool Schedule::advance() {
  for (;;) {
    if (!is_round_done()) return false;
    end_round();
    if (next_ == steps_.size()) return true;
    while (next_ < steps_.size()) {
      const Step& step = steps_[next_];
      int failure = MPI_SUCCESS;
      if (step.kind == Step::Kind::wait && !step.is_over(failure)) return false;
      ++next_;
      if (failure != MPI_SUCCESS && code == MPI_SUCCESS) code = failure;
      if (step.kind == Step::Kind::fence) break;
      take(step);
    }
  }
}

int Schedule::run() {
  if (mistake_ != MPI_SUCCESS) return mistake_;
  restart();
  drive_until(*endpoint, [&] { return advance(); });
  complete(*this);
  return code;
}

void Schedule::start() {
  Endpoint& mine = *endpoint;
  const std::shared_ptr<Endpoint> kept = share(mine);
  const std::lock_guard lock(mine.schedules_mutex);
  restart();
  if (advance()) return complete(*this);
  mine.schedules.push_back(this);
  mine.schedule_count.store(static_cast<int>(mine.schedules.size()), std::memory_order_relaxed);
}

void Schedule::cancel() noexcept {
  const std::lock_guard lock(endpoint->schedules_mutex);
  for (const auto& operation : round_) {
    if (operation->envelope.context == Context::messages) operation->cancel();
  }
}

void advance_schedules(Endpoint& endpoint) {
  if (endpoint.schedule_count.load(std::memory_order_relaxed) == 0) return;
  const std::unique_lock lock(endpoint.schedules_mutex, std::try_to_lock);
  if (!lock) return;
  auto& all = endpoint.schedules;
  for (std::size_t i = 0; i < all.size();) {
    Schedule& schedule = *all[i];
    if (!schedule.advance()) {
      ++i;
      continue;
    }
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    endpoint.schedule_count.store(static_cast<int>(all.size()), std::memory_order_relaxed);
    complete(schedule);
  }
}

}  // namespace gapless::mpi::endpoints
