// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Every function that ends something and returns a status, by the rule of gcap/gcap.h ("Ends."): it is refused twice,
// what it was to end is used, the reason goes, and then it ends, with nothing left. Was: many ends answered "nothing
// was destroyed" and had freed the object, which the second call, or the use between, then met. The list of functions
// is read off the headers, so a new end fails here until it has a row.

#include <dirent.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gcap/kit/ep_ops.h"
#include "gcap/kit/kit.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/held_thread.h"
#include "test/support/plain_runs.h"
#include "test/support/replays.h"
#include "test/support/runs.h"
#include "test/support/session_info.h"

namespace gcap {
namespace testing {
namespace {

// --- Reasons to refuse ----------------------------------------------------------------------------------------------

// Somebody captures a stream, without gcap.
struct RawCapture {
  void Begin(cudaStream_t captured) {
    stream = captured;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  }
  void End() {
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  cudaStream_t stream = nullptr;
};

// The calling thread has a scope open, on any stream.
struct Scope {
  void Begin(cudaStream_t stream) { GCAP_ASSERT_OK(gcap_capture_begin(stream, nullptr, &capture)); }
  void End() { gcap_capture_abort(capture); }
  gcap_capture_t* capture = nullptr;
};

// What all scenes have: a stream of the application, and memory.
struct Scene {
  Scene() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&user_stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&elsewhere, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  }
  ~Scene() {
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(elsewhere), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(user_stream), cudaSuccess);
  }
  // One byte more each time, by whatever way the scene has.
  void ExpectFilled(unsigned char byte) {
    unsigned char seen = 0;
    EXPECT_EQ(cudaMemcpy(&seen, memory, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(seen, byte);
  }
  void Clear() {
    EXPECT_EQ(cudaMemset(memory, 0, 64), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // the next work is on a stream that does not wait for it
  }
  gcap_status_t Fill(cudaStream_t stream) { return GCAP_CUDA(cudaMemsetAsync(memory, 7, 64, stream)); }

  cudaStream_t user_stream = nullptr;
  cudaStream_t elsewhere = nullptr;
  void* memory = nullptr;
  RawCapture raw;
  Scope scope;
};

struct Row {
  std::string function, reason;
  gcap_code_t refusal;
  std::function<void()> hinder;
  std::function<gcap_status_t()> end;
  std::function<void()> use;  // while the reason is there
  std::function<void()> help;
};

// Makes the scene of a row. The scene ends with the row.
using MakeRow = std::function<Row()>;

// --- Streams --------------------------------------------------------------------------------------------------------

struct StreamScene : Scene {
  StreamScene() { GCAP_EXPECT_OK(gcap_stream_create(0, &stream)); }
  void ExpectListed() { EXPECT_EQ(gcap_stream_from_handle(gcap_stream_handle(stream)), stream); }
  gcap_stream_t* stream = nullptr;
};

Row StreamThatCaptures() {
  auto s = std::make_shared<StreamScene>();
  return {"gcap_stream_destroy",
          "the stream is captured",
          GCAP_FAILED_PRECONDITION,
          [s] { s->raw.Begin(gcap_stream_handle(s->stream)); },
          [s] { return gcap_stream_destroy(s->stream); },
          [s] { s->ExpectListed(); },
          [s] { s->raw.End(); }};
}

Row StreamWithAReleaseOnACapturingThread() {
  auto s = std::make_shared<StreamScene>();
  return {"gcap_stream_destroy",
          "the thread captures and the stream has a deferred release",
          GCAP_FAILED_PRECONDITION,
          [s] {
            GCAP_EXPECT_OK(gcap_stream_defer(
                s->stream, [](void*) {}, nullptr));
            s->scope.Begin(s->elsewhere);
          },
          [s] { return gcap_stream_destroy(s->stream); },
          [s] { s->ExpectListed(); },
          [s] { s->scope.End(); }};
}

Row StreamThatCannotBeDrained() {
  auto s = std::make_shared<StreamScene>();
  return {"gcap_stream_destroy",
          "the stream cannot be drained",
          GCAP_CUDA_ERROR,
          [] {},
          [s, calls = std::make_shared<int>(0)] {
            if (++*calls <= 2) gcap_sim_fail_nth("cudaStreamSynchronize", 1, cudaErrorUnknown);
            return gcap_stream_destroy(s->stream);
          },
          [s] {
            s->ExpectListed();
            GCAP_EXPECT_OK(gcap_stream_synchronize(s->stream));
          },
          [] {}};
}

Row StreamOfWhichNobodyKnowsWhetherItCaptures() {
  auto s = std::make_shared<StreamScene>();
  return {"gcap_stream_destroy",
          "the runtime does not say whether the stream captures",
          GCAP_CUDA_ERROR,
          [] {},
          [s, calls = std::make_shared<int>(0)] {
            if (++*calls <= 2) gcap_sim_fail_nth("cudaStreamIsCapturing", 1, cudaErrorUnknown);
            return gcap_stream_destroy(s->stream);
          },
          [s] { s->ExpectListed(); },
          [] {}};
}

// --- Graphs ---------------------------------------------------------------------------------------------------------

struct GraphScene : Scene {
  GraphScene() {
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    options.min_num_runs_before_capture = 0;
    GCAP_EXPECT_OK(gcap_graph_manager_create(&options, &manager));
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    GCAP_EXPECT_OK(BeginPlain(manager, 0, user_stream, &kind));
    GCAP_EXPECT_OK(EndPlain(manager, Fill(user_stream), /*synchronize=*/true));
  }
  void ExpectCaptured() { EXPECT_TRUE(gcap_graph_manager_is_captured(manager, 0)); }
  void ExpectReplays() {
    Clear();
    GCAP_EXPECT_OK(Replay(manager, 0, /*synchronize=*/true));
    ExpectFilled(7);
  }
  gcap_status_t EndManager(gcap_status_t status) {
    return status != nullptr ? status : gcap_graph_manager_destroy(manager);
  }
  gcap_graph_manager_t* manager = nullptr;
  std::unique_ptr<HeldThread> thread;
};

Row ManagerOnACapturingThread() {
  auto s = std::make_shared<GraphScene>();
  return {"gcap_graph_manager_destroy",
          "the thread captures",
          GCAP_FAILED_PRECONDITION,
          [s] { s->scope.Begin(s->elsewhere); },
          [s] { return gcap_graph_manager_destroy(s->manager); },
          [s] { s->ExpectCaptured(); },
          [s] { s->scope.End(); }};
}

Row ManagerOfACapturedStream() {
  auto s = std::make_shared<GraphScene>();
  return {"gcap_graph_manager_destroy",
          "a graph's stream is captured",
          GCAP_FAILED_PRECONDITION,
          [s] { s->raw.Begin(s->user_stream); },
          [s] { return gcap_graph_manager_destroy(s->manager); },
          [s] { s->ExpectCaptured(); },
          [s] {
            s->raw.End();
            s->ExpectReplays();
          }};
}

Row ManagerWithARunOfAnotherThread() {
  auto s = std::make_shared<GraphScene>();
  return {"gcap_graph_manager_destroy",
          "another thread has a run open",
          GCAP_FAILED_PRECONDITION,
          [s] {
            s->thread = std::make_unique<HeldThread>([s] {
              gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
              GCAP_EXPECT_OK(BeginPlain(s->manager, GCAP_GRAPH_ID_NONE, s->user_stream, &kind));
            });
          },
          [s] { return gcap_graph_manager_destroy(s->manager); },
          [s] { s->ExpectReplays(); },
          [s] { s->thread->Release(); }};
}

Row GraphOfACapturedStream() {
  auto s = std::make_shared<GraphScene>();
  return {"gcap_graph_manager_release",
          "the graph's stream is captured",
          GCAP_FAILED_PRECONDITION,
          [s] { s->raw.Begin(s->user_stream); },
          [s] { return s->EndManager(gcap_graph_manager_release(s->manager, 0)); },
          [s] { s->ExpectCaptured(); },
          [s] {
            s->raw.End();
            s->ExpectReplays();
          }};
}

Row GraphsOnACapturingThread() {
  auto s = std::make_shared<GraphScene>();
  return {"gcap_graph_manager_release_all",
          "the thread captures",
          GCAP_FAILED_PRECONDITION,
          [s] { s->scope.Begin(s->elsewhere); },
          [s] { return s->EndManager(gcap_graph_manager_release_all(s->manager)); },
          [s] { s->ExpectCaptured(); },
          [s] {
            s->scope.End();
            s->ExpectReplays();
          }};
}

// --- Memory ---------------------------------------------------------------------------------------------------------

struct ScratchScene : StreamScene {
  ScratchScene() {
    GCAP_EXPECT_OK(gcap_device_allocator_create(0, &upstream));
    GCAP_EXPECT_OK(gcap_scratch_create(upstream, nullptr, &scratch));
  }
  ~ScratchScene() {
    gcap_allocator_destroy(upstream);
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }
  void ExpectWhole() {
    void* another = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, 5000, stream, &another));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, another));
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
  }
  gcap_allocator_t* upstream = nullptr;
  gcap_scratch_t* scratch = nullptr;
  void* block = nullptr;
  gcap_scratch_reservation_t* reservation = nullptr;
};

Row ScratchWithABlock() {
  auto s = std::make_shared<ScratchScene>();
  return {"gcap_scratch_destroy",
          "a block is handed out",
          GCAP_FAILED_PRECONDITION,
          [s] { GCAP_EXPECT_OK(gcap_scratch_alloc(s->scratch, 1000, s->stream, &s->block)); },
          [s] { return gcap_scratch_destroy(s->scratch); },
          [s] { s->ExpectWhole(); },
          [s] { GCAP_EXPECT_OK(gcap_scratch_free(s->scratch, s->block)); }};
}

Row ScratchWithAReservation() {
  auto s = std::make_shared<ScratchScene>();
  return {"gcap_scratch_destroy",
          "a reservation lives",
          GCAP_FAILED_PRECONDITION,
          [s] {
            GCAP_EXPECT_OK(gcap_scratch_reservation_open(s->scratch, s->stream, &s->reservation));
            gcap_scratch_reservation_close(s->reservation);
          },
          [s] { return gcap_scratch_destroy(s->scratch); },
          [s] { s->ExpectWhole(); },
          [s] { gcap_scratch_reservation_release(s->reservation); }};
}

// --- Runtime, EP, session -------------------------------------------------------------------------------------------

// A runtime on the application's stream, with a graph that uses scratch. Of two runs the second one is captured.
struct RuntimeScene : Scene {
  RuntimeScene() {
    gcap_options_t options;
    gcap_options_init(&options);
    options.enable_cuda_graph = true;
    options.graph.min_num_runs_before_capture = 1;
    options.has_user_stream = true;
    options.user_stream = user_stream;
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime));
    GCAP_EXPECT_OK(gcap_runtime_get_resources(runtime, &resources));
  }
  void Capture() {
    for (int i = 0; i < 2; ++i) GCAP_EXPECT_OK(RunOnRuntime(runtime, 0, Work, this, /*synchronize=*/true));
  }
  static gcap_status_t Work(void* user, const gcap_run_resources_t* run) {
    void* scratch = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, 64, run->stream, &scratch));
    gcap_status_t status = static_cast<Scene*>(user)->Fill(gcap_stream_handle(run->stream));
    return gcap_status_join(status, gcap_scratch_free(run->scratch, scratch));
  }
  void ExpectCaptured() { EXPECT_TRUE(gcap_runtime_is_captured(runtime, 0)); }
  void ExpectReplays() {
    Clear();
    bool replayed = false;
    GCAP_EXPECT_OK(TryReplay(runtime, 0, /*synchronize=*/true, &replayed));
    EXPECT_TRUE(replayed);
    ExpectFilled(7);
  }
  gcap_status_t EndRuntime(gcap_status_t status) { return status != nullptr ? status : gcap_runtime_destroy(runtime); }
  gcap_runtime_t* runtime = nullptr;
  gcap_run_resources_t resources = {};
  void* block = nullptr;
  gcap_scratch_reservation_t* reservation = nullptr;
  std::unique_ptr<HeldThread> thread;
};

std::shared_ptr<RuntimeScene> CapturedRuntime() {
  auto s = std::make_shared<RuntimeScene>();
  s->Capture();
  return s;
}

Row RuntimeWithABlock() {
  auto s = CapturedRuntime();
  return {"gcap_runtime_destroy",
          "a block of scratch is handed out",
          GCAP_FAILED_PRECONDITION,
          [s] { GCAP_EXPECT_OK(gcap_scratch_alloc(s->resources.scratch, 1000, s->resources.stream, &s->block)); },
          [s] { return gcap_runtime_destroy(s->runtime); },
          [s] { s->ExpectReplays(); },
          [s] { GCAP_EXPECT_OK(gcap_scratch_free(s->resources.scratch, s->block)); }};
}

Row RuntimeWithAReservation() {
  auto s = CapturedRuntime();
  return {"gcap_runtime_destroy",
          "a reservation is open",
          GCAP_FAILED_PRECONDITION,
          [s] {
            GCAP_EXPECT_OK(gcap_scratch_reservation_open(s->resources.scratch, s->resources.stream, &s->reservation));
          },
          [s] { return gcap_runtime_destroy(s->runtime); },
          [s] { s->ExpectReplays(); },
          [s] {
            gcap_scratch_reservation_close(s->reservation);
            gcap_scratch_reservation_release(s->reservation);
          }};
}

Row RuntimeOfACapturedStream() {
  auto s = CapturedRuntime();
  return {"gcap_runtime_destroy",
          "the user's stream is captured",
          GCAP_FAILED_PRECONDITION,
          [s] { s->raw.Begin(s->user_stream); },
          [s] { return gcap_runtime_destroy(s->runtime); },
          [s] { s->ExpectCaptured(); },
          [s] {
            s->raw.End();
            s->ExpectReplays();
          }};
}

Row RuntimeOnACapturingThread() {
  auto s = CapturedRuntime();
  return {"gcap_runtime_destroy",
          "the thread captures",
          GCAP_FAILED_PRECONDITION,
          [s] { s->scope.Begin(s->elsewhere); },
          [s] { return gcap_runtime_destroy(s->runtime); },
          [s] { s->ExpectCaptured(); },
          [s] { s->scope.End(); }};
}

Row RuntimeWithARunOfAnotherThread() {
  auto s = CapturedRuntime();
  return {"gcap_runtime_destroy",
          "another thread has a run open",
          GCAP_FAILED_PRECONDITION,
          [s] {
            s->thread = std::make_unique<HeldThread>([s] { GCAP_EXPECT_OK(BeginRun(s->runtime, GCAP_GRAPH_ID_NONE)); });
          },
          [s] { return gcap_runtime_destroy(s->runtime); },
          [s] { s->ExpectReplays(); },
          [s] { s->thread->Release(); }};
}

Row RuntimesGraphOnACapturingThread() {
  auto s = CapturedRuntime();
  return {"gcap_runtime_release",
          "the thread captures",
          GCAP_FAILED_PRECONDITION,
          [s] { s->scope.Begin(s->elsewhere); },
          [s] { return s->EndRuntime(gcap_runtime_release(s->runtime, 0)); },
          [s] { s->ExpectCaptured(); },
          [s] {
            s->scope.End();
            s->ExpectReplays();
          }};
}

// An EP that is a runtime, and ends with it; and a session of one node, which fills its output.
struct EpScene : RuntimeScene {
  EpScene() {
    gcap_ep_ops_t ops = {};
    ops.struct_size = sizeof(gcap_ep_ops_t);
    ops.name = "runtime";
    ops.self = this;
    const gcap_runtime_ops_t table = ForwardingOps::Runs(runtime);
    GCAP_EXPECT_OK(gcap_runtime_create_from(&table, &of_ep));
    ops.runtime = of_ep;
    ops.supports = [](void*, const gcap_model_t*, const gcap_node_t*) { return true; };
    ops.create_kernel = [](void*, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t* out) {
      out->compute = [](void*, const gcap_kernel_context_t* context) {
        return GCAP_CUDA(cudaMemsetAsync(context->outputs[0].data, 7, gcap_tensor_bytes(&context->outputs[0]),
                                         gcap_stream_handle(context->resources.stream)));
      };
      return gcap_status_t(nullptr);
    };
    ops.destroy = [](void* self) {  // a table without destroy ends nothing
      EpScene* scene = static_cast<EpScene*>(self);
      gcap_status_t status = gcap_runtime_destroy(scene->runtime);
      if (status != nullptr && gcap_status_code(status) != GCAP_LEAKED) return status;
      return gcap_status_join(status, gcap_runtime_destroy(scene->of_ep));
    };
    GCAP_EXPECT_OK(gcap_ep_create(&ops, &ep));
  }
  void CreateSession() {
    const int in = 0, out = 1, weights = 2;
    const float content[16] = {};
    const gcap_value_t values[] = {{"in", GCAP_DTYPE_F32, 1, {16}, nullptr},
                                   {"out", GCAP_DTYPE_F32, 1, {16}, nullptr},
                                   {"weights", GCAP_DTYPE_F32, 1, {16}, content}};
    const int inputs[] = {in, weights};
    const gcap_node_t node = {"Fill", "fill", inputs, 2, &out, 1, nullptr};
    const gcap_model_t model = {values, 3, &node, 1, &in, 1, &out, 1, nullptr, 0};
    GCAP_ASSERT_OK(gcap_session_create(&model, &ep, 1, nullptr, &session));
    for (int i = 0; i < 2; ++i) GCAP_EXPECT_OK(Run());
  }
  gcap_status_t Run() {
    const gcap_tensor_t tensor = {memory, GCAP_DTYPE_F32, 1, {16}};
    return gcap_session_run(session, nullptr, &tensor, &tensor);
  }
  void ExpectRuns() {
    Clear();
    GCAP_EXPECT_OK(Run());
    ExpectFilled(7);
  }
  gcap_status_t EndSession() {
    gcap_status_t status = session != nullptr ? gcap_session_destroy(session) : nullptr;
    if (status == nullptr) session = nullptr;
    return status;
  }
  gcap_status_t EndEp(gcap_status_t status) { return status != nullptr ? status : gcap_ep_destroy(ep); }
  gcap_runtime_t* of_ep = nullptr;  // a table of the test's, which asks `runtime`
  gcap_ep_t* ep = nullptr;
  gcap_session_t* session = nullptr;
};

std::shared_ptr<EpScene> WithSession() {
  auto s = std::make_shared<EpScene>();
  s->CreateSession();
  return s;
}

Row EpWithASession() {
  auto s = WithSession();
  return {"gcap_ep_destroy",
          "a session lives",
          GCAP_FAILED_PRECONDITION,
          [] {},
          [s] { return gcap_ep_destroy(s->ep); },
          [s] { s->ExpectRuns(); },
          [s] { GCAP_EXPECT_OK(s->EndSession()); }};
}

Row EpOfARuntimeWithABlock() {
  auto s = std::make_shared<EpScene>();
  s->Capture();
  return {"gcap_ep_destroy",
          "the runtime has a block handed out",
          GCAP_FAILED_PRECONDITION,
          [s] { GCAP_EXPECT_OK(gcap_scratch_alloc(s->resources.scratch, 1000, s->resources.stream, &s->block)); },
          [s] { return gcap_ep_destroy(s->ep); },
          [s] { s->ExpectReplays(); },
          [s] { GCAP_EXPECT_OK(gcap_scratch_free(s->resources.scratch, s->block)); }};
}

Row SessionOfACapturedStream() {
  auto s = WithSession();
  return {"gcap_session_destroy",
          "the user's stream is captured",
          GCAP_FAILED_PRECONDITION,
          [s] { s->raw.Begin(s->user_stream); },
          [s] { return s->EndEp(s->EndSession()); },
          [s] { EXPECT_STREQ(SessionInfo(s->session).ep_name, "runtime"); },
          [s] {
            s->raw.End();
            s->ExpectRuns();
          }};
}

struct BoundScene : EpScene {
  void Bind() {
    CreateSession();
    GCAP_ASSERT_OK(gcap_io_binding_create(session, &binding));
    const gcap_tensor_t tensor = {memory, GCAP_DTYPE_F32, 1, {16}};
    GCAP_ASSERT_OK(gcap_io_binding_bind_input(binding, "in", &tensor, {GCAP_MEMORY_DEVICE, 0}));
    GCAP_ASSERT_OK(gcap_io_binding_bind_output(binding, "out", &tensor, {GCAP_MEMORY_DEVICE, 0}));
  }
  void ExpectRunsBound() {
    Clear();
    GCAP_EXPECT_OK(gcap_session_run_bound(session, nullptr, binding));
    ExpectFilled(7);
  }
  gcap_status_t EndBinding() {
    gcap_status_t status = gcap_io_binding_destroy(binding);
    if (status == nullptr) binding = nullptr;
    return status;
  }
  gcap_io_binding_t* binding = nullptr;
};

Row SessionWithABinding() {
  auto s = std::make_shared<BoundScene>();
  s->Bind();
  return {"gcap_session_destroy",
          "an IO binding lives",
          GCAP_FAILED_PRECONDITION,
          [] {},
          [s] { return s->EndEp(s->EndSession()); },
          [s] { s->ExpectRunsBound(); },
          [s] { GCAP_EXPECT_OK(s->EndBinding()); }};
}

Row BindingOnACapturingThread() {
  auto s = std::make_shared<BoundScene>();
  s->Bind();
  return {"gcap_io_binding_destroy",
          "the thread captures",
          GCAP_FAILED_PRECONDITION,
          [s] { s->scope.Begin(s->elsewhere); },
          [s] {
            GCAP_RETURN_IF_ERROR(s->EndBinding());
            return s->EndEp(s->EndSession());
          },
          [s] { s->ExpectCaptured(); },
          [s] {
            s->scope.End();
            s->ExpectRunsBound();
          }};
}

Row SessionsGraphOnACapturingThread() {
  auto s = WithSession();
  return {"gcap_session_release_captured_graph",
          "the thread captures",
          GCAP_FAILED_PRECONDITION,
          [s] { s->scope.Begin(s->elsewhere); },
          [s] {
            if (s->session != nullptr) GCAP_RETURN_IF_ERROR(gcap_session_release_captured_graph(s->session, 0));
            return s->EndEp(s->EndSession());
          },
          [s] { s->ExpectCaptured(); },
          [s] {
            s->scope.End();
            s->ExpectRuns();
          }};
}

const MakeRow kRows[] = {
    StreamThatCaptures,
    StreamWithAReleaseOnACapturingThread,
    StreamThatCannotBeDrained,
    StreamOfWhichNobodyKnowsWhetherItCaptures,
    ManagerOnACapturingThread,
    ManagerOfACapturedStream,
    ManagerWithARunOfAnotherThread,
    GraphOfACapturedStream,
    GraphsOnACapturingThread,
    ScratchWithABlock,
    ScratchWithAReservation,
    RuntimeWithABlock,
    RuntimeWithAReservation,
    RuntimeOfACapturedStream,
    RuntimeOnACapturingThread,
    RuntimeWithARunOfAnotherThread,
    RuntimesGraphOnACapturingThread,
    EpWithASession,
    EpOfARuntimeWithABlock,
    SessionOfACapturedStream,
    SessionsGraphOnACapturingThread,
    SessionWithABinding,
    BindingOnACapturingThread,
};

// --- The table is whole ---------------------------------------------------------------------------------------------

constexpr const char* kHeaders[] = {"include/gcap", "include/gcap/kit"};

// The functions that the text declares to end something and to return a status.
std::set<std::string> EndsIn(const std::string& text) {
  static const std::regex declaration(R"(gcap_status_t\s+(gcap_\w+_(destroy|release\w*|deinit))\s*\()");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at) names.insert((*at)[1]);
  return names;
}

std::set<std::string> EndsInHeaders() {
  std::set<std::string> declared;
  for (const char* path : kHeaders) {
    DIR* folder = opendir(path);
    while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
      std::ifstream file(path + ("/" + std::string(entry->d_name)));
      std::ostringstream text;
      text << file.rdbuf();
      for (const std::string& name : EndsIn(text.str())) declared.insert(name);
    }
    if (folder != nullptr) closedir(folder);
  }
  return declared;
}

TEST(Ends, AreFoundInAHeaderHoweverTheDeclarationIsBroken) {
  EXPECT_EQ(EndsIn("gcap_status_t gcap_a_destroy(int);\ngcap_status_t\n gcap_b_release_all(void);\n"
                   "void gcap_c_destroy(int);\ngcap_status_t gcap_d_create(int);"),
            (std::set<std::string>{"gcap_a_destroy", "gcap_b_release_all"}));
}

// Refused twice and used between, then ended.
void Try(const Row& row) {
  SCOPED_TRACE(row.function + ": " + row.reason);
  row.hinder();
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome(row.end());
    ASSERT_STREQ(gcap_code_name(outcome.code), gcap_code_name(row.refusal)) << outcome.message;
    row.use();
  }
  row.help();
  GCAP_EXPECT_OK(row.end());
}

TEST(Ends, EachOneOfTheHeadersIsRefusedTwiceAndThenEndsAndLeavesNothing) {
  std::set<std::string> tried;
  for (const MakeRow& make : kRows) {
    const Handles before = LiveHandles();
    {
      const Row row = make();
      tried.insert(row.function);
      Try(row);
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(LiveHandles(), before);
  }
  EXPECT_EQ(tried, EndsInHeaders()) << "each end that a header declares has a row";
}

}  // namespace
}  // namespace testing
}  // namespace gcap
