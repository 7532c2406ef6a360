// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The file of a replay that differs from its work through the analyser: the call, its place, and the message itself.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "gcap/graph.h"
#include "gcap/graph_verify.h"
#include "test/base/device_work.h"
#include "test/doctor/sim_rules/logged.h"

namespace gcap {
namespace testing {
namespace {

struct Fill {
  void* memory;
  int value;
};

gcap_status_t Issue(void* user, const gcap_run_resources_t* resources) {
  const Fill* fill = static_cast<const Fill*>(user);
  return GCAP_CUDA(cudaMemsetAsync(fill->memory, fill->value, 64, resources->cuda_stream));
}

TEST(DifferenceFindings, AreTheMessageAtThePlaceOfTheCall) {
  const RawStream stream;
  const std::string path = ::testing::TempDir() + "/difference.events";
  Fill fill = {nullptr, 1};
  GCAP_EXPECT_CUDA(cudaMalloc(&fill.memory, 64));
  GCAP_EXPECT_CUDA(cudaMemsetAsync(fill.memory, 0, 64, stream.get()));
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  gcap_graph_manager_t* manager = nullptr;
  gcap_status_ignore(gcap_graph_manager_create(&options, &manager));
  const gcap_graph_verify_buffer_t buffer = {"filled", fill.memory, 64, GCAP_DTYPE_BOOL, 0, 0, false};
  gcap_graph_verify_t verify;
  gcap_graph_verify_init(&verify);
  verify.buffers = &buffer;
  verify.num_buffers = 1;
  verify.each = 1;
  verify.bisect = true;
  verify.events = path.c_str();
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = 3;
  run.stream = stream.get();
  run.work = Issue;
  run.user = &fill;
  run.verify = &verify;
  gcap_status_ignore(gcap_graph_manager_run(manager, &run));
  fill.value = 2;
  gcap_status_t status = gcap_graph_manager_run(manager, &run);
  EXPECT_EQ(gcap_status_code(status), GCAP_REPLAY_DIFFERS);
  const std::string message = gcap_status_message(status);
  gcap_status_free(status);
  gcap_status_ignore(gcap_graph_manager_destroy(manager));
  GCAP_EXPECT_CUDA(cudaFree(fill.memory));

  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  const Logged logged(text.str());
  const gcap_doctor_finding_t* finding = logged.Find(GCAP_DOCTOR_FINDING_DIFFERS, "cudaMemsetAsync");
  ASSERT_NE(finding, nullptr) << logged.Findings() << text.str();
  EXPECT_EQ(logged.diagnosis().num_findings, 1u) << logged.Findings();
  EXPECT_EQ(finding->sentence, message);
  const gcap_doctor_event_call_t& call = logged.recording().calls[finding->call];
  const uint32_t frame = gcap_doctor_recording_c_frame(&logged.recording(), call.stack);
  ASSERT_LT(frame, logged.recording().num_frames);
  EXPECT_STREQ(logged.recording().frames[frame].file, __FILE__);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
