// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap.hpp: the core of gcap for C++17, in one header: owners that move and end what they own, statuses as results and
// as exceptions, callables as the work of a run, tensors from pointers.
//
//     auto graphs = gcap::own<gcap_graph_manager_create>(nullptr).value_or_throw();
//     auto work = [&](cudaStream_t on) { return GCAP_CUDA(cudaMemsetAsync(memory, 42, 4, on)); };
//     gcap::check(gcap::run(graphs.get(), {/*id=*/0, stream}, work));
//
// The C functions stay the API: a program calls them with `get()` of an owner, and their headers are the manual. Here
// is what C++ adds to them. None of it costs time or memory (bench/cpp), and a program links only what it uses.
//
// Ends.     An owner ends its object when the owner dies. A destructor cannot answer. So if the end is refused, the
//           object is whole, stays until the process ends, and gcap_log gets an error with the reason. If a part was lost
//           or is kept (LEAKED), the log gets a warning. `destroy()` ends the object earlier and returns the status;
//           after a refusal the owner still has the object. Variables and members end in the order that C asks for if
//           what others stand on is declared first: the allocator, then the scratch over it.
// Throwing. gcap::error is a status as an exception; gcap::check and value_or_throw throw it. Where the compiler has no
//           exceptions (-fno-exceptions) these three do not exist, and all else is the same.
// Work.     A gcap::error that leaves the work of gcap::run is the failure that it carries, as if the work had returned
//           that: after a failed capture the work is issued again. Any other exception is thrown again when the run has
//           ended. The run ends as one whose work failed, so that a capture ends without a graph. The work is not called
//           again, though the log may say that the graph is run again. No exception passes through C, so that gcap need
//           not be compiled with -fexceptions.
//           What the function of a gcap::hole throws becomes the run's status.
// Thread.   An owner, a lease, a status and a result are plain values: one thread at a time.
#ifndef GCAP_GCAP_HPP_
#define GCAP_GCAP_HPP_

#include <cuda_runtime_api.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "gcap/gcap.h"
#include "gcap/graph_holes.h"
#include "gcap/graph_taps.h"

#if defined(__cpp_exceptions)
#include <cxxabi.h>

#include <exception>
#endif

struct __half;
struct __nv_bfloat16;

namespace gcap {

// --- Statuses -------------------------------------------------------------------------------------------------------

// A gcap_status_t that is freed. A C function's status becomes one by itself: `gcap::status s = gcap_stream_…(…);`.
class [[nodiscard]] status {
 public:
  status() noexcept = default;
  status(gcap_status_t taken) noexcept : status_(taken) {}  // takes ownership
  status(status&& other) noexcept : status_(other.release()) {}
  status& operator=(status&& other) noexcept {
    const gcap_status_t taken = other.release();
    if (status_ != nullptr) gcap_status_free(status_);
    status_ = taken;
    return *this;
  }
  ~status() {
    if (status_ != nullptr) gcap_status_free(status_);
  }

  bool ok() const noexcept { return status_ == nullptr; }
  gcap_code_t code() const noexcept { return gcap_status_code(status_); }
  const char* message() const noexcept { return gcap_status_message(status_); }  // lives as long as the status
  gcap_status_info_t info() const noexcept {  // where the failure came from; its texts live as long as the status
    gcap_status_info_t found;
    gcap_status_get_info(status_, &found);
    return found;
  }
  gcap_status_t get() const noexcept { return status_; }  // borrowed, for gcap_status_*
  // For a function that takes ownership, such as gcap_graph_manager_end_run.
  [[nodiscard]] gcap_status_t release() noexcept { return std::exchange(status_, nullptr); }

 private:
  gcap_status_t status_ = nullptr;
};

#if defined(__cpp_exceptions)
// A failure as an exception; what() is its message.
class __attribute__((visibility("default"))) error : public std::exception {
 public:
  explicit error(status failure) noexcept : failure_(std::move(failure)) { assert(!failure_.ok()); }
  error(const error& other) noexcept : std::exception(other), failure_(gcap_status_clone(other.failure_.get())) {}
  error& operator=(const error& other) noexcept {
    (void)(failure_ = gcap_status_clone(other.failure_.get()));  // nvcc takes the assignment's value for one to look at
    return *this;
  }

  const char* what() const noexcept override { return failure_.message(); }
  const status& failure() const noexcept { return failure_; }

 private:
  status failure_;
};

// Throws a failure: `gcap::check(gcap_stream_synchronize(stream.get()));`.
inline void check(status outcome) {
  if (!outcome.ok()) throw error(std::move(outcome));
}
#endif

template <class T>
class result;

// A failure on its way to the caller, whose result is a gcap_status_t, a gcap::status or a gcap::result.
class returned_failure {
 public:
  explicit returned_failure(status&& failure) noexcept : failure_(std::move(failure)) {}
  operator gcap_status_t() && noexcept { return failure_.release(); }
  operator status() && noexcept { return std::move(failure_); }
  template <class T>
  operator result<T>() && noexcept {
    return result<T>(std::move(failure_));
  }

 private:
  status failure_;
};

// As in C, for every function that returns one of the three.
#undef GCAP_RETURN_IF_ERROR
#define GCAP_RETURN_IF_ERROR(expr)                                        \
  do {                                                                    \
    if (::gcap::status gcap_status_tmp_ = (expr); !gcap_status_tmp_.ok()) \
      return ::gcap::returned_failure(std::move(gcap_status_tmp_));       \
  } while (0)

// A value, or the failure to make one.
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) noexcept : value_(std::move(value)) {}
  result(status&& failure) noexcept : failure_(std::move(failure)) { assert(!failure_.ok()); }

  bool ok() const noexcept { return failure_.ok(); }
  explicit operator bool() const noexcept { return ok(); }
  // The value; an empty T where there is none.
  T& operator*() & noexcept { return value_; }
  T&& operator*() && noexcept { return std::move(value_); }
  T* operator->() noexcept { return &value_; }
  // Why there is no value; OK where there is one. `return std::move(made).failure();` gives it to the caller.
  const status& failure() const& noexcept { return failure_; }
  status&& failure() && noexcept { return std::move(failure_); }
#if defined(__cpp_exceptions)
  T value_or_throw() && {
    check(std::move(failure_));
    return std::move(value_);
  }
#endif

 private:
  T value_{};
  status failure_;
};

// --- Owners ---------------------------------------------------------------------------------------------------------

namespace detail {

// The parameters of a function, by its value: a compiler warns where its type, with attributes, is a template argument.
template <class R, class First, class... Rest>
First first_parameter(R (*)(First, Rest...));
template <class R, class First, class Second>
Second second_parameter(R (*)(First, Second));

// gcap_scratch_free, and so gcap_allocator_free of a scratch's allocator, reports a write outside of the block as
// INTERNAL, when the block has been freed.
template <auto end>
inline constexpr bool has_ended_if_internal = false;
template <>
inline constexpr bool has_ended_if_internal<gcap_scratch_free> = true;
template <>
inline constexpr bool has_ended_if_internal<gcap_allocator_free> = true;

template <auto end>
bool has_ended(const status& outcome) noexcept {
  if (outcome.ok()) return true;
  return outcome.code() == GCAP_LEAKED || (has_ended_if_internal<end> && outcome.code() == GCAP_INTERNAL);
}

// What a destructor says of its end. Takes ownership of the failure, as a pointer, which stays in a register.
template <auto end>
__attribute__((cold)) void log_end(gcap_status_t failure) noexcept {
  const status outcome(failure);
  if (has_ended<end>(outcome)) {
    gcap_log(GCAP_LOG_WARNING, "what an owner has ended is gone, but: %s", outcome.message());
  } else {
    gcap_log(GCAP_LOG_ERROR, "an owner cannot end its object, which is kept: %s", outcome.message());
  }
}

template <auto end, class... In>
status end_with(In... in) noexcept {
  if constexpr (std::is_void_v<decltype(end(in...))>) {
    end(in...);
    return {};
  } else {
    return end(in...);
  }
}

inline gcap_status_t destroy_graph(cudaGraph_t graph) { return GCAP_CUDA(cudaGraphDestroy(graph)); }

}  // namespace detail

// Owns an object that the function `end` ends.
template <auto end>
class owner {
 public:
  using object_type = std::remove_pointer_t<decltype(detail::first_parameter(end))>;

  owner() noexcept = default;
  explicit owner(object_type* taken) noexcept : object_(taken) {}
  owner(owner&& other) noexcept : object_(other.release()) {}
  owner& operator=(owner&& other) noexcept {
    owner(std::move(other)).swap(*this);
    return *this;
  }
  ~owner() {
    if (object_ == nullptr) return;
    if (const gcap_status_t failure = detail::end_with<end>(object_).release()) detail::log_end<end>(failure);
  }

  object_type* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  [[nodiscard]] object_type* release() noexcept { return std::exchange(object_, nullptr); }
  void swap(owner& other) noexcept { std::swap(object_, other.object_); }

  // Ends the object. If the end is refused, the owner still has it.
  status destroy() noexcept {
    if (object_ == nullptr) return {};
    status outcome = detail::end_with<end>(object_);
    if (detail::has_ended<end>(outcome)) object_ = nullptr;
    return outcome;
  }

 private:
  object_type* object_ = nullptr;
};

// Has something that goes back to where it came from, by `give_back(source, object)`. The source outlives the lease.
template <auto give_back>
class lease {
 public:
  using source_type = std::remove_pointer_t<decltype(detail::first_parameter(give_back))>;
  using object_type = std::remove_pointer_t<decltype(detail::second_parameter(give_back))>;

  lease() noexcept = default;
  lease(source_type* source, object_type* taken) noexcept : source_(source), object_(taken) {}
  lease(lease&& other) noexcept : source_(other.source_), object_(other.release()) {}
  lease& operator=(lease&& other) noexcept {
    lease(std::move(other)).swap(*this);
    return *this;
  }
  ~lease() {
    if (object_ == nullptr) return;
    if (const gcap_status_t failure = give_back(source_, object_)) detail::log_end<give_back>(failure);
  }

  object_type* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  [[nodiscard]] object_type* release() noexcept { return std::exchange(object_, nullptr); }
  void swap(lease& other) noexcept {
    std::swap(source_, other.source_);
    std::swap(object_, other.object_);
  }

  // Gives the object back. If that is refused, the lease still has it.
  status destroy() noexcept {
    if (object_ == nullptr) return {};
    status outcome = give_back(source_, object_);
    if (detail::has_ended<give_back>(outcome)) object_ = nullptr;
    return outcome;
  }

 private:
  source_type* source_ = nullptr;
  object_type* object_ = nullptr;
};

using allocator = owner<gcap_allocator_destroy>;
using capture = owner<gcap_capture_abort>;   // a scope that is open; see end_capture
using graph = owner<detail::destroy_graph>;  // a cudaGraph_t
using graph_manager = owner<gcap_graph_manager_destroy>;
using notification = owner<gcap_notification_destroy>;
using reservation = owner<gcap_scratch_reservation_release>;
using retained = owner<gcap_retained_release>;
using runtime = owner<gcap_runtime_destroy>;
using scratch = owner<gcap_scratch_destroy>;
using stream = owner<gcap_stream_destroy>;

using memory = lease<gcap_allocator_free>;
using scratch_memory = lease<gcap_scratch_free>;

namespace detail {

template <class T>
struct type_is {
  using type = T;
};

// The last parameter of a function is where it puts what it makes.
template <class First, class... Rest>
struct last : last<Rest...> {};
template <class Only>
struct last<Only> : type_is<Only> {};
template <class R, class... In>
typename last<In...>::type last_parameter(R (*)(In...));
template <auto function>
using output = std::remove_pointer_t<decltype(last_parameter(function))>;

// Who owns such an object; void if nobody does.
template <class Object>
struct owner_of : type_is<void> {};
// clang-format off
template <> struct owner_of<gcap_allocator_t*> : type_is<allocator> {};
template <> struct owner_of<gcap_capture_t*> : type_is<capture> {};
template <> struct owner_of<gcap_graph_manager_t*> : type_is<graph_manager> {};
template <> struct owner_of<gcap_notification_t*> : type_is<notification> {};
template <> struct owner_of<gcap_scratch_reservation_t*> : type_is<reservation> {};
template <> struct owner_of<gcap_runtime_t*> : type_is<runtime> {};
template <> struct owner_of<gcap_scratch_t*> : type_is<scratch> {};
template <> struct owner_of<gcap_stream_t*> : type_is<stream> {};

// What a call of `create` makes: by the type of the object, but for functions that lend.
template <auto create>
struct made_by : owner_of<output<create>> {};
template <> struct made_by<gcap_allocator_alloc> : type_is<memory> {};
template <> struct made_by<gcap_allocator_alloc_on_stream> : type_is<memory> {};
template <> struct made_by<gcap_allocator_reserve> : type_is<memory> {};
template <> struct made_by<gcap_scratch_alloc> : type_is<scratch_memory> {};
template <> struct made_by<gcap_runtime_get_allocator> : type_is<void> {};
template <> struct made_by<gcap_runtime_fork> : type_is<void> {};
template <> struct made_by<gcap_runtime_graphs> : type_is<void> {};
// clang-format on

template <class Lease, class Object, class Source, class... In>
Lease lease_from(Object* object, Source* source, const In&...) noexcept {
  return Lease(source, object);
}

}  // namespace detail

// Calls a C function that makes something, and owns what is made. The arguments are the function's but for the last,
// the output; any function will do whose last argument is a pointer to one of the objects above, such as one of yours:
//     auto stream = gcap::own<gcap_stream_create>(/*device_id=*/0);                          // a result<gcap::stream>
//     auto block = gcap::own<gcap_scratch_alloc>(scratch.get(), bytes, stream->get());       // goes back by itself
// Functions that lend (gcap_runtime_get_allocator, gcap_runtime_fork, …) are called as in C.
//   errors of the function
template <auto create, class... In>
result<typename detail::made_by<create>::type> own(In... in) {
  using made_type = typename detail::made_by<create>::type;
  static_assert(!std::is_void_v<made_type>, "nobody owns what this function makes: call it as in C");
  detail::output<create> object = nullptr;
  if (status failure = create(in..., &object); !failure.ok()) return failure;
  if constexpr (std::is_constructible_v<made_type, decltype(object)>) {
    return made_type(object);
  } else {
    return detail::lease_from<made_type>(object, in...);
  }
}

// The struct that an _init or a _get function fills in:
//     auto options = gcap::filled_by<gcap_graph_manager_options_init>();
//     auto info = gcap::filled_by<gcap_graph_manager_get_info>(graphs.get(), /*id=*/0);
template <auto fill, class... In>
detail::output<fill> filled_by(In... in) noexcept {
  detail::output<fill> filled;
  static_assert(std::is_void_v<decltype(fill(in..., &filled))>, "this function may fail: call it as in C");
  fill(in..., &filled);
  return filled;
}

// A capture that has ended well: its graph, and what must live as long as the graph's executables.
struct captured {
  gcap::graph graph;
  gcap::retained retained;
};

// Ends the capture (gcap_capture_end). An owner that dies with its scope open aborts the capture. Afterwards `scope` is
// empty, unless the end was refused.
//   errors of gcap_capture_end
inline result<captured> end_capture(capture& scope) noexcept {
  cudaGraph_t made = nullptr;
  gcap_retained_t* kept = nullptr;
  status outcome = gcap_capture_end(scope.get(), &made, &kept);
  if (outcome.code() == GCAP_FAILED_PRECONDITION) return outcome;
  static_cast<void>(scope.release());  // gone, whatever the outcome
  if (!outcome.ok()) return outcome;
  return captured{graph(made), retained(kept)};
}

// --- Work -----------------------------------------------------------------------------------------------------------

namespace detail {

template <class Work, class... In>
gcap_status_t call_work(Work& work, In&&... in) {
  if constexpr (std::is_void_v<std::invoke_result_t<Work&, In...>>) {
    work(std::forward<In>(in)...);
    return nullptr;
  } else {
    return status(work(std::forward<In>(in)...)).release();
  }
}

// A callable takes the resources, or the stream alone, or nothing.
template <class Work>
gcap_status_t issue_work(Work& work, const gcap_run_resources_t& resources) {
  if constexpr (std::is_invocable_v<Work&, const gcap_run_resources_t&>) {
    return call_work(work, resources);
  } else if constexpr (std::is_invocable_v<Work&, cudaStream_t>) {
    return call_work(work, resources.cuda_stream);
  } else {
    return call_work(work);
  }
}

#if defined(__cpp_exceptions)
inline gcap_status_t status_of_throw(const char* who, const char* what) {
  return GCAP_STATUS(GCAP_UNAVAILABLE, "%s threw an exception: %s", who, what);
}

// The same, and what is thrown as a failure: a gcap::error as that which it carries, another one also as `*out_thrown`,
// where somebody asks.
template <class Work>
gcap_status_t issue_caught(Work& work, const gcap_run_resources_t& resources, const char* who,
                           std::exception_ptr* out_thrown) {
  try {
    return issue_work(work, resources);
  }
#if defined(__GLIBCXX__)
  catch (const abi::__forced_unwind&) {  // the thread is cancelled
    throw;
  }
#endif
  catch (const error& failed) {
    return gcap_status_clone(failed.failure().get());
  } catch (const std::exception& exception) {
    if (out_thrown != nullptr) *out_thrown = std::current_exception();
    return status_of_throw(who, exception.what());
  } catch (...) {
    if (out_thrown != nullptr) *out_thrown = std::current_exception();
    return status_of_throw(who, "no std::exception");
  }
}
#endif

// A callable as a function pointer and its argument. Nothing is copied: it lives as long as the call that it is for.
template <class Work>
class work_call {
 public:
  explicit work_call(Work& work) noexcept : work_(work) {}
  work_call(const work_call&) = delete;
  work_call& operator=(const work_call&) = delete;

  static gcap_status_t function(void* user, const gcap_run_resources_t* resources) {
    work_call* const self = static_cast<work_call*>(user);
#if defined(__cpp_exceptions)
    if (self->thrown_ != nullptr) return status_of_throw("the work", "it is not issued again");
    return issue_caught(self->work_, *resources, "the work", &self->thrown_);
#else
    return issue_work(self->work_, *resources);
#endif
  }

  // To be called when C has returned.
  void rethrow() {
#if defined(__cpp_exceptions)
    if (thrown_ != nullptr) std::rethrow_exception(std::move(thrown_));
#endif
  }

 private:
#if defined(__cpp_exceptions)
  std::exception_ptr thrown_;
#endif
  Work& work_;
};

}  // namespace detail

namespace detail {
template <auto run_by_c, class Object, class Work>
status run_with(Object* object, gcap_run_t how, Work& work) {
  work_call<Work> call(work);
  how.work = &work_call<Work>::function;
  how.user = &call;
  status outcome = run_by_c(object, &how);
  call.rethrow();
  return outcome;
}
}  // namespace detail

// A key from a struct, whose bytes are all values: a struct with padding does not compile. The key borrows struct and
// name. `const auto key = gcap::key_of(step, "decode"); gcap::run(graphs, {&key, stream}, work);`
template <class Struct>
gcap_graph_key_t key_of(const Struct& bytes, const char* name = nullptr) noexcept {
  static_assert(std::is_trivially_copyable<Struct>::value, "a key is bytes");
  static_assert(std::has_unique_object_representations<Struct>::value,
                "the struct has padding, or floating-point fields: equal values may differ in their bytes");
  static_assert(sizeof(Struct) <= GCAP_GRAPH_KEY_MAX_BYTES, "the struct has more than GCAP_GRAPH_KEY_MAX_BYTES");
  return {&bytes, sizeof(bytes), name};
}
template <class Struct>
gcap_graph_key_t key_of(const Struct&& bytes, const char* name = nullptr) = delete;  // it would borrow a temporary

// A gcap_run_t with its defaults: `{id, stream}`, `{&key, stream}`, or a variable whose other fields are set.
struct run_args : gcap_run_t {
  run_args(int run_id, cudaStream_t run_stream = GCAP_RUN_OWN_STREAM) noexcept : gcap_run_t() {
    gcap_run_init(this);
    id = run_id;
    stream = run_stream;
  }
  run_args(const gcap_graph_key_t* run_key, cudaStream_t run_stream = GCAP_RUN_OWN_STREAM) noexcept
      : run_args(GCAP_GRAPH_ID_NONE, run_stream) {
    key = run_key;
  }
};

// A number that may be another one in each run, from `low` to `high` (graph_values.h). A run borrows it until its call
// returns, and the work reads it by gcap::value:
//     gcap::number<uint32_t> position = {"position", 0, 4095};
//     position.now = 17;
//     const gcap_graph_value_t values[] = {position, gcap::value_in_memory("row", row)};
//     const auto changing = gcap::buffers_of(values);
//     how.buffers = &changing;
template <class T>
struct number {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8, "a number of up to 8 bytes");
  const char* name;
  T low, high;
  T now = low;

  operator gcap_graph_value_t() const& noexcept {
    constexpr gcap_graph_value_type_t type = std::is_floating_point_v<T> ? GCAP_GRAPH_VALUE_FLOAT
                                             : std::is_signed_v<T>       ? GCAP_GRAPH_VALUE_SIGNED
                                                                         : GCAP_GRAPH_VALUE_UNSIGNED;
    return {name, &now, sizeof(now), type, &low, &high, false, false};
  }
  operator gcap_graph_value_t() const&& = delete;  // it would borrow a temporary
};

// A value that the work reads on the device, by gcap::value_on_device. The run borrows the struct.
template <class Struct>
gcap_graph_value_t value_in_memory(const char* name, const Struct& bytes) noexcept {
  static_assert(std::is_trivially_copyable_v<Struct>, "a value is bytes");
  static_assert(sizeof(Struct) <= GCAP_GRAPH_VALUE_IN_MEMORY_MAX_BYTES, "name what is larger as a buffer");
  return {name, &bytes, sizeof(bytes), GCAP_GRAPH_VALUE_BYTES, nullptr, nullptr, false, true};
}
template <class Struct>
gcap_graph_value_t value_in_memory(const char* name, const Struct&& bytes) = delete;  // it would borrow a temporary

// Labels what the thread issues in this C++ scope; it ends on the thread that it began on (gcap_label):
//     const gcap::label in_layer("layer 3");
class [[nodiscard]] label {
 public:
  explicit label(const char* text) noexcept { gcap_label(text != nullptr ? text : ""); }
  label(const label&) = delete;
  label& operator=(const label&) = delete;
  ~label() { gcap_label(nullptr); }
};

// Values alone, for gcap_run_t.buffers.
template <size_t count>
gcap_graph_buffers_t buffers_of(const gcap_graph_value_t (&values)[count]) noexcept {
  gcap_graph_buffers_t made;
  gcap_graph_buffers_init(&made);
  made.values = values;
  made.num_values = count;
  return made;
}

// In the work: the value number `index` of the run, and where the device has one that is in memory.
template <class T>
T value(const gcap_run_resources_t& run, size_t index) noexcept {
  T read;
  std::memcpy(&read, run.values[index], sizeof(read));
  return read;
}
template <class T>
const T* value_on_device(const gcap_run_resources_t& run, size_t index) noexcept {
  return static_cast<const T*>(run.values[index]);
}

// A whole run in one call, as gcap_graph_manager_run: replays the graph of the id, or calls `work` to issue the work.
// `work` is a callable that takes a const gcap_run_resources_t&, or a cudaStream_t, or nothing, and returns a
// gcap_status_t, a gcap::status or nothing. What `work` throws is thrown again, but a gcap::error is returned.
//   errors of gcap_graph_manager_run
template <class Work>
status run(gcap_graph_manager_t* graphs, const run_args& how, Work&& work) {
  return detail::run_with<gcap_graph_manager_run>(graphs, how, work);
}

// The same on the calling thread's stream of a runtime.
//   errors of gcap_runtime_run
template <class Work>
status run(gcap_runtime_t* in, const run_args& how, Work&& work) {
  return detail::run_with<gcap_runtime_run>(in, how, work);
}

// --- Holes and taps -------------------------------------------------------------------------------------------------

namespace detail {

// The function of a hole, as the graph keeps it.
template <class Function>
struct hole_call {
  Function function;

  static gcap_status_t call(void* user, const gcap_run_resources_t* resources) {
#if defined(__cpp_exceptions)
    return issue_caught(static_cast<hole_call*>(user)->function, *resources, "the function of a hole", nullptr);
#else
    return issue_work(static_cast<hole_call*>(user)->function, *resources);
#endif
  }
  static void end(void* user) { delete static_cast<hole_call*>(user); }
};

}  // namespace detail

// In the work of a run: leaves a call that no graph can hold to a function, as gcap_graph_hole_issue. `function` is a
// callable as the work of gcap::run is. It is moved, or copied, into memory of its own, which the graph of a captured
// run owns: each replay calls that one, and nothing is allocated or copied then. What the callable has by value lives
// as long as the graph. What it has by reference has to.
//     GCAP_RETURN_IF_ERROR(gcap::hole(run, "attention", [this](const gcap_run_resources_t& at) { return Attend(at);
//     }));
// What the function throws ends the run as a status does: a gcap::error as the failure that it carries, anything else
// as UNAVAILABLE. A replay by gcap_graph_manager_replay has no work that could catch, so no exception is thrown again.
//   RESOURCE_EXHAUSTED  no host memory for the callable
//   others              errors of gcap_graph_hole_issue
template <class Function>
status hole(const gcap_run_resources_t& run, const char* name, Function&& function, bool break_where_refused = false) {
  using call_type = detail::hole_call<std::decay_t<Function>>;
  gcap_graph_hole_t made;
  gcap_graph_hole_init(&made);
  made.name = name;
  made.work = &call_type::call;
  made.break_where_refused = break_where_refused;
  made.user = new (std::nothrow) call_type{std::forward<Function>(function)};
  if (made.user == nullptr) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the function of a hole");
  owner<&call_type::end> kept(made.user);
  if (gcap_capture_t* const scope = gcap_capture_current()) {
    GCAP_RETURN_IF_ERROR(gcap_capture_retain(scope, &call_type::end, /*bytes=*/nullptr, made.user));
    static_cast<void>(kept.release());
  }
  return gcap_graph_hole_issue(&run, &made);
}

// In the work of a run: copies `count` elements aside under the label, as gcap_graph_tap_issue.
//   errors of gcap_graph_tap_issue
template <class T>
status tap(cudaStream_t on, const char* label, const T* data, size_t count) noexcept {
  return gcap_graph_tap_issue(on, label, data, count * sizeof(T));
}

// A tap that a run reads into `data`, which the struct borrows, for gcap_run_t.taps:
//     float filled[16];
//     gcap_graph_tap_t taps[] = {gcap::tap_into("filled", filled)};
template <class T>
gcap_graph_tap_t tap_into(const char* label, T* data, size_t count) noexcept {
  static_assert(std::is_trivially_copyable_v<T>, "a tap is bytes");
  return {label, data, count * sizeof(T), 0};
}
template <class T, size_t count>
gcap_graph_tap_t tap_into(const char* label, T (&data)[count]) noexcept {
  return tap_into(label, data, count);
}

// --- Tensors --------------------------------------------------------------------------------------------------------

namespace detail {
template <gcap_dtype_t type>
using dtype_is = std::integral_constant<gcap_dtype_t, type>;
}  // namespace detail

// The type of elements of the C++ type T. Another library's 16-bit floats are made known by a specialization:
//     template <> struct gcap::dtype<c10::Half> : std::integral_constant<gcap_dtype_t, GCAP_DTYPE_F16> {};
template <class T, class = void>
struct dtype {
  static_assert(sizeof(T) == 0, "gcap has no dtype for this type: specialize gcap::dtype");
};
// clang-format off
template <> struct dtype<float> : detail::dtype_is<GCAP_DTYPE_F32> {};
template <> struct dtype<__half> : detail::dtype_is<GCAP_DTYPE_F16> {};
template <> struct dtype<__nv_bfloat16> : detail::dtype_is<GCAP_DTYPE_BF16> {};
template <> struct dtype<bool> : detail::dtype_is<GCAP_DTYPE_BOOL> {};
template <> struct dtype<int8_t> : detail::dtype_is<GCAP_DTYPE_I8> {};
template <> struct dtype<uint8_t> : detail::dtype_is<GCAP_DTYPE_U8> {};
// clang-format on
// int64_t is long or long long.
template <class T>
struct dtype<T, std::enable_if_t<std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 8>>
    : detail::dtype_is<GCAP_DTYPE_I64> {};
template <class T>
struct dtype<T, std::enable_if_t<std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 4>>
    : detail::dtype_is<GCAP_DTYPE_I32> {};

// A tensor of `rank` sizes. A rank above GCAP_MAX_RANK becomes -1, which gcap refuses. Inputs may be const: gcap does
// not write them.
template <class T>
gcap_tensor_t tensor(T* data, const int64_t* shape, size_t rank) noexcept {
  using element = std::remove_cv_t<T>;
  gcap_tensor_t made = {};
  made.data = const_cast<element*>(data);
  made.dtype = dtype<element>::value;
  made.rank = rank <= GCAP_MAX_RANK ? static_cast<int>(rank) : -1;
  for (int i = 0; i < made.rank; ++i) made.shape[i] = shape[i];
  return made;
}

// `gcap::tensor(pointer, {1, 64})`
template <class T, size_t rank>
gcap_tensor_t tensor(T* data, const int64_t (&shape)[rank]) noexcept {
  static_assert(rank <= GCAP_MAX_RANK, "a tensor of gcap has at most GCAP_MAX_RANK dimensions");
  return tensor(data, shape, rank);
}

// A scalar.
template <class T>
gcap_tensor_t tensor(T* data) noexcept {
  return tensor(data, nullptr, 0);
}

// One tensor that a run is bound to, for gcap_run_t.bindings. The binding borrows the tensor's shape.
inline gcap_graph_binding_t binding_of(const char* name, const gcap_tensor_t& tensor) noexcept {
  return {name, tensor.data, tensor.rank, tensor.shape};
}
gcap_graph_binding_t binding_of(const char* name, const gcap_tensor_t&& tensor) = delete;

}  // namespace gcap

#endif  // GCAP_GCAP_HPP_
