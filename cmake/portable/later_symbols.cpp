// What GCC's headers use that the oldest systems do not have. Linked into each library, and seen by no other.
#include <new>

// glibc 2.32: while it is true, shared_ptr counts without atomic instructions. MPI libraries have threads.
extern "C" [[gnu::visibility("hidden")]] char __libc_single_threaded;
char __libc_single_threaded = 0;

// GCC 11: what `new T[n]` calls for an n that is too large.
namespace std {
[[noreturn, gnu::visibility("hidden")]] void __throw_bad_array_new_length();
void __throw_bad_array_new_length() { throw bad_array_new_length(); }
}  // namespace std
