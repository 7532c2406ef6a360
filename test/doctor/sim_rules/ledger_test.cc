// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The ledger of a capture scope through the analyser: the same call, rule and words as in the scope's own message.
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "gcap/capture.h"
#include "rules/rules.h"
#include "test/base/device_work.h"
#include "test/doctor/sim_rules/logged.h"

namespace gcap {
namespace testing {
namespace {

struct Ledger {
  std::string path, text;
  std::string message;  // of the scope's end
};

struct Step {
  gcap_capture_t* capture;
  std::string path;
};

void WriteAtTheEnd(void* user, bool) {
  const Step* step = static_cast<Step*>(user);
  gcap_status_t status = gcap_capture_write_events(step->capture, step->path.c_str());
  EXPECT_EQ(status, nullptr) << gcap_status_message(status);
  gcap_status_free(status);
}

// The ledger of a scope in which the work was done, written before its end or by a close step.
Ledger Write(bool at_the_end, const std::function<void(cudaStream_t)>& work) {
  const RawStream stream;
  Step step = {nullptr, ::testing::TempDir() + "/ledger.txt"};
  gcap_status_ignore(gcap_capture_begin(stream.get(), nullptr, &step.capture));
  if (at_the_end) gcap_status_ignore(gcap_capture_on_close(step.capture, WriteAtTheEnd, &step));
  work(stream.get());
  if (!at_the_end) WriteAtTheEnd(&step, false);
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  gcap_status_t status = gcap_capture_end(step.capture, &graph, &retained);
  Ledger ledger = {step.path, "", status != nullptr ? gcap_status_message(status) : ""};
  gcap_status_free(status);
  if (graph != nullptr) {
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  }
  gcap_retained_release(retained);
  std::ostringstream text;
  text << std::ifstream(step.path).rdbuf();
  ledger.text = text.str();
  unlink(step.path.c_str());
  return ledger;
}

void ExpectCulprit(const Ledger& ledger, const std::string& function, const std::string& id) {
  const Logged logged(ledger.text);
  const gcap_doctor_finding_t* finding = logged.Find(GCAP_DOCTOR_FINDING_CULPRIT, function);
  ASSERT_NE(finding, nullptr) << logged.Findings() << ledger.text;
  EXPECT_TRUE(finding->is_certain);
  ASSERT_NE(finding->rule, nullptr) << logged.Findings();
  EXPECT_EQ(finding->rule->id, id);
  EXPECT_EQ(logged.diagnosis().num_findings, 1u) << logged.Findings();
  char words[512];
  gcap_rule_print(words, sizeof(words), finding->rule);
  EXPECT_NE(ledger.message.find(words), std::string::npos) << ledger.message;
  const gcap_doctor_event_call_t& call = logged.recording().calls[finding->call];
  const uint32_t frame = gcap_doctor_recording_c_frame(&logged.recording(), call.stack);
  ASSERT_LT(frame, logged.recording().num_frames);
  EXPECT_STREQ(logged.recording().frames[frame].file, __FILE__);
}

TEST(LedgerFindings, HaveTheLabelsOfCalls) {
  const Ledger ledger = Write(true, [](cudaStream_t) {
    void* memory = nullptr;
    GCAP_CAPTURE_NOTE("before", nullptr);
    gcap_label("decoder");
    GCAP_CAPTURE_NOTE("first", nullptr);
    GCAP_CAPTURE_NOTE("second", nullptr);
    gcap_label("layer 3");
    gcap_status_ignore(GCAP_CUDA(cudaMalloc(&memory, 64)));
    gcap_label(nullptr);
    gcap_label(nullptr);
    GCAP_CAPTURE_NOTE("behind", nullptr);
  });
  const Logged logged(ledger.text);
  const gcap_doctor_recording_t& recording = logged.recording();
  ASSERT_EQ(recording.num_ranges, 2u) << ledger.text;
  EXPECT_STREQ(recording.ranges[0].text, "decoder");
  EXPECT_STREQ(recording.ranges[1].text, "decoder > layer 3");
  ASSERT_EQ(recording.num_calls, 7u) << ledger.text;
  const uint32_t ranges[] = {GCAP_DOCTOR_NONE, GCAP_DOCTOR_NONE, 0, 0, 1, GCAP_DOCTOR_NONE, GCAP_DOCTOR_NONE};
  for (size_t i = 0; i < recording.num_calls; ++i) EXPECT_EQ(recording.calls[i].range, ranges[i]) << i;
  EXPECT_EQ(recording.calls[4].says, std::string("invalidates capture 1"));
}

TEST(LedgerFindings, NameTheCallThatWasRefused) {
  for (const bool at_the_end : {false, true}) {
    ExpectCulprit(Write(at_the_end,
                        [](cudaStream_t) {
                          void* memory = nullptr;
                          gcap_status_ignore(GCAP_CUDA(cudaMalloc(&memory, 64)));
                        }),
                  "cudaMalloc", "R26");
  }
}

// It answered success: the ledger asked after it whether the capture goes on.
TEST(LedgerFindings, NameTheLibrarysCallThatAnsweredSuccess) {
  for (const bool at_the_end : {false, true}) {
    cublasLtHandle_t handle = nullptr;
    ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
    ExpectCulprit(Write(at_the_end,
                        [handle](cudaStream_t) {
                          EXPECT_EQ(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
                          GCAP_CAPTURE_NOTE("cublasLtDestroy(handle)", nullptr);
                          GCAP_CAPTURE_NOTE("an innocent one", nullptr);
                        }),
                  "cublasLtDestroy", "R42");
  }
}

TEST(LedgerFindings, AreNoneOfAHealthyCapture) {
  const Ledger ledger = Write(true, [](cudaStream_t stream) { GCAP_CAPTURE_NOTE("my_kernel<<<1, 32>>>", stream); });
  EXPECT_EQ(ledger.message, "");
  const Logged logged(ledger.text);
  EXPECT_EQ(logged.diagnosis().num_captures, 1u);
  EXPECT_EQ(logged.diagnosis().num_findings, 0u) << logged.Findings();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
