// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions with holes, on the simulator: each CUDA call of an eager run, of a captured one and of a replay fails once;
// and models that are drawn, with nodes on the host and nodes that are not capturable, under drawn schedules. What each
// run shall make, a few lines of this test compute. GCAP_SIM_SEED is the first seed of each case.

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gcap/kit/session.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/session/holes_rig.h"
#include "test/support/environment.h"
#include "test/support/faults.h"
#include "test/support/session_info.h"

namespace gcap {
namespace testing {
namespace {

// --- Faults ---------------------------------------------------------------------------------------------------------

// Walks over the calls of one run, made after `runs_before` others.
uint64_t WalkRun(int runs_before, bool synchronize, gcap_bindings_t bindings) {
  DeviceFloats x(Floats(6)), y(Floats(6));
  gcap_run_options_t options = RunOptions(0, synchronize);
  options.bindings = bindings;
  const Walked walked = WalkFaults([&](Fault& fault) {
    HolesRig rig;
    GCAP_EXPECT_OK(rig.Create());
    for (int run = 0; run < runs_before; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(10 * run));
    if (bindings != GCAP_BINDINGS_FIXED) {
      GCAP_EXPECT_OK(gcap_session_release_captured_graph(rig.session, 0));
      for (int run = 0; run < runs_before; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run), options);
    }
    x.Set(CountedFrom(5));
    y.Set(Floats(6, 77.0f));
    const int computes = rig.host.computes;
    const Outcome outcome = fault.During([&] { return rig.Run(x.get(), y.get(), options); });
    EXPECT_FALSE(gcap_thread_is_capturing());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // a run whose wait failed may still go on
    EXPECT_LE(rig.host.computes, computes + 1) << "at most once, however it was done";
    if (outcome.ok()) {
      EXPECT_EQ(y.Get(), Rotated(Rotated(Negated(Rotated(CountedFrom(5))))));
      EXPECT_EQ(rig.host.computes, computes + 1);
    }
    GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(rig.device->runtime())));
    for (int run = 0; run < 4; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(100 + run), options);
    EXPECT_EQ(rig.device->Info(0).holes, 2u);
  });
  return walked.calls;
}

TEST(SessionHolesFault, EagerRun) {
  for (const bool synchronize : {true, false}) EXPECT_GE(WalkRun(0, synchronize, GCAP_BINDINGS_FIXED), 15u);
}

TEST(SessionHolesFault, CapturedRun) {
  for (const bool synchronize : {true, false}) EXPECT_GE(WalkRun(1, synchronize, GCAP_BINDINGS_FIXED), 25u);
}

TEST(SessionHolesFault, Replay) {
  for (const bool synchronize : {true, false}) EXPECT_GE(WalkRun(2, synchronize, GCAP_BINDINGS_FIXED), 8u);
}

TEST(SessionHolesFault, ReplayOnMovedTensors) {
  for (const gcap_bindings_t bindings : {GCAP_BINDINGS_COPY, GCAP_BINDINGS_RELOCATE}) {
    EXPECT_GE(WalkRun(2, /*synchronize=*/true, bindings), 8u);
  }
}

// --- The heap -------------------------------------------------------------------------------------------------------

// What a run takes of the heap before it calls the CUDA runtime, which stops when its own memory ends: what the holes
// find, the EPs' resources, the tensors.
TEST(SessionHolesHeap, ARunFailsWholeAndTheNextOneIsRight) {
  HolesRig rig;
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int runs = 0; runs < 2; ++runs) {  // before the eager one and the captured one
    for (int skip = 0; skip < 3; ++skip) {
      const long blocks = LiveBlocks();
      int hits = 0;
      {
        const HeapFailure heap(1, skip);
        GCAP_EXPECT_FAILS(rig.Run(x.get(), y.get()), GCAP_RESOURCE_EXHAUSTED, "no host memory");
        hits = heap.hits();
      }
      EXPECT_EQ(hits, 1);
      EXPECT_EQ(LiveBlocks(), blocks);
    }
    rig.ExpectRightRun(&x, &y, static_cast<float>(runs));
  }
  EXPECT_EQ(rig.device->Info(0).captures, 1u);
}

// The plan of new shapes, and its holes.
TEST(SessionHolesHeap, NewShapesArePlannedWholeOrNotAtAll) {
  ModelBuilder m;
  const int64_t rows = m.Symbol("rows");
  const int x = m.Value("x", {rows}), a = m.Value("a", {rows}), b = m.Value("b", {rows}), y = m.Value("y", {rows});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "first", {x}, {a});
  m.Node("Negate", "negate", {a}, {b});
  m.Node("Rotate", "second", {b}, {y});
  HolesRig rig(std::move(m));
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats in(CountedFrom(1)), out(Floats(6));
  int skip = 0;
  for (; rig.device->live_kernels() == 0; ++skip) {  // then there is a plan, and the run has failed behind it
    SCOPED_TRACE(skip);
    const long blocks = LiveBlocks();
    const HeapFailure heap(1, skip);
    GCAP_EXPECT_FAILS(rig.Run(in.get(), out.get()), GCAP_RESOURCE_EXHAUSTED, "no host memory");
    EXPECT_EQ(heap.hits(), 1);
    EXPECT_TRUE(LiveBlocks() == blocks || rig.device->live_kernels() != 0);
  }
  EXPECT_GE(skip, 10);
  for (int run = 0; run < 3; ++run) GCAP_ASSERT_OK(rig.Run(in.get(), out.get()));
  EXPECT_EQ(out.Get(), Rotated(Negated(Rotated(CountedFrom(1)))));
  EXPECT_EQ(rig.device->Info(0).holes, 1u);
}

TEST(SessionHolesSim, NothingIsLeftOfASession) {
  DeviceFloats x(Floats(6)), y(Floats(6));
  const size_t before = gcap_sim_live(nullptr);
  {
    HolesRig rig;
    GCAP_ASSERT_OK(rig.Create());
    gcap_run_options_t options = RunOptions(0, true);
    for (options.graph_id = 0; options.graph_id < 3; ++options.graph_id) {
      options.bindings = static_cast<gcap_bindings_t>(options.graph_id);
      for (int run = 0; run < 4; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run), options);
    }
    GCAP_EXPECT_OK(gcap_session_release_captured_graph(rig.session, 0));
  }
  EXPECT_EQ(gcap_sim_live(nullptr), before);
}

// --- Drawn models ---------------------------------------------------------------------------------------------------

using Draws = std::mt19937_64;
size_t Below(Draws& draws, size_t bound) { return static_cast<size_t>(draws() % bound); }

struct DrawnNode {
  std::string op;
  int inputs[2];
};

class DrawnModel {
 public:
  explicit DrawnModel(Draws& draws) {
    x_ = builder.Value("x", {kCount});
    builder.inputs = {x_};
    w_ = builder.Constant("w", {kCount}, {-1, -2, -3, -4, -5, -6});
    const size_t count = 2 + Below(draws, 9);
    for (size_t i = 0; i < count; ++i) Add(draws);
    builder.outputs = {last_};
    const int other = 2 + static_cast<int>(Below(draws, count));
    if (other != last_) builder.outputs.push_back(other);
  }

  // What the outputs are.
  std::vector<Floats> Of(const Floats& x) const {
    std::vector<Floats> values = {x, {-1, -2, -3, -4, -5, -6}};
    for (const DrawnNode& node : nodes_) {
      const Floats &a = values[node.inputs[0]], &b = values[node.inputs[1]];
      if (node.op == "Negate") {
        values.push_back(Negated(a));
      } else if (node.op == "Rotate") {
        values.push_back(Rotated(a));
      } else if (node.op == "Join") {
        values.push_back({a[0], a[1], a[2], b[3], b[4], b[5]});
      } else {
        values.push_back(a);
      }
    }
    std::vector<Floats> outputs;
    for (const int output : builder.outputs) outputs.push_back(values[output]);
    return outputs;
  }

  ModelBuilder builder;

 private:
  void Add(Draws& draws) {
    static const char* const kOps[] = {"Negate", "Rotate", "Rotate", "Join", "Alloc", "Bounce"};
    controls_.emplace_back();
    names_.push_back("node" + std::to_string(nodes_.size()));
    DrawnNode node = {kOps[Below(draws, 6)], {}};
    for (int& input : node.inputs) input = static_cast<int>(Below(draws, builder.values.size()));
    if (Below(draws, 2) == 0) node.inputs[0] = static_cast<int>(builder.values.size()) - 1;
    controls_.back().capturable = node.op != "Alloc" && Below(draws, 4) != 0;
    controls_.back().misbehave = When::kAlways;  // of Alloc
    last_ = builder.Value(names_.back().c_str(), {kCount});
    std::vector<int> inputs = {node.inputs[0]};
    if (node.op == "Join") inputs.push_back(node.inputs[1]);
    builder.Node(node.op.c_str(), names_.back().c_str(), inputs, {last_}, &controls_.back());
    nodes_.push_back(node);
    builder.nodes.back().op_type = OpName(node.op);
  }
  static const char* OpName(const std::string& op) {
    for (const char* name : {"Negate", "Rotate", "Join", "Alloc"}) {
      if (op == name) return name;
    }
    return "Bounce";
  }

  std::deque<NodeControl> controls_;
  std::deque<std::string> names_;
  std::vector<DrawnNode> nodes_;
  int x_ = 0, w_ = 0, last_ = 0;
};

// A tensor in the memory that the session names, at one of two addresses.
class Bound {
 public:
  explicit Bound(gcap_memory_t memory) : on_host_(memory.kind == GCAP_MEMORY_HOST) {}
  bool on_host() const { return on_host_; }
  gcap_tensor_t At(size_t place) { return Tensor(on_host_ ? host_[place].data() : device_[place]->get(), {kCount}); }
  void Set(size_t place, const Floats& content) {
    if (on_host_) std::copy(content.begin(), content.end(), host_[place].begin());
    if (!on_host_) device_[place]->Set(content);
  }
  Floats Get(size_t place) const { return on_host_ ? host_[place] : device_[place]->Get(); }

 private:
  const bool on_host_;
  Floats host_[2] = {Floats(kCount), Floats(kCount)};
  std::unique_ptr<DeviceFloats> device_[2] = {std::make_unique<DeviceFloats>(Floats(kCount)),
                                              std::make_unique<DeviceFloats>(Floats(kCount))};
};

class SessionHolesDrawn : public ::testing::TestWithParam<int> {
 protected:
  void RunModel(uint64_t seed) {
    SCOPED_TRACE("GCAP_SIM_SEED=" + std::to_string(seed));
    gcap_sim_set_seed(seed);
    Draws draws(seed);
    DrawnModel drawn(draws);
    HolesRig rig(drawn.builder);
    const Outcome created(rig.Create());
    if (!created.ok()) {
      EXPECT_TRUE(created.Names("each node would be in a hole") || created.Names("no node of the model is on it"))
          << created.message;
      ++refused_;
      return;
    }
    holes_ += static_cast<int>(SessionInfo(rig.session).holes);
    Bound x(gcap_session_input_memory(rig.session, 0));
    std::vector<std::unique_ptr<Bound>> outputs;
    bool may_move = !x.on_host();
    for (size_t i = 0; i < drawn.builder.outputs.size(); ++i) {
      outputs.push_back(std::make_unique<Bound>(gcap_session_output_memory(rig.session, static_cast<int>(i))));
      may_move = may_move && !outputs.back()->on_host();
    }
    for (int run = 0; run < 12; ++run) RunOnce(rig, drawn, draws, run, may_move, &x, outputs);
    for (int id = 0; id < 3; ++id) replays_ += static_cast<int>(rig.device->Info(id).replays);
  }

  // Ids 0 is on fixed tensors; 1 and 2 are copied and relocated.
  void RunOnce(const HolesRig& rig, const DrawnModel& drawn, Draws& draws, int run, bool may_move, Bound* x,
               const std::vector<std::unique_ptr<Bound>>& outputs) {
    gcap_run_options_t options = RunOptions(may_move ? static_cast<int>(Below(draws, 3)) : 0, Below(draws, 2) == 0);
    options.bindings = static_cast<gcap_bindings_t>(options.graph_id);
    const size_t place = options.graph_id == 0 ? 0 : Below(draws, 2);
    const Floats content = CountedFrom(static_cast<float>(10 * run));
    x->Set(place, content);
    std::vector<gcap_tensor_t> tensors;
    for (const auto& output : outputs) {
      output->Set(place, Floats(kCount, 77.0f));
      tensors.push_back(output->At(place));
    }
    const gcap_tensor_t input = x->At(place);
    GCAP_ASSERT_OK(gcap_session_run(rig.session, &options, &input, tensors.data()));
    if (!options.synchronize) GCAP_ASSERT_OK(gcap_runtime_synchronize(rig.device->runtime()));
    const std::vector<Floats> expected = drawn.Of(content);
    for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(outputs[i]->Get(place), expected[i]) << "output " << i;
  }

  void TearDown() override { gcap_sim_set_seed(0); }

  int refused_ = 0, holes_ = 0, replays_ = 0;
};

TEST_P(SessionHolesDrawn, ReplaysMakeWhatTheNodesSay) {
  for (int i = 0; i < 20; ++i) RunModel(NumberOr("GCAP_SIM_SEED", static_cast<uint64_t>(GetParam() * 20 + i)));
  EXPECT_GT(holes_, 20);
  EXPECT_GT(replays_, 50);
  EXPECT_LT(refused_, 15);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SessionHolesDrawn, ::testing::Range(0, 10));

}  // namespace
}  // namespace testing
}  // namespace gcap
