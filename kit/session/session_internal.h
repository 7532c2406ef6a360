// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// session_internal.h: a session: its parts, and its plans.
#ifndef GCAP_KIT_SESSION_SESSION_INTERNAL_H_
#define GCAP_KIT_SESSION_SESSION_INTERNAL_H_

#include <stdatomic.h>

#include "gcap/kit/session.h"
#include "kit/session/parts.h"
#include "kit/session/shape_plan.h"
#include "kit/session/shapes.h"

struct gcap_session {
  // What a replay reads comes first.
  gcap_shape_plan_t* fixed;  // of a model whose inputs have fixed shapes: the one plan
  // The main EP's runtime, if a replay by it can be all of a run: the shapes are fixed, and no EP wants a turn. Or
  // NULL.
  gcap_runtime_t* replays;
  gcap_session_parts_t parts;
  gcap_shapes_t* shapes;                       // of another model: those of the shapes that were seen
  atomic_size_t num_inside;                    // runs that call kernels now, and use the session afterwards
  atomic_size_t num_io_bindings;               // that live
  atomic_bool has_run;                         // with a graph id, so that its main EP may have graphs of it
  _Atomic(struct gcap_staging*) staging_left;  // of IO bindings that ended: what graphs or streams may still use
};

#endif  // GCAP_KIT_SESSION_SESSION_INTERNAL_H_
