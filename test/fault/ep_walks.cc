// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/runtime.h, gcap/runtime_ops.h, gcap/kit/ep.h, gcap/kit/ep_ops.h and what stands on them.

#include <string>

#include "gcap/graph_plan.h"
#include "gcap/kit/cpu_ep.h"
#include "gcap/kit/shape_inference.h"
#include "test/fault/session_scene.h"
#include "test/support/replays.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {
namespace {

using S = SessionScene;

void Warm(S* s) { s->Run(1); }
void Captured(S* s) { s->Run(2); }

constexpr gcap_memory_t kDevice = {GCAP_MEMORY_DEVICE, 0}, kHost = {GCAP_MEMORY_HOST, 0};

// Bindings to check and buffers that move are in the walks over the graph manager.
gcap_status_t Fill(void* scene, const gcap_run_resources_t* resources) {
  S* const s = static_cast<S*>(scene);
  return GCAP_CUDA(cudaMemsetAsync(s->y.get(), 1, s->y.Bytes(), resources->cuda_stream));
}

// --- Runs that are open ---------------------------------------------------------------------------------------------

// The first run of an id is eager, the second one a capture. Its work is a fill.
void OpenEager(S* s) {
  GCAP_EXPECT_OK(BeginRun(s->Runtime(), S::kId));
  GCAP_ASSERT_OK(gcap_runtime_get_resources(s->Runtime(), &s->resources));
  GCAP_EXPECT_OK(Fill(s, &s->resources));
}
void OpenCapture(S* s) {
  Warm(s);
  OpenEager(s);
}
void EndOpenRun(S* s) { GCAP_EXPECT_OK(EndRun(s->Runtime(), nullptr, true)); }
// Ends a run in which a call failed, or that was not joined.
void EndAnyRun(S* s) { gcap_status_free(EndRun(s->Runtime(), nullptr, true)); }
gcap_status_t Begin(S* s) { return BeginRun(s->Runtime(), S::kId); }
gcap_status_t End(S* s) { return EndRun(s->Runtime(), nullptr, true); }
gcap_status_t RunOnce(S* s) { return RunOnRuntime(s->Runtime(), S::kId, Fill, s, /*synchronize=*/true); }
gcap_status_t PlanOnce(S* s) {
  const PlannedWork run = {S::kId, Fill, s};
  return PlanOnRuntime(s->Runtime(), &run, 1, &s->plan);
}

gcap_status_t WarmUp(S* s) {
  gcap_run_t run = RunOf(S::kId);
  run.work = Fill;
  run.user = s;
  return gcap_runtime_warm_up(s->Runtime(), &run, 1, nullptr, nullptr);
}

std::vector<Walk> RunWalks() {
  return {
      WalkOf<S>("gcap_runtime_begin_run", Begin, nullptr, "eager").MakesNoCall().Then<S>(EndOpenRun),
      WalkOf<S>("gcap_runtime_begin_run", Begin, Warm, "capture").Recovers().Then<S>(EndOpenRun),
      WalkOf<S>("gcap_runtime_end_run", End, OpenEager, "eager").RecoversFrom(kMeasurements),
      WalkOf<S>("gcap_runtime_end_run", End, OpenCapture, "capture").RecoversFrom(kMeasurements),
      WalkOf<S>("gcap_runtime_run", RunOnce, nullptr, "eager"),
      WalkOf<S>("gcap_runtime_run", RunOnce, Warm, "capture").Recovers(),
      WalkOf<S>("gcap_runtime_run", RunOnce, Captured, "replay"),
      WalkOf<S>("gcap_runtime_replay", ACT(TryReplay(s->Runtime(), S::kId, true, kOut)), Captured),
      WalkOf<S>("gcap_runtime_plan", PlanOnce),
      WalkOf<S>("gcap_runtime_warm_up", WarmUp).Recovers(),
      WalkOf<S>(CALL(gcap_runtime_explain, s->Runtime(), S::kId, GCAP_GRAPH_WHY_CAPTURE_FAILED), Captured)
          .MakesNoCall(),
      WalkOf<S>(CALL(gcap_runtime_release, s->Runtime(), S::kId), Captured),
      WalkOf<S>(CALL(gcap_runtime_synchronize, s->Runtime())),
  };
}

// --- Runtimes -------------------------------------------------------------------------------------------------------

gcap_status_t CreateRuntime(S* s) {
  const gcap_options_t options = GraphOptions(1);
  return gcap_runtime_create(&options, &s->runtime);
}
gcap_status_t CreateFromTable(S* s) {
  const gcap_runtime_ops_t ops = ForwardingOps::Least(s->Runtime());
  return gcap_runtime_create_from(&ops, &s->runtime);
}
void NewRuntime(S* s) { GCAP_ASSERT_OK(CreateRuntime(s)); }
// With a context of this thread.
void UsedRuntime(S* s) {
  NewRuntime(s);
  GCAP_EXPECT_OK(gcap_runtime_get_resources(s->runtime, &s->resources));
}
void ForkedRuntime(S* s) {
  UsedRuntime(s);
  GCAP_EXPECT_OK(BeginRun(s->runtime, GCAP_GRAPH_ID_NONE));
  GCAP_EXPECT_OK(gcap_runtime_fork(s->runtime, 1, s->streams));
  GCAP_EXPECT_OK(gcap_runtime_join(s->runtime));
  GCAP_EXPECT_OK(EndRun(s->runtime, nullptr, true));
}
// One that copies on streams of its own.
void RuntimeWithoutOrder(S* s) {
  gcap_options_t options = GraphOptions(1);
  options.do_copy_in_default_stream = false;
  GCAP_ASSERT_OK(gcap_runtime_create(&options, &s->runtime));
}
gcap_status_t DestroyRuntime(S* s) {
  gcap_runtime_t* runtime = s->runtime;
  s->runtime = nullptr;
  return gcap_runtime_destroy(runtime);
}

// Of y in the run's stream, and, of two copies, in the default one.
gcap_status_t CopyInput(S* s, size_t count) {
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(s->Runtime(), &s->resources));
  const gcap_tensor_t src = Tensor(s->x.get(), {kCount}), dst = Tensor(s->y.get(), {kCount});
  const gcap_copy_t copies[] = {{&src, kDevice, &dst, kDevice, s->resources.stream},
                                {&src, kDevice, &dst, kDevice, nullptr}};
  return gcap_runtime_copy_tensors(s->Runtime(), copies, count);
}
gcap_status_t CopyFromHost(S* s) {
  const gcap_tensor_t src = Tensor(s->host_x.data(), {kCount}), dst = Tensor(s->x.get(), {kCount});
  const gcap_copy_t copy = {&src, kHost, &dst, kDevice, nullptr};
  return gcap_runtime_copy_tensors(s->runtime, &copy, 1);
}
gcap_status_t MakeStream(S* s) {
  GCAP_RETURN_IF_ERROR(gcap_runtime_create_stream(s->Runtime(), s->streams));
  return gcap_stream_destroy(s->streams[0]);
}

std::vector<Walk> RuntimeWalks() {
  const auto resources_of = ACT(gcap_runtime_get_resources(s->Runtime(), &s->resources));
  return {
      WalkOf<S>("gcap_runtime_create", CreateRuntime),
      WalkOf<S>("gcap_runtime_create_from", CreateFromTable).MakesNoCall(),
      WalkOf<S>("gcap_runtime_destroy", DestroyRuntime, UsedRuntime)
          .RecoversFrom({"cudaStreamIsCapturing"})
          .WithoutALog(),
      WalkOf<S>("gcap_runtime_destroy", DestroyRuntime, ForkedRuntime, "with forks")
          .RecoversFrom({"cudaStreamIsCapturing", "cudaEventDestroy"})
          .WithoutALog(),
      WalkOf<S>("gcap_runtime_get_resources", resources_of).MakesNoCall(),
      WalkOf<S>("gcap_runtime_read_resources", ACT(gcap_runtime_get_resources(s->runtime, &s->resources)), NewRuntime,
                "first use"),
      WalkOf<S>(CALL(gcap_runtime_graphs, s->Runtime(), kOut)).MakesNoCall(),
      WalkOf<S>("gcap_runtime_copy_tensors", ACT(CopyInput(s, 2))),
      WalkOf<S>("gcap_runtime_copy_tensors", CopyFromHost, RuntimeWithoutOrder, "outside the default stream"),
      WalkOf<S>("gcap_runtime_copy_tensors", ACT(CopyInput(s, 1)), OpenCapture, "captured")
          .RecoversFrom({"cudaStreamIsCapturing"})  // the ledger asks
          .WithoutALog()
          .AlwaysThen<S>(EndAnyRun),
      WalkOf<S>("gcap_runtime_create_stream", MakeStream),
      WalkOf<S>(CALL(gcap_runtime_get_allocator, s->Runtime(), GCAP_MEMORY_PINNED, kOut)).MakesNoCall(),
  };
}

// --- Forks ----------------------------------------------------------------------------------------------------------

gcap_status_t Fork(S* s) {
  GCAP_RETURN_IF_ERROR(gcap_runtime_fork(s->Runtime(), 2, s->streams));
  return GCAP_CUDA(cudaMemsetAsync(s->y.get(), 2, s->y.Bytes(), gcap_stream_handle(s->streams[0])));
}
gcap_status_t Join(S* s) { return gcap_runtime_join(s->Runtime()); }
void ForkedEager(S* s) {
  OpenEager(s);
  GCAP_EXPECT_OK(Fork(s));
}
// The thread has its streams.
void OpenCaptureAfterForks(S* s) {
  ForkedEager(s);
  GCAP_EXPECT_OK(Join(s));
  EndOpenRun(s);
  OpenCapture(s);
}
void ForkedCapture(S* s) {
  OpenCaptureAfterForks(s);
  GCAP_EXPECT_OK(Fork(s));
}
gcap_status_t EndFailedRun(S* s) {
  gcap_status_t status = EndRun(s->Runtime(), GCAP_STATUS(GCAP_UNAVAILABLE, "the work"), true);
  if (gcap_status_message(status) != std::string("the work")) return status;
  gcap_status_free(status);
  return nullptr;
}

std::vector<Walk> ForkWalks() {
  return {
      WalkOf<S>("gcap_runtime_fork", Fork, OpenEager, "eager").AlwaysThen<S>(EndAnyRun),
      WalkOf<S>("gcap_runtime_fork", Fork, OpenCaptureAfterForks, "capture").AlwaysThen<S>(EndAnyRun),
      WalkOf<S>("gcap_runtime_join", Join, ForkedEager, "eager").AlwaysThen<S>(EndAnyRun),
      WalkOf<S>("gcap_runtime_join", Join, ForkedCapture, "capture").AlwaysThen<S>(EndAnyRun),
      WalkOf<S>("gcap_runtime_end_run", EndFailedRun, ForkedEager, "whose work failed after a fork"),
  };
}

// --- EPs and shapes -------------------------------------------------------------------------------------------------

// An EP that does nothing.
gcap_status_t CreateEp(S* s) {
  gcap_ep_ops_t ops = {};
  ops.struct_size = sizeof(gcap_ep_ops_t);
  ops.name = "smallest";
  ops.supports = [](void*, const gcap_model_t*, const gcap_node_t*) { return false; };
  ops.create_kernel = [](void*, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t*) { return gcap_status_t{}; };
  ops.runs_on_host = true;
  return gcap_ep_create(&ops, &s->ep);
}
void NewEp(S* s) { GCAP_EXPECT_OK(CreateEp(s)); }
gcap_status_t DestroyEp(S* s) {
  gcap_ep_t* ep = s->ep;
  s->ep = nullptr;
  return gcap_ep_destroy(ep);
}
gcap_status_t CreateKernel(S* s) {
  const int value = 0;
  const gcap_node_t node = {"Rotate", "node", &value, 1, &value, 1, nullptr};
  const gcap_model_t model = {};
  return gcap_ep_create_kernel(s->Ep(), &model, &node, &s->kernel);
}
gcap_status_t ClaimAgain(S* s) {
  GCAP_EXPECT_FAILS(gcap_ep_claim(s->Ep()), GCAP_FAILED_PRECONDITION, "");  // the session has it
  gcap_ep_unclaim(s->Ep(), /*has_run=*/false);
  return gcap_ep_claim(s->Ep());
}
gcap_status_t InferOnEp(S* s) {
  const gcap_model_t model = {};
  const gcap_node_t node = {};
  gcap_tensor_t shape = {};
  return gcap_ep_infer_shapes(s->Ep(), &model, &node, nullptr, &shape);
}

// An operator with no attribute on a tensor of 4 x 3 x 2, and lists or weights.
struct Operator {
  Operator(const char* op_type, int num_inputs) : node{op_type, "node", nullptr, num_inputs, nullptr, 1, nullptr} {
    inputs[1] = num_inputs == 2 ? Tensor(nullptr, {5, 3, 1}) : inputs[2];
  }
  const gcap_node_t node;
  gcap_tensor_t inputs[3] = {Tensor(nullptr, {4, 3, 2}), {}, Tensor(nullptr, {1}, GCAP_DTYPE_I64)};
  gcap_tensor_t made = Tensor(nullptr, {4, GCAP_DIM_INFERRED, 2});
  int axis = 0;
  gcap_axes_t axes;
  gcap_slice_t slice;
  gcap_window_t window;
};
gcap_status_t InferShapes(S*) {
  Operator o("Relu", 1);
  return gcap_infer_shapes(&o.node, o.inputs, &o.made);
}
gcap_status_t InferAxis(S*) {
  Operator o("Softmax", 1);
  return gcap_infer_axis(&o.node, 3, -1, &o.axis);
}
gcap_status_t InferReducedAxes(S*) {
  Operator o("ReduceSum", 1);
  return gcap_infer_reduced_axes(&o.node, o.inputs, &o.axes);
}
gcap_status_t InferSlice(S*) {
  Operator o("Slice", 3);
  return gcap_infer_slice(&o.node, o.inputs, &o.slice);
}
gcap_status_t InferWindow(S*) {
  Operator o("Conv", 2);
  return gcap_infer_window(&o.node, o.inputs, &o.window);
}

std::vector<Walk> KitWalks() {
  return {
      WalkOf<S>("gcap_ep_create", CreateEp).MakesNoCall(),
      WalkOf<S>("gcap_ep_destroy", DestroyEp, NewEp).MakesNoCall(),
      WalkOf<S>("gcap_ep_create_kernel", CreateKernel).MakesNoCall(),
      WalkOf<S>("gcap_ep_claim", ClaimAgain).MakesNoCall(),
      WalkOf<S>(CALL(gcap_ep_trim, s->Ep()), Warm).RecoversFrom({"cudaThreadExchangeStreamCaptureMode"}),
      WalkOf<S>("gcap_ep_infer_shapes", InferOnEp).MakesNoCall(),
      WalkOf<S>(CALL(gcap_cpu_ep_create, &s->ep)).MakesNoCall(),
      WalkOf<S>("gcap_infer_shapes", InferShapes).MakesNoCall(),
      WalkOf<S>("gcap_infer_axis", InferAxis).MakesNoCall(),
      WalkOf<S>("gcap_infer_reduced_axes", InferReducedAxes).MakesNoCall(),
      WalkOf<S>("gcap_infer_slice", InferSlice).MakesNoCall(),
      WalkOf<S>("gcap_infer_window", InferWindow).MakesNoCall(),
  };
}

}  // namespace

std::vector<Walk> EpWalks() { return Joined({RunWalks(), RuntimeWalks(), ForkWalks(), KitWalks()}); }

}  // namespace testing
}  // namespace gcap
