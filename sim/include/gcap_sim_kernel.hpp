// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap_sim_kernel.hpp: twins in C++17. A function with the kernel's own parameters becomes a twin, and a kernel's body,
// written as a lambda, runs for each thread of the grid, with shared memory and barriers; see sim/README.md.
//
// Blocks run one after the other, and so do the threads of a block, each up to its next barrier: every run computes the
// same, and atomics may be plain. A race inside a kernel is not found. A body must not throw.
#ifndef GCAP_SIM_KERNEL_HPP_
#define GCAP_SIM_KERNEL_HPP_

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "gcap_sim.h"

#if defined(__has_feature)
#define GCAP_SIM_HAS_FEATURE(feature) __has_feature(feature)
#else
#define GCAP_SIM_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || GCAP_SIM_HAS_FEATURE(address_sanitizer)
#define GCAP_SIM_ASAN 1
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__) || GCAP_SIM_HAS_FEATURE(thread_sanitizer)
#define GCAP_SIM_TSAN 1
#include <sanitizer/tsan_interface.h>
#endif

// The C library's longjmp under its own name: that of a program with _FORTIFY_SOURCE refuses to jump to another stack.
#if !defined(GCAP_SIM_ASAN) && !defined(GCAP_SIM_TSAN)
#define GCAP_SIM_JUMPS 1
extern "C" [[noreturn]] void gcap_sim_plain_longjmp(jmp_buf place, int value) noexcept __asm__("_longjmp");
#endif

namespace gcap_sim {

// --- Threads of a grid ----------------------------------------------------------------------------------------------

namespace internal {

// A stack of its own to run on. It runs until it pauses, and goes on where it paused. Only the first switch is one of
// contexts: each of those makes a system call. A sanitizer knows switches of contexts alone.
class Fiber {
 public:
  // `main` runs on the fiber for ever: when there is nothing to do, it pauses.
  Fiber(void (*main)(void*), void* argument) : main_(main), argument_(argument), stack_(new char[kStackBytes]) {
    if (getcontext(&context_) != 0) Fail();
    context_.uc_stack.ss_sp = stack_.get();
    context_.uc_stack.ss_size = kStackBytes;
    const uintptr_t self = reinterpret_cast<uintptr_t>(this);
    makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
#ifdef GCAP_SIM_TSAN
    tsan_ = __tsan_create_fiber(0);
#endif
  }
  ~Fiber() {
#ifdef GCAP_SIM_TSAN
    __tsan_destroy_fiber(tsan_);
#endif
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From outside: returns when the fiber pauses.
  void Resume() {
#ifdef GCAP_SIM_ASAN
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&fake_stack, stack_.get(), kStackBytes);
#elif defined(GCAP_SIM_TSAN)
    tsan_outside_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan_, 0);
#endif
    SwitchIn();
#ifdef GCAP_SIM_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  }

  // On the fiber.
  void Pause() {
#ifdef GCAP_SIM_ASAN
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&fake_stack, outside_stack_, outside_bytes_);
#elif defined(GCAP_SIM_TSAN)
    __tsan_switch_to_fiber(tsan_outside_, 0);
#endif
    SwitchOut();
#ifdef GCAP_SIM_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, &outside_stack_, &outside_bytes_);
#endif
  }

 private:
  static constexpr size_t kStackBytes = size_t{256} << 10;

#ifdef GCAP_SIM_JUMPS
  void SwitchIn() {
    if (_setjmp(outside_) != 0) return;
    if (entered_) gcap_sim_plain_longjmp(inside_, 1);
    entered_ = true;
    setcontext(&context_);
    Fail();
  }
  void SwitchOut() {
    if (_setjmp(inside_) == 0) gcap_sim_plain_longjmp(outside_, 1);
  }
#else
  void SwitchIn() {
    if (swapcontext(&outside_, &context_) != 0) Fail();
  }
  void SwitchOut() {
    if (swapcontext(&context_, &outside_) != 0) Fail();
  }
#endif

  static void Fail() {
    std::fprintf(stderr, "gcap sim: RunGrid: the machine gives no context to run a thread in\n");
    std::abort();
  }

  // makecontext passes ints alone.
  static void Enter(unsigned high, unsigned low) {
    Fiber* self = reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | low);
#ifdef GCAP_SIM_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &self->outside_stack_, &self->outside_bytes_);
#endif
    self->main_(self->argument_);
  }

  void (*main_)(void*);
  void* argument_;
  std::unique_ptr<char[]> stack_;
  ucontext_t context_;
#ifdef GCAP_SIM_JUMPS
  jmp_buf outside_, inside_;
  bool entered_ = false;
#else
  ucontext_t outside_;
#endif
#ifdef GCAP_SIM_ASAN
  const void* outside_stack_ = nullptr;
  size_t outside_bytes_ = 0;
#elif defined(GCAP_SIM_TSAN)
  void *tsan_ = nullptr, *tsan_outside_ = nullptr;
#endif
};

// Runs one function for each thread of a block, and block after block. A fiber runs thread after thread until one waits
// at a barrier: that one keeps the fiber, and another fiber goes on. So a kernel without a barrier needs one fiber.
class Block {
 public:
  Block(void (*run)(void* body, Block* block, unsigned thread), void* body) : run_(run), body_(body) {}

  void Run(unsigned threads) {
    next_ = 0;
    threads_ = threads;
    while (next_ < threads_) {
      if (idle_.empty()) Grow();
      Fiber* fiber = idle_.back();
      idle_.pop_back();
      Resume(fiber);
    }
    // All that have not ended wait at one barrier, in the order of their threads.
    while (!waiting_.empty()) {
      std::vector<Fiber*> arrived;
      arrived.swap(waiting_);
      for (Fiber* fiber : arrived) Resume(fiber);
    }
  }

  void Wait() {
    Fiber* fiber = running_;
    waiting_.push_back(fiber);
    fiber->Pause();
  }

 private:
  void Grow() {
    fibers_.emplace_back(&Block::Main, this);
    idle_.push_back(&fibers_.back());
  }

  void Resume(Fiber* fiber) {
    running_ = fiber;
    fiber->Resume();
  }

  static void Main(void* argument) {
    Block* block = static_cast<Block*>(argument);
    Fiber* self = block->running_;
    for (;;) {
      while (block->next_ < block->threads_) block->run_(block->body_, block, block->next_++);
      block->idle_.push_back(self);
      self->Pause();
    }
  }

  void (*run_)(void* body, Block* block, unsigned thread);
  void* body_;
  std::deque<Fiber> fibers_;  // which never move
  std::vector<Fiber*> idle_, waiting_;
  Fiber* running_ = nullptr;
  unsigned next_ = 0, threads_ = 0;
};

}  // namespace internal

// A thread of the grid, with the names that a kernel's body knows.
class Thread {
 public:
  dim3 threadIdx, blockIdx, blockDim, gridDim;

  // __syncthreads(): goes on when each thread of the block has come to a barrier, or has ended.
  void SyncThreads() const { block_->Wait(); }

  // The block's dynamic shared memory, as many bytes as the launch asked for: extern __shared__ T name[].
  template <typename T>
  T* DynamicShared() const {
    return static_cast<T*>(dynamic_);
  }

  Thread(const gcap_sim_launch_t& launch, dim3 block_index, unsigned thread, internal::Block* block, void* dynamic)
      : threadIdx(thread % launch.block.x, thread / launch.block.x % launch.block.y,
                  thread / launch.block.x / launch.block.y),
        blockIdx(block_index),
        blockDim(launch.block),
        gridDim(launch.grid),
        block_(block),
        dynamic_(dynamic) {}

 private:
  internal::Block* block_;
  void* dynamic_;
};

// Runs body(thread, shared) for each thread of the grid. `Shared` is a struct of the kernel's __shared__ variables:
// each block has one, whose bytes are arbitrary when the block begins.
template <typename Shared, typename Body>
void RunGrid(const gcap_sim_launch_t& launch, const Body& body) {
  static_assert(std::is_trivially_default_constructible<Shared>::value, "shared memory is not constructed on a GPU");
  struct State {
    const gcap_sim_launch_t& launch;
    const Body& body;
    dim3 block_index;
    std::unique_ptr<Shared> shared;
    std::vector<std::max_align_t> dynamic;
  } state{launch, body, dim3(0, 0, 0), std::unique_ptr<Shared>(new Shared),
          std::vector<std::max_align_t>(launch.shared_bytes / sizeof(std::max_align_t) + 1)};
  internal::Block block(
      [](void* argument, internal::Block* self, unsigned index) {
        State* s = static_cast<State*>(argument);
        const Thread thread(s->launch, s->block_index, index, self, s->dynamic.data());
        s->body(thread, *s->shared);
      },
      &state);
  constexpr int kArbitrary = 0xcd;
  const unsigned threads = launch.block.x * launch.block.y * launch.block.z;
  dim3& at = state.block_index;
  for (at.z = 0; at.z < launch.grid.z; ++at.z) {
    for (at.y = 0; at.y < launch.grid.y; ++at.y) {
      for (at.x = 0; at.x < launch.grid.x; ++at.x) {
        std::memset(static_cast<void*>(state.shared.get()), kArbitrary, sizeof(Shared));
        std::memset(static_cast<void*>(state.dynamic.data()), kArbitrary,
                    state.dynamic.size() * sizeof(std::max_align_t));
        block.Run(threads);
      }
    }
  }
}

// The same for a kernel without __shared__ variables: body(thread).
template <typename Body>
void RunGrid(const gcap_sim_launch_t& launch, const Body& body) {
  struct Nothing {};
  RunGrid<Nothing>(launch, [&body](const Thread& thread, Nothing&) { body(thread); });
}

// --- Twins ----------------------------------------------------------------------------------------------------------

// Ranges for a twin's accesses.
template <typename T>
gcap_sim_access_t Reads(const T* first, size_t count) {
  return {first, count * sizeof(T), 0};
}
template <typename T>
gcap_sim_access_t Writes(T* first, size_t count) {
  return {first, count * sizeof(T), 1};
}
template <typename T>
gcap_sim_access_t Updates(T* first, size_t count) {  // by atomic operations alone
  return {first, count * sizeof(T), GCAP_SIM_ATOMIC};
}

namespace internal {

template <auto kRun, auto kAccesses>
struct Twin;

template <typename... Args, void (*kRun)(const gcap_sim_launch_t&, Args...), auto kAccesses>
struct Twin<kRun, kAccesses> {
  static_assert((std::is_trivially_copyable<Args>::value && ...), "a kernel's arguments are copied by their bytes");

  static constexpr size_t kCount = sizeof...(Args);
  static constexpr size_t kBytes[] = {sizeof(Args)..., 0};

  static void Run(const gcap_sim_launch_t* launch, void* const* args) {
    Unpack(*launch, args, kRun, std::index_sequence_for<Args...>{});
  }

  static size_t Accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
    const std::vector<gcap_sim_access_t> all = Unpack(*launch, args, kAccesses, std::index_sequence_for<Args...>{});
    for (size_t i = 0; i < all.size() && i < capacity; ++i) out[i] = all[i];
    return all.size();
  }

 private:
  template <typename Function, size_t... kIndex>
  static auto Unpack(const gcap_sim_launch_t& launch, void* const* args, Function function,
                     std::index_sequence<kIndex...>) {
    (void)args;
    return function(launch, *static_cast<const std::remove_reference_t<Args>*>(args[kIndex])...);
  }
};

}  // namespace internal

// Registers kRun, a function `void (const gcap_sim_launch_t&, the kernel's parameters...)`, as the twin of the kernel
// of that name; see gcap_sim_kernel_t::name. kAccesses takes the same and returns a std::vector<gcap_sim_access_t>:
// what the launch touches. Without it nobody knows. `function` is the kernel's handle where nvcc did not compile the
// kernel. Returns true, so that a variable's initializer can call it before main. The name must live as long as the
// program.
template <auto kRun, auto kAccesses = nullptr>
bool RegisterTwin(const char* name, const void* function = nullptr) {
  using Twin = internal::Twin<kRun, kAccesses>;
  gcap_sim_kernel_t kernel = {};
  kernel.function = function;
  kernel.name = name;
  kernel.arg_bytes = Twin::kBytes;
  kernel.num_args = Twin::kCount;
  kernel.run = &Twin::Run;
  if constexpr (!std::is_same<decltype(kAccesses), std::nullptr_t>::value) kernel.accesses = &Twin::Accesses;
  gcap_sim_register_kernel(&kernel);
  return true;
}

}  // namespace gcap_sim

#undef GCAP_SIM_ASAN
#undef GCAP_SIM_TSAN
#undef GCAP_SIM_JUMPS
#undef GCAP_SIM_HAS_FEATURE

#endif  // GCAP_SIM_KERNEL_HPP_
