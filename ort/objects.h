// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// objects.h: the objects of a loaded plugin: its factory with the devices, the EP of each session, the run of each
// thread. What they do is in the file of each, whose header has the functions; none of those is included here.
#ifndef GCAP_ORT_OBJECTS_H_
#define GCAP_ORT_OBJECTS_H_

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "gcap/kit/ort.h"
#include "gcap/kit/run_options.h"
#include "gcap/runtime.h"
#include "kit/ep/hold.h"
#include "lib/internal/affine.h"
#include "ort/host.h"

// ONNX Runtime takes as many devices of one factory.
#define GCAP_ORT_MAX_DEVICES 8

// NVIDIA's number among PCI vendors: memory of these devices is CUDA's, whichever plugin allocated it.
#define GCAP_ORT_VENDOR_ID 0x10DEu

// The last version of an operator without a last version. INT_MAX means to ONNX Runtime that there is but the first
// one.
#define GCAP_ORT_NO_LAST_VERSION (INT_MAX - 1)

// One CUDA device. Its runtime serves what belongs to no session: shared allocators, copies, streams of applications.
typedef struct gcap_ort_device {
  int id;  // CUDA's
  gcap_runtime_t* runtime;
  gcap_ort_memory_info_t* memory;
  gcap_ort_memory_info_t* pinned;
  gcap_ort_hardware_device_t* virtual_hardware;  // NULL: the runtime found the hardware itself
} gcap_ort_device_t;

// What a kernel is made of: the state that the runtime's registry keeps for each operator.
typedef struct gcap_ort_registered_op {
  struct gcap_ort_factory* factory;
  const gcap_ort_op_t* op;
} gcap_ort_registered_op_t;

// A factory. `abi` is first, so that the runtime's pointer is ours.
typedef struct gcap_ort_factory {
  gcap_ort_ep_factory_t abi;
  gcap_ort_host_t host;
  const gcap_ort_plugin_t* plugin;
  gcap_ort_kernel_registry_t* registry;  // of the operators
  gcap_ort_registered_op_t* registered;
  gcap_ort_device_t devices[GCAP_ORT_MAX_DEVICES];
  int num_devices;
  pthread_mutex_t mutex;            // of the rest; a leaf, but for the affine sets of EPs
  struct gcap_ort_stream* streams;  // that live
  struct gcap_ort_session_ep* eps;  // that live
} gcap_ort_factory_t;

// Parts of what a run uses. A list that grows.
typedef struct gcap_ort_holds {
  gcap_hold_t** at;
  size_t count;
  size_t room;
} gcap_ort_holds_t;

// What the EP knows of one thread's run. ONNX Runtime does not tell OnRunEnd what became of the kernels, so they do.
typedef struct gcap_ort_run {
  bool open;                  // between OnRunStart and OnRunEnd
  struct gcap_ort_run* next;  // of the EP's open runs
  struct gcap_ort_session_ep* ep;
  bool captures;  // the run is being captured
  gcap_run_options_t options;
  gcap_run_t asked;  // the run as the runtime was told
  int previous_device;
  int64_t start_ns;
  gcap_run_resources_t resources;  // of the thread, while the run is open
  gcap_status_t failure;           // the first one of a kernel or copy; the run's
  int num_computed;                // kernels that were called
  uint64_t releases_seen;          // the last release that this thread took part in
  int attempts;                    // runs in a row that left the id without a graph
  bool settled;                    // this call of the application needs no further run
  pthread_mutex_t holds_mutex;     // of `holds`, to which other threads add with ORT_PARALLEL; a leaf
  gcap_ort_holds_t* holds;         // parts of the plans of its eager work; NULL: none yet
} gcap_ort_run_t;

// The ids that were released, for threads that have graphs of their own: each gives up its own when it comes by.
typedef struct gcap_ort_releases {
  pthread_mutex_t mutex;         // a leaf
  atomic_uint_fast64_t last;     // the number of the last release; 0: none yet
  struct gcap_ort_release* ids;  // each once, with the number of its last release
  size_t count;
  size_t room;
} gcap_ort_releases_t;

// The right to use the stream that all threads of an EP share (turn.h).
typedef struct gcap_ort_turn {
  pthread_mutex_t mutex;  // of the others; a leaf
  pthread_cond_t given_up;
  bool is_taken;
  bool is_runs;  // by a run
} gcap_ort_turn_t;

// What a kernel reads on the host and a run brings, such as an input of the model. The names are cut if they are long.
typedef struct gcap_ort_content {
  char reader[256];  // "node 'clip' (Clip)"; empty: no kernel reads such content
  char value[256];
} gcap_ort_content_t;

// An EP. `abi` is first.
typedef struct gcap_ort_session_ep {
  gcap_ort_ep_t abi;
  gcap_ort_factory_t* factory;
  struct gcap_ort_session_ep* next;  // of the factory's
  const gcap_ort_device_t* device;
  gcap_options_t options;
  gcap_ep_t* ep;
  gcap_runtime_t* runtime;     // of `ep`
  gcap_affine_t* runs;         // each thread's gcap_ort_run_t
  pthread_mutex_t open_mutex;  // of `open_runs`; a leaf
  gcap_ort_run_t* open_runs;   // of all threads
  gcap_ort_releases_t releases;
  gcap_ort_turn_t turn;
  _Atomic(struct gcap_ort_profiler*) profiler;  // NULL: none
  bool leaves_nodes;                            // to other EPs, but for those that compute shapes; if graphs are on
  _Atomic(char*) warning;                       // of what the EP leaves to other EPs, until it is logged; NULL: none
  gcap_ort_content_t content;                   // of the first node that reads such; if graphs are on
  atomic_int num_kernels;                       // that live: a run computes each of them once
  atomic_int references;  // the session's, and one for each allocator, whose tensors may outlive the session
} gcap_ort_session_ep_t;

static inline bool gcap_ort_captures_graphs(const gcap_ort_session_ep_t* ep) {
  gcap_runtime_info_t info;
  gcap_runtime_get_info(ep->runtime, &info);
  return info.is_graph_capture_enabled;
}

#endif  // GCAP_ORT_OBJECTS_H_
