// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Published defects of graphs that replay another step's decisions, or that are captured again for want of a place, as
// miniatures: what each program's step depends on, in keys and guards. The oracle is the step itself, which fills
// memory with what it would compute; each run is compared with it. Each test names the thread that reports the defect,
// or repairs it.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gcap/graph_buffers.h"
#include "gtest/gtest.h"
#include "test/graph/guarded_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class KeyedPublished : public GuardedTest {
 protected:
  void SetUp() override {
    GuardedTest::SetUp();
    if (!IsSkipped()) CreateKeyed();
  }
  // A run by key that states guards and fills with what its step computes.
  template <class Key>
  gcap_run_outcome_t Step(const Key& bytes, const std::vector<gcap_graph_guard_t>& guards, int value) {
    const gcap_graph_key_t key = KeyOf(bytes);
    *seen_ = 0xff;
    const Outcome run = RunWork(RunBy(&key), [&](cudaStream_t stream) -> gcap_status_t {
      for (const gcap_graph_guard_t& guard : guards) GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
      return Fill(stream, value);
    });
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(Seen(), value);
    return result_.outcome;
  }
  uint64_t Captures() const { return Info(GCAP_GRAPH_ID_NONE).captures; }
};

// Decode graphs are kept by the number of rows alone, while the number of splits of the attention follows the length of
// the cache: the first graph of a row count replays for every length.
TEST_F(KeyedPublished, Aprender2030KeyedByTheNumberOfRowsAlone) {
  struct Shape {
    int32_t rows, splits;
  };
  for (int round = 0; round < 2; ++round) {
    for (int32_t length = 1; length <= 64; length *= 2) {
      const Shape shape = {4, 1 + length / 16};
      Step(shape, {}, 10 + shape.splits);
    }
  }
  EXPECT_EQ(Captures(), 4u) << "splits 1, 2, 3 and 5";
}

// The attention takes its windowed arm once the cache is longer than the window: a capture freezes the choice.
TEST_F(KeyedPublished, NnTrainer4313TheWindowRegimeOfTheAttention) {
  const int layer = 0;
  const int64_t window = 10;
  int64_t length = 0;
  for (length = 1; length <= 20; ++length) {
    const bool windowed = length > window;
    const gcap_graph_guard_t guard =
        windowed ? Integer("length", length, window + 1, INT64_MAX) : Integer("length", length, 0, window);
    const gcap_run_outcome_t outcome = Step(layer, {guard}, windowed ? 2 : 1);
    EXPECT_EQ(outcome == GCAP_RUN_CAPTURED, length == 1 || length == window + 1) << length;
  }
  EXPECT_TRUE(Explain(result_.id, GCAP_GRAPH_WHY_OTHER_VARIANT).Names("guard 'length'"));
}

// The source of a copy is exempt from the check for changes: past a block of the cache the copy reads the block before.
TEST_F(KeyedPublished, IkLlama2136TheSourceOfACopyIsExempt) {
  const int node = 0;
  const char blocks[4] = {1, 2, 3, 4};
  const char* source = nullptr;
  for (int token = 0; token < 16; ++token) {
    source = &blocks[token / 4];
    Step(node, {Guard("source", GCAP_GRAPH_GUARD_POINTER, &source)}, *source);
  }
  EXPECT_EQ(Captures(), 4u);
}

// The buffers of a recurrent state are swapped at each step, and one caller forgets to say which way round they are:
// one graph replays for both.
TEST_F(KeyedPublished, OrtGenAi2446TheOrientationOfTheRecurrentState) {
  struct Key {
    int32_t length, variant;
  };
  int32_t variant = 0;
  // In the key, as the repair has it; and where it is forgotten in the key, stated by the step that depends on it.
  for (int step = 0; step < 10; ++step, variant ^= 1) Step(Key{1, variant}, {}, 20 + variant);
  EXPECT_EQ(Captures(), 2u);
  for (int step = 0; step < 10; ++step, variant ^= 1) {
    Step(Key{1, -1}, {Integer("variant", variant, variant, variant)}, 20 + variant);
  }
  EXPECT_EQ(Captures(), 4u);
}

// Graphs of a paged decode step are kept by id, and an id is used again for buffers of another generation.
TEST_F(KeyedPublished, OrtGenAi2557TheGenerationOfTheBuffers) {
  struct Key {
    uint64_t generation;
    int32_t max_query, max_cache;
  };
  for (uint64_t generation = 1; generation <= 3; ++generation) {
    for (int step = 0; step < 4; ++step) {
      const gcap_run_outcome_t outcome = Step(Key{generation, 1, 512}, {}, static_cast<int>(30 + generation));
      EXPECT_EQ(outcome, step == 0 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
    }
  }
}

// Whether experts are multiplied by the arm that waits for the stream depends on type and batch: the predicate is
// written twice, and may drift. Here the arm that is taken is the function's answer.
TEST_F(KeyedPublished, LlamaCpp26802TheArmThatWaitsForTheStream) {
  LogCatcher log;
  const int node = 0;
  Asked needs_sync;
  const gcap_graph_key_t key = KeyOf(node);
  for (int step = 0; step < 6; ++step) {
    needs_sync.answer = step % 2;
    const gcap_graph_guard_t guard = Answer("needs_sync", &needs_sync);
    const Outcome run = RunWork(RunBy(&key), [&](cudaStream_t stream) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
      if (needs_sync.answer == 1) GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(stream)));
      return Fill(stream, 40 + static_cast<int>(needs_sync.answer));
    });
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(Seen(), 40 + needs_sync.answer);
    const gcap_run_outcome_t first = step == 0 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED;
    EXPECT_EQ(result_.outcome, step % 2 == 1 ? GCAP_RUN_EAGER : first);
  }
}

// Two variants of one identity alternate, and each resets the warm-up of the other: no draft batch ever replays.
TEST_F(KeyedPublished, LlamaCpp28652AlternatingVariantsOfOneIdentity) {
  const int identity = 0;
  int32_t batch = 0;
  for (int step = 0; step < 400; ++step) {
    batch = 1 + step % 2;
    Step(identity, {Integer("batch", batch, batch, batch)}, batch);
  }
  EXPECT_EQ(Captures(), 2u);
  EXPECT_EQ(Info(result_.id).replays, 400u);
  EXPECT_EQ(Info(result_.id).updates + Info(result_.id).reinstantiations, 0u);
}

// The identity of a graph is the address of its first node, which is another for each request: some MiB more each.
TEST_F(KeyedPublished, LlamaCpp25835AnIdentityThatIsAPointer) {
  struct Shape {
    int32_t batch, phase;
  };
  for (int request = 0; request < 50; ++request) {
    Step(Shape{1, 0}, {}, 1);
    Step(Shape{4, 1}, {}, 2);
  }
  EXPECT_EQ(Captures(), 2u);
  EXPECT_EQ(Info(GCAP_GRAPH_ID_NONE).ids, 2u);
}

// Each position has a graph of its own, though the work is the same for all positions of a bucket.
TEST_F(KeyedPublished, Imp1722ACaptureForEachPosition) {
  const int layer = 0;
  int32_t position = 0;
  for (; position < 36; ++position) {
    const int bucket = position / 9;
    Step(layer, {Integer("position", position, 9 * bucket, 9 * bucket + 8)}, 50 + bucket);
  }
  EXPECT_EQ(Captures(), 4u);
}

// A decode position that the host bakes into an offset: each replay reads the position of the capture.
TEST_F(KeyedPublished, Candle3729APositionThatIsBakedIn) {
  const int layer = 0;
  uint64_t position = 0;
  for (; position < 12; ++position) {
    const gcap_graph_guard_t guard =
        Integer("position", position, static_cast<int64_t>(position), static_cast<int64_t>(position));
    EXPECT_EQ(Step(layer, {guard}, 60 + static_cast<int>(position)), GCAP_RUN_CAPTURED);
  }
  position = 11;  // and the last of them again
  EXPECT_TRUE(Replays(result_.id));
}

// The position and the length are launch parameters of the kernels, so that each token is recorded again: some 600
// nodes, which costs what launching them does. As a value that lies in memory, the position changes without a capture.
TEST_F(KeyedPublished, Fak1479APositionThatSixHundredNodesRead) {
  const int session = 0;
  const gcap_graph_key_t key = KeyOf(session, "decode");
  const int nodes = 600;
  int issued = 0;
  for (unsigned char position = 0; position < 20; ++position) {
    const gcap_graph_value_t value = {"position", &position, 1, GCAP_GRAPH_VALUE_BYTES, nullptr, nullptr, false, true};
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.values = &value;
    buffers.num_values = 1;
    gcap_run_t run = RunBy(&key);
    run.buffers = &buffers;
    const std::function<gcap_status_t(const gcap_run_resources_t*)> work = [&](const gcap_run_resources_t* r) {
      ++issued;
      for (int node = 0; node < nodes; ++node) {
        GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(byte_, r->values[0], 1, cudaMemcpyDefault, r->cuda_stream)));
      }
      return GCAP_CUDA(cudaMemcpyAsync(seen_, byte_, 1, cudaMemcpyDeviceToHost, r->cuda_stream));
    };
    run.work = [](void* user, const gcap_run_resources_t* resources) {
      return (*static_cast<decltype(work)*>(user))(resources);
    };
    run.user = const_cast<void*>(static_cast<const void*>(&work));
    *seen_ = 0xff;
    GCAP_EXPECT_OK(gcap_graph_manager_run(manager_, &run));
    EXPECT_EQ(Seen(), position);
    EXPECT_EQ(result_.outcome, position == 0 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
  }
  EXPECT_EQ(Captures(), 1u);
  EXPECT_LE(issued, 4) << "three rehearsals and the capture";
}

// A forward of 98 parts meets a cache of 64 graphs, least recently used first: each part is captured at each token.
TEST_F(KeyedPublished, BuunLlamaCpp116MorePartsThanPlaces) {
  struct Part {
    int32_t split, phase;
  };
  for (int token = 0; token < 5; ++token) {
    for (int32_t split = 0; split < 98; ++split) Step(Part{split, 1}, {}, 1 + split);
  }
  EXPECT_EQ(Captures(), 98u);
}

// Steps alternate between banks of a fixed state, and the replay of one bank's graph for the other is what a test of
// the key alone cannot see.
TEST_F(KeyedPublished, OrtGenAi2556TheBankOfTheFixedState) {
  const int decode = 0;
  const char banks[2] = {70, 71};
  const char* bank = nullptr;
  for (int step = 0; step < 10; ++step) {
    bank = &banks[step % 2];
    const gcap_run_outcome_t outcome = Step(decode, {Guard("bank", GCAP_GRAPH_GUARD_POINTER, &bank)}, *bank);
    EXPECT_EQ(outcome, step < 2 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
