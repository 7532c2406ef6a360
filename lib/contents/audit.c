// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Notes and audits. A note is one pointer of the graph with the memory behind it as that was; an audit looks again. The
// pointers of a buffer that moves are noted anew whenever a run names the buffer at another address, or at the same
// address, where it may be other memory by then: the run says whose it is.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/contents/compare.h"
#include "lib/contents/contents.h"
#include "lib/contents/inner.h"
#include "lib/contents/memory.h"
#include "lib/contents/relocation.h"
#include "lib/contents/words.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/grow.h"

#define WORD sizeof(uintptr_t)
#define NO_BUFFER ((size_t)-1)
#define MEMORY_CHARS 320

typedef struct note {
  size_t node, part, offset;  // the offset from the node's first byte
  size_t buffer;              // that moves; NO_BUFFER: of none
  uintptr_t address;
  gcap_graph_owner_t owner;
  char name[48];
  gcap_memory_t memory;
  bool is_named;  // each run names its memory
  bool is_bad;    // it was nobody's memory from the start
} note_t;

struct gcap_graph_notes {
  const gcap_contents_t* contents;
  gcap_contents_t own_contents;  // of notes that were made of a graph
  gcap_block_finder_t finder;
  note_t* items;
  size_t count, room;
};

const char* gcap_graph_owner_name(gcap_graph_owner_t owner) {
  switch (owner) {
    case GCAP_GRAPH_OWNER_UNKNOWN: return "UNKNOWN";
    case GCAP_GRAPH_OWNER_BUFFER: return "BUFFER";
    case GCAP_GRAPH_OWNER_RETAINED: return "RETAINED";
    case GCAP_GRAPH_OWNER_GRAPH: return "GRAPH";
    case GCAP_GRAPH_OWNER_RESERVATION: return "RESERVATION";
    case GCAP_GRAPH_OWNER_SCRATCH: return "SCRATCH";
    case GCAP_GRAPH_OWNER_ALLOCATOR: return "ALLOCATOR";
    case GCAP_GRAPH_OWNER_FOREIGN: return "FOREIGN";
  }
  return "INVALID";
}

// --- Owners ---------------------------------------------------------------------------------------------------------

static const gcap_owned_t* find_owned(const gcap_audit_subject_t* subject, uintptr_t address) {
  for (size_t i = 0; i < subject->num_owned; ++i) {
    if (address - subject->owned[i].start < subject->owned[i].bytes) return &subject->owned[i];
  }
  return NULL;
}

static gcap_graph_owner_t owner_of(const gcap_memory_t* memory) {
  if (memory->has_claim) {
    return memory->claim.keeper != 0 ? GCAP_GRAPH_OWNER_RESERVATION : GCAP_GRAPH_OWNER_SCRATCH;
  }
  if (memory->has_block) return GCAP_GRAPH_OWNER_ALLOCATOR;
  return memory->type == 0 ? GCAP_GRAPH_OWNER_UNKNOWN : GCAP_GRAPH_OWNER_FOREIGN;
}

// Memory that the driver does not know is good only if somebody keeps it.
static bool is_bad(const note_t* note) {
  const bool is_kept = note->owner == GCAP_GRAPH_OWNER_BUFFER || note->owner == GCAP_GRAPH_OWNER_RETAINED;
  if (note->owner == GCAP_GRAPH_OWNER_GRAPH || (is_kept && note->memory.type == 0)) return false;
  return gcap_memory_is_nobodys(&note->memory);
}

// --- Notes ----------------------------------------------------------------------------------------------------------

static gcap_status_t add_note(gcap_graph_notes_t* notes, const note_t* note) {
  const size_t count = notes->count + 1;
  if (!gcap_grow(&notes->items, &notes->room, count, sizeof(*note))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the notes of %zu pointers", count);
  }
  notes->items[notes->count++] = *note;
  return NULL;
}

static int compare_places(const void* a, const void* b) {
  const gcap_relocation_word_t *x = a, *y = b;
  if (x->node != y->node) return x->node < y->node ? -1 : 1;
  return x->offset < y->offset ? -1 : x->offset > y->offset;
}

// The buffer that the word moves with.
static size_t buffer_of(const gcap_relocation_t* relocation, size_t node, size_t offset) {
  const gcap_relocation_word_t place = {.node = node, .offset = offset};
  for (size_t i = 0; relocation != NULL && i < relocation->num_buffers; ++i) {
    const size_t first = relocation->first_word[i], count = relocation->first_word[i + 1] - first;
    if (count == 0) continue;
    if (bsearch(&place, relocation->words + first, count, sizeof(place), compare_places) != NULL) return i;
  }
  return NO_BUFFER;
}

// Says whose the memory is. That of the graph's own nodes is not looked at: it comes and goes with the launches.
static gcap_status_t identify(const gcap_audit_subject_t* subject, note_t* note) {
  const gcap_owned_t* owned = find_owned(subject, note->address);
  note->is_named = note->buffer != NO_BUFFER || (owned != NULL && owned->is_named);
  if (note->buffer != NO_BUFFER) {
    note->owner = GCAP_GRAPH_OWNER_BUFFER;
    snprintf(note->name, sizeof(note->name), "%s", subject->relocation->buffers[note->buffer].name);
  } else if (owned != NULL) {
    note->owner = owned->owner;
    snprintf(note->name, sizeof(note->name), "%s", owned->name);
  }
  if (note->owner == GCAP_GRAPH_OWNER_GRAPH) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_memory_look(&subject->finder, note->address, /*watch=*/true, &note->memory));
  if (note->owner == GCAP_GRAPH_OWNER_UNKNOWN) note->owner = owner_of(&note->memory);
  if (note->owner != GCAP_GRAPH_OWNER_FOREIGN) return NULL;
  const gcap_owned_t* whole = find_owned(subject, note->memory.start);
  if (whole != NULL && whole->owner == GCAP_GRAPH_OWNER_RETAINED) note->owner = whole->owner;
  return NULL;
}

// The notes of one node.
typedef struct noting {
  gcap_graph_notes_t* notes;
  const gcap_audit_subject_t* subject;
  size_t node;
} noting_t;

// Notes the word, unless it points nowhere. A kernel's word that points nowhere is a number.
static gcap_status_t note_word(void* user, const gcap_contents_word_t* word) {
  const noting_t* noting = user;
  note_t note = {.node = noting->node, .part = word->part, .offset = word->offset, .address = word->address};
  note.buffer = buffer_of(noting->subject->relocation, note.node, note.offset);
  GCAP_RETURN_IF_ERROR(identify(noting->subject, &note));
  if (!word->is_pointer && note.owner == GCAP_GRAPH_OWNER_UNKNOWN) return NULL;
  note.is_bad = is_bad(&note);
  return add_note(noting->notes, &note);
}

static gcap_status_t note_node(gcap_graph_notes_t* notes, const gcap_audit_subject_t* subject, size_t index) {
  noting_t noting = {notes, subject, index};
  return gcap_contents_each_word(subject->contents, index, note_word, &noting);
}

// Appends the memory of the graph's own allocation nodes to what is owned.
static gcap_status_t add_allocations(const gcap_contents_t* contents, gcap_owned_t* owned, size_t* count) {
  for (size_t i = 0; i < contents->count; ++i) {
    if (contents->nodes[i].type != cudaGraphNodeTypeMemAlloc) continue;
    struct cudaMemAllocNodeParams params;
    memset(&params, 0, sizeof(params));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphMemAllocNodeGetParams(contents->nodes[i].node, &params)));
    owned[(*count)++] = (gcap_owned_t){
        .owner = GCAP_GRAPH_OWNER_GRAPH, .name = "", .start = (uintptr_t)params.dptr, .bytes = params.bytesize};
  }
  return NULL;
}

static gcap_status_t note_all(gcap_graph_notes_t* notes, const gcap_audit_subject_t* given) {
  gcap_audit_subject_t subject = *given;
  gcap_owned_t* owned = calloc(given->num_owned + given->contents->count + 1, sizeof(*owned));
  if (owned == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the notes of a graph");
  if (given->num_owned != 0) memcpy(owned, given->owned, given->num_owned * sizeof(*owned));
  subject.owned = owned;
  gcap_status_t status = add_allocations(given->contents, owned, &subject.num_owned);
  for (size_t i = 0; status == NULL && i < given->contents->count; ++i) status = note_node(notes, &subject, i);
  free(owned);
  return status;
}

gcap_status_t gcap_notes_make(const gcap_audit_subject_t* subject, gcap_graph_notes_t** out_notes) {
  *out_notes = NULL;
  gcap_graph_notes_t* notes = calloc(1, sizeof(*notes));
  if (notes == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the notes of a graph");
  notes->contents = subject->contents;
  notes->finder = subject->finder;
  gcap_status_t status = note_all(notes, subject);
  if (status == NULL) {
    *out_notes = notes;
  } else {
    gcap_graph_notes_destroy(notes);
  }
  return status;
}

gcap_status_t gcap_notes_follow(gcap_graph_notes_t* notes, const gcap_relocation_t* relocation) {
  const gcap_audit_subject_t subject = {.contents = notes->contents, .finder = notes->finder, .relocation = relocation};
  for (size_t i = 0; i < notes->count; ++i) {
    note_t note = notes->items[i];
    if (note.buffer == NO_BUFFER) continue;
    memcpy(&note.address, gcap_contents_bytes_of(notes->contents, &notes->contents->nodes[note.node]) + note.offset,
           WORD);
    if (note.address == notes->items[i].address) continue;
    GCAP_RETURN_IF_ERROR(identify(&subject, &note));
    note.is_bad = is_bad(&note);
    notes->items[i] = note;
  }
  return NULL;
}

// Notes the memory of a run's buffer anew, if it is other memory.
static gcap_status_t note_named(const gcap_graph_notes_t* notes, note_t* note, bool* out_is_other) {
  gcap_memory_t now;
  GCAP_RETURN_IF_ERROR(gcap_memory_look(&notes->finder, note->address, /*watch=*/false, &now));
  *out_is_other = !gcap_memory_is_same(&note->memory, &now);
  if (!*out_is_other) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_memory_look(&notes->finder, note->address, /*watch=*/true, &note->memory));
  note->is_bad = is_bad(note);
  return NULL;
}

// One pointer tells for all of a buffer that moves, of which the first ones have a bit each.
gcap_status_t gcap_notes_name(gcap_graph_notes_t* notes) {
  uint64_t same = 0;
  for (size_t i = 0; i < notes->count; ++i) {
    note_t* note = &notes->items[i];
    const uint64_t bit = note->buffer < 64 ? UINT64_C(1) << note->buffer : 0;
    if (!note->is_named || (same & bit) != 0) continue;
    bool is_other = false;
    GCAP_RETURN_IF_ERROR(note_named(notes, note, &is_other));
    if (!is_other) same |= bit;
  }
  return NULL;
}

void gcap_graph_notes_destroy(gcap_graph_notes_t* notes) {
  if (notes == NULL) return;
  gcap_contents_free(&notes->own_contents);
  free(notes->items);
  free(notes);
}

// --- Audits ---------------------------------------------------------------------------------------------------------

// Looks at the memory of a note again, and tells whether that is a finding.
static gcap_status_t look_again(const gcap_graph_notes_t* notes, const note_t* note, gcap_memory_t* out_now,
                                bool* out_finding) {
  *out_now = note->memory;
  *out_finding = note->is_bad;
  if (note->owner == GCAP_GRAPH_OWNER_GRAPH) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_memory_look(&notes->finder, note->address, /*watch=*/false, out_now));
  *out_finding = note->is_bad || !gcap_memory_is_same(&note->memory, out_now);
  return NULL;
}

// A pointer with its texts.
typedef struct told {
  gcap_graph_pointer_t pointer;
  char node[256], place[64], memory[MEMORY_CHARS + 64], now[MEMORY_CHARS + 64];
} told_t;

static void write_memory(const note_t* note, char* text, size_t capacity) {
  char memory[MEMORY_CHARS] = "memory of an allocation node";
  if (note->owner != GCAP_GRAPH_OWNER_GRAPH) gcap_memory_write(&note->memory, memory, sizeof(memory));
  snprintf(text, capacity, "%s%s%s", note->name, note->name[0] != '\0' ? ": " : "", memory);
}

// What is there now, and how that differs from what was.
static void write_now(const note_t* note, const gcap_memory_t* now, char* text, size_t capacity) {
  char memory[MEMORY_CHARS];
  gcap_memory_write(now, memory, sizeof(memory));
  const char* change = gcap_memory_name_change(&note->memory, now);
  snprintf(text, capacity, "%s%s%s%s", memory, change[0] != '\0' ? " (" : "", change, change[0] != '\0' ? ")" : "");
}

static void write_pointer(const gcap_graph_notes_t* notes, const note_t* note, bool is_finding,
                          const gcap_memory_t* now, told_t* out_told) {
  const gcap_contents_node_t* node = &notes->contents->nodes[note->node];
  const size_t in_part = note->offset - gcap_contents_parts_of(notes->contents, node)[note->part].offset;
  gcap_contents_write_node(notes->contents, node, out_told->node, sizeof(out_told->node));
  gcap_contents_write_place(notes->contents, node, note->part, in_part, out_told->place, sizeof(out_told->place));
  write_memory(note, out_told->memory, sizeof(out_told->memory));
  write_now(note, now, out_told->now, sizeof(out_told->now));
  out_told->pointer = (gcap_graph_pointer_t){.struct_size = sizeof(gcap_graph_pointer_t),
                                             .node = note->node,
                                             .node_text = out_told->node,
                                             .place = out_told->place,
                                             .address = (const void*)note->address,
                                             .owner = note->owner,
                                             .memory = out_told->memory,
                                             .is_finding = is_finding,
                                             .now = is_finding ? out_told->now : NULL};
}

gcap_status_t gcap_graph_audit(const gcap_graph_notes_t* notes, gcap_graph_pointer_fn on_pointer, void* user,
                               size_t* out_findings) {
  if (out_findings != NULL) *out_findings = 0;
  GCAP_RETURN_IF_NULL(notes);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  size_t findings = 0;
  for (size_t i = 0; i < notes->count; ++i) {
    gcap_memory_t now;
    bool is_finding = false;
    GCAP_RETURN_IF_ERROR(look_again(notes, &notes->items[i], &now, &is_finding));
    findings += is_finding;
    if (on_pointer == NULL) continue;
    told_t told;
    write_pointer(notes, &notes->items[i], is_finding, &now, &told);
    on_pointer(user, &told.pointer);
  }
  if (out_findings != NULL) *out_findings = findings;
  return NULL;
}

// Why the graph must not be launched, by its first finding.
static gcap_status_t refuse(const gcap_graph_notes_t* notes, size_t findings, const told_t* first) {
  const gcap_graph_pointer_t* pointer = &first->pointer;
  if (pointer->owner == GCAP_GRAPH_OWNER_UNKNOWN) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "the memory behind %zu of the graph's %zu pointers is not the graph's: %s: %s %p is in %s: use "
                       "pinned memory, or retain it with gcap_capture_retain",
                       findings, notes->count, pointer->node_text, pointer->place, pointer->address, pointer->memory);
  }
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "the memory behind %zu of the graph's %zu pointers is not the graph's: %s: %s %p was captured in "
                     "%s, where now is %s",
                     findings, notes->count, pointer->node_text, pointer->place, pointer->address, pointer->memory,
                     pointer->now);
}

gcap_status_t gcap_notes_check(const gcap_graph_notes_t* notes) {
  size_t findings = 0;
  told_t first;
  for (size_t i = 0; i < notes->count; ++i) {
    gcap_memory_t now;
    bool is_finding = false;
    GCAP_RETURN_IF_ERROR(look_again(notes, &notes->items[i], &now, &is_finding));
    if (is_finding && findings++ == 0) write_pointer(notes, &notes->items[i], true, &now, &first);
  }
  return findings == 0 ? NULL : refuse(notes, findings, &first);
}

gcap_status_t gcap_graph_notes_create(cudaGraph_t graph, gcap_graph_find_block_fn find_block, void* user,
                                      gcap_graph_notes_t** out_notes) {
  GCAP_RETURN_IF_NULL(out_notes);
  *out_notes = NULL;
  GCAP_RETURN_IF_NULL(graph);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_contents_t contents;
  GCAP_RETURN_IF_ERROR(gcap_contents_read(graph, /*with_arguments=*/true, &contents));
  const gcap_audit_subject_t subject = {.contents = &contents, .finder = {find_block, user}};
  gcap_status_t status = gcap_notes_make(&subject, out_notes);
  if (status != NULL) {
    gcap_contents_free(&contents);
    return status;
  }
  (*out_notes)->own_contents = contents;
  (*out_notes)->contents = &(*out_notes)->own_contents;
  return NULL;
}
