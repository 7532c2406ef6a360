// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Tables of any version: what is required, and what contradicts.
//
// Locking: none; all is the caller's.

#include "kit/ep/table.h"

#include "lib/internal/sized.h"

static gcap_status_t missing(const char* name, const char* member, const char* rule) {
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "EP '%s': member %s is NULL; %s", name, member, rule);
}

static gcap_status_t check(const gcap_ep_ops_t* ops) {
  if (ops->name == NULL) return missing("", "name", "it is required");
  if (ops->supports == NULL) return missing(ops->name, "supports", "it is required");
  if (ops->create_kernel == NULL) return missing(ops->name, "create_kernel", "it is required");
  if (ops->runtime == NULL && !ops->runs_on_host) {
    return missing(ops->name, "runtime", "it is required unless runs_on_host is true");
  }
  if (ops->runtime != NULL && ops->runs_on_host) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "EP '%s': runs_on_host is true and runtime is set; a runtime is for kernels on a device",
                       ops->name);
  }
  return NULL;
}

gcap_status_t gcap_ep_ops_read(const gcap_ep_ops_t* given, gcap_ep_ops_t* out_ops) {
  *out_ops = (gcap_ep_ops_t){0};
  GCAP_RETURN_IF_ERROR(gcap_sized_read_table("gcap_ep_ops_t", given, sizeof(*out_ops), out_ops));
  return check(out_ops);
}
