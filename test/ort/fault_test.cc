// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Each CUDA call of the plugin fails once, from the session's creation to its end, with a real ONNX Runtime around it:
// the step gives the right output or a message, the next try succeeds, and nothing leaks.

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "cuda_runtime_api.h"
#include "gtest/gtest.h"
#include "test/ort/onnx_model.h"
#include "test/ort/runtime.h"

namespace gcap {
namespace testing {
namespace {

// r = relu(a * w + b), c = r + b: a plan, scratch between nodes, a constant on the device.
std::string Model() {
  return OnnxModel()
      .Node("MatMul", "matmul", {"a", "w"}, {"m"})
      .Node("Add", "add", {"m", "b"}, {"s"})
      .Node("Relu", "relu", {"s"}, {"r"})
      .Node("Add", "last", {"r", "b"}, {"c"})
      .Constant("w", {2, 2}, std::vector<float>{1, 0, 0, 1})
      .Input("a", {1, 2})
      .Input("b", {1, 2})
      .Output("c", {1, 2})
      .Bytes();
}

// A failed allocation is NULL to ONNX Runtime, whose message is then its own.
bool IsAboutCuda(const std::string& error) {
  for (const char* part : {"cuda", "cublas", "cudnn", "memory"}) {
    if (error.find(part) != std::string::npos) return true;
  }
  return false;
}

class FaultTest : public OrtTest {
 protected:
  void SetUp() override {
    OrtTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    fail_nth_ = Find<FailNth>("gcap_sim_fail_nth");
    calls_ = Find<Calls>("gcap_sim_calls_for_faults");
    set_log_ = Find<SetLog>("gcap_sim_set_log");
  }

  // The nth call from here on fails, as far as it is in a step.
  void Begin(uint64_t n) {
    left_ = n;
    hit_ = false;
    function_.clear();
    told_of_kept_ = false;
  }
  bool hit() const { return hit_; }
  const std::string& function() const { return function_; }  // that the fault hit
  // What the fault's call was to end, or what a message said to be kept, may be left.
  bool may_leave() const {
    return told_of_kept_ || function_.find("Destroy") != std::string::npos ||
           function_.find("Free") != std::string::npos;
  }

  // Takes the step, which gives the message of its failure. If the fault hit it and it failed, takes it again.
  void Step(const std::string& name, const std::function<std::string()>& step) {
    SCOPED_TRACE(name);
    std::string error = Armed(step);
    if (error.empty()) return;
    EXPECT_TRUE(hit_) << error;
    EXPECT_TRUE(IsAboutCuda(error)) << "names no call: " << error;
    failed_.insert(name);
    told_of_kept_ = error.find("kept") != std::string::npos;
    error = step();
    EXPECT_EQ(error, "") << "the second try";
  }
  // A step that reports nothing.
  void Quietly(const std::function<void()>& step) {
    Armed([&] {
      step();
      return std::string();
    });
  }
  const std::set<std::string>& failed() const { return failed_; }

 private:
  using FailNth = void (*)(const char* function, uint64_t n, cudaError_t code);
  using Calls = uint64_t (*)();
  using SetLog = void (*)(const char* filter, void (*sink)(void* user, const char* line), void* user);

  std::string Armed(const std::function<std::string()>& step) {
    if (hit_) return step();
    const uint64_t before = calls_();
    fail_nth_(nullptr, left_, cudaErrorUnknown);
    set_log_("errors", Note, this);
    const std::string error = step();
    set_log_(nullptr, nullptr, nullptr);
    fail_nth_(nullptr, 0, cudaSuccess);
    const uint64_t made = calls_() - before;
    hit_ = made >= left_;
    if (!hit_) left_ -= made;
    return error;
  }

  // `#7 thread 1 cudaMalloc(64 bytes) -> 999 cudaErrorUnknown`
  static void Note(void* self, const char* line) {
    std::string* function = &static_cast<FaultTest*>(self)->function_;
    const std::string text(line);
    if (!function->empty() || text.find(" -> 999 ") == std::string::npos) return;
    const size_t end = text.find('(');
    const size_t begin = text.rfind(' ', end) + 1;
    *function = text.substr(begin, end - begin);
  }

  FailNth fail_nth_ = nullptr;
  Calls calls_ = nullptr;
  SetLog set_log_ = nullptr;
  uint64_t left_ = 0;
  bool hit_ = false;
  std::string function_;
  bool told_of_kept_ = false;
  std::set<std::string> failed_;
};

TEST_F(FaultTest, EachCallFailsOnceFromCreationToRelease) {
  // What serves all sessions is made at first use, and stays: the stream of copies, a first region.
  DeviceTensor first(ort_, env(), device(), {1}, {1});
  uint64_t n = 0;
  do {
    ++n;
    SCOPED_TRACE("CUDA call " + std::to_string(n) + " fails");
    const size_t live = Live();
    bool is_of_the_end = false;
    {
      Begin(n);
      std::unique_ptr<OrtSession> session;
      Step("create", [&] {
        session.reset(new OrtSession(ort_, env(), device(), Model(), {{"enable_cuda_graph", "1"}, {"use_tf32", "0"}}));
        return session->error();
      });
      DeviceTensor a(ort_, env(), device(), {1, 2}, {1, -5}), b(ort_, env(), device(), {1, 2}, {1, 2}),
          c(ort_, env(), device(), {1, 2}, {});
      session->BindInput("a", a);
      session->BindInput("b", b);
      session->BindOutput("c", c);
      const auto run = [&](const std::string& name, const std::string& id, const Floats& expected) {
        Step(name, [&] { return session->Run({{"gpu_graph_id", id}}); });
        Step("wait", [&] { return session->Run({{"gpu_graph_id", "-1"}}); });
        EXPECT_EQ(c.Get(), expected) << name;
      };
      run("eager", "-1", {3, 2});
      Step("without a wait", [&] {
        return session->Run({{"gpu_graph_id", "-1"}, {"disable_synchronize_execution_providers", "1"}});
      });
      run("capture", "0", {3, 2});
      a.Set({7, -5});
      run("replay", "0", {9, 2});
      if (ort_->version() >= 27) {
        Step("release", [&] { return ort_->Take(api().SessionReleaseCapturedGraph(session->get(), 0)); });
      }
      run("capture again", "0", {9, 2});
      const bool hit_before_the_end = hit();
      Quietly([&] { session.reset(); });
      is_of_the_end = hit() && !hit_before_the_end;
    }
    // What could not be ended is kept, with what may still need it.
    if (!is_of_the_end && !may_leave()) {
      EXPECT_LE(Live(), live) << "left behind by a failed " << function();
    }
    if (Live() > live) may_be_left_ += Live() - live;
  } while (hit() && !HasFailure() && n < 2000);
  EXPECT_GT(n, 50u);
  for (const char* step : {"create", "eager", "replay"}) EXPECT_EQ(failed().count(step), 1u) << step;
}

}  // namespace
}  // namespace testing
}  // namespace gcap
