// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the kernels that use variables of the device, and without nvcc the variables.
#include <stdlib.h>

#include "gcap_sim.h"
#include "test/support/kernels/device_kernels.h"

enum { BYTES = GCAP_TEST_SYMBOL_WORDS * sizeof(unsigned int) };

#ifndef GCAP_TWINS_BY_NAME  // nvcc's object defines them where there is one
static const unsigned int first_words[GCAP_TEST_SYMBOL_WORDS] = {0x11111111u};
// What the host has under the variables' names, as with nvcc; the addresses stand for the variables.
static unsigned int global_symbol[GCAP_TEST_SYMBOL_WORDS], constant_symbol[GCAP_TEST_SYMBOL_WORDS];

const void* gcap_test_symbol_global(void) { return global_symbol; }
const void* gcap_test_symbol_constant(void) { return constant_symbol; }

void gcap_kernel_read_symbols(unsigned int* out) {
  (void)out;
  abort();  // kernels are launched, never called
}

void gcap_kernel_add_to_symbol(unsigned int value) {
  (void)value;
  abort();
}

__attribute__((constructor)) static void register_symbols(void) {
  gcap_sim_register_symbol(
      &(gcap_sim_symbol_t){.variable = global_symbol, .name = "global_words", .bytes = BYTES, .initial = first_words});
  gcap_sim_register_symbol(&(gcap_sim_symbol_t){.variable = constant_symbol, .name = "constant_words", .bytes = BYTES});
}
#endif

static unsigned int* words(const gcap_sim_launch_t* launch, const char* name) {
  return gcap_sim_symbol_address(launch, name);
}

static void run_read(const gcap_sim_launch_t* launch, void* const* args) {
  unsigned int* out = *(unsigned int**)args[0];
  out[0] = words(launch, "global_words")[0];
  out[1] = words(launch, "constant_words")[0];
}

static size_t accesses_of_read(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out,
                               size_t capacity) {
  const gcap_sim_access_t all[] = {{words(launch, "global_words"), sizeof(unsigned int), 0},
                                   {words(launch, "constant_words"), sizeof(unsigned int), 0},
                                   {*(unsigned int**)args[0], 2 * sizeof(unsigned int), 1}};
  for (size_t i = 0; i < 3 && i < capacity; ++i) out[i] = all[i];
  return 3;
}

static void run_add(const gcap_sim_launch_t* launch, void* const* args) {
  words(launch, "global_words")[0] += *(const unsigned int*)args[0];
}

static size_t accesses_of_add(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out,
                              size_t capacity) {
  (void)args;
  const void* word = words(launch, "global_words");
  const gcap_sim_access_t all[] = {{word, sizeof(unsigned int), 0}, {word, sizeof(unsigned int), 1}};
  for (size_t i = 0; i < 2 && i < capacity; ++i) out[i] = all[i];
  return 2;
}

__attribute__((constructor)) static void register_twins(void) {
  static const size_t pointer_bytes[] = {sizeof(unsigned int*)}, word_bytes[] = {sizeof(unsigned int)};
  gcap_sim_kernel_t read = {.name = "gcap_kernel_read_symbols",
                            .arg_bytes = pointer_bytes,
                            .num_args = 1,
                            .run = run_read,
                            .accesses = accesses_of_read};
  gcap_sim_kernel_t add = {.name = "gcap_kernel_add_to_symbol",
                           .arg_bytes = word_bytes,
                           .num_args = 1,
                           .run = run_add,
                           .accesses = accesses_of_add};
#ifndef GCAP_TWINS_BY_NAME
  read.function = (const void*)gcap_kernel_read_symbols;
  add.function = (const void*)gcap_kernel_add_to_symbol;
#endif
  gcap_sim_register_kernel(&read);
  gcap_sim_register_kernel(&add);
}
