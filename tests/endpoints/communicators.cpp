// How endpoints communicators are made, compared and freed, on threads as ranks.

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "gapless/endpoints.h"
#include "intercommunicators.hpp"
#include "on_endpoints.hpp"
#include "support/environment.hpp"

namespace gapless::test {
namespace {

int sum_of(const Shape& shape, int processes) {
  int sum = 0;
  for (int process = 0; process < processes; ++process) sum += shape(process);
  return sum;
}

TEST(Create, RanksAreInTheOrderOfTheParent) {
  for (const Shape& shape :
       {each(1), each(3), Shape(uneven), Shape([](int process) { return process == 0 ? 2 : 0; })}) {
    Endpoints endpoints(shape);
    EXPECT_EQ(MPI_SUCCESS, endpoints.code);
    int expected = sum_of(shape, rank());
    for (MPI_Comm& handle : endpoints.handles()) {
      EXPECT_EQ(expected++, rank(handle));
      EXPECT_EQ(sum_of(shape, size()), size(handle));
      EXPECT_EQ(MPI_SUCCESS, MPI_Comm_free(&handle));
      EXPECT_EQ(MPI_COMM_NULL, handle);
    }
  }
}

TEST(Create, MistakesAreErrorsOnEveryProcess) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  MPI_Comm handle;
  EXPECT_EQ(MPI_ERR_ARG,
            error_class(MPIX_Comm_create_endpoints(MPI_COMM_WORLD, rank() == 0 ? -1 : 1, MPI_INFO_NULL, &handle)));
  EXPECT_EQ(MPI_ERR_ARG, error_class(MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 1, MPI_INFO_NULL, nullptr)));
  EXPECT_EQ(MPI_SUCCESS, MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 0, MPI_INFO_NULL, nullptr));
}

TEST(Create, OfASelfIsForThreadsOfOneProcess) {
  Endpoints endpoints(each(3), MPI_COMM_SELF);
  EXPECT_EQ(0, endpoints.run([](MPI_Comm comm) {
    int sum = 0, mine = rank(comm);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    return size(comm) != 3 || sum != 3;
  }));
}

TEST(Compare, KnowsAliasesDuplicatesAndProcesses) {
  Endpoints several(each(2));
  int result = -1;
  MPI_Comm_compare(several.handles()[0], several.handles()[0], &result);
  EXPECT_EQ(MPI_IDENT, result);
  MPI_Comm_compare(several.handles()[0], several.handles()[1], &result);
  EXPECT_EQ(MPIX_ALIASED, result);
  MPI_Comm_compare(several.handles()[0], MPI_COMM_WORLD, &result);
  EXPECT_EQ(MPI_UNEQUAL, result);
  EXPECT_EQ(0, several.run([](MPI_Comm comm) {
    MPI_Comm copy, turned;
    int same = -1, similar = -1;
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_split(comm, 0, -rank(comm), &turned);
    MPI_Comm_compare(comm, copy, &same);
    MPI_Comm_compare(turned, comm, &similar);
    const int turned_rank = rank(turned);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&turned);
    return (same != MPI_CONGRUENT) + (similar != MPI_SIMILAR) + (turned_rank != size(comm) - 1 - rank(comm));
  }));
  Endpoints one(each(1));
  MPI_Comm_compare(one.handles()[0], MPI_COMM_WORLD, &result);
  EXPECT_EQ(MPI_CONGRUENT, result);
  MPI_Comm_free(&one.handles()[0]);
}

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
/// The name that MPI reserves means MPI_COMM_TYPE_SHARED; a resource that is not known gives no communicator.
TEST(Split, ByANamedResource) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              int wrong = 0, same = MPI_UNEQUAL;
              MPI_Info info;
              MPI_Info_create(&info);
              MPI_Comm node, other;
              wrong += MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_GUIDED, 0, info, &other) != MPI_SUCCESS;
              wrong += other != MPI_COMM_NULL;
              MPI_Info_set(info, "mpi_hw_resource_type", "no such thing");
              wrong += MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_GUIDED, 0, info, &other) != MPI_SUCCESS;
              wrong += other != MPI_COMM_NULL;
              MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
              wrong += MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_GUIDED, 0, info, &other) != MPI_SUCCESS;
              MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
              MPI_Comm_compare(node, other, &same);
              wrong += same != MPI_CONGRUENT;
              MPI_Comm_free(&node);
              MPI_Comm_free(&other);
              wrong += MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &other) != MPI_SUCCESS;
              wrong += other != MPI_COMM_NULL;
              MPI_Info_free(&info);
              return wrong;
            }));
}
#endif

#ifdef OMPI_MAJOR_VERSION
/// The library knows more places of processes than MPI has names for.
TEST(Split, ByATypeOfTheLibrarysOwn) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              const int me = rank(comm), all = size(comm);
              MPI_Comm host, alone;
              int wrong = MPI_Comm_split_type(comm, OMPI_COMM_TYPE_HOST, -me, MPI_INFO_NULL, &host) != MPI_SUCCESS;
              wrong += size(host) != all || rank(host) != all - 1 - me;
              MPI_Comm_free(&host);
              const int mine = me == 0 ? int{OMPI_COMM_TYPE_HOST} : int{MPI_UNDEFINED};
              wrong += MPI_Comm_split_type(comm, mine, 0, MPI_INFO_NULL, &alone) != MPI_SUCCESS;
              wrong += (alone != MPI_COMM_NULL) != (me == 0);
              if (alone == MPI_COMM_NULL) return wrong;
              wrong += size(alone) != 1;
              MPI_Comm_free(&alone);
              return wrong;
            }));
}
#endif

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
/// Their members have no communicator any more when they make one of the group.
TEST(Groups, MakeCommunicatorsByThemselves) {
  const ReturnErrors returned(MPI_COMM_WORLD), returned_here(MPI_COMM_SELF);
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              const int me = rank(comm), all = size(comm);
              const Parts parts{all, true};
              const std::vector<int> here = parts.of(me % 2), there = parts.of(1 - me % 2);
              MPI_Group everyone, mine, theirs;
              MPI_Comm_group(comm, &everyone);
              MPI_Group_incl(everyone, static_cast<int>(here.size()), here.data(), &mine);
              MPI_Group_incl(everyone, static_cast<int>(there.size()), there.data(), &theirs);
              MPI_Comm made, inter, other;
              int wrong = 0;
              wrong += MPI_Comm_create_from_group(mine, "mine", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made) != MPI_SUCCESS;
              std::vector<int> found(here.size(), -1);
              MPI_Allgather(&me, 1, MPI_INT, found.data(), 1, MPI_INT, made);
              wrong += found != here || rank(made) != place_in(here, me);
              wrong += error_class(MPI_Send(&me, 1, MPI_INT, all, 0, made)) != MPI_ERR_RANK;  // is returned
              MPI_Comm_free(&made);
              const bool leads = me == here.back();
              wrong += MPI_Intercomm_create_from_groups(mine, static_cast<int>(here.size()) - 1,
                                                        leads ? theirs : MPI_GROUP_NULL,
                                                        leads ? static_cast<int>(there.size()) - 1 : -1, "both",
                                                        MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter) != MPI_SUCCESS;
              wrong += wrong_between(inter, comm, here, there);
              MPI_Comm_free(&inter);
              wrong += error_class(MPI_Comm_create_from_group(theirs, "not mine", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                                              &other)) != MPI_ERR_GROUP;
              for (MPI_Group* group : {&everyone, &mine, &theirs}) MPI_Group_free(group);
              return wrong;
            }));
}
#endif

TEST(Handles, HaveAttributesNamesAndHandlers) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              int wrong = 0, flag = 0, key = MPI_KEYVAL_INVALID, length = 0;
              int* bound = nullptr;
              MPI_Comm_get_attr(comm, MPI_TAG_UB, &bound, &flag);
              wrong += flag == 0 || *bound < 32767;
              int mine = rank(comm), *found = nullptr;
              MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
              MPI_Comm_set_attr(comm, key, &mine);
              MPI_Comm_get_attr(comm, key, &found, &flag);
              wrong += flag == 0 || found != &mine;
              MPI_Comm_delete_attr(comm, key);
              MPI_Comm_free_keyval(&key);
              char name[MPI_MAX_OBJECT_NAME];
              MPI_Comm_set_name(comm, ("endpoint " + std::to_string(mine)).c_str());
              MPI_Comm_get_name(comm, name, &length);
              wrong += name != "endpoint " + std::to_string(mine);
              wrong += error_class(MPI_Send(&mine, 1, MPI_INT, size(comm), 0, comm)) != MPI_ERR_RANK;
              wrong += error_class(MPI_Send(&mine, 1, MPI_INT, 0, -1, comm)) != MPI_ERR_TAG;
              wrong +=
                  *bound < 2147483647 && error_class(MPI_Send(&mine, 1, MPI_INT, 0, *bound + 1, comm)) != MPI_ERR_TAG;
              wrong += error_class(MPI_Send(&mine, -1, MPI_INT, 0, 0, comm)) != MPI_ERR_COUNT;
              return wrong;
            }));
}

/// Pairs of ranks, one of each process, make communicators at a time; the ranks of one process do so one after the
/// other, for each waits for a message of the one before.
TEST(Create, DoesNotHoldUpOthers) {
  if (size() < 2) GTEST_SKIP() << "one process";
  constexpr int pairs = 2;
  for (const bool by_group : {false, true}) {
    EXPECT_EQ(0, on_endpoints([](int process) { return process < 2 ? pairs : 0; },
                              [by_group](MPI_Comm comm) {
                                const int pair = rank(comm) % pairs, process = rank(comm) / pairs;
                                MPI_Comm both, made;
                                MPI_Comm_split(comm, pair, process, &both);
                                const auto make = [&] {
                                  if (!by_group) return MPI_Comm_dup(both, &made);
                                  MPI_Group group;
                                  MPI_Comm_group(both, &group);
                                  const int code = MPI_Comm_create_group(both, group, 0, &made);
                                  MPI_Group_free(&group);
                                  return code;
                                };
                                const auto hand_on = [&](int to) { MPI_Send(nullptr, 0, MPI_INT, to, 1, comm); };
                                if (process == 1 && pair == 0)
                                  MPI_Recv(nullptr, 0, MPI_INT, rank(comm) + 1, 1, comm, MPI_STATUS_IGNORE);
                                int wrong = make() != MPI_SUCCESS;
                                if (process == 1 && pair == 1) hand_on(rank(comm) - 1);
                                wrong += size(made) != 2 || rank(made) != process;
                                MPI_Comm_free(&made);
                                MPI_Comm_free(&both);
                                return wrong;
                              }));
  }
}

/// Two groups, with members in each process, make communicators at a time in every way: what one of a process makes
/// first is what another has to wait for elsewhere, unless nothing is made between the members' meeting and the call of
/// the library.
TEST(Create, HalvesOfAllProcessesDoSoAtATime) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              constexpr int rounds = 100;
              const int half_of_mine = rank(comm) % 2;
              MPI_Comm half;
              MPI_Comm_split(comm, half_of_mine, 0, &half);
              MPI_Group members;
              MPI_Comm_group(half, &members);
              int wrong = 0;
              const auto look_at = [&](int code, MPI_Comm& made) {
                int sum = 0;
                const int one = 1;
                wrong += code != MPI_SUCCESS;
                if (code != MPI_SUCCESS) return;
                MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made);
                wrong += sum != size(half);
                MPI_Comm_free(&made);
              };
              for (int round = 0; round < rounds; ++round) {
                MPI_Comm made;
                look_at(MPI_Comm_dup(half, &made), made);
                look_at(MPI_Comm_create_group(half, members, 1, &made), made);
                look_at(MPI_Comm_split(half, 0, 0, &made), made);
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
                const char* const word = half_of_mine == 0 ? "even" : "odd";
                look_at(MPI_Comm_create_from_group(members, word, MPI_INFO_NULL, MPI_ERRORS_RETURN, &made), made);
#endif
                if (size(half) < 2) continue;
                MPI_Comm alone, other;
                MPI_Comm_split(half, rank(half) == 0 ? 0 : 1, 0, &alone);
                wrong += MPI_Intercomm_create(alone, 0, half, rank(half) == 0 ? 1 : 0, 0, &other) != MPI_SUCCESS;
                look_at(MPI_Intercomm_merge(other, 0, &made), made);
                MPI_Comm_free(&other);
                MPI_Comm_free(&alone);
              }
              MPI_Group_free(&members);
              MPI_Comm_free(&half);
              return wrong;
            }));
}

/// Of a split, a process has members in both parts, others in one of them; another group duplicates its communicator
/// meanwhile. No process may be late for one part because it makes the other.
TEST(Split, ManyPartsHoldNobodyUp) {
  if (size() < 3) GTEST_SKIP() << "fewer than three processes";
  EXPECT_EQ(0, on_endpoints(each(3), [](MPI_Comm comm) {
              constexpr int rounds = 100, local = 3;
              const int process = rank(comm) / local, mine = rank(comm) % local;
              const bool splits = mine != 2;
              const int colour = process == 0 ? mine : process == 1 ? 1 : 0;
              MPI_Comm group;
              MPI_Comm_split(comm, splits ? 0 : 1, 0, &group);
              int wrong = 0;
              for (int round = 0; round < rounds; ++round) {
                MPI_Comm made = MPI_COMM_NULL;
                wrong += (splits ? MPI_Comm_split(group, colour, 0, &made) : MPI_Comm_dup(group, &made)) != MPI_SUCCESS;
                const int one = 1;
                int sum = 0;
                MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made);
                wrong += sum != size(made) || (!splits && sum != size(group));
                MPI_Comm_free(&made);
              }
              MPI_Comm_free(&group);
              return wrong;
            }));
}

/// A duplicate that the program does not wait for holds up nothing that others make, for which its late members may
/// wait.
TEST(Create, NonblockingDuplicatesHoldUpNobody) {
  if (size() < 2) GTEST_SKIP() << "one process";
  EXPECT_EQ(
      0, on_endpoints([](int process) { return process < 2 ? 2 : 0; },
                      [](MPI_Comm comm) {
                        const int process = rank(comm) / 2, pair = rank(comm) % 2;
                        MPI_Comm both, alone, made;
                        MPI_Comm_split(comm, pair, 0, &both);
                        MPI_Comm_split(both, process, 0, &alone);
                        MPI_Barrier(comm);
                        int wrong = 0;
                        if (pair == 0) {
                          MPI_Request request;
                          if (process == 1) MPI_Recv(nullptr, 0, MPI_INT, 1, 1, comm, MPI_STATUS_IGNORE);
                          MPI_Comm_idup(both, &made, &request);
                          if (process == 0) MPI_Send(nullptr, 0, MPI_INT, 1, 2, comm);
                          MPI_Wait(&request, MPI_STATUS_IGNORE);
                          wrong += size(made) != 2;
                          MPI_Comm_free(&made);
                        } else if (process == 0) {
                          MPI_Recv(nullptr, 0, MPI_INT, 0, 2, comm, MPI_STATUS_IGNORE);
                          std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a thread of gapless may begin
                          wrong += MPI_Comm_dup(alone, &made) != MPI_SUCCESS;
                          MPI_Comm_free(&made);
                          MPI_Send(nullptr, 0, MPI_INT, 2, 1, comm);
                        }
                        MPI_Comm_free(&alone);
                        MPI_Comm_free(&both);
                        return wrong;
                      }));
}

/// Operations of the program get the datatype that the program names, whose attributes nobody copies.
TEST(Reductions, NameTheDatatypeOfTheProgram) {
  static std::atomic<int> copies, others;
  static MPI_Datatype pair;
  copies = others = 0;
  int key = MPI_KEYVAL_INVALID;
  MPI_Type_create_keyval(
      [](MPI_Datatype, int, void*, void*, void*, int* flag) -> int {
        ++copies;
        *flag = 0;
        return MPI_SUCCESS;
      },
      MPI_TYPE_NULL_DELETE_FN, &key, nullptr);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Type_set_attr(pair, key, nullptr);
  MPI_Op add;
  MPI_Op_create(
      [](void* left, void* right, int* count, MPI_Datatype* type) {
        others += *type != pair;
        for (int i = 0; i < 2 * *count; ++i) static_cast<int*>(right)[i] += static_cast<int*>(left)[i];
      },
      1, &add);
  EXPECT_EQ(0, on_endpoints(each(2), [add](MPI_Comm comm) {
              std::array<int, 2> mine{rank(comm), 1}, sum{}, later{};
              MPI_Request request;
              int wrong = MPI_Allreduce(mine.data(), sum.data(), 1, pair, add, comm) != MPI_SUCCESS;
              wrong += MPI_Iallreduce(mine.data(), later.data(), 1, pair, add, comm, &request) != MPI_SUCCESS;
              wrong += MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS;
              return wrong + (sum[1] != size(comm)) + (later != sum);
            }));
  EXPECT_EQ(0, copies);
  EXPECT_EQ(0, others);
  MPI_Op_free(&add);
  MPI_Type_free(&pair);
  MPI_Type_free_keyval(&key);
}

TEST(Split, MakesCommunicatorsOfTheirOwn) {
  EXPECT_EQ(0, on_endpoints(uneven, [](MPI_Comm comm) {
              const int me = rank(comm), all = size(comm);
              MPI_Comm half, none;
              int wrong = 0, sum = 0;
              MPI_Comm_split(comm, me % 2, -me, &half);
              wrong += size(half) != (all + (me % 2 == 0 ? 1 : 0)) / 2;
              MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, half);
              int expected = 0;
              for (int i = me % 2; i < all; i += 2) expected += i;
              wrong += sum != expected;
              MPI_Comm_split(comm, me == 0 ? 1 : MPI_UNDEFINED, 0, &none);
              wrong += (none == MPI_COMM_NULL) != (me != 0);
              if (none != MPI_COMM_NULL) MPI_Comm_free(&none);
              MPI_Comm_free(&half);
              return wrong;
            }));
}

TEST(Free, CanBeDoneByOneThread) {
  Endpoints endpoints(each(3));
  for (MPI_Comm& handle : endpoints.handles()) EXPECT_EQ(MPI_SUCCESS, MPI_Comm_free(&handle));
}

/// Rank r of the parent asks for r % 3 ranks, whose order is that of the parent's.
int of_endpoints(MPI_Comm parent) {
  const int me = rank(parent), all = size(parent), count = me % 3;
  std::array<MPI_Comm, 2> handles = {MPI_COMM_NULL, MPI_COMM_NULL};
  int wrong = MPIX_Comm_create_endpoints(parent, count, MPI_INFO_NULL, handles.data()) != MPI_SUCCESS;
  int first = 0, total = 0;
  for (int i = 0; i < all; ++i) {
    if (i < me) first += i % 3;
    total += i % 3;
  }
  std::atomic<int> wrong_inside = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      MPI_Comm comm = handles[static_cast<std::size_t>(i)];
      const int mine = rank(comm);
      int sum = 0, relation = -1;
      MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
      MPI_Comm_compare(comm, parent, &relation);
      wrong_inside += mine != first + i || size(comm) != total || sum != total * (total - 1) / 2;
      wrong_inside += relation != MPI_UNEQUAL;
      MPI_Comm_free(&comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return wrong + wrong_inside;
}

TEST(Create, EndpointsOfEndpoints) {
  for (const Shape& shape : {each(3), Shape(uneven)}) EXPECT_EQ(0, on_endpoints(shape, of_endpoints));
}

/// One each is the endpoint itself; a mistake of one is every rank's error.
TEST(Create, EndpointsOfEndpointsAreComparedAndChecked) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm parent) {
              MPI_Comm same = MPI_COMM_NULL, none = MPI_COMM_NULL;
              int relation = -1;
              int wrong = MPIX_Comm_create_endpoints(parent, 1, MPI_INFO_NULL, &same) != MPI_SUCCESS;
              MPI_Comm_compare(parent, same, &relation);
              wrong += relation != MPI_CONGRUENT;
              MPI_Comm_free(&same);
              const int count = rank(parent) == 1 ? -1 : 1;
              wrong += error_class(MPIX_Comm_create_endpoints(parent, count, MPI_INFO_NULL, &none)) != MPI_ERR_ARG;
              return wrong + (none != MPI_COMM_NULL);
            }));
}

/// Threads of one endpoint make communicators of overlapping groups at a time, told apart by tags.
TEST(CreateGroup, ByThreadsOfOneEndpointAtATime) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              constexpr int times = 10;
              const int me = rank(comm), all = size(comm);
              std::atomic<int> wrong = 0;
              std::vector<std::thread> threads;
              for (const int tag : {3, 4, 30000}) {
                threads.emplace_back([&, tag] {
                  MPI_Group everyone, some;
                  MPI_Comm_group(comm, &everyone);
                  int range[1][3] = {{tag == 4 ? 1 : 0, all - 1, 1}};
                  MPI_Group_range_incl(everyone, 1, range, &some);
                  for (int time = 0; time < times; ++time) {
                    MPI_Comm made = MPI_COMM_NULL;
                    wrong += MPI_Comm_create_group(comm, some, tag, &made) != MPI_SUCCESS;
                    if ((made == MPI_COMM_NULL) != (me < range[0][0])) ++wrong;
                    if (made == MPI_COMM_NULL) continue;
                    int highest = 0;
                    MPI_Allreduce(&tag, &highest, 1, MPI_INT, MPI_MAX, made);
                    wrong += highest != tag || size(made) != all - range[0][0];
                    MPI_Comm_free(&made);
                  }
                  MPI_Group_free(&some);
                  MPI_Group_free(&everyone);
                });
              }
              for (std::thread& thread : threads) thread.join();
              return wrong.load();
            }));
}

/// Threads of one endpoint make intercommunicators of the same groups at a time, told apart by tags.
TEST(Intercommunicators, ByThreadsOfOneEndpointAtATime) {
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              constexpr int times = 20;
              const int me = rank(comm), side = me % 2;
              std::array<MPI_Comm, 2> wholes, halves;
              for (MPI_Comm& whole : wholes) MPI_Comm_dup(comm, &whole);
              for (MPI_Comm& half : halves) MPI_Comm_split(comm, side, 0, &half);
              std::atomic<int> wrong = 0;
              std::vector<std::thread> threads;
              for (const int number : {0, 1}) {
                threads.emplace_back([&, number] {
                  const auto i = static_cast<std::size_t>(number);
                  const int partner = me / 2;
                  for (int time = 0; time < times; ++time) {
                    MPI_Comm inter = MPI_COMM_NULL;
                    std::array<int, 2> out{number, me}, in{-1, -1};
                    wrong += MPI_Intercomm_create(halves[i], 0, wholes[i], 1 - side, number, &inter) != MPI_SUCCESS;
                    MPI_Sendrecv(out.data(), 2, MPI_INT, partner, 0, in.data(), 2, MPI_INT, partner, 0, inter,
                                 MPI_STATUS_IGNORE);
                    wrong += in[0] != number || in[1] != (me ^ 1);
                    MPI_Comm_free(&inter);
                  }
                });
              }
              for (std::thread& thread : threads) thread.join();
              for (MPI_Comm* made : {&wholes[0], &wholes[1], &halves[0], &halves[1]}) MPI_Comm_free(made);
              return wrong.load();
            }));
}

/// Both leaders are in one process, which the communicator in which they meet has once.
TEST(Intercommunicators, OfLeadersInOneProcess) {
  std::vector<MPI_Comm> handles(6);
  MPIX_Comm_create_endpoints(MPI_COMM_SELF, 6, MPI_INFO_NULL, handles.data());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (MPI_Comm& comm : handles) {
    threads.emplace_back([&] {
      // Pairs of groups meet at a time, in two communicators and by two tags.
      const int here = test::rank(), me = rank(comm), side = me % 2, pair = me / 2;
      MPI_Comm own, inter;
      MPI_Comm_split(comm, me, 0, &own);
      for (int time = 0; time < 3; ++time) {
        const MPI_Comm peers = pair == 2 ? MPI_COMM_SELF : MPI_COMM_WORLD;
        wrong += MPI_Intercomm_create(own, 0, peers, pair == 2 ? 0 : here, pair % 2, &inter) != MPI_SUCCESS;
        wrong += wrong_between(inter, comm, {me}, {2 * pair + 1 - side});
        MPI_Comm_free(&inter);
      }
      MPI_Comm_free(&own);
      MPI_Comm_free(&comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, wrong);
}

/// The last member of a group calls once it has made another communicator, together with a neighbour of the other
/// group, who comes late.
TEST(Intercommunicators, DoNotHoldUpOtherCreations) {
  if (size() < 2) GTEST_SKIP() << "one process";
  EXPECT_EQ(
      0, on_endpoints([](int process) { return process < 2 ? 2 : 0; },
                      [](MPI_Comm comm) {
                        const int me = rank(comm);
                        int wrong = 0;
                        MPI_Comm pair, side, made = MPI_COMM_NULL, inter = MPI_COMM_NULL;
                        MPI_Comm_split(comm, me % 2, me, &pair);  // {0, 2} and {1, 3}
                        MPI_Comm_split(comm, me == 0 ? 0 : me == 1 ? MPI_UNDEFINED : 1, me, &side);  // {0} and {2, 3}
                        if (me == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
                        if (me % 2 == 1) wrong += MPI_Comm_dup(pair, &made) != MPI_SUCCESS;
                        if (me != 1)
                          wrong += MPI_Intercomm_create(side, 0, comm, me == 0 ? 2 : 0, 0, &inter) != MPI_SUCCESS;
                        for (MPI_Comm* one : {&pair, &side, &made, &inter}) {
                          if (*one != MPI_COMM_NULL) MPI_Comm_free(one);
                        }
                        return wrong;
                      }));
}

}  // namespace
}  // namespace gapless::test
