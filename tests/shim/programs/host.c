// Uses MPI only through the plugin that its first argument names, loaded with RTLD_LOCAL; without an argument, through
// the plugin it was linked with.
#include <dlfcn.h>
#include <stdio.h>

static void* plugin;

static int call(const char* name) {
  int (*function)(void) = (int (*)(void))dlsym(plugin, name);
  return function == 0 ? -1 : function();
}

int main(int argc, char** argv) {
  plugin = dlopen(argc > 1 ? argv[1] : 0, RTLD_NOW | RTLD_LOCAL);
  if (plugin == 0) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  printf("large count %d\n", call("has_large_count"));
  printf("communicator buffers %d\n", call("has_communicator_buffers"));
  printf("start %d\n", call("start"));
  printf("message %d\n", call("message"));
  printf("finish %d\n", call("finish"));
  return 0;
}
