// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_taps.h: values inside of a graph. At a label the work copies a buffer aside, in eager runs and in replays
// alike, and a run that asks gets the copies on the host (gcap_run_t.taps). docs/graphs.md has an example.
#ifndef GCAP_GRAPH_TAPS_H_
#define GCAP_GRAPH_TAPS_H_

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "gcap/api.h"
#include "gcap/run.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Copies `bytes` at `address` aside, as they are at this place of `stream`, which is the run's, or one that was forked.
// `label` has 1 to 63 bytes, and is copied. For the work of a run.
//
// In a capture the copy is a node. Its memory comes from the device, counts in gcap_graph_info_t.bytes, plans and the
// budget, and goes with the graph: a release or an eviction frees it, and a run reads it before. Rehearsals make the
// same taps as the capture, and share that memory, which does not move; the address may be in a buffer that moves. The
// graph has the node whether a run asks or not, so work that is not looked at makes no taps. A run with capture_only
// makes the node, and has nothing to read.
//
// In an eager run whose gcap_run_t.taps has the label the bytes go to the host at once; a copy to pageable memory waits
// for the stream. In any other eager run, and outside of runs, the call does nothing.
//
// A label that is used twice in a run is two copies, and a run reads the last one; on streams that nothing orders that
// may be either. The next capture of an id may have other labels and sizes. A run that is verified (graph_verify.h)
// compares each tap of the replay with that of the work, before any buffer.
//
// A failure in a capture fails the capture, whatever the work makes of it.
//   INVALID_ARGUMENT     no label, or one that is too long; no address; or no bytes
//   FAILED_PRECONDITION  called by the function of a hole or of a guard; the capture is no run of a graph manager; or
//                        the stream is not in the capture, or is in one of somebody else's
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           no device memory, or the copy was refused
GCAP_API gcap_status_t gcap_graph_tap_issue(cudaStream_t stream, const char* label, const void* address,
                                            size_t bytes) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_TAPS_H_
