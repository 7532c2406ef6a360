// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt as gcap uses it: results against plain loops in double, the code of every wrong call, and what the calls do
// to a capture. The same expectations hold for the simulated library and, where a GPU is there, for the real one.
// Inputs are small multiples of 1/8, so sums are exact in whatever order, split or tensor core a library takes: results
// must be equal.
#include "cublasLt.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "test/sim_libs/device.h"

namespace {

using gcap_test::Capture;
using gcap_test::CaptureEnd;
using gcap_test::DeviceArray;
using gcap_test::Eighths;
using gcap_test::Stream;

constexpr size_t kMaxWorkspace = size_t{4} << 20;

struct Shape {
  int64_t m = 4;
  int64_t n = 3;
  int64_t k = 8;
  int64_t batch = 1;
  int64_t pad = 0;  // added to each leading dimension
  cublasOperation_t trans_a = CUBLAS_OP_N;
  cublasOperation_t trans_b = CUBLAS_OP_N;
  cublasLtOrder_t order = CUBLASLT_ORDER_COL;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float alpha = 1.0f;
  float beta = 0.0f;
  cudaDataType in = CUDA_R_32F;
  cudaDataType out = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  bool in_place = false;  // D is C
};

// Where a matrix's elements stand, computed apart from the library's layouts.
struct Place {
  int64_t rows;
  int64_t cols;
  int64_t ld;
  int64_t stride;
  bool by_column;
  Place(int64_t rows, int64_t cols, const Shape& shape)
      : rows(rows), cols(cols), by_column(shape.order == CUBLASLT_ORDER_COL) {
    ld = (by_column ? rows : cols) + shape.pad;
    stride = ld * (by_column ? cols : rows);
  }
  size_t At(int64_t b, int64_t i, int64_t j) const {
    return static_cast<size_t>(b * stride + (by_column ? i + j * ld : i * ld + j));
  }
};

// All matrices of one multiplication, on the host, and what the result must be.
class Reference {
 public:
  explicit Reference(const Shape& s)
      : shape(s),
        place_a(s.trans_a == CUBLAS_OP_N ? Place(s.m, s.k, s) : Place(s.k, s.m, s)),
        place_b(s.trans_b == CUBLAS_OP_N ? Place(s.k, s.n, s) : Place(s.n, s.k, s)),
        place_d(s.m, s.n, s) {
    Eighths random(17);
    a = random.Take(static_cast<size_t>(s.batch * place_a.stride));
    b = random.Take(static_cast<size_t>(s.batch * place_b.stride));
    c = random.Take(static_cast<size_t>(s.batch * place_d.stride));
    bias = random.Take(static_cast<size_t>(s.m));
  }

  // D over `before`, whose elements between the columns must stay as they are.
  std::vector<float> Expected(std::vector<float> before) const {
    const bool relu = (shape.epilogue & CUBLASLT_EPILOGUE_RELU) != 0;
    for (int64_t l = 0; l < shape.batch; ++l) {
      for (int64_t i = 0; i < shape.m; ++i) {
        for (int64_t j = 0; j < shape.n; ++j) {
          double value = shape.alpha * Dot(l, i, j) + shape.beta * c[place_d.At(l, i, j)];
          value += (shape.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 ? bias[static_cast<size_t>(i)] : 0.0f;
          before[place_d.At(l, i, j)] = static_cast<float>(relu && value < 0 ? 0 : value);
        }
      }
    }
    return before;
  }

  Shape shape;
  Place place_a, place_b, place_d;
  std::vector<float> a, b, c, bias;

 private:
  double Dot(int64_t l, int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t x = 0; x < shape.k; ++x) {
      const bool ta = shape.trans_a != CUBLAS_OP_N, tb = shape.trans_b != CUBLAS_OP_N;
      sum += static_cast<double>(a[ta ? place_a.At(l, x, i) : place_a.At(l, i, x)]) *
             b[tb ? place_b.At(l, j, x) : place_b.At(l, x, j)];
    }
    return sum;
  }
};

// Values to and from storage. Only values that the 16-bit types hold exactly pass through here.
std::vector<uint8_t> Encode(const std::vector<float>& values, cudaDataType type) {
  std::vector<uint8_t> bytes;
  for (float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (type == CUDA_R_16BF) bits >>= 16;
    if (type == CUDA_R_16F) {
      bits = value == 0 ? 0 : (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112u << 10));
    }
    const size_t size = type == CUDA_R_32F ? 4 : 2;
    const auto* first = reinterpret_cast<const uint8_t*>(&bits);
    bytes.insert(bytes.end(), first, first + size);
  }
  return bytes;
}

std::vector<float> Decode(const std::vector<uint8_t>& bytes, cudaDataType type) {
  const size_t size = type == CUDA_R_32F ? 4 : 2;
  std::vector<float> values(bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &bytes[i * size], size);
    if (type == CUDA_R_16BF) bits <<= 16;
    if (type == CUDA_R_16F && (bits & 0x7fff) != 0) {
      bits = (bits & 0x8000) << 16 | (((bits & 0x7fff) << 13) + (112u << 23));
    }
    std::memcpy(&values[i], &bits, sizeof bits);
  }
  return values;
}

class Handle {
 public:
  Handle() { EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtCreate(&handle_)); }
  ~Handle() { EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtDestroy(handle_)); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cublasLtHandle_t get() const { return handle_; }

 private:
  cublasLtHandle_t handle_ = nullptr;
};

class Layout {
 public:
  Layout(cudaDataType type, const Place& place, int64_t batch) {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutCreate(&layout_, type, static_cast<uint64_t>(place.rows),
                                                                static_cast<uint64_t>(place.cols), place.ld));
    Set(CUBLASLT_MATRIX_LAYOUT_ORDER, static_cast<int32_t>(place.by_column ? CUBLASLT_ORDER_COL : CUBLASLT_ORDER_ROW));
    Set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batch));
    Set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, place.stride);
  }
  ~Layout() { EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutDestroy(layout_)); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  template <typename T>
  void Set(cublasLtMatrixLayoutAttribute_t attribute, T value) {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutSetAttribute(layout_, attribute, &value, sizeof value));
  }
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

// Descriptors, device memory and an algorithm for one shape; public members are what a test may spoil.
class Matmul {
 public:
  explicit Matmul(const Shape& shape, uint64_t max_workspace = kMaxWorkspace)
      : reference(shape),
        layout_a(shape.in, reference.place_a, shape.batch),
        layout_b(shape.in, reference.place_b, shape.batch),
        layout_c(shape.out, reference.place_d, shape.batch),
        layout_d(shape.out, reference.place_d, shape.batch),
        a(Encode(reference.a, shape.in)),
        b(Encode(reference.b, shape.in)),
        c(Encode(reference.c, shape.out)),
        d(Encode(std::vector<float>(reference.c.size(), 0.5f), shape.out)),
        bias(Encode(reference.bias, shape.out)),
        workspace(std::vector<uint8_t>(kMaxWorkspace)),
        alpha(shape.alpha),
        beta(shape.beta) {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescCreate(&desc, shape.compute, CUDA_R_32F));
    SetDesc(CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(shape.trans_a));
    SetDesc(CUBLASLT_MATMUL_DESC_TRANSB, static_cast<int32_t>(shape.trans_b));
    SetDesc(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(shape.epilogue));
    if ((shape.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) {
      SetDesc(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias.get()));
    }
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, Heuristic(max_workspace, &result));
    used_workspace = workspace.get();
    workspace_bytes = result.workspaceSize;
    pointer_a = a.get();
    pointer_b = b.get();
    pointer_c = shape.in_place ? d.get() : c.get();
    pointer_d = d.get();
    if (shape.in_place) {
      d.Upload(Encode(reference.c, shape.out));
    }
  }
  ~Matmul() { EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescDestroy(desc)); }
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  template <typename T>
  void SetDesc(cublasLtMatmulDescAttributes_t attribute, T value) {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value));
  }

  cublasStatus_t Heuristic(uint64_t max_workspace, cublasLtMatmulHeuristicResult_t* out) {
    cublasLtMatmulPreference_t preference = nullptr;
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulPreferenceCreate(&preference));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS,
              cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &max_workspace,
                                                   sizeof max_workspace));
    int count = 0;
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle.get(), desc, layout_a.get(), layout_b.get(),
                                                           layout_c.get(), layout_d.get(), preference, 1, out, &count);
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulPreferenceDestroy(preference));
    EXPECT_EQ(status == CUBLAS_STATUS_SUCCESS ? 1 : 0, count);
    return status;
  }

  cublasStatus_t Run(cudaStream_t stream) {
    return cublasLtMatmul(used_handle ? handle.get() : nullptr, desc, &alpha, pointer_a, layout_a.get(), pointer_b,
                          layout_b.get(), &beta, pointer_c, layout_c.get(), pointer_d, layout_d.get(), algorithm,
                          used_workspace, workspace_bytes, stream);
  }

  std::vector<float> Result() { return Decode(d.Download(), reference.shape.out); }
  std::vector<float> Expected() {
    const std::vector<float> halves(reference.c.size(), 0.5f);
    return reference.Expected(reference.shape.in_place ? reference.c : halves);
  }

  Reference reference;
  Handle handle;
  Layout layout_a, layout_b, layout_c, layout_d;
  DeviceArray<uint8_t> a, b, c, d, bias, workspace;
  float alpha, beta;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatmulHeuristicResult_t result = {};
  const cublasLtMatmulAlgo_t* algorithm = &result.algo;
  bool used_handle = true;
  uint8_t *pointer_a, *pointer_b, *pointer_c, *pointer_d, *used_workspace;
  size_t workspace_bytes;
};

void ExpectRight(const Shape& shape, uint64_t max_workspace) {
  Matmul matmul(shape, max_workspace);
  Stream stream;
  EXPECT_LE(matmul.result.workspaceSize, max_workspace);
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Run(stream.get()));
  stream.Synchronize();
  EXPECT_EQ(matmul.Expected(), matmul.Result());
}

TEST(CublasLtMatmul, ShapesTransposesAndLeadingDimensions) {
  for (const int64_t pad : {0, 4}) {
    for (const auto trans_a : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C}) {
      for (const auto trans_b : {CUBLAS_OP_N, CUBLAS_OP_T}) {
        for (const auto& size : {std::vector<int64_t>{1, 1, 1}, {8, 4, 16}, {17, 5, 33}, {64, 32, 512}}) {
          Shape shape;
          shape.m = size[0], shape.n = size[1], shape.k = size[2];
          shape.trans_a = trans_a, shape.trans_b = trans_b, shape.pad = pad;
          SCOPED_TRACE(testing::Message() << "m " << size[0] << " trans " << trans_a << trans_b << " pad " << pad);
          ExpectRight(shape, kMaxWorkspace);
        }
      }
    }
  }
}

TEST(CublasLtMatmul, RowMajorOrder) {
  Shape shape;
  shape.m = 6, shape.n = 10, shape.k = 300;
  shape.order = CUBLASLT_ORDER_ROW;
  ExpectRight(shape, kMaxWorkspace);
  shape.trans_b = CUBLAS_OP_T;
  shape.pad = 2;
  ExpectRight(shape, 0);
}

TEST(CublasLtMatmul, ScalarsAndInPlace) {
  Shape shape;
  shape.k = 320;
  shape.alpha = 0.5f;
  for (const float beta : {0.0f, 1.0f, -2.0f}) {
    for (const bool in_place : {false, true}) {
      for (const uint64_t max_workspace : {uint64_t{0}, uint64_t{kMaxWorkspace}}) {
        shape.beta = beta;
        shape.in_place = in_place;
        ExpectRight(shape, max_workspace);
      }
    }
  }
}

TEST(CublasLtMatmul, EpiloguesWithAndWithoutWorkspace) {
  for (const auto epilogue : {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS}) {
    for (const int64_t k : {16, 512}) {
      Shape shape;
      shape.m = 64, shape.n = 32, shape.k = k;
      shape.epilogue = epilogue;
      ExpectRight(shape, 0);
      ExpectRight(shape, kMaxWorkspace);
    }
  }
}

TEST(CublasLtMatmul, BatchesWithStrides) {
  Shape shape;
  shape.m = 8, shape.n = 8, shape.k = 256, shape.batch = 3;
  shape.beta = 1.0f;
  ExpectRight(shape, kMaxWorkspace);
  ExpectRight(shape, 0);
}

TEST(CublasLtMatmul, SixteenBitTypes) {
  for (const auto in : {CUDA_R_16F, CUDA_R_16BF}) {
    for (const auto out : {in, CUDA_R_32F}) {
      Shape shape;
      shape.m = 16, shape.n = 8, shape.k = 16;
      shape.in = in, shape.out = out;
      Matmul matmul(shape);
      // An A of halves keeps the results inside the 8 significant bits of bfloat16.
      const std::vector<uint8_t> halves = Encode(std::vector<float>(matmul.reference.a.size(), 0.5f), in);
      matmul.a.Upload(halves);
      matmul.reference.a.assign(matmul.reference.a.size(), 0.5f);
      Stream stream;
      ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Run(stream.get()));
      stream.Synchronize();
      EXPECT_EQ(matmul.Expected(), matmul.Result());
    }
  }
}

// The bits of alpha, rounded to the type of D: 1 x 1 matrices that hold one.
uint16_t Rounded(float alpha, cudaDataType type) {
  Shape shape;
  shape.m = shape.n = shape.k = 1;
  shape.in = shape.out = type;
  shape.alpha = alpha;
  Matmul matmul(shape);
  const std::vector<uint8_t> one = Encode({1.0f}, type);
  matmul.a.Upload(one);
  matmul.b.Upload(one);
  Stream stream;
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Run(stream.get()));
  stream.Synchronize();
  const std::vector<uint8_t> bytes = matmul.d.Download();
  return static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
}

TEST(CublasLtMatmul, HalfIsRoundedToNearestEven) {
  EXPECT_EQ(0x3c00, Rounded(1.0f + std::ldexp(1.0f, -11), CUDA_R_16F));      // tie to even, down
  EXPECT_EQ(0x3c02, Rounded(1.0f + 3 * std::ldexp(1.0f, -11), CUDA_R_16F));  // tie to even, up
  EXPECT_EQ(0x3c01, Rounded(1.0f + 1.5f * std::ldexp(1.0f, -11), CUDA_R_16F));
  EXPECT_EQ(0xbe00, Rounded(-1.5f, CUDA_R_16F));
  EXPECT_EQ(0x7bff, Rounded(65519.0f, CUDA_R_16F));
  EXPECT_EQ(0x7c00, Rounded(65520.0f, CUDA_R_16F));                  // infinity
  EXPECT_EQ(0x0400, Rounded(std::ldexp(1.0f, -14), CUDA_R_16F));     // the smallest normal
  EXPECT_EQ(0x03ff, Rounded(std::ldexp(1023.0f, -24), CUDA_R_16F));  // the largest denormal
  EXPECT_EQ(0x0400, Rounded(std::ldexp(1023.5f, -24), CUDA_R_16F));  // carries into the normals
  EXPECT_EQ(0x0001, Rounded(std::ldexp(1.0f, -24), CUDA_R_16F));
  EXPECT_EQ(0x0000, Rounded(std::ldexp(1.0f, -25), CUDA_R_16F));  // tie to even
}

TEST(CublasLtMatmul, BfloatIsRoundedToNearestEven) {
  EXPECT_EQ(0x3f80, Rounded(1.0f + std::ldexp(1.0f, -8), CUDA_R_16BF));
  EXPECT_EQ(0x3f82, Rounded(1.0f + 3 * std::ldexp(1.0f, -8), CUDA_R_16BF));
  EXPECT_EQ(0xc049, Rounded(-3.14159265f, CUDA_R_16BF));
  EXPECT_EQ(0x7f80, Rounded(std::numeric_limits<float>::max(), CUDA_R_16BF));
}

TEST(CublasLtMatmul, NoInnerDimensionGivesBetaC) {
  Shape shape;
  shape.beta = 2.0f;
  Matmul matmul(shape);
  matmul.layout_a.Set(CUBLASLT_MATRIX_LAYOUT_COLS, uint64_t{0});
  matmul.layout_b.Set(CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{0});
  matmul.algorithm = nullptr;
  matmul.reference.shape.k = 0;
  Stream stream;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Run(stream.get()));
  stream.Synchronize();
  EXPECT_EQ(matmul.Expected(), matmul.Result());
}

TEST(CublasLtMatmul, NullAlgorithmLetsTheLibraryChoose) {
  Shape shape;
  shape.k = 512;
  Matmul matmul(shape);
  matmul.algorithm = nullptr;
  Stream stream;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Run(stream.get()));
  stream.Synchronize();
  EXPECT_EQ(matmul.Expected(), matmul.Result());
}

TEST(CublasLtMatmul, DevicePointerModeReadsTheScalarsWhenTheWorkRuns) {
  Shape shape;
  Matmul matmul(shape);
  matmul.SetDesc(CUBLASLT_MATMUL_DESC_POINTER_MODE, static_cast<int32_t>(CUBLASLT_POINTER_MODE_DEVICE));
  const DeviceArray<float> scalars({4.0f, -1.0f});
  Stream stream;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS,
            cublasLtMatmul(matmul.handle.get(), matmul.desc, scalars.get(), matmul.pointer_a, matmul.layout_a.get(),
                           matmul.pointer_b, matmul.layout_b.get(), scalars.get() + 1, matmul.pointer_c,
                           matmul.layout_c.get(), matmul.pointer_d, matmul.layout_d.get(), nullptr, nullptr, 0,
                           stream.get()));
  stream.Synchronize();
  matmul.reference.shape.alpha = 4.0f;
  matmul.reference.shape.beta = -1.0f;
  EXPECT_EQ(matmul.Expected(), matmul.Result());
}

// A way to spoil a good call, and the code that it gives.
struct WrongCall {
  const char* name;
  cublasStatus_t expected;
  std::function<void(Matmul*)> spoil;
};

const cublasLtMatmulAlgo_t kZeroedAlgorithm = {};

// A GPU takes anything for tiny matrices; for these its kernels insist on aligned pointers.
Shape WideShape() {
  Shape shape;
  shape.m = 64, shape.n = 32, shape.k = 512;
  return shape;
}

std::vector<WrongCall> WrongCalls() {
  const auto invalid = CUBLAS_STATUS_INVALID_VALUE;
  const auto unsupported = CUBLAS_STATUS_NOT_SUPPORTED;
  return {
      {"no handle", CUBLAS_STATUS_NOT_INITIALIZED, [](Matmul* m) { m->used_handle = false; }},
      {"no A", invalid, [](Matmul* m) { m->pointer_a = nullptr; }},
      {"no B", invalid, [](Matmul* m) { m->pointer_b = nullptr; }},
      {"no D", invalid, [](Matmul* m) { m->pointer_d = nullptr; }},
      {"inner dimensions differ", invalid,
       [](Matmul* m) { m->layout_b.Set(CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{7}); }},
      {"rows of A and D differ", invalid, [](Matmul* m) { m->layout_a.Set(CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{3}); }},
      {"columns of C and D differ", invalid,
       [](Matmul* m) { m->layout_c.Set(CUBLASLT_MATRIX_LAYOUT_COLS, uint64_t{2}); }},
      {"leading dimension below the rows", invalid,
       [](Matmul* m) { m->layout_a.Set(CUBLASLT_MATRIX_LAYOUT_LD, int64_t{3}); }},
      {"batch counts differ", invalid,
       [](Matmul* m) { m->layout_b.Set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{2}); }},
      {"types of A and B differ", invalid,
       [](Matmul* m) { m->layout_b.Set(CUBLASLT_MATRIX_LAYOUT_TYPE, static_cast<uint32_t>(CUDA_R_16F)); }},
      {"C missing though beta is not zero", invalid, [](Matmul* m) { m->beta = 1.0f, m->pointer_c = nullptr; }},
      {"D is C with another leading dimension", invalid,
       [](Matmul* m) {
         m->beta = 1.0f, m->pointer_c = m->pointer_d;
         m->layout_c.Set(CUBLASLT_MATRIX_LAYOUT_LD, int64_t{65});
       }},
      {"bias without a pointer", invalid,
       [](Matmul* m) { m->SetDesc(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(CUBLASLT_EPILOGUE_BIAS)); }},
      {"scale type that does not go with the compute type", invalid,
       [](Matmul* m) { m->SetDesc(CUBLASLT_MATMUL_DESC_SCALE_TYPE, static_cast<int32_t>(CUDA_R_16F)); }},
      {"workspace size without a workspace", invalid,
       [](Matmul* m) { m->used_workspace = nullptr, m->workspace_bytes = 1024; }},
      {"workspace misaligned by one byte", invalid,
       [](Matmul* m) { m->used_workspace += 1, m->workspace_bytes = 1024; }},
      {"workspace aligned to 128 bytes only", invalid,
       [](Matmul* m) { m->used_workspace += 128, m->workspace_bytes = 1024; }},
      {"A misaligned by one byte", unsupported, [](Matmul* m) { m->pointer_a += 1; }},
      {"D misaligned by one byte", unsupported, [](Matmul* m) { m->pointer_d += 1; }},
      {"zeroed algorithm", unsupported, [](Matmul* m) { m->algorithm = &kZeroedAlgorithm; }},
  };
}

TEST(CublasLtMatmul, WrongCallsGiveTheirCodeAndLeaveACaptureActive) {
  for (const WrongCall& wrong : WrongCalls()) {
    SCOPED_TRACE(wrong.name);
    Matmul matmul(WideShape());
    wrong.spoil(&matmul);
    Stream stream;
    EXPECT_EQ(wrong.expected, matmul.Run(stream.get()));
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    const CaptureEnd end =
        Capture(stream.get(), cudaStreamCaptureModeThreadLocal, [&] { status = matmul.Run(stream.get()); });
    EXPECT_EQ(wrong.expected, status);
    EXPECT_EQ(cudaStreamCaptureStatusActive, end.status);
    EXPECT_EQ(cudaSuccess, end.code);
    EXPECT_EQ(0u, end.nodes);
    stream.Synchronize();
    EXPECT_EQ(std::vector<float>(64 * 32, 0.5f), matmul.Result());
  }
}

TEST(CublasLtMatmul, OutputWithoutRowsFailsAndInvalidatesTheCapture) {
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    Matmul matmul{Shape()};
    matmul.layout_a.Set(CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{0});
    matmul.layout_c.Set(CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{0});
    matmul.layout_d.Set(CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{0});
    Stream stream;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    const CaptureEnd end = Capture(stream.get(), mode, [&] { status = matmul.Run(stream.get()); });
    EXPECT_EQ(CUBLAS_STATUS_EXECUTION_FAILED, status);
    EXPECT_EQ(cudaStreamCaptureStatusInvalidated, end.status);
    EXPECT_EQ(cudaErrorStreamCaptureInvalidated, end.code);
  }
}

TEST(CublasLtMatmul, MissingCIsFineWhenBetaIsZero) {
  Matmul matmul{Shape()};
  matmul.pointer_c = nullptr;
  Stream stream;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Run(stream.get()));
  stream.Synchronize();
  EXPECT_EQ(matmul.Expected(), matmul.Result());
}

TEST(CublasLtMatmul, InAnInvalidatedCaptureFails) {
  Matmul matmul{Shape()};
  Stream stream;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  (void)Capture(stream.get(), cudaStreamCaptureModeThreadLocal, [&] {
    EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
    status = matmul.Run(stream.get());
  });
  EXPECT_EQ(CUBLAS_STATUS_EXECUTION_FAILED, status);
}

TEST(CublasLtMatmul, ACapturedMatmulRunsAtEachReplayAndNotBefore) {
  Shape shape;
  shape.m = 64, shape.n = 32, shape.k = 512;
  Matmul matmul(shape);
  Stream stream;
  const std::vector<float> before = matmul.Result();
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Run(stream.get()));
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream.get(), &graph));
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
  stream.Synchronize();
  EXPECT_EQ(before, matmul.Result());
  for (int replay = 0; replay < 2; ++replay) {
    ASSERT_EQ(cudaSuccess, cudaMemsetAsync(matmul.pointer_d, 0, matmul.d.Bytes(), stream.get()));
    ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream.get()));
    stream.Synchronize();
    EXPECT_EQ(matmul.Expected(), matmul.Result());
  }
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

TEST(CublasLt, CreationDescriptorsAndHeuristicAreLegalInACapture) {
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    Matmul matmul{Shape()};
    Stream stream;
    cublasLtHandle_t handle = nullptr;
    const CaptureEnd end = Capture(stream.get(), mode, [&] {
      EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtCreate(&handle));
      EXPECT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Heuristic(0, &matmul.result));
    });
    EXPECT_EQ(cudaSuccess, end.code);
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtDestroy(handle));
  }
}

// The silent killer: nothing tells of it before the end of the capture.
TEST(CublasLt, DestroyAnswersSuccessAndInvalidatesTheCapture) {
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    cublasLtHandle_t handle = nullptr;
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtCreate(&handle));
    Stream stream;
    const CaptureEnd end =
        Capture(stream.get(), mode, [&] { EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtDestroy(handle)); });
    EXPECT_EQ(cudaStreamCaptureStatusInvalidated, end.status);
    EXPECT_EQ(cudaErrorStreamCaptureInvalidated, end.code);
  }
}

TEST(CublasLt, DestroyOnAnotherThreadInvalidatesTheCaptureToo) {
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    cublasLtHandle_t handle = nullptr;
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtCreate(&handle));
    Stream stream;
    const CaptureEnd end = Capture(stream.get(), mode, [&] {
      std::thread([&] { EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtDestroy(handle)); }).join();
    });
    EXPECT_EQ(cudaErrorStreamCaptureInvalidated, end.code);
  }
}

TEST(CublasLtMatmul, OutputWithoutRowsOnAnEagerStreamLeavesACaptureActive) {
  Matmul matmul{Shape()};
  matmul.layout_a.Set(CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{0});
  matmul.layout_c.Set(CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{0});
  matmul.layout_d.Set(CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{0});
  Stream capturing;
  Stream eager;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const CaptureEnd end =
      Capture(capturing.get(), cudaStreamCaptureModeGlobal, [&] { status = matmul.Run(eager.get()); });
  EXPECT_EQ(CUBLAS_STATUS_EXECUTION_FAILED, status);
  EXPECT_EQ(cudaSuccess, end.code);
}

TEST(CublasLt, AnotherThreadsEagerMatmulIsLegalBesideACaptureThatIsNotGlobal) {
  for (const auto mode : {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    Matmul matmul{Shape()};
    Stream capturing;
    Stream eager;
    cublasStatus_t status = CUBLAS_STATUS_EXECUTION_FAILED;
    const CaptureEnd end =
        Capture(capturing.get(), mode, [&] { std::thread([&] { status = matmul.Run(eager.get()); }).join(); });
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, status);
    EXPECT_EQ(cudaSuccess, end.code);
    eager.Synchronize();
    EXPECT_EQ(matmul.Expected(), matmul.Result());
  }
}

TEST(CublasLt, DestroyingNothing) {
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, cublasLtDestroy(nullptr));
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutDestroy(nullptr));
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescDestroy(nullptr));
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulPreferenceDestroy(nullptr));
}

TEST(CublasLtDescriptor, AttributesReadBackAndCheckTheirSize) {
  cublasLtMatrixLayout_t layout = nullptr;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, 5, 7, 9));
  uint64_t rows = 0;
  size_t written = 0;
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS,
            cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows, &written));
  EXPECT_EQ(5u, rows);
  EXPECT_EQ(sizeof rows, written);
  int32_t batch = 0;
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                                                    sizeof batch, &written));
  EXPECT_EQ(1, batch);
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS,
            cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_LD, nullptr, 0, &written));
  EXPECT_EQ(8u, written);
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE,
            cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &batch, sizeof batch));
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE,
            cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, nullptr, sizeof rows));
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutDestroy(layout));
}

TEST(CublasLtHeuristic, ResultsStayWithinTheWorkspaceOfThePreference) {
  Shape shape;
  shape.m = 64, shape.n = 32, shape.k = 512;
  Matmul matmul(shape);
  for (const uint64_t limit : {uint64_t{0}, uint64_t{10000}, uint64_t{100000}}) {
    cublasLtMatmulHeuristicResult_t result = {};
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Heuristic(limit, &result));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, result.state);
    EXPECT_LE(result.workspaceSize, limit);
  }
}

TEST(CublasLtHeuristic, RowMajorOutputTakesNoBias) {
  Shape shape;
  shape.order = CUBLASLT_ORDER_ROW;
  Matmul matmul(shape);
  matmul.SetDesc(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(CUBLASLT_EPILOGUE_BIAS));
  matmul.SetDesc(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(matmul.bias.get()));
  cublasLtMatmulHeuristicResult_t result = {};
  EXPECT_EQ(CUBLAS_STATUS_NOT_SUPPORTED, matmul.Heuristic(0, &result));
}

TEST(CublasLtHeuristic, BiasHasTheTypeOfTheOutput) {
  for (const auto out : {CUDA_R_16BF, CUDA_R_32F}) {
    for (const auto bias : {CUDA_R_16BF, CUDA_R_32F}) {
      Shape shape;
      shape.m = 64, shape.n = 32, shape.k = 64;
      shape.in = CUDA_R_16BF, shape.out = out;
      shape.epilogue = CUBLASLT_EPILOGUE_BIAS;
      Matmul matmul(shape);
      matmul.SetDesc(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(bias));
      cublasLtMatmulHeuristicResult_t result = {};
      EXPECT_EQ(bias == out ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE, matmul.Heuristic(0, &result));
    }
  }
}

TEST(CublasLtHeuristic, LayoutsThatDoNotMatchAreRefused) {
  Matmul matmul{Shape()};
  matmul.layout_b.Set(CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{7});
  cublasLtMatmulHeuristicResult_t result = {};
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, matmul.Heuristic(0, &result));
}

}  // namespace
