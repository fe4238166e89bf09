#include "mpi/requests/pending.hpp"

#include <type_traits>

#include "mpi/lifetime/errors.hpp"
#include "mpi/table/native.hpp"
#include "transfer/choice/host_trial.hpp"

namespace gapless::mpi::requests {

template <template <class> class Side, class Visit>
void Pending::visit(Visit visit) noexcept {
  if (auto* side = std::get_if<Side<int>>(&side_)) visit(*side);
  if constexpr (!std::is_same_v<MPI_Count, int>) {
    if (auto* side = std::get_if<Side<MPI_Count>>(&side_)) visit(*side);
  }
}

bool Pending::receives() noexcept {
  bool result = false;
  visit<Receiving>([&](auto&) { result = true; });
  visit<Exchange>([&](auto& both) { result = both.in.takes_part(); });
  return result;
}

bool Pending::is_unpacked_early() noexcept {
  if (frees_request || is_settled) return false;
  bool result = false;
  visit<Receiving>([&](auto& side) { result = side.takes_long_to_unpack(); });
  return result;
}

bool Pending::has_arrived(const ReceivedStatus& status) noexcept {
  bool has_status = true;
  visit<Exchange>([&](auto&) { has_status = library_gives_statuses_of_exchanges; });
  // A persistent request that is not started has an empty status, of any source.
  return status.is_set() && (!has_status || (status.source() != MPI_ANY_SOURCE && !status.is_cancelled()));
}

void Pending::unpack_in(transfer::Batch& batch, ReceivedStatus& status) noexcept {
  if (needs_no_unpacking || is_work()) return;
  needs_no_unpacking = true;
  outcome_ = MPI_SUCCESS;
  true_bytes_.reset();
  if (!complete_matched()) {
    outcome_ = raised_already;
    return;
  }
  if (matched_status_) status.take(*matched_status_);
  if (!has_arrived(status)) return;
  bool has_fetched = false;
  visit<Receiving>([&](auto& side) {
    outcome_ = side.unpack_in(batch, status, function);
    has_fetched = side.has_fetched();
  });
  visit<Exchange>([&](auto& both) {
    if (both.in.takes_part()) outcome_ = both.unpack_in(batch, status, function);
    has_fetched = both.in.has_fetched();
  });
  if (outcome_ == MPI_ERR_TYPE || has_fetched) true_bytes_ = status.bytes();
}

void Pending::batch_has_run(transfer::Result result) noexcept {
  visit<Receiving>([](auto& side) { side.note_unpacked(); });
  visit<Exchange>([](auto& both) { both.in.note_unpacked(); });
  if (result != transfer::Result::ok && receives()) outcome_ = transfer_failure(function, result);
}

int Pending::finish(ReceivedStatus& status) noexcept {
  if (auto* work = std::get_if<std::unique_ptr<Work>>(&side_)) {
    if (!std::exchange(needs_no_unpacking, true)) outcome_ = (*work)->finish(status);
    status.deliver();
    return outcome_;
  }
  if (!needs_no_unpacking) {
    transfer::Batch batch;
    unpack_in(batch, status);
    batch_has_run(batch.run());
  }
  int code = outcome_;
  complete_header();
  visit<Sending>([&](auto& side) {
    const int sent = side.complete(function);
    if (code == MPI_SUCCESS) code = sent;
  });
  if (matched_status_) status.take(*matched_status_);
  if (true_bytes_ && has_arrived(status)) {
    status.set_bytes(*true_bytes_);
    visit<Receiving>([&](auto& side) {
      if (const auto* matched = side.matched())
        status.set_envelope(matched->status.MPI_SOURCE, matched->status.MPI_TAG);
    });
  }
  if (Partitions* message = partitions(); message != nullptr && status.is_set()) {
    const transfer::Result result = message->finish();
    if (result != transfer::Result::ok) code = transfer_failure(function, result);
  }
  status.deliver();
  return code;
}

void Pending::fail(ReceivedStatus& status) noexcept {
  // MPICH reports an error for a partitioned message that is shorter than its receive, and fills in the bytes that have
  // come.
  if (Partitions* message = partitions(); message != nullptr && status.is_set()) {
    static_cast<void>(message->unpack_first(static_cast<MPI_Count>(status.bytes())));
  }
  status.deliver();
}

void Pending::complete_header() noexcept {
  if (std::exchange(is_header_under_way_, false)) native.Wait(&header_request, MPI_STATUS_IGNORE);
}

bool Pending::complete_matched() noexcept {
  return matched_request_ == MPI_REQUEST_NULL ||
         native.Wait(&matched_request_, &matched_status_.emplace()) == MPI_SUCCESS;
}

bool Pending::is_under_way() noexcept {
  int is_received = 1;
  if (is_being_matched()) native.Request_get_status(matched_request_, &is_received, MPI_STATUS_IGNORE);
  if (is_received == 0) return true;
  int is_sent = 1;
  if (is_header_under_way_) native.Test(&header_request, &is_sent, MPI_STATUS_IGNORE);
  if (is_sent == 0) return true;
  is_header_under_way_ = false;
  bool result = false;
  visit<Sending>([&](auto& side) { result = side.is_under_way(); });
  return result;
}

bool Pending::is_by_header() noexcept {
  bool result = false;
  visit<Sending>([&](auto& side) { result = side.is_by_header(); });
  return result;
}

void Pending::cancel_receive() noexcept {
  if (!is_settled) visit<Receiving>([&](auto&) { native.Cancel(&handle); });
}

void Pending::complete_alone() noexcept {
  visit<Sending>([](auto& side) { side.complete_alone(); });
}

void Pending::stop() noexcept {
  is_started = false;
  if (Partitions* message = partitions()) message->stop();
  if (is_work()) needs_no_unpacking = true;
}

void Pending::note_failure() noexcept {
  stop();
  if (!receives() && !is_work()) return;
  needs_no_unpacking = true;
  outcome_ = raised_already;
}

void Pending::forget_outcome() noexcept {
  complete_header();
  is_settled = is_told = is_started = false;
  matched_status_.reset();
  if (header_request != MPI_REQUEST_NULL) visit<Sending>([](auto& side) { side.forget_offer(); });
  outcome_ = MPI_SUCCESS;
  true_bytes_.reset();
}

bool Pending::may_be_tried() noexcept {
  if (!transfer::is_corrected() || transfer::is_any_forced()) return false;
  bool result = false;
  visit<Sending>([&](auto& side) { result = side.is_ours_on_host() && (side.packs() || side.may_be_offered()); });
  visit<Receiving>([&](auto& side) { result = side.is_ours_on_host() && side.packs(); });
  return result;
}

void Pending::start_in(transfer::Batch& batch) noexcept {
  needs_no_unpacking = false;
  start_code_ = MPI_SUCCESS;
  const bool may_be_offered = header_request != MPI_REQUEST_NULL && transfer::host_way() != transfer::HostWay::packed;
  visit<Sending>([&](auto& side) {
    if (may_be_offered) side.offer_started(headers::listener_of(peer, side.speaks()), tag);
    side.pack_in(batch);
  });
  visit<Receiving>([](auto& side) { side.forget_match(); });
  if (Partitions* message = partitions()) message->start();
  if (auto* work = std::get_if<std::unique_ptr<Work>>(&side_)) start_code_ = (*work)->start();
}

bool Pending::start_header(int& code) noexcept {
  if (header_request == MPI_REQUEST_NULL || !is_by_header()) return false;
  code = native.Start(&header_request);
  // To the library the program's request is inactive: gapless says when it is complete.
  is_header_under_way_ = is_settled = code == MPI_SUCCESS;
  return true;
}

int Pending::start_matched(const headers::Matched& matched) noexcept {
  int code = MPI_ERR_INTERN;
  visit<Receiving>([&](auto& side) {
    side.take_match(matched);
    MPI_Message message = matched.handle;
    if constexpr (std::is_same_v<decltype(side.count()), int>) {
      code = native.Imrecv(side.memory(), side.count(), side.datatype(), &message, &matched_request_);
    } else {
      GAPLESS_IF_DECLARED(
          Imrecv_c, code = native.Imrecv_c(side.memory(), side.count(), side.datatype(), &message, &matched_request_);)
    }
  });
  // To the library the program's request is inactive: gapless says when it is complete.
  is_settled = code == MPI_SUCCESS;
  return code;
}

int Pending::started(transfer::Result result) noexcept {
  if (result != transfer::Result::ok) {
    if (header_request != MPI_REQUEST_NULL) visit<Sending>([](auto& side) { side.forget_offer(); });
    return transfer_failure(function, result);
  }
  visit<Sending>([](auto& side) { side.note_packed(); });
  is_started = start_code_ == MPI_SUCCESS;
  return start_code_;
}

int Pending::pack_alone() noexcept {
  transfer::Result result = transfer::Result::ok;
  visit<Sending>([&](auto& side) { result = side.pack_alone(); });
  return result == transfer::Result::ok ? MPI_SUCCESS : transfer_failure(function, result);
}

void Pending::settle(int code) noexcept {
  is_settled = true;
  needs_no_unpacking = true;
  outcome_ = code;
}

}  // namespace gapless::mpi::requests
