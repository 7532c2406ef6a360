// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stream_watch.h: for who keeps addresses of streams and must know when one ends.
#ifndef GCAP_LIB_INTERNAL_STREAM_WATCH_H_
#define GCAP_LIB_INTERNAL_STREAM_WATCH_H_

struct gcap_stream;  // gcap/stream.h stands on this module

// One watcher, embedded in what watches.
typedef struct gcap_stream_watch {
  // Called for each stream that ends: it was drained, and its handle is about to go. Neither destroys a stream nor adds
  // or removes a watch.
  void (*stream_ends)(struct gcap_stream_watch* watch, struct gcap_stream* stream);
  struct gcap_stream_watch *previous, *next;
} gcap_stream_watch_t;

void gcap_stream_watch_add(gcap_stream_watch_t* watch);
// Afterwards it is not being called.
void gcap_stream_watch_remove(gcap_stream_watch_t* watch);
// Calls the watchers.
void gcap_stream_watch_tell(struct gcap_stream* stream);

#endif  // GCAP_LIB_INTERNAL_STREAM_WATCH_H_
