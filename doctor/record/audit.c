// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The audit: allocations and frees are followed, an executable's pointers are read as it is made or updated, and a
// launch of an executable that points into memory which was freed since is told before the driver gets the launch.
//
// The idea: a word of an argument is a pointer if it lies in memory that lives as the executable is made. The
// executable then refers to that piece of memory, not to an address: whatever lies there later is another piece. A free
// of a piece that is referred to moves an epoch on, and a launch compares that epoch with the one at which its
// executable was looked at last: without such a free a launch costs one look-up and one comparison, and with one it
// costs the pieces of its own executable. What is told is told once for each executable and piece.
//
// A free is taken as it ends well, and frees what was there as it began: another thread may get the address in
// between. A call that made nodes is part of a capture, and neither allocates nor frees.
//
// Locking: one lock, over memory alone. Graphs are read, and lines are written, without it.
#include "doctor/record/audit.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "doctor/base/grow.h"
#include "doctor/record/audit_read.h"
#include "doctor/record/audit_tell.h"
#include "doctor/record/calls.h"
#include "doctor/record/driver_calls.h"
#include "doctor/record/handles.h"
#include "doctor/record/map.h"
#include "doctor/record/memory.h"
#include "doctor/record/memory_calls.h"
#include "doctor/record/stacks.h"
#include "doctor/record/switch.h"
#include "doctor/record/writer.h"

enum {
  kMaxGraves = 128,  // each word of a new executable is compared with them
  kMaxTold = 16,     // pieces at one launch; the others are told at later ones
  kFewExecs = 8,     // of one place, of which nothing is told at the end
};

typedef struct pointer {
  uint32_t piece;
  gcap_doctor_audit_word_t word;
} pointer_t;

// A piece that an executable points into.
typedef struct used {
  uint32_t piece;
  bool is_told;
} used_t;

// Memory of the host that nobody pinned, behind a copy.
typedef struct host {
  gcap_doctor_audit_word_t word;
  uint32_t thread;  // that made the executable
  bool is_stack;    // of that thread
  bool is_told;
} host_t;

typedef struct exec {
  gcap_doctor_audit_node_t* nodes;
  pointer_t* pointers;
  used_t* used;
  host_t* hosts;
  size_t num_nodes, num_pointers, num_used, num_hosts;
  uint32_t group;      // index into `groups` + 1; 0 for none
  uint32_t launches;   // up to 2
  uint64_t bytes;      // of its allocation nodes
  uint64_t epoch;      // of the memory, when it was looked at
  uint32_t launching;  // the thread in whose launch it is; 0 for none
  bool is_told;        // that two threads launch it
  uint32_t next_free;  // index + 1
} exec_t;

// Executables that were made at one place.
typedef struct group {
  gcap_doctor_memory_place_t last;  // where the last one was made
  uint64_t made;
  uint64_t live, idle, bytes;  // at the end
} group_t;

static struct {
  pthread_mutex_t lock;
  gcap_doctor_map_t group_of_stack;  // index + 1
  group_t* groups;
  size_t num_groups, group_capacity;
  atomic_bool is_on;
  atomic_bool has_said_untold;
  atomic_bool has_hosts;  // some executable copies memory of the host that nobody pinned
  atomic_bool is_followed[GCAP_DOCTOR_NUM_MEMORY_WHATS];
  gcap_doctor_memory_t memory;
  uint64_t low, high;  // of all memory so far
  gcap_doctor_map_t places;
  // What was freed while a capture was open: a graph that is instantiated later may point into it. A ring.
  uint32_t graves[kMaxGraves];
  size_t num_graves;
  exec_t* execs;
  size_t num_execs, exec_capacity;
  uint32_t first_free;
} audit = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool gcap_doctor_audit_start(const gcap_doctor_cupti_t* cupti) {
  atomic_store(&audit.is_on, gcap_doctor_audit_read_start(cupti));
  return atomic_load(&audit.is_on);
}

bool gcap_doctor_audit_wants(uint32_t callback) {
  if (!atomic_load_explicit(&audit.is_on, memory_order_relaxed)) return false;
  const uint8_t role = gcap_doctor_driver_call(callback)->role;
  return gcap_doctor_memory_call(callback)->does != GCAP_DOCTOR_MEMORY_DOES_NOTHING ||
         role == GCAP_DOCTOR_ROLE_INSTANTIATE || role == GCAP_DOCTOR_ROLE_UPDATE || role == GCAP_DOCTOR_ROLE_LAUNCH;
}

// --- Places ----------------------------------------------------------------------------------------------------------

// Where the call is made. Of a call that is being recorded anyway, the line is that of calls.c.
static gcap_doctor_memory_place_t place_of(gcap_doctor_thread_t* thread, uint32_t callback,
                                           const gcap_doctor_cupti_call_t* data) {
  const gcap_doctor_open_call_t* open = gcap_doctor_call_open(thread);
  const bool is_open = open != NULL && open->callback == callback && open->correlation == data->correlation;
  gcap_doctor_memory_place_t place = {.call = is_open ? open->number : gcap_doctor_call_new_number(),
                                      .start_ns = is_open ? open->start_ns : gcap_doctor_writer_now(),
                                      .function = data->function,
                                      .thread = thread->id,
                                      .stack = gcap_doctor_stack_record(thread),
                                      .is_written = is_open};
  // What the place refers to must be in the file before another thread's line refers to the place.
  if (thread->definitions.size != 0 || thread->out.size != 0) gcap_doctor_thread_write(thread);
  return place;
}

// --- Memory ----------------------------------------------------------------------------------------------------------

static void made(const gcap_doctor_memory_call_t* call, const void* arguments,
                 const gcap_doctor_memory_place_t* place) {
  uint64_t address, bytes;
  if (!gcap_doctor_memory_of_call(call, arguments, &address, &bytes) || bytes == 0) return;
  pthread_mutex_lock(&audit.lock);
  gcap_doctor_memory_add(&audit.memory, address, bytes, (gcap_doctor_memory_what_t)call->what, place);
  if (audit.low == 0 || address < audit.low) audit.low = address;
  if (address + bytes > audit.high) audit.high = address + bytes;
  pthread_mutex_unlock(&audit.lock);
}

// With the lock held. Frees a piece. One that is freed while a capture is open stays for graphs of the capture.
static void free_piece(uint32_t piece, const gcap_doctor_memory_place_t* place) {
  if (gcap_doctor_switch_is_capturing()) {
    uint32_t* grave = &audit.graves[audit.num_graves++ % kMaxGraves];
    if (*grave != 0) gcap_doctor_memory_release(&audit.memory, *grave);
    *grave = piece;
    gcap_doctor_memory_retain(&audit.memory, piece);
  }
  gcap_doctor_memory_free(&audit.memory, piece, place);
}

// All that lived in a range as the call began, or the piece that begins at the address, for a call that names no range.
static void freed(const gcap_doctor_memory_call_t* call, const void* arguments, uint64_t serial,
                  const gcap_doctor_memory_place_t* place) {
  uint64_t address, bytes;
  if (!gcap_doctor_memory_of_call(call, arguments, &address, &bytes)) return;
  const uint64_t end = address + (bytes != 0 ? bytes : 1);
  uint64_t from = address;
  pthread_mutex_lock(&audit.lock);
  for (uint32_t piece;
       (piece = gcap_doctor_memory_next(&audit.memory, GCAP_DOCTOR_MEMORY_OF_DRIVER, from, end)) != 0;) {
    const gcap_doctor_memory_piece_t* of = gcap_doctor_memory_at(&audit.memory, piece);
    from = of->end;
    if (of->serial <= serial) free_piece(piece, place);
  }
  pthread_mutex_unlock(&audit.lock);
}

static uint64_t last_serial(void) {
  pthread_mutex_lock(&audit.lock);
  const uint64_t serial = audit.memory.last_serial;
  pthread_mutex_unlock(&audit.lock);
  return serial;
}

// --- Blocks of frameworks --------------------------------------------------------------------------------------------

bool gcap_doctor_audit_is_on(void) { return atomic_load_explicit(&audit.is_on, memory_order_relaxed); }

void gcap_doctor_audit_followed(gcap_doctor_memory_what_t what) { atomic_store(&audit.is_followed[what], true); }

// With the lock held. The block that begins at the address; 0 for none.
static uint32_t block_at(uint64_t address) {
  return gcap_doctor_memory_next(&audit.memory, GCAP_DOCTOR_MEMORY_OF_FRAMEWORK, address, address + 1);
}

void gcap_doctor_audit_block_made(uint64_t address, uint64_t bytes, gcap_doctor_memory_what_t what,
                                  const gcap_doctor_memory_place_t* place) {
  pthread_mutex_lock(&audit.lock);
  gcap_doctor_memory_add(&audit.memory, address, bytes, what, place);
  pthread_mutex_unlock(&audit.lock);
}

void gcap_doctor_audit_block_freed(uint64_t address, const gcap_doctor_memory_place_t* place) {
  pthread_mutex_lock(&audit.lock);
  const uint32_t block = block_at(address);
  if (block != 0) free_piece(block, place);
  pthread_mutex_unlock(&audit.lock);
}

bool gcap_doctor_audit_block_lives(uint64_t address, uint64_t bytes) {
  pthread_mutex_lock(&audit.lock);
  const uint32_t block = block_at(address);
  const bool lives = block != 0 && gcap_doctor_memory_at(&audit.memory, block)->end == address + bytes;
  pthread_mutex_unlock(&audit.lock);
  return lives;
}

bool gcap_doctor_audit_block_is_used(uint64_t address) {
  pthread_mutex_lock(&audit.lock);
  const uint32_t block = block_at(address);
  const bool is_used =
      block != 0 && (gcap_doctor_memory_at(&audit.memory, block)->references != 0 || gcap_doctor_switch_is_capturing());
  pthread_mutex_unlock(&audit.lock);
  return is_used;
}

// --- Executables -----------------------------------------------------------------------------------------------------

// With the lock held.
static exec_t* find_exec(const void* handle) {
  const uint32_t place = gcap_doctor_map_get(&audit.places, (uintptr_t)handle);
  return place != 0 ? &audit.execs[place - 1] : NULL;
}

// With the lock held. Leaves the place to the executable.
static void forget_pointers(exec_t* exec) {
  for (size_t i = 0; i < exec->num_used; ++i) gcap_doctor_memory_release(&audit.memory, exec->used[i].piece);
  free(exec->nodes);
  free(exec->pointers);
  free(exec->used);
  free(exec->hosts);
  exec->hosts = NULL;
  exec->num_hosts = 0;
  exec->nodes = NULL;
  exec->pointers = NULL;
  exec->used = NULL;
  exec->num_nodes = exec->num_pointers = exec->num_used = 0;
}

// With the lock held. NULL without memory.
static exec_t* add_exec(const void* handle) {
  exec_t* exec = find_exec(handle);
  if (exec != NULL) return exec;
  uint32_t place = audit.first_free;
  if (place != 0) {
    audit.first_free = audit.execs[place - 1].next_free;
  } else {
    if (!gcap_doctor_grow(&audit.execs, &audit.exec_capacity, audit.num_execs + 1, sizeof(*audit.execs))) return NULL;
    place = (uint32_t)++audit.num_execs;
  }
  audit.execs[place - 1] = (exec_t){0};
  if (gcap_doctor_map_set(&audit.places, (uintptr_t)handle, place)) return &audit.execs[place - 1];
  audit.execs[place - 1].next_free = audit.first_free;
  audit.first_free = place;
  return NULL;
}

void gcap_doctor_audit_exec_gone(const void* handle) {
  if (!atomic_load_explicit(&audit.is_on, memory_order_relaxed)) return;
  pthread_mutex_lock(&audit.lock);
  exec_t* exec = find_exec(handle);
  if (exec != NULL) {
    const uint32_t place = gcap_doctor_map_get(&audit.places, (uintptr_t)handle);
    forget_pointers(exec);
    gcap_doctor_map_remove(&audit.places, (uintptr_t)handle);
    *exec = (exec_t){.next_free = audit.first_free};
    audit.first_free = place;
  }
  pthread_mutex_unlock(&audit.lock);
}

// With the lock held. The piece that a word points into: a framework's block before the driver's memory around it.
static uint32_t living_piece_of(uint64_t value) {
  const uint32_t block = gcap_doctor_memory_find(&audit.memory, GCAP_DOCTOR_MEMORY_OF_FRAMEWORK, value);
  return block != 0 ? block : gcap_doctor_memory_find(&audit.memory, GCAP_DOCTOR_MEMORY_OF_DRIVER, value);
}

// With the lock held. The newest piece that was freed in a capture and that the address was in, if the memory of the
// driver around a block is the same as then.
static uint32_t grave_of(uint64_t value) {
  const uint32_t around = gcap_doctor_memory_find(&audit.memory, GCAP_DOCTOR_MEMORY_OF_DRIVER, value);
  const size_t count = audit.num_graves < kMaxGraves ? audit.num_graves : kMaxGraves;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t grave = audit.graves[(audit.num_graves - 1 - i) % kMaxGraves];
    const gcap_doctor_memory_piece_t* of = gcap_doctor_memory_at(&audit.memory, grave);
    if (value < of->begin || value >= of->end) continue;
    const bool is_of_driver = gcap_doctor_memory_layer_of(of->what) == GCAP_DOCTOR_MEMORY_OF_DRIVER;
    const bool is_same = around != 0 && gcap_doctor_memory_at(&audit.memory, around)->serial < of->serial;
    return (is_of_driver ? around == 0 : is_same) ? grave : 0;
  }
  return 0;
}

// With the lock held. The piece that a word of a new executable points into.
static uint32_t piece_of(uint64_t value) {
  const uint32_t block = gcap_doctor_memory_find(&audit.memory, GCAP_DOCTOR_MEMORY_OF_FRAMEWORK, value);
  if (block != 0) return block;
  const uint32_t grave = audit.num_graves != 0 ? grave_of(value) : 0;
  return grave != 0 ? grave : gcap_doctor_memory_find(&audit.memory, GCAP_DOCTOR_MEMORY_OF_DRIVER, value);
}

static int by_piece(const void* left, const void* right) {
  const pointer_t *a = left, *b = right;
  if (a->piece != b->piece) return a->piece < b->piece ? -1 : 1;
  if (a->word.node != b->word.node) return a->word.node < b->word.node ? -1 : 1;
  return a->word.argument < b->word.argument ? -1 : a->word.argument > b->word.argument;
}

// With the lock held. Refers to each piece once. Without memory the executable has no pointers.
static void refer(exec_t* exec) {
  used_t* used = calloc(exec->num_pointers + 1, sizeof(*used));
  if (used == NULL) {
    exec->num_pointers = 0;
    return;
  }
  if (exec->num_pointers > 1) qsort(exec->pointers, exec->num_pointers, sizeof(*exec->pointers), by_piece);
  size_t num_used = 0;
  for (size_t i = 0; i < exec->num_pointers; ++i) {
    if (num_used != 0 && used[num_used - 1].piece == exec->pointers[i].piece) continue;
    used[num_used++].piece = exec->pointers[i].piece;
    gcap_doctor_memory_retain(&audit.memory, exec->pointers[i].piece);
  }
  exec->used = used;
  exec->num_used = num_used;
}

// With the lock held.
static void add_host(exec_t* exec, gcap_doctor_thread_t* thread, const gcap_doctor_audit_word_t* word) {
  enum { kMaxHosts = 64 };  // a launch looks at each
  if (exec->hosts == NULL) exec->hosts = calloc(kMaxHosts, sizeof(*exec->hosts));
  if (exec->hosts == NULL || exec->num_hosts == kMaxHosts) return;
  atomic_store_explicit(&audit.has_hosts, true, memory_order_relaxed);
  exec->hosts[exec->num_hosts++] =
      (host_t){.word = *word,
               .thread = thread->id,
               .is_stack = gcap_doctor_thread_has_on_stack(thread, (const void*)(uintptr_t)word->value)};
}

// With the lock held. Takes the nodes of the read.
static void take_read(gcap_doctor_thread_t* thread, exec_t* exec, gcap_doctor_audit_read_t* read) {
  forget_pointers(exec);
  exec->bytes = read->allocated_bytes;
  exec->epoch = UINT64_MAX;  // a piece may have been freed before this: the first launch looks
  exec->nodes = read->nodes;
  exec->num_nodes = read->num_nodes;
  read->nodes = NULL;
  exec->pointers = calloc(read->num_words + 1, sizeof(*exec->pointers));
  for (size_t i = 0; exec->pointers != NULL && i < read->num_words; ++i) {
    const gcap_doctor_audit_word_t* word = &read->words[i];
    const uint32_t piece = piece_of(word->value);
    if (piece != 0) exec->pointers[exec->num_pointers++] = (pointer_t){piece, *word};
    if (piece == 0 && word->is_host) add_host(exec, thread, word);
  }
  refer(exec);
}

static gcap_doctor_audit_read_t begin_read(void) {
  gcap_doctor_audit_read_t read = {0};
  pthread_mutex_lock(&audit.lock);
  read.low = audit.low;
  read.high = audit.high;
  pthread_mutex_unlock(&audit.lock);
  return read;
}

// With the lock held. Executables that are made at one place are a group. Where no stack is known, no place is.
static void join_group(exec_t* exec, const gcap_doctor_memory_place_t* made) {
  if (made->stack == 0) return;
  uint32_t group = gcap_doctor_map_get(&audit.group_of_stack, made->stack);
  if (group == 0) {
    if (!gcap_doctor_grow(&audit.groups, &audit.group_capacity, audit.num_groups + 1, sizeof(*audit.groups))) return;
    audit.groups[audit.num_groups] = (group_t){0};
    group = (uint32_t)++audit.num_groups;
    if (!gcap_doctor_map_set(&audit.group_of_stack, made->stack, group)) return;
  }
  audit.groups[group - 1].last = *made;
  ++audit.groups[group - 1].made;
  exec->group = group;
}

// An executable has the graph's content from now on.
static void take_graph(gcap_doctor_thread_t* thread, const void* handle, void* graph,
                       const gcap_doctor_memory_place_t* made) {
  gcap_doctor_audit_read_t read = begin_read();
  gcap_doctor_audit_read_graph(&read, graph);
  if (read.untold != 0 && !atomic_exchange(&audit.has_said_untold, true)) {
    gcap_doctor_writer_note(
        "the driver does not tell the arguments of some kernels, so launches on memory that those use are not "
        "audited.");
  }
  pthread_mutex_lock(&audit.lock);
  exec_t* exec = add_exec(handle);
  if (exec != NULL) take_read(thread, exec, &read);
  if (exec != NULL && made != NULL) join_group(exec, made);
  pthread_mutex_unlock(&audit.lock);
  gcap_doctor_audit_read_free(&read);
}

// --- Nodes of executables --------------------------------------------------------------------------------------------

// With the lock held. What was told of a piece before stays told.
static void keep_told(const exec_t* exec, const used_t* before, size_t count) {
  for (size_t i = 0, k = 0; i < exec->num_used; ++i) {
    while (k < count && before[k].piece < exec->used[i].piece) ++k;
    if (k < count && before[k].piece == exec->used[i].piece) exec->used[i].is_told = before[k].is_told;
  }
}

// Whether a word is of the node, or of a node of its child graph.
static bool is_within(const exec_t* exec, uint32_t node, const gcap_doctor_audit_word_t* word) {
  return word->node >= node && word->node - node <= exec->nodes[node].inner;
}

// With the lock held. The host's memory of a node's copy.
static void replace_hosts(exec_t* exec, gcap_doctor_thread_t* thread, uint32_t node,
                          const gcap_doctor_audit_read_t* read) {
  size_t count = 0;
  for (size_t i = 0; i < exec->num_hosts; ++i) {
    if (!is_within(exec, node, &exec->hosts[i].word)) exec->hosts[count++] = exec->hosts[i];
  }
  exec->num_hosts = count;
  for (size_t i = 0; i < read->num_words; ++i) {
    gcap_doctor_audit_word_t word = read->words[i];
    word.node = node;
    if (word.is_host && piece_of(word.value) == 0) add_host(exec, thread, &word);
  }
}

// With the lock held. The node has the words of the read, in place of its own. The other pointers keep their pieces.
static void replace_words(exec_t* exec, uint32_t node, const gcap_doctor_audit_read_t* read) {
  pointer_t* pointers = calloc(exec->num_pointers + read->num_words + 1, sizeof(*pointers));
  if (pointers == NULL) return;
  size_t count = 0;
  for (size_t i = 0; i < exec->num_pointers; ++i) {
    if (!is_within(exec, node, &exec->pointers[i].word)) pointers[count++] = exec->pointers[i];
  }
  for (size_t i = 0; i < read->num_words; ++i) {
    const uint32_t piece = piece_of(read->words[i].value);
    if (piece == 0) continue;
    pointers[count] = (pointer_t){piece, read->words[i]};
    pointers[count++].word.node = node;
  }
  used_t* before = exec->used;
  const size_t num_before = exec->num_used;
  free(exec->pointers);
  exec->pointers = pointers;
  exec->num_pointers = count;
  exec->used = NULL;
  exec->num_used = 0;
  refer(exec);
  keep_told(exec, before, num_before);
  for (size_t i = 0; i < num_before; ++i) gcap_doctor_memory_release(&audit.memory, before[i].piece);
  free(before);
  exec->epoch = UINT64_MAX;  // the next launch looks
}

// Once an executable was updated, calls name its nodes by the graph that it was made of, whose handles are not kept: of
// an executable with a change to a node that is not known nothing is known any more.
static void change_node(gcap_doctor_thread_t* thread, const void* handle, const void* node,
                        const gcap_doctor_audit_read_t* read, bool is_off) {
  pthread_mutex_lock(&audit.lock);
  exec_t* exec = find_exec(handle);
  size_t i = 0;
  while (exec != NULL && i < exec->num_nodes && exec->nodes[i].handle != node) ++i;
  if (exec != NULL && i == exec->num_nodes) {
    forget_pointers(exec);
  } else if (exec != NULL && read != NULL) {
    exec->nodes[i].kernel = read->num_nodes != 0 ? read->nodes[0].kernel : NULL;
    replace_hosts(exec, thread, (uint32_t)i, read);
    replace_words(exec, (uint32_t)i, read);
  } else if (exec != NULL) {
    exec->nodes[i].is_off = is_off;
    exec->epoch = UINT64_MAX;
  }
  pthread_mutex_unlock(&audit.lock);
}

// A call gave a node of an executable another content. Of what it does not describe here nothing is known any more.
static void set_node(gcap_doctor_thread_t* thread, const gcap_doctor_memory_call_t* call, const void* arguments) {
  uint64_t exec, node, about;
  gcap_doctor_audit_read_t read = begin_read();
  gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_EXEC, &exec);
  gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_NODE, &node);
  void* handle = (void*)(uintptr_t)node;
  if (gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_KERNEL, &about)) {
    gcap_doctor_audit_read_kernel(&read, handle, (const void*)(uintptr_t)about);
  } else if (gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_COPY, &about)) {
    gcap_doctor_audit_read_copy(&read, handle, (const void*)(uintptr_t)about);
  } else if (gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_MEMSET, &about)) {
    gcap_doctor_audit_read_memset(&read, handle, (const void*)(uintptr_t)about);
  }
  change_node(thread, (const void*)(uintptr_t)exec, handle, &read, false);
  gcap_doctor_audit_read_free(&read);
}

static void enable_node(gcap_doctor_thread_t* thread, const gcap_doctor_memory_call_t* call, const void* arguments) {
  uint64_t exec, node, enabled;
  gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_EXEC, &exec);
  gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_NODE, &node);
  gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_ENABLED, &enabled);
  change_node(thread, (const void*)(uintptr_t)exec, (const void*)(uintptr_t)node, NULL, (uint32_t)enabled == 0);
}

// --- Launches --------------------------------------------------------------------------------------------------------

// With the lock held. Memory that was pinned in place is the program's still: a copy may use it.
static bool is_stale(const pointer_t* pointer, const gcap_doctor_memory_piece_t* piece,
                     const gcap_doctor_audit_node_t* node) {
  const bool is_of_kernel =
      pointer->word.use == GCAP_DOCTOR_AUDIT_ARGUMENT || pointer->word.use == GCAP_DOCTOR_AUDIT_WORD;
  return piece->is_freed && !node->is_off && (is_of_kernel || piece->what != GCAP_DOCTOR_MEMORY_REGISTERED);
}

// With the lock held. Whose the address is now; a place of none where it is nobody's.
static void find_taken(gcap_doctor_audit_stale_t* stale, uint64_t value) {
  const uint32_t piece = living_piece_of(value);
  if (piece == 0) return;
  gcap_doctor_memory_piece_t* of = gcap_doctor_memory_at(&audit.memory, piece);
  // A block's segment lives on: that is no other owner.
  const bool is_around = gcap_doctor_memory_layer_of(stale->what) == GCAP_DOCTOR_MEMORY_OF_FRAMEWORK &&
                         gcap_doctor_memory_layer_of(of->what) == GCAP_DOCTOR_MEMORY_OF_DRIVER;
  if (is_around) return;
  stale->taken = of->made;
  stale->taken_bytes = of->end - of->begin;
  of->made.is_written = true;
}

// With the lock held. Fills in what is to be told of a piece; false if no pointer into it counts.
static bool describe(const exec_t* exec, uint32_t piece, gcap_doctor_audit_stale_t* out_stale) {
  gcap_doctor_memory_piece_t* of = gcap_doctor_memory_at(&audit.memory, piece);
  *out_stale = (gcap_doctor_audit_stale_t){.bytes = of->end - of->begin, .what = of->what};
  for (size_t i = 0; i < exec->num_pointers; ++i) {
    const pointer_t* pointer = &exec->pointers[i];
    if (pointer->piece != piece || !is_stale(pointer, of, &exec->nodes[pointer->word.node])) continue;
    // A whole argument says more than a word of one.
    const bool is_better = out_stale->word.use == GCAP_DOCTOR_AUDIT_WORD && pointer->word.use != GCAP_DOCTOR_AUDIT_WORD;
    if (out_stale->num_pointers++ == 0 || is_better) {
      out_stale->word = pointer->word;
      out_stale->node = exec->nodes[pointer->word.node];
    }
  }
  if (out_stale->num_pointers == 0) return false;
  out_stale->made = of->made;
  of->made.is_written = true;
  if (of->freed != NULL) {
    out_stale->freed = *of->freed;
    of->freed->is_written = true;
  }
  find_taken(out_stale, out_stale->word.value);
  return true;
}

// With the lock held. Whether the host's memory of a copy is surely gone: on the stack of this thread, below the frame
// that launches, or where no page is mapped any more.
static bool is_host_gone(const host_t* host, const gcap_doctor_thread_t* thread, uintptr_t frame) {
  unsigned char in_core;
  const uintptr_t page = (uintptr_t)host->word.value & ~(uintptr_t)4095;
  if (host->is_stack && host->thread == thread->id) return host->word.value < frame;
  return mincore((void*)page, 1, &in_core) != 0 && errno == ENOMEM;
}

// With the lock held.
static size_t look_at_hosts(exec_t* exec, const gcap_doctor_thread_t* thread, uintptr_t frame,
                            gcap_doctor_audit_stale_t* out_stale, size_t most) {
  size_t count = 0;
  for (size_t i = 0; i < exec->num_hosts && count < most; ++i) {
    host_t* host = &exec->hosts[i];
    const gcap_doctor_audit_node_t* node = &exec->nodes[host->word.node];
    if (host->is_told || node->is_off || !is_host_gone(host, thread, frame)) continue;
    host->is_told = true;
    out_stale[count++] =
        (gcap_doctor_audit_stale_t){.word = host->word,
                                    .node = *node,
                                    .num_pointers = 1,
                                    .what = host->is_stack ? GCAP_DOCTOR_MEMORY_STACK : GCAP_DOCTOR_MEMORY_PAGEABLE};
  }
  return count;
}

// With the lock held. Looks at the pieces of an executable.
static size_t look(exec_t* exec, gcap_doctor_audit_stale_t* out_stale) {
  size_t count = 0;
  for (size_t i = 0; i < exec->num_used && count < kMaxTold; ++i) {
    used_t* used = &exec->used[i];
    if (used->is_told || !gcap_doctor_memory_at(&audit.memory, used->piece)->is_freed) continue;
    used->is_told = describe(exec, used->piece, &out_stale[count]);
    count += used->is_told;
  }
  if (count < kMaxTold) exec->epoch = audit.memory.epoch;
  return count;
}

// With the lock held. Whether another thread is in a launch of the executable, which is told once.
static uint32_t find_sharer(exec_t* exec, uint32_t thread) {
  const uint32_t other = exec->launching != thread ? exec->launching : 0;
  exec->launching = thread;
  if (other == 0 || exec->is_told) return 0;
  exec->is_told = true;
  return other;
}

static void launched(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data,
                     const void* handle) {
  gcap_doctor_audit_stale_t stale[kMaxTold];
  size_t count = 0;
  uint32_t sharer = 0;
  const bool has_hosts = atomic_load_explicit(&audit.has_hosts, memory_order_relaxed);
  uintptr_t frame = has_hosts ? gcap_doctor_stacks_program_frame() : 0;
  // A coroutine has a stack of its own, which says nothing of the thread's.
  if (!gcap_doctor_thread_has_on_stack(thread, (const void*)frame)) frame = 0;
  pthread_mutex_lock(&audit.lock);
  exec_t* exec = find_exec(handle);
  if (exec != NULL) {
    exec->launches += exec->launches < 2;
    sharer = find_sharer(exec, thread->id);
    if (exec->epoch != audit.memory.epoch) count = look(exec, stale);
    if (exec->num_hosts != 0) count += look_at_hosts(exec, thread, frame, stale + count, kMaxTold - count);
  }
  pthread_mutex_unlock(&audit.lock);
  if (count == 0 && sharer == 0) return;
  const gcap_doctor_memory_place_t place = place_of(thread, callback, data);
  const uint32_t id = gcap_doctor_exec(handle);
  gcap_doctor_audit_tell_launch(thread, &place, id);
  for (size_t i = 0; i < count; ++i) gcap_doctor_audit_tell_stale(thread, &stale[i], id, place.call);
  if (sharer != 0) gcap_doctor_audit_tell_shared(thread, sharer, id, place.call);
  gcap_doctor_thread_flush(thread);
}

static void launch_ended(const gcap_doctor_thread_t* thread, const void* handle) {
  pthread_mutex_lock(&audit.lock);
  exec_t* exec = find_exec(handle);
  if (exec != NULL && exec->launching == thread->id) exec->launching = 0;
  pthread_mutex_unlock(&audit.lock);
}

// --- Calls -----------------------------------------------------------------------------------------------------------

static void* pointer_argument(const gcap_doctor_driver_call_t* call, const gcap_doctor_cupti_call_t* data,
                              gcap_doctor_driver_argument_t kind) {
  void* value = NULL;
  if (call->at[kind] != 0 && data->arguments != NULL) {
    memcpy(&value, (const char*)data->arguments + call->at[kind] - 1, sizeof(value));
  }
  return value;
}

void gcap_doctor_audit_entered(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data) {
  const gcap_doctor_driver_call_t* call = gcap_doctor_driver_call(callback);
  if (call->role == GCAP_DOCTOR_ROLE_LAUNCH) {
    launched(thread, callback, data, pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_EXEC));
  } else if (gcap_doctor_memory_call(callback)->does == GCAP_DOCTOR_MEMORY_DOES_FREE) {
    thread->freeing = last_serial();
  }
}

// Whether the call was taken into a capture.
static bool made_nodes(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data) {
  const gcap_doctor_open_call_t* open = gcap_doctor_call_open(thread);
  if (open != NULL && open->callback == callback && open->correlation == data->correlation) return open->num_nodes != 0;
  return thread->unseen != 0;
}

static void instantiated(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data) {
  const gcap_doctor_driver_call_t* call = gcap_doctor_driver_call(callback);
  void* exec = pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_EXEC_OUT);
  if (exec != NULL) memcpy(&exec, exec, sizeof(exec));
  void* graph = pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_GRAPH);
  if (exec == NULL || graph == NULL) return;
  const gcap_doctor_memory_place_t made = place_of(thread, callback, data);
  take_graph(thread, exec, graph, &made);
}

void gcap_doctor_audit_left(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data) {
  const gcap_doctor_driver_call_t* call = gcap_doctor_driver_call(callback);
  const gcap_doctor_memory_call_t* memory = gcap_doctor_memory_call(callback);
  if (call->role == GCAP_DOCTOR_ROLE_LAUNCH) {
    launch_ended(thread, pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_EXEC));
  }
  if (data->result != NULL && *(const int*)data->result != 0) return;
  if (call->role == GCAP_DOCTOR_ROLE_INSTANTIATE) {
    instantiated(thread, callback, data);
  } else if (call->role == GCAP_DOCTOR_ROLE_UPDATE) {
    take_graph(thread, pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_EXEC),
               pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_GRAPH), NULL);
  } else if (memory->does == GCAP_DOCTOR_MEMORY_DOES_SET) {
    set_node(thread, memory, data->arguments);
  } else if (memory->does == GCAP_DOCTOR_MEMORY_DOES_ENABLE) {
    enable_node(thread, memory, data->arguments);
  } else if (memory->does == GCAP_DOCTOR_MEMORY_DOES_ALLOC && !made_nodes(thread, callback, data)) {
    const gcap_doctor_memory_place_t place = place_of(thread, callback, data);
    made(memory, data->arguments, &place);
  } else if (memory->does == GCAP_DOCTOR_MEMORY_DOES_FREE && !made_nodes(thread, callback, data)) {
    const gcap_doctor_memory_place_t place = place_of(thread, callback, data);
    freed(memory, data->arguments, thread->freeing, &place);
  }
}

// What is left at the end of the executables that were made at one place. The lines go to `out`.
static void tell_groups(gcap_doctor_line_t* out) {
  pthread_mutex_lock(&audit.lock);
  for (size_t i = 0; i < audit.num_execs; ++i) {
    const exec_t* exec = &audit.execs[i];
    if (exec->group == 0) continue;
    group_t* group = &audit.groups[exec->group - 1];
    ++group->live;
    group->idle += exec->launches < 2;
    group->bytes += exec->bytes;
  }
  for (size_t i = 0; i < audit.num_groups; ++i) {
    const group_t* group = &audit.groups[i];
    if (group->made < kFewExecs) continue;
    gcap_doctor_audit_tell_group(out, &group->last, group->made, group->live, group->idle, group->bytes);
  }
  pthread_mutex_unlock(&audit.lock);
}

void gcap_doctor_audit_finish(gcap_doctor_line_t* out) {
  if (gcap_doctor_audit_is_on()) tell_groups(out);
  if (!gcap_doctor_audit_is_on() || atomic_load(&audit.is_followed[GCAP_DOCTOR_MEMORY_PYTORCH])) return;
  if (dlopen("libc10_cuda.so", RTLD_NOW | RTLD_NOLOAD) == NULL) return;
  gcap_doctor_writer_note(
      "PyTorch's allocator was not followed, so the audit knows of no block that PyTorch took back: the interpreter "
      "did "
      "not run doctor/python/sitecustomize.py, which gcap-doctor audit puts on PYTHONPATH, as with python -I, -E or "
      "-S.");
}
