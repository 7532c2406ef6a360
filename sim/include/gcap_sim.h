// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap_sim.h: what the simulator offers beyond CUDA's own API: CPU twins of kernels, schedules, checks, injected
// faults, a call log. The manual is sim/README.md.
//
// Only tests and kernel twins include this header. Library code never does: it must not know whether it runs on the
// simulator.
//
// Environment, read once at the first call:
//   GCAP_SIM_SEED          see gcap_sim_set_seed; 0 by default
//   GCAP_SIM_SCHEDULE      `random` (default) lets a seeded generator move queues at API calls, `lazy` runs only what a
//                          synchronisation needs, and a step after the answer of a query, `eager` runs at each call
//                          all that the calls before it made ready
//   GCAP_SIM_DEVICES       number of devices, 1 (default) to 8
//   GCAP_SIM_DEVICE_BYTES  memory of each device
//   GCAP_SIM_CHECKS        actions of the checks, see gcap_sim_set_action: `race=record,leak=off` or `all=record`
//   GCAP_SIM_SUPPRESSIONS  a file of suppressions, one a line: `check:name # reason`
//   GCAP_SIM_STACKS        frames kept of the call stack of each call that makes work, 0 to 32
//   GCAP_SIM_MISSING_TWIN  what becomes of kernels without a twin: `stop` (default) or `skip`
//   GCAP_SIM_LOG           a filter: tells on stderr each call that it selects, see gcap_sim_set_log
//   GCAP_SIM_EXPLORE       the one seed that gcap_sim_explore runs
#ifndef GCAP_SIM_H_
#define GCAP_SIM_H_

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>  // the simulator's, or NVIDIA's where the program has these before it

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)  // the simulator itself is compiled with -fvisibility=hidden

// The third kind of access, beside a read (0) and a write (1): an update by atomic operations alone. Updates race with
// reads and writes, and not with one another.
#define GCAP_SIM_ATOMIC 2

// One byte range that an operation reads, writes or updates. `bytes` may be 0.
typedef struct gcap_sim_access {
  const void* address;
  size_t bytes;
  int is_write;  // 0, 1 or GCAP_SIM_ATOMIC
} gcap_sim_access_t;

// The launch configuration a twin runs under.
typedef struct gcap_sim_launch {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  dim3 cluster;  // blocks; 1, 1, 1 without clusters
  int device;    // on which it runs
} gcap_sim_launch_t;

// A kernel's CPU twin: what `cudaLaunchKernel(function, …)` or `kernel<<<…>>>(…)` runs here.
// Thread:   register from any thread, normally from a constructor function before main.
// Lifetime: copied at registration; the functions, arrays and strings it points to must live as long as the program. So a
//           library that registers twins is never unloaded: link it with `-z nodelete`.
typedef struct gcap_sim_kernel {
  // The handle that callers pass to cudaLaunchKernel: the address of the host stub. NULL: that of the kernel which nvcc
  // compiled under `name`.
  const void* function;
  // Shown in reports and graph dumps. Without `function`: the kernel's name as nvcc mangles it, or as people write it:
  // `ns::k<float>` or, for one of several overloads, `ns::k<float>(float*, int)`.
  const char* name;
  const size_t* arg_bytes;  // size of each argument: arguments are copied at the launch, as CUDA copies them
  size_t num_args;
  // Computes the whole grid. `args[i]` points to the copied argument i.
  void (*run)(const gcap_sim_launch_t* launch, void* const* args);
  // Tells which bytes this launch touches; writes up to `capacity` entries and returns how many there are. NULL: nobody
  // knows. Such a launch is not checked, and all memory that exists when it runs may be written by it.
  size_t (*accesses)(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity);
} gcap_sim_kernel_t;

// Registers a twin. Stops the program with a message when `function`, or `name` without it, has a twin already; and
// when nvcc compiled the kernel, at the first launch, when the arguments are not the kernel's in number or size, or the
// name fits several kernels.
void gcap_sim_register_kernel(const gcap_sim_kernel_t* kernel);

// A variable of a device, __device__ or __constant__. What nvcc compiled registers itself.
// Thread:   register from any thread, normally from a constructor function before main.
// Lifetime: copied at registration; name and first contents must live as long as the program.
typedef struct gcap_sim_symbol {
  const void* variable;  // the address that callers pass as the symbol: to cudaMemcpyToSymbol, say
  const char* name;      // by which twins ask for it
  size_t bytes;
  const void* initial;  // the first contents; NULL: all zero
} gcap_sim_symbol_t;

// Registers a variable. Stops the program with a message when the address is a registered variable's, or NULL, and
// when there is no name or size.
void gcap_sim_register_symbol(const gcap_sim_symbol_t* symbol);

// The memory of the variable on the device of the launch. For twins alone, from `run` and `accesses`. The name is the
// registered one; that of a variable which nvcc compiled is as nvcc mangles it, or as people write it: `ns::table`.
// Stops the program when there is no such variable, or when there are two.
void* gcap_sim_symbol_address(const gcap_sim_launch_t* launch, const char* name);

// What a launch of a kernel that nvcc compiled does when the kernel has no twin.
typedef enum gcap_sim_missing_twin {
  GCAP_SIM_MISSING_TWIN_STOP,  // stops the program with the kernel's name
  // Nothing runs, which stderr is told once for each kernel. By the kernel's arguments, the checks take a pointer to
  // const as read, and another pointer as written, at its first byte; what follows it in its memory has unknown
  // contents from then on. So the order of work, dead memory and captures are checked, and values are not.
  GCAP_SIM_MISSING_TWIN_SKIP
} gcap_sim_missing_twin_t;

// Sets what becomes of kernels without a twin. Also read once from GCAP_SIM_MISSING_TWIN; STOP by default. Twins are
// registered before their kernels are first launched: afterwards one stops the program.
void gcap_sim_set_missing_twin(gcap_sim_missing_twin_t action);

// How many launches of the kernel, replays included, did nothing for want of a twin; of all kernels when NULL.
// Kernels of libraries that were unloaded count.
uint64_t gcap_sim_skipped(const char* kernel);

// Sets the seed of all that is drawn: which ready queue advances at an API call, who has the next turn, which call a
// fault with a probability hits. Each has a sequence of its own. Also read once from the environment variable
// GCAP_SIM_SEED; 0 by default. One seed and one sequence of calls are one interleaving, host functions included: the
// call that comes to one waits until it has run. Only one that blocks, for 100 ms and with every other thread asleep
// (or for 2 s), is left to go on beside its caller, for it may wait for that caller.
void gcap_sim_set_seed(uint64_t seed);

// Sets the memory of a device, also below what is in use now: then nothing more can be had. 0 stands for what
// GCAP_SIM_DEVICE_BYTES says, or 8 GiB. Graphs, executables, pools and cudaMalloc share it; pinned memory does not
// count.
void gcap_sim_set_device_bytes(int device, size_t bytes);

// --- Exploration and threads ----------------------------------------------------------------------------------------

// Runs `body(user)` once for each of `seeds` seeds from `first_seed` on, under the random schedule and with the
// simulator's checks at GCAP_SIM_ACTION_RECORD meanwhile. A seed fails when the body returns non-zero, a check reports,
// or the body leaves more or fewer handles and allocations than it found. Prints the first failing seed, its reports
// and how to run it again, and stops there: with GCAP_SIM_EXPLORE=<seed> in the environment, only that seed runs.
// Returns 1 and the seed in *out_failing_seed (may be NULL), or 0 when all passed. The caller's seed and schedule are
// in force again afterwards.
int gcap_sim_explore(int (*body)(void* user), void* user, uint64_t first_seed, uint64_t seeds,
                     uint64_t* out_failing_seed);

// Turns: of the threads of a group one runs at a time, its own code included, and at each API call the seed decides who
// goes on; so several threads give one interleaving a seed. Every thread of the group calls join with its own index
// (0 to num_threads - 1) before its first call, which waits until all have joined, and leave after its last, or ends. A
// thread that blocks on something else than the simulator (a mutex, a join) must leave first, or the group would wait
// for it: after 5 s in which nobody runs it stops with a report. It may join again, but when it does so is up to the
// machine, not the seed. Threads of no group are not held up. A group can begin when all of the last one have left.
void gcap_sim_turns_begin(size_t num_threads);
void gcap_sim_turns_join(size_t index);
void gcap_sim_turns_leave(void);

// --- Checks ---------------------------------------------------------------------------------------------------------

// What the simulator looks for. Every report names both sides: the API calls with their call stacks. What is missing is
// found whatever the schedule did: by what each piece of work was told to come after, not by when it ran.
typedef enum gcap_sim_check_kind {
  GCAP_SIM_CHECK_RACE,            // two accesses to the same bytes, one of them a write, that nothing orders
  GCAP_SIM_CHECK_USE_AFTER_FREE,  // device memory touched after its free, or by work that is not ordered with it
  GCAP_SIM_CHECK_BAKED_POINTER,   // a graph whose node touches memory freed since, also when the address lives again
  GCAP_SIM_CHECK_HOST_MEMORY,     // both of these for pinned, registered and, in graphs, pageable host memory
  GCAP_SIM_CHECK_UNINITIALIZED,   // a kernel, library call or copy to the host reads bytes that nobody wrote
  GCAP_SIM_CHECK_OUT_OF_BOUNDS,   // an access that leaves the allocation it starts in; a kernel's that starts in none
  GCAP_SIM_CHECK_OVERLAP,         // two live annotated allocations that share bytes
  GCAP_SIM_CHECK_STALE_UPDATE,    // cudaGraphExecUpdate answers success and keeps what the new graph has otherwise
  GCAP_SIM_CHECK_LEAK,            // handles and allocations that are left at gcap_sim_check, and at exit
  GCAP_SIM_CHECK_CAPTURE,         // a call that breaks a capture
  GCAP_SIM_CHECK_ESCAPED_WORK,    // work of the capturing thread, during its capture, on a stream outside of it
  GCAP_SIM_CHECK_REFUSED_CALL,    // a call that answers an error for which an earlier call is the cause: a second free
  GCAP_SIM_CHECK_COUNT
} gcap_sim_check_kind_t;

typedef enum gcap_sim_action {
  GCAP_SIM_ACTION_ABORT,   // print the report and abort: the default of the checks up to STALE_UPDATE
  GCAP_SIM_ACTION_RECORD,  // print the report, keep it for gcap_sim_report, go on: the default for leaks
  GCAP_SIM_ACTION_ERROR,   // as RECORD, and the next call that synchronises answers a sticky cudaErrorIllegalAddress
  GCAP_SIM_ACTION_OFF,     // do not look
  // Print the report, the first time in the process for the same stacks, and go on: nothing is kept or counted. The
  // default of the checks after LEAK, which tell what a right program may do on purpose, such as try a capture.
  GCAP_SIM_ACTION_WARN,
  GCAP_SIM_ACTION_DEFAULT  // what the check does when nobody has asked
} gcap_sim_action_t;

// Sets what a check does; GCAP_SIM_CHECK_COUNT means all of them. While all that look at accesses are
// off nothing is kept of what happens, so when one is on again, what was before is held against nobody.
void gcap_sim_set_action(gcap_sim_check_kind_t kind, gcap_sim_action_t action);

// Drops reports of the kind in which a kernel, API call, function of a call stack or annotation has exactly this name.
// `reason` must say why that is right; it is printed with the number of reports dropped, at exit, when there are any.
void gcap_sim_suppress(gcap_sim_check_kind_t kind, const char* name, const char* reason);

// Reports every live handle and allocation made since the last gcap_sim_check as a leak (unless that check is off), and
// returns how many reports of all kinds there have been since then.
size_t gcap_sim_check(void);

// The text of the report `index`, counted from 0, of those since the last gcap_sim_check or, while there are none, of
// those that it counted; NULL past the last one. Valid until the next gcap_sim_check but one. The same two stacks are
// told of once between two checks.
const char* gcap_sim_report(size_t index);

// Tells the checks that the calling thread itself reads or writes host memory, now: a pinned buffer that a copy uses,
// say. Legal in host functions too.
void gcap_sim_host_access(const void* address, size_t bytes, int is_write);

// Tells the checks that a sub-allocator hands out [address, address + bytes) of memory it owns, for work of `stream`,
// or takes it back after the work so far of `stream`. The checks then treat it as cudaMallocAsync and cudaFreeAsync:
// overlaps, uses after the free, reads of bytes not written since, hand-outs that are not ordered after the use before.
// An access that reaches beyond a part that was given back is one of the owner. `name` is shown in reports; it must
// stay valid. While the stream captures, each adds an empty node, so that the parts live and die in every launch. Stops
// the program for no memory, and for a free of what is not handed out.
void gcap_sim_annotate_alloc(const void* address, size_t bytes, cudaStream_t stream, const char* name);
void gcap_sim_annotate_free(const void* address, cudaStream_t stream);

// --- Faults ---------------------------------------------------------------------------------------------------------

// A fault to inject. Zero means what each comment says.
typedef struct gcap_sim_fault {
  const char* function;  // NULL: calls of any function but those that only read the last error
  uint64_t nth;          // the call that fails, 1 is the next one, once; 0: each call fails with `probability`
  double probability;    // above 0 and at most 1, drawn from the seed; 0 when `nth` is set
  cudaError_t code;      // a function of the driver answers the CUresult of this number
  int sticky;            // non-zero: the device is lost with `code`, as by a kernel's fault; see gcap_sim_device_fault
} gcap_sim_fault_t;

// A kernel's fault, as an illegal address is one: called by a twin while it runs. The device stops: what is queued has
// no effect any more, host functions are not called. The next call that waits for the device, or finds its work done,
// answers `code`, and from then on every call does that needs the device, the capture calls included; what concerns the
// host alone goes on: the last error, graphs that are asked or destroyed. After a cudaDeviceReset the same calls answer
// cudaErrorDevicesUnavailable: on a GPU the process is at its end. gcap_sim_clear_faults gives the device back. Stops
// the program when no twin is running.
void gcap_sim_device_fault(cudaError_t code);

// Arms the fault beside those armed already. The call that it hits does nothing but answer. Stops the program when a
// field makes no sense, or when `function` begins with `cuda` and is not simulated.
void gcap_sim_inject(const gcap_sim_fault_t* fault);
// Disarms every fault, and gives a lost device back.
void gcap_sim_clear_faults(void);
// Shorthand: disarms every fault, then arms { function, n, code }; n == 0 only disarms.
void gcap_sim_fail_nth(const char* function, uint64_t n, cudaError_t code);

// --- Call log and counters ------------------------------------------------------------------------------------------

// Sends a line for each selected call to `sink(user, line)`, or to stderr when sink is NULL. `filter` is a list of
// names separated by commas, each with an optional `*` at its end; `-name` excludes, `errors` selects calls that fail,
// `captures` calls that change a capture's state. A filter that only excludes selects all else; NULL or "" ends the
// log. The sink must not call CUDA or the simulator.
// A line is `#call thread function(what it was given) -> code, what it did [capture of its stream]`:
//   #7 thread 1 cudaMalloc(64 bytes) -> 900 cudaErrorStreamCaptureUnsupported, invalidates capture 2: …
// It holds no addresses: one seed and the same calls give the same lines. Of a library's call it tells whether the
// runtime let it in (0) or what it answered instead; the library's own status is not known here.
void gcap_sim_set_log(const char* filter, void (*sink)(void* user, const char* line), void* user);

// Calls made so far of the named function, or of all functions when NULL. A name that is not simulated gives 0.
uint64_t gcap_sim_calls(const char* function);

// Calls made so far that a fault for any function could have hit: all but those that only read or set what the caller's
// own process has, as cudaGetLastError, which a fault hits by their name alone.
uint64_t gcap_sim_calls_for_faults(void);

// Live handles and allocations of one kind: "stream", "event", "graph", "exec", "device memory", "pinned memory",
// "cublasLt handle", "cudnn handle", … or of all kinds when NULL.
size_t gcap_sim_live(const char* kind);

#pragma GCC visibility pop

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_SIM_H_
