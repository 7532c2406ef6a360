// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The program's memory, as the audit follows it: what calls of the driver made and freed, and the blocks of frameworks.
// What was freed while a capture is open is kept for a while: a graph that is instantiated later may point into it. A
// free is taken as it ends well, and frees what was there as it began: another thread may get the address in between.
// Locking: the audit's lock, over memory alone.
#include "doctor/record/audit.h"
#include "doctor/record/audit_state.h"
#include "doctor/record/switch.h"

void gcap_doctor_audit_memory_made(const gcap_doctor_memory_call_t* call, const void* arguments,
                                   const gcap_doctor_memory_place_t* place) {
  uint64_t address, bytes;
  if (!gcap_doctor_memory_of_call(call, arguments, &address, &bytes) || bytes == 0) return;
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  gcap_doctor_memory_add(&gcap_doctor_audit.memory, address, bytes, (gcap_doctor_memory_what_t)call->what, place);
  if (gcap_doctor_audit.low == 0 || address < gcap_doctor_audit.low) gcap_doctor_audit.low = address;
  if (address + bytes > gcap_doctor_audit.high) gcap_doctor_audit.high = address + bytes;
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
}

// With the lock held. Frees a piece. One that is freed while a capture is open stays for graphs of the capture.
static void free_piece(uint32_t piece, const gcap_doctor_memory_place_t* place) {
  if (gcap_doctor_switch_is_capturing()) {
    uint32_t* grave = &gcap_doctor_audit.graves[gcap_doctor_audit.num_graves++ % GCAP_DOCTOR_AUDIT_MAX_GRAVES];
    if (*grave != 0) gcap_doctor_memory_release(&gcap_doctor_audit.memory, *grave);
    *grave = piece;
    gcap_doctor_memory_retain(&gcap_doctor_audit.memory, piece);
  }
  gcap_doctor_memory_free(&gcap_doctor_audit.memory, piece, place);
}

void gcap_doctor_audit_memory_freed(const gcap_doctor_memory_call_t* call, const void* arguments, uint64_t serial,
                                    const gcap_doctor_memory_place_t* place) {
  uint64_t address, bytes;
  if (!gcap_doctor_memory_of_call(call, arguments, &address, &bytes)) return;
  const uint64_t end = address + (bytes != 0 ? bytes : 1);
  uint64_t from = address;
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  for (uint32_t piece;
       (piece = gcap_doctor_memory_next(&gcap_doctor_audit.memory, GCAP_DOCTOR_MEMORY_OF_DRIVER, from, end)) != 0;) {
    const gcap_doctor_memory_piece_t* of = gcap_doctor_memory_at(&gcap_doctor_audit.memory, piece);
    from = of->end;
    if (of->serial <= serial) free_piece(piece, place);
  }
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
}

uint64_t gcap_doctor_audit_last_serial(void) {
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  const uint64_t serial = gcap_doctor_audit.memory.last_serial;
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
  return serial;
}

// --- Blocks of frameworks --------------------------------------------------------------------------------------------

// With the lock held. The block that begins at the address; 0 for none.
static uint32_t block_at(uint64_t address) {
  return gcap_doctor_memory_next(&gcap_doctor_audit.memory, GCAP_DOCTOR_MEMORY_OF_FRAMEWORK, address, address + 1);
}

void gcap_doctor_audit_block_made(uint64_t address, uint64_t bytes, gcap_doctor_memory_what_t what,
                                  const gcap_doctor_memory_place_t* place) {
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  gcap_doctor_memory_add(&gcap_doctor_audit.memory, address, bytes, what, place);
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
}

void gcap_doctor_audit_block_freed(uint64_t address, const gcap_doctor_memory_place_t* place) {
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  const uint32_t block = block_at(address);
  if (block != 0) free_piece(block, place);
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
}

bool gcap_doctor_audit_block_lives(uint64_t address, uint64_t bytes) {
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  const uint32_t block = block_at(address);
  const bool lives = block != 0 && gcap_doctor_memory_at(&gcap_doctor_audit.memory, block)->end == address + bytes;
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
  return lives;
}

bool gcap_doctor_audit_block_is_used(uint64_t address) {
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  const uint32_t block = block_at(address);
  const bool is_used = block != 0 && (gcap_doctor_memory_at(&gcap_doctor_audit.memory, block)->references != 0 ||
                                      gcap_doctor_switch_is_capturing());
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
  return is_used;
}

// --- What a word points into -----------------------------------------------------------------------------------------

uint32_t gcap_doctor_audit_living_piece(uint64_t value) {
  const uint32_t block = gcap_doctor_memory_find(&gcap_doctor_audit.memory, GCAP_DOCTOR_MEMORY_OF_FRAMEWORK, value);
  return block != 0 ? block : gcap_doctor_memory_find(&gcap_doctor_audit.memory, GCAP_DOCTOR_MEMORY_OF_DRIVER, value);
}

// With the lock held. The newest piece that was freed in a capture and that the address was in, if the memory of the
// driver around a block is the same as then.
static uint32_t grave_of(uint64_t value) {
  const uint32_t around = gcap_doctor_memory_find(&gcap_doctor_audit.memory, GCAP_DOCTOR_MEMORY_OF_DRIVER, value);
  const size_t count = gcap_doctor_audit.num_graves < GCAP_DOCTOR_AUDIT_MAX_GRAVES ? gcap_doctor_audit.num_graves
                                                                                   : GCAP_DOCTOR_AUDIT_MAX_GRAVES;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t grave =
        gcap_doctor_audit.graves[(gcap_doctor_audit.num_graves - 1 - i) % GCAP_DOCTOR_AUDIT_MAX_GRAVES];
    const gcap_doctor_memory_piece_t* of = gcap_doctor_memory_at(&gcap_doctor_audit.memory, grave);
    if (value < of->begin || value >= of->end) continue;
    const bool is_of_driver = gcap_doctor_memory_layer_of(of->what) == GCAP_DOCTOR_MEMORY_OF_DRIVER;
    const bool is_same = around != 0 && gcap_doctor_memory_at(&gcap_doctor_audit.memory, around)->serial < of->serial;
    return (is_of_driver ? around == 0 : is_same) ? grave : 0;
  }
  return 0;
}

uint32_t gcap_doctor_audit_piece(uint64_t value) {
  const uint32_t block = gcap_doctor_memory_find(&gcap_doctor_audit.memory, GCAP_DOCTOR_MEMORY_OF_FRAMEWORK, value);
  if (block != 0) return block;
  const uint32_t grave = gcap_doctor_audit.num_graves != 0 ? grave_of(value) : 0;
  return grave != 0 ? grave : gcap_doctor_memory_find(&gcap_doctor_audit.memory, GCAP_DOCTOR_MEMORY_OF_DRIVER, value);
}
