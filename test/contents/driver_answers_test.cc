// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a driver may answer and the simulator's does not: the linker sends the question for the driver's functions
// through here (--wrap).
#include <cstring>
#include <string>

#include "test/contents/diff_rig.h"

extern "C" {
#include "lib/contents/contents.h"
#include "lib/contents/driver.h"

static int (*real_get_kernel)(cudaGraphNode_t node, gcap_driver_kernel_t* out_kernel);
static void (*change_kernel)(gcap_driver_kernel_t* kernel);
static bool lookup_fails;

static int GetKernel(cudaGraphNode_t node, gcap_driver_kernel_t* out_kernel) {
  const int answer = real_get_kernel(node, out_kernel);
  if (answer == 0 && change_kernel != nullptr) change_kernel(out_kernel);
  return answer;
}

cudaError_t __real_cudaGetDriverEntryPointByVersion(const char* name, void** out_function, unsigned version,
                                                    unsigned long long flags, cudaDriverEntryPointQueryResult* found);

cudaError_t __wrap_cudaGetDriverEntryPointByVersion(const char* name, void** out_function, unsigned version,
                                                    unsigned long long flags, cudaDriverEntryPointQueryResult* found) {
  if (lookup_fails) return cudaErrorUnknown;
  EXPECT_EQ(version, 12040u);
  EXPECT_EQ(flags, static_cast<unsigned long long>(cudaEnableDefault));
  const cudaError_t error = __real_cudaGetDriverEntryPointByVersion(name, out_function, version, flags, found);
  if (error != cudaSuccess || std::strcmp(name, "cuGraphKernelNodeGetParams") != 0) return error;
  real_get_kernel = reinterpret_cast<decltype(real_get_kernel)>(*out_function);
  *out_function = reinterpret_cast<void*>(GetKernel);
  return cudaSuccess;
}
}  // extern "C"

namespace gcap {
namespace testing {
namespace {

class DriverAnswers : public Diff {
 protected:
  // Before anything else: functions that were found are never asked for again.
  static void SetUpTestSuite() {
    gcap_driver_t driver;
    lookup_fails = true;
    const Outcome outcome(gcap_driver_get(&driver));
    lookup_fails = false;
    refusal_ = outcome.message;
    refusal_error_ = outcome.cuda_error;
  }
  void TearDown() override {
    change_kernel = nullptr;
    Diff::TearDown();
  }

  static std::string refusal_;
  static cudaError_t refusal_error_;
};

std::string DriverAnswers::refusal_;
cudaError_t DriverAnswers::refusal_error_;

TEST_F(DriverAnswers, AFunctionThatCannotBeAskedForIsTheRuntimesError) {
  EXPECT_EQ(refusal_error_, cudaErrorUnknown) << refusal_;
  EXPECT_NE(refusal_.find("cudaGetDriverEntryPointByVersion"), std::string::npos) << refusal_;
}

// Success, and neither a list of the arguments nor a buffer with them.
TEST_F(DriverAnswers, ArgumentsThatAreNotToldAreUnknown) {
  const Graph graph(Add());
  void (*const changes[])(gcap_driver_kernel_t*) = {
      [](gcap_driver_kernel_t* kernel) { kernel->params = nullptr; },
      [](gcap_driver_kernel_t* kernel) {
        static void* none[8] = {};
        kernel->params = none;
      },
      [](gcap_driver_kernel_t* kernel) { kernel->function = nullptr; },
  };
  for (const auto change : changes) {
    change_kernel = change;
    gcap_contents_t contents = {};
    GCAP_EXPECT_OK(gcap_contents_read(graph.get(), /*with_arguments=*/true, &contents));
    ASSERT_EQ(contents.count, 1u);
    EXPECT_TRUE(contents.nodes[0].is_known);
    EXPECT_FALSE(contents.nodes[0].has_arguments);
    EXPECT_EQ(contents.nodes[0].num_parts, 0u);
    gcap_contents_free(&contents);
  }
  const Graph other(Add());
  change_kernel = changes[0];
  EXPECT_EQ(TextsOf(graph, other),
            (Texts{"node 0 of 1, kernel gcap_kernel_add_scalar: arguments: not told -> not told"}));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
