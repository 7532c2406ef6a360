// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Short names of kernels and functions.
#include "doctor/report/names.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "doctor/report/mangled.h"

namespace {

class Names : public testing::Test {
 protected:
  Names() { gcap_doctor_heap_init(&heap_); }
  ~Names() override { gcap_doctor_heap_deinit(&heap_); }
  std::string Kernel(const char* name) { return gcap_doctor_name_kernel(&heap_, name); }
  std::string Function(const char* name) { return gcap_doctor_name_function(&heap_, name); }
  gcap_doctor_heap_t heap_;
};

TEST_F(Names, KernelKeepsTheFirstNamesOfItsTemplateArguments) {
  EXPECT_EQ(
      Kernel("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_21CUDAFunctorOnSelf_addIfEESt5arrayIPcLm2EEEEvi"
             "T0_T1_"),
      "at::native::vectorized_elementwise_kernel<CUDAFunctorOnSelf_add>");
  EXPECT_EQ(Kernel("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13BinaryFunctorIbbbNS0_15binary_internal10Mul"
                   "FunctorIbEEEESt5arrayIPcLm3EEEEviT0_T1_"),
            "at::native::vectorized_elementwise_kernel<BinaryFunctor<MulFunctor>>");
  EXPECT_EQ(
      Kernel("_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_16ceil_kernel_cudaERNS_18TensorIteratorBaseE"
             "ENKUlvE_clEvENKUlvE0_clEvEUlfE_St5arrayIPcLm2EEEEviT0_T1_"),
      "at::native::vectorized_elementwise_kernel<ceil_kernel_cuda>");
  EXPECT_EQ(
      Kernel("_ZN2at6native40_GLOBAL__N__0f1a8107_8_Shape_cu_49f7391c26CatArrayBatchedCopy_contigINS1_10OpaqueType"
             "ILj4EEEjLi1ELi128ELi1EEEvPT_"),
      "at::native::CatArrayBatchedCopy_contig<OpaqueType>");
  EXPECT_EQ(Kernel("_Z16gemmSN_NN_kernelIfLi128ELi2ELb0E30cublasGemvTensorStridedBatchedIKfES2_S0_IfEEvT7_"),
            "gemmSN_NN_kernel<cublasGemvTensorStridedBatched>");
}

TEST_F(Names, KernelOfNoTemplateIsItsName) {
  EXPECT_EQ(Kernel("_Z4axpyfPf"), "axpy");
  EXPECT_EQ(Kernel("triton_poi_fused_add_0"), "triton_poi_fused_add_0");
  EXPECT_EQ(Kernel("_Z"), "_Z");
  EXPECT_EQ(Kernel(""), "");
}

TEST_F(Names, EnumerationInAnArgumentIsNoNameOfTheKernel) {
  EXPECT_EQ(Kernel("_ZN3cub6KernelILNS_6SelectE0ENS_6PolicyEE3runEv"), "cub::Kernel::run");
}

TEST_F(Names, DemangledFunctionLosesItsTypes) {
  EXPECT_EQ(Function("void at::native::f<4, std::array<char*, 2ul> >(int, at::Tensor const&)"), "at::native::f");
  EXPECT_EQ(Function("(anonymous namespace)::step(int)"), "step");
  EXPECT_EQ(Function("_ZNK2at10TensorBase4itemEv"), "at::TensorBase::item");
  EXPECT_EQ(Function("_ZN2at6TensorC1ERKS0_"), "at::Tensor");
  EXPECT_EQ(Function("_ZNSt6vectorIiSaIiEE9push_backEOi"), "std::vector::push_back");
  EXPECT_EQ(Function("_ZZN3foo3barEvENKUlvE_clEv"), "foo::bar");
  EXPECT_EQ(Function("_ZNK3foo3barclEv"), "foo::bar::operator");
  EXPECT_EQ(Function("run_model"), "run_model");
}

// Symbols cut and spoiled anywhere: the reading ends, in bounds, which the sanitizers watch.
TEST_F(Names, SpoiledSymbolsAreRead) {
  const std::string good =
      "_ZN14at_cuda_detail3cub6detail6reduce28DeviceReduceSingleTileKernelINS2_10policy_hubIiyN4cuda3std3__"
      "44plusIvEEE10"
      "Policy1000EPiSC_iS9_iiNS7_10__identityEEEvT0_T1_T2_T3_T4_T6_";
  std::mt19937 random(17);
  size_t longest = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string symbol = good.substr(0, 2 + random() % (good.size() - 1));
    for (int j = 0; j < 3; ++j)
      symbol[2 + random() % (symbol.size() - 1 > 2 ? symbol.size() - 2 : 1)] = "ENILSZT_19UD"[random() % 12];
    gcap_doctor_mangled_t names;
    gcap_doctor_mangled_read(symbol.c_str(), &names);
    longest = std::max(longest, std::string(names.name).size());
  }
  EXPECT_GT(longest, 20u);
}

TEST_F(Names, TimesHaveThreeDigits) {
  const auto ns = [&](uint64_t value) { return std::string(gcap_doctor_name_ns(&heap_, value)); };
  EXPECT_EQ(ns(0), "0 ns");
  EXPECT_EQ(ns(999), "999 ns");
  EXPECT_EQ(ns(1234), "1.23 us");
  EXPECT_EQ(ns(45678), "45.6 us");
  EXPECT_EQ(ns(999999), "999 us");
  EXPECT_EQ(ns(2000000), "2.00 ms");
  EXPECT_EQ(ns(70000000000), "70.0 s");
  EXPECT_EQ(ns(7000000000000), "7000 s");
}

}  // namespace
