// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// inner.h: what other modules use of the capture module, and users do not see: whether embedded options are allowed,
// the latch for a failure that comes up, what a capture retained, and which captures are of the same work.
#ifndef GCAP_LIB_CAPTURE_INNER_H_
#define GCAP_LIB_CAPTURE_INNER_H_

#include <stdbool.h>
#include <stdint.h>

#include "gcap/capture.h"
#include "lib/base/capture_hooks.h"

#ifdef __cplusplus
extern "C" {
#endif

// Of options in the library's layout.
//   INVALID_ARGUMENT  a mode that does not exist, or more than GCAP_CAPTURE_MAX_LEDGER_CALLS
gcap_status_t gcap_capture_options_check(const gcap_capture_options_t* options) GCAP_NODISCARD;

// As gcap_capture_fail, for who hands a failure on that may be in the latch already: one that was latched where it was
// made, and came up with prefixes before its message, is counted once.
void gcap_capture_fail_once(gcap_capture_t* capture, gcap_status_t cause);

// Returns `retained`, of which the caller is an owner from now on, too: for who must call its callbacks without a lock
// while another thread may let go of it. Each owner lets go with gcap_retained_release; the last one runs the releases.
// NULL stays NULL.
gcap_retained_t* gcap_retained_share(gcap_retained_t* retained);

// The sum of what `bytes` of each entry (gcap_capture_retain) answers now; 0 for NULL.
size_t gcap_retained_bytes(const gcap_retained_t* retained);

// Calls `visit` with the `user` of each entry. NULL has none.
void gcap_retained_each(const gcap_retained_t* retained, void (*visit)(void* context, const void* user), void* context);

// As gcap_capture_retain, of device memory. `list`: NULL for what lists none.
gcap_status_t gcap_capture_retain_memory(gcap_capture_t* capture, void (*release)(void* user),
                                         size_t (*bytes)(void* user), gcap_retained_list_t list,
                                         void* user) GCAP_NODISCARD;
// Calls `visit` with each piece of device memory that an entry lists. NULL has none.
void gcap_retained_list(const gcap_retained_t* retained, void (*visit)(void* context, void* address, size_t bytes),
                        void* context);

// The scope captures `work`, which is not 0; a rehearsal is followed by another scope of the same work and stream,
// whose scratch is to lie where this one's does.
void gcap_capture_set_work(gcap_capture_t* capture, uint64_t work, bool is_rehearsal);

// What the events of the scope call its work. A longer text is cut.
#define GCAP_CAPTURE_LABEL_BYTES 128
void gcap_capture_set_label(gcap_capture_t* capture, const char* label);

// What a graph manager keeps for the run that the scope captures, and what the scope's thread finds there while the
// work is issued. NULL: the scope is no run's.
void gcap_capture_set_owner(gcap_capture_t* capture, void* owner);
void* gcap_capture_owner(const gcap_capture_t* capture);

// The device of the scope's stream.
int gcap_capture_device(const gcap_capture_t* capture);

// Ends the graph that the scope has captured so far and begins the next one, on the same stream: what runs between the
// launches of the two is nobody's capture. The scope stays as it is, with its latch, its close steps and what it
// retains; but its other streams have left it, and are forked again. `name`: of what comes between, for messages. A
// failure sets the latch, and the scope goes on capturing what is issued, unless gcap_capture_is_left.
//   FAILED_PRECONDITION  a stream has work that was not joined; the message names each with its last call
//   CUDA_ERROR           the driver refused the end, or the begin
//   others               the capture had failed already: a copy of its first failure
gcap_status_t gcap_capture_split(gcap_capture_t* capture, const char* name, cudaGraph_t* out_graph) GCAP_NODISCARD;
// A part of the work that a capture may refuse, and that is looked at behind it. While one is open gcap_capture_begin
// is refused on the scope's thread: it would abort the scope.
typedef struct gcap_capture_attempt {
  gcap_capture_t* capture;           // NULL: not begun
  bool is_over;                      // the part closed the scope, which is gone
  struct gcap_capture_steps* steps;  // of the scope: the part is one step, as where it is called between two graphs
} gcap_capture_attempt_t;

// Begins an attempt, which stays where it is until its end. `name`: of the hole, for messages.
//   others  the capture had failed already: its first failure, and there is no attempt
gcap_status_t gcap_capture_attempt_begin(gcap_capture_t* capture, const char* name,
                                         gcap_capture_attempt_t* attempt) GCAP_NODISCARD;
// Ends it. NULL: the capture goes on as it was before. Else what the part did to it:
//   CAPTURE_INVALIDATED  the capture is broken, or closed; or work was given to a stream that is not in the capture
//   FAILED_PRECONDITION  the part left work of a stream unjoined that was not before; the message names each
//   others               the failure that the latch has
gcap_status_t gcap_capture_attempt_end(gcap_capture_attempt_t* attempt, const char* name) GCAP_NODISCARD;
// Whether this thread has one open.
bool gcap_capture_is_in_attempt(void);

// Whether a split left the stream without a capture. What was issued since ran at once, if anything was.
bool gcap_capture_is_left(const gcap_capture_t* capture);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_CAPTURE_INNER_H_
