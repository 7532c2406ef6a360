// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a driver may answer and the simulator's does not: the linker sends the question for the driver's functions
// through here (--wrap).
#include <cstring>
#include <string>
#include <vector>

#include "test/contents/diff_rig.h"

extern "C" {
#include "lib/contents/contents.h"
#include "lib/contents/driver.h"
#include "lib/contents/inner.h"

static int (*real_get_kernel)(cudaGraphNode_t node, gcap_driver_kernel_t* out_kernel);
static void (*change_kernel)(gcap_driver_kernel_t* kernel);
static bool lookup_fails, lookup_finds_none;

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
  if (lookup_finds_none) {
    *found = cudaDriverEntryPointVersionNotSufficent;
    return cudaSuccess;
  }
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
    lookup_fails = true;
    AskAll(&failures_);
    lookup_fails = false;
    lookup_finds_none = true;
    AskAll(&refusals_);
    lookup_finds_none = false;
  }
  // What each caller of the driver's functions answers.
  static void AskAll(std::vector<Outcome>* answers) {
    gcap_driver_t driver;
    gcap_driver_allocation_t allocation;
    gcap_moving_buffer_t buffer = {"x", 0x10000, 256, 256, {}};
    gcap_layout_t layout = {};
    gcap_stand_ins_t stand_ins = {};
    GCAP_EXPECT_OK(gcap_layout_create(&buffer, 1, &layout));
    answers->emplace_back(gcap_driver_get(&driver));
    answers->emplace_back(gcap_driver_find_allocation(0x10000, &allocation));
    answers->emplace_back(gcap_stand_ins_create(&buffer, &layout, 0, -1, /*is_memory=*/false, &stand_ins));
    gcap_layout_free(&layout);
  }
  void TearDown() override {
    change_kernel = nullptr;
    Diff::TearDown();
  }

  static std::vector<Outcome> failures_, refusals_;
};

std::vector<Outcome> DriverAnswers::failures_, DriverAnswers::refusals_;

TEST_F(DriverAnswers, AFunctionThatCannotBeAskedForIsTheRuntimesError) {
  for (const Outcome& failure : failures_) {
    EXPECT_EQ(failure.cuda_error, cudaErrorUnknown) << failure.message;
    EXPECT_TRUE(failure.Names("cudaGetDriverEntryPointByVersion")) << failure.message;
  }
}

TEST_F(DriverAnswers, AFunctionThatAnOlderDriverLacksIsNamed) {
  for (const Outcome& refusal : refusals_) {
    EXPECT_EQ(refusal.code, GCAP_UNIMPLEMENTED) << refusal.message;
    EXPECT_TRUE(refusal.Names("the driver has no cuGraph")) << refusal.message;
  }
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
