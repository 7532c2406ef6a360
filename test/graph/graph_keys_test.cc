// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Keys: graphs that bytes of the caller's name. What a run by id does, a run by key does; here is what keys add.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gcap/graph_buffers.h"
#include "gcap/graph_plan.h"
#include "gtest/gtest.h"
#include "test/graph/keyed_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// A key as an engine has one: 48 bytes.
struct Step {
  uint64_t model, shape, layout, phase, flags;
  uint32_t batch, rank;
};
static_assert(sizeof(Step) == 48, "the size that the header of keys speaks of");

class GraphKeys : public KeyedTest {
 protected:
  static Step StepOf(uint32_t batch) { return {1, 2, 3, 4, 5, batch, 7}; }
};

TEST_F(GraphKeys, AKeyIsCapturedOnceAndReplayed) {
  options_.min_num_runs_before_capture = 1;
  CreateKeyed();
  const Step step = StepOf(4);
  const gcap_graph_key_t key = KeyOf(step, "decode batch 4");
  ExpectFill(key, 1, GCAP_RUN_EAGER);
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "WARMING");
  ExpectFill(key, 1, GCAP_RUN_CAPTURED);
  const int id = result_.id;
  EXPECT_LT(id, GCAP_GRAPH_ID_NONE);
  ExpectFill(key, 1, GCAP_RUN_REPLAYED);
  EXPECT_EQ(result_.id, id);
  EXPECT_EQ(IdOf(key), id);
  const gcap_graph_info_t info = Info(id);
  EXPECT_STREQ(info.name, "decode batch 4");
  EXPECT_EQ(info.captures, 1u);
  EXPECT_EQ(info.replays, 2u);
}

TEST_F(GraphKeys, AreComparedInFull) {
  CreateKeyed();
  Step step = StepOf(0);
  unsigned char* bytes = reinterpret_cast<unsigned char*>(&step);
  ExpectFill(KeyOf(step), 0, GCAP_RUN_CAPTURED);
  for (size_t i = 0; i < sizeof(step); ++i) {
    bytes[i] ^= 1;
    ExpectFill(KeyOf(step), static_cast<int>(i) + 1, GCAP_RUN_CAPTURED);
    bytes[i] ^= 1;
  }
  // The beginning of a key is another key, to the last byte.
  for (size_t size = 1; size < sizeof(step); ++size) {
    const gcap_graph_key_t shorter = {bytes, size, nullptr};
    ExpectFill(shorter, 100 + static_cast<int>(size), GCAP_RUN_CAPTURED);
  }
  for (size_t size = 1; size < sizeof(step); ++size) {
    const gcap_graph_key_t shorter = {bytes, size, nullptr};
    ExpectFill(shorter, 100 + static_cast<int>(size), GCAP_RUN_REPLAYED);
  }
  ExpectFill(KeyOf(step), 0, GCAP_RUN_REPLAYED);
}

// Zero bytes at the end are bytes.
TEST_F(GraphKeys, OfZerosDifferByTheirSize) {
  CreateKeyed();
  const std::array<unsigned char, GCAP_GRAPH_KEY_MAX_BYTES> zeros{};
  for (size_t size = 1; size <= zeros.size(); ++size) {
    ExpectFill({zeros.data(), size, nullptr}, static_cast<int>(size % 251), GCAP_RUN_CAPTURED);
  }
  for (size_t size = 1; size <= zeros.size(); ++size) {
    ExpectFill({zeros.data(), size, nullptr}, static_cast<int>(size % 251), GCAP_RUN_REPLAYED);
  }
}

// The hash takes even and odd words by h = (h ^ word) * K, h ^= h >> 32 each, begins with the size and its complement,
// and takes the one by the other at the end. So for each even word there is an odd one with which the hashes meet.
constexpr uint64_t kFactor = 0x9FB21C651E98DF25;
uint64_t Mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kFactor;
  return hash ^ hash >> 32;
}
// The word for which Mix(hash, word) is `mixed`.
uint64_t WordOf(uint64_t hash, uint64_t mixed) {
  uint64_t inverse = kFactor;  // of 3 bits; each round doubles them
  for (int bits = 3; bits < 64; bits *= 2) inverse *= 2 - kFactor * inverse;
  return hash ^ (mixed ^ mixed >> 32) * inverse;
}

TEST_F(GraphKeys, OfOneHashAreTwoKeys) {
  CreateKeyed();
  constexpr uint64_t kSize = 16;
  std::vector<std::array<uint64_t, 2>> keys;
  for (uint64_t word = 1; word <= 3; ++word) keys.push_back({word, WordOf(~kSize, Mix(kSize, word) ^ 42)});
  for (size_t i = 0; i < keys.size(); ++i) ExpectFill(KeyOf(keys[i]), static_cast<int>(i), GCAP_RUN_CAPTURED);
  for (size_t i = 0; i < keys.size(); ++i) ExpectFill(KeyOf(keys[i]), static_cast<int>(i), GCAP_RUN_REPLAYED);
  // Each of the three: the first of the list, the one behind it, and the last.
  for (size_t gone = 0; gone < keys.size(); ++gone) {
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, IdOf(KeyOf(keys[gone]))));
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i != gone) ExpectFill(KeyOf(keys[i]), static_cast<int>(i), GCAP_RUN_REPLAYED);
    }
    ExpectFill(KeyOf(keys[gone]), static_cast<int>(gone), GCAP_RUN_CAPTURED);
  }
}

TEST_F(GraphKeys, OfOneHashThatBeginAlikeAreTwoKeys) {
  CreateKeyed();
  constexpr size_t kWords = 8;
  std::vector<std::array<uint64_t, kWords>> keys;
  for (uint64_t word = 1; word <= 3; ++word) {
    std::array<uint64_t, kWords> key = {1, 2, 3, 4, 5, 6, word, 0};
    uint64_t even = sizeof(key), odd = ~even;
    for (size_t i = 0; i < kWords - 2; i += 2) {
      even = Mix(even, key[i]);
      odd = Mix(odd, key[i + 1]);
    }
    key.back() = WordOf(odd, Mix(even, word) ^ 42);
    keys.push_back(key);
  }
  for (size_t i = 0; i < keys.size(); ++i) ExpectFill(KeyOf(keys[i]), static_cast<int>(i), GCAP_RUN_CAPTURED);
  for (size_t i = 0; i < keys.size(); ++i) ExpectFill(KeyOf(keys[i]), static_cast<int>(i), GCAP_RUN_REPLAYED);
}

TEST_F(GraphKeys, AreCopied) {
  CreateKeyed();
  std::string name = "before";
  Step step = StepOf(1);
  ExpectFill(KeyOf(step, name.c_str()), 1, GCAP_RUN_CAPTURED);
  const int id = result_.id;
  step.batch = 2;
  name = "behind";
  ExpectFill(KeyOf(step), 2, GCAP_RUN_CAPTURED);
  const Step again = StepOf(1);
  ExpectFill(KeyOf(again, "another name"), 1, GCAP_RUN_REPLAYED);
  EXPECT_EQ(result_.id, id);
  EXPECT_STREQ(Info(id).name, "before");
}

TEST_F(GraphKeys, ThatAreNoneAreRefusedByName) {
  CreateKeyed();
  const std::array<unsigned char, GCAP_GRAPH_KEY_MAX_BYTES + 1> bytes{};
  int id = 0;
  const gcap_graph_key_t bad[] = {
      {bytes.data(), 0, "none"}, {bytes.data(), bytes.size(), "many"}, {nullptr, 8, "nowhere"}};
  for (const gcap_graph_key_t& key : bad) {
    const Outcome outcome = RunFill(key, 1);
    EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
    const std::string value = "is " + std::to_string(key.size) + " bytes at ";
    EXPECT_TRUE(outcome.Names(key.name) && outcome.Names(value) && outcome.Names("1 to 256 bytes")) << outcome.message;
    EXPECT_EQ(result_.id, GCAP_GRAPH_ID_NONE);
    GCAP_EXPECT_FAILS(gcap_graph_manager_find(manager_, &key, &id), GCAP_INVALID_ARGUMENT, key.name);
    EXPECT_EQ(id, GCAP_GRAPH_ID_NONE);
  }
  const gcap_graph_key_t key = {bytes.data(), 8, "decode"};
  const gcap_run_t both = RunBy(&key, 3);
  const Outcome outcome = RunWork(both, [](cudaStream_t) { return gcap_status_t(nullptr); });
  EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
  EXPECT_TRUE(outcome.Names("graph id 3 and the key 'decode'")) << outcome.message;
  GCAP_EXPECT_FAILS(gcap_graph_manager_find(manager_, &key, &id), GCAP_NOT_FOUND, "decode");
  EXPECT_EQ(gcap_graph_manager_list_ids(manager_, nullptr, 0), 0u);
}

// A default stream is refused as with an id.
TEST_F(GraphKeys, AreRefusedOnADefaultStream) {
  CreateKeyed();
  const int number = 1;
  const gcap_graph_key_t key = KeyOf(number);
  gcap_run_t run = RunBy(&key);
  run.stream = cudaStreamPerThread;
  EXPECT_EQ(RunWork(run, [](cudaStream_t) { return gcap_status_t(nullptr); }).code, GCAP_INVALID_ARGUMENT);
}

// The ids of keys are no caller's to choose: only a key that is known has one.
TEST_F(GraphKeys, HaveIdsThatEveryFunctionTakesButABegin) {
  options_.keep_source = true;
  options_.audit = GCAP_GRAPH_AUDIT_ON_DEMAND;
  CreateKeyed();
  const int number = 1;
  const gcap_graph_key_t key = KeyOf(number, "prefill");
  ExpectFill(key, 1, GCAP_RUN_CAPTURED);
  const int id = result_.id;
  EXPECT_TRUE(gcap_graph_manager_is_captured(manager_, id));
  size_t findings = 1;
  GCAP_EXPECT_OK(gcap_graph_manager_audit(manager_, id, nullptr, nullptr, &findings));
  EXPECT_EQ(findings, 0u);
  GCAP_EXPECT_OK(gcap_graph_manager_dump(manager_, id, "/dev/null", 0));
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, id));
  ExpectFill(key, 2, GCAP_RUN_CAPTURED);
  EXPECT_EQ(Info(id).updates, 1u);
  EXPECT_TRUE(
      Explain(id, GCAP_GRAPH_WHAT_CHANGED).Names("graph key 'prefill' (id " + std::to_string(id) + ") differs"));
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_EXPECT_FAILS(BeginPlain(manager_, id, stream_->get(), &kind), GCAP_INVALID_ARGUMENT, "allowed are ids >= 0");
  *seen_ = 0;
  GCAP_EXPECT_OK(Replay(manager_, id, true));
  EXPECT_EQ(Seen(), 2);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, id));
  EXPECT_EQ(gcap_graph_manager_list_ids(manager_, nullptr, 0), 0u);
}

TEST_F(GraphKeys, BeginEndAndReplayTakeThem) {
  CreateKeyed();
  const int number = 1;
  const gcap_graph_key_t key = KeyOf(number, "decode");
  const gcap_run_t run = RunBy(&key);
  bool replayed = true;
  GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &run, &replayed));
  EXPECT_FALSE(replayed);
  EXPECT_EQ(result_.id, GCAP_GRAPH_ID_NONE);
  GCAP_EXPECT_FAILS(gcap_graph_manager_replay(manager_, &run, nullptr), GCAP_NOT_FOUND, "'decode'");
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_ASSERT_OK(gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr));
  EXPECT_EQ(kind, GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_OK(gcap_graph_manager_end_run(manager_, &run, Fill(stream_->get(), 9)));
  EXPECT_EQ(result_.id, IdOf(key));
  GCAP_EXPECT_FAILS(gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr), GCAP_ALREADY_EXISTS,
                    "graph key 'decode' (id -2) is captured");
  *seen_ = 0;
  GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &run, &replayed));
  EXPECT_TRUE(replayed);
  EXPECT_EQ(Seen(), 9);
  // Of a run that nobody asks the result of, and that does not wait.
  gcap_run_t bare = RunOf(GCAP_GRAPH_ID_NONE, stream_->get());
  bare.key = &key;
  GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &bare, &replayed));
  EXPECT_TRUE(replayed);
}

TEST_F(GraphKeys, AreForgottenWithTheirIdWhichDoesNotComeBack) {
  options_.max_ids_without_graph = 2;
  options_.min_num_runs_before_capture = 5;
  CreateKeyed();
  int keys[4] = {0, 1, 2, 3};
  std::vector<int> ids;
  for (const int& key : keys) {
    ExpectFill(KeyOf(key), 1, GCAP_RUN_EAGER);
    ids.push_back(result_.id);
  }
  int id = 0;
  const gcap_graph_key_t first = KeyOf(keys[0]);
  GCAP_EXPECT_FAILS(gcap_graph_manager_find(manager_, &first, &id), GCAP_NOT_FOUND, "4 bytes");
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, IdOf(KeyOf(keys[3]))));
  for (const int& key : {keys[0], keys[3]}) {
    ExpectFill(KeyOf(key), 1, GCAP_RUN_EAGER);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), result_.id), 0);
    EXPECT_EQ(Info(result_.id).eager_runs, 1u);
  }
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
  const gcap_graph_key_t last = KeyOf(keys[3]);
  GCAP_EXPECT_FAILS(gcap_graph_manager_find(manager_, &last, &id), GCAP_NOT_FOUND, "4 bytes");
}

TEST_F(GraphKeys, AnEvictionTellsTheIdAndTheName) {
  struct Told {
    int id = 0;
    std::string name;
  } told;
  options_.max_graphs = 1;
  options_.user = &told;
  options_.on_evict = [](void* user, int id, const gcap_graph_info_t* info) {
    *static_cast<Told*>(user) = {id, info->name};
  };
  CreateKeyed();
  const int first = 1, second = 2;
  ExpectFill(KeyOf(first, "first"), 1, GCAP_RUN_CAPTURED);
  const int id = result_.id;
  ExpectFill(KeyOf(second, "second"), 2, GCAP_RUN_CAPTURED);
  EXPECT_EQ(told.id, id);
  EXPECT_EQ(told.name, "first");
  ExpectFill(KeyOf(first), 3, GCAP_RUN_CAPTURED);
  EXPECT_EQ(result_.id, id);
}

TEST_F(GraphKeys, AFailureHasTheName) {
  options_.rerun_failed_capture = false;
  CreateKeyed();
  const int number = 1;
  const std::string name(100, 'n');
  const gcap_graph_key_t key = KeyOf(number, name.c_str());
  const Work fails = [](cudaStream_t) { return GCAP_STATUS(GCAP_LIBRARY_ERROR, "no kernel"); };
  const Outcome outcome = RunWork(RunBy(&key), fails);
  EXPECT_EQ(outcome.code, GCAP_CAPTURE_INVALIDATED);
  const std::string shown = "graph key '" + name.substr(0, GCAP_GRAPH_NAME_BYTES - 1) + "' (id -2): ";
  EXPECT_TRUE(outcome.Names(shown)) << outcome.message;
  EXPECT_TRUE(Explain(result_.id, GCAP_GRAPH_WHY_CAPTURE_FAILED).Names(shown));
  // What the work of an eager run answers is the caller's own status.
  EXPECT_FALSE(RunWork(RunBy(&key), fails).Names(shown));
}

// By its key, if that has a name, or by its id, and not by both.
TEST_F(GraphKeys, AMessageNamesTheGraphOnce) {
  options_.backoff_runs = 0;
  CreateKeyed();
  const auto num_named = [](const std::string& message) {
    size_t count = 0;
    for (const char* const name : {"graph id", "graph key"}) {
      for (size_t at = message.find(name); at != std::string::npos; at = message.find(name, at + 1)) ++count;
    }
    return count;
  };
  const int number = 1;
  for (const char* const name : {"decode", static_cast<const char*>(nullptr)}) {
    const int bytes[2] = {number, name != nullptr};
    const gcap_graph_key_t key = KeyOf(bytes, name);
    gcap_run_t run = RunBy(&key);
    const LogCatcher log;
    const Work work = [&](cudaStream_t stream) {
      return gcap_thread_is_capturing() ? GCAP_STATUS(GCAP_LIBRARY_ERROR, "no kernel") : Fill(stream, 3);
    };
    EXPECT_TRUE(RunWork(run, work).ok());
    EXPECT_EQ(num_named(log.text()), 1u) << log.text();
    const int id = result_.id;
    std::vector<std::string> messages = {Explain(id, GCAP_GRAPH_WHY_CAPTURE_FAILED).message,
                                         Explain(id, GCAP_GRAPH_WHY_EAGER).message};
    run.capture_only = true;
    messages.push_back(RunWork(run, work).message);
    run.work = [](void*, const gcap_run_resources_t*) { return GCAP_STATUS(GCAP_LIBRARY_ERROR, "no kernel"); };
    messages.push_back(Outcome(gcap_graph_manager_warm_up(manager_, &run, 1, nullptr, nullptr)).message);
    messages.push_back(Outcome(gcap_graph_manager_audit(manager_, id, nullptr, nullptr, nullptr)).message);
    messages.push_back(Outcome(gcap_graph_manager_recapture(manager_, id)).message);
    ExpectFill(key, 1, GCAP_RUN_CAPTURED);
    messages.push_back(Outcome(gcap_graph_manager_bind(manager_, id, 0, byte_)).message);
    messages.push_back(Outcome(gcap_graph_manager_dump(manager_, id, "/dev/null", 0)).message);
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    run.capture_only = false;
    messages.push_back(Outcome(gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr)).message);
    for (const std::string& message : messages) EXPECT_EQ(num_named(message), 1u) << message;
  }
}

std::string TextOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_F(GraphKeys, TheirNameIsInTheEventsOfACapture) {
  CreateKeyed();
  const std::string path = ::testing::TempDir() + "named.events";
  const Work writes = [&](cudaStream_t stream) {
    GCAP_RETURN_IF_ERROR(Fill(stream, 1));
    return gcap_capture_write_events(gcap_capture_current(), path.c_str());
  };
  const int number = 1;
  const gcap_graph_key_t key = KeyOf(number, "decode batch 4");
  EXPECT_TRUE(RunWork(RunBy(&key), writes).ok());
  const std::string label = "\tlabel=graph id " + std::to_string(result_.id);
  EXPECT_NE(TextOf(path).find(label + ", key 'decode batch 4'\n"), std::string::npos) << TextOf(path);
  EXPECT_TRUE(RunWork(RunBy(nullptr, 7), writes).ok());
  EXPECT_NE(TextOf(path).find("\tlabel=graph id 7\n"), std::string::npos) << TextOf(path);
}

TEST_F(GraphKeys, TheirNameIsBehindADump) {
  options_.keep_source = true;
  CreateKeyed();
  const std::string path = ::testing::TempDir() + "named.dot";
  const int number = 1;
  ExpectFill(KeyOf(number, "decode\nbatch 4"), 1, GCAP_RUN_CAPTURED);
  const std::string comment = "// graph id " + std::to_string(result_.id) + ", key 'decode batch 4'\n";
  GCAP_EXPECT_OK(gcap_graph_manager_dump(manager_, result_.id, path.c_str(), 0));
  const std::string text = TextOf(path);
  ASSERT_GT(text.size(), comment.size());
  EXPECT_EQ(text.substr(text.size() - comment.size()), comment);
  GCAP_EXPECT_FAILS(gcap_graph_manager_dump(manager_, result_.id, ::testing::TempDir().c_str(), 0), GCAP_CUDA_ERROR,
                    "cannot be written");
}

// After a failed capture the run is eager, and still that of its key.
TEST_F(GraphKeys, ARunAgainKeepsItsId) {
  CreateKeyed();
  const int number = 1;
  const gcap_graph_key_t key = KeyOf(number, "decode");
  int calls = 0;
  const Outcome outcome = RunWork(RunBy(&key), [&](cudaStream_t stream) {
    return ++calls == 1 ? GCAP_STATUS(GCAP_LIBRARY_ERROR, "no kernel") : Fill(stream, 3);
  });
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(Seen(), 3);
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "CAPTURE_FAILED");
  EXPECT_EQ(result_.id, IdOf(key));
  EXPECT_EQ(Info(result_.id).eager_runs, 0u);
}

// Also the one that has its graph already.
TEST_F(GraphKeys, ARunThatIsCapturedOnlyTellsItsId) {
  CreateKeyed();
  const int number = 5;
  const gcap_graph_key_t key = KeyOf(number);
  for (int round = 0; round < 2; ++round) {
    gcap_run_t run = RunBy(&key);
    run.capture_only = true;
    EXPECT_TRUE(RunWork(run, [this](cudaStream_t stream) { return Fill(stream, 1); }).ok());
    EXPECT_EQ(result_.outcome, GCAP_RUN_RECORDED);
    EXPECT_EQ(result_.id, IdOf(key)) << "round " << round;
  }
}

TEST_F(GraphKeys, AThousandReplayEachItsOwn) {
  CreateKeyed();
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 1000; ++i) {
      const Step step = StepOf(i);
      ExpectFill(KeyOf(step), static_cast<int>(i % 251), round == 0 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
    }
  }
  std::vector<int> ids(1000);
  EXPECT_EQ(gcap_graph_manager_list_ids(manager_, ids.data(), ids.size()), 1000u);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
  EXPECT_LT(ids.back(), GCAP_GRAPH_ID_NONE);
}

TEST_F(GraphKeys, ThreadsReplayWhileOthersAreReleased) {
  CreateKeyed();
  const int kept = 1;
  const gcap_graph_key_t key = KeyOf(kept);
  ExpectFill(key, 1, GCAP_RUN_CAPTURED);
  std::thread replays([&] {
    gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE, stream_->get());
    run.key = &key;
    for (int i = 0; i < 300; ++i) GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &run, nullptr));
  });
  const RawStream other;
  for (int i = 2; i < 40; ++i) {
    const gcap_graph_key_t more = KeyOf(i);
    gcap_run_t run = RunBy(&more);
    run.stream = other.get();
    EXPECT_TRUE(RunWork(run, [](cudaStream_t) { return gcap_status_t(nullptr); }).ok());
    if (i % 2 == 0) GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, result_.id));
  }
  replays.join();
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));  // before the other stream
  manager_ = nullptr;
}

TEST_F(GraphKeys, APlanTakesThem) {
  CreateKeyed();
  const int numbers[2] = {1, 2};
  const gcap_graph_key_t keys[2] = {KeyOf(numbers[0]), KeyOf(numbers[1])};
  ExpectFill(keys[0], 1, GCAP_RUN_CAPTURED);
  Work work = [this](cudaStream_t stream) { return Fill(stream, 2); };
  gcap_run_t runs[2] = {RunBy(&keys[0]), RunBy(&keys[1])};
  for (gcap_run_t& run : runs) {
    run.work = [](void* user, const gcap_run_resources_t* resources) {
      return (*static_cast<Work*>(user))(resources->cuda_stream);
    };
    run.user = &work;
  }
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_EXPECT_OK(gcap_graph_manager_plan(manager_, runs, 2, &plan));
  EXPECT_EQ(plan.graphs, 2u);
  EXPECT_EQ(plan.nodes, 4u);
  EXPECT_EQ(gcap_graph_manager_list_ids(manager_, nullptr, 0), 1u);  // a plan remembers nothing
}

}  // namespace
}  // namespace testing
}  // namespace gcap
