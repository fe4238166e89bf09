// Several messages of an endpoint with work between them, under one request or in one call: collectives, and exchanges.
//
// A schedule is made whole, as a list of steps, and run by whoever drives the endpoint. Steps start one after another;
// a fence waits for all messages before it. So the blocking, nonblocking and persistent forms of a collective are one
// list, and a persistent one is the list run again.
//
// Once a schedule has failed, its receives go on, and its sends send no bytes, which those who receive them hear of: a
// rank that waited for ever would be worse, and so would one that takes something else for the bytes.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "endpoints/delivery/operation.hpp"

namespace gapless::mpi::endpoints {

/// Memory of a schedule, for elements of a datatype.
class Scratch {
 public:
  Scratch(MPI_Count count, MPI_Datatype datatype) noexcept;
  explicit operator bool() const noexcept { return memory_ != nullptr; }
  Data data() const noexcept { return {first_, count_, datatype_}; }

 private:
  MPI_Count count_;
  MPI_Datatype datatype_;
  std::unique_ptr<std::byte[]> memory_;
  void* first_ = nullptr;
};

class Schedule : public Task {
 public:
  /// `outlives`: the call that makes it returns before it is done.
  Schedule(Endpoint& of, bool outlives);
  ~Schedule() override;

  // Steps. Within the endpoint's own group.
  void send(const Data& data, int to) { send_in_collective(data, to + endpoint->sides.first_local); }
  void receive(const Data& data, int from) { receive_in_collective(data, from + endpoint->sides.first_local); }
  // To and from those whom a message can name: the remote group of an intercommunicator, else the own one.
  void send_to_peer(const Data& data, int to) { send_in_collective(data, to + endpoint->sides.first_remote); }
  void receive_from_peer(const Data& data, int from) {
    receive_in_collective(data, from + endpoint->sides.first_remote);
  }
  // Ranks are those of the `Communicator`; `tell` is of the one receive that the schedule's status tells of.
  void send(const Data& data, int to, int tag, Context context, Mode mode);
  void receive(const Data& data, int from, int tag, Context context, bool tell);
  void copy(const Data& from, const Data& to);
  /// right = left op right
  void combine(const Data& left, const Data& right, MPI_Op op);
  void fence();
  /// Goes on once `is_over(code)` says so, which is asked again and again, and whose code is the schedule's.
  void wait_for(std::function<bool(int& code)> is_over);

  /// Memory that lives as long as the schedule; null if there is none to be had, and the schedule ends in that error.
  Scratch* scratch(MPI_Count count, MPI_Datatype datatype);
  /// The program may free its datatypes while the schedule runs.
  MPI_Datatype own(MPI_Datatype datatype);
  /// The program's handle of what own() has returned, which operations are defined for and called with.
  MPI_Datatype programs(MPI_Datatype owned) const noexcept;
  /// An error of the arguments: the schedule is not to be run.
  void fail(int code) noexcept {
    if (mistake_ == MPI_SUCCESS) mistake_ = code;
  }
  int mistake() const noexcept { return mistake_; }
  /// Notes whether the arguments name a buffer. False once the schedule has a mistake, that one or an earlier one.
  bool accepts(const Data& data) noexcept {
    if (data.count < 0) fail(MPI_ERR_COUNT);
    if (data.datatype == MPI_DATATYPE_NULL) fail(MPI_ERR_TYPE);
    return mistake_ == MPI_SUCCESS;
  }
  /// What the messages of this collective are told from those of others by.
  void set_tag(int tag) noexcept { tag_ = tag; }
  bool is_between_groups() const noexcept { return endpoint->sides.is_inter(); }
  int size() const noexcept { return endpoint->local_size(); }  ///< of the own group
  int rank() const noexcept { return endpoint->rank - endpoint->sides.first_local; }
  int peers() const noexcept { return endpoint->peers(); }

  /// Runs it in this call. Its code.
  int run();
  /// Starts it; whoever drives the endpoint carries it on. It may be complete, and gone, at once.
  void start();
  void cancel() noexcept override;
  /// Does what can be done. True once all is done; then only `complete` is left.
  bool advance();

 private:
  struct Step {
    enum class Kind : std::uint8_t { send, receive, copy, combine, fence, wait } kind;
    Data data{}, other{};
    int peer = 0, tag = 0;
    Context context = Context::collective;
    Mode mode = Mode::standard;
    bool tell = false;
    MPI_Op op{};
    std::function<bool(int& code)> is_over{};
  };
  void send_in_collective(const Data& data, int to) { send(data, to, tag_, Context::collective, Mode::standard); }
  void receive_in_collective(const Data& data, int from) { receive(data, from, tag_, Context::collective, false); }
  void restart();
  void take(const Step& step);
  void start_message(const Step& step);
  bool is_round_done() noexcept;
  void end_round();
  void give_up(int failure);

  std::vector<Step> steps_;
  std::size_t next_ = 0;
  std::vector<std::unique_ptr<Operation>> round_;
  Operation* told_ = nullptr;
  std::vector<std::unique_ptr<Scratch>> scratch_;
  std::vector<std::pair<MPI_Datatype, MPI_Datatype>> owned_;
  int tag_ = 0;
  int mistake_ = MPI_SUCCESS;
};

/// Advances the schedules that were started on the endpoint.
void advance_schedules(Endpoint& endpoint);

}  // namespace gapless::mpi::endpoints
