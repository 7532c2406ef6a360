// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/kit/ep.h and gcap/kit/ep_ops.h.

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

void Cold(S*) {}
void Captured(S* s) { s->Run(2); }

// An open run: the first one of an id is eager, the second one a capture. Its work is a fill.
void Open(S* s, int runs_before) {
  s->Run(runs_before);
  GCAP_EXPECT_OK(BeginRun(s->Runtime(), S::kId));
  gcap_run_resources_t run;
  GCAP_ASSERT_OK(gcap_runtime_get_resources(s->Runtime(), &run));
  EXPECT_EQ(cudaMemsetAsync(s->y.get(), 1, s->y.Bytes(), gcap_stream_handle(run.stream)), cudaSuccess);
}
void OpenEager(S* s) { Open(s, 0); }
void OpenCapture(S* s) { Open(s, 1); }

void EndOpenRun(S* s) { GCAP_EXPECT_OK(EndRun(s->Runtime(), nullptr, true)); }
// Ends a run in which a call failed, or that was not joined.
void EndAnyRun(S* s) { gcap_status_free(EndRun(s->Runtime(), nullptr, true)); }

const int64_t kShape[] = {2, 3};
const gcap_graph_binding_t kBinding = {"x", kShape, 2, kShape};

gcap_run_t Bound() {
  gcap_run_t run = RunOf(S::kId, /*synchronize=*/true);
  run.bindings = &kBinding;
  run.num_bindings = 1;
  return run;
}

gcap_status_t BeginBound(S* s) {
  const gcap_run_t run = Bound();
  return gcap_runtime_begin_run(s->Runtime(), &run, nullptr, nullptr);
}

// A graph that was signed.
void SignedCapture(S* s) {
  s->Run(1);
  GCAP_EXPECT_OK(BeginBound(s));
  EndOpenRun(s);
}

void AddSignatureWalks(std::vector<Walk>* walks) {
  walks->push_back(SessionWalk(
                       "gcap_runtime_begin_run", "signed", [](S* s) { s->Run(1); }, BeginBound)
                       .RecoversFrom({"*"})
                       .Then<S>(EndOpenRun));
  walks->push_back(SessionWalk("gcap_runtime_replay", "signed", SignedCapture, [](S* s) {
    bool replayed = false;
    const gcap_run_t run = Bound();
    return gcap_runtime_replay(s->Runtime(), &run, &replayed);
  }));
  walks->push_back(SessionWalk("gcap_runtime_explain", "", Captured, [](S* s) {
                     return gcap_runtime_explain(s->Runtime(), S::kId, GCAP_GRAPH_WHY_CAPTURE_FAILED);
                   }).MakesNoCall());
}

// An EP that does nothing.
gcap_ep_ops_t SmallestTable() {
  gcap_ep_ops_t ops = {};
  ops.struct_size = sizeof(gcap_ep_ops_t);
  ops.name = "smallest";
  ops.supports = [](void*, const gcap_model_t*, const gcap_node_t*) { return false; };
  ops.create_kernel = [](void*, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t*) { return gcap_status_t{}; };
  ops.runs_on_host = true;
  return ops;
}

gcap_status_t CreateEp(S* s) {
  const gcap_ep_ops_t ops = SmallestTable();
  return gcap_ep_create(&ops, &s->ep);
}

gcap_status_t CreateRuntime(S* s) {
  const gcap_options_t options = GraphOptions(1);
  return gcap_runtime_create(&options, &s->runtime);
}

// A runtime with a context of this thread.
void UsedRuntime(S* s) {
  GCAP_ASSERT_OK(CreateRuntime(s));
  gcap_run_resources_t run;
  GCAP_EXPECT_OK(gcap_runtime_get_resources(s->runtime, &run));
}

void AddEpWalks(std::vector<Walk>* walks) {
  walks->push_back(SessionWalk("gcap_ep_create", "", Cold, CreateEp).MakesNoCall());
  walks->push_back(SessionWalk(
                       "gcap_ep_destroy", "", [](S* s) { GCAP_EXPECT_OK(CreateEp(s)); },
                       [](S* s) {
                         gcap_ep_t* ep = s->ep;
                         s->ep = nullptr;
                         return gcap_ep_destroy(ep);
                       })
                       .MakesNoCall());
  walks->push_back(SessionWalk("gcap_ep_create_kernel", "", Cold, [](S* s) {
                     const int value = 0;
                     const gcap_node_t node = {"Rotate", "node", &value, 1, &value, 1, nullptr};
                     const gcap_model_t model = {};
                     return gcap_ep_create_kernel(s->Ep(), &model, &node, &s->kernel);
                   }).MakesNoCall());
  walks->push_back(
      SessionWalk("gcap_runtime_begin_run", "eager", Cold, [](S* s) { return BeginRun(s->Runtime(), S::kId); })
          .MakesNoCall()
          .Then<S>(EndOpenRun));
  for (auto open : {OpenEager, OpenCapture}) {
    walks->push_back(SessionWalk("gcap_runtime_end_run", open == OpenEager ? "eager" : "capture", open, [](S* s) {
                       return EndRun(s->Runtime(), nullptr, true);
                     }).RecoversFrom(kMeasurements));
  }
  walks->push_back(SessionWalk("gcap_ep_claim", "", Cold, [](S* s) {
                     gcap_status_t status = gcap_ep_claim(s->Ep());  // the session has it
                     EXPECT_EQ(gcap_status_code(status), GCAP_FAILED_PRECONDITION);
                     gcap_status_free(status);
                     gcap_ep_unclaim(s->Ep(), /*has_run=*/false);
                     return gcap_ep_claim(s->Ep());
                   }).MakesNoCall());
  walks->push_back(SessionWalk(
                       "gcap_ep_trim", "", [](S* s) { s->Run(1); }, [](S* s) { return gcap_ep_trim(s->Ep()); })
                       .RecoversFrom({"cudaThreadExchangeStreamCaptureMode"}));
  walks->push_back(SessionWalk("gcap_ep_infer_shapes", "", Cold, [](S* s) {
                     const gcap_model_t model = {};
                     const gcap_node_t node = {};
                     gcap_tensor_t shape = {};
                     return gcap_ep_infer_shapes(s->Ep(), &model, &node, nullptr, &shape);
                   }).MakesNoCall());
}

// An operator with no attribute on one tensor of 4 x 3 x 2.
gcap_status_t InferOn(const char* op_type, int num_inputs,
                      gcap_status_t (*infer)(const gcap_node_t* node, const gcap_tensor_t* inputs)) {
  const gcap_node_t node = {op_type, "node", nullptr, num_inputs, nullptr, 1, nullptr};
  const gcap_tensor_t data = {nullptr, GCAP_DTYPE_F32, 3, {4, 3, 2}}, list = {nullptr, GCAP_DTYPE_I64, 1, {1}};
  const gcap_tensor_t conv_weights = {nullptr, GCAP_DTYPE_F32, 3, {5, 3, 1}};
  const gcap_tensor_t inputs[] = {data, num_inputs == 2 ? conv_weights : list, list};
  return infer(&node, inputs);
}

void AddShapeWalks(std::vector<Walk>* walks) {
  walks->push_back(
      SessionWalk("gcap_cpu_ep_create", "", Cold, [](S* s) { return gcap_cpu_ep_create(&s->ep); }).MakesNoCall());
  walks->push_back(SessionWalk("gcap_infer_shapes", "", Cold, [](S*) {
                     return InferOn("Relu", 1, [](const gcap_node_t* node, const gcap_tensor_t* inputs) {
                       gcap_tensor_t made = {nullptr, GCAP_DTYPE_F32, 3, {4, GCAP_DIM_INFERRED, 2}};
                       return gcap_infer_shapes(node, inputs, &made);
                     });
                   }).MakesNoCall());
  walks->push_back(SessionWalk("gcap_infer_axis", "", Cold, [](S*) {
                     return InferOn("Softmax", 1, [](const gcap_node_t* node, const gcap_tensor_t*) {
                       int axis = 0;
                       return gcap_infer_axis(node, 3, -1, &axis);
                     });
                   }).MakesNoCall());
  walks->push_back(SessionWalk("gcap_infer_reduced_axes", "", Cold, [](S*) {
                     return InferOn("ReduceSum", 1, [](const gcap_node_t* node, const gcap_tensor_t* inputs) {
                       gcap_axes_t axes;
                       return gcap_infer_reduced_axes(node, inputs, &axes);
                     });
                   }).MakesNoCall());
  walks->push_back(SessionWalk("gcap_infer_slice", "", Cold, [](S*) {
                     return InferOn("Slice", 3, [](const gcap_node_t* node, const gcap_tensor_t* inputs) {
                       gcap_slice_t slice;
                       return gcap_infer_slice(node, inputs, &slice);
                     });
                   }).MakesNoCall());
  walks->push_back(SessionWalk("gcap_infer_window", "", Cold, [](S*) {
                     return InferOn("Conv", 2, [](const gcap_node_t* node, const gcap_tensor_t* inputs) {
                       gcap_window_t window;
                       return gcap_infer_window(node, inputs, &window);
                     });
                   }).MakesNoCall());
}

gcap_status_t FillY(void* scene, const gcap_run_resources_t* run) {
  S* const s = static_cast<S*>(scene);
  return GCAP_CUDA(cudaMemsetAsync(s->y.get(), 1, s->y.Bytes(), gcap_stream_handle(run->stream)));
}

gcap_status_t RunOnce(S* s) { return RunOnRuntime(s->Runtime(), S::kId, FillY, s, /*synchronize=*/true); }

gcap_status_t PlanOnce(S* s) {
  const PlannedWork run = {S::kId, FillY, s};
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  return PlanOnRuntime(s->Runtime(), &run, 1, &plan);
}

// The scene's output as the one buffer of a run.
template <typename Call>
gcap_status_t OnOutput(S* s, Call call) {
  const gcap_graph_buffer_t item = {"y", s->y.get(), s->y.Bytes(), 0};
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.items = &item;
  buffers.count = 1;
  return call(&buffers);
}

gcap_status_t RunOnceOn(S* s) {
  return OnOutput(s, [s](const gcap_graph_buffers_t* buffers) {
    return RunOnRuntime(
        s->Runtime(), S::kId, buffers,
        [](void* scene, const gcap_run_resources_t* run) {
          const size_t bytes = static_cast<S*>(scene)->y.Bytes();
          return GCAP_CUDA(cudaMemsetAsync(run->addresses[0], 1, bytes, run->cuda_stream));
        },
        s, /*synchronize=*/true);
  });
}

gcap_status_t BeginRuntimeOn(S* s) {
  return OnOutput(s, [s](const gcap_graph_buffers_t* buffers) {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    void* address = nullptr;
    gcap_run_t run = RunOf(S::kId);
    run.buffers = buffers;
    return gcap_runtime_begin_run(s->Runtime(), &run, &kind, &address);
  });
}

void AddMovingWalks(std::vector<Walk>* walks) {
  const auto warm = [](S* s) { s->Run(1); };
  walks->push_back(SessionWalk("gcap_runtime_begin_run", "rehearsal", warm, BeginRuntimeOn)
                       .RecoversFrom({"*"})
                       .WithoutALog()
                       .Then<S>(EndOpenRun));
  walks->push_back(SessionWalk("gcap_runtime_run", "eager, on buffers", Cold, RunOnceOn));
  walks->push_back(
      SessionWalk("gcap_runtime_run", "rehearsal and capture", warm, RunOnceOn).RecoversFrom({"*"}).WithoutALog());
}

void AddRuntimeWalks(std::vector<Walk>* walks) {
  AddMovingWalks(walks);
  walks->push_back(SessionWalk("gcap_runtime_create", "", Cold, CreateRuntime));
  walks->push_back(SessionWalk("gcap_runtime_create_from", "", Cold, [](S* s) {
                     const gcap_runtime_ops_t ops = ForwardingOps::Least(s->Runtime());
                     return gcap_runtime_create_from(&ops, &s->runtime);
                   }).MakesNoCall());
  walks->push_back(SessionWalk("gcap_runtime_get_resources", "", Cold, [](S* s) {
                     gcap_run_resources_t run;
                     return gcap_runtime_get_resources(s->Runtime(), &run);
                   }).MakesNoCall());
  walks->push_back(SessionWalk("gcap_runtime_graphs", "", Cold, [](S* s) {
                     gcap_graph_manager_t* graphs = nullptr;
                     return gcap_runtime_graphs(s->Runtime(), &graphs);
                   }).MakesNoCall());
  walks->push_back(SessionWalk("gcap_runtime_destroy", "", UsedRuntime,
                               [](S* s) {
                                 gcap_runtime_t* runtime = s->runtime;
                                 s->runtime = nullptr;
                                 return gcap_runtime_destroy(runtime);
                               })
                       .RecoversFrom({"cudaStreamIsCapturing"})
                       .WithoutALog());
  walks->push_back(SessionWalk(
      "gcap_runtime_read_resources", "first use", [](S* s) { GCAP_EXPECT_OK(CreateRuntime(s)); },
      [](S* s) {
        gcap_run_resources_t run;
        return gcap_runtime_get_resources(s->runtime, &run);
      }));
  walks->push_back(SessionWalk(
                       "gcap_runtime_begin_run", "capture", [](S* s) { s->Run(1); },
                       [](S* s) { return BeginRun(s->Runtime(), S::kId); })
                       .RecoversFrom({"*"})
                       .Then<S>(EndOpenRun));
  walks->push_back(SessionWalk("gcap_runtime_replay", "", Captured, [](S* s) {
    bool replayed = false;
    return TryReplay(s->Runtime(), S::kId, true, &replayed);
  }));
  walks->push_back(SessionWalk("gcap_runtime_release", "", Captured,
                               [](S* s) { return gcap_runtime_release(s->Runtime(), S::kId); }));
  walks->push_back(SessionWalk("gcap_runtime_run", "eager", Cold, RunOnce));
  walks->push_back(SessionWalk(
                       "gcap_runtime_run", "capture", [](S* s) { s->Run(1); }, RunOnce)
                       .RecoversFrom({"*"}));
  walks->push_back(SessionWalk("gcap_runtime_run", "replay", Captured, RunOnce));
  walks->push_back(SessionWalk("gcap_runtime_plan", "", Cold, PlanOnce));
  walks->push_back(
      SessionWalk("gcap_runtime_synchronize", "", Cold, [](S* s) { return gcap_runtime_synchronize(s->Runtime()); }));
}

// --- Copies, streams and memory ---------------------------------------------------------------------------------------

gcap_status_t CopyInput(S* s, size_t count, gcap_stream_t* stream) {
  const gcap_tensor_t src = {s->x.get(), GCAP_DTYPE_F32, 1, {kCount}}, dst = {s->y.get(), GCAP_DTYPE_F32, 1, {kCount}};
  const gcap_memory_t device = {GCAP_MEMORY_DEVICE, 0};
  const gcap_copy_t copies[] = {{&src, device, &dst, device, stream}, {&src, device, &dst, device, nullptr}};
  return gcap_runtime_copy_tensors(s->Runtime(), copies, count);
}

// A runtime of the walk's own that copies on streams of its own.
void RuntimeWithoutOrder(S* s) {
  gcap_options_t options = GraphOptions(1);
  options.do_copy_in_default_stream = false;
  GCAP_ASSERT_OK(gcap_runtime_create(&options, &s->runtime));
}

void AddCopyWalks(std::vector<Walk>* walks) {
  walks->push_back(SessionWalk("gcap_runtime_copy_tensors", "", Cold, [](S* s) {
    gcap_run_resources_t run;
    GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(s->Runtime(), &run));
    return CopyInput(s, 2, run.stream);
  }));
  walks->push_back(
      SessionWalk("gcap_runtime_copy_tensors", "outside the default stream", RuntimeWithoutOrder, [](S* s) {
        const float host[kCount] = {};
        const gcap_tensor_t src = {const_cast<float*>(host), GCAP_DTYPE_F32, 1, {kCount}};
        const gcap_tensor_t dst = {s->x.get(), GCAP_DTYPE_F32, 1, {kCount}};
        const gcap_copy_t copy = {&src, {GCAP_MEMORY_HOST, 0}, &dst, {GCAP_MEMORY_DEVICE, 0}, nullptr};
        return gcap_runtime_copy_tensors(s->runtime, &copy, 1);
      }));
  walks->push_back(SessionWalk("gcap_runtime_copy_tensors", "captured", OpenCapture,
                               [](S* s) {
                                 gcap_run_resources_t run;
                                 GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(s->Runtime(), &run));
                                 return CopyInput(s, 1, run.stream);
                               })
                       .RecoversFrom({"cudaStreamIsCapturing"})  // the ledger asks
                       .WithoutALog()
                       .AlwaysThen<S>(EndAnyRun));
}

void AddMemoryOfHostWalks(std::vector<Walk>* walks) {
  walks->push_back(SessionWalk("gcap_runtime_create_stream", "", Cold, [](S* s) {
    gcap_stream_t* stream = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_runtime_create_stream(s->Runtime(), &stream));
    return gcap_stream_destroy(stream);
  }));
  walks->push_back(SessionWalk("gcap_runtime_get_allocator", "", Cold, [](S* s) {
                     gcap_allocator_t* pinned = nullptr;
                     return gcap_runtime_get_allocator(s->Runtime(), GCAP_MEMORY_PINNED, &pinned);
                   }).MakesNoCall());
}

// --- Forks ----------------------------------------------------------------------------------------------------------

gcap_status_t Fork(S* s) {
  gcap_stream_t* streams[2];
  GCAP_RETURN_IF_ERROR(gcap_runtime_fork(s->Runtime(), 2, streams));
  return GCAP_CUDA(cudaMemsetAsync(s->y.get(), 2, s->y.Bytes(), gcap_stream_handle(streams[0])));
}

// The thread has its streams.
void WarmForks(S* s) {
  OpenEager(s);
  GCAP_EXPECT_OK(Fork(s));
  GCAP_EXPECT_OK(gcap_runtime_join(s->Runtime()));
  EndOpenRun(s);
}
void ForkInCapture(S* s) {
  WarmForks(s);
  OpenCapture(s);
}
void ForkedEager(S* s) {
  OpenEager(s);
  GCAP_EXPECT_OK(Fork(s));
}
void ForkedCapture(S* s) {
  ForkInCapture(s);
  GCAP_EXPECT_OK(Fork(s));
}

void AddForkWalks(std::vector<Walk>* walks) {
  const struct {
    const char* variant;
    void (*open)(S*);
    void (*forked)(S*);
  } rows[] = {{"eager", OpenEager, ForkedEager}, {"capture", ForkInCapture, ForkedCapture}};
  for (const auto& row : rows) {
    walks->push_back(
        SessionWalk("gcap_runtime_fork", row.variant, row.open, [](S* s) { return Fork(s); }).AlwaysThen<S>(EndAnyRun));
    walks->push_back(SessionWalk("gcap_runtime_join", row.variant, row.forked, [](S* s) {
                       return gcap_runtime_join(s->Runtime());
                     }).AlwaysThen<S>(EndAnyRun));
  }
  walks->push_back(SessionWalk("gcap_runtime_end_run", "whose work failed after a fork", ForkedEager, [](S* s) {
    gcap_status_t status = EndRun(s->Runtime(), GCAP_STATUS(GCAP_UNAVAILABLE, "the work"), true);
    if (gcap_status_message(status) != std::string("the work")) return status;
    gcap_status_free(status);
    return gcap_status_t(nullptr);
  }));
  walks->push_back(SessionWalk(
                       "gcap_runtime_destroy", "with forks",
                       [](S* s) {
                         gcap_stream_t* stream = nullptr;
                         UsedRuntime(s);
                         GCAP_EXPECT_OK(BeginRun(s->runtime, GCAP_GRAPH_ID_NONE));
                         GCAP_EXPECT_OK(gcap_runtime_fork(s->runtime, 1, &stream));
                         GCAP_EXPECT_OK(gcap_runtime_join(s->runtime));
                         GCAP_EXPECT_OK(EndRun(s->runtime, nullptr, true));
                       },
                       [](S* s) {
                         gcap_runtime_t* runtime = s->runtime;
                         s->runtime = nullptr;
                         return gcap_runtime_destroy(runtime);
                       })
                       .RecoversFrom({"cudaStreamIsCapturing", "cudaEventDestroy"})
                       .WithoutALog());
}

}  // namespace

std::vector<Walk> EpWalks() {
  std::vector<Walk> walks;
  AddCopyWalks(&walks);
  AddMemoryOfHostWalks(&walks);
  AddForkWalks(&walks);
  AddEpWalks(&walks);
  AddRuntimeWalks(&walks);
  AddSignatureWalks(&walks);
  AddShapeWalks(&walks);
  return walks;
}

}  // namespace testing
}  // namespace gcap
