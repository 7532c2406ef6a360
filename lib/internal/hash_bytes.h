// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// hash_bytes.h: a hash over bytes (FNV-1a), to tell whether they are others now.
#ifndef GCAP_LIB_INTERNAL_HASH_BYTES_H_
#define GCAP_LIB_INTERNAL_HASH_BYTES_H_

#include <stddef.h>
#include <stdint.h>

#define GCAP_HASH_OF_NOTHING UINT64_C(14695981039346656037)

// The hash of what `hash` is of, and of the bytes behind.
static inline uint64_t gcap_hash_bytes(uint64_t hash, const void* bytes, size_t count) {
  const unsigned char* at = (const unsigned char*)bytes;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ at[i]) * UINT64_C(1099511628211);
  return hash;
}

#endif  // GCAP_LIB_INTERNAL_HASH_BYTES_H_
