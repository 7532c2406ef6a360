// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sums of device times.
//
// CUPTI gives a record for each run of a node, in buffers that a thread of its own hands over. A node's runs are summed
// by the node's id. How long a whole launch took is the time from its first record's start to its last one's end; its
// records share a number and come close together, so the launches of late are kept in a small table, and one that gives
// way to another there is over. Records of work outside of graphs have no graph, and are skipped.
//
// A program that ends by a signal or by _exit tells nothing at its end, so the sums since the last time are written
// every few seconds, by CUPTI's thread, and the counts of launches with them. A launch without new records for that
// long is over too. Locking: one lock, held over memory alone.
#include "doctor/record/times.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/base/grow.h"
#include "doctor/record/handles.h"
#include "doctor/record/map.h"
#include "doctor/record/writer.h"

enum {
  kBufferBytes = 128 << 10,  // some hundred records: CUPTI hands a buffer over when it is full
  kRecentLaunches = 4096,    // more than a device has under way
  kMostNodes = 1 << 16,      // a program that captures for ever makes new ones for ever
  kPeriodMs = 2000,          // of the sums' lines
};

typedef struct node_time {
  uint64_t node, count, ns;
  uint32_t graph;
} node_time_t;

typedef struct launch {
  uint32_t graph, correlation;  // graph 0 for a free place
  uint64_t start_ns, end_ns;
  uint32_t period;  // of its last record
} launch_t;

typedef struct whole {
  uint32_t graph;
  uint64_t count, ns;
} whole_t;

static const gcap_doctor_cupti_t* cupti;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gcap_doctor_map_t node_ids, whole_ids;  // index + 1
static node_time_t* nodes;
static whole_t* wholes;
static size_t num_nodes, node_capacity, num_wholes, whole_capacity;
static launch_t launches[kRecentLaunches];
static uint32_t period;
static uint64_t period_start_ns;

static void add_node(uint32_t graph, uint64_t node, uint64_t ns) {
  uint32_t index = gcap_doctor_map_get(&node_ids, node);
  if (index == 0) {
    if (!gcap_doctor_grow(&nodes, &node_capacity, num_nodes + 1, sizeof(*nodes))) return;
    if (!gcap_doctor_map_set(&node_ids, node, (uint32_t)num_nodes + 1)) return;
    nodes[num_nodes++] = (node_time_t){.node = node, .graph = graph};
    index = (uint32_t)num_nodes;
  }
  ++nodes[index - 1].count;
  nodes[index - 1].ns += ns;
}

static void add_whole(const launch_t* launch) {
  uint32_t index = gcap_doctor_map_get(&whole_ids, launch->graph);
  if (index == 0) {
    if (!gcap_doctor_grow(&wholes, &whole_capacity, num_wholes + 1, sizeof(*wholes))) return;
    if (!gcap_doctor_map_set(&whole_ids, launch->graph, (uint32_t)num_wholes + 1)) return;
    wholes[num_wholes++] = (whole_t){.graph = launch->graph};
    index = (uint32_t)num_wholes;
  }
  ++wholes[index - 1].count;
  wholes[index - 1].ns += launch->end_ns - launch->start_ns;
}

static void add_to_launch(uint32_t graph, uint32_t correlation, uint64_t start_ns, uint64_t end_ns) {
  launch_t* launch = &launches[correlation % kRecentLaunches];
  if (launch->graph != graph || launch->correlation != correlation) {
    if (launch->graph != 0) add_whole(launch);
    *launch = (launch_t){.graph = graph, .correlation = correlation, .start_ns = start_ns, .end_ns = end_ns};
  }
  launch->period = period;
  if (start_ns < launch->start_ns) launch->start_ns = start_ns;
  if (end_ns > launch->end_ns) launch->end_ns = end_ns;
}

static void read(const char* record, size_t offset, void* out, size_t size) { memcpy(out, record + offset, size); }

static void add_record(const char* record) {
  int32_t kind;
  uint32_t graph, correlation;
  uint64_t node, start_ns, end_ns;
  read(record, 0, &kind, sizeof(kind));
  const bool is_kernel = kind == GCAP_DOCTOR_CUPTI_KIND_KERNEL;
  if (!is_kernel && kind != GCAP_DOCTOR_CUPTI_KIND_MEMCPY && kind != GCAP_DOCTOR_CUPTI_KIND_MEMSET) return;
  read(record, GCAP_DOCTOR_CUPTI_RECORD_START, &start_ns, sizeof(start_ns));
  read(record, GCAP_DOCTOR_CUPTI_RECORD_END, &end_ns, sizeof(end_ns));
  read(record, is_kernel ? GCAP_DOCTOR_CUPTI_KERNEL_NODE : GCAP_DOCTOR_CUPTI_COPY_NODE, &node, sizeof(node));
  read(record, is_kernel ? GCAP_DOCTOR_CUPTI_KERNEL_GRAPH : GCAP_DOCTOR_CUPTI_COPY_GRAPH, &graph, sizeof(graph));
  read(record, is_kernel ? GCAP_DOCTOR_CUPTI_KERNEL_CORRELATION : GCAP_DOCTOR_CUPTI_COPY_CORRELATION, &correlation,
       sizeof(correlation));
  // CUPTI writes 0 where it could not measure.
  if (graph == 0 || start_ns == 0 || end_ns < start_ns) return;
  add_node(graph, node, end_ns - start_ns);
  add_to_launch(graph, correlation, start_ns, end_ns);
}

static void buffer_wanted(uint8_t** out_buffer, size_t* out_size, size_t* out_max_records) {
  *out_buffer = aligned_alloc(8, kBufferBytes);
  *out_size = *out_buffer != NULL ? kBufferBytes : 0;
  *out_max_records = 0;  // as many as fit
}

static void write_node(node_time_t* node, gcap_doctor_line_t* out) {
  const uint32_t exec = gcap_doctor_exec_of_cupti_graph(node->graph);
  if (exec == 0 || node->count == 0) return;
  gcap_doctor_line_begin(out, "time");
  gcap_doctor_line_number(out, "exec", exec);
  gcap_doctor_line_hex(out, "node", node->node);
  gcap_doctor_line_number(out, "count", node->count);
  gcap_doctor_line_number(out, "ns", node->ns);
  gcap_doctor_line_end(out);
  node->count = node->ns = 0;
}

static void write_whole(whole_t* whole, gcap_doctor_line_t* out) {
  const uint32_t exec = gcap_doctor_exec_of_cupti_graph(whole->graph);
  if (exec == 0 || whole->count == 0) return;
  gcap_doctor_line_begin(out, "whole");
  gcap_doctor_line_number(out, "exec", exec);
  gcap_doctor_line_number(out, "count", whole->count);
  gcap_doctor_line_number(out, "ns", whole->ns);
  gcap_doctor_line_end(out);
  whole->count = whole->ns = 0;
}

// With the lock held. Counts the launches that are over: those without a record in the last `num_periods`.
static void add_old_launches(uint32_t num_periods) {
  for (size_t i = 0; i < kRecentLaunches; ++i) {
    if (launches[i].graph == 0 || period - launches[i].period < num_periods) continue;
    add_whole(&launches[i]);
    launches[i].graph = 0;
  }
}

// With the lock held. The tables begin anew where they have grown large.
static void write_sums(gcap_doctor_line_t* out) {
  for (size_t i = 0; i < num_nodes; ++i) write_node(&nodes[i], out);
  for (size_t i = 0; i < num_wholes; ++i) write_whole(&wholes[i], out);
  if (num_nodes > kMostNodes) {
    gcap_doctor_map_clear(&node_ids);
    num_nodes = 0;
  }
  if (num_wholes > kMostNodes) {
    gcap_doctor_map_clear(&whole_ids);
    num_wholes = 0;
  }
}

static void write_now_and_then(void) {
  const uint64_t now_ns = gcap_doctor_writer_now();
  gcap_doctor_line_t lines = {0};
  pthread_mutex_lock(&lock);
  const bool is_time = now_ns - period_start_ns >= kPeriodMs * UINT64_C(1000000);
  if (is_time || num_nodes > kMostNodes || num_wholes > kMostNodes) {
    ++period;
    period_start_ns = now_ns;
    add_old_launches(2);
    write_sums(&lines);
  }
  pthread_mutex_unlock(&lock);
  if (is_time) gcap_doctor_execs_finish(&lines);
  gcap_doctor_writer_write(&lines);
  gcap_doctor_line_free(&lines);
}

static void buffer_filled(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid) {
  (void)context;
  (void)stream;
  (void)size;
  void* record = NULL;
  while (buffer != NULL && cupti->ActivityGetNextRecord(buffer, valid, &record) == GCAP_DOCTOR_CUPTI_SUCCESS) {
    pthread_mutex_lock(&lock);
    add_record(record);
    pthread_mutex_unlock(&lock);
  }
  free(buffer);
  write_now_and_then();
}

bool gcap_doctor_times_start(const gcap_doctor_cupti_t* functions) {
  static const int32_t kinds[] = {GCAP_DOCTOR_CUPTI_KIND_KERNEL, GCAP_DOCTOR_CUPTI_KIND_MEMCPY,
                                  GCAP_DOCTOR_CUPTI_KIND_MEMSET};
  if (functions->ActivityRegisterCallbacks == NULL) {
    gcap_doctor_writer_note("this CUPTI has no records of activity, so no device times are recorded.");
    return false;
  }
  int result = functions->ActivityRegisterCallbacks(buffer_wanted, buffer_filled);
  for (size_t i = 0; result == GCAP_DOCTOR_CUPTI_SUCCESS && i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
    result = functions->ActivityEnable(kinds[i]);
  }
  if (result == GCAP_DOCTOR_CUPTI_SUCCESS) {
    cupti = functions;
    return true;
  }
  const char* text = NULL;
  if (functions->GetResultString != NULL) functions->GetResultString(result, &text);
  gcap_doctor_writer_note("CUPTI refuses its records of activity (%d%s%s), so no device times are recorded.", result,
                          text != NULL ? ", " : "", text != NULL ? text : "");
  return false;
}

void gcap_doctor_times_finish(gcap_doctor_line_t* out) {
  if (cupti == NULL) return;
  cupti->ActivityFlushAll(1);
  pthread_mutex_lock(&lock);
  add_old_launches(0);
  write_sums(out);
  pthread_mutex_unlock(&lock);
}
