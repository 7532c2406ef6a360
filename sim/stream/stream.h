// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stream.h: streams.
#ifndef GCAP_SIM_STREAM_STREAM_H_
#define GCAP_SIM_STREAM_STREAM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"
#include "sim/api/types.h"
#include "sim/check/clock.h"
#include "sim/check/shadow.h"

// Attributes of a stream that only advise hardware.
typedef struct gcap_sim_stream_advice {
  struct cudaAccessPolicyWindow window;
  int policy;  // a cudaSynchronizationPolicy, or -1 when none was set, which a GPU tells like this
  cudaLaunchMemSyncDomainMap domains;
  cudaLaunchMemSyncDomain domain;
} gcap_sim_stream_advice_t;

struct gcap_sim_stream {
  cudaStream_t handle;    // NULL for the legacy stream and after destruction
  unsigned long long id;  // as cudaStreamGetId tells it
  gcap_sim_stream_name_t name;
  int device;
  int priority;
  unsigned int flags;
  bool legacy;
  bool destroyed;             // goes away when its queue is empty
  bool running;               // a host function of its head is running, off the lock
  gcap_sim_member_t* member;  // set while the stream captures
  gcap_sim_op_t* head;
  gcap_sim_op_t* tail;
  gcap_sim_stream_advice_t advice;
  size_t busy_index;       // its place among the busy streams
  uint64_t frees;          // stream-ordered frees given to it so far
  gcap_sim_past_t* past;   // frees of other streams that its next work comes after
  gcap_sim_clock_t clock;  // of the work that has run
  size_t host_news;        // its places in lists of what others have yet to learn (order.c)
  size_t legacy_news;
};

// The stream behind a handle, with NULL and the two special handles resolved.
gcap_sim_stream_t* gcap_sim_stream_get(cudaStream_t handle);
gcap_sim_stream_t* gcap_sim_stream_create(int device, unsigned int flags, int priority);
int gcap_sim_clamp_priority(int priority);
// May a stream or a kernel node have this access policy window?
bool gcap_sim_is_window(const struct cudaAccessPolicyWindow* window);
// Ends a stream that has a handle.
void gcap_sim_stream_destroy(gcap_sim_stream_t* stream);
// Marks the stream as gone; it is freed once its queue has drained.
void gcap_sim_stream_retire(gcap_sim_stream_t* stream);

#endif  // GCAP_SIM_STREAM_STREAM_H_
