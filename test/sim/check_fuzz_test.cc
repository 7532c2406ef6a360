// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Random programs: a race is reported exactly when a conflict exists that nothing orders. What orders what is computed
// here on its own, as reachability in the graph of all accesses.
#include <algorithm>
#include <array>
#include <memory>
#include <random>

#include "test/sim/check_test.h"

namespace {

using gcap_test::Reports;
using Set = std::vector<int>;  // of accesses

constexpr size_t kBytes = 64;
constexpr size_t kStreams = 4;  // the last one blocks, with the legacy stream behind it
constexpr size_t kEvents = 3;
constexpr size_t kBuffers = 3;
constexpr size_t kMaxAccesses = 20 * 12;  // of a program: as many steps, each two launches of six nodes

struct Access {
  size_t buffer, begin, end;
  bool write;
  Set after;  // those that this one is told to come after
};

// What the program did so far, told in terms of accesses.
class Model {
 public:
  int Add(size_t buffer, size_t begin, size_t end, bool write, Set after) {
    accesses_.push_back({buffer, begin, end, write, std::move(after)});
    return static_cast<int>(accesses_.size()) - 1;
  }

  bool HasRace() const {
    const size_t count = accesses_.size();
    std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
    for (size_t i = 0; i < count; ++i) {
      for (int a : accesses_[i].after) {
        before[i][a] = true;
        for (size_t k = 0; k < count; ++k) {
          if (before[a][k]) before[i][k] = true;
        }
      }
      for (size_t k = 0; k < i; ++k) {
        if (!before[i][k] && Conflict(accesses_[i], accesses_[k])) return true;
      }
    }
    return false;
  }

  const std::vector<Access>& accesses() const { return accesses_; }

  static bool Conflict(const Access& a, const Access& b) {
    return a.buffer == b.buffer && (a.write || b.write) && a.begin < b.end && b.begin < a.end;
  }

 private:
  std::vector<Access> accesses_;
};

void Join(Set* to, const Set& from) {
  to->insert(to->end(), from.begin(), from.end());
  std::sort(to->begin(), to->end());
  to->erase(std::unique(to->begin(), to->end()), to->end());
}

// Makes the calls and keeps the model beside them.
class Program {
 public:
  explicit Program(uint64_t seed) : random_(seed) {
    for (size_t i = 0; i + 1 < kStreams; ++i) Ok(cudaStreamCreateWithFlags(&streams_[i], cudaStreamNonBlocking));
    Ok(cudaStreamCreate(&streams_[kStreams - 1]));
    for (cudaEvent_t& event : events_) Ok(cudaEventCreate(&event));
    for (unsigned char*& buffer : buffers_) {
      Ok(cudaMalloc(reinterpret_cast<void**>(&buffer), kBytes));
      Ok(cudaMemset(buffer, 0, kBytes));
    }
    Ok(cudaMallocHost(reinterpret_cast<void**>(&pinned_), kBytes * kMaxAccesses));
    Ok(cudaDeviceSynchronize());
  }

  ~Program() {
    Ok(cudaDeviceSynchronize());
    for (cudaGraphExec_t exec : execs_) Ok(cudaGraphExecDestroy(exec));
    for (cudaStream_t stream : streams_) Ok(cudaStreamDestroy(stream));
    for (cudaEvent_t event : events_) Ok(cudaEventDestroy(event));
    for (unsigned char* buffer : buffers_) Ok(cudaFree(buffer));
    Ok(cudaFreeHost(pinned_));
  }

  void Step() {
    const size_t stream = Below(kStreams);
    switch (Below(12)) {
      case 0:
      case 1: return Record(stream, Below(kEvents));
      case 2:
      case 3: return Wait(stream, Below(kEvents));
      case 4: return Synchronize(stream);
      case 5: return Below(4) ? Query(Below(kEvents)) : SynchronizeDevice();
      case 6: return Launch(stream);
      case 7: return Legacy();
      default: return Touch(stream);
    }
  }

  // Makes the next access of the stream come after all that it conflicts with, but for the one with this number, if the
  // program comes to it.
  void OrderedTouch(size_t stream, int skip) {
    Access next = Random();
    Set conflicts;
    for (size_t i = 0; i < model_.accesses().size(); ++i) {
      if (Model::Conflict(next, model_.accesses()[i])) conflicts.push_back(static_cast<int>(i));
    }
    for (size_t other = 0; other < kStreams; ++other) {
      if (other == stream ||
          !std::any_of(conflicts.begin(), conflicts.end(), [&](int c) { return home_[c] == other; })) {
        continue;
      }
      if (orders_++ == skip) continue;
      Record(other, 0);
      Wait(stream, 0);
    }
    Touch(stream, next);
  }

  size_t Below(size_t bound) { return random_() % bound; }
  const Model& model() const { return model_; }
  int orders() const { return orders_; }

 private:
  static void Ok(cudaError_t code) { ASSERT_EQ(cudaSuccess, code); }

  Access Random() {
    const size_t begin = Below(kBytes - 1);
    return {Below(kBuffers), begin, begin + 1 + Below(kBytes - begin), Below(3) == 0, {}};
  }

  // Everything that comes before what the host gives the stream now.
  Set Before(size_t stream) {
    Set before = done_[stream];
    Join(&before, host_);
    if (stream == kStreams - 1) Join(&before, legacy_);
    return before;
  }

  void Touch(size_t stream) { Touch(stream, Random()); }

  void Touch(size_t stream, const Access& a) {
    unsigned char* address = buffers_[a.buffer] + a.begin;
    const size_t bytes = a.end - a.begin;
    if (a.write) {
      Ok(cudaMemsetAsync(address, 1, bytes, streams_[stream]));
    } else {
      // Each into bytes of its own.
      Ok(cudaMemcpyAsync(pinned_ + kBytes * home_.size(), address, bytes, cudaMemcpyDeviceToHost, streams_[stream]));
    }
    done_[stream] = {model_.Add(a.buffer, a.begin, a.end, a.write, Before(stream))};
    home_.push_back(stream);
  }

  // A fill in the legacy stream, before and after which blocking work comes.
  void Legacy() {
    const Access a = Random();
    Ok(cudaMemsetAsync(buffers_[a.buffer] + a.begin, 1, a.end - a.begin, nullptr));
    Set before = Before(kStreams - 1);
    legacy_ = {model_.Add(a.buffer, a.begin, a.end, true, before)};
    home_.push_back(kStreams);
  }

  void Record(size_t stream, size_t event) {
    Ok(cudaEventRecord(events_[event], streams_[stream]));
    // An event is work of its stream: the implicit order holds for it.
    if (stream == kStreams - 1) Join(&done_[stream], legacy_);
    recorded_[event] = done_[stream];
    was_recorded_[event] = true;
  }

  void Wait(size_t stream, size_t event) {
    Ok(cudaStreamWaitEvent(streams_[stream], events_[event], 0));
    if (stream == kStreams - 1 && was_recorded_[event]) Join(&done_[stream], legacy_);
    Join(&done_[stream], recorded_[event]);
  }

  void Synchronize(size_t stream) {
    Ok(cudaStreamSynchronize(streams_[stream]));
    Join(&host_, done_[stream]);
  }

  void SynchronizeDevice() {
    Ok(cudaDeviceSynchronize());
    for (const Set& done : done_) Join(&host_, done);
    Join(&host_, legacy_);
  }

  void Query(size_t event) {
    if (cudaEventQuery(events_[event]) == cudaSuccess) Join(&host_, recorded_[event]);
  }

  // A graph of fills with random dependencies, launched twice by one executable.
  void Launch(size_t stream) {
    cudaGraph_t graph;
    Ok(cudaGraphCreate(&graph, 0));
    std::vector<cudaGraphNode_t> nodes;
    std::vector<Access> fills;
    std::vector<std::vector<size_t>> edges;
    for (size_t i = 0; i < 1 + Below(6); ++i) {
      std::vector<cudaGraphNode_t> after;
      std::vector<size_t> edge;
      for (size_t k = 0; k < nodes.size(); ++k) {
        if (Below(2)) continue;
        after.push_back(nodes[k]);
        edge.push_back(k);
      }
      const Access a = Random();
      cudaMemsetParams params = {};
      params.dst = buffers_[a.buffer] + a.begin;
      params.elementSize = 1;
      params.width = a.end - a.begin;
      params.height = 1;
      cudaGraphNode_t node;
      Ok(cudaGraphAddMemsetNode(&node, graph, after.data(), after.size(), &params));
      nodes.push_back(node);
      fills.push_back(a);
      edges.push_back(edge);
    }
    cudaGraphExec_t exec;
    Ok(cudaGraphInstantiate(&exec, graph, 0));
    Ok(cudaGraphDestroy(graph));
    execs_.push_back(exec);
    Set last;
    for (size_t on : {stream, Below(kStreams)}) {
      Ok(cudaGraphLaunch(exec, streams_[on]));
      Set before = Before(on);
      Join(&before, last);
      last = before;
      std::vector<int> placed;
      for (size_t i = 0; i < fills.size(); ++i) {
        Set after = before;
        for (size_t k : edges[i]) Join(&after, {placed[k]});
        placed.push_back(model_.Add(fills[i].buffer, fills[i].begin, fills[i].end, true, after));
        home_.push_back(on);
        Join(&last, {placed[i]});
      }
      done_[on] = last;
    }
  }

  std::mt19937_64 random_;
  std::array<cudaStream_t, kStreams> streams_;
  std::array<cudaEvent_t, kEvents> events_;
  std::array<unsigned char*, kBuffers> buffers_;
  unsigned char* pinned_;
  std::vector<cudaGraphExec_t> execs_;
  Model model_;
  std::vector<size_t> home_;  // the stream of each access
  std::array<Set, kStreams> done_;
  std::array<Set, kEvents> recorded_;
  std::array<bool, kEvents> was_recorded_ = {};
  Set host_, legacy_;
  int orders_ = 0;
};

class CheckFuzz : public testing::Test {
 protected:
  void SetUp() override { gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_RECORD); }
  void TearDown() override {
    EXPECT_EQ(0u, gcap_sim_live(nullptr));
    gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_DEFAULT);
  }

  // Runs the program under a seed of the simulator, and compares. Returns whether it races.
  template <typename Body>
  static bool Compare(uint64_t program, uint64_t seed, Body body) {
    gcap_sim_set_seed(seed);
    Reports();
    testing::internal::CaptureStderr();
    bool races;
    {
      Program p(program);
      body(&p);
      races = p.model().HasRace();
    }
    const std::vector<std::string> reports = Reports();
    testing::internal::GetCapturedStderr();
    EXPECT_EQ(races, !reports.empty()) << "program " << program << ", seed " << seed << "\n"
                                       << (reports.empty() ? "" : reports[0]);
    return races;
  }
};

TEST_F(CheckFuzz, ReportsExactlyTheProgramsThatRace) {
  int racing = 0;
  constexpr int kPrograms = 300;
  for (uint64_t program = 0; program < kPrograms; ++program) {
    const size_t steps = 4 + program % 16;
    for (uint64_t seed : {program, program + 1000}) {
      racing += Compare(program, seed, [&](Program* p) {
        for (size_t i = 0; i < steps; ++i) p->Step();
      });
    }
  }
  // Both kinds are there.
  EXPECT_GT(racing, kPrograms / 4);
  EXPECT_LT(racing, 2 * kPrograms - kPrograms / 4);
}

TEST_F(CheckFuzz, FindsTheOneDependencyThatIsLeftOut) {
  int racing = 0;
  for (uint64_t program = 0; program < 40; ++program) {
    int orders = 0;
    auto body = [&](int skip) {
      return [&, skip](Program* p) {
        for (int i = 0; i < 14; ++i) p->OrderedTouch(p->Below(kStreams - 1), skip);
        orders = p->orders();
      };
    };
    EXPECT_FALSE(Compare(program, program, body(-1))) << program;
    const int all = orders;
    for (int skip = 0; skip < all; skip += 1 + all / 6) racing += Compare(program, program, body(skip));
  }
  EXPECT_GT(racing, 40);
}

}  // namespace
