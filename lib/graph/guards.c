// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Guards. The work of a captured run states decisions of the host; the list belongs to the run, and the scope of the
// capture leads to it. When the work has returned, the list becomes the guards of the graph: what is an integer, a
// pointer or a few bytes is flattened into words, which a replay compares without a call. An eager run keeps nothing; a
// count of such runs a thread tells a guard inside of one from a guard outside of any.
//
// Locking: a list is its run's, and so the thread's that issues the work. The guards of a graph do not change, but for
// the note of which one flipped last, which the manager's mutex guards. Functions are asked without the mutex, on
// guards that are retained meanwhile.

#include "lib/graph/guards.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gcap/capture.h"
#include "lib/capture/inner.h"
#include "lib/graph/inner.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/forked.h"
#include "lib/internal/grow.h"
#include "lib/internal/sized.h"
#include "lib/internal/unwind.h"

static const gcap_sized_type_t guard_type = GCAP_SIZED_TYPE(gcap_graph_guard);

static _Thread_local unsigned num_eager_runs;
static _Thread_local bool is_asking;
static _Thread_local const gcap_graph_work_call_t* innermost_work;

// Further away it is another stack.
#define MAX_WORK_BYTES ((size_t)1 << 20)

void gcap_graph_eager_run_begins(void) { ++num_eager_runs; }
void gcap_graph_eager_run_ends(void) { --num_eager_runs; }
bool gcap_graph_is_in_eager_run(void) { return num_eager_runs != 0; }

void gcap_graph_enter_work(gcap_graph_work_call_t* call) {
  call->outer = innermost_work;
  innermost_work = call;
}

void gcap_graph_leave_work(gcap_graph_work_call_t* call) { innermost_work = call->outer; }

const gcap_graph_work_call_t* gcap_graph_innermost_work(void) { return innermost_work; }

gcap_status_t gcap_graph_refuse_in_work(const gcap_graph_manager_t* manager) {
  const gcap_graph_work_call_t* call = innermost_work;
  while (call != NULL && call->manager != manager) call = call->outer;
  if (call == NULL) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "a run is begun by the work of another one of the same graph manager, which has not returned: "
                     "begin it before or behind that one, or give it a manager, or a runtime, of its own");
}

gcap_status_t gcap_graph_refuse_in_guard(const char* operation) {
  if (!is_asking) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "%s: called by the function of a guard, which begins, runs and replays nothing", operation);
}

// --- What is allowed ------------------------------------------------------------------------------------------------

static const char* name_of(const gcap_graph_guard_t* guard) { return guard->name != NULL ? guard->name : ""; }

#define TEXT_OF(number) #number
#define TEXT_OF_VALUE(macro) TEXT_OF(macro)

static gcap_status_t refuse_bytes(const gcap_graph_guard_t* guard, const char* allowed) {
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "guard '%s' looks at %zu bytes at %p, allowed are %s at an address",
                     name_of(guard), guard->bytes, guard->address, allowed);
}

static gcap_graph_word_t word_of(const gcap_graph_guard_t* guard) {
  static const gcap_graph_word_form_t forms[2][9] = {
      {[1] = GCAP_GRAPH_WORD_S8, [2] = GCAP_GRAPH_WORD_S16, [4] = GCAP_GRAPH_WORD_S32, [8] = GCAP_GRAPH_WORD_U64},
      {[1] = GCAP_GRAPH_WORD_U8, [2] = GCAP_GRAPH_WORD_U16, [4] = GCAP_GRAPH_WORD_U32, [8] = GCAP_GRAPH_WORD_U64},
  };
  return (gcap_graph_word_t){.address = guard->address,
                             .low = (uint64_t)guard->low,
                             .range = (uint64_t)guard->high - (uint64_t)guard->low,
                             .form = forms[guard->is_unsigned][guard->bytes]};
}

static gcap_status_t check_integer(const gcap_graph_guard_t* guard) {
  const bool is_size = guard->bytes == 1 || guard->bytes == 2 || guard->bytes == 4 || guard->bytes == 8;
  if (!is_size || guard->address == NULL) return refuse_bytes(guard, "1, 2, 4 or 8");
  if (guard->low > guard->high || (guard->is_unsigned && guard->low < 0)) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "guard '%s' has the bounds %" PRId64 " to %" PRId64
                       ", allowed are a low one that is not above "
                       "the high one%s",
                       name_of(guard), guard->low, guard->high, guard->is_unsigned ? ", nor below 0" : "");
  }
  const gcap_graph_word_t word = word_of(guard);
  const uint64_t now = gcap_graph_word_read(&word);
  if (now - word.low <= word.range) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "guard '%s' is %" PRId64 " when it is stated, and its bounds are %" PRId64 " to %" PRId64,
                     name_of(guard), (int64_t)now, guard->low, guard->high);
}

// A variable of the work, on the stack of its thread.
bool gcap_graph_is_on_stack_of_work(const void* variable) {
  const uintptr_t address = (uintptr_t)variable;
  const uintptr_t end = innermost_work != NULL ? (uintptr_t)innermost_work->frame : 0;
  const uintptr_t begin = (uintptr_t)__builtin_frame_address(0);
  return address >= begin && address < end && end - begin <= MAX_WORK_BYTES;
}

static gcap_status_t check_outlives_work(const gcap_graph_guard_t* guard) {
  if (!gcap_graph_is_on_stack_of_work(guard->address)) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "guard '%s' looks at %p, a variable of the work, which is gone when the work has returned: let it "
                     "look at memory that lives as long as the graph",
                     name_of(guard), guard->address);
}

static gcap_status_t check(const gcap_graph_guard_t* guard) {
  GCAP_RETURN_IF_ERROR(check_outlives_work(guard));
  switch (guard->kind) {
    case GCAP_GRAPH_GUARD_INTEGER: return check_integer(guard);
    case GCAP_GRAPH_GUARD_POINTER: return guard->address != NULL ? NULL : refuse_bytes(guard, "those of a pointer");
    case GCAP_GRAPH_GUARD_BYTES:
      return guard->address != NULL && guard->bytes > 0 && guard->bytes <= GCAP_GRAPH_GUARD_MAX_BYTES
                 ? NULL
                 : refuse_bytes(guard, "1 to " TEXT_OF_VALUE(GCAP_GRAPH_GUARD_MAX_BYTES));
    case GCAP_GRAPH_GUARD_ANSWER:
      if (guard->ask != NULL) return NULL;
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "guard '%s' is of the kind ANSWER and has no function: set ask",
                         name_of(guard));
  }
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "guard '%s' has kind %d, allowed are INTEGER (0), POINTER (1), BYTES (2), ANSWER (3)",
                     name_of(guard), (int)guard->kind);
}

// --- Stating --------------------------------------------------------------------------------------------------------

static void stated_deinit(gcap_graph_stated_t* stated) {
  free(stated->file);
  free(stated->bytes);
}

void gcap_graph_stated_free(gcap_graph_stated_list_t* list) {
  for (size_t i = 0; i < list->count; ++i) stated_deinit(&list->items[i]);
  free(list->items);
  gcap_status_ignore(gcap_graph_hole_list_free(&list->holes));  // of a capture that failed, which is what is told
  gcap_graph_tap_list_free(&list->taps);
  *list = (gcap_graph_stated_list_t){0};
}

static void end_asking(const bool* was_asking) { is_asking = *was_asking; }

static gcap_status_t call(const gcap_graph_guard_t* guard, int64_t* out_answer) {
  GCAP_AT_SCOPE_END(end_asking) const bool was_asking = is_asking;  // the function may not return
  is_asking = true;
  return guard->ask(guard->user, out_answer);
}

static gcap_status_t ask(const gcap_graph_guard_t* guard, int64_t* out_answer) {
  const bool was_capturing = gcap_thread_is_capturing();
  *out_answer = 0;
  gcap_status_t status = call(guard, out_answer);
  if (status != NULL || was_capturing || !gcap_thread_is_capturing()) return status;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the function left a capture open on its thread");
}

// In a replay the thread may have another device current than the run that stated the guard.
static gcap_status_t ask_on_device(const gcap_graph_stated_t* stated, int64_t* out_answer) {
  *out_answer = 0;
  GCAP_AT_SCOPE_END(gcap_device_give_back_on_unwind) gcap_lent_device_t lent = {.id = -1};
  GCAP_RETURN_IF_ERROR(gcap_device_lend(stated->device_id, &lent));
  gcap_status_t status = ask(&stated->guard, out_answer);
  return gcap_status_join(status, gcap_device_give_back(&lent));
}

static gcap_status_t see_answer(gcap_graph_stated_t* stated) {
  const cudaError_t error = cudaGetDevice(&stated->device_id);  // no GCAP_CUDA: it is no call of the work
  if (error != cudaSuccess) {
    return gcap_status_from_cuda(error, "cudaGetDevice(&stated->device_id)", __FILE__, __LINE__);
  }
  return ask(&stated->guard, &stated->seen);
}

// Reads the value of now.
static gcap_status_t see(gcap_graph_stated_t* stated) {
  const gcap_graph_guard_t* guard = &stated->guard;
  void* pointer = NULL;
  gcap_graph_word_t word;
  switch (guard->kind) {
    case GCAP_GRAPH_GUARD_INTEGER:
      word = word_of(guard);
      stated->seen = (int64_t)gcap_graph_word_read(&word);
      return NULL;
    case GCAP_GRAPH_GUARD_POINTER:
      memcpy(&pointer, guard->address, sizeof(pointer));
      stated->seen = (int64_t)(uintptr_t)pointer;
      return NULL;
    case GCAP_GRAPH_GUARD_BYTES:
      stated->bytes = malloc(guard->bytes);
      if (stated->bytes == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a guard");
      memcpy(stated->bytes, guard->address, guard->bytes);
      return NULL;
    case GCAP_GRAPH_GUARD_ANSWER: return see_answer(stated);
  }
  return NULL;
}

static bool is_same_guard(const gcap_graph_stated_t* a, const gcap_graph_stated_t* b) {
  const gcap_graph_guard_t *x = &a->guard, *y = &b->guard;
  return x->kind == y->kind && x->is_unsigned == y->is_unsigned && x->address == y->address && x->bytes == y->bytes &&
         x->low == y->low && x->high == y->high && x->ask == y->ask && x->user == y->user;
}

// Of the same guard. An integer is for all values within its bounds.
static bool is_same_value(const gcap_graph_stated_t* a, const gcap_graph_stated_t* b) {
  if (a->guard.kind == GCAP_GRAPH_GUARD_INTEGER) return true;
  if (a->guard.kind == GCAP_GRAPH_GUARD_BYTES) return memcmp(a->bytes, b->bytes, a->guard.bytes) == 0;
  return a->seen == b->seen;
}

static const gcap_graph_stated_t* find_same(const gcap_graph_stated_list_t* list, const gcap_graph_stated_t* stated) {
  for (size_t i = 0; i < list->count; ++i) {
    if (is_same_guard(&list->items[i], stated) && is_same_value(&list->items[i], stated)) return &list->items[i];
  }
  return NULL;
}

static gcap_status_t keep(gcap_graph_stated_list_t* list, const gcap_graph_guard_t* guard, const char* file, int line) {
  gcap_graph_stated_t stated = {.guard = *guard, .line = line};
  stated.guard.name = NULL;
  snprintf(stated.name, sizeof(stated.name), "%s", name_of(guard));
  gcap_status_t status = see(&stated);
  if (status == NULL && find_same(list, &stated) != NULL) {
    stated_deinit(&stated);
    return NULL;
  }
  const size_t file_bytes = strlen(file) + 1;
  if (status == NULL) stated.file = malloc(file_bytes);
  if (status == NULL &&
      (stated.file == NULL || !gcap_grow(&list->items, &list->room, list->count + 1, sizeof(*list->items)))) {
    status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a guard");
  }
  if (status != NULL) {
    stated_deinit(&stated);
    return gcap_status_annotate(status, gcap_status_code(status), "guard '%s' (%s:%d)", stated.name, file, line);
  }
  memcpy(stated.file, file, file_bytes);
  list->items[list->count++] = stated;
  return NULL;
}

static gcap_status_t state(const gcap_graph_guard_t* guard, const char* file, int line, gcap_capture_t* capture) {
  GCAP_RETURN_IF_NULL(guard);
  gcap_graph_guard_t known;
  gcap_graph_guard_init(&known);
  GCAP_RETURN_IF_ERROR(gcap_sized_read(&guard_type, guard, &known));
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_guard("gcap_graph_guard_state"));
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_hole("gcap_graph_guard_state"));
  GCAP_RETURN_IF_ERROR(check(&known));
  if (file == NULL) file = "";
  gcap_graph_stated_list_t* list = capture != NULL ? gcap_capture_owner(capture) : NULL;
  if (list != NULL) return keep(list, &known, file, line);
  if (capture == NULL && num_eager_runs > 0) return NULL;
  return GCAP_STATUS(
      GCAP_FAILED_PRECONDITION, "guard '%s' (%s:%d) is stated %s", name_of(&known), file, line,
      capture != NULL ? "in a capture that is no run of a graph manager" : "outside of the runs of a graph manager");
}

gcap_status_t gcap_graph_guard_state(const gcap_graph_guard_t* guard, const char* file, int line) {
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_capture_t* capture = gcap_capture_current();
  gcap_status_t status = state(guard, file, line, capture);
  if (status != NULL && capture != NULL && gcap_capture_owner(capture) != NULL) gcap_capture_fail_once(capture, status);
  return status;
}

gcap_status_t gcap_graph_stated_compare(const gcap_graph_stated_list_t* a, const gcap_graph_stated_list_t* b) {
  const gcap_graph_stated_list_t* lists[2] = {a, b};
  for (int side = 0; side < 2; ++side) {
    for (size_t i = 0; i < lists[side]->count; ++i) {
      const gcap_graph_stated_t* stated = &lists[side]->items[i];
      if (find_same(lists[1 - side], stated) != NULL) continue;
      return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                         "guard '%s' (%s:%d) is stated in one capture of the run, and not, or with another value, in "
                         "the other: nobody knows for which decisions the graph would be",
                         stated->name, stated->file, stated->line);
    }
  }
  GCAP_RETURN_IF_ERROR(gcap_graph_hole_list_compare(&a->holes, &b->holes));
  return gcap_graph_tap_list_compare(&a->taps, &b->taps);
}

// --- The guards of a graph ------------------------------------------------------------------------------------------

// Whether the guard is an integer or a pointer, which a word holds.
static bool is_word(const gcap_graph_stated_t* stated, gcap_graph_word_t* out_word) {
  const gcap_graph_guard_t* guard = &stated->guard;
  *out_word = (gcap_graph_word_t){.address = guard->address, .form = GCAP_GRAPH_WORD_U64};
  if (guard->kind == GCAP_GRAPH_GUARD_ANSWER || guard->kind == GCAP_GRAPH_GUARD_BYTES) return false;
  if (guard->kind == GCAP_GRAPH_GUARD_INTEGER) *out_word = word_of(guard);
  if (guard->kind == GCAP_GRAPH_GUARD_POINTER) out_word->low = (uint64_t)stated->seen;
  return true;
}

// Words first, then bytes, then functions.
static int rank_of(const gcap_graph_stated_t* stated) {
  if (stated->guard.kind == GCAP_GRAPH_GUARD_ANSWER) return 2;
  return stated->guard.kind == GCAP_GRAPH_GUARD_BYTES ? 1 : 0;
}

static int by_rank(const void* a, const void* b) { return rank_of(a) - rank_of(b); }

static void release(gcap_graph_guards_t** guards) { gcap_graph_guards_release(*guards); }

gcap_status_t gcap_graph_guards_create(gcap_graph_stated_list_t* list, gcap_graph_guards_t** out_guards) {
  *out_guards = NULL;
  if (list->count == 0) return NULL;
  GCAP_AT_SCOPE_END(release)
  gcap_graph_guards_t* guards = calloc(1, sizeof(*guards) + list->count * sizeof(guards->words[0]));
  if (guards == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu guards", list->count);
  atomic_init(&guards->refs, 1);
  qsort(list->items, list->count, sizeof(*list->items), by_rank);
  const gcap_graph_hole_list_t holes = list->holes;
  list->holes = (gcap_graph_hole_list_t){0};
  guards->stated = *list;
  *list = (gcap_graph_stated_list_t){.holes = holes};
  for (size_t i = 0; i < guards->stated.count; ++i) {
    const gcap_graph_stated_t* stated = &guards->stated.items[i];
    if (is_word(stated, &guards->words[i])) ++guards->num_words;
    if (stated->guard.kind == GCAP_GRAPH_GUARD_ANSWER) ++guards->num_asks;
  }
  gcap_graph_asked_t asked;
  gcap_graph_guards_ask(guards, &asked);
  gcap_graph_guards_note(guards, &asked);
  if (asked.flipped == 0) gcap_graph_guards_look(guards);  // behind the functions, which may change what is looked at
  gcap_status_t changed = gcap_graph_guards_explain(guards, GCAP_GRAPH_ID_NONE);
  if (changed == NULL) {
    *out_guards = guards;
    guards = NULL;
    return NULL;
  }
  return gcap_status_annotate(changed, gcap_status_code(changed), "a decision changed while it was captured");
}

void gcap_graph_guards_retain(gcap_graph_guards_t* guards) {
  atomic_fetch_add_explicit(&guards->refs, 1, memory_order_relaxed);
}

void gcap_graph_guards_release(gcap_graph_guards_t* guards) {
  if (guards == NULL || atomic_fetch_sub_explicit(&guards->refs, 1, memory_order_acq_rel) != 1) return;
  gcap_graph_stated_free(&guards->stated);
  gcap_status_free(guards->failure);
  free(guards);
}

// --- Looking --------------------------------------------------------------------------------------------------------

// The offset of the first byte that differs; the number of bytes if none does.
static size_t first_difference(const unsigned char* a, const unsigned char* b, size_t bytes) {
  size_t at = 0;
  while (at < bytes && a[at] == b[at]) ++at;
  return at;
}

bool gcap_graph_guards_look_slowly(gcap_graph_guards_t* guards) {
  gcap_graph_asked_t asked = {0};
  const size_t end = guards->stated.count - guards->num_asks;
  for (size_t i = 0; asked.flipped == 0 && i < end; ++i) {
    const gcap_graph_stated_t* stated = &guards->stated.items[i];
    if (i < guards->num_words) {
      asked.now = (int64_t)gcap_graph_word_read(&guards->words[i]);
      if ((uint64_t)asked.now - guards->words[i].low > guards->words[i].range) asked.flipped = i + 1;
    } else if (memcmp(stated->bytes, stated->guard.address, stated->guard.bytes) != 0) {
      const unsigned char* bytes = stated->guard.address;
      const size_t at = first_difference(stated->bytes, bytes, stated->guard.bytes);
      asked.now = (int64_t)at;
      asked.byte = bytes[at];
      asked.flipped = i + 1;
    }
  }
  gcap_graph_guards_note(guards, &asked);
  return asked.flipped == 0;
}

void gcap_graph_guards_ask(const gcap_graph_guards_t* guards, gcap_graph_asked_t* out_asked) {
  *out_asked = (gcap_graph_asked_t){0};
  for (size_t i = guards->stated.count - guards->num_asks; i < guards->stated.count; ++i) {
    const gcap_graph_stated_t* stated = &guards->stated.items[i];
    out_asked->failure = ask_on_device(stated, &out_asked->now);
    if (out_asked->failure == NULL && out_asked->now == stated->seen) continue;
    out_asked->flipped = i + 1;
    return;
  }
}

void gcap_graph_guards_note(gcap_graph_guards_t* guards, const gcap_graph_asked_t* asked) {
  guards->flipped = asked->flipped;
  guards->now = asked->now;
  guards->byte = asked->byte;
  gcap_status_free(guards->failure);
  guards->failure = asked->failure;
}

// --- Saying ---------------------------------------------------------------------------------------------------------

static void write_values(const gcap_graph_guards_t* guards, const gcap_graph_stated_t* stated, char* text,
                         size_t capacity) {
  const gcap_graph_guard_t* guard = &stated->guard;
  const int64_t now = guards->now;
  switch (guard->kind) {
    case GCAP_GRAPH_GUARD_INTEGER:
      snprintf(text, capacity, "is %" PRId64 ", was %" PRId64 ", and the graph is for %" PRId64 " to %" PRId64, now,
               stated->seen, guard->low, guard->high);
      return;
    case GCAP_GRAPH_GUARD_POINTER:
      snprintf(text, capacity, "is %p, and was %p", (void*)(uintptr_t)now, (void*)(uintptr_t)stated->seen);
      return;
    case GCAP_GRAPH_GUARD_BYTES:
      snprintf(text, capacity, "differs at byte %" PRId64 " of %zu: is %d, and was %d", now, guard->bytes, guards->byte,
               stated->bytes[now]);
      return;
    case GCAP_GRAPH_GUARD_ANSWER:
      snprintf(text, capacity, "answers %" PRId64 ", and answered %" PRId64, now, stated->seen);
      return;
  }
}

gcap_status_t gcap_graph_guards_explain(const gcap_graph_guards_t* guards, int id) {
  if (guards == NULL || guards->flipped == 0) return NULL;
  char whose[32] = "a capture";
  if (id != GCAP_GRAPH_ID_NONE) snprintf(whose, sizeof(whose), "graph id %d", id);
  const gcap_graph_stated_t* stated = &guards->stated.items[guards->flipped - 1];
  if (guards->failure != NULL) {
    return gcap_status_annotate(gcap_status_clone(guards->failure), gcap_status_code(guards->failure),
                                "%s: guard '%s' (%s:%d) gave no answer", whose, stated->name, stated->file,
                                stated->line);
  }
  char values[192];
  write_values(guards, stated, values, sizeof(values));
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: guard '%s' (%s:%d) %s", whose, stated->name, stated->file,
                     stated->line, values);
}
