// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The published defects of graph_published_test, found by the search: the memory that a graph has is replaced, and not
// unmapped, since a GPU faults otherwise. What a graph writes to is somebody else's by then, and is named as that.

#include <string>
#include <thread>
#include <vector>

#include "test/graph/verify_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class BisectPublished : public VerifyTest {
 protected:
  void SetUp() override {
    VerifyTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    verify_.bisect = true;
    CreateManager();
    named_ = {Named("x", x_), Named("y", y_)};
  }
  void Capture(const WorkWith& work, int id = kId) {
    const Outcome run = RunVerified(work, id);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
  }
  // The step of the pointer that the graph keeps, and where among its arguments that is.
  void ExpectStale(const WorkWith& work, size_t step, const std::string& place, int id = kId) {
    const Outcome run = RunVerified(work, id);
    EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
    EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_STALE_POINTER) << run.message;
    EXPECT_EQ(report_.step, step) << run.message;
    EXPECT_EQ(report_.node, step) << run.message;
    EXPECT_TRUE(run.Names(place + " is ")) << run.message;
  }
  // x to the workspace, and from there to y.
  WorkWith Through(const Floats* const* workspace) {
    return [this, workspace](const gcap_run_resources_t* r) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_.get(), (*workspace)->get(), 1));
      return AddTo(r->cuda_stream, (*workspace)->get(), y_.get(), 1);
    };
  }
  static gcap_status_t Copy(const gcap_run_resources_t* r, void* to, const void* from) {
    return GCAP_CUDA(cudaMemcpyAsync(to, from, kFloatsBytes, cudaMemcpyDefault, r->cuda_stream));
  }
  // A graph whose workspace was replaced writes to what a tensor has there now.
  void ExpectTensorOverwritten(int id = kId) {
    const Floats old, fresh;
    const Floats* workspace = &old;
    const WorkWith work = Through(&workspace);
    Capture(work, id);
    workspace = &fresh;
    old.Fill(70);
    named_.push_back(Named("a tensor", old));
    ExpectStale(work, 0, "argument 1", id);
    EXPECT_EQ(old.value(), 70) << "put back, and not written by the work";
    EXPECT_EQ(y_.value(), 5);
  }

  const Floats x_{3}, y_;
  const LogCatcher log_;
};

TEST_F(BisectPublished, Vllm55336WorkspaceReplacedAfterTheCapture) { ExpectTensorOverwritten(); }

TEST_F(BisectPublished, Vllm44053WorkspaceGrowsInALaterCapture) {
  const Floats small, large;
  const Floats* workspace = &small;
  const WorkWith work = Through(&workspace);
  Capture(work, 1);
  workspace = &large;
  Capture(work, 8);
  small.Fill(70);
  named_.push_back(Named("a tensor", small));
  ExpectStale(work, 0, "argument 1", 1);
  const Outcome run = RunVerified(work, 8);
  EXPECT_TRUE(run.ok()) << run.message;
}

TEST_F(BisectPublished, FlashInfer4553WorkspaceResizedAndItsPlaceTaken) { ExpectTensorOverwritten(5); }

TEST_F(BisectPublished, OnnxRuntime32121PinnedStagingBufferRecycled) {
  float* staging[2] = {};
  for (float*& buffer : staging) {
    GCAP_EXPECT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&buffer), kFloatsBytes));
    for (uint32_t i = 0; i < kFloats; ++i) buffer[i] = buffer == staging[0] ? 1.0f : 2.0f;
  }
  int run = 0;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(r, x_.get(), 1));
    return Copy(r, y_.get(), staging[run]);
  };
  Capture(work);
  run = 1;
  ExpectStale(work, 1, "the source");
  EXPECT_EQ(y_.value(), 2);
  DestroyManager();
  for (float* buffer : staging) GCAP_EXPECT_CUDA(cudaFreeHost(buffer));
}

TEST_F(BisectPublished, PyTorch172156PageableMemoryBehindACapturedCopy) {
  const std::vector<float> first(kFloats, 1), second(kFloats, 2);
  const std::vector<float>* temporary = &first;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Copy(r, y_.get(), temporary->data()));
    return Add(r, x_.get(), 1);
  };
  Capture(work);
  temporary = &second;
  ExpectStale(work, 0, "the source");
  EXPECT_EQ(y_.value(), 2);
}

// The frames of two calls of the function that issues the copy.
TEST_F(BisectPublished, Paddle78568HostLocalVariableBehindACapturedCopy) {
  float frames[2][kFloats];
  for (uint32_t i = 0; i < kFloats; ++i) {
    frames[0][i] = 1;
    frames[1][i] = 2;
  }
  int depth = 0;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(r, x_.get(), 1));
    return Copy(r, y_.get(), frames[depth]);
  };
  Capture(work);
  depth = 1;
  ExpectStale(work, 1, "the source");
}

TEST_F(BisectPublished, OnnxRuntimeGenai2446BuffersThatAlternate) {
  int step = 0;
  const WorkWith work = [&](const gcap_run_resources_t* r) {
    const Floats &past = step % 2 == 0 ? x_ : y_, &present = step % 2 == 0 ? y_ : x_;
    return AddTo(r->cuda_stream, past.get(), present.get(), 1);
  };
  Capture(work);
  EXPECT_EQ(y_.value(), 4);
  step = 1;
  ExpectStale(work, 0, "argument 0");
  EXPECT_EQ(x_.value(), 5);
}

// The end of another graph gives the workspace back, and a tensor gets it.
TEST_F(BisectPublished, PyTorch193402WorkspaceFreedWithAnotherGraph) {
  const Floats shared, fresh;
  const Floats* workspace = &shared;
  const WorkWith work = Through(&workspace);
  Capture(work, 0);
  Capture(work, 1);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 1));
  workspace = &fresh;
  shared.Fill(70);
  named_.push_back(Named("a tensor", shared));
  ExpectStale(work, 0, "argument 1", 0);
}

TEST_F(BisectPublished, PyTorch192061WorkspaceOfAThreadThatHasExited) {
  const Floats of_thread, of_caller;
  const Floats* workspace = &of_thread;
  const WorkWith work = Through(&workspace);
  std::thread([&] { Capture(work); }).join();
  workspace = &of_caller;
  of_thread.Fill(70);
  named_.push_back(Named("a tensor", of_thread));
  ExpectStale(work, 0, "argument 1");
}

// Each call takes the block that is free.
TEST_F(BisectPublished, TensorRtLlm15534WorkspaceOfOneCall) {
  const Floats blocks[2];
  size_t free = 0;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    const Floats* workspace = &blocks[free];
    GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_.get(), workspace->get(), 1));
    return AddTo(r->cuda_stream, workspace->get(), y_.get(), 1);
  };
  Capture(work);
  free = 1;
  named_.push_back(Named("a tensor", blocks[0]));
  blocks[0].Fill(70);
  ExpectStale(work, 0, "argument 1");
}

// Input and output come from the pool that was flushed.
TEST_F(BisectPublished, LlamaCpp26771PoolFlushed) {
  const Floats old_input(10), old_output, input(20), output;
  const Floats *in = &old_input, *out = &old_output;
  const WorkWith work = [&](const gcap_run_resources_t* r) { return AddTo(r->cuda_stream, in->get(), out->get(), 1); };
  named_ = {Named("output", output), Named("a tensor", old_output)};
  Capture(work);
  in = &input;
  out = &output;
  ExpectStale(work, 0, "argument 0");
  EXPECT_EQ(output.value(), 21);
}

TEST_F(BisectPublished, Vllm53197TensorsMadeAnewAtAWakeUp) {
  const Floats before(10), after(20);
  const Floats* layout = &before;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(r, x_.get(), 1));
    return AddTo(r->cuda_stream, layout->get(), y_.get(), 1);
  };
  Capture(work);
  layout = &after;
  ExpectStale(work, 1, "argument 0");
}

// Each replay overwrites the backup, which the step itself does not touch.
TEST_F(BisectPublished, CubeCl1612BackupInThePlaceOfAFreedIntermediate) {
  const Floats first, second;
  const Floats* intermediate = &first;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(intermediate->get(), 0xee, kFloatsBytes, r->cuda_stream)));
    return Copy(r, y_.get(), intermediate->get());
  };
  Capture(work);
  intermediate = &second;
  first.Fill(7);
  named_.push_back(Named("backup", first));
  ExpectStale(work, 0, "the destination");
  EXPECT_EQ(first.value(), 7);
}

// The pool keeps the block, since another step has it by now.
TEST_F(BisectPublished, Imp1648StreamOrderedMemoryOfOneStep) {
  void* steps[2] = {};
  for (void*& step : steps) {
    GCAP_EXPECT_CUDA(cudaMallocAsync(&step, kFloatsBytes, stream_->get()));
    GCAP_EXPECT_CUDA(cudaMemsetAsync(step, step == steps[0] ? 0x11 : 0x22, kFloatsBytes, stream_->get()));
  }
  int step = 0;
  const WorkWith work = [&](const gcap_run_resources_t* r) { return Copy(r, y_.get(), steps[step]); };
  Capture(work);
  step = 1;
  ExpectStale(work, 0, "the source");
  DestroyManager();
  for (void* memory : steps) GCAP_EXPECT_CUDA(cudaFreeAsync(memory, stream_->get()));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
