// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Every function of the runtime, called with every sort of bad argument: it must answer, or stop the program with a
// line that names it, and never end in a signal of memory. The table of functions is the simulator's own, so a new
// function is tried without a line here.
//
// Addresses of memory that the caller owns (results, structs, arrays) are NULL or valid: a stray one could not be
// judged. Handles are NULL, stray, destroyed, of another kind, or valid; numbers are any.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "cuda_profiler_api.h"
#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

constexpr size_t kArenaBytes = 4096;
constexpr int kArenas = 6;       // more than a function has pointers to the caller's memory
constexpr int kMaxHandles = 16;  // of each type

// Rounds of each function; their numbers are the seeds. A call that stops the program costs a process, so .ci/weekly
// alone asks for many.
int NumRounds() {
  const char* rounds = getenv("GCAP_TEST_ROUNDS");
  return rounds ? atoi(rounds) : 12;
}

using Random = std::minstd_rand;

void KernelStub() {}
void Noop(void*) {}

// What there is to choose from. Made once in each child process.
struct World {
  char* arenas[kArenas];
  int next_arena;
  std::vector<void*> handles;  // of all kinds: valid, destroyed, stray
  std::vector<void*> addresses;
  bool untyped_is_result;  // of the function under test: what is void* in its parameters
  char host[kArenaBytes];
} g_world;

void Expect(cudaError_t code) {
  if (code != cudaSuccess) {
    fprintf(stderr, "cannot prepare: %s\n", cudaGetErrorName(code));
    _exit(3);
  }
}

void AddNodes(cudaGraph_t graph) {
  cudaGraphNode_t node;
  cudaMemsetParams fill = {};
  fill.dst = g_world.addresses[0];
  fill.elementSize = 1;
  fill.width = 16;
  fill.height = 1;
  cudaHostNodeParams host = {};
  host.fn = Noop;
  size_t argument = 1;
  void* arguments[] = {&argument};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(&KernelStub);
  kernel.gridDim = kernel.blockDim = dim3(1);
  kernel.kernelParams = arguments;
  Expect(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
  g_world.handles.push_back(node);
  Expect(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
  g_world.handles.push_back(node);
  Expect(cudaGraphAddHostNode(&node, graph, nullptr, 0, &host));
  g_world.handles.push_back(node);
  Expect(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  g_world.handles.push_back(node);
}

// `live` says whether the handles stay; the others are destroyed at once.
void MakeHandles(bool live) {
  cudaMemPool_t pool;
  cudaMemPoolProps pool_properties = {};
  pool_properties.allocType = cudaMemAllocationTypePinned;
  pool_properties.location.type = cudaMemLocationTypeDevice;
  cudaStream_t stream;
  cudaEvent_t event;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaUserObject_t object;
  Expect(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Expect(cudaEventCreate(&event));
  Expect(cudaGraphCreate(&graph, 0));
  AddNodes(graph);
  Expect(cudaGraphInstantiate(&exec, graph, 0));
  Expect(cudaMemPoolCreate(&pool, &pool_properties));
  Expect(cudaUserObjectCreate(&object, nullptr, Noop, 1, cudaUserObjectNoDestructorSync));
  for (void* handle : {static_cast<void*>(stream), static_cast<void*>(event), static_cast<void*>(graph),
                       static_cast<void*>(exec), static_cast<void*>(object), static_cast<void*>(pool)}) {
    g_world.handles.push_back(handle);
  }
  if (live) return;
  Expect(cudaMemPoolDestroy(pool));
  Expect(cudaStreamDestroy(stream));
  Expect(cudaEventDestroy(event));
  Expect(cudaGraphExecDestroy(exec));
  Expect(cudaGraphDestroy(graph));
  Expect(cudaUserObjectRelease(object, 1));
}

void Prepare(bool with_capture) {
  void *device, *freed, *pinned;
  g_world = {};
  for (char*& arena : g_world.arenas) arena = static_cast<char*>(calloc(1, kArenaBytes));
  Expect(cudaMalloc(&device, kArenaBytes));
  Expect(cudaMalloc(&freed, kArenaBytes));
  Expect(cudaFree(freed));
  Expect(cudaMallocHost(&pinned, kArenaBytes));
  Expect(cudaMemset(device, 0, kArenaBytes));
  g_world.addresses = {device,       freed,   pinned,
                       g_world.host, nullptr, reinterpret_cast<void*>(0x1234),
                       device,       pinned,  reinterpret_cast<void*>(&KernelStub)};
  MakeHandles(true);
  MakeHandles(true);
  MakeHandles(false);
  g_world.handles.push_back(nullptr);
  g_world.handles.push_back(reinterpret_cast<void*>(0x1234));
  g_world.handles.push_back(g_world.host);
  g_world.handles.push_back(cudaStreamLegacy);
  g_world.handles.push_back(cudaStreamPerThread);
  g_world.handles.push_back(reinterpret_cast<void*>(UINTPTR_MAX));
  if (!with_capture) return;
  cudaStream_t stream;
  Expect(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Expect(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  Expect(cudaMemsetAsync(device, 1, 1, stream));
  for (int i = 0; i < 4; ++i) g_world.handles.push_back(stream);
}

char* NextArena() {
  char* arena = g_world.arenas[g_world.next_arena++ % kArenas];
  memset(arena, 0, kArenaBytes);
  return arena;
}

template <class T>
T OneOf(Random& random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

template <class T>
constexpr bool kIsHandle =
    std::is_same_v<T, cudaStream_t> || std::is_same_v<T, cudaEvent_t> || std::is_same_v<T, cudaGraph_t> ||
    std::is_same_v<T, cudaGraphNode_t> || std::is_same_v<T, cudaGraphExec_t> || std::is_same_v<T, cudaUserObject_t> ||
    std::is_same_v<T, cudaMemPool_t>;

void* AnyHandle(Random& random) { return g_world.handles[random() % g_world.handles.size()]; }

// A function of the type that does nothing.
template <class... A>
auto NothingFor(void (*)(A...)) -> void (*)(A...) {
  return [](A...) {};
}

// One argument of the type.
template <class T>
T Pick(Random& random) {
  if constexpr (kIsHandle<T>) {
    return static_cast<T>(AnyHandle(random));
  } else if constexpr (std::is_same_v<T, void*> || std::is_same_v<T, const void*>) {
    if (g_world.untyped_is_result) return random() % 4 ? NextArena() : nullptr;
    return g_world.addresses[random() % g_world.addresses.size()];
  } else if constexpr (std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>) {
    return random() % 3 ? NothingFor(T{}) : nullptr;
  } else if constexpr (std::is_pointer_v<T>) {
    using Pointee = std::remove_cv_t<std::remove_pointer_t<T>>;
    if (random() % 4 == 0) return nullptr;
    char* arena = NextArena();
    if constexpr (kIsHandle<Pointee> && std::is_const_v<std::remove_pointer_t<T>>) {
      for (int i = 0; i < kMaxHandles; ++i) {
        void* handle = AnyHandle(random);
        memcpy(arena + i * sizeof(handle), &handle, sizeof(handle));
      }
    }
    return reinterpret_cast<T>(arena);
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(OneOf(random, {0, 0, 1, 2, 3, 4, 99, -1}));
  } else if constexpr (std::is_same_v<T, size_t>) {
    return OneOf<size_t>(random, {0, 1, 1, 16, 64, kArenaBytes, kArenaBytes + 1, SIZE_MAX, SIZE_MAX / 2});
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(OneOf(random, {0, 0, 1, 2, 99, -1, INT_MIN, INT_MAX}));
  } else if constexpr (std::is_same_v<T, dim3>) {
    return OneOf<dim3>(random, {dim3(1), dim3(1), dim3(0), dim3(UINT_MAX, UINT_MAX, UINT_MAX)});
  } else {
    T value;
    memset(&value, random() % 2 ? 0 : 0xff, sizeof(value));
    return value;
  }
}

// With braces the arguments are picked in their order.
struct Call {
  template <class R, class... A>
  Call(R (*function)(A...), A... arguments) {
    (void)function(arguments...);
  }
};

template <class R, class... A>
void CallWithAny(R (*function)(A...), Random& random) {
  Call{function, Pick<A>(random)...};
}

// A row of the table: all that depends on the function's type is behind one pointer, so that the rest is compiled once.
struct Function {
  const char* name;
  void (*call)(Random& random);
};

template <auto kFunction>
void CallOnce(Random& random) {
  CallWithAny(kFunction, random);
}

// What the parent sees of a child's progress.
struct Progress {
  int round;
};

// Calls from `first` on, until one stops the program or all are done. Work that a call has queued runs as well.
[[noreturn]] void RunChild(const Function& function, int first, Progress* progress) {
  alarm(3600);  // ends what hangs
  const int rounds = NumRounds();
  for (progress->round = first; progress->round < rounds; ++progress->round) {
    Random random(static_cast<unsigned>(progress->round) + 1);
    function.call(random);
    cudaGetLastError();
  }
  (void)cudaDeviceSynchronize();
  _exit(0);
}

std::string ReadAll(int fd) {
  std::string text;
  char block[4096];
  ssize_t length;
  while ((length = read(fd, block, sizeof(block))) > 0) text.append(block, static_cast<size_t>(length));
  close(fd);
  return text;
}

void Fuzz(const Function& function) {
  const char* const name = function.name;
  Progress* progress = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(MAP_FAILED, progress);
  const int rounds = NumRounds();
  for (int first = 0; first < rounds; first = progress->round + 1) {
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    pid_t child = fork();
    if (child == 0) {
      dup2(ends[1], STDERR_FILENO);
      Prepare(first % 2 != 0);
      g_world.untyped_is_result = strstr(name, "Attribute") && !strstr(name, "Pointer") && !strstr(name, "Func");
      RunChild(function, first, progress);
    }
    close(ends[1]);
    const std::string text = ReadAll(ends[0]);
    int status;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
        << name << ", round " << progress->round << ", ended with status " << status << "\n"
        << text;
    ASSERT_NE(std::string::npos, text.find(name))
        << "round " << progress->round << " does not name " << name << ": " << text;
  }
  munmap(progress, sizeof(Progress));
}

class BadInput : public testing::Test {
 public:
  explicit BadInput(const Function& function) : function_(function) {}

 protected:
  static void SetUpTestSuite() {
    static const size_t bytes[] = {sizeof(size_t)};
    gcap_sim_kernel_t twin = {};
    twin.function = reinterpret_cast<const void*>(&KernelStub);
    twin.name = "bad_input_kernel";
    twin.arg_bytes = bytes;
    twin.num_args = 1;
    twin.run = [](const gcap_sim_launch_t*, void* const*) {};
    gcap_sim_register_kernel(&twin);
  }
  void TestBody() override { Fuzz(function_); }

 private:
  const Function function_;
};

const Function kFunctions[] = {
#define GCAP_SIM_API(name, class) {#name, CallOnce<&name>},
#define GCAP_SIM_NOT_MODELLED(name, params)
#include "sim/api/api.inc"
#undef GCAP_SIM_API
#undef GCAP_SIM_NOT_MODELLED
};

[[maybe_unused]] const bool kRegistered = [] {
  for (const Function& function : kFunctions) {
    testing::RegisterTest("BadInput", function.name, nullptr, nullptr, __FILE__, __LINE__,
                          [&function]() -> BadInput* { return new BadInput(function); });
  }
  return true;
}();

// --- Calls in host functions ----------------------------------------------------------------------------------------

// The answer to a call with zeros; that of a function that answers no code is not asked for.
template <class R, class... A>
cudaError_t CallWithZeros(R (*function)(A...)) {
  if constexpr (std::is_same_v<R, cudaError_t>) return function(A{}...);
  return cudaErrorUnknown;
}

// The classes as numbers, so that rows can be told apart.
enum { PURE, FREE, UNSAFE, FORBIDDEN, CONTEXT };

void ExpectNotPermitted(const char* name, cudaError_t error) { EXPECT_EQ(cudaErrorNotPermitted, error) << name; }

void CallEverything(void*) {
#define GCAP_SIM_API(name, class) \
  if constexpr (class != PURE) ExpectNotPermitted(#name, CallWithZeros(&name));
#define GCAP_SIM_NOT_MODELLED(name, params)
#include "sim/api/api.inc"
#undef GCAP_SIM_API
#undef GCAP_SIM_NOT_MODELLED
}

TEST(BadInputInAHostFunction, NoCallIsPermitted) {
  ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(cudaStreamPerThread, CallEverything, nullptr));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(cudaStreamPerThread));
}

}  // namespace
