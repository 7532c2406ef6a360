// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Every function that ends something and returns a status, by the rule of gcap/gcap.h ("Ends."): it is refused twice,
// what it was to end is used, the reason goes, and then it ends, with nothing left. Was: many ends answered "nothing
// was destroyed" and had freed the object, which the second call, or the use between, then met. The list of functions
// is read off the headers, so a new end fails here until it has a row.

#include <functional>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gcap/kit/ep_ops.h"
#include "gcap/kit/kit.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/fault/headers.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/held_thread.h"
#include "test/support/plain_runs.h"
#include "test/support/replays.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {
namespace {

// --- Scenes: what is to end, reasons to refuse, and uses ------------------------------------------------------------

// What all scenes have: a stream of the application, memory that the scene's work fills, and captures.
struct Scene {
  Scene() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&user_stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&elsewhere, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  }
  virtual ~Scene() {
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(elsewhere), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(user_stream), cudaSuccess);
  }
  void Nothing() {}
  // The calling thread has a scope open, on any stream.
  void OpenScope() { GCAP_ASSERT_OK(gcap_capture_begin(elsewhere, nullptr, &scope)); }
  void CloseScope() { gcap_capture_abort(scope); }
  // Somebody captures the stream, without gcap.
  void CaptureStream() { ASSERT_EQ(cudaStreamBeginCapture(Captured(), cudaStreamCaptureModeRelaxed), cudaSuccess); }
  void EndCapture() {
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(Captured(), &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  // Another thread has a run open, from `begin` on.
  void HoldThread(std::function<void()> begin) { thread = std::make_unique<HeldThread>(std::move(begin)); }
  void ReleaseThread() { thread->Release(); }

  virtual cudaStream_t Captured() { return user_stream; }
  virtual void ExpectWhole() = 0;  // what is to end works
  void Clear() {
    EXPECT_EQ(cudaMemset(memory, 0, 64), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // the next work is on a stream that does not wait for it
  }
  gcap_status_t Fill(cudaStream_t stream) { return GCAP_CUDA(cudaMemsetAsync(memory, 7, 64, stream)); }
  void ExpectFilled() {
    unsigned char seen = 0;
    EXPECT_EQ(cudaMemcpy(&seen, memory, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(seen, 7);
  }

  cudaStream_t user_stream = nullptr, elsewhere = nullptr;
  void* memory = nullptr;
  gcap_capture_t* scope = nullptr;
  std::unique_ptr<HeldThread> thread;
};

struct StreamScene : Scene {
  StreamScene() { GCAP_EXPECT_OK(gcap_stream_create(0, &stream)); }
  cudaStream_t Captured() override { return gcap_stream_handle(stream); }
  void ExpectWhole() override { EXPECT_EQ(gcap_stream_from_handle(gcap_stream_handle(stream)), stream); }
  void DeferAndOpenScope() {
    GCAP_EXPECT_OK(gcap_stream_defer(
        stream, [](void*) {}, nullptr));
    OpenScope();
  }
  gcap_status_t End() { return gcap_stream_destroy(stream); }
  gcap_status_t EndUndrained() {
    if (++ends <= 2) gcap_sim_fail_nth("cudaStreamSynchronize", 1, cudaErrorUnknown);
    return End();
  }
  void Synchronize() {
    ExpectWhole();
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  }
  gcap_status_t EndUnknown() {
    if (++ends <= 2) gcap_sim_fail_nth("cudaStreamIsCapturing", 1, cudaErrorUnknown);
    return End();
  }
  gcap_stream_t* stream = nullptr;
  int ends = 0;
};

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
  void ExpectWhole() override {
    Clear();
    GCAP_EXPECT_OK(Replay(manager, 0, /*synchronize=*/true));
    ExpectFilled();
  }
  void BeginElsewhere() {
    HoldThread([this] {
      gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
      GCAP_EXPECT_OK(BeginPlain(manager, GCAP_GRAPH_ID_NONE, user_stream, &kind));
    });
  }
  gcap_status_t End() { return gcap_graph_manager_destroy(manager); }
  gcap_status_t EndGraph() {
    GCAP_RETURN_IF_ERROR(gcap_graph_manager_release(manager, 0));
    return End();
  }
  gcap_status_t EndGraphs() {
    GCAP_RETURN_IF_ERROR(gcap_graph_manager_release_all(manager));
    return End();
  }
  gcap_graph_manager_t* manager = nullptr;
};

// Blocks and reservations of a scratch.
template <typename Base>
struct WithScratch : Base {
  virtual gcap_scratch_t* Scratch() = 0;
  virtual gcap_stream_t* Stream() = 0;
  void TakeBlock() { GCAP_EXPECT_OK(gcap_scratch_alloc(Scratch(), 1000, Stream(), &block)); }
  void FreeBlock() { GCAP_EXPECT_OK(gcap_scratch_free(Scratch(), block)); }
  void Reserve() { GCAP_EXPECT_OK(gcap_scratch_reservation_open(Scratch(), Stream(), &reservation)); }
  void ReserveAndClose() {
    Reserve();
    gcap_scratch_reservation_close(reservation);
  }
  void Release() {
    gcap_scratch_reservation_close(reservation);
    gcap_scratch_reservation_release(reservation);
  }
  void* block = nullptr;
  gcap_scratch_reservation_t* reservation = nullptr;
};

struct ScratchScene : WithScratch<StreamScene> {
  ScratchScene() {
    GCAP_EXPECT_OK(gcap_device_allocator_create(0, &upstream));
    GCAP_EXPECT_OK(gcap_scratch_create(upstream, nullptr, &scratch));
  }
  ~ScratchScene() override {
    gcap_allocator_destroy(upstream);
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }
  gcap_scratch_t* Scratch() override { return scratch; }
  gcap_stream_t* Stream() override { return stream; }
  void ExpectWhole() override {
    void* another = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, 5000, stream, &another));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, another));
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
  }
  gcap_status_t EndScratch() { return gcap_scratch_destroy(scratch); }
  gcap_allocator_t* upstream = nullptr;
  gcap_scratch_t* scratch = nullptr;
};

// A runtime on the application's stream, with a graph that uses scratch. Of two runs the second one is captured.
struct RuntimeScene : WithScratch<Scene> {
  explicit RuntimeScene(bool captures = true) {
    gcap_options_t options;
    gcap_options_init(&options);
    options.enable_cuda_graph = true;
    options.graph.min_num_runs_before_capture = 1;
    options.has_user_stream = true;
    options.user_stream = user_stream;
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime));
    GCAP_EXPECT_OK(gcap_runtime_get_resources(runtime, &resources));
    for (int i = 0; captures && i < 2; ++i) {
      GCAP_EXPECT_OK(RunOnRuntime(runtime, 0, Work, static_cast<Scene*>(this), /*synchronize=*/true));
    }
  }
  static gcap_status_t Work(void* user, const gcap_run_resources_t* run) {
    void* scratch = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, 64, run->stream, &scratch));
    gcap_status_t status = static_cast<Scene*>(user)->Fill(gcap_stream_handle(run->stream));
    return gcap_status_join(status, gcap_scratch_free(run->scratch, scratch));
  }
  gcap_scratch_t* Scratch() override { return resources.scratch; }
  gcap_stream_t* Stream() override { return resources.stream; }
  void ExpectCaptured() { EXPECT_TRUE(gcap_runtime_is_captured(runtime, 0)); }
  void ExpectWhole() override {
    Clear();
    bool replayed = false;
    GCAP_EXPECT_OK(TryReplay(runtime, 0, /*synchronize=*/true, &replayed));
    EXPECT_TRUE(replayed);
    ExpectFilled();
  }
  void BeginElsewhere() {
    HoldThread([this] { GCAP_EXPECT_OK(BeginRun(runtime, GCAP_GRAPH_ID_NONE)); });
  }
  gcap_status_t End() { return gcap_runtime_destroy(runtime); }
  gcap_status_t EndGraph() {
    GCAP_RETURN_IF_ERROR(gcap_runtime_release(runtime, 0));
    return End();
  }
  gcap_runtime_t* runtime = nullptr;
  gcap_run_resources_t resources = {};
};

// An EP that is a runtime, and ends with it.
struct EpScene : RuntimeScene {
  explicit EpScene(bool captures = true) : RuntimeScene(captures) {
    const gcap_runtime_ops_t table = ForwardingOps::Runs(runtime);
    GCAP_EXPECT_OK(gcap_runtime_create_from(&table, &of_ep));
    gcap_ep_ops_t ops = {};
    ops.struct_size = sizeof(gcap_ep_ops_t);
    ops.name = "runtime";
    ops.self = this;
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
  gcap_status_t EndEp() { return gcap_ep_destroy(ep); }
  gcap_runtime_t* of_ep = nullptr;  // a table of the test's, which asks `runtime`
  gcap_ep_t* ep = nullptr;
};

// A session of one node, which fills its output; and an IO binding.
struct SessionScene : EpScene {
  SessionScene() : EpScene(/*captures=*/false) {
    const int in = 0, out = 1, weights = 2;
    const float content[16] = {};
    const gcap_value_t values[] = {{"in", GCAP_DTYPE_F32, 1, {16}, nullptr},
                                   {"out", GCAP_DTYPE_F32, 1, {16}, nullptr},
                                   {"weights", GCAP_DTYPE_F32, 1, {16}, content}};
    const int inputs[] = {in, weights};
    const gcap_node_t node = {"Fill", "fill", inputs, 2, &out, 1, nullptr};
    const gcap_model_t model = {values, 3, &node, 1, &in, 1, &out, 1, nullptr, 0};
    GCAP_EXPECT_OK(gcap_session_create(&model, &ep, 1, nullptr, &session));
    for (int i = 0; i < 2; ++i) GCAP_EXPECT_OK(Run());
  }
  gcap_status_t Run() {
    const gcap_tensor_t tensor = {memory, GCAP_DTYPE_F32, 1, {16}};
    if (binding == nullptr) return gcap_session_run(session, nullptr, &tensor, &tensor);
    GCAP_RETURN_IF_ERROR(gcap_io_binding_bind_input(binding, "in", &tensor, {GCAP_MEMORY_DEVICE, 0}));
    GCAP_RETURN_IF_ERROR(gcap_io_binding_bind_output(binding, "out", &tensor, {GCAP_MEMORY_DEVICE, 0}));
    return gcap_session_run_bound(session, nullptr, binding);
  }
  void ExpectWhole() override {
    if (session == nullptr) return;
    Clear();
    GCAP_EXPECT_OK(Run());
    ExpectFilled();
  }
  void ExpectNamed() { EXPECT_STREQ(gcap_session_ep_name(session), "runtime"); }
  void Bind() {
    GCAP_EXPECT_OK(gcap_io_binding_create(session, &binding));
    GCAP_EXPECT_OK(Run());
  }
  void BindAndOpenScope() {
    Bind();
    OpenScope();
  }
  gcap_status_t EndBinding() {
    GCAP_RETURN_IF_ERROR(gcap_io_binding_destroy(binding));
    binding = nullptr;
    return nullptr;
  }
  gcap_status_t EndSession() {
    GCAP_RETURN_IF_ERROR(gcap_session_destroy(session));
    session = nullptr;
    return nullptr;
  }
  gcap_status_t EndSessionAndEp() {
    GCAP_RETURN_IF_ERROR(EndSession());
    return EndEp();
  }
  gcap_status_t EndGraphAndAll() {
    GCAP_RETURN_IF_ERROR(gcap_session_release_captured_graph(session, 0));
    return EndSessionAndEp();
  }
  gcap_status_t EndBindingAndAll() {
    GCAP_RETURN_IF_ERROR(EndBinding());
    return EndSessionAndEp();
  }
  void DropBinding() { GCAP_EXPECT_OK(EndBinding()); }
  void DropSession() { GCAP_EXPECT_OK(EndSession()); }
  gcap_session_t* session = nullptr;
  gcap_io_binding_t* binding = nullptr;
};

// --- Rows -----------------------------------------------------------------------------------------------------------

struct Row {
  const char *function, *reason;
  std::function<void(const Row&)> try_it;
  gcap_code_t refusal = GCAP_FAILED_PRECONDITION;
};

// Refused twice and used between, then ended.
template <typename S>
Row Of(const char* function, const char* reason, void (S::*hinder)(), gcap_status_t (S::*end)(), void (S::*use)(),
       void (S::*help)(), gcap_code_t refusal = GCAP_FAILED_PRECONDITION) {
  const auto try_it = [=](const Row& row) {
    S scene;
    (scene.*hinder)();
    for (int i = 0; i < 2; ++i) {
      const Outcome outcome((scene.*end)());
      ASSERT_STREQ(gcap_code_name(outcome.code), gcap_code_name(row.refusal)) << outcome.message;
      (scene.*use)();
    }
    (scene.*help)();
    scene.ExpectWhole();
    GCAP_EXPECT_OK((scene.*end)());
  };
  return {function, reason, try_it, refusal};
}

std::vector<Row> StreamRows() {
  using S = StreamScene;
  const char* const end = "gcap_stream_destroy";
  return {
      Of<S>(end, "the stream is captured", &S::CaptureStream, &S::End, &S::ExpectWhole, &S::EndCapture),
      Of<S>(end, "the thread captures and the stream has a deferred release", &S::DeferAndOpenScope, &S::End,
            &S::ExpectWhole, &S::CloseScope),
      Of<S>(end, "the stream cannot be drained", &S::Nothing, &S::EndUndrained, &S::Synchronize, &S::Nothing,
            GCAP_CUDA_ERROR),
      Of<S>(end, "the runtime does not say whether the stream captures", &S::Nothing, &S::EndUnknown, &S::ExpectWhole,
            &S::Nothing, GCAP_CUDA_ERROR),
  };
}

std::vector<Row> GraphRows() {
  using S = GraphScene;
  const char* const end = "gcap_graph_manager_destroy";
  return {
      Of<S>(end, "the thread captures", &S::OpenScope, &S::End, &S::ExpectCaptured, &S::CloseScope),
      Of<S>(end, "a graph's stream is captured", &S::CaptureStream, &S::End, &S::ExpectCaptured, &S::EndCapture),
      Of<S>(end, "another thread has a run open", &S::BeginElsewhere, &S::End, &S::ExpectWhole, &S::ReleaseThread),
      Of<S>("gcap_graph_manager_release", "the graph's stream is captured", &S::CaptureStream, &S::EndGraph,
            &S::ExpectCaptured, &S::EndCapture),
      Of<S>("gcap_graph_manager_release_all", "the thread captures", &S::OpenScope, &S::EndGraphs, &S::ExpectCaptured,
            &S::CloseScope),
  };
}

std::vector<Row> ScratchRows() {
  using S = ScratchScene;
  const char* const end = "gcap_scratch_destroy";
  return {
      Of<S>(end, "a block is handed out", &S::TakeBlock, &S::EndScratch, &S::ExpectWhole, &S::FreeBlock),
      Of<S>(end, "a reservation lives", &S::ReserveAndClose, &S::EndScratch, &S::ExpectWhole, &S::Release),
  };
}

std::vector<Row> RuntimeRows() {
  using S = RuntimeScene;
  const char* const end = "gcap_runtime_destroy";
  return {
      Of<S>(end, "a block of scratch is handed out", &S::TakeBlock, &S::End, &S::ExpectWhole, &S::FreeBlock),
      Of<S>(end, "a reservation is open", &S::Reserve, &S::End, &S::ExpectWhole, &S::Release),
      Of<S>(end, "the user's stream is captured", &S::CaptureStream, &S::End, &S::ExpectCaptured, &S::EndCapture),
      Of<S>(end, "the thread captures", &S::OpenScope, &S::End, &S::ExpectCaptured, &S::CloseScope),
      Of<S>(end, "another thread has a run open", &S::BeginElsewhere, &S::End, &S::ExpectWhole, &S::ReleaseThread),
      Of<S>("gcap_runtime_release", "the thread captures", &S::OpenScope, &S::EndGraph, &S::ExpectCaptured,
            &S::CloseScope),
  };
}

std::vector<Row> KitRows() {
  using E = EpScene;
  using S = SessionScene;
  return {
      Of<S>("gcap_ep_destroy", "a session lives", &S::Nothing, &S::EndEp, &S::ExpectWhole, &S::DropSession),
      Of<E>("gcap_ep_destroy", "the runtime has a block handed out", &E::TakeBlock, &E::EndEp, &E::ExpectWhole,
            &E::FreeBlock),
      Of<S>("gcap_session_destroy", "the user's stream is captured", &S::CaptureStream, &S::EndSessionAndEp,
            &S::ExpectNamed, &S::EndCapture),
      Of<S>("gcap_session_destroy", "an IO binding lives", &S::Bind, &S::EndSessionAndEp, &S::ExpectWhole,
            &S::DropBinding),
      Of<S>("gcap_io_binding_destroy", "the thread captures", &S::BindAndOpenScope, &S::EndBindingAndAll,
            &S::ExpectCaptured, &S::CloseScope),
      Of<S>("gcap_session_release_captured_graph", "the thread captures", &S::OpenScope, &S::EndGraphAndAll,
            &S::ExpectCaptured, &S::CloseScope),
  };
}

// The functions that the headers declare to end something and to return a status.
std::set<std::string> EndsInHeaders() {
  std::set<std::string> ends;
  for (const auto& declared : DeclarationsInHeaders()) {
    if (std::regex_match(declared.first, std::regex(".*_(destroy|release\\w*|deinit)"))) ends.insert(declared.first);
  }
  return ends;
}

TEST(Ends, EachOneOfTheHeadersIsRefusedTwiceAndThenEndsAndLeavesNothing) {
  std::set<std::string> tried;
  for (auto part : {StreamRows, GraphRows, ScratchRows, RuntimeRows, KitRows}) {
    for (const Row& row : part()) {
      SCOPED_TRACE(std::string(row.function) + ": " + row.reason);
      const Handles before = LiveHandles();
      tried.insert(row.function);
      row.try_it(row);
      if (HasFatalFailure()) return;
      EXPECT_EQ(LiveHandles(), before);
    }
  }
  EXPECT_EQ(tried, EndsInHeaders()) << "each end that a header declares has a row";
}

}  // namespace
}  // namespace testing
}  // namespace gcap
