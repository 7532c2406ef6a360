// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Values that change from replay to replay: what is set, what is refused by name and then eager, and bad input.

#include <cstring>

#include "gcap/graph_plan.h"
#include "test/graph/values_rig.h"

namespace gcap {
namespace testing {
namespace {

// --- What is set ----------------------------------------------------------------------------------------------------

TEST_F(GraphValues, AReplayHasTheValuesOfItsRun) {
  for (uint64_t addend = 0; addend <= 255; addend += 15) {
    const Number<uint64_t> number = {addend, 0, 255};
    const std::vector<gcap_graph_value_t> values = {number.As("addend")};
    const Outcome outcome = RunWith(With(values), Add());
    ASSERT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(y_->value(), 3 + static_cast<float>(addend));
    EXPECT_EQ(result_.outcome, addend == 0 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
    EXPECT_EQ(calls_, 4) << "three rehearsals and the capture";
  }
  EXPECT_TRUE(WhyNotMovable().ok());
}

TEST_F(GraphValues, AReplayWithoutBuffersHasTheValuesOfTheLastOne) {
  const Number<uint64_t> first = {5, 0, 255}, second = {9, 0, 255};
  const std::vector<gcap_graph_value_t> one = {first.As("addend")}, other = {second.As("addend")};
  ASSERT_TRUE(RunWith(With(one), Add()).ok());
  GCAP_EXPECT_OK(ReplayWith(With(other)));
  EXPECT_EQ(y_->value(), 12);
  x_->Fill(1);
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(y_->value(), 10);
  GCAP_EXPECT_OK(ReplayWith(With(one)));
  EXPECT_EQ(y_->value(), 6);
}

TEST_F(GraphValues, ValuesAndBuffersAreOtherOnesTogether) {
  const WorkWith work = [](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, r->addresses[0], r->addresses[1], Read<uint64_t>(r, 0)));
    return AddTo(r->cuda_stream, r->addresses[1], r->addresses[1], Read<uint64_t>(r, 0), Read<uint32_t>(r, 1));
  };
  std::vector<std::unique_ptr<Floats>> places;
  for (int i = 0; i < 4; ++i) places.push_back(std::make_unique<Floats>(0.0f));
  for (uint32_t step = 0; step < 20; ++step) {
    const Number<uint64_t> addend = {step * 7 % 100, 0, 100};
    const Number<uint32_t> count = {1 + step * 11 % kFloats, 1, kFloats};
    const Floats &from = *places[step % 4], &to = *places[(step + 1 + step / 4 % 3) % 4];
    from.Fill(static_cast<float>(step));
    const std::vector<gcap_graph_value_t> values = {addend.As("addend"), count.As("count")};
    const std::vector<gcap_graph_buffer_t> items = Items(from, to);
    const Outcome outcome = RunWith(With(values, items), work);
    ASSERT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(result_.outcome, step == 0 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED) << step;
    const std::vector<float> after = to.Read();
    const float once = static_cast<float>(step) + static_cast<float>(addend.now);
    for (uint32_t i = 0; i < kFloats; ++i) {
      ASSERT_EQ(after[i], i < count.now ? once + static_cast<float>(addend.now) : once) << step << " " << i;
    }
  }
  EXPECT_EQ(calls_, 4);
}

TEST_F(GraphValues, AValueInAPackedStructIsSet) {
  const WorkWith work = [&](const gcap_run_resources_t* r) {
    const gcap_test_packed_t args = {Read<uint8_t>(r, 0), x_->get(), y_->get(), Read<uint16_t>(r, 1)};
    return LaunchKernel(r->cuda_stream, reinterpret_cast<const void*>(gcap_kernel_add_packed), args);
  };
  for (const uint8_t addend : {1, 200, 0}) {
    const Number<uint8_t> number = {addend, 0, 255};
    const Number<uint16_t> count = {static_cast<uint16_t>(kFloats - addend % 8), 1, kFloats};
    const std::vector<gcap_graph_value_t> values = {number.As("addend"), count.As("count")};
    y_->Fill(-1);
    ASSERT_TRUE(RunWith(With(values), work).ok());
    const std::vector<float> after = y_->Read();
    for (uint32_t i = 0; i < kFloats; ++i) ASSERT_EQ(after[i], i < count.now ? 3.0f + addend : -1.0f) << i;
  }
  EXPECT_EQ(calls_, 4);
}

TEST_F(GraphValues, AFillHasTheValueOfItsRun) {
  const WorkWith work = [&](const gcap_run_resources_t* r) {
    return GCAP_CUDA(cudaMemsetAsync(y_->get(), Read<int>(r, 0), kFloatsBytes, r->cuda_stream));
  };
  for (const int byte : {0, 0x40, 0x41}) {
    const Number<int> number = {byte, 0, 255};
    const std::vector<gcap_graph_value_t> values = {number.As("byte")};
    const Outcome outcome = RunWith(With(values), work);
    ASSERT_TRUE(outcome.ok()) << outcome.message;
    float wanted;
    std::memset(&wanted, byte, sizeof(wanted));
    EXPECT_EQ(y_->value(), wanted);
  }
  EXPECT_EQ(calls_, 4);
}

// --- What is refused, and eager -------------------------------------------------------------------------------------

class GraphValuesFixed : public GraphValues {
 protected:
  // The work's graph is not adjusted, for this reason; its runs are right all the same.
  void ExpectFixed(const std::function<uint64_t(int)>& addend_of, const WorkWith& work,
                   const std::vector<std::string>& reasons) {
    for (const int position : {5, 6, 5, 4000, 0, 4095}) {
      const Number<int> number = {position, 0, 4095};
      const std::vector<gcap_graph_value_t> values = {number.As("position")};
      y_->Fill(-7);
      const Outcome outcome = RunWith(With(values), work);
      ASSERT_TRUE(outcome.ok()) << outcome.message;
      EXPECT_EQ(y_->value(), 3 + static_cast<float>(addend_of(position) & 0xff)) << position;
      if (position == 5) continue;
      EXPECT_EQ(result_.outcome, GCAP_RUN_EAGER);
      EXPECT_EQ(result_.why_eager, GCAP_EAGER_NOT_MOVABLE);
    }
    EXPECT_EQ(Info(kId).captures, 1u);
    EXPECT_EQ(Info(kId).replays, 2u);
    const Outcome why = WhyNotMovable();
    for (const std::string& reason : reasons) EXPECT_TRUE(why.Names(reason)) << reason << ": " << why.message;
    const Number<int> number = {6, 0, 4095};
    const std::vector<gcap_graph_value_t> values = {number.As("position")};
    const Outcome replayed(ReplayWith(With(values)));
    EXPECT_STREQ(gcap_code_name(replayed.code), "FAILED_PRECONDITION");
    EXPECT_TRUE(replayed.Names("graph id 3 keeps its values")) << replayed.message;
  }
  WorkWith AddOf(const std::function<uint64_t(int)>& f) const {
    return [this, f](const gcap_run_resources_t* r) {
      return AddTo(r->cuda_stream, x_->get(), y_->get(), f(Read<int>(r, 0)));
    };
  }
};

TEST_F(GraphValuesFixed, AnArgumentThatIsComputedFromAValue) {
  const auto next = [](int p) { return static_cast<uint64_t>(p + 1); };
  ExpectFixed(next, AddOf(next), {"argument 2 is 0x6, and 0x1000 with other values", "'position' is 5, and 4095"});
}

TEST_F(GraphValuesFixed, ABranchThatFollowsAValue) {
  const auto work = [this](const gcap_run_resources_t* r) {
    const int p = Read<int>(r, 0);
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_->get(), y_->get(), static_cast<uint64_t>(p)));
    return p >= 4000 ? AddTo(r->cuda_stream, y_->get(), y_->get(), 0) : nullptr;
  };
  ExpectFixed([](int p) { return static_cast<uint64_t>(p); }, work, {"the graph has 1 nodes, and 2 with other values"});
}

TEST_F(GraphValuesFixed, AGridThatFollowsAValue) {
  const auto work = [this](const gcap_run_resources_t* r) {
    const void *x = x_->get(), *y = y_->get();
    uint64_t addend = static_cast<uint64_t>(Read<int>(r, 0));
    uint32_t count = kFloats;
    void* args[] = {&x, &y, &addend, &count};
    const dim3 grid(static_cast<unsigned>(Read<int>(r, 0)) / 1024 + 1);
    return GCAP_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(gcap_kernel_add_scalar), grid, dim3(32), args, 0,
                                      r->cuda_stream));
  };
  ExpectFixed([](int p) { return static_cast<uint64_t>(p); }, work, {"grid is 1x1x1, and 4x1x1 with other values"});
}

// The work that reads the caller's own variable is not adjusted: gcap cannot have it read another one.
TEST_F(GraphValues, AValueThatNoArgumentCarriesFixesTheGraph) {
  uint64_t own = 5;
  const WorkWith work = [&](const gcap_run_resources_t* r) { return AddTo(r->cuda_stream, x_->get(), y_->get(), own); };
  for (const uint64_t addend : {5, 9}) {
    own = addend;
    const Number<uint64_t> number = {addend, 0, 255};
    const std::vector<gcap_graph_value_t> values = {number.As("addend")};
    ASSERT_TRUE(RunWith(With(values), work).ok());
    EXPECT_EQ(y_->value(), 3 + static_cast<float>(addend));
  }
  EXPECT_EQ(result_.why_eager, GCAP_EAGER_NOT_MOVABLE);
  EXPECT_TRUE(WhyNotMovable().Names("no argument carries value 0 'addend'"));
}

TEST_F(GraphValues, ACopyOfAValueFromTheHostFixesTheGraph) {
  const WorkWith work = [&](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_->get(), y_->get(), Read<uint64_t>(r, 0)));
    return GCAP_CUDA(cudaMemcpyAsync(x_->get(), r->values[0], 8, cudaMemcpyHostToDevice, r->cuda_stream));
  };
  const Number<uint64_t> number = {5, 0, 255};
  const std::vector<gcap_graph_value_t> values = {number.As("addend")};
  const Outcome outcome = RunWith(With(values), work);
  ASSERT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_FALSE(WhyNotMovable().ok());
}

TEST_F(GraphValues, AHostFunctionFixesTheGraphUnlessItMayStay) {
  uint64_t seen = 0;
  struct Call {
    const gcap_run_resources_t* resources;
    uint64_t* seen;
    const void* const* values;
  } call = {nullptr, &seen, nullptr};
  const WorkWith work = [&](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_->get(), y_->get(), Read<uint64_t>(r, 0)));
    call.values = r->values;
    return GCAP_CUDA(cudaLaunchHostFunc(
        r->cuda_stream,
        [](void* user) {
          const Call* self = static_cast<const Call*>(user);
          std::memcpy(self->seen, self->values[0], sizeof(*self->seen));
        },
        &call));
  };
  const Number<uint64_t> first = {5, 0, 255}, second = {9, 0, 255};
  const std::vector<gcap_graph_value_t> one = {first.As("addend")}, other = {second.As("addend")};
  ASSERT_TRUE(RunWith(With(one), work).ok());
  EXPECT_TRUE(WhyNotMovable().Names("host_functions_may_stay"));
  gcap_graph_buffers_t staying = With(one), moved = With(other);
  staying.host_functions_may_stay = true;
  ASSERT_TRUE(RunWith(staying, work, kId + 1).ok());
  EXPECT_TRUE(WhyNotMovable(kId + 1).ok());
  seen = 0;
  GCAP_EXPECT_OK(ReplayWith(moved, kId + 1));
  EXPECT_EQ(y_->value(), 12);
  EXPECT_EQ(seen, 5u) << "the value of the capture, which lives as long as the graph";
}

TEST_F(GraphValues, AValueOutsideOfTheBoundsOfTheCaptureIsEager) {
  const Number<uint64_t> captured = {5, 0, 99}, wider = {120, 0, 255};
  const std::vector<gcap_graph_value_t> one = {captured.As("addend")}, other = {wider.As("addend")};
  ASSERT_TRUE(RunWith(With(one), Add()).ok());
  const Outcome outcome = RunWith(With(other), Add());
  ASSERT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(y_->value(), 123);
  EXPECT_EQ(result_.why_eager, GCAP_EAGER_NOT_MOVABLE);
  EXPECT_TRUE(WhyEager().Names("value 0 'addend' is 120, and was captured for 0 to 99")) << WhyEager().message;
  GCAP_EXPECT_FAILS(ReplayWith(With(other)), GCAP_FAILED_PRECONDITION,
                    "graph id 3 keeps its values: value 0 'addend' is 120, and was captured for 0 to 99");
  GCAP_EXPECT_OK(ReplayWith(With(one)));
  EXPECT_EQ(y_->value(), 8);
}

// Bytes that were alike in all captures, of a struct of which the two others say nothing more.
TEST_F(GraphValues, AByteThatWasAlikeInAllCapturesMakesARunEager) {
  const auto run = [&](uint64_t now) {
    const uint64_t low = 0x15, high = 0x17;
    const std::vector<gcap_graph_value_t> values = {
        {"addend", &now, sizeof(now), GCAP_GRAPH_VALUE_BYTES, &low, &high, false, false}};
    ASSERT_TRUE(RunWith(With(values), Add()).ok());
    EXPECT_EQ(y_->value(), 3 + static_cast<float>(now & 0xff));
  };
  run(0x16);
  run(0xff);
  EXPECT_EQ(result_.outcome, GCAP_RUN_REPLAYED);
  run(0x1ff);
  EXPECT_EQ(result_.why_eager, GCAP_EAGER_NOT_MOVABLE);
  EXPECT_TRUE(WhyEager().Names("of which a byte is another one than in all captures")) << WhyEager().message;
}

// --- Other functions ------------------------------------------------------------------------------------------------

TEST_F(GraphValues, ABindKeepsTheValuesAndACheckOfMovesToo) {
  const WorkWith work = [](const gcap_run_resources_t* r) {
    return AddTo(r->cuda_stream, r->addresses[0], r->addresses[1], Read<uint64_t>(r, 0));
  };
  const Floats other(20);
  const Number<uint64_t> first = {5, 0, 255}, second = {9, 0, 255};
  const std::vector<gcap_graph_value_t> one = {first.As("addend")}, two = {second.As("addend")};
  const std::vector<gcap_graph_buffer_t> items = Items(*x_, *y_);
  ASSERT_TRUE(RunWith(With(one, items), work).ok());
  GCAP_EXPECT_OK(ReplayWith(With(two, items)));
  GCAP_EXPECT_OK(Bind(0, other.get()));
  GCAP_EXPECT_OK(gcap_graph_manager_check_moves(manager_, kId));
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(y_->value(), 29);
}

TEST_F(GraphValues, ARunByHandIsToldWhereItsValuesAre) {
  const Number<uint64_t> number = {5, 1, 200};
  const std::vector<gcap_graph_value_t> values = {number.As("addend")};
  const std::vector<gcap_graph_buffer_t> items = Items(*x_, *y_);
  const gcap_graph_buffers_t buffers = With(values, items);
  std::vector<uint64_t> seen;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_REHEARSAL;
  while (kind == GCAP_GRAPH_RUN_REHEARSAL && seen.size() < 9) {
    void* addresses[3] = {};
    GCAP_ASSERT_OK(BeginPlainOn(manager_, kId, stream_->get(), &buffers, &kind, addresses));
    uint64_t addend;
    std::memcpy(&addend, addresses[2], sizeof(addend));
    seen.push_back(addend);
    ASSERT_TRUE(End(AddTo(stream_->get(), addresses[0], addresses[1], addend)).ok());
  }
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0], 200u);
  EXPECT_EQ(seen[1], 1u);
  EXPECT_EQ(seen[3], 5u);
  EXPECT_EQ(y_->value(), 8);
}

TEST_F(GraphValues, ARunWithAKeyHasValuesToo) {
  WorkWith work = Add();
  const gcap_graph_key_t key = {"step", 4, "decode"};
  for (const uint64_t addend : {5, 9, 0}) {
    const Number<uint64_t> number = {addend, 0, 255};
    const std::vector<gcap_graph_value_t> values = {number.As("addend")};
    const gcap_graph_buffers_t buffers = With(values);
    gcap_run_result_init(&result_);
    gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE, stream_->get(), /*synchronize=*/true);
    run.key = &key;
    run.work = IssueWith;
    run.user = &work;
    run.buffers = &buffers;
    run.result = &result_;
    GCAP_ASSERT_OK(gcap_graph_manager_run(manager_, &run));
    EXPECT_EQ(y_->value(), 3 + static_cast<float>(addend));
    EXPECT_EQ(result_.outcome, addend == 5 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
  }
}

// What was rehearsed with others says nothing of these: their bits may be those that were rehearsed.
TEST_F(GraphValues, ARunByHandWithOtherValuesIsRehearsedAnew) {
  int rehearsals = 0;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_REHEARSAL;
  for (uint64_t addend = 5; kind == GCAP_GRAPH_RUN_REHEARSAL && rehearsals < 9; addend = 6) {
    const Number<uint64_t> number = {addend, 1, 200};
    const std::vector<gcap_graph_value_t> values = {number.As("addend")};
    const gcap_graph_buffers_t buffers = With(values);
    void* address = nullptr;
    GCAP_ASSERT_OK(BeginPlainOn(manager_, kId, stream_->get(), &buffers, &kind, &address));
    uint64_t read;
    std::memcpy(&read, address, sizeof(read));
    ASSERT_TRUE(End(AddTo(stream_->get(), x_->get(), y_->get(), read)).ok());
    rehearsals += kind == GCAP_GRAPH_RUN_REHEARSAL;
  }
  EXPECT_EQ(rehearsals, 1 + 3);
  EXPECT_EQ(y_->value(), 9);
  EXPECT_TRUE(WhyNotMovable().ok());
}

TEST_F(GraphValues, APlanReadsTheValuesOfTheRun) {
  const Number<uint64_t> number = {5, 0, 255};
  const std::vector<gcap_graph_value_t> values = {number.As("addend")};
  const gcap_graph_buffers_t buffers = With(values);
  uint64_t seen = 0;
  WorkWith work = [&](const gcap_run_resources_t* r) {
    seen = Read<uint64_t>(r, 0);
    return AddTo(r->cuda_stream, x_->get(), y_->get(), seen);
  };
  gcap_run_t run = RunOf(kId, stream_->get());
  run.work = IssueWith;
  run.user = &work;
  run.buffers = &buffers;
  gcap_graph_plan_t plan = {};
  plan.struct_size = sizeof(plan);
  GCAP_EXPECT_OK(gcap_graph_manager_plan(manager_, &run, 1, &plan));
  EXPECT_EQ(seen, 5u);
}

// --- Bad input ------------------------------------------------------------------------------------------------------

TEST_F(GraphValues, BadValuesAreNamed) {
  const uint64_t low = 0, high = 255, now = 5, more = 256;
  const auto refusal = [&](const std::function<void(gcap_graph_value_t*)>& spoil) {
    std::vector<gcap_graph_value_t> values = {
        {"addend", &now, sizeof(now), GCAP_GRAPH_VALUE_UNSIGNED, &low, &high, false, false}};
    spoil(&values[0]);
    const Outcome outcome = RunWith(With(values), Add());
    EXPECT_STREQ(gcap_code_name(outcome.code), "INVALID_ARGUMENT");
    EXPECT_EQ(result_.outcome, GCAP_RUN_NOT_DONE);
    return outcome.message;
  };
  const auto expect = [&](const char* text, const std::function<void(gcap_graph_value_t*)>& spoil) {
    const std::string message = refusal(spoil);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  expect("value 0 'addend' has data at (nil)", [](gcap_graph_value_t* v) { v->data = nullptr; });
  expect("none of them may be NULL", [](gcap_graph_value_t* v) { v->low = nullptr; });
  expect("none of them may be NULL", [](gcap_graph_value_t* v) { v->high = nullptr; });
  expect("value 0 'addend' has 0 bytes, allowed are 1..32", [](gcap_graph_value_t* v) { v->bytes = 0; });
  expect("value 0 'addend' has 33 bytes, allowed are 1..32, and 1..4096 of a value that is in_memory",
         [](gcap_graph_value_t* v) { v->bytes = 33; });
  for (const size_t bytes : {0, 4097}) {
    expect(("value 0 'addend' is in memory and has " + std::to_string(bytes) +
            " bytes, allowed are 1..4096; name a "
            "larger one as a buffer")
               .c_str(),
           [&](gcap_graph_value_t* v) {
             v->bytes = bytes;
             v->in_memory = true;
           });
  }
  expect("is an unsigned integer of 3 bytes", [](gcap_graph_value_t* v) { v->bytes = 3; });
  expect("has the type 9, allowed are 0..3",
         [](gcap_graph_value_t* v) { v->type = static_cast<gcap_graph_value_type_t>(9); });
  expect("value 0 'addend' is 256, allowed are 0 to 255", [&](gcap_graph_value_t* v) { v->data = &more; });
  expect("value 0 '' is 256", [&](gcap_graph_value_t* v) {
    v->data = &more;
    v->name = nullptr;
  });
  expect("is between 255 and 0", [](gcap_graph_value_t* v) { std::swap(v->low, v->high); });
  EXPECT_EQ(calls_, 0);
  gcap_graph_buffers_t none = With({});
  none.num_values = 1;
  EXPECT_TRUE(RunWith(none, Add()).Names("values"));
}

// The value of each run is read where it is in that run: what is there afterwards, or is gone, is no matter.
TEST_F(GraphValues, AValueWhoseMemoryMovedOrIsGoneIsThatOfItsRun) {
  const uint64_t low = 0, high = 255;
  std::unique_ptr<uint64_t> last;
  for (uint64_t addend = 1; addend < 6; ++addend) {
    auto now = std::make_unique<uint64_t>(addend);
    ASSERT_NE(now.get(), last.get());
    if (last != nullptr) *last = 200;
    last = std::move(now);
    const std::vector<gcap_graph_value_t> values = {
        {"addend", last.get(), sizeof(addend), GCAP_GRAPH_VALUE_UNSIGNED, &low, &high, false, false}};
    const Outcome outcome = RunWith(With(values), Add());
    ASSERT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(result_.outcome, addend == 1 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
    EXPECT_EQ(y_->value(), 3 + static_cast<float>(addend));
  }
  last.reset();
  GCAP_EXPECT_OK(Replay(manager_, kId, true));  // with the last value
  EXPECT_EQ(y_->value(), 8);
}

// As large as a value may be, and larger than the argument that reads it: no argument carries all of it.
TEST_F(GraphValues, AValueLargerThanTheArgumentIsNamed) {
  struct Wide {
    uint64_t words[4];
  };
  const Wide low = {{0, 0, 0, 0}}, high = {{255, 255, 255, 255}};
  for (uint64_t addend = 1; addend < 4; ++addend) {
    const Wide now = {{addend, 7 * addend, addend, 9}};
    const std::vector<gcap_graph_value_t> values = {
        {"wide", &now, sizeof(now), GCAP_GRAPH_VALUE_BYTES, &low, &high, false, false}};
    const WorkWith work = [this](const gcap_run_resources_t* r) {
      const Wide wide = Read<Wide>(r, 0);
      return AddTo(r->cuda_stream, x_->get(), y_->get(), wide.words[0] + wide.words[1]);
    };
    const Outcome outcome = RunWith(With(values), work);
    ASSERT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(y_->value(), 3 + static_cast<float>(8 * addend));
    EXPECT_EQ(result_.outcome, addend == 1 ? GCAP_RUN_CAPTURED : GCAP_RUN_EAGER);
  }
  EXPECT_TRUE(WhyNotMovable().Names("argument 2") && WhyNotMovable().Names("'wide'")) << WhyNotMovable().message;
}

TEST_F(GraphValues, OtherValuesThanTheGraphsAreNamed) {
  const Number<uint64_t> number = {5, 0, 255};
  const Number<uint32_t> shorter = {5, 0, 255};
  const std::vector<gcap_graph_value_t> values = {number.As("addend")}, none,
                                        two = {number.As("addend"), number.As("more")},
                                        short_one = {shorter.As("addend")};
  ASSERT_TRUE(RunWith(With(values), Add()).ok());
  GCAP_EXPECT_FAILS(ReplayWith(With(none)), GCAP_INVALID_ARGUMENT,
                    "graph id 3: the run has 0 values, and the graph has 1");
  GCAP_EXPECT_FAILS(ReplayWith(With(two)), GCAP_INVALID_ARGUMENT, "the run has 2 values, and the graph has 1");
  GCAP_EXPECT_FAILS(ReplayWith(With(short_one)), GCAP_INVALID_ARGUMENT,
                    "value 0 'addend' has 4 bytes of type 2, and had 8 of type 2 when captured");
  std::vector<gcap_graph_value_t> missing = values;
  missing[0].data = nullptr;
  GCAP_EXPECT_FAILS(ReplayWith(With(missing)), GCAP_INVALID_ARGUMENT, "graph id 3: value 0 'addend' has no data");
  GCAP_EXPECT_OK(ReplayWith(With(values)));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
