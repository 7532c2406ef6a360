// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_buffers.h: buffers that may be elsewhere at each replay (gcap_run_t.buffers).
//
// A captured graph works on the addresses of its capture. With these functions an id is captured together with the
// buffers that it reads and writes, and each replay may be given other ones: without a new capture, and without a copy.
//
// The work is captured twice. In the rehearsal the buffers are at stand-ins, which are addresses of the same alignment;
// nothing is executed. Then the work is captured at the buffers' own addresses. A word of a node's arguments that
// differs by exactly the distance of one buffer is a pointer into that buffer. Anything else that differs makes the
// graph not movable: the graph replays, but on the buffers of its capture alone, and GCAP_GRAPH_WHY_NOT_MOVABLE names
// the node, the argument and both values. Arguments of kernels, copies and fills are read, in forks and in child graphs
// too, and those of cuBLAS and cuDNN kernels.
//
// A pointer that lies in device memory, such as an array of pointers, cannot be seen: a graph that reads such a pointer
// uses the old buffer after a bind. A capture logs a warning for each buffer that no argument points into.
// docs/graphs.md says what else does not move, and what to do.
#ifndef GCAP_GRAPH_BUFFERS_H_
#define GCAP_GRAPH_BUFFERS_H_

#include <stddef.h>

#include "gcap/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

// Binds one buffer of the graph of `id` to another address: later replays use that address. `buffer`: its index in
// gcap_graph_buffers_t.items. Launches in flight keep the address that they had. Only nodes with a pointer into the
// buffer are touched, at about half a microsecond each. The caller keeps the memory alive until the launches are done.
//   NOT_FOUND            the id is not captured
//   INVALID_ARGUMENT     no such buffer; an address that is NULL, is misaligned, is of another device or kind of memory
//                        than the captured one, or has less memory behind it than the buffer has bytes
//   FAILED_PRECONDITION  the calling thread is capturing; the graph was captured without buffers; or the graph cannot
//                        be moved, and the address is not the present one: the message says why
//   CUDA_ERROR           the driver refused a node, and all are as before. If they could not be set back, the id is
//                        STALE: it is captured again by its next run
GCAP_API gcap_status_t gcap_graph_manager_bind(gcap_graph_manager_t* manager, int id, size_t buffer,
                                               void* address) GCAP_NODISCARD;

// Finds pointers that a bind does not reach, such as those in device memory: for debugging. Launches the graph of `id`
// on its buffers, then on copies of them, while the buffers hold other bytes, and compares. So what the graph does
// besides writing its buffers happens twice. Afterwards the buffers have the contents and the addresses that they had.
// Buffers that are not in device memory stay in place. Takes three times the buffers' memory meanwhile. Nobody else
// uses the id or its buffers until the function returns.
//   NOT_FOUND            the id is not captured
//   FAILED_PRECONDITION  the graph reads or writes a buffer that it was moved from, or does not do the same twice; the
//                        message names the buffer. Or the calling thread is capturing; the graph was captured without
//                        buffers; or it cannot be moved
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           no device memory, or a copy or a launch failed. The message says if the buffers could not be
//                        restored
GCAP_API gcap_status_t gcap_graph_manager_check_moves(gcap_graph_manager_t* manager, int id) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_BUFFERS_H_
