// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// NULL for each pointer of each public function that returns a status, one at a time: refused by name, or accepted as
// the header says, never followed. The list of pointers is read off the headers, so a new one fails here until it has a
// row. Not here: status.h, which makes statuses, and scratch.h, which checks only what it says. What is NULL inside a
// struct or an array is with the module: models and EPs in test/session, tables in test/ep and test/allocator, keys and
// values in test/options.

#include <dirent.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gcap/graph_buffers.h"
#include "gcap/graph_plan.h"
#include "gcap/kit/kit.h"
#include "gtest/gtest.h"
#include "test/fault/stream_scene.h"
#include "test/session/session_test.h"
#include "test/support/expect_status.h"

namespace {

using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::Outcome;
using gcap::testing::StreamScene;

constexpr const char* kHeaders[] = {"include/gcap", "include/gcap/kit"};

// What the rows pass where they do not pass NULL.
gcap_status_t Work(void*, const gcap_run_resources_t*) { return nullptr; }

struct Objects {
  Objects() {
    GCAP_EXPECT_OK(rig.Create(gcap::testing::GraphOptions()));
    ep = rig.ep->get();
    runtime = rig.ep->runtime();
    session = rig.session;
    stream = s.stream;
    handle = s.Handle();
    manager = s.manager;
    moving.buffers = &buffers;
    gcap_options_init(&options);
    gcap_run_options_init(&run_options);
    gcap_graph_plan_init(&plan);
    gcap_run_init(&eager_run);
    eager_run.stream = handle;
    eager_run.work = Work;
    plain_run = eager_run;
    plain_run.id = 0;
    GCAP_EXPECT_OK(gcap_notification_create(stream, &notification));
    GCAP_EXPECT_OK(gcap_notification_record(notification));
    GCAP_EXPECT_OK(gcap_device_allocator_create(0, &allocator));
    GCAP_EXPECT_OK(gcap_io_binding_create(session, &io_binding));
    GCAP_EXPECT_OK(gcap_io_binding_bind_input(io_binding, "x", &input, {GCAP_MEMORY_DEVICE, 0}));
    GCAP_EXPECT_OK(gcap_io_binding_bind_output(io_binding, "y", &output, {GCAP_MEMORY_DEVICE, 0}));
  }
  ~Objects() {
    GCAP_EXPECT_OK(gcap_io_binding_destroy(io_binding));
    if (made != nullptr) gcap_allocator_destroy(made);
    gcap_allocator_destroy(allocator);
    gcap_notification_destroy(notification);
    GCAP_EXPECT_OK(s.End());
  }

  // For calls inside a capture, which they do not end.
  template <typename Call>
  gcap_status_t Captured(Call call) {
    gcap_capture_t* capture = nullptr;
    GCAP_EXPECT_OK(gcap_capture_begin(handle, nullptr, &capture));
    gcap_status_t status = call(capture);
    gcap_capture_abort(gcap_capture_current());
    return status;
  }

  StreamScene s;
  ChainRig rig;
  DeviceFloats x{std::vector<float>(6)}, y{std::vector<float>(6)};
  gcap_tensor_t input = gcap::testing::Tensor(x.get(), {2, 3}), output = gcap::testing::Tensor(y.get(), {2, 3});
  gcap_copy_t copy = {&input, {GCAP_MEMORY_DEVICE, 0}, &output, {GCAP_MEMORY_DEVICE, 0}, nullptr};
  gcap_ep_t* ep = nullptr;
  gcap_runtime_t *runtime = nullptr, *made_runtime = nullptr;
  gcap_graph_manager_t* borrowed_graphs = nullptr;
  gcap_run_t run = RunOf(3), moving = RunOf(3);  // moving: with `buffers`
  gcap_session_t* session = nullptr;
  gcap_io_binding_t* io_binding = nullptr;
  gcap_stream_t* stream = nullptr;
  cudaStream_t handle = nullptr;
  gcap_graph_manager_t* manager = nullptr;
  gcap_options_t options;
  gcap_run_options_t run_options;
  gcap_graph_plan_t plan;
  gcap_run_t plain_run, eager_run;  // of a graph manager
  char text[16] = "", all[GCAP_OPTIONS_MAX_TEXT_BYTES] = "";
  size_t offset = 0, bytes = 0;
  gcap_notification_t* notification = nullptr;
  gcap_allocator_t* allocator = nullptr;
  // Outputs.
  gcap_allocator_t* made = nullptr;
  gcap_allocator_t* borrowed = nullptr;
  gcap_io_binding_t* made_io_binding = nullptr;
  gcap_stream_t* made_stream = nullptr;
  void* memory = nullptr;
  bool flag = false;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  gcap_run_resources_t resources = {};
  gcap_kernel_t kernel = {};
  gcap_graph_buffer_t buffer = {"x", x.get(), 6 * sizeof(float), 0};
  gcap_graph_buffers_t buffers = {sizeof(buffers), &buffer, 1, GCAP_GRAPH_STAND_INS_ADDRESSES, nullptr, false};
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  void* address = nullptr;
  int axis = 0;
  gcap_axes_t axes;
  gcap_slice_t slice;
  gcap_window_t window;
};

const char* const kText = "0";
const gcap_model_t kModel = {};
const gcap_node_t kNode = {};
const gcap_node_t kUnary = {"Op", "unary", nullptr, 1, nullptr, 0, nullptr};
const gcap_node_t kRelu = {"Relu", "relu", nullptr, 1, nullptr, 1, nullptr};
const gcap_attachment_key_t kKey = {"thing", [](gcap_stream_t*, void**) -> gcap_status_t { return nullptr; },
                                    [](void*) {}};
const gcap_graph_binding_t kBinding = {"x", "y", 0, nullptr};
void Nothing(void*) {}
void Close(void*, bool) {}
// The difference of two graphs, of which some are an empty graph, and the others NULL.
gcap_status_t Diff(bool before, bool after) {
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_CUDA(cudaGraphCreate(&graph, 0));
  gcap_status_t status = gcap_graph_diff(before ? graph : nullptr, after ? graph : nullptr, nullptr, nullptr, nullptr);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  return status;
}
// The notes of an empty graph, or of NULL, and an audit of them.
gcap_status_t Audit(bool has_graph) {
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_CUDA(cudaGraphCreate(&graph, 0));
  gcap_graph_notes_t* notes = nullptr;
  gcap_status_t status = gcap_graph_notes_create(has_graph ? graph : nullptr, nullptr, nullptr, &notes);
  if (status == nullptr) status = gcap_graph_audit(notes, nullptr, nullptr, nullptr);
  gcap_graph_notes_destroy(notes);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  return status;
}

using Call = std::function<gcap_status_t(Objects&)>;

// One pointer of one function. `code` is GCAP_OK where NULL has a meaning.
struct Row {
  const char* function;
  const char* argument;
  gcap_code_t code;
  Call call;
};

constexpr gcap_code_t kBad = GCAP_INVALID_ARGUMENT;
constexpr gcap_code_t kNoScope = GCAP_FAILED_PRECONDITION;  // no scope is open
constexpr gcap_code_t kFine = GCAP_OK;

#define CALL(expression) [](Objects& o) -> gcap_status_t { return (void)o, (expression); }

std::vector<Row> OptionsAndSessions() {
  return {
      {"gcap_struct_find_field", "type_name", kBad, CALL(gcap_struct_find_field(nullptr, "id", &o.offset, &o.bytes))},
      {"gcap_struct_find_field", "field_name", kFine,
       CALL(gcap_struct_find_field("gcap_run_t", nullptr, &o.offset, &o.bytes))},
      {"gcap_struct_find_field", "out_offset", kFine,
       CALL(gcap_struct_find_field("gcap_run_t", "id", nullptr, &o.bytes))},
      {"gcap_struct_find_field", "out_bytes", kFine,
       CALL(gcap_struct_find_field("gcap_run_t", "id", &o.offset, nullptr))},
      {"gcap_struct_init", "type_name", kBad, CALL(gcap_struct_init(nullptr, &o.options, sizeof(o.options)))},
      {"gcap_struct_init", "memory", kBad, CALL(gcap_struct_init("gcap_options_t", nullptr, sizeof(o.options)))},
      {"gcap_options_parse", "options", kBad, CALL(gcap_options_parse(nullptr, &kText, &kText, 1))},
      {"gcap_options_parse", "keys", kBad, CALL(gcap_options_parse(&o.options, nullptr, &kText, 1))},
      {"gcap_options_parse", "values", kBad, CALL(gcap_options_parse(&o.options, &kText, nullptr, 1))},
      {"gcap_options_parse_for_ep", "options", kBad, CALL(gcap_options_parse_for_ep(nullptr, "ep", &kText, &kText, 1))},
      {"gcap_options_parse_for_ep", "ep_name", kBad,
       CALL(gcap_options_parse_for_ep(&o.options, nullptr, &kText, &kText, 1))},
      {"gcap_options_parse_for_ep", "keys", kBad,
       CALL(gcap_options_parse_for_ep(&o.options, "ep", nullptr, &kText, 1))},
      {"gcap_options_parse_for_ep", "values", kBad,
       CALL(gcap_options_parse_for_ep(&o.options, "ep", &kText, nullptr, 1))},
      {"gcap_options_check", "options", kBad, CALL(gcap_options_check(nullptr))},
      {"gcap_options_get", "options", kBad, CALL(gcap_options_get(nullptr, "device_id", o.text, sizeof(o.text)))},
      {"gcap_options_get", "key", kFine, CALL(gcap_options_get(&o.options, nullptr, o.all, sizeof(o.all)))},
      {"gcap_options_get", "out_text", kBad, CALL(gcap_options_get(&o.options, "device_id", nullptr, 1))},
      {"gcap_run_options_parse", "options", kBad, CALL(gcap_run_options_parse(nullptr, &kText, &kText, 1))},
      {"gcap_run_options_parse", "keys", kBad, CALL(gcap_run_options_parse(&o.run_options, nullptr, &kText, 1))},
      {"gcap_run_options_parse", "values", kBad, CALL(gcap_run_options_parse(&o.run_options, &kText, nullptr, 1))},
      {"gcap_session_create", "model", kBad, CALL(gcap_session_create(nullptr, &o.ep, 1, nullptr, &o.session))},
      {"gcap_session_create", "eps", kBad, CALL(gcap_session_create(&kModel, nullptr, 1, nullptr, &o.session))},
      {"gcap_session_create", "options", kFine, CALL(ChainRig().Create(gcap::testing::GraphOptions()))},
      {"gcap_session_create", "out_session", kBad, CALL(gcap_session_create(&kModel, &o.ep, 1, nullptr, nullptr))},
      {"gcap_session_destroy", "session", kFine, CALL(gcap_session_destroy(nullptr))},
      {"gcap_session_run", "session", kBad, CALL(gcap_session_run(nullptr, nullptr, &o.input, &o.output))},
      {"gcap_session_run", "options", kFine, CALL(gcap_session_run(o.session, nullptr, &o.input, &o.output))},
      {"gcap_session_run", "inputs", kBad, CALL(gcap_session_run(o.session, nullptr, nullptr, &o.output))},
      {"gcap_session_run", "outputs", kBad, CALL(gcap_session_run(o.session, nullptr, &o.input, nullptr))},
      {"gcap_session_warm_up", "session", kBad, CALL(gcap_session_warm_up(nullptr, nullptr, 0))},
      {"gcap_session_warm_up", "runs", kBad, CALL(gcap_session_warm_up(o.session, nullptr, 1))},
      {"gcap_session_plan", "session", kBad, CALL(gcap_session_plan(nullptr, nullptr, 0, &o.plan))},
      {"gcap_session_plan", "runs", kBad, CALL(gcap_session_plan(o.session, nullptr, 1, &o.plan))},
      {"gcap_session_plan", "out_plan", kBad, CALL(gcap_session_plan(o.session, nullptr, 0, nullptr))},
      {"gcap_session_release_captured_graph", "session", kBad, CALL(gcap_session_release_captured_graph(nullptr, 0))},
  };
}

std::vector<Row> IoBindings() {
  static constexpr gcap_memory_t device = {GCAP_MEMORY_DEVICE, 0};
  return {
      {"gcap_io_binding_create", "session", kBad, CALL(gcap_io_binding_create(nullptr, &o.made_io_binding))},
      {"gcap_io_binding_create", "out_binding", kBad, CALL(gcap_io_binding_create(o.session, nullptr))},
      {"gcap_io_binding_destroy", "binding", kFine, CALL(gcap_io_binding_destroy(nullptr))},
      {"gcap_io_binding_bind_input", "binding", kBad, CALL(gcap_io_binding_bind_input(nullptr, "x", &o.input, device))},
      {"gcap_io_binding_bind_input", "name", kBad,
       CALL(gcap_io_binding_bind_input(o.io_binding, nullptr, &o.input, device))},
      {"gcap_io_binding_bind_input", "tensor", kBad,
       CALL(gcap_io_binding_bind_input(o.io_binding, "x", nullptr, device))},
      {"gcap_io_binding_bind_output", "binding", kBad,
       CALL(gcap_io_binding_bind_output(nullptr, "y", &o.output, device))},
      {"gcap_io_binding_bind_output", "name", kBad,
       CALL(gcap_io_binding_bind_output(o.io_binding, nullptr, &o.output, device))},
      {"gcap_io_binding_bind_output", "tensor", kBad,
       CALL(gcap_io_binding_bind_output(o.io_binding, "y", nullptr, device))},
      {"gcap_io_binding_clear", "binding", kBad, CALL(gcap_io_binding_clear(nullptr))},
      {"gcap_io_binding_synchronize", "binding", kBad, CALL(gcap_io_binding_synchronize(nullptr))},
      {"gcap_session_run_bound", "session", kBad, CALL(gcap_session_run_bound(nullptr, nullptr, o.io_binding))},
      {"gcap_session_run_bound", "options", kFine, CALL(gcap_session_run_bound(o.session, nullptr, o.io_binding))},
      {"gcap_session_run_bound", "binding", kBad, CALL(gcap_session_run_bound(o.session, nullptr, nullptr))},
      {"gcap_session_warm_up_bound", "session", kBad, CALL(gcap_session_warm_up_bound(nullptr, nullptr, o.io_binding))},
      {"gcap_session_warm_up_bound", "options", kFine,
       CALL(gcap_session_warm_up_bound(o.session, nullptr, o.io_binding))},
      {"gcap_session_warm_up_bound", "binding", kBad, CALL(gcap_session_warm_up_bound(o.session, nullptr, nullptr))},
  };
}

std::vector<Row> Eps() {
  static const gcap_ep_ops_t ops = {};
  return {
      {"gcap_ep_create", "ops", kBad, CALL(gcap_ep_create(nullptr, &o.ep))},
      {"gcap_ep_create", "out_ep", kBad, CALL(gcap_ep_create(&ops, nullptr))},
      {"gcap_ep_destroy", "ep", kFine, CALL(gcap_ep_destroy(nullptr))},
      {"gcap_ep_create_kernel", "ep", kBad, CALL(gcap_ep_create_kernel(nullptr, &kModel, &kNode, &o.kernel))},
      {"gcap_ep_create_kernel", "model", kBad, CALL(gcap_ep_create_kernel(o.ep, nullptr, &kNode, &o.kernel))},
      {"gcap_ep_create_kernel", "node", kBad, CALL(gcap_ep_create_kernel(o.ep, &kModel, nullptr, &o.kernel))},
      {"gcap_ep_create_kernel", "out_kernel", kBad, CALL(gcap_ep_create_kernel(o.ep, &kModel, &kNode, nullptr))},
      {"gcap_ep_claim", "ep", kBad, CALL(gcap_ep_claim(nullptr))},
      {"gcap_ep_trim", "ep", kBad, CALL(gcap_ep_trim(nullptr))},
      {"gcap_ep_infer_shapes", "ep", kBad, CALL(gcap_ep_infer_shapes(nullptr, &kModel, &kNode, &o.input, &o.output))},
      {"gcap_ep_infer_shapes", "model", kBad, CALL(gcap_ep_infer_shapes(o.ep, nullptr, &kNode, &o.input, &o.output))},
      {"gcap_ep_infer_shapes", "node", kBad, CALL(gcap_ep_infer_shapes(o.ep, &kModel, nullptr, &o.input, &o.output))},
      {"gcap_ep_infer_shapes", "inputs", kBad, CALL(gcap_ep_infer_shapes(o.ep, &kModel, &kUnary, nullptr, &o.output))},
      {"gcap_ep_infer_shapes", "outputs", kBad, CALL(gcap_ep_infer_shapes(o.ep, &kModel, &kNode, &o.input, nullptr))},
  };
}

std::vector<Row> Shapes() {
  return {
      {"gcap_cpu_ep_create", "out_ep", kBad, CALL(gcap_cpu_ep_create(nullptr))},
      {"gcap_infer_shapes", "node", kBad, CALL(gcap_infer_shapes(nullptr, &o.input, &o.output))},
      {"gcap_infer_shapes", "inputs", kBad, CALL(gcap_infer_shapes(&kRelu, nullptr, &o.output))},
      {"gcap_infer_shapes", "outputs", kBad, CALL(gcap_infer_shapes(&kRelu, &o.input, nullptr))},
      {"gcap_infer_axis", "node", kBad, CALL(gcap_infer_axis(nullptr, 2, 0, &o.axis))},
      {"gcap_infer_axis", "out_axis", kBad, CALL(gcap_infer_axis(&kRelu, 2, 0, nullptr))},
      {"gcap_infer_reduced_axes", "node", kBad, CALL(gcap_infer_reduced_axes(nullptr, &o.input, &o.axes))},
      {"gcap_infer_reduced_axes", "inputs", kBad, CALL(gcap_infer_reduced_axes(&kRelu, nullptr, &o.axes))},
      {"gcap_infer_reduced_axes", "out_axes", kBad, CALL(gcap_infer_reduced_axes(&kRelu, &o.input, nullptr))},
      {"gcap_infer_slice", "node", kBad, CALL(gcap_infer_slice(nullptr, &o.input, &o.slice))},
      {"gcap_infer_slice", "inputs", kBad, CALL(gcap_infer_slice(&kRelu, nullptr, &o.slice))},
      {"gcap_infer_slice", "out_slice", kBad, CALL(gcap_infer_slice(&kRelu, &o.input, nullptr))},
      {"gcap_infer_window", "node", kBad, CALL(gcap_infer_window(nullptr, &o.input, &o.window))},
      {"gcap_infer_window", "inputs", kBad, CALL(gcap_infer_window(&kRelu, nullptr, &o.window))},
      {"gcap_infer_window", "out_window", kBad, CALL(gcap_infer_window(&kRelu, &o.input, nullptr))},
  };
}

std::vector<Row> Runtimes() {
  static const gcap_runtime_ops_t ops = {};
  return {
      {"gcap_runtime_create", "options", kFine,
       [](Objects&) {
         gcap_runtime_t* runtime = nullptr;
         gcap_status_t status = gcap_runtime_create(nullptr, &runtime);
         return gcap_status_join(status, gcap_runtime_destroy(runtime));
       }},
      {"gcap_runtime_create", "out_runtime", kBad, CALL(gcap_runtime_create(nullptr, nullptr))},
      {"gcap_runtime_destroy", "runtime", kFine, CALL(gcap_runtime_destroy(nullptr))},
      {"gcap_runtime_create_from", "ops", kBad, CALL(gcap_runtime_create_from(nullptr, &o.made_runtime))},
      {"gcap_runtime_create_from", "out_runtime", kBad, CALL(gcap_runtime_create_from(&ops, nullptr))},
      {"gcap_runtime_read_resources", "runtime", kBad, CALL(gcap_runtime_get_resources(nullptr, &o.resources))},
      {"gcap_runtime_read_resources", "out_resources", kBad, CALL(gcap_runtime_get_resources(o.runtime, nullptr))},
      {"gcap_runtime_graphs", "runtime", kBad, CALL(gcap_runtime_graphs(nullptr, &o.borrowed_graphs))},
      {"gcap_runtime_graphs", "out_graphs", kBad, CALL(gcap_runtime_graphs(o.runtime, nullptr))},
      {"gcap_runtime_begin_run", "runtime", kBad, CALL(gcap_runtime_begin_run(nullptr, &o.run, &o.kind, &o.address))},
      {"gcap_runtime_begin_run", "run", kBad, CALL(gcap_runtime_begin_run(o.runtime, nullptr, &o.kind, &o.address))},
      {"gcap_runtime_begin_run", "out_kind", kBad,
       CALL(gcap_runtime_begin_run(o.runtime, &o.moving, nullptr, &o.address))},
      {"gcap_runtime_begin_run", "out_addresses", kBad,
       CALL(gcap_runtime_begin_run(o.runtime, &o.moving, &o.kind, nullptr))},
      {"gcap_runtime_end_run", "runtime", kBad, CALL(gcap_runtime_end_run(nullptr, &o.run, nullptr))},
      {"gcap_runtime_end_run", "run", kFine,
       [](Objects& o) {
         gcap_status_t status = BeginRun(o.runtime, GCAP_GRAPH_ID_NONE);
         return gcap_status_join(status, gcap_runtime_end_run(o.runtime, nullptr, nullptr));
       }},
      {"gcap_runtime_end_run", "run_status", kFine,
       [](Objects& o) {
         gcap_status_t status = BeginRun(o.runtime, GCAP_GRAPH_ID_NONE);
         return gcap_status_join(status, gcap_runtime_end_run(o.runtime, &o.run, nullptr));
       }},
      {"gcap_runtime_replay", "runtime", kBad, CALL(gcap_runtime_replay(nullptr, &o.run, &o.flag))},
      {"gcap_runtime_replay", "run", kBad, CALL(gcap_runtime_replay(o.runtime, nullptr, &o.flag))},
      {"gcap_runtime_replay", "out_replayed", GCAP_NOT_FOUND, CALL(gcap_runtime_replay(o.runtime, &o.run, nullptr))},
      {"gcap_runtime_run", "runtime", kBad, CALL(gcap_runtime_run(nullptr, &o.run))},
      {"gcap_runtime_run", "run", kBad, CALL(gcap_runtime_run(o.runtime, nullptr))},
      {"gcap_runtime_plan", "runtime", kBad, CALL(gcap_runtime_plan(nullptr, nullptr, 0, &o.plan))},
      {"gcap_runtime_plan", "runs", kBad, CALL(gcap_runtime_plan(o.runtime, nullptr, 1, &o.plan))},
      {"gcap_runtime_plan", "out_plan", kBad, CALL(gcap_runtime_plan(o.runtime, nullptr, 0, nullptr))},
      {"gcap_runtime_explain", "runtime", kBad, CALL(gcap_runtime_explain(nullptr, 0, GCAP_GRAPH_WHY_CAPTURE_FAILED))},
      {"gcap_runtime_release", "runtime", kBad, CALL(gcap_runtime_release(nullptr, 0))},
      {"gcap_runtime_synchronize", "runtime", kBad, CALL(gcap_runtime_synchronize(nullptr))},
      {"gcap_runtime_copy_tensors", "runtime", kBad, CALL(gcap_runtime_copy_tensors(nullptr, &o.copy, 1))},
      {"gcap_runtime_copy_tensors", "copies", kBad, CALL(gcap_runtime_copy_tensors(o.runtime, nullptr, 1))},
      {"gcap_runtime_create_stream", "runtime", kBad, CALL(gcap_runtime_create_stream(nullptr, &o.made_stream))},
      {"gcap_runtime_create_stream", "out_stream", kBad, CALL(gcap_runtime_create_stream(o.runtime, nullptr))},
      {"gcap_runtime_get_allocator", "runtime", kBad,
       CALL(gcap_runtime_get_allocator(nullptr, GCAP_MEMORY_PINNED, &o.borrowed))},
      {"gcap_runtime_get_allocator", "out_allocator", kBad,
       CALL(gcap_runtime_get_allocator(o.runtime, GCAP_MEMORY_PINNED, nullptr))},
      {"gcap_runtime_fork", "runtime", kBad, CALL(gcap_runtime_fork(nullptr, 1, &o.made_stream))},
      {"gcap_runtime_fork", "out_streams", kBad, CALL(gcap_runtime_fork(o.runtime, 1, nullptr))},
      {"gcap_runtime_join", "runtime", kBad, CALL(gcap_runtime_join(nullptr))},
  };
}

std::vector<Row> Allocators() {
  static const gcap_allocator_ops_t ops = {};
  static gcap_external_allocator_options_t external;
  gcap_external_allocator_options_init(&external);
  external.alloc = [](size_t) -> void* { return nullptr; };
  external.free = [](void*) {};
  return {
      {"gcap_device_allocator_create", "out_allocator", kBad, CALL(gcap_device_allocator_create(0, nullptr))},
      {"gcap_pinned_allocator_create", "out_allocator", kBad, CALL(gcap_pinned_allocator_create(nullptr))},
      {"gcap_pool_allocator_create", "options", kBad, CALL(gcap_pool_allocator_create(nullptr, &o.made))},
      {"gcap_pool_allocator_create", "out_allocator", kBad, CALL(gcap_pool_allocator_create(nullptr, nullptr))},
      {"gcap_external_allocator_create", "options", kBad, CALL(gcap_external_allocator_create(nullptr, &o.made))},
      {"gcap_external_allocator_create", "out_allocator", kBad,
       CALL(gcap_external_allocator_create(&external, nullptr))},
      {"gcap_allocator_create", "ops", kBad, CALL(gcap_allocator_create(nullptr, &o.made))},
      {"gcap_allocator_create", "out_allocator", kBad, CALL(gcap_allocator_create(&ops, nullptr))},
      {"gcap_allocator_alloc", "allocator", kBad, CALL(gcap_allocator_alloc(nullptr, 1, &o.memory))},
      {"gcap_allocator_alloc", "out_ptr", kBad, CALL(gcap_allocator_alloc(o.allocator, 1, nullptr))},
      {"gcap_allocator_alloc_on_stream", "allocator", kBad,
       CALL(gcap_allocator_alloc_on_stream(nullptr, 1, o.stream, &o.memory))},
      {"gcap_allocator_alloc_on_stream", "stream", kBad,
       CALL(gcap_allocator_alloc_on_stream(o.allocator, 1, nullptr, &o.memory))},
      {"gcap_allocator_alloc_on_stream", "out_ptr", kBad,
       CALL(gcap_allocator_alloc_on_stream(o.allocator, 1, o.stream, nullptr))},
      {"gcap_allocator_reserve", "allocator", kBad, CALL(gcap_allocator_reserve(nullptr, 1, &o.memory))},
      {"gcap_allocator_reserve", "out_ptr", kBad, CALL(gcap_allocator_reserve(o.allocator, 1, nullptr))},
      {"gcap_allocator_free", "allocator", kBad, CALL(gcap_allocator_free(nullptr, &o))},
      {"gcap_allocator_free", "ptr", kFine, CALL(gcap_allocator_free(o.allocator, nullptr))},
      {"gcap_allocator_trim", "allocator", kBad, CALL(gcap_allocator_trim(nullptr))},
  };
}

std::vector<Row> Streams() {
  return {
      {"gcap_stream_create", "out_stream", kBad, CALL(gcap_stream_create(0, nullptr))},
      {"gcap_stream_wrap", "out_stream", kBad, CALL(gcap_stream_wrap(o.handle, GCAP_STREAM_USER, 0, 0, nullptr))},
      {"gcap_stream_destroy", "stream", kFine, CALL(gcap_stream_destroy(nullptr))},
      {"gcap_stream_synchronize", "stream", kBad, CALL(gcap_stream_synchronize(nullptr))},
      {"gcap_stream_end_run", "stream", kBad, CALL(gcap_stream_end_run(nullptr, false))},
      {"gcap_notification_create", "producer", kBad, CALL(gcap_notification_create(nullptr, &o.notification))},
      {"gcap_notification_create", "out_notification", kBad, CALL(gcap_notification_create(o.stream, nullptr))},
      {"gcap_notification_record", "notification", kBad, CALL(gcap_notification_record(nullptr))},
      {"gcap_notification_wait", "notification", kBad, CALL(gcap_notification_wait(nullptr, o.stream))},
      {"gcap_notification_wait", "consumer", kBad, CALL(gcap_notification_wait(o.notification, nullptr))},
      {"gcap_notification_wait_on_host", "notification", kBad, CALL(gcap_notification_wait_on_host(nullptr))},
      {"gcap_stream_attachment", "stream", kBad, CALL(gcap_stream_attachment(nullptr, &kKey, &o.memory))},
      {"gcap_stream_attachment", "key", kBad, CALL(gcap_stream_attachment(o.stream, nullptr, &o.memory))},
      {"gcap_stream_attachment", "out_object", kBad, CALL(gcap_stream_attachment(o.stream, &kKey, nullptr))},
      {"gcap_stream_defer", "stream", kBad, CALL(gcap_stream_defer(nullptr, Nothing, nullptr))},
      {"gcap_stream_defer", "release", kBad, CALL(gcap_stream_defer(o.stream, nullptr, nullptr))},
      {"gcap_stream_defer", "user", kFine, CALL(gcap_stream_defer(o.stream, Nothing, nullptr))},
  };
}

#define CAPTURED(expression) \
  [](Objects& o) -> gcap_status_t { return o.Captured([&](gcap_capture_t* c) { return (void)c, (expression); }); }

std::vector<Row> Captures() {
  return {
      {"gcap_capture_begin", "options", kFine, CAPTURED(nullptr)},
      {"gcap_capture_begin", "out_capture", kBad, CALL(gcap_capture_begin(o.handle, nullptr, nullptr))},
      {"gcap_capture_end", "capture", kNoScope, CALL(gcap_capture_end(nullptr, &o.graph, &o.retained))},
      {"gcap_capture_end", "out_graph", kBad, CAPTURED(gcap_capture_end(c, nullptr, &o.retained))},
      {"gcap_capture_end", "out_retained", kBad, CAPTURED(gcap_capture_end(c, &o.graph, nullptr))},
      {"gcap_capture_fork", "capture", kNoScope, CALL(gcap_capture_fork(nullptr, &o.handle, 1))},
      {"gcap_capture_fork", "streams", kBad, CAPTURED(gcap_capture_fork(c, nullptr, 1))},
      {"gcap_capture_join", "capture", kNoScope, CALL(gcap_capture_join(nullptr, &o.handle, 1))},
      {"gcap_capture_join", "streams", kBad, CAPTURED(gcap_capture_join(c, nullptr, 1))},
      {"gcap_capture_on_close", "capture", kNoScope, CALL(gcap_capture_on_close(nullptr, Close, nullptr))},
      {"gcap_capture_on_close", "close", kBad, CAPTURED(gcap_capture_on_close(c, nullptr, nullptr))},
      {"gcap_capture_on_close", "user", kFine, CAPTURED(gcap_capture_on_close(c, Close, nullptr))},
      {"gcap_capture_retain", "capture", kNoScope, CALL(gcap_capture_retain(nullptr, Nothing, nullptr, nullptr))},
      {"gcap_capture_retain", "release", kBad, CAPTURED(gcap_capture_retain(c, nullptr, nullptr, nullptr))},
      {"gcap_capture_retain", "bytes", kFine, CAPTURED(gcap_capture_retain(c, Nothing, nullptr, nullptr))},
      {"gcap_capture_retain", "user", kFine, CAPTURED(gcap_capture_retain(c, Nothing, nullptr, nullptr))},
      {"gcap_capture_write_events", "capture", kNoScope, CALL(gcap_capture_write_events(nullptr, "/dev/null"))},
      {"gcap_capture_write_events", "path", kBad, CAPTURED(gcap_capture_write_events(c, nullptr))},
  };
}

std::vector<Row> Graphs() {
  return {
      {"gcap_graph_manager_create", "options", kFine,
       [](Objects&) {
         gcap_graph_manager_t* manager = nullptr;
         gcap_status_t status = gcap_graph_manager_create(nullptr, &manager);
         return gcap_status_join(status, gcap_graph_manager_destroy(manager));
       }},
      {"gcap_graph_manager_create", "out_manager", kBad, CALL(gcap_graph_manager_create(nullptr, nullptr))},
      {"gcap_graph_manager_destroy", "manager", kFine, CALL(gcap_graph_manager_destroy(nullptr))},
      {"gcap_graph_manager_begin_run", "manager", kBad,
       CALL(gcap_graph_manager_begin_run(nullptr, &o.plain_run, &o.kind, &o.address))},
      {"gcap_graph_manager_begin_run", "run", kBad,
       CALL(gcap_graph_manager_begin_run(o.manager, nullptr, &o.kind, &o.address))},
      {"gcap_graph_manager_begin_run", "out_kind", kBad,
       CALL(gcap_graph_manager_begin_run(o.manager, &o.plain_run, nullptr, &o.address))},
      {"gcap_graph_manager_begin_run", "out_addresses", kBad,
       [](Objects& o) {
         gcap_run_t run = o.plain_run;
         run.buffers = &o.buffers;
         return gcap_graph_manager_begin_run(o.manager, &run, &o.kind, nullptr);
       }},
      {"gcap_graph_manager_end_run", "manager", kBad, CALL(gcap_graph_manager_end_run(nullptr, &o.plain_run, nullptr))},
      {"gcap_graph_manager_end_run", "run", kFine,
       [](Objects& o) {
         gcap_status_t status = gcap_graph_manager_begin_run(o.manager, &o.eager_run, &o.kind, nullptr);
         return gcap_status_join(status, gcap_graph_manager_end_run(o.manager, nullptr, nullptr));
       }},
      {"gcap_graph_manager_end_run", "run_status", kFine,
       [](Objects& o) {
         gcap_status_t status = gcap_graph_manager_begin_run(o.manager, &o.eager_run, &o.kind, nullptr);
         return gcap_status_join(status, gcap_graph_manager_end_run(o.manager, &o.eager_run, nullptr));
       }},
      {"gcap_graph_manager_run", "manager", kBad, CALL(gcap_graph_manager_run(nullptr, &o.plain_run))},
      {"gcap_graph_manager_run", "run", kBad, CALL(gcap_graph_manager_run(o.manager, nullptr))},
      {"gcap_graph_manager_check_moves", "manager", kBad, CALL(gcap_graph_manager_check_moves(nullptr, 0))},
      {"gcap_graph_manager_bind", "manager", kBad, CALL(gcap_graph_manager_bind(nullptr, 0, 0, o.buffer.address))},
      {"gcap_graph_manager_bind", "address", GCAP_NOT_FOUND, CALL(gcap_graph_manager_bind(o.manager, 0, 0, nullptr))},
      {"gcap_graph_diff", "before", kBad, [](Objects&) { return Diff(false, true); }},
      {"gcap_graph_diff", "after", kBad, [](Objects&) { return Diff(true, false); }},
      {"gcap_graph_diff", "on_difference", kFine, [](Objects&) { return Diff(true, true); }},
      {"gcap_graph_diff", "user", kFine, [](Objects&) { return Diff(true, true); }},
      {"gcap_graph_diff", "out_count", kFine, [](Objects&) { return Diff(true, true); }},
      {"gcap_graph_manager_plan", "manager", kBad, CALL(gcap_graph_manager_plan(nullptr, nullptr, 0, &o.plan))},
      {"gcap_graph_manager_plan", "runs", kBad, CALL(gcap_graph_manager_plan(o.manager, nullptr, 1, &o.plan))},
      {"gcap_graph_manager_plan", "out_plan", kBad, CALL(gcap_graph_manager_plan(o.manager, nullptr, 0, nullptr))},
      {"gcap_graph_notes_create", "graph", kBad, [](Objects&) { return Audit(false); }},
      {"gcap_graph_notes_create", "find_block", kFine, [](Objects&) { return Audit(true); }},
      {"gcap_graph_notes_create", "user", kFine, [](Objects&) { return Audit(true); }},
      {"gcap_graph_notes_create", "out_notes", kBad, CALL(gcap_graph_notes_create(nullptr, nullptr, nullptr, nullptr))},
      {"gcap_graph_audit", "notes", kBad, CALL(gcap_graph_audit(nullptr, nullptr, nullptr, nullptr))},
      {"gcap_graph_audit", "on_pointer", kFine, [](Objects&) { return Audit(true); }},
      {"gcap_graph_audit", "user", kFine, [](Objects&) { return Audit(true); }},
      {"gcap_graph_audit", "out_findings", kFine, [](Objects&) { return Audit(true); }},
      {"gcap_graph_manager_audit", "manager", kBad,
       CALL(gcap_graph_manager_audit(nullptr, 0, nullptr, nullptr, nullptr))},
      {"gcap_graph_manager_audit", "on_pointer", GCAP_NOT_FOUND,
       CALL(gcap_graph_manager_audit(o.manager, 0, nullptr, nullptr, nullptr))},
      {"gcap_graph_manager_audit", "user", GCAP_NOT_FOUND,
       CALL(gcap_graph_manager_audit(o.manager, 0, nullptr, nullptr, nullptr))},
      {"gcap_graph_manager_audit", "out_findings", GCAP_NOT_FOUND,
       CALL(gcap_graph_manager_audit(o.manager, 0, nullptr, nullptr, nullptr))},
      {"gcap_graph_manager_recapture", "manager", kBad, CALL(gcap_graph_manager_recapture(nullptr, 0))},
      {"gcap_graph_manager_explain", "manager", kBad,
       CALL(gcap_graph_manager_explain(nullptr, 0, GCAP_GRAPH_WHY_CAPTURE_FAILED))},
      {"gcap_graph_manager_replay", "manager", kBad, CALL(gcap_graph_manager_replay(nullptr, &o.plain_run, &o.flag))},
      {"gcap_graph_manager_replay", "run", kBad, CALL(gcap_graph_manager_replay(o.manager, nullptr, &o.flag))},
      {"gcap_graph_manager_replay", "out_replayed", GCAP_NOT_FOUND,
       CALL(gcap_graph_manager_replay(o.manager, &o.plain_run, nullptr))},
      {"gcap_graph_manager_dump", "manager", kBad, CALL(gcap_graph_manager_dump(nullptr, 0, "path", 0))},
      {"gcap_graph_manager_dump", "path", kBad, CALL(gcap_graph_manager_dump(o.manager, 0, nullptr, 0))},
      {"gcap_graph_manager_release", "manager", kBad, CALL(gcap_graph_manager_release(nullptr, 0))},
      {"gcap_graph_manager_release_all", "manager", kBad, CALL(gcap_graph_manager_release_all(nullptr))},
  };
}

std::vector<Row> AllRows() {
  std::vector<Row> all;
  for (auto part : {OptionsAndSessions, IoBindings, Eps, Shapes, Runtimes, Allocators, Streams, Captures, Graphs}) {
    for (Row& row : part()) all.push_back(std::move(row));
  }
  return all;
}

// --- The headers ----------------------------------------------------------------------------------------------------

// A pointer parameter of a function, "function(argument)".
using Pointers = std::set<std::string>;

// The parameters of a declaration, which commas outside of brackets part.
std::vector<std::string> Parameters(const std::string& list) {
  std::vector<std::string> parameters(1);
  int depth = 0;
  for (const char c : list) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parameters.emplace_back();
    } else {
      parameters.back() += c;
    }
  }
  return parameters;
}

// The name of a parameter that may be NULL, else nothing: a pointer, a function, or a type that hides one of these.
std::string PointerName(const std::string& parameter) {
  static const std::regex function(R"(\(\*(\w+)\))"),
      hidden(R"(\b(?:gcap_status_t|gcap_\w+_work(?:_on)?_t|gcap_\w+_fn|cudaGraph_t)\s+(\w+)\s*$)"),
      name(R"((\w+)\s*$)");
  std::smatch match;
  if (std::regex_search(parameter, match, function)) return match[1];
  if (std::regex_search(parameter, match, hidden)) return match[1];
  if (parameter.find('*') == std::string::npos) return "";
  return std::regex_search(parameter, match, name) ? match[1].str() : "";
}

Pointers PointersOf(const std::string& text) {
  static const std::regex declaration(R"(GCAP_API gcap_status_t\s+(gcap_\w+)\s*\(([^;]*)\)[^();]*(\([^;]*\))?;)");
  Pointers pointers;
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at) {
    for (const std::string& parameter : Parameters((*at)[2])) {
      const std::string name = PointerName(parameter);
      if (!name.empty()) pointers.insert((*at)[1].str() + "(" + name + ")");
    }
  }
  return pointers;
}

Pointers PointersOfFolder(const std::string& path) {
  Pointers all;
  DIR* folder = opendir(path.c_str());
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
    const std::string name = entry->d_name;
    if (name.find(".h") == std::string::npos || name == "status.h" || name == "scratch.h") continue;
    std::ifstream file(path + "/" + name);
    std::ostringstream text;
    for (std::string line; std::getline(file, line);) text << line.substr(0, line.find("//")) << "\n";
    const Pointers pointers = PointersOf(text.str());
    all.insert(pointers.begin(), pointers.end());
  }
  if (folder != nullptr) closedir(folder);
  return all;
}

Pointers DeclaredPointers() {
  Pointers all;
  for (const char* path : kHeaders) {
    const Pointers pointers = PointersOfFolder(path);
    all.insert(pointers.begin(), pointers.end());
  }
  return all;
}

TEST(NullArguments, APointerIsFoundHoweverItIsSpelled) {
  EXPECT_EQ(
      PointersOf("GCAP_API gcap_status_t gcap_a_do(gcap_a_t* a, int n,\n  const char* const* keys) GCAP_NODISCARD;\n"
                 "GCAP_API gcap_status_t gcap_b_end(gcap_b_t *b, gcap_status_t run_status, size_t n);\n"
                 "GCAP_API gcap_status_t gcap_c(void (*close)(void* user, bool ok), gcap_c_work_t work);\n"
                 "GCAP_API void gcap_d(int* no_status);\n"),
      (Pointers{"gcap_a_do(a)", "gcap_a_do(keys)", "gcap_b_end(b)", "gcap_b_end(run_status)", "gcap_c(close)",
                "gcap_c(work)"}));
}

TEST(NullArguments, EveryPointerHasARow) {
  Pointers rows;
  for (const Row& row : AllRows()) rows.insert(std::string(row.function) + "(" + row.argument + ")");
  const Pointers declared = DeclaredPointers();
  EXPECT_GT(declared.size(), 100u) << "no headers in " << kHeaders[0];
  for (const std::string& pointer : declared) EXPECT_EQ(rows.count(pointer), 1u) << pointer << " has no row";
  for (const std::string& pointer : rows) EXPECT_EQ(declared.count(pointer), 1u) << pointer << " is not declared";
}

TEST(NullArguments, AreRefusedByNameOrAccepted) {
  for (const Row& row : AllRows()) {
    SCOPED_TRACE(std::string(row.function) + "(" + row.argument + ")");
    Objects objects;
    const Outcome outcome(row.call(objects));
    EXPECT_STREQ(gcap_code_name(outcome.code), gcap_code_name(row.code)) << outcome.message;
    if (row.code != kBad && row.code != kNoScope) continue;
    EXPECT_TRUE(outcome.Names(row.argument)) << outcome.message;
    EXPECT_TRUE(outcome.Names("NULL") || row.code == kNoScope) << outcome.message;
  }
}

}  // namespace
