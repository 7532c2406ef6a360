// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// resources.h: what a session's thread may use of each EP: turns, streams and memory, the current device.
#ifndef GCAP_KIT_SESSION_RESOURCES_H_
#define GCAP_KIT_SESSION_RESOURCES_H_

#include "kit/session/parts.h"

// The calling thread's resources of an EP, all of them: what an implementer leaves out is named here instead of
// followed later. All NULL for an EP that runs on the host.
//   INVALID_ARGUMENT  the EP left one NULL
//   errors of the EP
gcap_status_t gcap_session_get_resources(const gcap_session_parts_t* parts, int ep,
                                         gcap_run_resources_t* out_resources) GCAP_NODISCARD;

// Waits for the calling thread's work on an EP; an EP that runs on the host has done its work.
//   errors of gcap_runtime_synchronize
gcap_status_t gcap_session_synchronize(const gcap_session_parts_t* parts, int ep) GCAP_NODISCARD;

// A turn of each EP that is used, one after the other in the same order for all sessions, so that two sessions do not
// wait for each other.
void gcap_session_begin_turns(const gcap_session_parts_t* parts);
void gcap_session_end_turns(const gcap_session_parts_t* parts);

// The same for a scope, so that the turns end also when a kernel's compute does not return:
//   GCAP_AT_SCOPE_END(gcap_session_leave_turns) const gcap_session_parts_t* turns = gcap_session_enter_turns(parts);
static inline const gcap_session_parts_t* gcap_session_enter_turns(const gcap_session_parts_t* parts) {
  if (parts->takes_turns) gcap_session_begin_turns(parts);
  return parts;
}
static inline void gcap_session_leave_turns(const gcap_session_parts_t** entered) {
  if ((*entered)->takes_turns) gcap_session_end_turns(*entered);
}

// The next work of `later` comes after what `earlier` was given so far. Outside of captures.
//   errors of gcap_notification_create, gcap_notification_record and gcap_notification_wait
gcap_status_t gcap_session_order(gcap_stream_t* earlier, gcap_stream_t* later) GCAP_NODISCARD;

// --- The current device ---------------------------------------------------------------------------------------------

// Makes the devices of the EPs current in turn, and at last again the one that was.
// Thread: one. Zero means: nothing entered.
typedef struct gcap_device_visit {
  bool is_there;
  int device_id, previous;
} gcap_device_visit_t;

gcap_status_t gcap_device_visit_enter(gcap_device_visit_t* visit, const gcap_session_parts_t* parts,
                                      int ep) GCAP_NODISCARD;
gcap_status_t gcap_device_visit_leave(gcap_device_visit_t* visit) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_RESOURCES_H_
