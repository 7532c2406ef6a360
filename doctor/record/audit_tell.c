// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lines of calls are written late here: a call that allocates has its number and its stack as it is made, and its line
// once something is to be told of its memory. A reader orders calls by their numbers. Locking: none.
#include "doctor/record/audit_tell.h"

#include <inttypes.h>
#include <stdio.h>

#include "doctor/record/calls.h"
#include "doctor/record/stacks.h"
#include "doctor/record/writer.h"

gcap_doctor_memory_place_t gcap_doctor_audit_place(gcap_doctor_thread_t* thread, uint32_t callback,
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

static void write_number(gcap_doctor_line_t* out, const char* key, uint64_t number) {
  if (number != 0) gcap_doctor_line_number(out, key, number);
}

static void write_place(gcap_doctor_line_t* out, const gcap_doctor_memory_place_t* place, const char* key,
                        uint64_t value) {
  if (place->call == 0 || place->is_written) return;
  gcap_doctor_line_begin(out, "call");
  gcap_doctor_line_number(out, "n", place->call);
  gcap_doctor_line_number(out, "t", place->start_ns);
  gcap_doctor_line_number(out, "thread", place->thread);
  gcap_doctor_call_write_name(out, place->function);
  gcap_doctor_line_number(out, "result", 0);
  write_number(out, "stack", place->stack);
  write_number(out, key, value);
  gcap_doctor_line_end(out);
}

void gcap_doctor_audit_tell_launch(gcap_doctor_thread_t* thread, const gcap_doctor_memory_place_t* place,
                                   uint32_t exec) {
  write_place(&thread->out, place, "exec", exec);
}

// --- Memory that is gone ---------------------------------------------------------------------------------------------

static const char* name_of_use(uint8_t use) {
  static const char* const names[] = {"argument", "word", "copy_from", "copy_to", "memset"};
  return names[use];
}

static void write_stale(gcap_doctor_line_t* out, const gcap_doctor_audit_stale_t* stale, uint32_t exec,
                        uint64_t launch) {
  const gcap_doctor_audit_word_t* word = &stale->word;
  gcap_doctor_line_begin(out, "stale");
  gcap_doctor_line_number(out, "call", launch);
  gcap_doctor_line_number(out, "exec", exec);
  gcap_doctor_line_hex(out, "node", stale->node.id);
  gcap_doctor_line_field(out, "use", name_of_use(word->use));
  if (stale->node.kernel != NULL) gcap_doctor_line_field(out, "kernel", stale->node.kernel);
  if (word->use <= GCAP_DOCTOR_AUDIT_WORD) gcap_doctor_line_number(out, "argument", word->argument);
  if (word->use == GCAP_DOCTOR_AUDIT_WORD) {
    gcap_doctor_line_number(out, "offset", word->offset);
    gcap_doctor_line_number(out, "size", word->bytes);
  }
  gcap_doctor_line_hex(out, "address", word->value);
  gcap_doctor_line_field(out, "what", gcap_doctor_memory_what_name((gcap_doctor_memory_what_t)stale->what));
  gcap_doctor_line_number(out, "bytes", stale->bytes);
  gcap_doctor_line_number(out, "pointers", stale->num_pointers);
  write_number(out, "made", stale->made.call);
  write_number(out, "freed", stale->freed.call);
  write_number(out, "taken", stale->taken.call);
  gcap_doctor_line_end(out);
}

static void say_stale(const gcap_doctor_audit_stale_t* stale, uint32_t exec) {
  const gcap_doctor_audit_word_t* word = &stale->word;
  char where[64], bytes[64] = "";
  if (word->use <= GCAP_DOCTOR_AUDIT_WORD) {
    snprintf(where, sizeof(where), "argument %u", (unsigned)word->argument);
  } else {
    snprintf(where, sizeof(where), "%s", name_of_use(word->use));
  }
  if (stale->bytes != 0) snprintf(bytes, sizeof(bytes), "%" PRIu64 " bytes of ", stale->bytes);
  gcap_doctor_writer_say("audit: the launch of executable %u uses memory that %s%s: %s of %s, node 0x%" PRIx64
                         ", is 0x%" PRIx64 ", in %s%s memory; the report has the places.",
                         (unsigned)exec, stale->bytes != 0 ? "was freed" : "is gone",
                         stale->taken.call != 0 ? " and handed out again" : "", where,
                         stale->node.kernel != NULL ? stale->node.kernel : "a node", stale->node.id, word->value, bytes,
                         gcap_doctor_memory_what_name((gcap_doctor_memory_what_t)stale->what));
}

void gcap_doctor_audit_tell_stale(gcap_doctor_thread_t* thread, const gcap_doctor_audit_stale_t* stale, uint32_t exec,
                                  uint64_t launch) {
  write_place(&thread->out, &stale->made, "bytes", stale->bytes);
  write_place(&thread->out, &stale->freed, "bytes", 0);
  write_place(&thread->out, &stale->taken, "bytes", stale->taken_bytes);
  write_stale(&thread->out, stale, exec, launch);
  say_stale(stale, exec);
}

// --- Executables -----------------------------------------------------------------------------------------------------

void gcap_doctor_audit_tell_shared(gcap_doctor_thread_t* thread, uint32_t other, uint32_t exec, uint64_t launch) {
  gcap_doctor_line_t* out = &thread->out;
  gcap_doctor_line_begin(out, "shared");
  gcap_doctor_line_number(out, "call", launch);
  gcap_doctor_line_number(out, "exec", exec);
  gcap_doctor_line_number(out, "thread", other);
  gcap_doctor_line_end(out);
  gcap_doctor_writer_say("audit: threads %u and %u launch executable %u at the same time.", (unsigned)other,
                         (unsigned)thread->id, (unsigned)exec);
}

void gcap_doctor_audit_tell_group(gcap_doctor_line_t* out, const gcap_doctor_audit_group_t* group) {
  gcap_doctor_line_begin(out, "execs");
  gcap_doctor_line_number(out, "call", group->last.call);
  gcap_doctor_line_number(out, "made", group->made);
  gcap_doctor_line_number(out, "live", group->live);
  gcap_doctor_line_number(out, "idle", group->idle);
  write_number(out, "nodes", group->nodes);
  write_number(out, "bytes", group->bytes);
  write_number(out, "memory", group->memory);
  gcap_doctor_line_end(out);
}
