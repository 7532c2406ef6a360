// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The engine's kernels as nvcc registers and launches them, by hand: the names are those that nvcc gave to kernels.cu.
#include "test/nvcc/engine/kernels.h"
#include "test/nvcc/host_object.h"

namespace engine {
namespace {

using gcap_test::HostFunction;
using gcap_test::HostObject;
using gcap_test::Launch;

constexpr auto* kEmbed = HostFunction<100, const int*, const float*, float*, int>;
constexpr auto* kLayerNorm = HostFunction<101, const float*, const float*, float*, int>;
constexpr auto* kSplit = HostFunction<102, const float*, float*, float*, float*, int>;
constexpr auto* kRotate = HostFunction<103, float*, int>;
constexpr auto* kAppend = HostFunction<104, float*, const float*, int>;
constexpr auto* kAttend = HostFunction<105, AttentionParams>;
constexpr auto* kProject = HostFunction<106, const float*, const float*, float*, int>;
constexpr auto* kAdd = HostFunction<107, const float*, const float*, float*, int>;
constexpr auto* kActivate = HostFunction<108, float*, int>;
constexpr auto* kScale = HostFunction<109, float*, float, int>;
constexpr auto* kGather = HostFunction<110, const float* const*, float*, int>;
constexpr auto* kArgMax = HostFunction<111, const float*, int*, int>;

// Of kernels of C++ the names tell enough; a struct's size and what has C linkage are in the machine code.
const char kAttendName[] = "_ZN6engine6attendENS_15AttentionParamsE";
const bool g_registered = [] {
  static HostObject* object = new HostObject({{kAttendName, {32}}, {"engine_scale", {8, 4, 4}}});  // to the end
  object->Add(kEmbed, "_ZN6engine5embedEPKiPKfPfi").Add(kLayerNorm, "_ZN6engine10layer_normEPKfS1_Pfi");
  object->Add(kSplit, "_ZN6engine5splitEPKfPfS2_S2_i").Add(kRotate, "_ZN6engine6rotateEPfi");
  object->Add(kAppend, "_ZN6engine6appendEPfPKfi").Add(kAttend, kAttendName);
  object->Add(kProject, "_ZN6engine7projectEPKfS1_Pfi").Add(kAdd, "_ZN6engine3addIfEEvPKT_S3_PS1_i");
  object->Add(kActivate, "_ZN6engine8activateINS_12_GLOBAL__N_14ReluEEEvPfi").Add(kScale, "engine_scale");
  object->Add(kGather, "_ZN6engine6gatherEPKPKfPfi").Add(kArgMax, "_ZN6engine7arg_maxEPKfPii");
  object->End();
  return true;
}();

constexpr unsigned kBlock = 32;
dim3 BlocksFor(int count) { return dim3((static_cast<unsigned>(count) + kBlock - 1) / kBlock); }

}  // namespace

void Embed(cudaStream_t stream, const int* tokens, const float* table, float* y, int count) {
  Launch(kEmbed, BlocksFor(count), kBlock, stream, tokens, table, y, count);
}
void LayerNorm(cudaStream_t stream, const float* x, const float* gamma, float* y, int count) {
  Launch(kLayerNorm, BlocksFor(count), kBlock, stream, x, gamma, y, count);
}
void Split(cudaStream_t stream, const float* x, float* q, float* k, float* v, int count) {
  Launch(kSplit, BlocksFor(count), kBlock, stream, x, q, k, v, count);
}
void Rotate(cudaStream_t stream, float* x, int count) { Launch(kRotate, BlocksFor(count), kBlock, stream, x, count); }
void Append(cudaStream_t stream, float* cache, const float* x, int count) {
  Launch(kAppend, BlocksFor(count), kBlock, stream, cache, x, count);
}
void Attend(cudaStream_t stream, AttentionParams params) {
  Launch(kAttend, BlocksFor(params.count), kBlock, stream, params);
}
void Project(cudaStream_t stream, const float* x, const float* weights, float* y, int count) {
  Launch(kProject, BlocksFor(count), kBlock, stream, x, weights, y, count);
}
void Add(cudaStream_t stream, const float* a, const float* b, float* y, int count) {
  Launch(kAdd, BlocksFor(count), kBlock, stream, a, b, y, count);
}
void Activate(cudaStream_t stream, float* x, int count) {
  Launch(kActivate, BlocksFor(count), kBlock, stream, x, count);
}
void Scale(cudaStream_t stream, float* x, float factor, int count) {
  Launch(kScale, BlocksFor(count), kBlock, stream, x, factor, count);
}
void Gather(cudaStream_t stream, const float* const* rows, float* y, int count) {
  Launch(kGather, BlocksFor(count), kBlock, stream, rows, y, count);
}
void ArgMax(cudaStream_t stream, const float* x, int* token, int count) {
  Launch(kArgMax, 1, kBlock, stream, x, token, count);
}

}  // namespace engine
