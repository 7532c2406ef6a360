// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The ledger of a scope, and the rule that a broken capture is told with: each row of //rules' capture_calls.inc is
// committed once, and the status must name the function, the place, the rule and the remedy.

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/capture/scope_test.h"
#include "test/support/expect_status.h"
#include "test/support/kernels/plain_kernels.h"

namespace gcap {
namespace testing {
namespace {

class CaptureCalls : public ScopeTest {
 protected:
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_EQ(gcap_capture_current(), nullptr);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    ScopeTest::TearDown();
  }

  static std::vector<std::string> Operations(const gcap_capture_t* capture, size_t capacity) {
    std::vector<gcap_capture_call_t> calls(capacity);
    const size_t noted = gcap_capture_get_calls(capture, calls.data(), capacity);
    if (noted < capacity) calls.resize(noted);
    std::vector<std::string> operations;
    for (const gcap_capture_call_t& call : calls) {
      if (call.operation != nullptr) operations.push_back(call.operation);
    }
    return operations;
  }

  static void ExpectUsable(const RawStream& stream) {
    CopyJob job;
    job.set_input(7);
    GCAP_EXPECT_CUDA(job.Issue(stream.get()));
    stream.Synchronize();
    EXPECT_EQ(job.output(), 7);
  }
};

using Names = std::vector<std::string>;

TEST_F(CaptureCalls, AreNotedWithTheirPlaceAndState) {
  const RawStream stream;
  int device = 0;
  gcap_capture_t* capture = Begin(stream.get());
  EXPECT_EQ(gcap_capture_get_calls(capture, nullptr, 0), 0u) << "begin is no part of the scope";
  GCAP_EXPECT_OK(GCAP_CUDA(cudaGetDevice(&device)));
  const int line = __LINE__ + 1;
  GCAP_CAPTURE_NOTE("my_kernel<<<1, 32>>>", stream.get());
  gcap_capture_call_t calls[3];
  EXPECT_EQ(gcap_capture_get_calls(capture, calls, 3), 2u);
  EXPECT_STREQ(calls[0].operation, "cudaGetDevice(&device)");
  EXPECT_EQ(calls[0].stream, nullptr);
  EXPECT_STREQ(calls[1].operation, "my_kernel<<<1, 32>>>");
  EXPECT_EQ(calls[1].line, line);
  EXPECT_STREQ(calls[1].file, __FILE__);
  EXPECT_EQ(calls[1].stream, stream.get());
  EXPECT_EQ(calls[1].before, cudaStreamCaptureStatusActive);
  EXPECT_EQ(calls[1].after, cudaStreamCaptureStatusActive);
  EXPECT_TRUE(End(capture).ok());
}

TEST_F(CaptureCalls, KeepTheNewestAndCountAll) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get(), 3);
  for (const char* name : {"a", "b", "c", "d", "e"}) GCAP_CAPTURE_NOTE(name, nullptr);
  EXPECT_EQ(gcap_capture_get_calls(capture, nullptr, 0), 5u);
  EXPECT_EQ(Operations(capture, 2), (Names{"d", "e"}));
  EXPECT_EQ(Operations(capture, 3), (Names{"c", "d", "e"}));
  EXPECT_EQ(Operations(capture, 5), (Names{"c", "d", "e"}));
  EXPECT_TRUE(End(capture).ok());
}

// A program of the day when a call had a text and a file only, and one of the day when it has a field more.
TEST_F(CaptureCalls, AreWrittenInTheLayoutOfTheProgramThatAsks) {
  struct OlderCall {
    const char* operation;
    const char* file;
  };
  struct NewerCall {
    gcap_capture_call_t known;
    size_t more;
  };
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  const int line = __LINE__ + 1;
  for (const char* name : {"a", "b", "c"}) GCAP_CAPTURE_NOTE(name, stream.get());
  const char* guard = "behind the array";
  OlderCall older[3] = {{}, {}, {guard, guard}};
  EXPECT_EQ(gcap_capture_read_calls(capture, reinterpret_cast<gcap_capture_call_t*>(older), 2, sizeof(OlderCall)), 3u);
  EXPECT_STREQ(older[0].operation, "b");
  EXPECT_STREQ(older[0].file, __FILE__);
  EXPECT_STREQ(older[1].operation, "c");
  EXPECT_STREQ(older[1].file, __FILE__);
  EXPECT_EQ(older[2].operation, guard);
  EXPECT_EQ(older[2].file, guard);
  NewerCall newer[2] = {{{}, 7}, {{}, 8}};
  EXPECT_EQ(gcap_capture_read_calls(capture, &newer[0].known, 2, sizeof(NewerCall)), 3u);
  EXPECT_STREQ(newer[0].known.operation, "b");
  EXPECT_STREQ(newer[1].known.operation, "c");
  EXPECT_EQ(newer[1].known.line, line);
  EXPECT_EQ(newer[1].known.stream, stream.get());
  EXPECT_EQ(newer[0].more, 0u);
  EXPECT_EQ(newer[1].more, 0u);
  EXPECT_TRUE(End(capture).ok());
}

TEST_F(CaptureCalls, TextIsCopiedAndCutOff) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  std::string text(500, 'x');
  GCAP_CAPTURE_NOTE(text.c_str(), nullptr);
  text.assign(500, 'y');
  const Names operations = Operations(capture, 1);
  ASSERT_EQ(operations.size(), 1u);
  EXPECT_GE(operations[0].size(), 100u);
  EXPECT_LT(operations[0].size(), 500u);
  // Was: cut without a mark.
  EXPECT_EQ(operations[0], std::string(operations[0].size() - 3, 'x') + "...");
  // As long as what was kept, and longer by one.
  const std::string fits(operations[0].size(), 'z'), cut(operations[0].size() + 1, 'z');
  GCAP_CAPTURE_NOTE(fits.c_str(), nullptr);
  GCAP_CAPTURE_NOTE(cut.c_str(), nullptr);
  EXPECT_EQ(Operations(capture, 2), (Names{fits, std::string(fits.size() - 3, 'z') + "..."}));
  // No text is a format.
  GCAP_CAPTURE_NOTE(("100% of " + cut).c_str(), nullptr);
  EXPECT_EQ(Operations(capture, 1), (Names{"100% of " + std::string(fits.size() - 11, 'z') + "..."}));
  EXPECT_TRUE(End(capture).ok());
}

TEST_F(CaptureCalls, TextIsNotMixedWithThatOfTheCallBeforeInTheRing) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get(), 1);
  for (const char* name : {"a long name", "ab", ""}) {
    GCAP_CAPTURE_NOTE(name, nullptr);
    EXPECT_EQ(Operations(capture, 1), Names{name});
  }
  EXPECT_TRUE(End(capture).ok());
}

TEST_F(CaptureCalls, AreNotNotedWithoutALedger) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get(), 0);
  GCAP_CAPTURE_NOTE("a", nullptr);
  int device = 0;
  GCAP_EXPECT_OK(GCAP_CUDA(cudaGetDevice(&device)));
  EXPECT_EQ(gcap_capture_get_calls(capture, nullptr, 0), 0u);
  EXPECT_TRUE(End(capture).ok());
  EXPECT_EQ(gcap_capture_get_calls(nullptr, nullptr, 0), 0u);
  capture = Begin(stream.get());
  GCAP_CAPTURE_NOTE(nullptr, nullptr);
  EXPECT_EQ(gcap_capture_get_calls(capture, nullptr, 5), 1u) << "without a place it only counts";
  EXPECT_EQ(Operations(capture, 1), Names{"an unnamed call"});
  EXPECT_TRUE(End(capture).ok());
}

TEST_F(CaptureCalls, OfOtherThreadsAndOfNoScopeAreNotNoted) {
  const RawStream stream;
  GCAP_CAPTURE_NOTE("nobody's", nullptr);
  gcap_capture_t* capture = Begin(stream.get());
  std::thread([] { GCAP_CAPTURE_NOTE("elsewhere", nullptr); }).join();
  EXPECT_EQ(gcap_capture_get_calls(capture, nullptr, 0), 0u);
  EXPECT_TRUE(End(capture).ok());
}

// --- What is said of a broken capture -------------------------------------------------------------------------------

TEST_F(CaptureCalls, ThatBrokeItIsKeptThoughTheRingTurnsOn) {
  const RawStream stream;
  for (const uint32_t ledger_calls : {1u, 2u, 5u}) {
    const std::string before = ledger_calls == 1 ? "k" : "the one before";
    gcap_capture_t* capture = Begin(stream.get(), ledger_calls);
    GCAP_CAPTURE_NOTE(before.c_str(), nullptr);
    EXPECT_NE(cudaStreamQuery(stream.get()), cudaSuccess);
    (void)cudaGetLastError();
    GCAP_CAPTURE_NOTE("the silent one", nullptr);
    for (int i = 0; i < 20; ++i) GCAP_CAPTURE_NOTE("later", nullptr);
    const Outcome outcome = End(capture);
    EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
    // Was: "no longer active after the silent one, and still so after the one before", which says the contrary.
    EXPECT_TRUE(outcome.Names("it was active after " + before + " at " __FILE__)) << outcome.message;
    EXPECT_TRUE(outcome.Names(", and no longer after the silent one at " __FILE__)) << outcome.message;
    EXPECT_TRUE(outcome.Names("GCAP_CAPTURE_NOTE")) << outcome.message;
    EXPECT_FALSE(outcome.Names("later")) << outcome.message;
    ExpectUsable(stream);
  }
}

TEST_F(CaptureCalls, ThatMeetsABreakIsNotBlamedForIt) {
  const RawStream stream;
  CopyJob job;
  gcap_capture_t* capture = Begin(stream.get());
  GCAP_CAPTURE_NOTE("the one before", nullptr);
  EXPECT_NE(cudaStreamQuery(stream.get()), cudaSuccess);
  gcap_status_ignore(GCAP_CUDA(job.Issue(stream.get())));
  const Outcome outcome = End(capture);
  EXPECT_EQ(outcome.cuda_error, cudaErrorStreamCaptureInvalidated);
  EXPECT_TRUE(outcome.Names("a call that was not noted")) << outcome.message;
  EXPECT_TRUE(outcome.Names("broke it, after the one before at " __FILE__)) << outcome.message;
  EXPECT_TRUE(outcome.Names(" and before job.Issue(stream.get()) at " __FILE__)) << outcome.message;
  EXPECT_FALSE(outcome.Names("(rule")) << outcome.message;
}

// Was: "no longer active after cudaLaunchKernel(..), and still so after ..: that call broke it, or one before it",
// though the call had said that it failed.
TEST_F(CaptureCalls, ThatFailedAndBrokeItAreNamedAlone) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  GCAP_CAPTURE_NOTE("the one before", nullptr);
  EXPECT_NE(cudaStreamQuery(stream.get()), cudaSuccess);
  // Any failure of the call itself counts, not only those about captures; the text begins with no function of the
  // table.
  gcap_status_ignore(gcap_status_from_cuda(cudaErrorLaunchOutOfResources, "my_launch<<<1, 4096>>>", "kernel.cu", 12));
  const Outcome outcome = End(capture);
  EXPECT_TRUE(outcome.Names("; my_launch<<<1, 4096>>> at kernel.cu:12 broke it")) << outcome.message;
  EXPECT_FALSE(outcome.Names("the one before")) << outcome.message;
  EXPECT_FALSE(outcome.Names("GCAP_CAPTURE_NOTE")) << outcome.message;
}

// Was: the first failure of the scope alone told what a call had answered, so that the second one was said to have
// broken the capture, or a call before it.
TEST_F(CaptureCalls, ThatBrokeItAfterAnotherFailureAreNamedAlone) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  gcap_status_ignore(GCAP_STATUS(GCAP_LIBRARY_ERROR, "a library gave up"));
  GCAP_CAPTURE_NOTE("the one before", nullptr);
  EXPECT_NE(cudaStreamQuery(stream.get()), cudaSuccess);
  gcap_status_ignore(gcap_status_from_cuda(cudaErrorInvalidValue, "my_launch<<<0, 1>>>", "kernel.cu", 12));
  const Outcome outcome = End(capture);
  EXPECT_TRUE(outcome.Names("; my_launch<<<0, 1>>> at kernel.cu:12 broke it")) << outcome.message;
  EXPECT_TRUE(outcome.Names("a library gave up")) << outcome.message;
  EXPECT_FALSE(outcome.Names("the one before")) << outcome.message;
}

// A call whose error nobody read: what is known is where the capture broke. Was: gcap's own file and line.
TEST_F(CaptureCalls, ThatReportedNothingArePlacedBetweenThoseThatWereNoted) {
  const RawStream stream, idle;
  const int line = __LINE__ + 5;
  for (const uint32_t ledger_calls : {kDefaultCalls, 1u}) {
    for (const bool noted_before : {true, false}) {
      for (const bool noted_after : {true, false}) {
        gcap_capture_t* capture = Begin(stream.get(), ledger_calls);
        if (noted_before) GCAP_CAPTURE_NOTE("the last good one", nullptr);
        (void)cudaStreamQuery(idle.get());
        if (noted_after) GCAP_CAPTURE_NOTE("the next one", nullptr);
        const Outcome outcome = End(capture);
        EXPECT_EQ(outcome.cuda_error, cudaErrorStreamCaptureUnsupported);
        EXPECT_TRUE(outcome.Names("an unreported call failed: cudaErrorStreamCaptureUnsupported")) << outcome.message;
        EXPECT_TRUE(outcome.Names("a call that was not noted (see GCAP_CAPTURE_NOTE) broke it")) << outcome.message;
        EXPECT_FALSE(outcome.Names("capture.c")) << outcome.message;
        EXPECT_EQ(outcome.Names("the last good one at " __FILE__ ":" + std::to_string(line)), noted_before)
            << outcome.message;
        EXPECT_EQ(outcome.Names("the next one at " __FILE__), noted_after) << outcome.message;
        EXPECT_TRUE(outcome.Names("(rule R26: ")) << outcome.message;
        ExpectUsable(stream);
      }
    }
  }
}

// The capture went on without the work: no call of the ledger is to blame, the newest one is a hint.
TEST_F(CaptureCalls, ThatReportedNothingAndBrokeNothingAreNotKnown) {
  const RawStream stream;
  int to = 0;
  for (const uint32_t ledger_calls : {kDefaultCalls, 0u}) {
    gcap_capture_t* capture = Begin(stream.get(), ledger_calls);
    GCAP_CAPTURE_NOTE("the last one", nullptr);
    (void)cudaMemcpyAsync(nullptr, &to, sizeof(to), cudaMemcpyDefault, stream.get());
    const Outcome outcome = End(capture);
    EXPECT_EQ(outcome.cuda_error, cudaErrorInvalidValue);
    EXPECT_TRUE(outcome.Names("wrap calls in GCAP_CUDA")) << outcome.message;
    EXPECT_FALSE(outcome.Names("capture.c")) << outcome.message;
    EXPECT_EQ(outcome.Names("the last one at " __FILE__), ledger_calls != 0) << outcome.message;
  }
}

TEST_F(CaptureCalls, ThatNobodyNotedIsPlacedAfterTheLastNoted) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  GCAP_CAPTURE_NOTE("the last good one", nullptr);
  EXPECT_NE(cudaStreamQuery(stream.get()), cudaSuccess);
  (void)cudaGetLastError();
  const Outcome outcome = End(capture);
  EXPECT_TRUE(outcome.Names("not noted")) << outcome.message;
  EXPECT_TRUE(outcome.Names("after the last good one at " __FILE__)) << outcome.message;
}

TEST_F(CaptureCalls, OfAnotherThreadAreThoughtOfInGlobalModeOnly) {
  const RawStream stream, other;
  const CopyJob job;
  enum { kNothing, kNote, kCallThatMeetsIt, kHows };
  for (const gcap_capture_mode_t mode : {GCAP_CAPTURE_GLOBAL, GCAP_CAPTURE_THREAD_LOCAL}) {
    for (int noted = 0; noted < kHows; ++noted) {
      gcap_capture_t* capture = Begin(stream.get(), kDefaultCalls, mode);
      if (mode == GCAP_CAPTURE_GLOBAL) {
        std::thread([&other] { EXPECT_NE(cudaStreamQuery(other.get()), cudaSuccess); }).join();
      } else {
        EXPECT_NE(cudaStreamQuery(stream.get()), cudaSuccess);
        (void)cudaGetLastError();
      }
      if (noted == kNote) GCAP_CAPTURE_NOTE("an innocent one", nullptr);
      if (noted == kCallThatMeetsIt) gcap_status_ignore(GCAP_CUDA(job.Issue(stream.get())));
      const Outcome outcome = End(capture);
      EXPECT_EQ(outcome.Names("a call of another thread"), mode == GCAP_CAPTURE_GLOBAL) << outcome.message;
    }
  }
}

TEST_F(CaptureCalls, AreNamedByTheirFailureAlsoWithoutALedger) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get(), 0);
  gcap_status_ignore(GCAP_CUDA(cudaStreamSynchronize(stream.get())));
  const Outcome outcome = End(capture);
  EXPECT_TRUE(outcome.Names("cudaStreamSynchronize(stream.get())")) << outcome.message;
  EXPECT_TRUE(outcome.Names("rule R11")) << outcome.message;
}

TEST_F(CaptureCalls, OfACaptureThatIsNotTheScopesAnyMoreFailIt) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_OK(GCAP_CUDA(cudaStreamEndCapture(stream.get(), &graph)));
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  const Outcome outcome = End(capture);
  EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(outcome.Names("cudaStreamEndCapture(stream.get(), &graph) at")) << outcome.message;
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  ExpectUsable(stream);
}

// --- The table of calls ---------------------------------------------------------------------------------------------

struct Row {
  const char* function;
  const char* rule;
};
constexpr Row kRows[] = {
#define CAPTURE_CALL(function, rule_id) {#function, #rule_id},
#include "rules/capture_calls.inc"
#undef CAPTURE_CALL
};

struct Rule {
  cudaError_t code;
  const char* situation;
  const char* remedy;
};
const std::map<std::string, Rule> kRules = {
#define CAPTURE_RULE(id, name, code, situation, remedy) {#id, {code, situation, remedy}},
#define CAPTURE_GATE CAPTURE_RULE
#include "rules/capture_rules.inc"
#undef CAPTURE_GATE
#undef CAPTURE_RULE
};

// What the misuses use; made before the capture, given back after it.
struct Rig {
  Rig() {
    GCAP_EXPECT_CUDA(cudaMalloc(&device, kBytes));
    GCAP_EXPECT_CUDA(cudaMallocHost(&host, kBytes));
    GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&inside, cudaEventDisableTiming));
    GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&outside, cudaEventDisableTiming));
    GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&elsewhere, cudaEventDisableTiming));
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    GCAP_EXPECT_CUDA(cudaMemPoolCreate(&pool, &properties));
    EXPECT_EQ(cublasCreate(&blas), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtCreate(&blas_lt), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cudnnCreate(&dnn), CUDNN_STATUS_SUCCESS);
    GCAP_EXPECT_CUDA(cudaEventRecord(outside, other.get()));
    cudaGraphNode_t node = nullptr;
    GCAP_EXPECT_CUDA(cudaGraphCreate(&graph, 0));
    GCAP_EXPECT_CUDA(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
    GCAP_EXPECT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;
  ~Rig() {
    if (made_device != nullptr) {
      GCAP_EXPECT_CUDA(cudaFree(made_device));
    }
    if (made_host != nullptr) {
      GCAP_EXPECT_CUDA(cudaFreeHost(made_host));
    }
    if (made_dnn != nullptr) {
      EXPECT_EQ(cudnnDestroy(made_dnn), CUDNN_STATUS_SUCCESS);
    }
    for (cublasHandle_t handle : {blas, made_blas}) {
      if (handle != nullptr) {
        EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
      }
    }
    if (blas_lt != nullptr) {
      EXPECT_EQ(cublasLtDestroy(blas_lt), CUBLAS_STATUS_SUCCESS);
    }
    if (dnn != nullptr) {
      EXPECT_EQ(cudnnDestroy(dnn), CUDNN_STATUS_SUCCESS);
    }
    GCAP_EXPECT_CUDA(cudaGraphExecDestroy(exec));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    GCAP_EXPECT_CUDA(cudaMemPoolDestroy(pool));
    for (cudaEvent_t event : {inside, outside, elsewhere}) GCAP_EXPECT_CUDA(cudaEventDestroy(event));
    if (device != nullptr) {
      GCAP_EXPECT_CUDA(cudaFree(device));
    }
    if (host != nullptr) {
      GCAP_EXPECT_CUDA(cudaFreeHost(host));
    }
  }

  static constexpr size_t kBytes = 64;
  const RawStream stream;  // captures
  const RawStream other;   // does not
  void *device = nullptr, *host = nullptr;
  void *made_device = nullptr, *made_host = nullptr;
  cudaEvent_t inside = nullptr, outside = nullptr, elsewhere = nullptr;  // where each is recorded
  cudaMemPool_t pool = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cublasHandle_t blas = nullptr, made_blas = nullptr;
  cublasLtHandle_t blas_lt = nullptr;
  cudnnHandle_t dnn = nullptr, made_dnn = nullptr;
  uint64_t threshold = 0;
  int number = 0;
  unsigned flags = 0;
  unsigned long long id = 0;
};

// A library's call, whose status says nothing of CUDA: noted as the ops do, whatever it answered.
template <typename Call>
void Library(const char* text, Call call) {
  (void)call();
  (void)cudaGetLastError();
  GCAP_CAPTURE_NOTE(text, nullptr);
}
void Cuda(gcap_status_t status) { gcap_status_ignore(status); }

// How each function is misused; the text that is noted begins with its name.
using Misuse = std::function<void(Rig&)>;
const std::map<std::string, Misuse> kMisuses = {
    {"cudaStreamBeginCapture R1",
     [](Rig&) { Cuda(GCAP_CUDA(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeThreadLocal))); }},
    {"cudaStreamBeginCapture R2",
     [](Rig& r) { Cuda(GCAP_CUDA(cudaStreamBeginCapture(r.stream.get(), cudaStreamCaptureModeThreadLocal))); }},
    {"cudaGraphLaunch R11", [](Rig& r) { Cuda(GCAP_CUDA(cudaGraphLaunch(r.exec, r.stream.get()))); }},
    {"cudaGraphUpload R11", [](Rig& r) { Cuda(GCAP_CUDA(cudaGraphUpload(r.exec, r.stream.get()))); }},
    {"cudaStreamSynchronize R11", [](Rig& r) { Cuda(GCAP_CUDA(cudaStreamSynchronize(r.stream.get()))); }},
    {"cudaStreamQuery R11", [](Rig& r) { Cuda(GCAP_CUDA(cudaStreamQuery(r.stream.get()))); }},
    {"cudaDeviceSynchronize R12", [](Rig&) { Cuda(GCAP_CUDA(cudaDeviceSynchronize())); }},
    {"cudaEventQuery R13",
     [](Rig& r) {
       Cuda(GCAP_CUDA(cudaEventRecord(r.inside, r.stream.get())));
       Cuda(GCAP_CUDA(cudaEventQuery(r.inside)));
     }},
    {"cudaEventSynchronize R13",
     [](Rig& r) {
       Cuda(GCAP_CUDA(cudaEventRecord(r.inside, r.stream.get())));
       Cuda(GCAP_CUDA(cudaEventSynchronize(r.inside)));
     }},
    {"cudaStreamWaitEvent R16",
     [](Rig& r) {
       cudaGraph_t graph = nullptr;
       GCAP_EXPECT_CUDA(cudaStreamBeginCapture(r.other.get(), cudaStreamCaptureModeThreadLocal));
       GCAP_EXPECT_CUDA(cudaEventRecord(r.elsewhere, r.other.get()));
       Cuda(GCAP_CUDA(cudaStreamWaitEvent(r.stream.get(), r.elsewhere, 0)));
       EXPECT_NE(cudaStreamEndCapture(r.other.get(), &graph), cudaSuccess);
       (void)cudaGetLastError();
     }},
    {"cudaStreamWaitEvent R17", [](Rig& r) { Cuda(GCAP_CUDA(cudaStreamWaitEvent(r.stream.get(), r.outside, 0))); }},
    {"cudaStreamAddCallback R20",
     [](Rig& r) {
       const cudaStreamCallback_t callback = [](cudaStream_t, cudaError_t, void*) {};
       Cuda(GCAP_CUDA(cudaStreamAddCallback(r.stream.get(), callback, nullptr, 0)));
     }},
    {"cudaStreamAttachMemAsync R21",
     [](Rig& r) { Cuda(GCAP_CUDA(cudaStreamAttachMemAsync(r.stream.get(), r.device, 0, cudaMemAttachSingle))); }},
    {"cudaMemcpyBatchAsync R22",
     [](Rig& r) {
       void* to = r.device;
       const void* from = r.host;
       size_t bytes = Rig::kBytes, index = 0;
       cudaMemcpyAttributes attributes = {};
       attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
       Cuda(GCAP_CUDA(cudaMemcpyBatchAsync(&to, &from, &bytes, 1, &attributes, &index, 1, r.stream.get())));
     }},
    {"cudaMemcpy3DBatchAsync R22",
     [](Rig& r) {
       cudaMemcpy3DBatchOp op = {};
       op.dst.type = op.src.type = cudaMemcpyOperandTypePointer;
       op.dst.op.ptr.ptr = r.device;
       op.src.op.ptr.ptr = r.host;
       op.extent = {Rig::kBytes, 1, 1};
       op.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
       Cuda(GCAP_CUDA(cudaMemcpy3DBatchAsync(1, &op, 0, r.stream.get())));
     }},
    {"cudaStreamGetFlags R24", [](Rig& r) { Cuda(GCAP_CUDA(cudaStreamGetFlags(r.stream.get(), &r.flags))); }},
    {"cudaStreamGetId R24", [](Rig& r) { Cuda(GCAP_CUDA(cudaStreamGetId(r.stream.get(), &r.id))); }},
    {"cudaStreamGetDevice R24", [](Rig& r) { Cuda(GCAP_CUDA(cudaStreamGetDevice(r.stream.get(), &r.number))); }},
    {"cudaMalloc R26", [](Rig& r) { Cuda(GCAP_CUDA(cudaMalloc(&r.made_device, 64))); }},
    {"cudaFree R28", [](Rig& r) { Cuda(GCAP_CUDA(cudaFree(r.device))); }},
    {"cudaFreeHost R28", [](Rig& r) { Cuda(GCAP_CUDA(cudaFreeHost(r.host))); }},
    {"cudaMemPoolGetAttribute R35",
     [](Rig& r) { Cuda(GCAP_CUDA(cudaMemPoolGetAttribute(r.pool, cudaMemPoolAttrReleaseThreshold, &r.threshold))); }},
    {"cudaMemPoolSetAttribute R35",
     [](Rig& r) { Cuda(GCAP_CUDA(cudaMemPoolSetAttribute(r.pool, cudaMemPoolAttrReleaseThreshold, &r.threshold))); }},
    {"cudaMemPoolTrimTo R35", [](Rig& r) { Cuda(GCAP_CUDA(cudaMemPoolTrimTo(r.pool, 0))); }},
    {"cudaHostAlloc R36", [](Rig& r) { Cuda(GCAP_CUDA(cudaHostAlloc(&r.made_host, 64, 0))); }},
    {"cudaMallocHost R36", [](Rig& r) { Cuda(GCAP_CUDA(cudaMallocHost(&r.made_host, 64))); }},
    {"cudaLaunchKernel R63",
     [](Rig& r) {
       const void* function = reinterpret_cast<const void*>(gcap_kernel_relu_f32);
       Cuda(GCAP_CUDA(cudaLaunchKernel(function, dim3(0, 1, 1), dim3(1, 1, 1), nullptr, 0, r.stream.get())));
     }},
    {"cudaLaunchKernelExC R63",
     [](Rig& r) {
       cudaLaunchConfig_t config = {};
       config.blockDim = dim3(1, 1, 1);
       config.stream = r.stream.get();
       const void* function = reinterpret_cast<const void*>(gcap_kernel_relu_f32);
       Cuda(GCAP_CUDA(cudaLaunchKernelExC(&config, function, nullptr)));
     }},
    {"cublasCreate R42",
     [](Rig& r) {
       Library("cublasCreate(&blas)", [&r] {
         const cublasStatus_t status = cublasCreate(&r.made_blas);
         if (status != CUBLAS_STATUS_SUCCESS) r.made_blas = nullptr;
         return status;
       });
     }},
    {"cublasDestroy R42",
     [](Rig& r) { Library("cublasDestroy(blas)", [&r] { return cublasDestroy(std::exchange(r.blas, nullptr)); }); }},
    {"cublasLtDestroy R42",
     [](Rig& r) {
       Library("cublasLtDestroy(blas_lt)", [&r] { return cublasLtDestroy(std::exchange(r.blas_lt, nullptr)); });
     }},
    {"cudnnCreate R42",
     [](Rig& r) {
       Library("cudnnCreate(&dnn)", [&r] {
         const cudnnStatus_t status = cudnnCreate(&r.made_dnn);
         if (status != CUDNN_STATUS_SUCCESS) r.made_dnn = nullptr;
         return status;
       });
     }},
    {"cudnnDestroy R42",
     [](Rig& r) { Library("cudnnDestroy(dnn)", [&r] { return cudnnDestroy(std::exchange(r.dnn, nullptr)); }); }},
    {"cudaDeviceSetLimit R49", [](Rig&) { Cuda(GCAP_CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 2048))); }},
};

TEST_F(CaptureCalls, EachRowOfTheTableIsToldWithItsRuleAndRemedy) {
  std::map<std::string, Misuse> left = kMisuses;
  for (const Row& row : kRows) {
    const std::string name = std::string(row.function) + " " + row.rule;
    SCOPED_TRACE(name);
    const auto misuse = left.find(name);
    if (misuse == left.end()) {
      ADD_FAILURE() << "no misuse for this row";
      continue;
    }
    for (const uint32_t ledger_calls : {kDefaultCalls, 1u, 0u}) {
      // Only the ledger hears of a library that breaks a capture without a word.
      if (ledger_calls == 0 && kRules.at(row.rule).code == cudaErrorStreamCaptureInvalidated) continue;
      Rig rig;
      gcap_capture_t* capture = Begin(rig.stream.get(), ledger_calls);
      misuse->second(rig);
      GCAP_CAPTURE_NOTE("an innocent one", nullptr);
      const Outcome outcome = End(capture);
      EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
      const Rule& rule = kRules.at(row.rule);
      EXPECT_TRUE(outcome.Names(std::string(row.function) + "(")) << outcome.message;
      EXPECT_TRUE(outcome.Names(std::string("(rule ") + row.rule + ": " + rule.situation)) << outcome.message;
      EXPECT_TRUE(outcome.Names(std::string("remedy: ") + rule.remedy)) << outcome.message;
      EXPECT_TRUE(outcome.Names(std::string("; see docs/rules/r") + (row.rule + 1) + ".md)")) << outcome.message;
      EXPECT_FALSE(outcome.Names("innocent")) << outcome.message;
      // What the runtime answers is the rule's code, or the silence of a library that broke the capture all the same.
      EXPECT_EQ(outcome.cuda_error, rule.code) << outcome.message;
      ExpectUsable(rig.stream);
    }
    left.erase(misuse);
  }
  for (const auto& entry : left) ADD_FAILURE() << entry.first << " is misused, and no row of the table";
}

// Functions without a row.
TEST_F(CaptureCalls, OfNoRowAreToldByTheCodeThatTheyAnswered) {
  std::vector<char> pageable(4096);
  void* device = nullptr;
  cudaStream_t blocking = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(&device, 64));
  GCAP_EXPECT_CUDA(cudaStreamCreate(&blocking));
  const struct {
    const char* rule;
    std::function<gcap_status_t()> call;
  } rows[] = {
      {"(rule R15: ", [&] { return GCAP_CUDA(cudaMemcpy(device, pageable.data(), 64, cudaMemcpyHostToDevice)); }},
      {"(rule R26: ", [&] { return GCAP_CUDA(cudaHostRegister(pageable.data(), pageable.size(), 0)); }},
  };
  for (const auto& row : rows) {
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(blocking, nullptr, &capture));
    gcap_status_ignore(row.call());
    const Outcome outcome = End(capture);
    EXPECT_TRUE(outcome.Names(row.rule)) << outcome.message;
  }
  GCAP_EXPECT_CUDA(cudaStreamDestroy(blocking));
  GCAP_EXPECT_CUDA(cudaFree(device));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
