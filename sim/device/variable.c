// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Variables of devices: __device__ and __constant__ ones.
//
// The idea: a variable has memory on each device, which begins when somebody first asks for it there, and from then on
// is memory as any other; only nobody owns it, so it is neither freed nor left behind. The memory does not count as the
// device's. First contents come from the caller, or from the machine code of the object that brought the variable;
// where that cannot be read they are unknown, and a read of them is one of bytes that nobody wrote. Locking: the global
// mutex, which also works before main, when constructors register variables.
#include "sim/device/variable.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gcap_sim.h"
#include "sim/api/api.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/thread.h"
#include "sim/bridge/lifetime.h"
#include "sim/memory/allocation.h"
#include "sim/nvcc/fat_binary.h"
#include "sim/nvcc/signature.h"

typedef struct variable {
  struct variable* next;
  gcap_sim_symbol_t symbol;
  char* registered;  // the name that nvcc's object gave it, a copy; NULL for a variable of no object
  char* plain;       // its name as people write it; NULL likewise
  const void* code;  // the fat binary of the first object with it; NULL for none, and once that is gone
  char* kept;        // the first contents, once it is gone
  bool unknown;      // are they?
  size_t objects;    // in which it is registered
  gcap_sim_allocation_t* places[GCAP_SIM_MAX_DEVICES];
} variable_t;

static variable_t* variables;

static variable_t* find(const void* symbol) {
  variable_t* variable = variables;
  while (variable != NULL && variable->symbol.variable != symbol) variable = variable->next;
  return variable;
}

// --- Memory ---------------------------------------------------------------------------------------------------------

static void set_first_contents(const variable_t* variable, gcap_sim_allocation_t* place) {
  const gcap_sim_symbol_t* symbol = &variable->symbol;
  bool known = true;
  if (variable->code != NULL) {
    known = gcap_sim_fat_binary_contents(variable->code, symbol->name, place->base, symbol->bytes);
  } else if (symbol->initial != NULL) {
    memcpy(place->base, symbol->initial, symbol->bytes);
    known = !variable->unknown;
  } else {
    memset(place->base, 0, symbol->bytes);
  }
  gcap_sim_memory_is_there(place, known);
}

static gcap_sim_allocation_t* place_on(variable_t* variable, int device) {
  if (variable->places[device] != NULL) return variable->places[device];
  gcap_sim_allocation_t* place = gcap_sim_allocation_create_range(variable->symbol.bytes, cudaMemoryTypeDevice, device);
  if (place == NULL) gcap_sim_die("there is no room for the variable `%s` of a device", variable->symbol.name);
  gcap_sim_allocation_give_to_symbol(place);
  set_first_contents(variable, place);
  variable->places[device] = place;
  return place;
}

void gcap_sim_variables_reset(int device) {
  for (variable_t* variable = variables; variable != NULL; variable = variable->next) {
    if (variable->places[device] != NULL) set_first_contents(variable, variable->places[device]);
  }
}

// --- Registration ---------------------------------------------------------------------------------------------------

static variable_t* add(const gcap_sim_symbol_t* symbol) {
  variable_t* variable = gcap_sim_calloc(1, sizeof(*variable));
  *variable = (variable_t){.next = variables, .symbol = *symbol};
  variables = variable;
  return variable;
}

void gcap_sim_register_symbol(const gcap_sim_symbol_t* symbol) {
  if (symbol == NULL) gcap_sim_die("gcap_sim_register_symbol: the symbol is NULL");
  if (symbol->name == NULL) gcap_sim_die("gcap_sim_register_symbol: the symbol has no name");
  if (symbol->variable == NULL || symbol->bytes == 0) {
    gcap_sim_die("gcap_sim_register_symbol: `%s` is a variable of %zu bytes at %p, expected an address and a size",
                 symbol->name, symbol->bytes, symbol->variable);
  }
  gcap_sim_lock();
  const variable_t* other = find(symbol->variable);
  if (other != NULL) {
    gcap_sim_die("gcap_sim_register_symbol: `%s` has the address of `%s`", symbol->name, other->symbol.name);
  }
  add(symbol);
  gcap_sim_unlock();
}

void gcap_sim_variable_declare(const void* symbol, const char* registered, size_t bytes, const void* code) {
  variable_t* variable = find(symbol);
  if (variable == NULL) {
    char* copy = gcap_sim_calloc(strlen(registered) + 1, 1);
    variable = add(&(gcap_sim_symbol_t){.variable = symbol, .name = strcpy(copy, registered), .bytes = bytes});
    variable->registered = copy;
    variable->plain = gcap_sim_plain_name(registered);
    variable->code = code;
  }
  ++variable->objects;
}

// The variable stays in other objects, and is what it was.
static void keep_first_contents(variable_t* variable) {
  gcap_sim_symbol_t* symbol = &variable->symbol;
  variable->kept = gcap_sim_calloc(symbol->bytes, 1);
  variable->unknown = !gcap_sim_fat_binary_contents(variable->code, symbol->name, variable->kept, symbol->bytes);
  variable->code = NULL;
  symbol->initial = variable->kept;
}

// Its memory stays, since work that is on its way may have the address.
void gcap_sim_variable_withdraw(const void* symbol, const void* code) {
  variable_t** place = &variables;
  while (*place != NULL && (*place)->symbol.variable != symbol) place = &(*place)->next;
  variable_t* variable = *place;
  if (variable == NULL) return;
  if (--variable->objects > 0) {
    if (variable->code == code) keep_first_contents(variable);
    return;
  }
  *place = variable->next;
  free(variable->registered);
  free(variable->plain);
  free(variable->kept);
  free(variable);
}

// --- Questions ------------------------------------------------------------------------------------------------------

static bool is_called(const variable_t* variable, const char* name) {
  return strcmp(variable->symbol.name, name) == 0 || (variable->plain != NULL && strcmp(variable->plain, name) == 0);
}

void* gcap_sim_symbol_address(const gcap_sim_launch_t* launch, const char* name) {
  if (!gcap_sim_thread()->in_device_work) {
    gcap_sim_die("gcap_sim_symbol_address: only the twin of a kernel calls it");
  }
  variable_t* found = NULL;
  for (variable_t* variable = variables; variable != NULL; variable = variable->next) {
    if (!is_called(variable, name)) continue;
    if (found != NULL) gcap_sim_die("gcap_sim_symbol_address: there are two variables `%s`", name);
    found = variable;
  }
  if (found == NULL) gcap_sim_die("gcap_sim_symbol_address: there is no variable `%s`", name);
  return place_on(found, launch->device)->base;
}

static bool is_direction(enum cudaMemcpyKind kind, bool from) {
  enum cudaMemcpyKind with_host = from ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
  return kind == with_host || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

cudaError_t gcap_sim_variable_part(const void* symbol, size_t count, size_t offset, enum cudaMemcpyKind kind, bool from,
                                   void** out) {
  variable_t* variable = find(symbol);
  if (variable == NULL) return cudaErrorInvalidSymbol;
  if (!is_direction(kind, from)) return cudaErrorInvalidMemcpyDirection;
  if (offset > variable->symbol.bytes || count > variable->symbol.bytes - offset) return cudaErrorInvalidValue;
  *out = place_on(variable, gcap_sim_thread()->device)->base + offset;
  return cudaSuccess;
}

cudaError_t cudaGetSymbolAddress(void** devPtr, const void* symbol) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGetSymbolAddress);
  variable_t* variable = find(symbol);
  if (code == cudaSuccess && variable == NULL) code = cudaErrorInvalidSymbol;
  if (code == cudaSuccess) {
    if (devPtr == NULL) gcap_sim_die("cudaGetSymbolAddress: the address is NULL: the real runtime writes it");
    *devPtr = place_on(variable, gcap_sim_thread()->device)->base;
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGetSymbolSize);
  const variable_t* variable = find(symbol);
  if (code == cudaSuccess && variable == NULL) code = cudaErrorInvalidSymbol;
  if (code == cudaSuccess) {
    if (size == NULL) gcap_sim_die("cudaGetSymbolSize: the size is NULL: the real runtime writes it");
    *size = variable->symbol.bytes;
  }
  return gcap_sim_leave(code);
}
