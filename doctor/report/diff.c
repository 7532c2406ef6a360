// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// How two recordings differ.
//
// The idea: captures of the two are partners if they begin at one place and have one label, and findings if they are of
// one kind, rule and severity, at one place. What has no partner by its line gets one by file and function, since lines
// move as a program is edited and folders differ between machines. Several of one place are partners in their order.
// What depends on how long a program ran, counts of replays and of findings, is not compared; times are, where they
// change by more than a measurement varies. Locking: none.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/base/path.h"
#include "doctor/report/graph_view.h"
#include "doctor/report/json_text.h"
#include "doctor/report/names.h"
#include "doctor/report/report.h"

enum {
  kMaxLine = 400,     // characters; a name of a template is cut
  kMaxKernels = 20,   // of a capture
  kTimePercent = 10,  // a time that changes by more differs
  kSharePercent = 1,  // of a replay's time: what takes less is not compared
};

typedef struct side {
  const gcap_doctor_diagnosis_t* diagnosis;
  gcap_doctor_graph_views_t* views;
} side_t;

// A capture or a finding. Those of a side lie in the order of the diagnosis.
typedef struct item {
  const char *exact, *loose;  // what partners have in common
  struct item* partner;
} item_t;

typedef struct diff {
  FILE* out;
  gcap_doctor_heap_t heap;
  side_t a, b;
  const char* block;  // lines that wait for others that are the same
  uint64_t repeats;
  bool differs;
} diff_t;

// --- Lines -----------------------------------------------------------------------------------------------------------

static void write_block(diff_t* diff) {
  if (diff->block == NULL) return;
  const char* end = strchr(diff->block, '\n');
  gcap_doctor_utf8_write_clean(diff->out, gcap_doctor_heap_copy(&diff->heap, diff->block, (size_t)(end - diff->block)),
                               kMaxLine);
  if (diff->repeats > 1) fprintf(diff->out, " (%" PRIu64 " times)", diff->repeats);
  fputc('\n', diff->out);
  for (const char* line = end + 1; *line != '\0'; line = end + 1) {
    end = strchr(line, '\n');
    gcap_doctor_utf8_write_clean(diff->out, gcap_doctor_heap_copy(&diff->heap, line, (size_t)(end - line)), kMaxLine);
    fputc('\n', diff->out);
  }
  diff->block = NULL;
}

// A difference: lines that each end with a newline. The same one again is counted.
static void put_block(diff_t* diff, const char* block) {
  diff->differs = true;
  if (diff->block != NULL && strcmp(diff->block, block) == 0) {
    ++diff->repeats;
    return;
  }
  write_block(diff);
  diff->block = block;
  diff->repeats = 1;
}

// A program's text within a block, of which each newline ends a line.
static const char* flat(diff_t* diff, const char* text) {
  char* copy = gcap_doctor_heap_copy(&diff->heap, text, strlen(text));
  for (char* c = copy; *c != '\0'; ++c) {
    if (*c == '\n') *c = ' ';
  }
  return copy;
}

// --- Partners --------------------------------------------------------------------------------------------------------

// The place without its line, its folder and its address.
static const char* loose_place(diff_t* diff, const side_t* side, uint32_t frame) {
  if (frame == GCAP_DOCTOR_NONE) return "";
  const gcap_doctor_event_frame_t* of = &side->diagnosis->recording->frames[frame];
  return gcap_doctor_heap_print(&diff->heap, "%s in %s",
                                gcap_doctor_base_name(of->module != NULL ? of->module : of->file), of->function);
}

static const char* place_of(diff_t* diff, const side_t* side, uint32_t call) {
  const gcap_doctor_recording_t* recording = side->diagnosis->recording;
  return gcap_doctor_name_frame(&diff->heap, recording, gcap_doctor_name_place(recording, call));
}

// `with` is what partners have in common beside the place.
static item_t item_of(diff_t* diff, const side_t* side, uint32_t call, const char* with) {
  const uint32_t frame = gcap_doctor_name_place(side->diagnosis->recording, call);
  return (item_t){.exact = gcap_doctor_heap_print(&diff->heap, "%s\n%s", with, place_of(diff, side, call)),
                  .loose = gcap_doctor_heap_print(&diff->heap, "%s\n%s", with, loose_place(diff, side, frame))};
}

static item_t* captures_of(diff_t* diff, const side_t* side) {
  const gcap_doctor_diagnosis_t* diagnosis = side->diagnosis;
  item_t* items = gcap_doctor_heap_alloc(&diff->heap, (diagnosis->num_captures + 1) * sizeof(*items));
  for (size_t i = 0; i < diagnosis->num_captures; ++i) {
    const char* label = gcap_doctor_name_work(diagnosis->recording, &diagnosis->captures[i]);
    items[i] = item_of(diff, side, diagnosis->captures[i].begin, label != NULL ? label : "");
  }
  return items;
}

static const char* rule_of(const gcap_doctor_finding_t* finding) {
  return finding->rule != NULL ? finding->rule->id : "no rule";
}

static item_t* findings_of(diff_t* diff, const side_t* side) {
  const gcap_doctor_diagnosis_t* diagnosis = side->diagnosis;
  item_t* items = gcap_doctor_heap_alloc(&diff->heap, (diagnosis->num_findings + 1) * sizeof(*items));
  for (size_t i = 0; i < diagnosis->num_findings; ++i) {
    const gcap_doctor_finding_t* finding = &diagnosis->findings[i];
    items[i] = item_of(diff, side, finding->call,
                       gcap_doctor_heap_print(&diff->heap, "%s, %s, %s", gcap_doctor_finding_kind_name(finding->kind),
                                              rule_of(finding), gcap_doctor_name_severity(finding->severity)));
  }
  return items;
}

// The order of the items of one key is that of their places in their array.
static int in_order(const item_t* left, const item_t* right, int order) {
  if (order != 0) return order;
  return left < right ? -1 : left > right;
}

static int by_exact(const void* left, const void* right) {
  const item_t *a = *(const item_t*const*)left, *b = *(const item_t*const*)right;
  return in_order(a, b, strcmp(a->exact, b->exact));
}

static int by_loose(const void* left, const void* right) {
  const item_t *a = *(const item_t*const*)left, *b = *(const item_t*const*)right;
  return in_order(a, b, strcmp(a->loose, b->loose));
}

typedef int (*order_t)(const void* left, const void* right);

// Those without a partner, sorted.
static item_t** sort_single(diff_t* diff, item_t* items, size_t count, order_t order, size_t* out_count) {
  item_t** single = gcap_doctor_heap_alloc(&diff->heap, (count + 1) * sizeof(*single));
  *out_count = 0;
  for (size_t i = 0; i < count; ++i) {
    if (items[i].partner == NULL) single[(*out_count)++] = &items[i];
  }
  if (*out_count != 0) qsort(single, *out_count, sizeof(*single), order);
  return single;
}

static void match_by(diff_t* diff, item_t* a, size_t num_a, item_t* b, size_t num_b, order_t order) {
  size_t left_a, left_b;
  item_t** single_a = sort_single(diff, a, num_a, order, &left_a);
  item_t** single_b = sort_single(diff, b, num_b, order, &left_b);
  for (size_t i = 0, j = 0; i < left_a && j < left_b;) {
    const int compared = order == by_exact ? strcmp(single_a[i]->exact, single_b[j]->exact)
                                           : strcmp(single_a[i]->loose, single_b[j]->loose);
    if (compared == 0) {
      single_a[i]->partner = single_b[j];
      single_b[j]->partner = single_a[i];
    }
    i += compared <= 0;
    j += compared >= 0;
  }
}

static void match(diff_t* diff, item_t* a, size_t num_a, item_t* b, size_t num_b) {
  match_by(diff, a, num_a, b, num_b, by_exact);
  match_by(diff, a, num_a, b, num_b, by_loose);
}

// --- Captures --------------------------------------------------------------------------------------------------------

static const char* capture_name(diff_t* diff, const side_t* side, size_t index) {
  const gcap_doctor_captured_t* capture = &side->diagnosis->captures[index];
  const char* place = place_of(diff, side, capture->begin);
  const char* label = gcap_doctor_name_work(side->diagnosis->recording, capture);
  return flat(diff,
              gcap_doctor_heap_print(&diff->heap, "at %s%s%s%s", place[0] != '\0' ? place : "an unknown place",
                                     label != NULL ? " (" : "", label != NULL ? label : "", label != NULL ? ")" : ""));
}

static void add_words(diff_t* diff, const char** block, const char* what, const char* a, const char* b) {
  if (strcmp(a, b) == 0) return;
  *block = gcap_doctor_heap_print(&diff->heap, "%s  %s: %s, then %s\n", *block, flat(diff, what), a, b);
}

static void add_counts(diff_t* diff, const char** block, const char* what, uint64_t a, uint64_t b) {
  add_words(diff, block, what, gcap_doctor_heap_print(&diff->heap, "%" PRIu64, a),
            gcap_doctor_heap_print(&diff->heap, "%" PRIu64, b));
}

// Times of which one was not measured are not compared.
static void add_times(diff_t* diff, const char** block, const char* what, uint64_t a, uint64_t b) {
  const uint64_t change = a < b ? b - a : a - b;
  if (a == 0 || b == 0 || change <= a / 100 * kTimePercent + a % 100 * kTimePercent / 100) return;
  add_words(diff, block, what, gcap_doctor_name_ns(&diff->heap, a), gcap_doctor_name_ns(&diff->heap, b));
}

static const gcap_doctor_view_group_t* find_group(const gcap_doctor_graph_view_t* view, const char* name) {
  static const gcap_doctor_view_group_t kNone = {0};
  for (uint32_t i = 0; i < view->num_groups[GCAP_DOCTOR_BY_KERNEL]; ++i) {
    const gcap_doctor_view_group_t* group = &view->groups[GCAP_DOCTOR_BY_KERNEL][i];
    if (strcmp(group->name, name) == 0) return group;
  }
  return &kNone;
}

// How the nodes of a name differ; nothing if they do not.
static void add_kernel(diff_t* diff, const char** block, const char* name, const gcap_doctor_graph_view_t* view_a,
                       const gcap_doctor_graph_view_t* view_b) {
  const gcap_doctor_view_group_t *a = find_group(view_a, name), *b = find_group(view_b, name);
  add_counts(diff, block, gcap_doctor_heap_print(&diff->heap, "nodes of %s", name), a->count, b->count);
  if (a->count != b->count) return;
  if (a->ns <= view_a->ns / 100 * kSharePercent && b->ns <= view_b->ns / 100 * kSharePercent) return;
  add_times(diff, block, gcap_doctor_heap_print(&diff->heap, "time of %s", name), a->ns, b->ns);
}

static void add_kernels(diff_t* diff, const char** block, const gcap_doctor_graph_view_t* a,
                        const gcap_doctor_graph_view_t* b) {
  size_t shown = 0, more = 0;
  for (int second = 0; second < 2; ++second) {
    const gcap_doctor_graph_view_t* of = second ? b : a;
    for (uint32_t i = 0; i < of->num_groups[GCAP_DOCTOR_BY_KERNEL]; ++i) {
      const char* name = of->groups[GCAP_DOCTOR_BY_KERNEL][i].name;
      if (second && find_group(a, name)->count != 0) continue;
      const char* line = "";
      add_kernel(diff, &line, name, a, b);
      if (line[0] == '\0') continue;
      if (shown == kMaxKernels) {
        ++more;
      } else {
        *block = gcap_doctor_heap_print(&diff->heap, "%s%s", *block, line);
        ++shown;
      }
    }
  }
  if (more != 0) *block = gcap_doctor_heap_print(&diff->heap, "%s  and %zu more kernels\n", *block, more);
}

static void compare_captures(diff_t* diff, size_t index_a, size_t index_b) {
  const gcap_doctor_captured_t* a = &diff->a.diagnosis->captures[index_a];
  const gcap_doctor_captured_t* b = &diff->b.diagnosis->captures[index_b];
  const gcap_doctor_graph_view_t* view_a = gcap_doctor_graph_views_find(diff->a.views, a->graph);
  const gcap_doctor_graph_view_t* view_b = gcap_doctor_graph_views_find(diff->b.views, b->graph);
  const char* block = "";
  add_words(diff, &block, "outcome", gcap_doctor_name_outcome(a->outcome), gcap_doctor_name_outcome(b->outcome));
  if (a->outcome == b->outcome) {
    add_words(diff, &block, "result", gcap_doctor_name_result(&diff->heap, a->result),
              gcap_doctor_name_result(&diff->heap, b->result));
  }
  add_words(diff, &block, "mode", gcap_doctor_name_mode(a->mode), gcap_doctor_name_mode(b->mode));
  if (a->outcome == b->outcome) add_counts(diff, &block, "nodes", a->num_nodes, b->num_nodes);
  if (view_a != NULL && view_b != NULL) {
    add_counts(diff, &block, "edges", view_a->num_edges, view_b->num_edges);
    add_times(diff, &block, "device time of a replay", view_a->ns, view_b->ns);
    add_kernels(diff, &block, view_a, view_b);
  }
  if (block[0] == '\0') return;
  put_block(diff, gcap_doctor_heap_print(&diff->heap, "capture %s\n%s", capture_name(diff, &diff->b, index_b), block));
}

static void diff_captures(diff_t* diff) {
  const size_t num_a = diff->a.diagnosis->num_captures, num_b = diff->b.diagnosis->num_captures;
  item_t *a = captures_of(diff, &diff->a), *b = captures_of(diff, &diff->b);
  match(diff, a, num_a, b, num_b);
  for (size_t i = 0; i < num_a; ++i) {
    if (a[i].partner != NULL) {
      compare_captures(diff, i, (size_t)(a[i].partner - b));
    } else {
      put_block(diff, gcap_doctor_heap_print(&diff->heap, "capture only in the first: %s\n",
                                             capture_name(diff, &diff->a, i)));
    }
  }
  for (size_t i = 0; i < num_b; ++i) {
    if (b[i].partner != NULL) continue;
    put_block(diff,
              gcap_doctor_heap_print(&diff->heap, "capture only in the second: %s\n", capture_name(diff, &diff->b, i)));
  }
}

// --- Findings --------------------------------------------------------------------------------------------------------

static void put_findings(diff_t* diff, const side_t* side, const item_t* items, const char* where) {
  for (size_t i = 0; i < side->diagnosis->num_findings; ++i) {
    if (items[i].partner != NULL) continue;
    const gcap_doctor_finding_t* finding = &side->diagnosis->findings[i];
    const char* place = place_of(diff, side, finding->call);
    const char* text = gcap_doctor_heap_print(
        &diff->heap, "%s only in the %s: %s%s%s: %s", gcap_doctor_name_severity(finding->severity), where,
        gcap_doctor_finding_kind_name(finding->kind), place[0] != '\0' ? " at " : "", place, finding->sentence);
    put_block(diff, gcap_doctor_heap_print(&diff->heap, "%s\n", flat(diff, text)));
  }
}

static void diff_findings(diff_t* diff) {
  item_t *a = findings_of(diff, &diff->a), *b = findings_of(diff, &diff->b);
  match(diff, a, diff->a.diagnosis->num_findings, b, diff->b.diagnosis->num_findings);
  put_findings(diff, &diff->a, a, "first");
  put_findings(diff, &diff->b, b, "second");
}

bool gcap_doctor_report_diff(FILE* out, const gcap_doctor_diagnosis_t* a, const gcap_doctor_diagnosis_t* b) {
  diff_t diff = {.out = out};
  diff.a = (side_t){a, gcap_doctor_graph_views_create(a)};
  diff.b = (side_t){b, gcap_doctor_graph_views_create(b)};
  gcap_doctor_heap_init(&diff.heap);
  if (a->recording->ended != b->recording->ended) {
    put_block(&diff, a->recording->ended ? "the program ended in order only in the first\n"
                                         : "the program ended in order only in the second\n");
  }
  diff_captures(&diff);
  diff_findings(&diff);
  write_block(&diff);
  gcap_doctor_heap_deinit(&diff.heap);
  gcap_doctor_graph_views_destroy(diff.a.views);
  gcap_doctor_graph_views_destroy(diff.b.views);
  return diff.differs;
}
