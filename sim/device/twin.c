// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernels of the program, and what runs in their place.
//
// The idea: a kernel's handle is the address of its host function. Twins name that address, or the kernel's name: those
// wait in a list, since constructors register twins and objects in any order, until the kernel is first launched. A
// kernel without a twin is what the user said: a reason to stop, or a launch that does nothing. Locking: the global
// mutex, which also works before main.
#include "sim/device/twin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gcap_sim.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/device/properties.h"

// Sorted by function.
static struct {
  gcap_sim_twin_t** items;
  size_t count;
  size_t capacity;
} twins;

// Twins that name no address, and the kernel that each was first found for.
typedef struct named {
  gcap_sim_kernel_t kernel;
  const gcap_sim_twin_t* used;
} named_t;

static struct {
  named_t* items;
  size_t count;
  size_t capacity;
} by_name;

// Those whose objects are gone: work that is on its way may run them.
static gcap_sim_twin_t* gone;

static struct {
  bool ready;
  gcap_sim_missing_twin_t action;
} missing;

// --- The table ------------------------------------------------------------------------------------------------------

static size_t rank_of(const void* function) {
  size_t low = 0;
  size_t high = twins.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if ((uintptr_t)twins.items[middle]->kernel.function < (uintptr_t)function) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

gcap_sim_twin_t* gcap_sim_twin_find(const void* function) {
  size_t rank = rank_of(function);
  return rank < twins.count && twins.items[rank]->kernel.function == function ? twins.items[rank] : NULL;
}

bool gcap_sim_requires_cluster(const gcap_sim_twin_t* twin) {
  return twin->required_cluster[0] > 0 && twin->required_cluster[1] > 0 && twin->required_cluster[2] > 0;
}

static gcap_sim_twin_t* add(const void* function) {
  gcap_sim_twin_t* twin = gcap_sim_calloc(1, sizeof(*twin));
  twin->kernel.function = function;
  twin->max_shared_bytes = -1;
  twin->carveout = -1;
  size_t rank = rank_of(function);
  gcap_sim_reserve(&twins.items, &twins.capacity, twins.count + 1, sizeof(gcap_sim_twin_t*));
  memmove(&twins.items[rank + 1], &twins.items[rank], (twins.count - rank) * sizeof(gcap_sim_twin_t*));
  twins.items[rank] = twin;
  ++twins.count;
  return twin;
}

static void drop(gcap_sim_twin_t* twin) {
  size_t rank = rank_of(twin->kernel.function);
  --twins.count;
  memmove(&twins.items[rank], &twins.items[rank + 1], (twins.count - rank) * sizeof(gcap_sim_twin_t*));
  twin->gone = gone;
  gone = twin;
}

void gcap_sim_twin_declare(const void* function, const char* registered, const void* code) {
  gcap_sim_twin_t* twin = gcap_sim_twin_find(function);
  if (twin == NULL) twin = add(function);
  if (twin->registered != NULL && strcmp(twin->registered, registered) != 0) {
    gcap_sim_die("__cudaRegisterFunction: one function is registered as `%s` and as `%s`", twin->registered,
                 registered);
  }
  if (twin->registered == NULL) {
    char* copy = gcap_sim_calloc(strlen(registered) + 1, 1);
    twin->registered = strcpy(copy, registered);
  }
  if (twin->objects++ == 0) twin->code = code;
}

static const gcap_sim_signature_t* signature_of(gcap_sim_twin_t* twin) {
  if (twin->signature == NULL) twin->signature = gcap_sim_signature_create(twin->registered, twin->code);
  return twin->signature;
}

gcap_sim_needs_t gcap_sim_twin_needs(gcap_sim_twin_t* twin) {
  return twin->registered != NULL ? signature_of(twin)->needs : (gcap_sim_needs_t){0};
}

size_t gcap_sim_twin_max_shared(gcap_sim_twin_t* twin) {
  if (twin->max_shared_bytes >= 0) return (size_t)twin->max_shared_bytes;
  const size_t own = gcap_sim_twin_needs(twin).shared_bytes;
  return own < GCAP_SIM_SHARED_BYTES ? GCAP_SIM_SHARED_BYTES - own : 0;
}

// Its twin goes too: the address may become another kernel's. In other objects the kernel stays, and is what it was.
void gcap_sim_twin_withdraw(const void* function, const void* code) {
  gcap_sim_twin_t* twin = gcap_sim_twin_find(function);
  if (twin == NULL) return;
  if (--twin->objects == 0) {
    drop(twin);
  } else if (twin->code == code) {
    (void)signature_of(twin);
    twin->code = NULL;
  }
}

// --- Signatures -----------------------------------------------------------------------------------------------------

// A twin of a kernel that nvcc compiled takes what the kernel takes.
static void check_signature(gcap_sim_twin_t* twin) {
  if (twin->checked || twin->registered == NULL) return;
  twin->checked = true;
  const gcap_sim_signature_t* signature = signature_of(twin);
  const gcap_sim_kernel_t* kernel = &twin->kernel;
  if (signature->known && signature->count != kernel->num_args) {
    gcap_sim_die("gcap_sim_register_kernel: the twin `%s` has %zu arguments, the kernel `%s` has %zu", kernel->name,
                 kernel->num_args, signature->text, signature->count);
  }
  for (size_t i = 0; i < signature->count; ++i) {
    if (signature->bytes[i] == 0 || signature->bytes[i] == kernel->arg_bytes[i]) continue;
    gcap_sim_die(
        "gcap_sim_register_kernel: argument %zu of the twin `%s` has %zu bytes, that of the kernel `%s` has %zu", i,
        kernel->name, kernel->arg_bytes[i], signature->text, signature->bytes[i]);
  }
}

// --- Twins by name --------------------------------------------------------------------------------------------------

static bool fits(const char* name, gcap_sim_twin_t* twin) {
  if (strcmp(name, twin->registered) == 0) return true;
  const gcap_sim_signature_t* signature = signature_of(twin);
  return strcmp(name, signature->text) == 0 || strcmp(name, signature->name) == 0;
}

// A kernel may be in several objects, each with a handle of its own; but overloads are several kernels.
static void use(named_t* named, gcap_sim_twin_t* twin) {
  if (named->used != NULL && strcmp(named->used->registered, twin->registered) != 0) {
    gcap_sim_die(
        "gcap_sim_register_kernel: the twin `%s` is that of `%s` and of `%s`: register one for each of these names",
        named->kernel.name, named->used->signature->text, signature_of(twin)->text);
  }
  (void)signature_of(twin);
  named->used = twin;
  const void* function = twin->kernel.function;
  twin->kernel = named->kernel;
  twin->kernel.function = function;
}

static void find_by_name(gcap_sim_twin_t* twin) {
  named_t* found = NULL;
  for (size_t i = 0; i < by_name.count; ++i) {
    if (!fits(by_name.items[i].kernel.name, twin)) continue;
    if (found != NULL) {
      gcap_sim_die("gcap_sim_register_kernel: the kernel `%s` has two twins, `%s` and `%s`", signature_of(twin)->text,
                   found->kernel.name, by_name.items[i].kernel.name);
    }
    found = &by_name.items[i];
  }
  if (found != NULL) use(found, twin);
}

static void register_by_name(const gcap_sim_kernel_t* kernel) {
  for (size_t i = 0; i < by_name.count; ++i) {
    if (strcmp(by_name.items[i].kernel.name, kernel->name) != 0) continue;
    gcap_sim_die("gcap_sim_register_kernel: %s has a twin already", kernel->name);
  }
  for (size_t i = 0; i < twins.count; ++i) {
    gcap_sim_twin_t* twin = twins.items[i];
    if (twin->kernel.run != NULL || twin->kernel.name == NULL || !fits(kernel->name, twin)) continue;
    gcap_sim_die("gcap_sim_register_kernel: %s was launched without a twin: register twins before that", kernel->name);
  }
  gcap_sim_reserve(&by_name.items, &by_name.capacity, by_name.count + 1, sizeof(named_t));
  by_name.items[by_name.count++] = (named_t){.kernel = *kernel};
}

// --- Kernels without a twin -----------------------------------------------------------------------------------------

static void prepare(void) {
  if (missing.ready) return;
  missing.ready = true;
  const char* text = getenv("GCAP_SIM_MISSING_TWIN");
  if (text == NULL || strcmp(text, "stop") == 0) return;
  if (strcmp(text, "skip") != 0) {
    gcap_sim_die_of_setting("GCAP_SIM_MISSING_TWIN is '%s', expected stop or skip", text);
  }
  missing.action = GCAP_SIM_MISSING_TWIN_SKIP;
}

void gcap_sim_set_missing_twin(gcap_sim_missing_twin_t action) {
  gcap_sim_lock();
  prepare();
  missing.action = action;
  gcap_sim_unlock();
}

static uint64_t skipped_of(gcap_sim_twin_t* twin, const char* kernel) {
  return twin->skipped != 0 && (kernel == NULL || fits(kernel, twin)) ? twin->skipped : 0;
}

uint64_t gcap_sim_skipped(const char* kernel) {
  gcap_sim_lock();
  uint64_t skipped = 0;
  for (size_t i = 0; i < twins.count; ++i) skipped += skipped_of(twins.items[i], kernel);
  for (gcap_sim_twin_t* twin = gone; twin != NULL; twin = twin->gone) skipped += skipped_of(twin, kernel);
  gcap_sim_unlock();
  return skipped;
}

static void skip(gcap_sim_twin_t* twin) {
  if (twin->kernel.name != NULL) return;
  const gcap_sim_signature_t* signature = signature_of(twin);
  twin->kernel.name = signature->name;
  twin->kernel.num_args = signature->count;
  twin->kernel.arg_bytes = signature->bytes;
  fprintf(stderr, "gcap sim: kernel `%s` has no twin: its launches do nothing, and what they write is unknown\n",
          signature->text);
}

// --- All of them ----------------------------------------------------------------------------------------------------

void gcap_sim_twin_prepare(gcap_sim_twin_t* twin) {
  if (twin->kernel.run == NULL && twin->kernel.name == NULL) find_by_name(twin);
  if (twin->kernel.run != NULL) {
    check_signature(twin);
    return;
  }
  prepare();
  if (missing.action == GCAP_SIM_MISSING_TWIN_STOP) {
    gcap_sim_die(
        "kernel `%s` has no twin: register one by this name with gcap_sim_register_kernel, or skip such kernels "
        "with GCAP_SIM_MISSING_TWIN=skip",
        signature_of(twin)->text);
  }
  skip(twin);
}

void gcap_sim_twin_run(gcap_sim_twin_t* twin, const gcap_sim_launch_t* launch, void* const* args) {
  if (twin->kernel.run != NULL) {
    twin->kernel.run(launch, args);
  } else {
    ++twin->skipped;
  }
}

void gcap_sim_register_kernel(const gcap_sim_kernel_t* kernel) {
  if (kernel == NULL) gcap_sim_die("gcap_sim_register_kernel: the twin is NULL");
  if (kernel->run == NULL) gcap_sim_die("gcap_sim_register_kernel: run must be set");
  if (kernel->name == NULL) gcap_sim_die("gcap_sim_register_kernel: the twin has no name");
  if (kernel->num_args && kernel->arg_bytes == NULL) {
    gcap_sim_die("gcap_sim_register_kernel: %s has no sizes", kernel->name);
  }
  gcap_sim_lock();
  if (kernel->function == NULL) {
    register_by_name(kernel);
  } else {
    gcap_sim_twin_t* twin = gcap_sim_twin_find(kernel->function);
    if (twin == NULL) twin = add(kernel->function);
    if (twin->kernel.run != NULL) gcap_sim_die("gcap_sim_register_kernel: %s has a twin already", kernel->name);
    if (twin->kernel.name != NULL) {
      gcap_sim_die("gcap_sim_register_kernel: %s was launched without a twin: register twins before that",
                   kernel->name);
    }
    twin->kernel = *kernel;
  }
  gcap_sim_unlock();
}
