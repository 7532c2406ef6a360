// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// script.h: where a rehearsal's blocks lay, so that those of the capture lie there too.
#ifndef GCAP_LIB_SCRATCH_SCRIPT_H_
#define GCAP_LIB_SCRATCH_SCRIPT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// One allocation of a rehearsal.
typedef struct gcap_scratch_place {
  char* base;
  size_t asked_bytes;  // in granules, with red zones
  size_t bytes;        // of the block, which may have been handed out whole
} gcap_scratch_place_t;

// Of one reservation. All zero: empty. The arena is locked.
typedef struct gcap_scratch_script {
  uint64_t work;  // whose captures it is of, as gcap_capture_hooks_t says; 0: nobody's
  gcap_scratch_place_t* places;
  size_t count, room;
  size_t next;        // the place of the next allocation
  bool is_open;       // the reservation is open in a capture of the work
  bool is_rehearsal;  // the last such capture was a rehearsal, so the next one follows
  bool is_complete;   // that rehearsal succeeded
} gcap_scratch_script_t;

// The reservation is opened in a capture of `work`. The script of another work is dropped for a rehearsal's, and
// otherwise left as it is.
void gcap_scratch_script_open(gcap_scratch_script_t* script, uint64_t work, bool is_rehearsal);
// The reservation is closed, which a capture did that succeeded, or did not.
void gcap_scratch_script_close(gcap_scratch_script_t* script, bool committed);
// Where the next allocation, of `asked_bytes`, lay in the rehearsal; NULL: the rehearsal had no such allocation.
const gcap_scratch_place_t* gcap_scratch_script_find(const gcap_scratch_script_t* script, size_t asked_bytes);
// Notes where the next allocation lies. Without host memory the rest of the script is lost.
void gcap_scratch_script_note(gcap_scratch_script_t* script, const gcap_scratch_place_t* place);
void gcap_scratch_script_deinit(gcap_scratch_script_t* script);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_SCRATCH_SCRIPT_H_
