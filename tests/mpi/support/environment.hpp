// Where a test runs: its rank, whether gapless is under it, and the MPI library's own functions whether it is or not.
#pragma once

#include <mpi.h>

#include <initializer_list>
#include <string>

namespace gapless::test {

inline int rank(MPI_Comm communicator = MPI_COMM_WORLD) {
  int result;
  MPI_Comm_rank(communicator, &result);
  return result;
}

inline int size(MPI_Comm communicator = MPI_COMM_WORLD) {
  int result;
  MPI_Comm_size(communicator, &result);
  return result;
}

/// Was this run started to test gapless (GAPLESS_TEST_EXPECT=1)?
bool expect_gapless();

/// Does MPI_Send belong to gapless in this process, and did it set itself up?
bool under_gapless();

/// The library's own PMPI_<name>, past any interposition; never null.
void* native_function(const char* name);

#define GAPLESS_TEST_NATIVE(name) reinterpret_cast<decltype(&MPI_##name)>(gapless::test::native_function("PMPI_" #name))

/// Errors of `communicator` are returned while this lives.
class ReturnErrors {
 public:
  explicit ReturnErrors(MPI_Comm communicator) : communicator_(communicator) {
    MPI_Comm_get_errhandler(communicator, &before_);
    MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  }
  ~ReturnErrors() {
    MPI_Comm_set_errhandler(communicator_, before_);
    MPI_Errhandler_free(&before_);
  }
  ReturnErrors(const ReturnErrors&) = delete;
  ReturnErrors& operator=(const ReturnErrors&) = delete;

 private:
  MPI_Comm communicator_;
  MPI_Errhandler before_;
};

/// `function` is called for errors of MPI_COMM_WORLD and MPI_COMM_SELF while this lives, which are those of calls
/// without a communicator, too: libraries differ in which of the two they tell.
class HandlerOfWorldAndSelf {
 public:
  explicit HandlerOfWorldAndSelf(MPI_Comm_errhandler_function* function) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(function, &handler);
    set(handler);
    MPI_Errhandler_free(&handler);
  }
  ~HandlerOfWorldAndSelf() { set(MPI_ERRORS_ARE_FATAL); }
  HandlerOfWorldAndSelf(const HandlerOfWorldAndSelf&) = delete;
  HandlerOfWorldAndSelf& operator=(const HandlerOfWorldAndSelf&) = delete;

 private:
  static void set(MPI_Errhandler handler) {
    for (const MPI_Comm communicator : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(communicator, handler);
  }
};

/// A duplicate for whose errors `function` is called.
class WithHandler {
 public:
  WithHandler(MPI_Comm parent, MPI_Comm_errhandler_function* function) {
    MPI_Comm_dup(parent, &communicator_);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(function, &handler);
    MPI_Comm_set_errhandler(communicator_, handler);
    MPI_Errhandler_free(&handler);
  }
  ~WithHandler() {
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    MPI_Comm_free(&communicator_);
  }
  WithHandler(const WithHandler&) = delete;
  WithHandler& operator=(const WithHandler&) = delete;
  operator MPI_Comm() const noexcept { return communicator_; }

 private:
  MPI_Comm communicator_;
};

inline bool is_intel_mpi() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, ' ');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return text.starts_with("Intel");
}

inline int error_class(int code) {
  int result = MPI_ERR_UNKNOWN;
  MPI_Error_class(code, &result);
  return result;
}

}  // namespace gapless::test
