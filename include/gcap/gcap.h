// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap.h: the rules that hold for every gcap header, and all the headers at once.
//
// Status.    A function that fails rarely returns a gcap_status_t: NULL is success, another value is a failure that the
//            caller owns (gcap/status.h). The code says what to do next.
// Outputs.   Output arguments come last, are called out_*, are set to NULL or zero first, and stay so on failure.
// Options.   The _init function of an options struct sets its size and the defaults. A struct that may grow begins with
//            struct_size, so that a program and a library of different versions agree. A struct whose size was not set
//            is an INVALID_ARGUMENT.
// Names.     create/destroy: a heap object. open/close/release: a reservation. init: a plain struct. Sizes are in bytes
//            (…_bytes), times in nanoseconds (…_ns).
// NULL.      Every destroy and free accepts NULL. Elsewhere a function that returns a status answers a NULL argument
// with
//            INVALID_ARGUMENT naming the argument, unless its comment says what NULL means. scratch.h checks only what
//            it says. Getters must not be passed NULL.
// Threads.   Each type's comment has a "Thread:" line. "Thread-safe" means any number of threads at once.
// Capture.   Each type's comment has a "Capture:" line: what is legal while a stream of the calling thread is being
//            captured. A gcap call that would break a capture returns FAILED_PRECONDITION and does not disturb it.
// Lifetime.  Each type's comment has a "Lifetime:" line: who owns the object and what the object must outlive.
// CUDA.      gcap compiles against the CUDA runtime API and links no runtime: the program chooses NVIDIA's, or the
//            simulator in sim/. When gcap turns a CUDA error into a status, it clears the thread's last error.
// Words.     docs/architecture.md has a glossary.
#ifndef GCAP_GCAP_H_
#define GCAP_GCAP_H_

#include "gcap/allocator.h"
#include "gcap/allocator_ops.h"
#include "gcap/capture.h"
#include "gcap/ep.h"
#include "gcap/ep_ops.h"
#include "gcap/external_allocator.h"
#include "gcap/graph.h"
#include "gcap/log.h"
#include "gcap/options.h"
#include "gcap/runtime.h"
#include "gcap/scratch.h"
#include "gcap/session.h"
#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/thread_context.h"
#include "gcap/version.h"

#endif  // GCAP_GCAP_H_
