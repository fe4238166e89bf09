// Which functions the program's MPI library has, answered while the dynamic linker is still at work: nothing here needs
// libc, or that any library, this one included, has been relocated.
#pragma once

extern "C" {

/// `function` if an MPI library mapped into this process defines `name`, else null. Called from the resolvers of
/// indirect functions.
void* gapless_shim_if_available(const char* name, void* function);

/// Makes every exported function that lies between gapless_shim_optional_begin and gapless_shim_optional_end an
/// indirect one, whose resolver follows it at a distance of 16 bytes. Called while this library is relocated, on some
/// processors more than once; what it returns is of no use. If the symbol table cannot be written, functions stay as
/// they are.
void* gapless_shim_make_indirect();

extern const char gapless_shim_optional_begin[] __attribute__((visibility("hidden")));
extern const char gapless_shim_optional_end[] __attribute__((visibility("hidden")));
}
