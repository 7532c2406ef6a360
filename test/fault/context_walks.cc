// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/thread_context.h.

#include "gcap/thread_context.h"

#include "test/fault/stream_scene.h"

namespace gcap {
namespace testing {
namespace {

// A set of contexts beside the streams of the other walks.
class ContextScene : public StreamScene {
 public:
  ContextScene() { GCAP_EXPECT_OK(Create()); }
  gcap_status_t Create() {
    gcap_thread_contexts_options_t options;
    gcap_thread_contexts_options_init(&options);
    options.graph.min_num_runs_before_capture = 0;
    return gcap_thread_contexts_create(&options, &contexts);
  }
  void ExpectNextRunWorks() override {
    StreamScene::ExpectNextRunWorks();
    if (contexts == nullptr) return;
    gcap_thread_context_t* context = nullptr;
    GCAP_ASSERT_OK(gcap_thread_contexts_get(contexts, &context));
    gcap_stream_t* own = gcap_thread_context_stream(context);
    job.set_input(21);
    GCAP_EXPECT_CUDA(job.Issue(gcap_stream_handle(own)));
    GCAP_EXPECT_OK(gcap_stream_synchronize(own));
    EXPECT_EQ(job.output(), 21);
  }
  gcap_status_t End() override {
    gcap_status_t status = Destroy();
    return gcap_status_join(status, StreamScene::End());
  }
  gcap_status_t Destroy() {
    gcap_thread_contexts_t* ended = contexts;
    contexts = nullptr;
    return gcap_thread_contexts_destroy(ended);
  }

  gcap_thread_contexts_t* contexts = nullptr;
};

using S = ContextScene;

// This thread's context, with a graph.
void Used(S* s) {
  gcap_thread_context_t* context = nullptr;
  GCAP_ASSERT_OK(gcap_thread_contexts_get(s->contexts, &context));
  gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
  const cudaStream_t stream = gcap_stream_handle(gcap_thread_context_stream(context));
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_EXPECT_OK(gcap_graph_manager_begin_run(graphs, S::kId, stream, &kind));
  GCAP_EXPECT_CUDA(s->job.Issue(stream));
  GCAP_EXPECT_OK(gcap_graph_manager_end_run(graphs, nullptr, true));
}

void WithoutSet(S* s) { GCAP_EXPECT_OK(s->Destroy()); }

gcap_status_t Get(S* s) {
  gcap_thread_context_t* context = nullptr;
  return gcap_thread_contexts_get(s->contexts, &context);
}

}  // namespace

std::vector<Walk> ContextWalks() {
  std::vector<Walk> walks;
  walks.push_back(
      MakeWalk<S>("gcap_thread_contexts_create", "", WithoutSet, [](S* s) { return s->Create(); }).MakesNoCall());
  walks.push_back(MakeWalk<S>("gcap_thread_contexts_get", "first use", nullptr, Get));
  walks.push_back(MakeWalk<S>("gcap_thread_contexts_get", "again", Used, Get).MakesNoCall());
  walks.push_back(MakeWalk<S>("gcap_thread_contexts_destroy", "", Used, [](S* s) { return s->Destroy(); })
                      .RecoversFrom({"cudaStreamIsCapturing"})
                      .WithoutALog());
  return walks;
}

}  // namespace testing
}  // namespace gcap
