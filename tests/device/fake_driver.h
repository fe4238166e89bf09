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
  /* Takes addresses that the CPU cannot read. Null where there are none. */
  void* (*reserve)(size_t bytes);
  /* Gives out memory of any kind. */
  void (*add)(struct fake_memory memory);
  /* Frees the memory that begins there; the addresses stay the program's. */
  void (*forget)(void* address);
  /* Whether it is initialised, as cuInit makes it; at first it is. */
  void (*initialise)(int yes);
  /* Has every question answered with that error; 0: none. */
  void (*fail)(int error);
  /* How often it was asked what a pointer is. */
  long (*queries)(void);
};
