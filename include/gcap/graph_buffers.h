// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_buffers.h: buffers that may be elsewhere at each replay (gcap_run_t.buffers).
//
// A captured graph works on the addresses of its capture. With these functions an id is captured together with the
// buffers that it reads and writes, and each replay may be given other ones: without a new capture, and without a copy.
//
// The work is captured up to three times. In one or two rehearsals the buffers are at stand-ins, which are other
// addresses of the promised alignment; nothing is executed. Then the work is captured at the buffers' own addresses. A
// word of a node's arguments is a pointer into a buffer if its value is in the buffer, or at its end, in each of the
// captures, at the same distance from the buffer's address. Arguments of kernels, copies and fills are read, in forks
// and in child graphs too, and those of cuBLAS and cuDNN kernels.
//
// A graph is moved only where this proves that a capture would have the same arguments. It cannot be moved, and
// GCAP_GRAPH_WHY_NOT_MOVABLE names the node, the argument and the values, if
//   - anything else differs between the captures: another word, a kernel, a grid, a number of nodes, the bytes that a
//     copy reads on the host;
//   - an argument at any byte, the range of a copy or a fill, or the source of a copy from the host, has an address in
//     a buffer, or at its end, and that address does not move (see below for a block right behind a buffer);
//   - no argument points into a buffer, and gcap_graph_buffers_t.may_be_unused does not allow that;
//   - there is a host function, and gcap_graph_buffers_t.host_functions_may_stay does not allow that;
//   - the driver does not change one of the nodes in an executable, such as a copy of two dimensions. A kernel that
//     copies the rows moves.
// Such a graph replays on the buffers of its capture alone. Runs on other buffers are eager.
//
// Where a block of memory begins at the end of a buffer, one address is both. The work may mean the block, or the end
// of the buffer as the work kept that end from an earlier run: both look the same in all captures, so the graph cannot
// be moved. Leave a byte between the two, or name the block as a buffer, which need never move. Scratch that the work
// takes in its captures is known to be the graph's own, and does no harm.
//
// How the buffers lie to one another is a part of what was captured:
//   - buffers that share a byte, or are equal, keep their distance: they move together, by one distance;
//   - buffers that share no byte in the capture share none later;
//   - buffers that do not touch in the capture, one ending where the other begins, do not touch later. Those that touch
//     may come apart, since they are apart at the stand-ins.
//   - no buffer comes onto other memory that the graph has an address in, as no buffer of the capture is there.
// A run on buffers that lie otherwise than those of all graphs of its id is captured as another variant of the id, next
// to those for other guards (graph_guards.h): in place, apart, and overlapping are three graphs. A run gets the newest
// whose buffers lie as the run's. GCAP_GRAPH_WHY_OTHER_VARIANT names two buffers. A run on other memory of the graph,
// and one that lies otherwise where the id has max_variants graphs (gcap_graph_manager_options_t), is eager:
// gcap_run_result_t.why_eager is NOT_MOVABLE, and GCAP_GRAPH_WHY_EAGER names what is in the way. A run without buffers
// is refused where several graphs with buffers are right for that run: each has its own. So is one where the graph of
// the last buffers was evicted, and another one is left, until a run names buffers again.
//
// A pointer that lies in device memory, such as an array of pointers, cannot be seen if the buffer has another pointer
// among the arguments: a graph that reads such a pointer uses the old buffer after a bind. check_moves finds those.
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
// buffer are touched, at less than half a microsecond each. The caller keeps the memory alive until the launches are
// done.
//   NOT_FOUND            the id is not captured
//   INVALID_ARGUMENT     no such buffer; an address that is NULL, is misaligned, is of another device or kind of memory
//                        than the captured one, or has less memory behind it than the buffer has bytes
//   FAILED_PRECONDITION  the calling thread is capturing; the graph was captured without buffers, or is in one of its
//                        holes; the id has several graphs (graph_guards.h); or the address is not the present one, and
//                        the graph cannot be moved, or the buffers would not lie to one another as in the capture: the
//                        message says why. Buffers that share a byte are moved by a replay with all buffers
//                        (gcap_run_t.buffers)
//   CUDA_ERROR           the driver refused a node, and all are as before. If they could not be set back, the id is
//                        STALE: it is captured again by its next run
GCAP_API gcap_status_t gcap_graph_manager_bind(gcap_graph_manager_t* manager, int id, size_t buffer,
                                               void* address) GCAP_NODISCARD;

// Finds pointers that a bind does not reach, such as those in device memory: for debugging. Launches the graph of `id`
// on its buffers, then on copies of them, and compares. During the second launch other bytes are where the buffers are,
// and where they have been: at the capture, and at the last 64 other places of binds and replays since. So what the
// graph does besides writing its buffers happens twice. Afterwards all of that memory has its bytes, and the buffers
// have their addresses. Memory of which the driver says that it was freed since is left alone, and a pointer to it is
// not found. Buffers that are not in device memory stay in place. Takes three times that memory meanwhile.
//
// The caller guarantees that until the function returns nobody else uses the id, its buffers, or the memory where its
// buffers have been: that memory may be somebody else's by now.
//   NOT_FOUND            the id is not captured
//   FAILED_PRECONDITION  the graph reads or writes memory that it was moved from, or does not do the same twice; the
//                        message names the buffer. Or the calling thread is capturing; the graph was captured without
//                        buffers; it cannot be moved; it has holes; or the id has several graphs
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           no device memory, or a copy or a launch failed. The message says if the memory could not be
//                        restored
GCAP_API gcap_status_t gcap_graph_manager_check_moves(gcap_graph_manager_t* manager, int id) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_BUFFERS_H_
