// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Faulty operations, as miniatures of what published threads report: each is found, as what it is, with what says
// where. Memory that an operation loses is replaced, not unmapped, or seen by the audit before a launch: no GPU faults.

#include "gcap/graph_holes.h"
#include "test/check/operation.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kHalf = kElements / 2;

struct Faulty {
  const char* name;
  gcap_check_kind_t kind;
  const char* text;  // in the sentence
  void (*make)(Operation* operation);
};

// Values of 0 and 1, another one in each fill: seeds differ, so a count of calls decides.
gcap_status_t FillAlternately(void* user, uint64_t, void* value) {
  int32_t* const next = static_cast<int32_t*>(user);
  *static_cast<int32_t*>(value) = *next;
  *next = 1 - *next;
  return nullptr;
}

// A value of the host that is 0 in one fill and 1 in the other.
std::shared_ptr<int32_t> HostSwitch(Operation* o, const char* name) {
  auto value = std::make_shared<int32_t>(0);
  auto next = std::make_shared<int32_t>(0);
  o->HostInput(name, value.get(), GCAP_DTYPE_I32);
  o->last_input().fill = FillAlternately;
  o->last_input().fill_user = next.get();
  o->Keep(value);
  o->Keep(next);
  return value;
}

// --- What the host decided ------------------------------------------------------------------------------------------------

// paiml/aprender#2030: a scalar of the step is an argument of the launch.
void MakeStaleScalar(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto weight = HostSwitch(o, "weight");
  o->work = [=](const gcap_run_resources_t* r) { return Add(x, y, static_cast<uint64_t>(*weight), r->cuda_stream); };
}

// anthony-chaudhary/fak#1479: the number of positions is an argument of the launch.
void MakeFrozenSize(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto is_long = HostSwitch(o, "is_long");
  o->work = [=](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(Fill(y, 0, r->cuda_stream));
    return Add(x, y, 1, r->cuda_stream, *is_long != 0 ? kElements : kHalf);
  };
}

// nntrainer/nntrainer#4313: a branch on the host issues other work for other steps.
void MakeHostBranch(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto is_relu = HostSwitch(o, "is_relu");
  o->work = [=](const gcap_run_resources_t* r) {
    return *is_relu != 0 ? Relu(x, y, r->cuda_stream) : Add(x, y, 1, r->cuda_stream);
  };
}

// ikawrakow/ik_llama.cpp#2136: the source of a copy is another buffer in another step.
void MakeStaleSource(Operation* o) {
  const float* even = o->Input("even");
  const float* odd = o->Input("odd");
  float* y = o->Output("y");
  auto is_odd = HostSwitch(o, "is_odd");
  o->work = [=](const gcap_run_resources_t* r) { return Copy(y, *is_odd != 0 ? odd : even, r->cuda_stream); };
}

// meta-pytorch/MSLK#392: what the device says is read on the host outside of captures, and cached for them.
void MakeCachedDecision(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto cached = std::make_shared<float>(0.0f);
  o->work = [=](const gcap_run_resources_t* r) {
    if (!gcap_thread_is_capturing()) {
      GCAP_RETURN_IF_ERROR(Copy(cached.get(), x, r->cuda_stream, sizeof(float)));
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(r->cuda_stream)));
    }
    return Add(x, y, static_cast<uint64_t>(static_cast<int64_t>(*cached * 8)) & 0xff, r->cuda_stream);
  };
}

// paiml/realizar#198: a step is skipped while its result is valid, so a capture lacks it.
void MakeSkippedStep(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  float* quantized = o->Own()->floats();
  auto step = HostSwitch(o, "step");
  auto done = std::make_shared<int32_t>(-1);
  o->work = [=](const gcap_run_resources_t* r) {
    if (*done != *step) GCAP_RETURN_IF_ERROR(Relu(x, quantized, r->cuda_stream));
    *done = *step;
    return Add(quantized, y, 1, r->cuda_stream);
  };
}

// flashinfer-ai/flashinfer#2132, Dao-AILab/flash-attention#166: a generator's offset is the host's, and counts calls.
void MakeHostGenerator(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto offset = std::make_shared<uint64_t>(0);
  o->work = [=](const gcap_run_resources_t* r) { return Add(x, y, ++*offset & 0xff, r->cuda_stream); };
}

// --- What a capture forbids --------------------------------------------------------------------------------------------

// pytorch/pytorch#196133: the host waits for the stream in the middle.
void MakeWaitInside(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(Relu(x, y, r->cuda_stream));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(r->cuda_stream)));
    return Add(y, y, 1, r->cuda_stream);
  };
}

// A value of the device is read by a copy that waits, as .item() does.
void MakeReadsDeviceValue(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](const gcap_run_resources_t* r) {
    float first = 0;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpy(&first, x, sizeof(first), cudaMemcpyDeviceToHost)));
    return first > 0 ? Relu(x, y, r->cuda_stream) : Add(x, y, 1, r->cuda_stream);
  };
}

// kokkos/kokkos#2606: what is needed once is made in the first capture.
void MakeLazyInCapture(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto made = std::shared_ptr<void*>(new void*(nullptr), [](void** memory) {
    EXPECT_EQ(cudaFree(*memory), cudaSuccess);
    delete memory;
  });
  o->work = [=](const gcap_run_resources_t* r) {
    if (gcap_thread_is_capturing() && *made == nullptr) {
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc(made.get(), kElementBytes)));
    }
    return Relu(x, y, r->cuda_stream);
  };
}

// An event that an earlier run recorded orders this one, which a capture cannot hold.
void MakeReusedEvent(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto event = std::shared_ptr<cudaEvent_t>(new cudaEvent_t(nullptr), [](cudaEvent_t* made) {
    EXPECT_EQ(cudaEventDestroy(*made), cudaSuccess);
    delete made;
  });
  EXPECT_EQ(cudaEventCreateWithFlags(event.get(), cudaEventDisableTiming), cudaSuccess);
  o->work = [=](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamWaitEvent(r->cuda_stream, *event, 0)));
    GCAP_RETURN_IF_ERROR(Relu(x, y, r->cuda_stream));
    return GCAP_CUDA(cudaEventRecord(*event, r->cuda_stream));
  };
}

// A stream of the operation's own.
std::shared_ptr<cudaStream_t> OwnStream() {
  auto stream = std::shared_ptr<cudaStream_t>(new cudaStream_t(nullptr), [](cudaStream_t* made) {
    EXPECT_EQ(cudaStreamDestroy(*made), cudaSuccess);
    delete made;
  });
  EXPECT_EQ(cudaStreamCreateWithFlags(stream.get(), cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

// Work is forked to another stream, which nothing joins.
void MakeUnjoinedFork(Operation* o) {
  const float* x = o->Input("x");
  float *y = o->Output("y"), *z = o->Output("z");
  auto side = OwnStream();
  auto event = std::shared_ptr<cudaEvent_t>(new cudaEvent_t(nullptr), [](cudaEvent_t* made) {
    EXPECT_EQ(cudaEventDestroy(*made), cudaSuccess);
    delete made;
  });
  EXPECT_EQ(cudaEventCreateWithFlags(event.get(), cudaEventDisableTiming), cudaSuccess);
  o->work = [=](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(*event, r->cuda_stream)));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamWaitEvent(*side, *event, 0)));
    GCAP_RETURN_IF_ERROR(Add(x, z, 2, *side));
    return Relu(x, y, r->cuda_stream);
  };
}

// --- What escapes ---------------------------------------------------------------------------------------------------------

// thu-ml/SageAttention#371: kernels go to the legacy default stream, so a capture runs them and has none of them.
void MakeLegacyStream(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](const gcap_run_resources_t*) { return Relu(x, y, cudaStreamLegacy); };
}

// spiriMirror/libuipc#472: a part goes to a stream that is not the capture's, and replays have its result frozen.
void MakePartEscapes(Operation* o) {
  const float* x = o->Input("x");
  float *y = o->Output("y"), *z = o->Output("z");
  auto side = OwnStream();
  o->work = [=](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(Add(x, z, 2, *side));
    return Relu(x, y, r->cuda_stream);
  };
}

// vllm-project/vllm#53818: state belongs to the stream of the warm-up, and the capture is on another one.
void MakeRemembersStream(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto first = std::make_shared<cudaStream_t>(nullptr);
  o->work = [=](const gcap_run_resources_t* r) {
    if (*first == nullptr) *first = r->cuda_stream;
    return Relu(x, y, *first);
  };
}

// --- Host memory behind copies -------------------------------------------------------------------------------------------

// pytorch/pytorch#172156: a captured copy reads pageable memory.
void MakePageableCopy(Operation* o) {
  float* y = o->Output("y");
  auto values = std::make_shared<std::vector<float>>(kElements, 3.0f);
  o->work = [=](const gcap_run_resources_t* r) { return Copy(y, values->data(), r->cuda_stream); };
}

// kekzl/imp#177, PaddlePaddle/Paddle#78568: a captured copy reads an array of the function that issues it.
void MakeStackCopy(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(Relu(x, y, r->cuda_stream));
    const float local[] = {1, 2, 3, 4};
    return Copy(y, local, r->cuda_stream, sizeof(local));
  };
}

std::shared_ptr<float> Pinned(size_t bytes) {
  void* memory = nullptr;
  EXPECT_EQ(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), cudaSuccess);
  return {static_cast<float*>(memory), [](float* pinned) { EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess); }};
}

// microsoft/onnxruntime#32121: the pinned buffer behind a captured copy is filled by the host in each run.
void MakeStagedOnHost(Operation* o) {
  float* y = o->Output("y");
  auto value = HostSwitch(o, "value");
  auto staging = Pinned(kElementBytes);
  o->work = [=](const gcap_run_resources_t* r) {
    for (size_t i = 0; i < kElements; ++i) staging.get()[i] = static_cast<float>(*value);
    return Copy(y, staging.get(), r->cuda_stream);
  };
}

struct HostCall {
  float* to;
  float addend;
};

void CUDART_CB StoreOnHost(void* data) {
  const HostCall* const call = static_cast<const HostCall*>(data);
  for (size_t i = 0; i < kElements; ++i) call->to[i] = call->addend;
}

// NVIDIA/cccl#5227: what a host function reads goes when the run ends, and a replay calls the function again.
void MakeHostDataRecycled(Operation* o) {
  float* y = o->Output("y");
  auto staging = Pinned(kElementBytes);
  auto call = std::make_shared<HostCall>();
  o->work = [=](const gcap_run_resources_t* r) -> gcap_status_t {
    *call = {staging.get(), 5.0f};
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaLaunchHostFunc(r->cuda_stream, StoreOnHost, call.get())));
    GCAP_RETURN_IF_ERROR(Copy(y, staging.get(), r->cuda_stream));
    if (!gcap_thread_is_capturing()) GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(r->cuda_stream)));
    call->addend = -1.0f;  // the place is somebody else's
    return nullptr;
  };
}

// --- State ----------------------------------------------------------------------------------------------------------------

// ROCm/aiter#4916: a counter is zeroed by the host outside of captures, so a graph never zeroes it.
void MakeCounterNotReset(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  float* counter = o->Own()->floats();
  o->work = [=](const gcap_run_resources_t* r) {
    if (!gcap_thread_is_capturing()) GCAP_RETURN_IF_ERROR(Fill(counter, 0, r->cuda_stream));
    GCAP_RETURN_IF_ERROR(Add(counter, counter, 1, r->cuda_stream));
    GCAP_RETURN_IF_ERROR(Relu(x, y, r->cuda_stream));
    return Copy(y, counter, r->cuda_stream, sizeof(float));
  };
}

// meta-pytorch/torchcomms#1295: the first replay finds the signals clean, since they were reset beside the capture.
void MakeSignalsNotReset(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  float* signals = o->Own()->floats();
  auto side = OwnStream();
  o->work = [=](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(Fill(signals, 0, *side));
    if (!gcap_thread_is_capturing()) GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(*side)));
    GCAP_RETURN_IF_ERROR(Add(signals, signals, 1, r->cuda_stream));
    GCAP_RETURN_IF_ERROR(Relu(x, y, r->cuda_stream));
    return Copy(y, signals, r->cuda_stream, sizeof(float));
  };
}

// pytorch/pytorch#114844 and its like: a sum that the operation keeps to itself grows in each run.
void MakeHiddenSum(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  float* sum = o->Own()->floats();
  o->work = [=](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(Add(sum, sum, 1, r->cuda_stream));
    GCAP_RETURN_IF_ERROR(Relu(x, y, r->cuda_stream));
    return Copy(y, sum, r->cuda_stream, sizeof(float));
  };
}

// vllm-project/vllm#45660: partial sums are added to what the output had.
void MakeAddsToOutput(Operation* o) {
  float* y = o->Output("y");
  o->work = [=](const gcap_run_resources_t* r) { return Add(y, y, 1, r->cuda_stream); };
}

// pytorch/FBGEMM#5754: the last rows are never written.
void MakeLeavesRows(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](const gcap_run_resources_t* r) { return Relu(x, y, r->cuda_stream, kHalf); };
}

// vllm-project/vllm#45660: a temporary sum begins with what scratch had.
void MakeReadsScratch(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](const gcap_run_resources_t* r) {
    void* partial = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(r->scratch, kElementBytes, r->stream, &partial));
    gcap_status_t status = Relu(x, static_cast<float*>(partial), r->cuda_stream, kHalf);
    if (status == nullptr) status = Add(static_cast<float*>(partial), y, 1, r->cuda_stream);
    return gcap_status_join(status, gcap_scratch_free(r->scratch, partial));
  };
}

void MakeWritesInput(Operation* o) {
  float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(Add(x, y, 1, r->cuda_stream));
    return Relu(x, x, r->cuda_stream);
  };
}

// A length on the host that each run counts up, which no replay does.
void MakeWritesHostInput(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto length = std::make_shared<int32_t>(0);
  o->HostInput("length", length.get(), GCAP_DTYPE_I32);
  o->Keep(length);
  o->work = [=](const gcap_run_resources_t* r) {
    ++*length;
    return Relu(x, y, r->cuda_stream);
  };
}

// --- Memory ---------------------------------------------------------------------------------------------------------------

// vllm-project/vllm#55336: a workspace is replaced when another stream asks for it, and a graph keeps the old one.
void MakeWorkspaceReplaced(Operation* o) {
  struct Workspace {
    ~Workspace() { EXPECT_EQ(cudaFree(memory), cudaSuccess); }
    void* memory = nullptr;
    cudaStream_t stream = nullptr;
  };
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto workspace = std::make_shared<Workspace>();
  o->work = [=](const gcap_run_resources_t* r) {
    if (workspace->stream != r->cuda_stream) {
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaFree(workspace->memory)));
      workspace->memory = nullptr;
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc(&workspace->memory, kElementBytes)));
      workspace->stream = r->cuda_stream;
    }
    GCAP_RETURN_IF_ERROR(Relu(x, static_cast<float*>(workspace->memory), r->cuda_stream));
    return Add(static_cast<float*>(workspace->memory), y, 1, r->cuda_stream);
  };
}

// ggml-org/llama.cpp#9017: pointers lie in device memory, and the host writes them outside of captures.
void MakeTableOfPointers(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  float* const temporary[] = {o->Own()->floats(), o->Own()->floats()};
  float** table = static_cast<float**>(o->Own(2 * sizeof(float*))->get());
  auto turn = std::make_shared<size_t>(0);
  o->work = [=](const gcap_run_resources_t* r) {
    float* const mine = temporary[++*turn % 2];
    if (!gcap_thread_is_capturing()) {
      float* const pointers[] = {mine, y};
      GCAP_RETURN_IF_ERROR(Copy(table, pointers, r->cuda_stream, sizeof(pointers)));
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(r->cuda_stream)));
    }
    GCAP_RETURN_IF_ERROR(Copy(mine, x, r->cuda_stream));
    return AddTable(table, r->cuda_stream);
  };
}

// pytorch/pytorch#193402: what belongs to a stream is given to another stream, while a graph of the first lives. It is
// one allocation of the driver, so no audit sees that.
void MakeWorkspaceGivenAway(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  char* pool = static_cast<char*>(o->Own(2 * kElementBytes)->get());
  auto owner = std::make_shared<cudaStream_t>(nullptr);
  auto constants = std::make_shared<char*>(nullptr);
  o->work = [=](const gcap_run_resources_t* r) {
    if (*owner != r->cuda_stream) {
      if (*owner != nullptr) GCAP_RETURN_IF_ERROR(Fill(*constants, 0x44, r->cuda_stream));
      *constants = *owner == nullptr ? pool : pool + kElementBytes;
      GCAP_RETURN_IF_ERROR(Fill(*constants, 0x3f, r->cuda_stream));
      *owner = r->cuda_stream;
    }
    GCAP_RETURN_IF_ERROR(Relu(x, y, r->cuda_stream));
    return Copy(y, *constants, r->cuda_stream, kElementBytes / 2);
  };
}

// What a stream gets is made for the first one alone: handles, workspaces, tuned choices.
void MakeFirstStreamOnly(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto first = std::make_shared<cudaStream_t>(nullptr);
  o->work = [=](const gcap_run_resources_t* r) {
    if (*first == nullptr) *first = r->cuda_stream;
    return Add(x, y, *first == r->cuda_stream ? 1 : 0, r->cuda_stream);
  };
}

struct BoundHole {
  const float* x;
  float* y;
  cudaStream_t stream;  // of the last issue
};

gcap_status_t WorkOfBoundHole(void* user, const gcap_run_resources_t* r) {
  const BoundHole* const hole = static_cast<const BoundHole*>(user);
  return Add(hole->x, hole->y, hole->stream == r->cuda_stream ? 1 : 0, r->cuda_stream);
}

// A function between two segments has state of the stream that was captured, and a replay is on another one.
void MakeHoleOfOneStream(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto bound = std::make_shared<BoundHole>(BoundHole{x, y, nullptr});
  o->work = [=](const gcap_run_resources_t* r) -> gcap_status_t {
    bound->stream = r->cuda_stream;
    gcap_graph_hole_t hole;
    gcap_graph_hole_init(&hole);
    hole.work = WorkOfBoundHole;
    hole.user = bound.get();
    GCAP_RETURN_IF_ERROR(gcap_graph_hole_issue(r, &hole));
    return Relu(y, y, r->cuda_stream);
  };
}

// NVIDIA/TensorRT-LLM#15534: the workspace of one run, which the run keeps, is freed by the next one elsewhere.
void MakeScratchOfAnotherRun(Operation* o) {
  struct Kept {
    void* memory = nullptr;
    gcap_scratch_t* scratch = nullptr;
  };
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto kept = std::make_shared<Kept>();
  o->work = [=](const gcap_run_resources_t* r) {
    if (kept->scratch != r->scratch) {
      if (kept->scratch != nullptr) GCAP_RETURN_IF_ERROR(gcap_scratch_free(kept->scratch, kept->memory));
      GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(r->scratch, kElementBytes, r->stream, &kept->memory));
      GCAP_RETURN_IF_ERROR(gcap_scratch_keep(r->scratch, kept->memory));
      kept->scratch = r->scratch;
    }
    GCAP_RETURN_IF_ERROR(Relu(x, static_cast<float*>(kept->memory), r->cuda_stream));
    return Add(static_cast<float*>(kept->memory), y, 1, r->cuda_stream);
  };
}

// Each run keeps a block of scratch that no later run uses.
void MakeLeaksScratch(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](const gcap_run_resources_t* r) {
    void* kept = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(r->scratch, kElementBytes, r->stream, &kept));
    GCAP_RETURN_IF_ERROR(gcap_scratch_keep(r->scratch, kept));
    GCAP_RETURN_IF_ERROR(Relu(x, static_cast<float*>(kept), r->cuda_stream));
    return Copy(y, kept, r->cuda_stream);
  };
}

// --- What no replay would show --------------------------------------------------------------------------------------------

void MakeIgnoresInput(Operation* o) {
  o->Input("x");
  float* y = o->Output("y");
  o->work = [=](const gcap_run_resources_t* r) { return Fill(y, 1, r->cuda_stream); };
}

void MakeFails(Operation* o) {
  o->Output("y");
  o->work = [](const gcap_run_resources_t*) { return GCAP_STATUS(GCAP_UNIMPLEMENTED, "no kernel for 256 elements"); };
}

const Faulty kFaulty[] = {
    {"StaleScalar", GCAP_CHECK_FROZEN, "frozen value", MakeStaleScalar},
    {"FrozenSize", GCAP_CHECK_FROZEN, "frozen value", MakeFrozenSize},
    {"HostBranch", GCAP_CHECK_FROZEN, "'y'", MakeHostBranch},
    {"StaleSource", GCAP_CHECK_FROZEN, "stale pointer", MakeStaleSource},
    {"CachedDecision", GCAP_CHECK_FROZEN, "frozen value", MakeCachedDecision},
    {"SkippedStep", GCAP_CHECK_FROZEN, "'y'", MakeSkippedStep},
    {"HostGenerator", GCAP_CHECK_NOT_REPEATABLE, "'y'", MakeHostGenerator},
    {"WaitInside", GCAP_CHECK_NOT_CAPTURED, "cudaStreamSynchronize", MakeWaitInside},
    {"ReadsDeviceValue", GCAP_CHECK_NOT_CAPTURED, "cudaMemcpy", MakeReadsDeviceValue},
    {"LazyInCapture", GCAP_CHECK_NOT_CAPTURED, "cudaMalloc", MakeLazyInCapture},
    {"ReusedEvent", GCAP_CHECK_NOT_CAPTURED, "cudaStreamWaitEvent", MakeReusedEvent},
    {"UnjoinedFork", GCAP_CHECK_NOT_CAPTURED, "join", MakeUnjoinedFork},
    {"LegacyStream", GCAP_CHECK_ESCAPES, "'y'", MakeLegacyStream},
    {"PartEscapes", GCAP_CHECK_ESCAPES, "'z'", MakePartEscapes},
    {"RemembersStream", GCAP_CHECK_ESCAPES, "'y'", MakeRemembersStream},
    {"PageableCopy", GCAP_CHECK_PAGEABLE, "the source", MakePageableCopy},
    {"StackCopy", GCAP_CHECK_PAGEABLE, "the source", MakeStackCopy},
    {"StagedOnHost", GCAP_CHECK_FROZEN, "'y'", MakeStagedOnHost},
    {"HostDataRecycled", GCAP_CHECK_DIFFERS, "'y'", MakeHostDataRecycled},
    {"CounterNotReset", GCAP_CHECK_DIFFERS, "'y'", MakeCounterNotReset},
    {"SignalsNotReset", GCAP_CHECK_NOT_TWICE, "'y'", MakeSignalsNotReset},
    {"HiddenSum", GCAP_CHECK_NOT_REPEATABLE, "'y'", MakeHiddenSum},
    {"AddsToOutput", GCAP_CHECK_READS_OUTPUT, "'y'", MakeAddsToOutput},
    {"LeavesRows", GCAP_CHECK_READS_OUTPUT, "element 128", MakeLeavesRows},
    {"ReadsScratch", GCAP_CHECK_READS_SCRATCH, "element 128", MakeReadsScratch},
    {"WritesInput", GCAP_CHECK_WRITES_INPUT, "'x'", MakeWritesInput},
    {"WritesHostInput", GCAP_CHECK_WRITES_INPUT, "'length', on the host, byte 0", MakeWritesHostInput},
    {"WorkspaceReplaced", GCAP_CHECK_STALE_POINTER, "argument", MakeWorkspaceReplaced},
    {"TableOfPointers", GCAP_CHECK_FROZEN, "'y'", MakeTableOfPointers},
    {"WorkspaceGivenAway", GCAP_CHECK_BORROWED, "'y'", MakeWorkspaceGivenAway},
    {"FirstStreamOnly", GCAP_CHECK_OTHER_STREAM, "'y'", MakeFirstStreamOnly},
    {"HoleOfOneStream", GCAP_CHECK_OTHER_STREAM, "a replay on another stream", MakeHoleOfOneStream},
    {"ScratchOfAnotherRun", GCAP_CHECK_STALE_POINTER, "argument", MakeScratchOfAnotherRun},
    {"LeaksScratch", GCAP_CHECK_LEAKS_SCRATCH, "more scratch", MakeLeaksScratch},
    {"IgnoresInput", GCAP_CHECK_SEES_NO_INPUT, "1 output", MakeIgnoresInput},
    {"Fails", GCAP_CHECK_FAILS, "no kernel for 256 elements", MakeFails},
};

class FaultyOperation : public TimedChecks, public ::testing::WithParamInterface<Faulty> {};

TEST_P(FaultyOperation, IsFound) {
  const Faulty& faulty = GetParam();
  Operation operation(faulty.name);
  faulty.make(&operation);
  gcap_check_report_t report;
  gcap_check_report_init(&report);
  GCAP_ASSERT_OK(RunTimed(&operation, &report));
  const std::string text = TextOf(operation.check, report);
  EXPECT_TRUE(report.is_done);
  ASSERT_GE(report.num_findings, 1u) << text;
  EXPECT_EQ(report.findings[0].kind, faulty.kind) << text;
  EXPECT_NE(std::string(report.findings[0].sentence).find(faulty.text), std::string::npos) << text;
  EXPECT_STRNE(report.findings[0].remedy, "");
}

INSTANTIATE_TEST_SUITE_P(Published, FaultyOperation, ::testing::ValuesIn(kFaulty),
                         [](const ::testing::TestParamInfo<Faulty>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace testing
}  // namespace gcap
