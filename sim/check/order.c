// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The order of all that happens: clocks of the host, of streams, and of chains of graph nodes.
//
// The idea: an operation comes after what its stream did before, after all that the host had seen when it submitted it,
// and after what it waits for. All of that is known when it runs, so its clock is computed then, and is the same
// whatever the interleaving was: an ordering that is missing is missing on every run. The host counts as one timeline,
// whose threads follow one another as their calls do; whether they are right among themselves is for a sanitizer to
// tell. The nodes of a graph are cut into chains, each a timeline, since the launches of an executable follow one
// another; the first chain is the stream itself, so that a linear graph costs what its operations would.
// Invariant: a stream with something done that the host (or the legacy stream) has not learnt is in the device's list
// for it. Locking: the global mutex.
#include <stdlib.h>

#include "../cudart/core.h"
#include "chains.h"
#include "check.h"
#include "order.h"

typedef struct news {
  sim_stream_t** streams;
  size_t count;
  size_t capacity;
  sim_clock_t gone;  // what streams that went away had done; unused until there is one
} news_t;

static sim_clock_t host;
static news_t for_host[SIM_MAX_DEVICES];
static news_t for_legacy[SIM_MAX_DEVICES];

sim_clock_t* sim_order_host(void) {
  if (!host.timeline) sim_clock_open(&host, NULL);
  return &host;
}

static bool is_blocking(const sim_stream_t* stream) {
  return !stream->legacy && (stream->flags & cudaStreamNonBlocking) == 0;
}

// --- What is not known yet ------------------------------------------------------------------------------------------

// `place` is the stream's place in the list + 1, or 0.
static void add_news(news_t* news, sim_stream_t* stream, size_t* place) {
  if (*place) return;
  sim_reserve(&news->streams, &news->capacity, news->count + 1, sizeof(sim_stream_t*));
  news->streams[news->count++] = stream;
  *place = news->count;
}

static size_t* place_in(const news_t* news, sim_stream_t* stream) {
  return news == &for_host[stream->device] ? &stream->host_news : &stream->legacy_news;
}

static void remove_news(news_t* news, sim_stream_t* stream) {
  size_t* place = place_in(news, stream);
  if (!*place) return;
  sim_stream_t* last = news->streams[--news->count];
  news->streams[*place - 1] = last;
  *place_in(news, last) = *place;
  *place = 0;
}

static void learn_clock(sim_clock_t* clock, const sim_clock_t* from) {
  if (!from->timeline || sim_clock_knows(clock, from->timeline, from->time)) return;
  sim_stamp_t stamp = sim_clock_stamp(from);
  sim_clock_learn(clock, &stamp);
  sim_stamp_release(&stamp);
}

static void learn_news(sim_clock_t* clock, news_t* news) {
  for (size_t i = 0; i < news->count; ++i) {
    learn_clock(clock, &news->streams[i]->clock);
    *place_in(news, news->streams[i]) = 0;
  }
  news->count = 0;
  learn_clock(clock, &news->gone);
}

static void leave_news(news_t* news, sim_stream_t* stream) {
  if (!*place_in(news, stream)) return;
  if (!news->gone.timeline) sim_clock_open(&news->gone, NULL);
  learn_clock(&news->gone, &stream->clock);
  remove_news(news, stream);
}

static void did_something(sim_stream_t* stream) {
  add_news(&for_host[stream->device], stream, &stream->host_news);
  if (is_blocking(stream)) add_news(&for_legacy[stream->device], stream, &stream->legacy_news);
}

// --- Streams --------------------------------------------------------------------------------------------------------

void sim_order_stream_created(sim_stream_t* stream) {
  sim_stamp_t now = sim_clock_stamp(sim_order_host());
  sim_clock_open(&stream->clock, &now);
  sim_stamp_release(&now);
}

void sim_order_stream_gone(sim_stream_t* stream) {
  leave_news(&for_host[stream->device], stream);
  leave_news(&for_legacy[stream->device], stream);
  sim_clock_close(&stream->clock);
}

void sim_order_submit(sim_op_t* op) { op->submitted = sim_clock_stamp(sim_order_host()); }

void sim_order_wait(sim_stream_t* stream, sim_mark_t* mark) { sim_clock_learn(&stream->clock, &mark->stamp); }

bool sim_order_knows(const sim_stream_t* stream, const sim_mark_t* mark) {
  return sim_clock_knows(&stream->clock, mark->stamp.timeline, mark->stamp.time);
}

// What the other side was given later cannot have run yet: it waits for this operation.
void sim_order_implicitly(sim_stream_t* stream) {
  if (stream->legacy) learn_news(&stream->clock, &for_legacy[stream->device]);
  if (is_blocking(stream)) learn_clock(&stream->clock, &sim_legacy_stream(stream->device)->clock);
}

void sim_order_begin(sim_stream_t* stream, sim_op_t* op) {
  op->begun = true;
  sim_clock_learn(&stream->clock, &op->submitted);
  sim_order_implicitly(stream);
  sim_clock_tick(&stream->clock);
  if (op->launch) sim_chains_begin(stream, op->launch);
}

void sim_order_finish(sim_stream_t* stream, sim_op_t* op) {
  if (op->launch) sim_chains_finish(stream, op->launch);
  if (op->mark) op->mark->stamp = sim_clock_stamp(&stream->clock);
  sim_stamp_release(&op->submitted);
  did_something(stream);
}

void sim_order_mark_idle(sim_stream_t* stream, sim_mark_t* mark) {
  if (stream->legacy) sim_order_implicitly(stream);
  mark->stamp = sim_clock_stamp(&stream->clock);
}

void sim_order_at_once(sim_stream_t* stream) {
  learn_clock(&stream->clock, sim_order_host());
  sim_order_implicitly(stream);
  sim_clock_tick(&stream->clock);
  did_something(stream);
}

// --- The host -------------------------------------------------------------------------------------------------------

void sim_order_host_saw(sim_mark_t* mark) { sim_clock_learn(sim_order_host(), &mark->stamp); }

void sim_order_host_saw_stream(sim_stream_t* stream) {
  if (stream->legacy) sim_order_implicitly(stream);
  learn_clock(sim_order_host(), &stream->clock);
}

void sim_order_host_saw_device(int device) { learn_news(sim_order_host(), &for_host[device]); }
