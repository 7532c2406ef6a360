// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// NULL for each pointer of each public function that returns a status, one at a time: refused by name, or accepted as
// the header says, never followed. A row is a function with arguments that are right; which of them are pointers is the
// function's type, and how they are called is read off the headers, so a new function fails here until it has a row.
// Not here: status.h, which makes statuses, and scratch.h, which checks only what it says. What is NULL inside a struct
// or an array is with the module: models and EPs in test/session, tables in test/ep, test/runtime and test/allocator,
// keys and values in test/options.

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "gcap/graph_buffers.h"
#include "gcap/graph_plan.h"
#include "gcap/kit/kit.h"
#include "gtest/gtest.h"
#include "test/fault/headers.h"
#include "test/fault/stream_scene.h"
#include "test/session/session_test.h"
#include "test/support/expect_status.h"

namespace {

using gcap::testing::ChainRig;
using gcap::testing::DeclarationsIn;
using gcap::testing::DeviceFloats;
using gcap::testing::GraphOptions;
using gcap::testing::kOut;
using gcap::testing::Outcome;
using gcap::testing::StreamScene;

// What the rows pass where they do not pass NULL.
gcap_status_t Work(void*, const gcap_run_resources_t*) { return nullptr; }
void Nothing(void*) {}
void Close(void*, bool) {}

struct Objects {
  Objects() {
    GCAP_EXPECT_OK(rig.Create(GraphOptions()));
    ep = rig.ep->get();
    runtime = rig.ep->runtime();
    session = rig.session;
    moving.buffers = plain_moving.buffers = &buffers;
    moving.work = plain.work = plain_moving.work = Work;
    gcap_options_init(&options);
    gcap_pool_allocator_options_init(&pool);
    gcap_external_allocator_options_init(&external);
    external.alloc = [](size_t) -> void* { return nullptr; };
    external.free = [](void*) {};
    gcap_run_options_init(&run_options);
    gcap_check_init(&check);
    gcap_check_report_init(&report);
    gcap_graph_plan_init(&plan);
    gcap_buckets_choice_init(&choice);
    gcap_graph_guard_init(&guard);
    guard.address = &found;
    guard.bytes = sizeof(found);
    gcap_graph_hole_init(&hole);
    hole.work = [](void*, const gcap_run_resources_t*) -> gcap_status_t { return nullptr; };
    gcap_run_resources_init(&resources);
    GCAP_EXPECT_OK(gcap_notification_create(stream, &s.notification));
    GCAP_EXPECT_OK(gcap_notification_record(s.notification));
    GCAP_EXPECT_OK(gcap_device_allocator_create(0, &allocator));
    GCAP_EXPECT_OK(gcap_io_binding_create(session, &binding));
    GCAP_EXPECT_OK(gcap_io_binding_bind_input(binding, "x", &input, device));
    GCAP_EXPECT_OK(gcap_io_binding_bind_output(binding, "y", &output, device));
    GCAP_EXPECT_CUDA(cudaGraphCreate(&graph, 0));
    GCAP_EXPECT_OK(gcap_graph_notes_create(graph, nullptr, nullptr, &notes));
  }
  ~Objects() {
    gcap_capture_abort(gcap_capture_current());
    gcap_graph_notes_destroy(notes);
    gcap_graph_notes_destroy(made_notes);
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    GCAP_EXPECT_OK(gcap_io_binding_destroy(binding));
    gcap_allocator_destroy(made);
    gcap_allocator_destroy(allocator);
    GCAP_EXPECT_OK(gcap_runtime_destroy(made_runtime));
    GCAP_EXPECT_OK(gcap_graph_manager_destroy(made_manager));
    GCAP_EXPECT_OK(s.End());
  }

  // An open scope, run of the runtime, or run of the manager.
  gcap_capture_t* Scope() {
    if (gcap_capture_current() == nullptr) s.BeginCapture();
    return s.capture;
  }
  gcap_runtime_t* OpenRuntime() {
    GCAP_EXPECT_OK(BeginRun(runtime, GCAP_GRAPH_ID_NONE));
    return runtime;
  }
  gcap_graph_manager_t* OpenManager() {
    GCAP_EXPECT_OK(BeginPlain(s.manager, GCAP_GRAPH_ID_NONE, handle, &kind));
    return s.manager;
  }

  StreamScene s;
  ChainRig rig;
  const gcap_memory_t device = {GCAP_MEMORY_DEVICE, 0};
  DeviceFloats x{std::vector<float>(6)}, y{std::vector<float>(6)};
  gcap_tensor_t input = gcap::testing::Tensor(x.get(), {2, 3}), output = gcap::testing::Tensor(y.get(), {2, 3});
  gcap_copy_t copy = {&input, device, &output, device, nullptr};
  gcap_ep_t* ep = nullptr;
  gcap_runtime_t* runtime = nullptr;
  gcap_session_t* session = nullptr;
  gcap_io_binding_t* binding = nullptr;
  gcap_stream_t* const stream = s.stream;
  cudaStream_t handle = s.Handle();
  gcap_allocator_t* allocator = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_graph_notes_t* notes = nullptr;
  gcap_options_t options;
  gcap_pool_allocator_options_t pool;
  gcap_external_allocator_options_t external;
  gcap_run_options_t run_options;
  gcap_graph_buffer_t buffer = {"x", x.get(), 6 * sizeof(float), 0};
  gcap_graph_buffers_t buffers = {sizeof(buffers), &buffer, 1,       GCAP_GRAPH_STAND_INS_ADDRESSES,
                                  nullptr,         false,   nullptr, 0};
  // Of a runtime, and of a manager.
  gcap_run_t run = RunOf(3), moving = RunOf(3), plain = RunOf(0, handle), plain_moving = RunOf(0, handle);
  gcap_warm_up_run_t warm_up = {&run_options, &input, &output};
  gcap_check_t check;
  gcap_check_report_t report;
  gcap_graph_plan_t plan;
  gcap_buckets_choice_t choice;
  gcap_graph_key_t key = {"key", 3, nullptr};
  gcap_graph_guard_t guard;
  gcap_graph_hole_t hole;
  int found = 0;
  gcap_run_resources_t resources;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  // What accepted calls make.
  gcap_allocator_t* made = nullptr;
  gcap_runtime_t* made_runtime = nullptr;
  gcap_graph_manager_t* made_manager = nullptr;
  gcap_graph_notes_t* made_notes = nullptr;
  char text[GCAP_OPTIONS_MAX_TEXT_BYTES] = "";
};

const char* const kText = "0";
const gcap_size_count_t kSize = {1, 1};
const gcap_model_t kModel = {};
const gcap_node_t kUnary = {"Op", "unary", nullptr, 1, nullptr, 1, nullptr};
const gcap_node_t kRelu = {"Relu", "relu", nullptr, 1, nullptr, 1, nullptr};
const gcap_ep_ops_t kEpOps = {};
const gcap_runtime_ops_t kRuntimeOps = {};
const gcap_allocator_ops_t kAllocatorOps = {};
const gcap_attachment_key_t kKey = {"thing", [](gcap_stream_t*, void**) -> gcap_status_t { return nullptr; },
                                    [](void*) {}};

// A function, and what it answers to NULL in the place of one of its arguments.
struct Row {
  std::string function;
  std::vector<bool> is_pointer;                              // each of its parameters
  std::function<gcap_status_t(Objects&, size_t null)> call;  // with NULL in the place of that parameter
  // Of parameters that are not refused as INVALID_ARGUMENT. OK where NULL has a meaning.
  std::map<std::string, gcap_code_t> codes = {};

  Row&& With(std::initializer_list<const char*> parameters, gcap_code_t code) && {
    for (const char* parameter : parameters) codes[parameter] = code;
    return std::move(*this);
  }
  Row&& Fine(std::initializer_list<const char*> parameters) && { return std::move(*this).With(parameters, GCAP_OK); }
};

// A stream may be NULL: CUDA's default one.
template <typename Parameter>
constexpr bool kIsPointer = std::is_pointer_v<Parameter> && !std::is_same_v<Parameter, cudaStream_t>;

template <typename Parameter>
void MakeNull(Parameter* argument, bool is_chosen) {
  if constexpr (kIsPointer<Parameter>) *argument = is_chosen ? nullptr : *argument;
}

template <typename... Parameters, size_t... Index>
void MakeNullAt(std::tuple<Parameters...>* arguments, size_t null, std::index_sequence<Index...>) {
  (MakeNull(&std::get<Index>(*arguments), Index == null), ...);
}

template <typename... Parameters, typename Arguments>
Row RowOf(const char* name, gcap_status_t (*function)(Parameters...), Arguments right) {
  const auto call = [=](Objects& o, size_t null) {
    std::tuple<Parameters...> arguments = right(o);
    MakeNullAt(&arguments, null, std::index_sequence_for<Parameters...>());
    return std::apply(function, arguments);
  };
  return {name, {kIsPointer<Parameters>...}, call};
}

#define ROW(function, ...) RowOf(#function, function, [](Objects& o) { return (void)o, std::make_tuple(__VA_ARGS__); })

constexpr gcap_code_t kNoScope = GCAP_FAILED_PRECONDITION, kNoGraph = GCAP_NOT_FOUND;

std::vector<Row> KitRows() {
  return {
      ROW(gcap_run_options_parse, &o.run_options, &kText, &kText, 1),
      // Its options may be NULL; what is refused is the model. A session without options is made below.
      ROW(gcap_session_create, &kModel, &o.ep, 1, nullptr, kOut).With({"options"}, GCAP_INVALID_ARGUMENT),
      ROW(gcap_session_destroy, nullptr).Fine({"session"}),
      ROW(gcap_session_run, o.session, nullptr, &o.input, &o.output).Fine({"options"}),
      ROW(gcap_session_warm_up, o.session, &o.warm_up, 1, nullptr, nullptr).Fine({"on_run", "user"}),
      ROW(gcap_session_plan, o.session, &o.warm_up, 1, &o.plan),
      ROW(gcap_session_release_captured_graph, o.session, 0),
      ROW(gcap_io_binding_create, o.session, kOut),
      ROW(gcap_io_binding_destroy, nullptr).Fine({"binding"}),
      ROW(gcap_io_binding_bind_input, o.binding, "x", &o.input, o.device),
      ROW(gcap_io_binding_bind_output, o.binding, "y", &o.output, o.device),
      ROW(gcap_io_binding_clear, o.binding),
      ROW(gcap_io_binding_synchronize, o.binding),
      ROW(gcap_session_run_bound, o.session, nullptr, o.binding).Fine({"options"}),
      ROW(gcap_session_warm_up_bound, o.session, nullptr, o.binding).Fine({"options"}),
      ROW(gcap_ep_create, &kEpOps, kOut),
      ROW(gcap_ep_destroy, nullptr).Fine({"ep"}),
      ROW(gcap_ep_create_kernel, o.ep, &kModel, &kUnary, kOut),
      ROW(gcap_ep_claim, o.ep),
      ROW(gcap_ep_trim, o.ep),
      ROW(gcap_ep_infer_shapes, o.ep, &kModel, &kUnary, &o.input, &o.output),
      ROW(gcap_cpu_ep_create, kOut),
      ROW(gcap_check_capturable, &o.check, &o.report),
      ROW(gcap_infer_shapes, &kRelu, &o.input, &o.output),
      ROW(gcap_infer_axis, &kRelu, 2, 0, kOut),
      ROW(gcap_infer_reduced_axes, &kRelu, &o.input, kOut),
      ROW(gcap_infer_slice, &kRelu, &o.input, kOut),
      ROW(gcap_infer_window, &kRelu, &o.input, kOut),
  };
}

std::vector<Row> RuntimeRows() {
  return {
      ROW(gcap_struct_find_field, "gcap_run_t", "id", kOut, kOut).Fine({"field_name", "out_offset", "out_bytes"}),
      ROW(gcap_buckets_choose, &kSize, 1, nullptr, 1, kOut, &o.choice).Fine({"options"}),
      ROW(gcap_struct_init, "gcap_options_t", &o.options, sizeof(o.options)),
      ROW(gcap_options_parse, &o.options, &kText, &kText, 1),
      ROW(gcap_options_parse_for_ep, &o.options, "ep", &kText, &kText, 1),
      ROW(gcap_options_get, &o.options, "device_id", o.text, sizeof(o.text)).Fine({"key"}),
      ROW(gcap_runtime_create, nullptr, &o.made_runtime).Fine({"options"}),
      ROW(gcap_runtime_create_from, &kRuntimeOps, &o.made_runtime),
      ROW(gcap_runtime_destroy, nullptr).Fine({"runtime"}),
      ROW(gcap_runtime_read_resources, o.runtime, &o.resources),
      ROW(gcap_runtime_get_resources, o.runtime, &o.resources),
      ROW(gcap_runtime_graphs, o.runtime, kOut),
      ROW(gcap_runtime_begin_run, o.runtime, &o.moving, &o.kind, kOut),
      ROW(gcap_runtime_end_run, o.OpenRuntime(), &o.run, nullptr).Fine({"run", "run_status"}),
      ROW(gcap_runtime_replay, o.runtime, &o.run, kOut).With({"out_replayed"}, kNoGraph),
      ROW(gcap_runtime_run, o.runtime, &o.moving),
      ROW(gcap_runtime_warm_up, o.runtime, &o.moving, 1, nullptr, nullptr).Fine({"on_run", "user"}),
      ROW(gcap_runtime_plan, o.runtime, &o.moving, 1, &o.plan),
      ROW(gcap_runtime_explain, o.runtime, 0, GCAP_GRAPH_WHY_CAPTURE_FAILED),
      ROW(gcap_runtime_release, o.runtime, 0),
      ROW(gcap_runtime_synchronize, o.runtime),
      ROW(gcap_runtime_copy_tensors, o.runtime, &o.copy, 1),
      ROW(gcap_runtime_create_stream, o.runtime, kOut),
      ROW(gcap_runtime_get_allocator, o.runtime, GCAP_MEMORY_PINNED, kOut),
      ROW(gcap_runtime_fork, o.runtime, 1, kOut),
      ROW(gcap_runtime_join, o.runtime),
  };
}

std::vector<Row> MemoryAndStreamRows() {
  return {
      ROW(gcap_device_allocator_create, 0, &o.made),
      ROW(gcap_pinned_allocator_create, &o.made),
      ROW(gcap_pool_allocator_create, &o.pool, &o.made),
      ROW(gcap_external_allocator_create, &o.external, &o.made),
      ROW(gcap_allocator_create, &kAllocatorOps, &o.made),
      ROW(gcap_allocator_alloc, o.allocator, 1, kOut),
      ROW(gcap_allocator_alloc_on_stream, o.allocator, 1, o.stream, kOut),
      ROW(gcap_allocator_reserve, o.allocator, 1, kOut),
      ROW(gcap_allocator_free, o.allocator, &o).Fine({"ptr"}),
      ROW(gcap_allocator_trim, o.allocator),
      ROW(gcap_stream_create, 0, kOut),
      ROW(gcap_stream_wrap, o.handle, GCAP_STREAM_USER, 0, 0, kOut),
      ROW(gcap_stream_destroy, nullptr).Fine({"stream"}),
      ROW(gcap_stream_synchronize, o.stream),
      ROW(gcap_stream_end_run, o.stream, false),
      ROW(gcap_notification_create, o.stream, kOut),
      ROW(gcap_notification_record, o.s.notification),
      ROW(gcap_notification_wait, o.s.notification, o.stream),
      ROW(gcap_notification_wait_on_host, o.s.notification),
      ROW(gcap_stream_attachment, o.stream, &kKey, kOut),
      ROW(gcap_stream_defer, o.stream, Nothing, nullptr).Fine({"user"}),
  };
}

std::vector<Row> CaptureAndGraphRows() {
  return {
      ROW(gcap_capture_begin, o.handle, nullptr, kOut).Fine({"options"}),
      ROW(gcap_capture_end, o.Scope(), kOut, kOut).With({"capture"}, kNoScope),
      ROW(gcap_capture_fork, o.Scope(), &o.handle, 1).With({"capture"}, kNoScope),
      ROW(gcap_capture_join, o.Scope(), &o.handle, 1).With({"capture"}, kNoScope),
      ROW(gcap_capture_on_close, o.Scope(), Close, nullptr).With({"capture"}, kNoScope).Fine({"user"}),
      ROW(gcap_capture_retain, o.Scope(), Nothing, nullptr, nullptr)
          .With({"capture"}, kNoScope)
          .Fine({"bytes", "user"}),
      ROW(gcap_capture_write_events, o.Scope(), "/dev/null").With({"capture"}, kNoScope),
      ROW(gcap_graph_manager_create, nullptr, &o.made_manager).Fine({"options"}),
      ROW(gcap_graph_manager_destroy, nullptr).Fine({"manager"}),
      ROW(gcap_graph_manager_begin_run, o.s.manager, &o.plain_moving, &o.kind, kOut),
      ROW(gcap_graph_manager_end_run, o.OpenManager(), &o.plain, nullptr).Fine({"run", "run_status"}),
      ROW(gcap_graph_manager_run, o.s.manager, &o.plain),
      ROW(gcap_graph_manager_warm_up, o.s.manager, &o.plain, 1, nullptr, nullptr).Fine({"on_run", "user"}),
      ROW(gcap_graph_manager_check_moves, o.s.manager, 0),
      ROW(gcap_graph_manager_bind, o.s.manager, 0, 0, o.x.get()).With({"address"}, kNoGraph),
      ROW(gcap_graph_manager_plan, o.s.manager, &o.plain, 1, &o.plan),
      ROW(gcap_graph_guard_state, (o.OpenManager(), &o.guard), "here", 1).Fine({"file"}),
      ROW(gcap_graph_hole_issue, &o.resources, &o.hole),
      ROW(gcap_graph_tap_issue, o.s.Handle(), "label", &o, 4),
      ROW(gcap_graph_manager_find, o.s.manager, &o.key, &o.found),
      ROW(gcap_graph_manager_recapture, o.s.manager, 0),
      ROW(gcap_graph_manager_explain, o.s.manager, 0, GCAP_GRAPH_WHY_CAPTURE_FAILED),
      ROW(gcap_graph_manager_replay, o.s.manager, &o.plain, kOut).With({"out_replayed"}, kNoGraph),
      ROW(gcap_graph_manager_dump, o.s.manager, 0, "path", 0),
      ROW(gcap_graph_manager_release, o.s.manager, 0),
      ROW(gcap_graph_manager_release_all, o.s.manager),
      ROW(gcap_graph_manager_audit, o.s.manager, 0, nullptr, nullptr, nullptr)
          .With({"on_pointer", "user", "out_findings"}, kNoGraph),
      ROW(gcap_graph_diff, o.graph, o.graph, nullptr, nullptr, nullptr).Fine({"on_difference", "user", "out_count"}),
      ROW(gcap_graph_notes_create, o.graph, nullptr, nullptr, &o.made_notes).Fine({"find_block", "user"}),
      ROW(gcap_graph_audit, o.notes, nullptr, nullptr, nullptr).Fine({"on_pointer", "user", "out_findings"}),
  };
}

std::vector<Row> AllRows() {
  std::vector<Row> all;
  for (auto part : {KitRows, RuntimeRows, MemoryAndStreamRows, CaptureAndGraphRows}) {
    for (Row& row : part()) all.push_back(std::move(row));
  }
  return all;
}

// --- The headers ----------------------------------------------------------------------------------------------------

using Names = std::vector<std::string>;

// The names of the parameters of a declaration, which commas outside of brackets part.
Names ParameterNames(const std::string& list) {
  static const std::regex function(R"(\(\*(\w+)\))"), last(R"((\w+)\s*$)");
  Names names;
  std::string parameter;
  int depth = 0;
  for (const char c : list + ",") {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c != ',' || depth != 0) {
      parameter += c;
      continue;
    }
    std::smatch match;
    if (std::regex_search(parameter, match, function) || std::regex_search(parameter, match, last)) {
      names.push_back(match[1]);
    }
    parameter.clear();
  }
  return names;
}

TEST(NullArguments, AParameterIsFoundHoweverItIsSpelled) {
  const auto declared = DeclarationsIn(
      "GCAP_API gcap_status_t gcap_a_do(gcap_a_t* a, int n,\n  const char* const* keys) GCAP_NODISCARD;\n"
      "static inline gcap_status_t gcap_b_end(gcap_b_t *b, gcap_status_t run_status) {\n"
      "GCAP_API gcap_status_t gcap_c(void (*close)(void* user, bool ok), gcap_c_work_t work);\n"
      "GCAP_API void gcap_d(int* no_status);\n");
  ASSERT_EQ(declared.size(), 3u);
  EXPECT_EQ(ParameterNames(declared.at("gcap_a_do")), Names({"a", "n", "keys"}));
  EXPECT_EQ(ParameterNames(declared.at("gcap_b_end")), Names({"b", "run_status"}));
  EXPECT_EQ(ParameterNames(declared.at("gcap_c")), Names({"close", "work"}));
}

TEST(NullArguments, AreRefusedByNameOrAccepted) {
  auto declared = gcap::testing::DeclarationsInHeaders("scratch.h");
  for (Row& row : AllRows()) {
    SCOPED_TRACE(row.function);
    ASSERT_EQ(declared.count(row.function), 1u) << "no header declares it, or it has two rows";
    const Names parameters = ParameterNames(declared.at(row.function));
    declared.erase(row.function);
    ASSERT_EQ(parameters.size(), row.is_pointer.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!row.is_pointer[i]) continue;
      SCOPED_TRACE(parameters[i]);
      const bool is_refused = row.codes.count(parameters[i]) == 0;
      const gcap_code_t code = is_refused ? GCAP_INVALID_ARGUMENT : row.codes[parameters[i]];
      row.codes.erase(parameters[i]);
      Objects objects;
      const Outcome outcome(row.call(objects, i));
      EXPECT_STREQ(gcap_code_name(outcome.code), gcap_code_name(code)) << outcome.message;
      EXPECT_TRUE(!is_refused || outcome.Names("NULL")) << outcome.message;
      EXPECT_TRUE((!is_refused && code != kNoScope) || outcome.Names(parameters[i])) << outcome.message;
    }
    EXPECT_TRUE(row.codes.empty()) << row.codes.begin()->first << " is no pointer";
  }
  EXPECT_TRUE(declared.empty()) << declared.begin()->first << " has no row";
}

// A session without options is made.
TEST(NullArguments, OfASessionsOptionsAreTheDefaults) { GCAP_EXPECT_OK(ChainRig().Create(GraphOptions())); }

}  // namespace
