/* What tests may do with the driver that is none (fake_driver.c). */
#pragma once
#include <stddef.h>

struct fake_driver {
  /* Gives out `bytes` of GPU memory at `address`, of which the CPU can read nothing, by a new mapping. */
  int (*map)(void* address, size_t bytes);
  /* Takes addresses that the CPU cannot read, to give them out later. Null where there are none. */
  void* (*reserve)(size_t bytes);
  /* Gives out GPU memory at reserved addresses, without a mapping. */
  void (*give_out)(void* address, size_t bytes);
  /* How often it was asked what a pointer is. */
  long (*queries)(void);
};
