// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// atomics.h: <stdatomic.h> for headers that C++ tests read too. C++ has the same header from C++23 on; this is as much
// of it as scratch's headers need. The layout of std::atomic is that of _Atomic.
#ifndef GCAP_LIB_SCRATCH_ATOMICS_H_
#define GCAP_LIB_SCRATCH_ATOMICS_H_

#ifdef __cplusplus

#include <atomic>

#define _Atomic(type) std::atomic<type>
using std::atomic_bool;
using std::atomic_load_explicit;
using std::atomic_signal_fence;
using std::atomic_size_t;
using std::atomic_store_explicit;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

#else

#include <stdatomic.h>

#endif
#endif  // GCAP_LIB_SCRATCH_ATOMICS_H_
