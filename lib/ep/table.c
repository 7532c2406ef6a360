// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Tables of any version. A table of version 1 ends where struct_bytes begins. Later ones say how large they are: what a
// smaller one lacks is zero, and what a larger one has beyond ours is not looked at, as a host of ONNX Runtime does
// with a newer EP. So a member is only ever appended, and zero means absent.

#include "lib/ep/table.h"

#include <string.h>

#define VERSION_1_BYTES offsetof(gcap_ep_ops_t, struct_bytes)
// The smallest table of version 2 has its size, and nothing after it.
#define VERSION_2_LEAST_BYTES (VERSION_1_BYTES + sizeof(size_t))

static gcap_status_t missing(const char* name, const char* member, const char* rule) {
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "EP '%s': member %s is NULL; %s", name, member, rule);
}

static gcap_status_t check_required(const gcap_ep_ops_t* ops) {
  if (ops->name == NULL) return missing("", "name", "it is required");
  if (ops->supports == NULL) return missing(ops->name, "supports", "it is required");
  if (ops->create_kernel == NULL) return missing(ops->name, "create_kernel", "it is required");
  if (ops->runtime != NULL || ops->runs_on_host) return NULL;
  const char* rule = "it is required without a runtime";
  if (ops->get_run_resources == NULL) return missing(ops->name, "get_run_resources", rule);
  if (ops->synchronize == NULL) return missing(ops->name, "synchronize", rule);
  return NULL;
}

// What a runtime does not complete goes together.
static gcap_status_t check_pairs(const gcap_ep_ops_t* ops) {
  const struct {
    const char *first, *second;
    bool has_first, has_second;
  } pairs[] = {
      {"begin_run", "end_run", ops->begin_run != NULL, ops->end_run != NULL},
      {"can_copy", "copy_tensors", ops->can_copy != NULL, ops->copy_tensors != NULL},
      {"fork", "join", ops->fork != NULL, ops->join != NULL},
  };
  for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); ++i) {
    if (pairs[i].has_first == pairs[i].has_second) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "EP '%s': member %s is NULL; %s and %s go together", ops->name,
                       pairs[i].has_first ? pairs[i].second : pairs[i].first, pairs[i].first, pairs[i].second);
  }
  return NULL;
}

static gcap_status_t check(const gcap_ep_ops_t* ops) {
  GCAP_RETURN_IF_ERROR(check_required(ops));
  if (ops->runtime != NULL && ops->runs_on_host) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "EP '%s': runs_on_host is true and runtime is set; a runtime is for kernels on a device",
                       ops->name);
  }
  return ops->runtime == NULL ? check_pairs(ops) : NULL;
}

// How many bytes of `given` there are; only its prefix of version 1 may be read before.
static gcap_status_t size_of(const gcap_ep_ops_t* given, size_t* out_bytes) {
  *out_bytes = VERSION_1_BYTES;
  if (given->struct_version == 1) return NULL;
  *out_bytes = given->struct_version != 0 ? given->struct_bytes : 0;
  if (*out_bytes >= VERSION_2_LEAST_BYTES) return NULL;
  if (given->struct_version == 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "the EP's table has struct_version 0, allowed is 1 or more; this gcap's is %u",
                       GCAP_EP_OPS_VERSION);
  }
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "the EP's table of version %u has struct_bytes %zu, allowed is %zu or more: set "
                     "sizeof(gcap_ep_ops_t)",
                     given->struct_version, given->struct_bytes, VERSION_2_LEAST_BYTES);
}

gcap_status_t gcap_ep_ops_read(const gcap_ep_ops_t* given, gcap_ep_ops_t* out_ops) {
  *out_ops = (gcap_ep_ops_t){0};
  size_t bytes = 0;
  GCAP_RETURN_IF_ERROR(size_of(given, &bytes));
  memcpy(out_ops, given, bytes < sizeof(*out_ops) ? bytes : sizeof(*out_ops));
  return check(out_ops);
}

bool gcap_ep_ops_can_capture(const gcap_ep_ops_t* ops, const char** out_missing) {
  *out_missing = NULL;
  if (ops->runtime != NULL) return true;
  if (ops->is_graph_captured == NULL) *out_missing = "is_graph_captured";
  if (ops->replay_graph == NULL) *out_missing = "replay_graph";
  if (ops->begin_run == NULL) *out_missing = "begin_run and end_run";
  return *out_missing == NULL;
}
