// Which functions the program's MPI library has, answered while the dynamic linker is still at work.
#pragma once

extern "C" {

/// `function` if an MPI library mapped into this process defines `name`, else null. Called from the resolvers of
/// indirect functions, possibly before any library, this one included, has been relocated: needs neither libc nor
/// relocations.
void* gapless_shim_if_available(const char* name, void* function);
}
