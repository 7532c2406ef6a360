// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The order of all that happens: clocks of the host, of streams, and of chains of graph nodes.
//
// The idea: an operation comes after what its stream did before, after all that the host had seen when it submitted it,
// and after what it waits for. All of that is known when it runs, so its clock is computed then, and is the same
// whatever the interleaving was: an ordering that is missing is missing on every run. The host counts as one timeline,
// whose threads follow one another as their calls do; whether they are right among themselves is for a sanitizer to
// tell. What a host function did comes before the host's next call, since the host may have waited for it by a flag.
// The nodes of a graph are cut into chains, each a timeline, since the launches of an executable follow one
// another; the first chain is the stream itself, so that a linear graph costs what its operations would.
// Invariant: a stream with something done that the host (or the legacy stream) has not learnt is in the device's list
// for it. Locking: the global mutex.
#include "sim/bridge/order.h"

#include <stdlib.h>

#include "cuda_runtime_api.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/bridge/chains.h"
#include "sim/check/clock.h"
#include "sim/device/device.h"
#include "sim/stream/mark.h"
#include "sim/stream/scheduler.h"
#include "sim/stream/stream.h"

typedef struct news {
  gcap_sim_stream_t** streams;
  size_t count;
  size_t capacity;
  gcap_sim_clock_t gone;  // what streams that went away had done; unused until there is one
} news_t;

static gcap_sim_clock_t host;
static gcap_sim_clock_t told;  // what host functions that are done came after; unused until there is one
static news_t for_host[GCAP_SIM_MAX_DEVICES];
static news_t for_legacy[GCAP_SIM_MAX_DEVICES];

gcap_sim_clock_t* gcap_sim_order_host(void) {
  if (!host.timeline) gcap_sim_clock_open(&host, NULL);
  return &host;
}

static bool is_blocking(const gcap_sim_stream_t* stream) {
  return !stream->legacy && (stream->flags & cudaStreamNonBlocking) == 0;
}

// --- What is not known yet ------------------------------------------------------------------------------------------

// `place` is the stream's place in the list + 1, or 0.
static void add_news(news_t* news, gcap_sim_stream_t* stream, size_t* place) {
  if (*place) return;
  gcap_sim_reserve(&news->streams, &news->capacity, news->count + 1, sizeof(gcap_sim_stream_t*));
  news->streams[news->count++] = stream;
  *place = news->count;
}

static size_t* place_in(const news_t* news, gcap_sim_stream_t* stream) {
  return news == &for_host[stream->device] ? &stream->host_news : &stream->legacy_news;
}

static void remove_news(news_t* news, gcap_sim_stream_t* stream) {
  size_t* place = place_in(news, stream);
  if (!*place) return;
  gcap_sim_stream_t* last = news->streams[--news->count];
  news->streams[*place - 1] = last;
  *place_in(news, last) = *place;
  *place = 0;
}

static void learn_clock(gcap_sim_clock_t* clock, const gcap_sim_clock_t* from) {
  if (!from->timeline || gcap_sim_clock_knows(clock, from->timeline, from->time)) return;
  gcap_sim_stamp_t stamp = gcap_sim_clock_stamp(from);
  gcap_sim_clock_learn(clock, &stamp);
  gcap_sim_stamp_release(&stamp);
}

static void learn_news(gcap_sim_clock_t* clock, news_t* news) {
  for (size_t i = 0; i < news->count; ++i) {
    learn_clock(clock, &news->streams[i]->clock);
    *place_in(news, news->streams[i]) = 0;
  }
  news->count = 0;
  learn_clock(clock, &news->gone);
}

static void leave_news(news_t* news, gcap_sim_stream_t* stream) {
  if (!*place_in(news, stream)) return;
  if (!news->gone.timeline) gcap_sim_clock_open(&news->gone, NULL);
  learn_clock(&news->gone, &stream->clock);
  remove_news(news, stream);
}

static void did_something(gcap_sim_stream_t* stream) {
  add_news(&for_host[stream->device], stream, &stream->host_news);
  if (is_blocking(stream)) add_news(&for_legacy[stream->device], stream, &stream->legacy_news);
}

// --- Streams --------------------------------------------------------------------------------------------------------

void gcap_sim_order_stream_created(gcap_sim_stream_t* stream) {
  gcap_sim_stamp_t now = gcap_sim_clock_stamp(gcap_sim_order_host());
  gcap_sim_clock_open(&stream->clock, &now);
  gcap_sim_stamp_release(&now);
}

void gcap_sim_order_stream_gone(gcap_sim_stream_t* stream) {
  leave_news(&for_host[stream->device], stream);
  leave_news(&for_legacy[stream->device], stream);
  gcap_sim_clock_close(&stream->clock);
}

void gcap_sim_order_submit(gcap_sim_op_t* op) { op->submitted = gcap_sim_clock_stamp(gcap_sim_order_host()); }

void gcap_sim_order_wait(gcap_sim_stream_t* stream, gcap_sim_mark_t* mark) {
  gcap_sim_clock_learn(&stream->clock, &mark->stamp);
}

bool gcap_sim_order_knows(const gcap_sim_stream_t* stream, const gcap_sim_mark_t* mark) {
  return gcap_sim_clock_knows(&stream->clock, mark->stamp.timeline, mark->stamp.time);
}

// What the other side was given later cannot have run yet: it waits for this operation.
void gcap_sim_order_implicitly(gcap_sim_stream_t* stream) {
  if (stream->legacy) learn_news(&stream->clock, &for_legacy[stream->device]);
  if (is_blocking(stream)) learn_clock(&stream->clock, &gcap_sim_legacy_stream(stream->device)->clock);
}

void gcap_sim_order_begin(gcap_sim_stream_t* stream, gcap_sim_op_t* op) {
  op->begun = true;
  gcap_sim_clock_learn(&stream->clock, &op->submitted);
  gcap_sim_order_implicitly(stream);
  gcap_sim_clock_tick(&stream->clock);
  if (op->launch != NULL) gcap_sim_chains_begin(stream, op->launch);
}

void gcap_sim_order_finish(gcap_sim_stream_t* stream, gcap_sim_op_t* op) {
  if (op->launch != NULL) gcap_sim_chains_finish(stream, op->launch);
  if (op->mark != NULL) op->mark->stamp = gcap_sim_clock_stamp(&stream->clock);
  gcap_sim_stamp_release(&op->submitted);
  did_something(stream);
}

void gcap_sim_order_mark_idle(gcap_sim_stream_t* stream, gcap_sim_mark_t* mark) {
  if (stream->legacy) gcap_sim_order_implicitly(stream);
  mark->stamp = gcap_sim_clock_stamp(&stream->clock);
}

void gcap_sim_order_at_once(gcap_sim_stream_t* stream) {
  learn_clock(&stream->clock, gcap_sim_order_host());
  gcap_sim_order_implicitly(stream);
  gcap_sim_clock_tick(&stream->clock);
  did_something(stream);
}

// --- The host -------------------------------------------------------------------------------------------------------

void gcap_sim_order_host_saw(gcap_sim_mark_t* mark) { gcap_sim_clock_learn(gcap_sim_order_host(), &mark->stamp); }

void gcap_sim_order_host_saw_stream(gcap_sim_stream_t* stream) {
  if (stream->legacy) gcap_sim_order_implicitly(stream);
  learn_clock(gcap_sim_order_host(), &stream->clock);
}

void gcap_sim_order_host_function_done(const gcap_sim_clock_t* clock) {
  if (!told.timeline) gcap_sim_clock_open(&told, NULL);
  learn_clock(&told, clock);
}

// Not at once: what the call under way submits was not made by a host that had been told.
void gcap_sim_order_call_begins(void) { learn_clock(gcap_sim_order_host(), &told); }

void gcap_sim_order_host_saw_device(int device) { learn_news(gcap_sim_order_host(), &for_host[device]); }
