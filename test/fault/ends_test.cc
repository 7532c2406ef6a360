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
#include <vector>

#include "gcap/kit/ep_ops.h"
#include "gcap/kit/kit.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/ep/model_builder.h"
#include "test/fault/headers.h"
#include "test/fault/stream_scene.h"
#include "test/support/device_floats.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/held_thread.h"
#include "test/support/session_info.h"

namespace gcap {
namespace testing {
namespace {

// --- Scenes: what is to end, reasons to refuse, and uses ------------------------------------------------------------

// The two streams, the manager and the job of the walks. A reason begins and ends.
struct StreamEnds : StreamScene {
  void Nothing() {}
  // The calling thread has a scope open, on any stream.
  void OpenScope() { GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(other), nullptr, &capture)); }
  void CloseScope() { gcap_capture_abort(capture); }
  // Somebody captures the stream, without gcap.
  void CaptureStream() { ASSERT_EQ(cudaStreamBeginCapture(Handle(), cudaStreamCaptureModeRelaxed), cudaSuccess); }
  void EndCapture() {
    cudaGraph_t empty = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(Handle(), &empty), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(empty), cudaSuccess);
  }
  void ReleaseThread() { thread->Release(); }
  // The stream is captured, or the thread captures and the stream has a deferred release.
  void DeferAndOpenScope() {
    GCAP_EXPECT_OK(gcap_stream_defer(
        stream, [](void*) {}, nullptr));
    OpenScope();
  }
  virtual void ExpectWhole() { EXPECT_EQ(gcap_stream_from_handle(gcap_stream_handle(stream)), stream); }
  void Synchronize() {
    ExpectWhole();
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  }
  gcap_status_t EndStream() {
    GCAP_RETURN_IF_ERROR(gcap_stream_destroy(stream));
    stream = nullptr;
    return nullptr;
  }
  gcap_status_t EndUndrained() {
    if (++ends <= 2) gcap_sim_fail_nth("cudaStreamSynchronize", 1, cudaErrorUnknown);
    return EndStream();
  }
  gcap_status_t EndUnknown() {
    if (++ends <= 2) gcap_sim_fail_nth("cudaStreamIsCapturing", 1, cudaErrorUnknown);
    return EndStream();
  }
  // The job does its work anew.
  void ExpectWork(const std::function<gcap_status_t()>& work) {
    job.set_input(++inputs);
    GCAP_EXPECT_OK(work());
    EXPECT_EQ(job.output(), inputs);
  }
  int ends = 0, inputs = 100;
  std::unique_ptr<HeldThread> thread;
};

struct GraphEnds : StreamEnds {
  GraphEnds() { CaptureRun(kId); }
  void ExpectCaptured() { EXPECT_TRUE(gcap_graph_manager_is_captured(manager, kId)); }
  void ExpectWhole() override {
    ExpectWork([this] { return Replay(manager, kId, /*synchronize=*/true); });
  }
  void BeginElsewhere() {
    thread = std::make_unique<HeldThread>([this] {
      gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
      GCAP_EXPECT_OK(BeginPlain(manager, GCAP_GRAPH_ID_NONE, Handle(), &kind));
    });
  }
  gcap_status_t EndManager() {
    GCAP_RETURN_IF_ERROR(gcap_graph_manager_destroy(manager));
    manager = nullptr;
    return nullptr;
  }
  gcap_status_t EndGraph() { return gcap_graph_manager_release(manager, kId); }
  gcap_status_t EndGraphs() { return gcap_graph_manager_release_all(manager); }
};

// Blocks and reservations of a scratch.
struct ScratchEnds : StreamEnds {
  void CreateScratch() {
    GCAP_EXPECT_OK(gcap_device_allocator_create(0, &upstream));
    GCAP_EXPECT_OK(gcap_scratch_create(upstream, nullptr, &scratch));
    scratch_stream = stream;
  }
  gcap_status_t End() override {
    gcap_allocator_destroy(upstream);
    return StreamEnds::End();
  }
  void TakeBlock() { GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, 1000, scratch_stream, &block)); }
  void FreeBlock() { GCAP_EXPECT_OK(gcap_scratch_free(scratch, block)); }
  void Reserve() { GCAP_EXPECT_OK(gcap_scratch_reservation_open(scratch, scratch_stream, &reservation)); }
  void ReserveAndClose() {
    Reserve();
    gcap_scratch_reservation_close(reservation);
  }
  void Release() {
    gcap_scratch_reservation_close(reservation);
    gcap_scratch_reservation_release(reservation);
  }
  void ExpectWhole() override {
    void* another = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, 5000, scratch_stream, &another));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, another));
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
  }
  gcap_status_t EndScratch() { return gcap_scratch_destroy(scratch); }
  gcap_allocator_t* upstream = nullptr;
  gcap_scratch_t* scratch = nullptr;
  gcap_stream_t* scratch_stream = nullptr;
  void* block = nullptr;
  gcap_scratch_reservation_t* reservation = nullptr;
};
struct ArenaEnds : ScratchEnds {
  ArenaEnds() { CreateScratch(); }
};

// A runtime on the scene's stream, with a graph of the job that uses scratch. Of two runs the second one is captured.
struct RuntimeEnds : ScratchEnds {
  explicit RuntimeEnds(bool captures = true) {
    gcap_options_t options;
    gcap_options_init(&options);
    options.enable_cuda_graph = true;
    options.graph.min_num_runs_before_capture = 1;
    options.has_user_stream = true;
    options.user_stream = Handle();
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime));
    gcap_run_resources_t resources;
    GCAP_EXPECT_OK(gcap_runtime_get_resources(runtime, &resources));
    scratch = resources.scratch;
    scratch_stream = resources.stream;
    for (int i = 0; captures && i < 2; ++i) GCAP_EXPECT_OK(RunOnRuntime(runtime, 0, Work, &job, true));
  }
  static gcap_status_t Work(void* job, const gcap_run_resources_t* run) {
    void* block = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, 64, run->stream, &block));
    gcap_status_t status = GCAP_CUDA(static_cast<CopyJob*>(job)->Issue(run->cuda_stream));
    return gcap_status_join(status, gcap_scratch_free(run->scratch, block));
  }
  void ExpectCaptured() { EXPECT_TRUE(gcap_runtime_is_captured(runtime, 0)); }
  void ExpectWhole() override {
    ExpectWork([this] {
      const gcap_run_t run = RunOf(0, /*synchronize=*/true);
      return gcap_runtime_replay(runtime, &run, nullptr);
    });
  }
  void BeginElsewhere() {
    thread = std::make_unique<HeldThread>([this] { GCAP_EXPECT_OK(BeginRun(runtime, GCAP_GRAPH_ID_NONE)); });
  }
  gcap_status_t EndRuntime() { return gcap_runtime_destroy(runtime); }
  gcap_status_t EndGraph() {
    GCAP_RETURN_IF_ERROR(gcap_runtime_release(runtime, 0));
    return EndRuntime();
  }
  gcap_runtime_t* runtime = nullptr;
};

// An EP whose runtime ends with it.
struct EpEnds : RuntimeEnds {
  explicit EpEnds(bool captures = true) : RuntimeEnds(captures) {
    gcap_ep_ops_t ops = {};
    ops.struct_size = sizeof(gcap_ep_ops_t);
    ops.name = "runtime";
    ops.self = &job;
    ops.runtime = runtime;
    ops.supports = [](void*, const gcap_model_t*, const gcap_node_t*) { return true; };
    ops.create_kernel = [](void* self, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t* out) {
      out->self = self;
      out->compute = [](void* job, const gcap_kernel_context_t* context) { return Work(job, &context->resources); };
      return gcap_status_t(nullptr);
    };
    GCAP_EXPECT_OK(gcap_ep_create(&ops, &ep));
  }
  gcap_status_t EndEp() { return gcap_ep_destroy(ep); }
  gcap_ep_t* ep = nullptr;
};

// A session of one node, which does the job; and an IO binding.
struct SessionEnds : EpEnds {
  SessionEnds() : EpEnds(/*captures=*/false) {
    ModelBuilder m;
    m.inputs = {m.Value("in", {16})};
    m.outputs = {m.Value("out", {16})};
    m.Node("Job", "job", {m.inputs[0], m.Constant("weights", {16}, std::vector<float>(16))}, m.outputs);
    const gcap_model_t model = m.Model();
    GCAP_EXPECT_OK(gcap_session_create(&model, &ep, 1, nullptr, &session));
    for (int i = 0; i < 2; ++i) GCAP_EXPECT_OK(Run());
  }
  gcap_status_t Run() {
    const gcap_tensor_t tensor = Tensor(memory.get(), {16});
    if (binding == nullptr) return gcap_session_run(session, nullptr, &tensor, &tensor);
    GCAP_RETURN_IF_ERROR(gcap_io_binding_bind_input(binding, "in", &tensor, {GCAP_MEMORY_DEVICE, 0}));
    GCAP_RETURN_IF_ERROR(gcap_io_binding_bind_output(binding, "out", &tensor, {GCAP_MEMORY_DEVICE, 0}));
    return gcap_session_run_bound(session, nullptr, binding);
  }
  void ExpectWhole() override {
    if (session != nullptr) ExpectWork([this] { return Run(); });
  }
  void ExpectNamed() { EXPECT_STREQ(SessionInfo(session).ep_name, "runtime"); }
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
  DeviceFloats memory{std::vector<float>(16)};
  gcap_session_t* session = nullptr;
  gcap_io_binding_t* binding = nullptr;
};

// --- Rows -----------------------------------------------------------------------------------------------------------

struct Row {
  const char *function, *reason;
  std::function<void()> try_it;
};

// Refused twice and used between, then ended.
template <typename S>
Row Of(const char* function, const char* reason, void (S::*hinder)(), gcap_status_t (S::*end)(), void (S::*use)(),
       void (S::*help)(), gcap_code_t refusal = GCAP_FAILED_PRECONDITION) {
  return {function, reason, [=] {
            S scene;
            (scene.*hinder)();
            for (int i = 0; i < 2; ++i) {
              const Outcome outcome((scene.*end)());
              ASSERT_STREQ(gcap_code_name(outcome.code), gcap_code_name(refusal)) << outcome.message;
              (scene.*use)();
            }
            (scene.*help)();
            scene.ExpectWhole();
            GCAP_EXPECT_OK((scene.*end)());
            GCAP_EXPECT_OK(scene.End());
          }};
}

std::vector<Row> CoreRows() {
  using S = StreamEnds;
  using G = GraphEnds;
  using A = ArenaEnds;
  const char *const stream = "gcap_stream_destroy", *const manager = "gcap_graph_manager_destroy";
  return {
      Of<S>(stream, "the stream is captured", &S::CaptureStream, &S::EndStream, &S::ExpectWhole, &S::EndCapture),
      Of<S>(stream, "the thread captures and the stream has a deferred release", &S::DeferAndOpenScope, &S::EndStream,
            &S::ExpectWhole, &S::CloseScope),
      Of<S>(stream, "the stream cannot be drained", &S::Nothing, &S::EndUndrained, &S::Synchronize, &S::Nothing,
            GCAP_CUDA_ERROR),
      Of<S>(stream, "the runtime does not say whether the stream captures", &S::Nothing, &S::EndUnknown,
            &S::ExpectWhole, &S::Nothing, GCAP_CUDA_ERROR),
      Of<G>(manager, "the thread captures", &G::OpenScope, &G::EndManager, &G::ExpectCaptured, &G::CloseScope),
      Of<G>(manager, "a graph's stream is captured", &G::CaptureStream, &G::EndManager, &G::ExpectCaptured,
            &G::EndCapture),
      Of<G>(manager, "another thread has a run open", &G::BeginElsewhere, &G::EndManager, &G::ExpectWhole,
            &G::ReleaseThread),
      Of<G>("gcap_graph_manager_release", "the graph's stream is captured", &G::CaptureStream, &G::EndGraph,
            &G::ExpectCaptured, &G::EndCapture),
      Of<G>("gcap_graph_manager_release_all", "the thread captures", &G::OpenScope, &G::EndGraphs, &G::ExpectCaptured,
            &G::CloseScope),
      Of<A>("gcap_scratch_destroy", "a block is handed out", &A::TakeBlock, &A::EndScratch, &A::ExpectWhole,
            &A::FreeBlock),
      Of<A>("gcap_scratch_destroy", "a reservation lives", &A::ReserveAndClose, &A::EndScratch, &A::ExpectWhole,
            &A::Release),
  };
}

std::vector<Row> RuntimeRows() {
  using S = RuntimeEnds;
  const char* const end = "gcap_runtime_destroy";
  return {
      Of<S>(end, "a block of scratch is handed out", &S::TakeBlock, &S::EndRuntime, &S::ExpectWhole, &S::FreeBlock),
      Of<S>(end, "a reservation is open", &S::Reserve, &S::EndRuntime, &S::ExpectWhole, &S::Release),
      Of<S>(end, "its stream is captured", &S::CaptureStream, &S::EndRuntime, &S::ExpectCaptured, &S::EndCapture),
      Of<S>(end, "the thread captures", &S::OpenScope, &S::EndRuntime, &S::ExpectCaptured, &S::CloseScope),
      Of<S>(end, "another thread has a run open", &S::BeginElsewhere, &S::EndRuntime, &S::ExpectWhole,
            &S::ReleaseThread),
      Of<S>("gcap_runtime_release", "the thread captures", &S::OpenScope, &S::EndGraph, &S::ExpectCaptured,
            &S::CloseScope),
  };
}

std::vector<Row> KitRows() {
  using E = EpEnds;
  using S = SessionEnds;
  return {
      Of<S>("gcap_ep_destroy", "a session lives", &S::Nothing, &S::EndEp, &S::ExpectWhole, &S::DropSession),
      Of<E>("gcap_ep_destroy", "its runtime has a block handed out", &E::TakeBlock, &E::EndEp, &E::ExpectWhole,
            &E::FreeBlock),
      Of<S>("gcap_session_destroy", "the stream is captured", &S::CaptureStream, &S::EndSessionAndEp, &S::ExpectNamed,
            &S::EndCapture),
      Of<S>("gcap_session_destroy", "an IO binding lives", &S::Bind, &S::EndSessionAndEp, &S::ExpectWhole,
            &S::DropBinding),
      Of<S>("gcap_io_binding_destroy", "the thread captures", &S::BindAndOpenScope, &S::EndBindingAndAll,
            &S::ExpectCaptured, &S::CloseScope),
      Of<S>("gcap_session_release_captured_graph", "the thread captures", &S::OpenScope, &S::EndGraphAndAll,
            &S::ExpectCaptured, &S::CloseScope),
  };
}

TEST(Ends, EachOneOfTheHeadersIsRefusedTwiceAndThenEndsAndLeavesNothing) {
  std::set<std::string> tried, declared;
  for (auto part : {CoreRows, RuntimeRows, KitRows}) {
    for (const Row& row : part()) {
      SCOPED_TRACE(std::string(row.function) + ": " + row.reason);
      const Handles before = LiveHandles();
      tried.insert(row.function);
      row.try_it();
      if (HasFatalFailure()) return;
      EXPECT_EQ(LiveHandles(), before);
    }
  }
  for (const auto& function : DeclarationsInHeaders()) {
    if (std::regex_match(function.first, std::regex(".*_(destroy|release\\w*|deinit)"))) {
      declared.insert(function.first);
    }
  }
  EXPECT_EQ(tried, declared) << "each end that a header declares has a row";
}

}  // namespace
}  // namespace testing
}  // namespace gcap
