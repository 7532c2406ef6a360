// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap.h: the rules that hold for every gcap header, and all headers of the core at once.
//
// Core.      The core is for any program that captures: statuses, the log, tensors, streams, capture, contents of
//            graphs, the graph manager, buckets, allocators, scratch, options, and the runtime. From 1.0 on no minor version
//            breaks a program that uses the core. Until then a minor version may, and CHANGELOG.md says where. The core
//            does not use the kit (gcap/kit/kit.h), which has models, EPs, sessions and operators.
// Status.    A function that fails rarely returns a gcap_status_t: NULL is success, another value is a failure that the
//            caller owns (gcap/status.h). The code says what to do next.
// Outputs.   Output arguments come last, are called out_*, are set to NULL or zero first, and stay so on failure.
// Structs.   A sized struct, such as an options struct, begins with struct_size, so that a program and a library of
//            different versions agree. Call its _init function first, which sets the size and the defaults. If the
//            program's struct is smaller than the library's, the fields that the program does not know have their
//            defaults. If it is larger, the fields that the library does not know must be zero; zero is the default of
//            every field that a later version appends. A struct that was not initialized is refused with
//            INVALID_ARGUMENT; the message names the struct and its _init function. A _get function sets the size of
//            the struct that it fills in.
// Names.     create/destroy: a heap object. open/close/release: a reservation. init: a plain struct. Sizes are in bytes
//            (…_bytes), times in nanoseconds (…_ns).
// Ends.      A function that ends an object, such as a destroy, answers in one of three ways. NULL: the object is gone.
//            LEAKED: the object is gone too, but a part of it could not be ended; the message names that part, which is
//            kept until the process ends. Any other code: the object is whole, and may be used or ended again. A
//            callback that runs inside the end of an object must not use that object, unless the header says what
//            happens then.
// NULL.      Every destroy and free accepts NULL. Any other function that returns a status refuses a NULL argument with
//            INVALID_ARGUMENT and names the argument, unless the function's comment says what NULL means.
//            Getters must not be passed NULL.
// Threads.   Each type's comment has a "Thread:" line. "Thread-safe" means any number of threads at once.
// Capture.   Each type's comment has a "Capture:" line: what is legal while a stream of the calling thread is being
//            captured. A gcap call that would break a capture returns FAILED_PRECONDITION and does not disturb it.
// Lifetime.  Each type's comment has a "Lifetime:" line: who owns the object and what the object must outlive.
// CUDA.      gcap compiles against the CUDA runtime API and links no runtime: the program chooses NVIDIA's, or the
//            simulator in sim/. When gcap turns a CUDA error into a status, it clears the thread's last error.
// Throwing.  A C++ exception may leave the work of a run (gcap_work_t), the function of a guard or of a hole, those of
//            a verification (graph_guards.h, graph_holes.h, graph_verify.h) and a kernel's compute. The run then ends
//            as one whose work failed, turns and memory are given back, and the exception reaches the caller. This
//            needs gcap compiled with -fexceptions, as its build files do. No exception may leave another callback: a
//            release, a destroy, a close step, a log sink, an allocator's function, another member of an EP. No longjmp
//            may leave any callback. gcap/gcap.hpp carries exceptions past C instead.
// Cancel.    A thread that is cancelled (pthread_cancel, deferred) in the work of a run, in the function of a hole or
//            of a verification, or in a kernel's compute, ends the run in the same way. While gcap waits to begin a capture, in the callbacks
//            of allocators, and in the log sink, cancellation waits. Elsewhere a CUDA call inside gcap may be a
//            cancellation point, after which a lock stays held: disable cancellation around calls of gcap. Asynchronous
//            cancellation is never safe inside gcap.
// Fork.      In a child process that was forked after its parent had used gcap, neither CUDA nor gcap works: a function
//            that returns a status refuses with FAILED_PRECONDITION, and names the fork. A function that needs neither
//            a lock nor CUDA may answer as in the parent: those of statuses and options, and those that gcap/kit/kit.h
//            names. Do not call a function that returns no status, which may never return. Do not call gcap on a
//            thread that the child starts: only the thread that forked is refused. The child may exec or exit. A
//            program that forks first, and uses gcap in the child alone, is fine.
// Signals.   No function may be called from a signal handler.
// Unload.    A shared object that gcap is linked into stays loaded until the process ends, once a thread has made
//            something of gcap: threads that used gcap exit later, and what is kept is kept in that object. Closing the
//            object is harmless. Opening the object again finds it as it was.
// Words.     docs/architecture.md has a glossary.
#ifndef GCAP_GCAP_H_
#define GCAP_GCAP_H_

#include "gcap/allocator.h"
#include "gcap/allocator_ops.h"
#include "gcap/buckets.h"
#include "gcap/capture.h"
#include "gcap/external_allocator.h"
#include "gcap/fields.h"
#include "gcap/graph.h"
#include "gcap/graph_contents.h"
#include "gcap/graph_values.h"
#include "gcap/log.h"
#include "gcap/options.h"
#include "gcap/run.h"
#include "gcap/runtime.h"
#include "gcap/runtime_ops.h"
#include "gcap/scratch.h"
#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"
#include "gcap/version.h"

#endif  // GCAP_GCAP_H_
