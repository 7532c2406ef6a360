// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The cause of a difference. At a step it is looked for in this order: a call that the graph's capture did not make, or
// made and the work does not; a hole; a call without a node that does change memory; a node that has another argument
// than in a fresh capture, or one that leads to memory that is not what it was; two nodes without an order. What is
// only likely comes last, and when the places before were tried: the first use of memory that nobody named.
//
// Locking: none, but for the audit, which locks.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gcap/graph_info.h"
#include "lib/graph/bisection.h"
#include "lib/graph/manager.h"
#include "lib/internal/unwind.h"

// --- Nodes of steps -------------------------------------------------------------------------------------------------

// Nodes of contents, those of child graphs too.
typedef struct node_range {
  size_t begin, end;
} node_range_t;

static node_range_t nodes_of(const gcap_contents_t* contents, const gcap_capture_step_t* step) {
  return (node_range_t){gcap_contents_index_of_top(contents, step->segment, step->first_node),
                        gcap_contents_index_of_top(contents, step->segment, step->first_node + step->num_nodes)};
}

// The graph's step that made the node; GCAP_BISECT_NONE.
static size_t step_of_node(const gcap_bisection_t* b, size_t node) {
  for (size_t i = 0; i < b->steps.captured.count; ++i) {
    const node_range_t range = nodes_of(&b->now, &b->steps.captured.items[i]);
    if (node >= range.begin && node < range.end) return i;
  }
  return GCAP_BISECT_NONE;
}

// The step of the work that is the graph's step; GCAP_BISECT_NONE: the work does not make it now.
static size_t eager_of(const gcap_bisection_t* b, size_t captured) {
  for (size_t i = 0; i < b->steps.eager.count; ++i) {
    if (b->steps.in_graph[i] == captured) return i;
  }
  return GCAP_BISECT_NONE;
}

// --- In words -------------------------------------------------------------------------------------------------------

static void write_node(const gcap_bisection_t* b, size_t node, gcap_text_t* text) {
  char name[256];
  gcap_contents_write_node(&b->now, &b->now.nodes[node], name, sizeof(name));
  gcap_text_add(text, "%s", name);
}

static void begin_text(gcap_bisect_cause_t* cause, gcap_graph_fault_t fault, size_t node, gcap_text_t* text) {
  cause->fault = fault;
  cause->node = node;
  gcap_text_init(text, cause->text, sizeof(cause->text));
}

static void write_call(const gcap_capture_step_t* step, gcap_text_t* text) {
  gcap_text_add(text, "%s", step->operation);
  gcap_labels_add(text, step->label);
  if (step->file[0] != '\0') gcap_text_add(text, " at %s:%d", step->file, step->line);
}

// --- Calls ----------------------------------------------------------------------------------------------------------

static void blame_dropped_call(const gcap_bisection_t* b, size_t step, gcap_bisect_cause_t* cause) {
  gcap_text_t text;
  begin_text(cause, GCAP_GRAPH_FAULT_DROPPED_CALL, SIZE_MAX, &text);
  gcap_text_add(&text, "dropped call: the capture of the graph did not make ");
  write_call(&b->steps.eager.items[step], &text);
}

// The first step of the graph behind that of the place before, which the work does not make now, and which has nodes;
// GCAP_BISECT_NONE: there is none.
static size_t find_extra(const gcap_bisection_t* b, size_t step) {
  const size_t end = step < b->steps.eager.count ? b->steps.in_graph[step] : b->steps.captured.count;
  for (size_t i = end; i > 0 && end != GCAP_BISECT_NONE && eager_of(b, i - 1) == GCAP_BISECT_NONE; --i) {
    const gcap_capture_step_t* extra = &b->steps.captured.items[i - 1];
    if (extra->num_nodes != 0 && extra->kind == GCAP_CAPTURE_STEP_CALL) return i - 1;
  }
  return GCAP_BISECT_NONE;
}

static void blame_extra(const gcap_bisection_t* b, size_t extra, gcap_bisect_cause_t* cause) {
  const gcap_capture_step_t* step = &b->steps.captured.items[extra];
  gcap_text_t text;
  begin_text(cause, GCAP_GRAPH_FAULT_HOST_DECISION, nodes_of(&b->now, step).begin, &text);
  gcap_text_add(&text, "host decision: the capture of the graph made ");
  write_call(step, &text);
  gcap_text_add(&text, ", and the work does not make that call now");
}

static void blame_hole(const gcap_bisection_t* b, size_t step, gcap_bisect_cause_t* cause) {
  gcap_text_t text;
  begin_text(cause, GCAP_GRAPH_FAULT_HOLE, SIZE_MAX, &text);
  gcap_text_add(&text,
                "hole: the function of %s left something else in the replay: it works on other memory than that of the "
                "resources that it was given, or does something else each time",
                b->steps.eager.items[step].operation);
}

// Whether the call changes memory in the work, and has no node in the graph.
static gcap_status_t check_is_outside(gcap_bisection_t* b, size_t step, gcap_bisect_cause_t* cause) {
  const gcap_capture_step_t* captured = &b->steps.captured.items[b->steps.in_graph[step]];
  if (captured->num_nodes != 0) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_bisect_note_writes(b));
  bool changes = false;
  const size_t row = b->subject.num_buffers + b->steps.eager.num_blocks;
  for (size_t i = 0; i < row; ++i) changes |= *gcap_bisect_writes(b, step, i);
  if (!changes) return NULL;
  gcap_text_t text;
  begin_text(cause, GCAP_GRAPH_FAULT_OUTSIDE_OF_CAPTURE, SIZE_MAX, &text);
  gcap_text_add(&text, "work outside of the capture: the graph has no node of ");
  write_call(captured, &text);
  gcap_text_add(&text, ", which went to a stream that did not capture and ran at once");
  return NULL;
}

// --- Arguments ------------------------------------------------------------------------------------------------------

// What a node of the graph is in the fresh capture; GCAP_BISECT_NONE: there is none that could be compared.
static size_t fresh_node_of(const gcap_bisection_t* b, size_t captured, size_t node) {
  if (b->fresh.count == 0 || captured == GCAP_BISECT_NONE || b->steps.in_fresh[captured] == GCAP_BISECT_NONE) {
    return GCAP_BISECT_NONE;
  }
  const node_range_t now = nodes_of(&b->now, &b->steps.captured.items[captured]);
  const node_range_t fresh = nodes_of(&b->fresh, &b->steps.fresh.items[b->steps.in_fresh[captured]]);
  if (now.end - now.begin != fresh.end - fresh.begin) return GCAP_BISECT_NONE;
  return fresh.begin + (node - now.begin);
}

static void blame_change(const gcap_bisection_t* b, size_t node, const gcap_node_change_t* change,
                         gcap_bisect_cause_t* cause) {
  const bool is_pointer = change->kind == GCAP_CHANGE_POINTER;
  gcap_text_t text;
  begin_text(cause, is_pointer ? GCAP_GRAPH_FAULT_STALE_POINTER : GCAP_GRAPH_FAULT_FROZEN_VALUE, node, &text);
  gcap_text_add(&text, "%s: ", is_pointer ? "stale pointer" : "frozen value");
  write_node(b, node, &text);
  gcap_text_add(&text, ": %s is %s", change->place, change->now);
  if (change->fresh[0] != '\0') gcap_text_add(&text, "; a capture of the work would have %s", change->fresh);
}

static gcap_status_t check_node(const gcap_bisection_t* b, size_t node, size_t fresh_node, gcap_bisect_cause_t* cause) {
  const gcap_graph_manager_t* manager = b->subject.run->manager;
  const gcap_block_finder_t finder = {manager->options.find_block, manager->options.find_block_user};
  gcap_node_change_t change;
  GCAP_RETURN_IF_ERROR(gcap_contents_find_change(&b->now, node, fresh_node != GCAP_BISECT_NONE ? &b->fresh : NULL,
                                                 fresh_node, &finder, &change));
  if (change.kind != GCAP_CHANGE_NONE) blame_change(b, node, &change, cause);
  return NULL;
}

static gcap_status_t check_nodes(const gcap_bisection_t* b, size_t captured, gcap_bisect_cause_t* cause) {
  const node_range_t range = nodes_of(&b->now, &b->steps.captured.items[captured]);
  for (size_t i = range.begin; i < range.end && cause->fault == GCAP_GRAPH_FAULT_UNKNOWN; ++i) {
    GCAP_RETURN_IF_ERROR(check_node(b, i, fresh_node_of(b, captured, i), cause));
  }
  return NULL;
}

// What an audit tells of the nodes of a range.
typedef struct audited {
  const gcap_bisection_t* b;
  node_range_t range;
  gcap_bisect_cause_t* cause;
} audited_t;

static void take_finding(void* user, const gcap_graph_pointer_t* pointer) {
  const audited_t* audited = user;
  const bool is_inside = pointer->node >= audited->range.begin && pointer->node < audited->range.end;
  if (!pointer->is_finding || !is_inside || audited->cause->fault != GCAP_GRAPH_FAULT_UNKNOWN) return;
  gcap_text_t text;
  begin_text(audited->cause, GCAP_GRAPH_FAULT_STALE_POINTER, pointer->node, &text);
  gcap_text_add(&text, "stale pointer: %s: %s %p was captured in %s", pointer->node_text, pointer->place,
                pointer->address, pointer->memory);
  if (pointer->now != NULL) gcap_text_add(&text, ", where now is %s", pointer->now);
}

// A manager that does not audit knows nothing.
static void audit_nodes(const gcap_bisection_t* b, node_range_t range, gcap_bisect_cause_t* cause) {
  audited_t audited = {b, range, cause};
  gcap_status_ignore(
      gcap_graph_manager_audit(b->subject.run->manager, b->subject.id, take_finding, &audited, /*out_findings=*/NULL));
}

// --- Memory ---------------------------------------------------------------------------------------------------------

// Whether the step of the node changes the buffer, or the scratch; of a step that the work does not make now, and of
// scratch that it does not ask for, nobody knows.
static bool node_writes(void* user, size_t node, size_t index) {
  const gcap_bisection_t* b = user;
  const size_t captured = step_of_node(b, node);
  const size_t step = captured != GCAP_BISECT_NONE ? eager_of(b, captured) : GCAP_BISECT_NONE;
  if (step == GCAP_BISECT_NONE || index >= b->subject.num_buffers + b->steps.eager.num_blocks) return true;
  return *gcap_bisect_writes(b, step, index);
}

static bool find_scratch(void* user, size_t node, uintptr_t address, gcap_named_memory_t* out_memory,
                         size_t* out_index) {
  const gcap_bisection_t* b = user;
  const size_t captured = step_of_node(b, node);
  size_t block = GCAP_BISECT_NONE;
  if (captured == GCAP_BISECT_NONE) return false;
  if (!gcap_bisect_find_block(b, captured, address, out_memory, &block)) return false;
  *out_index = block != GCAP_BISECT_NONE ? b->subject.num_buffers + block : GCAP_BISECT_NONE - 1;
  return true;
}

static void free_named(gcap_named_memory_t** named) { free(*named); }

static gcap_status_t list_named(const gcap_bisection_t* b, gcap_named_memory_t** out_named) {
  gcap_named_memory_t* named = *out_named = calloc(b->subject.num_buffers + 1, sizeof(*named));
  if (named == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a list of buffers");
  for (size_t i = 0; i < b->subject.num_buffers; ++i) {
    const gcap_verify_block_t* block = &b->subject.blocks[i];
    named[i] = (gcap_named_memory_t){block->name != NULL ? block->name : "", (uintptr_t)block->address, block->bytes};
  }
  return NULL;
}

static gcap_touches_subject_t touches_of(const gcap_bisection_t* b, const gcap_named_memory_t* named) {
  const gcap_graph_manager_t* manager = b->subject.run->manager;
  return (gcap_touches_subject_t){.contents = &b->now,
                                  .finder = {manager->options.find_block, manager->options.find_block_user},
                                  .named = named,
                                  .num_named = b->subject.num_buffers,
                                  .writes = node_writes,
                                  .find_scratch = find_scratch,
                                  .user = (void*)b};
}

static void blame_missing_join(const gcap_bisection_t* b, const gcap_unordered_nodes_t* nodes,
                               gcap_bisect_cause_t* cause) {
  gcap_text_t text;
  begin_text(cause, GCAP_GRAPH_FAULT_MISSING_JOIN, nodes->later, &text);
  cause->earlier = nodes->earlier;
  gcap_text_add(&text, "missing join: ");
  write_node(b, nodes->earlier, &text);
  gcap_text_add(&text, ", and ");
  write_node(b, nodes->later, &text);
  gcap_text_add(&text,
                ", work on %s, and no path of edges leads from the one to the other: node %zu -> node %zu is "
                "missing",
                nodes->memory, nodes->earlier, nodes->later);
  const size_t earlier = step_of_node(b, nodes->earlier);
  if (earlier == GCAP_BISECT_NONE) return;
  gcap_text_add(&text, "; the earlier one is of ");
  write_call(&b->steps.captured.items[earlier], &text);
}

// Looks for two nodes without an order, the later one in the range.
static gcap_status_t find_unordered(gcap_bisection_t* b, node_range_t range, gcap_bisect_cause_t* cause) {
  GCAP_RETURN_IF_ERROR(gcap_bisect_note_writes(b));
  GCAP_AT_SCOPE_END(free_named) gcap_named_memory_t* named = NULL;
  GCAP_RETURN_IF_ERROR(list_named(b, &named));
  const gcap_touches_subject_t subject = touches_of(b, named);
  for (size_t i = range.begin; i < range.end; ++i) {
    gcap_unordered_nodes_t nodes;
    bool found = false;
    GCAP_RETURN_IF_ERROR(gcap_contents_find_unordered(&subject, i, &nodes, &found));
    if (!found) continue;
    blame_missing_join(b, &nodes, cause);
    return NULL;
  }
  return NULL;
}

// A graph that is one path has nothing to look for.
static bool has_branches(const gcap_contents_t* contents) {
  for (size_t i = 1; i < contents->count; ++i) {
    const gcap_contents_node_t* node = &contents->nodes[i];
    if (node->graph != contents->nodes[i - 1].graph) continue;
    if (node->num_dependencies != 1 || contents->dependencies[node->first_dependency].node != i - 1) return true;
  }
  return false;
}

// --- What is asked --------------------------------------------------------------------------------------------------

static void begin_cause(size_t step, gcap_bisect_cause_t* cause) {
  *cause = (gcap_bisect_cause_t){.step = step, .node = SIZE_MAX, .earlier = SIZE_MAX};
}

static gcap_status_t look_at_nodes(gcap_bisection_t* b, size_t captured, gcap_bisect_cause_t* cause) {
  const node_range_t range = nodes_of(&b->now, &b->steps.captured.items[captured]);
  GCAP_RETURN_IF_ERROR(check_nodes(b, captured, cause));
  if (cause->fault == GCAP_GRAPH_FAULT_UNKNOWN) audit_nodes(b, range, cause);
  if (cause->fault != GCAP_GRAPH_FAULT_UNKNOWN || !has_branches(&b->now)) return NULL;
  return find_unordered(b, range, cause);
}

// Of calls that are alike, as those of a loop are, nobody knows which one the other side lacks: it is the one where the
// two part. Nor is one node of such calls the same as that of a fresh capture.
static bool check_calls_alike(const gcap_bisection_t* b, size_t step, gcap_bisect_cause_t* cause) {
  const gcap_capture_step_t* of = &b->steps.eager.items[step];
  for (size_t i = step + 1; i < b->steps.eager.count; ++i) {
    if (b->steps.in_graph[i] != GCAP_BISECT_NONE || !gcap_bisect_are_alike(&b->steps.eager.items[i], of)) continue;
    blame_dropped_call(b, step, cause);
    return true;
  }
  for (size_t i = b->steps.in_graph[step] + 1; i < b->steps.captured.count; ++i) {
    const gcap_capture_step_t* extra = &b->steps.captured.items[i];
    const bool is_extra = extra->num_nodes != 0 && eager_of(b, i) == GCAP_BISECT_NONE;
    if (!is_extra || !gcap_bisect_are_alike(extra, of)) continue;
    blame_extra(b, b->steps.in_graph[step], cause);
    return true;
  }
  return false;
}

gcap_status_t gcap_bisect_find_cause(gcap_bisection_t* b, size_t step, gcap_bisect_cause_t* cause) {
  begin_cause(step, cause);
  const bool is_end = step >= b->steps.eager.count;
  const size_t captured = is_end ? b->steps.captured.count - 1 : b->steps.in_graph[step];
  if (is_end && eager_of(b, captured) != GCAP_BISECT_NONE) return NULL;  // the graph ends where the work does
  if (captured == GCAP_BISECT_NONE) {
    blame_dropped_call(b, step, cause);
    return NULL;
  }
  const size_t extra = find_extra(b, step);
  if (extra != GCAP_BISECT_NONE) {
    blame_extra(b, extra, cause);
    return NULL;
  }
  if (!is_end && b->steps.captured.items[captured].kind == GCAP_CAPTURE_STEP_HOLE) {
    // The segment before a hole ends with the hole's step.
    GCAP_RETURN_IF_ERROR(look_at_nodes(b, captured, cause));
    if (cause->fault == GCAP_GRAPH_FAULT_UNKNOWN) blame_hole(b, step, cause);
    return NULL;
  }
  if (!is_end && check_calls_alike(b, step, cause)) return NULL;
  if (!is_end) GCAP_RETURN_IF_ERROR(check_is_outside(b, step, cause));
  return cause->fault != GCAP_GRAPH_FAULT_UNKNOWN ? NULL : look_at_nodes(b, captured, cause);
}

gcap_status_t gcap_bisect_find_missing_join(gcap_bisection_t* b, size_t step, gcap_bisect_cause_t* cause) {
  begin_cause(step, cause);
  if (!has_branches(&b->now)) return NULL;
  size_t end = b->now.count;
  for (size_t i = step + 1; i > 0 && step < b->steps.eager.count; --i) {
    if (b->steps.in_graph[i - 1] == GCAP_BISECT_NONE) continue;
    end = nodes_of(&b->now, &b->steps.captured.items[b->steps.in_graph[i - 1]]).end;
    break;
  }
  GCAP_RETURN_IF_ERROR(find_unordered(b, (node_range_t){0, end}, cause));
  if (cause->fault == GCAP_GRAPH_FAULT_UNKNOWN) return NULL;
  const size_t captured = step_of_node(b, cause->node);
  if (captured != GCAP_BISECT_NONE) cause->step = eager_of(b, captured);
  return NULL;
}

// Of a graph without steps: nodes by their numbers, of graphs that have as many.
static gcap_status_t check_without_steps(const gcap_bisection_t* b, gcap_bisect_cause_t* cause) {
  const bool is_comparable = b->fresh.count == b->now.count;
  for (size_t i = 0; i < b->now.count && cause->fault == GCAP_GRAPH_FAULT_UNKNOWN; ++i) {
    GCAP_RETURN_IF_ERROR(check_node(b, i, is_comparable ? i : GCAP_BISECT_NONE, cause));
  }
  if (cause->fault == GCAP_GRAPH_FAULT_UNKNOWN) audit_nodes(b, (node_range_t){0, b->now.count}, cause);
  return NULL;
}

gcap_status_t gcap_bisect_find_change(gcap_bisection_t* b, size_t step, gcap_bisect_cause_t* cause) {
  begin_cause(step, cause);
  if (b->steps.captured.count == 0) return check_without_steps(b, cause);
  for (size_t i = 0; i < step && i < b->steps.eager.count && cause->fault == GCAP_GRAPH_FAULT_UNKNOWN; ++i) {
    if (b->steps.in_graph[i] == GCAP_BISECT_NONE) continue;
    GCAP_RETURN_IF_ERROR(check_nodes(b, b->steps.in_graph[i], cause));
    if (cause->fault != GCAP_GRAPH_FAULT_UNKNOWN) cause->step = i;
  }
  return NULL;
}

// What the function of a hole works on is no argument of a node.
static void write_hole_before(const gcap_bisection_t* b, size_t captured, gcap_text_t* text) {
  for (size_t i = captured; i > 0; --i) {
    const gcap_capture_step_t* step = &b->steps.captured.items[i - 1];
    if (step->kind != GCAP_CAPTURE_STEP_HOLE) continue;
    gcap_text_add(text, "; or the function of %s, which comes before, writes there, and not the same each time",
                  step->operation);
    return;
  }
}

gcap_status_t gcap_bisect_find_first_use(gcap_bisection_t* b, size_t step, gcap_bisect_cause_t* cause) {
  begin_cause(step, cause);
  if (step >= b->steps.eager.count || b->steps.in_graph[step] == GCAP_BISECT_NONE) return NULL;
  GCAP_AT_SCOPE_END(free_named) gcap_named_memory_t* named = NULL;
  GCAP_RETURN_IF_ERROR(list_named(b, &named));
  const gcap_touches_subject_t subject = touches_of(b, named);
  GCAP_RETURN_IF_ERROR(gcap_bisect_note_writes(b));
  const node_range_t range = nodes_of(&b->now, &b->steps.captured.items[b->steps.in_graph[step]]);
  for (size_t i = range.begin; i < range.end; ++i) {
    char place[64], memory[400];
    bool found = false;
    GCAP_RETURN_IF_ERROR(gcap_contents_find_first_use(&subject, i, place, memory, &found));
    if (!found) continue;
    gcap_text_t text;
    begin_text(cause, GCAP_GRAPH_FAULT_UNINITIALIZED, i, &text);
    gcap_text_add(&text, "uninitialized: ");
    write_node(b, i, &text);
    gcap_text_add(&text, ": %s leads to memory that no node of the graph worked on before, and that nobody named: %s",
                  place, memory);
    write_hole_before(b, b->steps.in_graph[step], &text);
    return NULL;
  }
  return NULL;
}
