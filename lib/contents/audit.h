// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// audit.h: notes of whose memory a graph points into, for who knows more of the graph than its nodes.
#ifndef GCAP_LIB_CONTENTS_AUDIT_H_
#define GCAP_LIB_CONTENTS_AUDIT_H_

#include "gcap/graph_contents.h"
#include "lib/contents/contents.h"
#include "lib/contents/memory.h"
#include "lib/contents/relocation.h"

// Memory of which somebody says that it is kept while the graph replays.
typedef struct gcap_owned {
  gcap_graph_owner_t owner;
  const char* name;  // "" for none
  uintptr_t start;
  size_t bytes;
  bool is_named;  // each run names it
} gcap_owned_t;

// What is known of a graph.
typedef struct gcap_audit_subject {
  const gcap_contents_t* contents;  // with arguments; outlives the notes
  gcap_block_finder_t finder;
  const gcap_owned_t* owned;
  size_t num_owned;
  const gcap_relocation_t* relocation;  // NULL: no buffer of the graph moves
} gcap_audit_subject_t;

// As gcap_graph_notes_create, but for the graph's nodes.
gcap_status_t gcap_notes_make(const gcap_audit_subject_t* subject, gcap_graph_notes_t** out_notes);
// The buffers were moved: notes the pointers into those that are elsewhere now.
gcap_status_t gcap_notes_follow(gcap_graph_notes_t* notes, const gcap_relocation_t* relocation);
// A run named its buffers: notes the pointers into those that are other memory at the same address.
gcap_status_t gcap_notes_name(gcap_graph_notes_t* notes);

// NULL, or why the graph must not be launched: FAILED_PRECONDITION names the first finding, and tells how many more
// there are. Else as gcap_graph_audit.
gcap_status_t gcap_notes_check(const gcap_graph_notes_t* notes);

#endif  // GCAP_LIB_CONTENTS_AUDIT_H_
