// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Tables of any version: what is required, and what goes together.
//
// Locking: none; all is the caller's.

#include "lib/runtime/table.h"

#include "lib/internal/sized.h"

static gcap_status_t missing(const char* member, const char* rule) {
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gcap_runtime_ops_t: member %s is NULL; %s", member, rule);
}

static gcap_status_t check_pairs(const gcap_runtime_ops_t* ops) {
  const struct {
    const char *first, *second, *rule;
    bool has_first, has_second;
  } pairs[] = {
      {"begin_run", "end_run", "begin_run and end_run go together", ops->begin_run != NULL, ops->end_run != NULL},
      {"can_copy", "copy_tensors", "can_copy and copy_tensors go together", ops->can_copy != NULL,
       ops->copy_tensors != NULL},
      {"fork", "join", "fork and join go together", ops->fork != NULL, ops->join != NULL},
  };
  for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); ++i) {
    if (pairs[i].has_first == pairs[i].has_second) continue;
    return missing(pairs[i].has_first ? pairs[i].second : pairs[i].first, pairs[i].rule);
  }
  return NULL;
}

gcap_status_t gcap_runtime_ops_read(const gcap_runtime_ops_t* given, gcap_runtime_ops_t* out_ops) {
  *out_ops = (gcap_runtime_ops_t){0};
  GCAP_RETURN_IF_ERROR(gcap_sized_read_table("gcap_runtime_ops_t", given, sizeof(*out_ops), out_ops));
  if (out_ops->get_resources == NULL) return missing("get_resources", "it is required");
  if (out_ops->synchronize == NULL) return missing("synchronize", "it is required");
  return check_pairs(out_ops);
}

const char* gcap_runtime_ops_missing_to_capture(const gcap_runtime_ops_t* ops) {
  if (ops->begin_run == NULL) return "begin_run and end_run";
  if (ops->replay == NULL) return "replay";
  return ops->is_captured == NULL ? "is_captured" : NULL;
}
