/* What tests may do with the driver that is none (fake_driver.c). */
#pragma once
#include <stddef.h>

/* What the driver says of some memory. */
struct fake_memory {
  void* address;
  size_t bytes;
  int type; /* CUmemorytype: 1 page-locked host memory, 2 a GPU's */
  int device;
  void* reservation; /* what it is a part of; null where it is an allocation of its own */
  size_t reservation_bytes;
};

struct fake_driver {
  /* Gives out `bytes` of GPU memory at `address`, of which the CPU can read nothing, by a new mapping. */
  int (*map)(void* address, size_t bytes);
  /* Takes addresses that the CPU cannot read, to give them out later. Null where there are none. */
  void* (*reserve)(size_t bytes);
  /* Gives out GPU memory at reserved addresses, without a mapping. */
  void (*give_out)(void* address, size_t bytes);
  /* Gives out memory of any kind at reserved addresses, without a mapping. */
  void (*add)(struct fake_memory memory);
  /* Frees the memory there; the addresses are the system's again. */
  void (*release)(void* address, size_t bytes);
  /* Calls the part of the driver in the system, for anything. */
  void (*control)(void);
  /* What cuInit does, if the driver is not initialised. */
  void (*initialise)(void);
  /* How often it was asked what a pointer is. */
  long (*queries)(void);
};
