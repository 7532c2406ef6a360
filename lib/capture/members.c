// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The members of a scope: an array, for a capture has a handful of streams. Locking: none, a scope belongs to its
// thread.

#include "lib/capture/members.h"

#include <stdlib.h>

#include "lib/internal/grow.h"

gcap_capture_member_t* gcap_capture_members_find(const gcap_capture_members_t* members, cudaStream_t stream) {
  for (size_t i = 0; i < members->count; ++i) {
    if (members->items[i].stream == stream) return &members->items[i];
  }
  return NULL;
}

gcap_capture_member_t* gcap_capture_members_add(gcap_capture_members_t* members, cudaStream_t stream) {
  gcap_capture_member_t* member = gcap_capture_members_find(members, stream);
  if (member != NULL) return member;
  if (!gcap_grow(&members->items, &members->capacity, members->count + 1, sizeof(*members->items))) return NULL;
  member = &members->items[members->count++];
  *member = (gcap_capture_member_t){.stream = stream, .device_id = GCAP_CAPTURE_DEVICE_UNKNOWN};
  return member;
}

void gcap_capture_members_deinit(gcap_capture_members_t* members) { free(members->items); }
