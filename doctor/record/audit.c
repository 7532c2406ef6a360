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

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/base/grow.h"
#include "doctor/record/audit_read.h"
#include "doctor/record/calls.h"
#include "doctor/record/driver_calls.h"
#include "doctor/record/handles.h"
#include "doctor/record/map.h"
#include "doctor/record/memory.h"
#include "doctor/record/memory_calls.h"
#include "doctor/record/stacks.h"
#include "doctor/record/writer.h"

enum {
  kMaxTold = 16,  // pieces at one launch; the others are told at later ones
};

typedef struct pointer {
  uint64_t value;
  uint32_t piece;
  gcap_doctor_audit_word_t word;
} pointer_t;

// A piece that an executable points into.
typedef struct used {
  uint32_t piece;
  bool is_told;
} used_t;

typedef struct exec {
  gcap_doctor_audit_node_t* nodes;
  pointer_t* pointers;
  used_t* used;
  size_t num_nodes, num_pointers, num_used;
  uint64_t epoch;      // of the memory, when it was looked at
  uint32_t launching;  // the thread in whose launch it is; 0 for none
  bool is_told;        // that two threads launch it
  uint32_t next_free;  // index + 1
} exec_t;

static struct {
  pthread_mutex_t lock;
  atomic_bool is_on;
  gcap_doctor_memory_t memory;
  uint64_t low, high;  // of all memory so far
  gcap_doctor_map_t places;
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

static void write_place(gcap_doctor_line_t* out, const gcap_doctor_memory_place_t* place, uint64_t bytes) {
  if (place->call == 0 || place->is_written) return;
  gcap_doctor_line_begin(out, "call");
  gcap_doctor_line_number(out, "n", place->call);
  gcap_doctor_line_number(out, "t", place->start_ns);
  gcap_doctor_line_number(out, "thread", place->thread);
  gcap_doctor_call_write_name(out, place->function);
  gcap_doctor_line_number(out, "result", 0);
  if (place->stack != 0) gcap_doctor_line_number(out, "stack", place->stack);
  if (bytes != 0) gcap_doctor_line_number(out, "bytes", bytes);
  gcap_doctor_line_end(out);
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
    if (of->serial <= serial) gcap_doctor_memory_free(&audit.memory, piece, place);
  }
  pthread_mutex_unlock(&audit.lock);
}

static uint64_t last_serial(void) {
  pthread_mutex_lock(&audit.lock);
  const uint64_t serial = audit.memory.last_serial;
  pthread_mutex_unlock(&audit.lock);
  return serial;
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
static uint32_t piece_of(uint64_t value) {
  const uint32_t block = gcap_doctor_memory_find(&audit.memory, GCAP_DOCTOR_MEMORY_OF_FRAMEWORK, value);
  return block != 0 ? block : gcap_doctor_memory_find(&audit.memory, GCAP_DOCTOR_MEMORY_OF_DRIVER, value);
}

static int by_piece(const void* left, const void* right) {
  const pointer_t *a = left, *b = right;
  if (a->piece != b->piece) return a->piece < b->piece ? -1 : 1;
  if (a->word.node != b->word.node) return a->word.node < b->word.node ? -1 : 1;
  return a->word.argument < b->word.argument ? -1 : a->word.argument > b->word.argument;
}

// With the lock held. Refers to each piece once. False without memory: then the executable has no pointers.
static bool refer(exec_t* exec) {
  used_t* used = calloc(exec->num_pointers + 1, sizeof(*used));
  if (used == NULL) {
    exec->num_pointers = 0;
    return false;
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
  return true;
}

// With the lock held. Takes the nodes of the read.
static void take_read(exec_t* exec, gcap_doctor_audit_read_t* read) {
  forget_pointers(exec);
  exec->epoch = audit.memory.epoch;
  exec->nodes = read->nodes;
  exec->num_nodes = read->num_nodes;
  read->nodes = NULL;
  exec->pointers = calloc(read->num_words + 1, sizeof(*exec->pointers));
  for (size_t i = 0; exec->pointers != NULL && i < read->num_words; ++i) {
    const gcap_doctor_audit_word_t* word = &read->words[i];
    const uint32_t piece = piece_of(word->value);
    if (piece != 0) exec->pointers[exec->num_pointers++] = (pointer_t){word->value, piece, *word};
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

// An executable has the graph's content from now on.
static void take_graph(const void* handle, void* graph) {
  gcap_doctor_audit_read_t read = begin_read();
  gcap_doctor_audit_read_graph(&read, graph);
  pthread_mutex_lock(&audit.lock);
  exec_t* exec = add_exec(handle);
  if (exec != NULL) take_read(exec, &read);
  pthread_mutex_unlock(&audit.lock);
  gcap_doctor_audit_read_free(&read);
}

// --- Launches --------------------------------------------------------------------------------------------------------

// What is told of one executable and one piece.
typedef struct stale {
  pointer_t pointer;  // the first one
  gcap_doctor_audit_node_t node;
  uint64_t num_pointers;
  uint64_t begin, bytes;
  uint8_t what;
  gcap_doctor_memory_place_t made, freed, taken;
  uint64_t taken_bytes;
} stale_t;

// With the lock held. Memory that was pinned in place is the program's still: a copy may use it.
static bool is_stale(const pointer_t* pointer, const gcap_doctor_memory_piece_t* piece,
                     const gcap_doctor_audit_node_t* node) {
  const bool is_of_kernel =
      pointer->word.use == GCAP_DOCTOR_AUDIT_ARGUMENT || pointer->word.use == GCAP_DOCTOR_AUDIT_WORD;
  return piece->is_freed && !node->is_off && (is_of_kernel || piece->what != GCAP_DOCTOR_MEMORY_REGISTERED);
}

// With the lock held. Whose the address is now; a place of none where it is nobody's.
static void find_taken(stale_t* stale, uint64_t value) {
  const uint32_t piece = piece_of(value);
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
static bool describe(const exec_t* exec, uint32_t piece, stale_t* out_stale) {
  gcap_doctor_memory_piece_t* of = gcap_doctor_memory_at(&audit.memory, piece);
  *out_stale = (stale_t){.begin = of->begin, .bytes = of->end - of->begin, .what = of->what};
  for (size_t i = 0; i < exec->num_pointers; ++i) {
    const pointer_t* pointer = &exec->pointers[i];
    if (pointer->piece != piece || !is_stale(pointer, of, &exec->nodes[pointer->word.node])) continue;
    // A whole argument says more than a word of one.
    const bool is_better =
        out_stale->pointer.word.use == GCAP_DOCTOR_AUDIT_WORD && pointer->word.use != GCAP_DOCTOR_AUDIT_WORD;
    if (out_stale->num_pointers++ == 0 || is_better) {
      out_stale->pointer = *pointer;
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
  find_taken(out_stale, out_stale->pointer.value);
  return true;
}

// With the lock held. Looks at the pieces of an executable.
static size_t look(exec_t* exec, stale_t* out_stale) {
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

static const char* name_of_use(uint8_t use) {
  static const char* const names[] = {"argument", "word", "copy_from", "copy_to", "memset"};
  return names[use];
}

// Returns the number of the launch's call, which has its line after this.
static uint64_t write_launch(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data,
                             uint32_t exec) {
  const gcap_doctor_memory_place_t place = place_of(thread, callback, data);
  if (place.is_written) return place.call;
  gcap_doctor_line_t* out = &thread->out;
  gcap_doctor_line_begin(out, "call");
  gcap_doctor_line_number(out, "n", place.call);
  gcap_doctor_line_number(out, "t", place.start_ns);
  gcap_doctor_line_number(out, "thread", place.thread);
  gcap_doctor_call_write_name(out, place.function);
  gcap_doctor_line_number(out, "result", 0);
  if (place.stack != 0) gcap_doctor_line_number(out, "stack", place.stack);
  if (exec != 0) gcap_doctor_line_number(out, "exec", exec);
  gcap_doctor_line_end(out);
  return place.call;
}

static void write_number(gcap_doctor_line_t* out, const char* key, uint64_t number) {
  if (number != 0) gcap_doctor_line_number(out, key, number);
}

static void write_stale(gcap_doctor_line_t* out, const stale_t* stale, uint32_t exec, uint64_t launch) {
  const gcap_doctor_audit_word_t* word = &stale->pointer.word;
  write_place(out, &stale->made, stale->bytes);
  write_place(out, &stale->freed, 0);
  write_place(out, &stale->taken, stale->taken_bytes);
  gcap_doctor_line_begin(out, "stale");
  gcap_doctor_line_number(out, "call", launch);
  gcap_doctor_line_number(out, "exec", exec);
  gcap_doctor_line_hex(out, "node", stale->node.id);
  gcap_doctor_line_field(out, "use", name_of_use(word->use));
  if (stale->node.kernel != NULL) gcap_doctor_line_field(out, "kernel", stale->node.kernel);
  if (word->use <= GCAP_DOCTOR_AUDIT_WORD) gcap_doctor_line_number(out, "argument", word->argument);
  if (word->use == GCAP_DOCTOR_AUDIT_WORD) gcap_doctor_line_number(out, "offset", word->offset);
  gcap_doctor_line_hex(out, "address", stale->pointer.value);
  gcap_doctor_line_field(out, "what", gcap_doctor_memory_what_name((gcap_doctor_memory_what_t)stale->what));
  gcap_doctor_line_number(out, "bytes", stale->bytes);
  gcap_doctor_line_number(out, "pointers", stale->num_pointers);
  write_number(out, "made", stale->made.call);
  write_number(out, "freed", stale->freed.call);
  write_number(out, "taken", stale->taken.call);
  gcap_doctor_line_end(out);
}

static void say_stale(const stale_t* stale, uint32_t exec) {
  const gcap_doctor_audit_word_t* word = &stale->pointer.word;
  char where[64];
  if (word->use <= GCAP_DOCTOR_AUDIT_WORD) {
    snprintf(where, sizeof(where), "argument %u", (unsigned)word->argument);
  } else {
    snprintf(where, sizeof(where), "%s", name_of_use(word->use));
  }
  gcap_doctor_writer_say(
      "audit: the launch of executable %u uses memory that was freed%s: %s of %s, node %" PRIx64 ", is 0x%" PRIx64
      ", in %" PRIu64 " bytes of %s memory; the report says where they were allocated and freed.",
      (unsigned)exec, stale->taken.call != 0 ? " and handed out again" : "", where,
      stale->node.kernel != NULL ? stale->node.kernel : "a node", stale->node.id, stale->pointer.value, stale->bytes,
      gcap_doctor_memory_what_name((gcap_doctor_memory_what_t)stale->what));
}

static void launched(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data,
                     const void* handle) {
  stale_t stale[kMaxTold];
  size_t count = 0;
  pthread_mutex_lock(&audit.lock);
  exec_t* exec = find_exec(handle);
  if (exec != NULL && exec->epoch != audit.memory.epoch) count = look(exec, stale);
  pthread_mutex_unlock(&audit.lock);
  if (count == 0) return;
  const uint32_t id = gcap_doctor_exec(handle);
  const uint64_t launch = write_launch(thread, callback, data, id);
  for (size_t i = 0; i < count; ++i) {
    write_stale(&thread->out, &stale[i], id, launch);
    say_stale(&stale[i], id);
  }
  gcap_doctor_thread_flush(thread);
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

void gcap_doctor_audit_left(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data) {
  const gcap_doctor_driver_call_t* call = gcap_doctor_driver_call(callback);
  const gcap_doctor_memory_call_t* memory = gcap_doctor_memory_call(callback);
  if (data->result != NULL && *(const int*)data->result != 0) return;
  if (call->role == GCAP_DOCTOR_ROLE_INSTANTIATE) {
    void* exec = pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_EXEC_OUT);
    if (exec != NULL) memcpy(&exec, exec, sizeof(exec));
    void* graph = pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_GRAPH);
    if (exec != NULL && graph != NULL) take_graph(exec, graph);
  } else if (call->role == GCAP_DOCTOR_ROLE_UPDATE) {
    take_graph(pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_EXEC),
               pointer_argument(call, data, GCAP_DOCTOR_ARGUMENT_GRAPH));
  } else if (memory->does == GCAP_DOCTOR_MEMORY_DOES_ALLOC && !made_nodes(thread, callback, data)) {
    const gcap_doctor_memory_place_t place = place_of(thread, callback, data);
    made(memory, data->arguments, &place);
  } else if (memory->does == GCAP_DOCTOR_MEMORY_DOES_FREE && !made_nodes(thread, callback, data)) {
    const gcap_doctor_memory_place_t place = place_of(thread, callback, data);
    freed(memory, data->arguments, thread->freeing, &place);
  }
}

void gcap_doctor_audit_finish(gcap_doctor_line_t* out) { (void)out; }
