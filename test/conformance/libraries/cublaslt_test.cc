// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What cuBLASLt answers to arguments, eager and captured, and what it computes: types, epilogues, orders and batches
// against plain loops. Inputs are multiples of 1/8, so sums are exact in whatever order; results must be what the exact
// value rounds to, but for GELU, whose tanh a GPU approximates.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/conformance/libraries/answer.h"
#include "test/conformance/libraries/matmul.h"

namespace conformance {
namespace {

using gcap_test::Capture;
using gcap_test::CaptureEnd;
using gcap_test::Stream;

// --- Arguments ------------------------------------------------------------------------------------------------------

// A way to spoil a good call. The answer: the heuristic's status, the eager call's, the captured call's, and whether
// the capture goes on and has work in it.
struct ArgumentRow {
  const char* name;
  const char* answer;
  std::function<void(Matmul*)> spoil;
};

void PrintTo(const ArgumentRow& row, std::ostream* out) { *out << row.name; }

const cublasLtMatmulAlgo_t kZeroedAlgorithm = {};

// Of all four layouts.
template <typename T>
void SetAll(Matmul* m, cublasLtMatrixLayoutAttribute_t attribute, T value) {
  for (const auto layout : m->layouts) m->SetLayout(layout, attribute, value);
}

void SetHuge(Matmul* m) {
  for (const auto layout : {m->a, m->c, m->d}) {
    m->SetLayout(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{1} << 40);
    m->SetLayout(layout, CUBLASLT_MATRIX_LAYOUT_LD, int64_t{1} << 40);
  }
}

void SetInPlace(Matmul* m, float beta) {
  m->beta = beta;
  m->pointer_c = m->pointer_d;
  m->SetLayout(m->c, CUBLASLT_MATRIX_LAYOUT_LD, int64_t{65});
}

void SetWorkspace(Matmul* m, size_t offset, size_t bytes) {
  m->workspace = m->data_workspace.get() + offset;
  m->workspace_bytes = bytes;
}

const char kWorks[] = "0 0 0 work";
const char kInvalid[] = "7 7 7 empty";
const char kInvalidWhenRun[] = "0 7 7 empty";
const char kUnsupported[] = "15 15 15 empty";

std::vector<ArgumentRow> PointerRows() {
  return {
      {"good", kWorks, [](Matmul*) {}},
      {"no_handle", "1 1 1 empty", [](Matmul* m) { m->used_handle = nullptr; }},
      {"no_layout_of_A", kInvalid, [](Matmul* m) { m->a = nullptr; }},
      {"no_layout_of_B", kInvalid, [](Matmul* m) { m->b = nullptr; }},
      {"no_layout_of_C", kWorks, [](Matmul* m) { m->c = nullptr; }},
      {"no_layout_of_D", kInvalid, [](Matmul* m) { m->d = nullptr; }},
      {"no_A", kInvalidWhenRun, [](Matmul* m) { m->pointer_a = nullptr; }},
      {"no_B", kInvalidWhenRun, [](Matmul* m) { m->pointer_b = nullptr; }},
      {"no_D", kInvalidWhenRun, [](Matmul* m) { m->pointer_d = nullptr; }},
      {"no_C_though_beta", kInvalidWhenRun, [](Matmul* m) { m->beta = 1, m->pointer_c = nullptr; }},
      {"no_C_without_beta", kWorks, [](Matmul* m) { m->pointer_c = nullptr; }},
      {"D_is_C_of_another_layout", kInvalidWhenRun, [](Matmul* m) { SetInPlace(m, 1); }},
      {"D_is_C_of_another_layout_without_beta", kInvalidWhenRun, [](Matmul* m) { SetInPlace(m, 0); }},
      {"workspace_size_without_workspace", kInvalidWhenRun, [](Matmul* m) { m->workspace_bytes = 1024; }},
      {"workspace_aligned_to_1", kInvalidWhenRun, [](Matmul* m) { SetWorkspace(m, 1, 1024); }},
      {"workspace_aligned_to_16", kInvalidWhenRun, [](Matmul* m) { SetWorkspace(m, 16, 1024); }},
      {"workspace_aligned_to_128", kInvalidWhenRun, [](Matmul* m) { SetWorkspace(m, 128, 1024); }},
      {"workspace_aligned_to_1_of_no_size", kInvalidWhenRun, [](Matmul* m) { SetWorkspace(m, 1, 0); }},
      {"workspace_of_no_size", kWorks, [](Matmul* m) { SetWorkspace(m, 0, 0); }},
      {"zeroed_algorithm", "0 15 15 empty", [](Matmul* m) { m->algorithm = &kZeroedAlgorithm; }},
      {"no_bias", kInvalidWhenRun, [](Matmul* m) { m->SetEpilogue(CUBLASLT_EPILOGUE_BIAS); }},
      {"misaligned_bias", kInvalid,
       [](Matmul* m) {
         m->SetEpilogue(CUBLASLT_EPILOGUE_BIAS);
         m->SetBias(static_cast<char*>(m->data_bias.get()) + 1);
       }},
      {"bias_that_the_epilogue_does_not_use", kInvalidWhenRun, [](Matmul* m) { m->SetBias(m->data_bias.get()); }},
      {"no_C_in_device_pointer_mode", kInvalidWhenRun,
       [](Matmul* m) {
         m->SetDesc(CUBLASLT_MATMUL_DESC_POINTER_MODE, static_cast<int32_t>(CUBLASLT_POINTER_MODE_DEVICE));
         m->alpha_pointer = m->beta_pointer = m->data_bias.get();
         m->pointer_c = nullptr;
       }},
  };
}

std::vector<ArgumentRow> LayoutRows() {
  return {
      {"leading_dimension_below_the_rows", kInvalid,
       [](Matmul* m) { m->SetLayout(m->a, CUBLASLT_MATRIX_LAYOUT_LD, int64_t{63}); }},
      {"leading_dimension_0", kInvalid, [](Matmul* m) { m->SetLayout(m->a, CUBLASLT_MATRIX_LAYOUT_LD, int64_t{0}); }},
      {"leading_dimension_negative", kInvalid,
       [](Matmul* m) { m->SetLayout(m->a, CUBLASLT_MATRIX_LAYOUT_LD, int64_t{-64}); }},
      {"leading_dimension_of_D_below_the_rows", kInvalid,
       [](Matmul* m) { m->SetLayout(m->d, CUBLASLT_MATRIX_LAYOUT_LD, int64_t{10}); }},
      {"inner_dimensions_differ", kInvalid,
       [](Matmul* m) { m->SetLayout(m->b, CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{511}); }},
      {"rows_of_C_and_D_differ", kInvalid,
       [](Matmul* m) { m->SetLayout(m->c, CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{63}); }},
      {"too_many_rows", kUnsupported, SetHuge},
      {"batch_counts_differ", kInvalid,
       [](Matmul* m) { m->SetLayout(m->b, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{2}); }},
      {"batch_count_0_is_1", kWorks, [](Matmul* m) { SetAll(m, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{0}); }},
      {"batch_count_negative_is_1", kWorks,
       [](Matmul* m) { SetAll(m, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{-1}); }},
      {"conjugate_of_A", kWorks,
       [](Matmul* m) { m->SetDesc(CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(CUBLAS_OP_CONJG)); }},
      {"transpose_of_C", "15 15 15 empty",
       [](Matmul* m) { m->SetDesc(CUBLASLT_MATMUL_DESC_TRANSC, static_cast<int32_t>(CUBLAS_OP_T)); }},
      {"order_unknown", kUnsupported, [](Matmul* m) { m->SetLayout(m->a, CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t{77}); }},
      {"order_of_integer_tiles", kUnsupported,
       [](Matmul* m) { m->SetLayout(m->a, CUBLASLT_MATRIX_LAYOUT_ORDER, static_cast<int32_t>(CUBLASLT_ORDER_COL32)); }},
      {"rows_of_A", kWorks, [](Matmul* m) { m->SetRowMajor(m->a, 512); }},
      {"rows_of_D_and_columns_of_C", kInvalid, [](Matmul* m) { m->SetRowMajor(m->d, 32); }},
      {"rows_of_C_and_D", kWorks,
       [](Matmul* m) {
         m->SetRowMajor(m->c, 32);
         m->SetRowMajor(m->d, 32);
       }},
      {"type_unknown", kUnsupported, [](Matmul* m) { m->SetLayout(m->a, CUBLASLT_MATRIX_LAYOUT_TYPE, uint32_t{999}); }},
      {"type_of_A_double", kUnsupported,
       [](Matmul* m) { m->SetLayout(m->a, CUBLASLT_MATRIX_LAYOUT_TYPE, static_cast<uint32_t>(CUDA_R_64F)); }},
      {"pointer_mode_unknown", kInvalid, [](Matmul* m) { m->SetDesc(CUBLASLT_MATMUL_DESC_POINTER_MODE, int32_t{9}); }},
      {"pointer_mode_vectors", kUnsupported,
       [](Matmul* m) {
         m->SetDesc(CUBLASLT_MATMUL_DESC_POINTER_MODE, static_cast<int32_t>(CUBLASLT_POINTER_MODE_DEVICE_VECTOR));
       }},
      {"compute_type_unknown", kUnsupported,
       [](Matmul* m) { m->SetDesc(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, int32_t{999}); }},
      {"scale_type_half", kInvalid,
       [](Matmul* m) { m->SetDesc(CUBLASLT_MATMUL_DESC_SCALE_TYPE, static_cast<int32_t>(CUDA_R_16F)); }},
      {"epilogue_unknown", kInvalid, [](Matmul* m) { m->SetEpilogue(1000); }},
  };
}

std::vector<ArgumentRow> AuxRows() {
  const auto aux = [](Matmul* m, uint32_t epilogue, int64_t ld) {
    m->SetEpilogue(epilogue);
    m->SetDesc(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(m->data_workspace.get()));
    m->SetDesc(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, ld);
  };
  return {
      {"mask_missing", "0 15 15 empty", [](Matmul* m) { m->SetEpilogue(CUBLASLT_EPILOGUE_RELU_AUX); }},
      {"mask_of_no_leading_dimension", kInvalid, [aux](Matmul* m) { aux(m, CUBLASLT_EPILOGUE_RELU_AUX, 0); }},
      {"mask_of_half_words", kInvalid, [aux](Matmul* m) { aux(m, CUBLASLT_EPILOGUE_RELU_AUX, 64); }},
      {"mask_of_whole_words", kWorks, [aux](Matmul* m) { aux(m, CUBLASLT_EPILOGUE_RELU_AUX, 128); }},
      {"gelu_input_missing", "0 15 15 empty", [](Matmul* m) { m->SetEpilogue(CUBLASLT_EPILOGUE_GELU_AUX); }},
      {"gelu_input_of_no_leading_dimension", kInvalid, [aux](Matmul* m) { aux(m, CUBLASLT_EPILOGUE_GELU_AUX, 0); }},
      {"gelu_input", kWorks, [aux](Matmul* m) { aux(m, CUBLASLT_EPILOGUE_GELU_AUX, 64); }},
      {"mask_of_a_row_major_output", kUnsupported,
       [aux](Matmul* m) {
         aux(m, CUBLASLT_EPILOGUE_RELU_AUX, 128);
         m->SetRowMajor(m->c, 32);
         m->SetRowMajor(m->d, 32);
       }},
      {"bias_of_a_row_major_output", kUnsupported,
       [](Matmul* m) {
         m->SetEpilogue(CUBLASLT_EPILOGUE_BIAS);
         m->SetBias(m->data_bias.get());
         m->SetRowMajor(m->c, 32);
         m->SetRowMajor(m->d, 32);
       }},
  };
}

std::vector<ArgumentRow> ArgumentRows() {
  std::vector<ArgumentRow> rows = PointerRows();
  for (const auto& more : {LayoutRows(), AuxRows()}) rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

class CublasLtArguments : public testing::TestWithParam<ArgumentRow> {};

TEST_P(CublasLtArguments, Answer) {
  Matmul matmul;
  GetParam().spoil(&matmul);
  Stream stream;
  std::vector<cublasLtMatmulHeuristicResult_t> results;
  const cublasStatus_t asked = matmul.Heuristic(0, &results);
  const cublasStatus_t eager = matmul.Run(stream.get());
  stream.Synchronize();
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    cublasStatus_t captured = CUBLAS_STATUS_SUCCESS;
    const CaptureEnd end = Capture(stream.get(), mode, [&] { captured = matmul.Run(stream.get()); });
    EXPECT_EQ(cudaStreamCaptureStatusActive, end.status);
    EXPECT_EQ(cudaSuccess, end.code);
    const std::string got = std::to_string(asked) + " " + std::to_string(eager) + " " + std::to_string(captured) + " " +
                            (end.nodes > 0 ? "work" : "empty");
    ExpectAnswer(std::string("cublasLt_") + GetParam().name, GetParam().answer, got);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, CublasLtArguments, testing::ValuesIn(ArgumentRows()),
                         [](const testing::TestParamInfo<ArgumentRow>& info) { return info.param.name; });

// --- Types ----------------------------------------------------------------------------------------------------------

const cudaDataType kTypes[] = {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF};

// The heuristic's status for types of A and B, C, D, by compute type.
int RecordedTypeStatus(cublasComputeType_t compute, cudaDataType in, cudaDataType c, cudaDataType d) {
  const bool fast = compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_PEDANTIC;
  const bool has_kernel = d == in || d == CUDA_R_32F || (in == CUDA_R_32F && fast);
  return !has_kernel ? 15 : c == d ? 0 : 7;
}

class CublasLtTypes : public testing::TestWithParam<cublasComputeType_t> {};

TEST_P(CublasLtTypes, GoTogether) {
  for (const cudaDataType in : kTypes) {
    for (const cudaDataType c : kTypes) {
      for (const cudaDataType d : kTypes) {
        MatmulShape shape;
        shape.m = shape.n = shape.k = 64;
        shape.in = in, shape.compute = GetParam();
        Matmul matmul(shape);
        matmul.SetLayout(matmul.c, CUBLASLT_MATRIX_LAYOUT_TYPE, static_cast<uint32_t>(c));
        matmul.SetLayout(matmul.d, CUBLASLT_MATRIX_LAYOUT_TYPE, static_cast<uint32_t>(d));
        std::vector<cublasLtMatmulHeuristicResult_t> results;
        const int got = matmul.Heuristic(0, &results);
        EXPECT_EQ(RecordedTypeStatus(GetParam(), in, c, d), got) << NameOf(in) << " " << NameOf(c) << " " << NameOf(d);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ComputeTypes, CublasLtTypes,
                         testing::Values(CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_COMPUTE_32F_FAST_TF32,
                                         CUBLAS_COMPUTE_32F_FAST_16F, CUBLAS_COMPUTE_32F_FAST_16BF));

TEST(CublasLtInputs, OfDifferentTypesAreInvalid) {
  for (const cudaDataType a : kTypes) {
    for (const cudaDataType b : kTypes) {
      if (a == b) continue;
      Matmul matmul;
      matmul.SetLayout(matmul.a, CUBLASLT_MATRIX_LAYOUT_TYPE, static_cast<uint32_t>(a));
      matmul.SetLayout(matmul.b, CUBLASLT_MATRIX_LAYOUT_TYPE, static_cast<uint32_t>(b));
      std::vector<cublasLtMatmulHeuristicResult_t> results;
      EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, matmul.Heuristic(0, &results)) << NameOf(a) << " " << NameOf(b);
    }
  }
}

// --- Results --------------------------------------------------------------------------------------------------------

struct ResultRow {
  const char* name;
  uint32_t epilogue;
  cudaDataType in;
  cudaDataType out;
};

void PrintTo(const ResultRow& row, std::ostream* out) { *out << row.name; }

std::vector<ResultRow> ResultRows() {
  static const struct {
    const char* name;
    uint32_t value;
  } kEpilogues[] = {
      {"default", CUBLASLT_EPILOGUE_DEFAULT},   {"relu", CUBLASLT_EPILOGUE_RELU},
      {"bias", CUBLASLT_EPILOGUE_BIAS},         {"relu_bias", CUBLASLT_EPILOGUE_RELU_BIAS},
      {"gelu", CUBLASLT_EPILOGUE_GELU},         {"gelu_bias", CUBLASLT_EPILOGUE_GELU_BIAS},
      {"relu_aux", CUBLASLT_EPILOGUE_RELU_AUX}, {"relu_aux_bias", CUBLASLT_EPILOGUE_RELU_AUX_BIAS},
      {"gelu_aux", CUBLASLT_EPILOGUE_GELU_AUX}, {"gelu_aux_bias", CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
  };
  std::vector<ResultRow> rows;
  for (const auto& epilogue : kEpilogues) {
    for (const cudaDataType in : kTypes) {
      for (const cudaDataType out : {in, CUDA_R_32F}) {
        rows.push_back({epilogue.name, epilogue.value, in, out});
        if (in == CUDA_R_32F) break;
      }
    }
  }
  return rows;
}

double Gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

class CublasLtResults : public testing::TestWithParam<ResultRow> {
 protected:
  static constexpr int64_t kRows = 40, kCols = 24, kMaskLd = 128;
  static constexpr size_t kAuxBytes = kCols * kMaskLd / 8 + kCols * kRows * 4;

  bool Has(uint32_t bit) const { return (GetParam().epilogue & bit) == bit; }
  bool has_gelu() const { return Has(32); }
  bool has_aux() const { return Has(128); }

  void SetUpEpilogue(Matmul* matmul, void* aux) {
    matmul->SetEpilogue(GetParam().epilogue);
    if (Has(CUBLASLT_EPILOGUE_BIAS)) matmul->SetBias(matmul->data_bias.get());
    if (!has_aux()) return;
    matmul->SetDesc(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    matmul->SetDesc(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, has_gelu() ? kRows : kMaskLd);
  }

  // A GPU's tanh is good to about 1e-5.
  double Tolerance(double before, double after) const {
    const double rounding = GetParam().out == CUDA_R_32F ? 0.0 : Spacing(after, GetParam().out);
    return has_gelu() ? 1e-5 * std::max(1.0, std::fabs(before)) + rounding : 0.0;
  }

  void ExpectAux(const std::vector<uint8_t>& aux, int64_t i, int64_t j, double before) const {
    if (has_gelu()) {
      const size_t bytes = FormatOf(GetParam().out).bytes;
      uint32_t bits = 0;
      std::memcpy(&bits, &aux[static_cast<size_t>(i + j * kRows) * bytes], bytes);
      EXPECT_EQ(Round(before, GetParam().out), Value(bits, GetParam().out));
    } else {
      const size_t bit = static_cast<size_t>(i + j * kMaskLd);
      EXPECT_EQ(before >= 0, (aux[bit / 8] >> bit % 8 & 1) != 0) << i << " " << j << " " << before;
    }
  }
};

TEST_P(CublasLtResults, AreTheExactOnesRounded) {
  MatmulShape shape;
  shape.m = kRows, shape.n = kCols, shape.k = 64;
  shape.in = GetParam().in, shape.out = GetParam().out;
  Matmul matmul(shape);
  matmul.alpha = 0.5f, matmul.beta = -1.0f;
  const gcap_test::DeviceArray<uint8_t> aux{std::vector<uint8_t>(kAuxBytes)};
  SetUpEpilogue(&matmul, aux.get());
  Stream stream;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Run(stream.get()));
  stream.Synchronize();
  const std::vector<double> got = matmul.data_d.Get();
  const std::vector<uint8_t> got_aux = aux.Download();
  for (int64_t j = 0; j < kCols; ++j) {
    for (int64_t i = 0; i < kRows; ++i) {
      const double before = matmul.Expected(i, j, Has(CUBLASLT_EPILOGUE_BIAS));
      const double after = has_gelu() ? Gelu(before) : Has(CUBLASLT_EPILOGUE_RELU) ? std::max(before, 0.0) : before;
      const double expected = has_gelu() ? after : Round(after, shape.out);
      ASSERT_NEAR(expected, Matmul::At(got, i + j * kRows), Tolerance(before, after)) << i << " " << j;
      if (has_aux()) ExpectAux(got_aux, i, j, before);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, CublasLtResults, testing::ValuesIn(ResultRows()),
                         [](const testing::TestParamInfo<ResultRow>& info) {
                           return std::string(info.param.name) + "_" + NameOf(info.param.in) + "_" +
                                  NameOf(info.param.out);
                         });

// Orders: each of A, B and the pair of C and D by rows or by columns.
class CublasLtOrders : public testing::TestWithParam<int> {};

TEST_P(CublasLtOrders, GiveTheSameProduct) {
  MatmulShape shape;
  shape.m = 24, shape.n = 16, shape.k = 32;
  Matmul matmul(shape);
  const bool rows_a = (GetParam() & 1) != 0, rows_b = (GetParam() & 2) != 0, rows_d = (GetParam() & 4) != 0;
  // The values stand as columns; a transposed shape of the same memory is the matrix by rows.
  const auto by_rows = [](const std::vector<double>& values, int64_t rows, int64_t cols) {
    std::vector<double> out(values.size());
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        out[static_cast<size_t>(i * cols + j)] = values[static_cast<size_t>(i + j * rows)];
      }
    }
    return out;
  };
  if (rows_a) {
    matmul.data_a.Set(by_rows(matmul.values_a, shape.m, shape.k));
    matmul.SetRowMajor(matmul.a, shape.k);
  }
  if (rows_b) {
    matmul.data_b.Set(by_rows(matmul.values_b, shape.k, shape.n));
    matmul.SetRowMajor(matmul.b, shape.n);
  }
  if (rows_d) {
    matmul.SetRowMajor(matmul.c, shape.n);
    matmul.SetRowMajor(matmul.d, shape.n);
  }
  Stream stream;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Run(stream.get()));
  stream.Synchronize();
  const std::vector<double> got = matmul.data_d.Get();
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < shape.n; ++j) {
      const int64_t at = rows_d ? i * shape.n + j : i + j * shape.m;
      ASSERT_EQ(matmul.Expected(i, j, false), Matmul::At(got, at)) << i << " " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RowsOfABD, CublasLtOrders, testing::Range(0, 8));

TEST(CublasLtBatches, ShareAnInputOfStrideZero) {
  MatmulShape shape;
  shape.m = 16, shape.n = 16, shape.k = 32;
  Matmul matmul(shape);
  // Two batches of half the columns each: B, C and D continue, A is the same for both.
  for (const auto layout : {matmul.b, matmul.c, matmul.d}) {
    matmul.SetLayout(layout, CUBLASLT_MATRIX_LAYOUT_COLS, uint64_t{8});
  }
  SetAll(&matmul, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{2});
  matmul.SetLayout(matmul.b, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t{32 * 8});
  matmul.SetLayout(matmul.c, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t{16 * 8});
  matmul.SetLayout(matmul.d, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t{16 * 8});
  Stream stream;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Run(stream.get()));
  stream.Synchronize();
  const std::vector<double> got = matmul.data_d.Get();
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < shape.n; ++j) {
      ASSERT_EQ(matmul.Expected(i, j, false), Matmul::At(got, i + j * shape.m)) << i << " " << j;
    }
  }
}

// Every algorithm that the heuristic offers within a limit needs no more, gives the product with what it needs, and
// refuses a byte less.
class CublasLtWorkspace : public testing::TestWithParam<uint64_t> {};

TEST_P(CublasLtWorkspace, IsWhatTheHeuristicSays) {
  Matmul matmul;
  std::vector<cublasLtMatmulHeuristicResult_t> results;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Heuristic(GetParam(), &results));
  ASSERT_FALSE(results.empty());
  Stream stream;
  for (const auto& result : results) {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, result.state);
    EXPECT_LE(result.workspaceSize, GetParam());
    matmul.algorithm = &result.algo;
    if (result.workspaceSize > 0) {
      SetWorkspace(&matmul, 0, result.workspaceSize - 1);
      EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, matmul.Run(stream.get()));
    }
    SetWorkspace(&matmul, 0, result.workspaceSize);
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Run(stream.get()));
    stream.Synchronize();
    const std::vector<double> got = matmul.data_d.Get();
    for (const int64_t i : {0, 17, 63}) {
      EXPECT_EQ(matmul.Expected(i, 31, false), Matmul::At(got, i + 31 * matmul.shape.m));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Limits, CublasLtWorkspace, testing::Values(0, 40000, 1 << 20));

TEST(CublasLtWorkspace, OfALargeProductIsNotAlwaysZero) {
  Matmul matmul;
  std::vector<cublasLtMatmulHeuristicResult_t> results;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Heuristic(uint64_t{1} << 20, &results));
  size_t most = 0;
  for (const auto& result : results) most = std::max(most, result.workspaceSize);
  EXPECT_GT(most, 0u);
}

}  // namespace
}  // namespace conformance
