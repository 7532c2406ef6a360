// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Variables of a device under the checks, for twins, on several devices and after a reset. What the calls answer is
// recorded in test/conformance.
#include <cstdlib>

#include "test/sim/check_test.h"

namespace {

using gcap_test::Check;

#define OK(call) EXPECT_EQ(cudaSuccess, call)

constexpr size_t kWords = 4, kBytesOfWords = kWords * sizeof(int);
const int kInitial[kWords] = {7, 8};
char g_table, g_limits, g_late;  // the addresses stand for the variables
char g_sum_stub, g_wrong_stub;

// out[0] = table[0] + limits[0]
void RunSum(const gcap_sim_launch_t* launch, void* const* args) {
  const int* table = static_cast<const int*>(gcap_sim_symbol_address(launch, "table"));
  const int* limits = static_cast<const int*>(gcap_sim_symbol_address(launch, "limits"));
  **static_cast<int* const*>(args[0]) = table[0] + limits[0];
}

size_t SumAccesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  if (capacity < 3) return 3;
  out[0] = {gcap_sim_symbol_address(launch, "table"), sizeof(int), 0};
  out[1] = {gcap_sim_symbol_address(launch, "limits"), sizeof(int), 0};
  out[2] = {*static_cast<void* const*>(args[0]), sizeof(int), 1};
  return 3;
}

void RunWrong(const gcap_sim_launch_t* launch, void* const*) { gcap_sim_symbol_address(launch, "tabel"); }

const bool g_registered = [] {
  static const size_t kPointer[] = {sizeof(int*)};
  const gcap_sim_kernel_t sum = {&g_sum_stub, "sum", kPointer, 1, RunSum, SumAccesses};
  const gcap_sim_kernel_t wrong = {&g_wrong_stub, "wrong", nullptr, 0, RunWrong, nullptr};
  const gcap_sim_symbol_t table = {&g_table, "table", kBytesOfWords, kInitial};
  const gcap_sim_symbol_t limits = {&g_limits, "limits", sizeof(int), nullptr};
  gcap_sim_register_kernel(&sum);
  gcap_sim_register_kernel(&wrong);
  gcap_sim_register_symbol(&table);
  gcap_sim_register_symbol(&limits);
  return true;
}();

class Symbol : public Check {
 protected:
  void TearDown() override {
    for (const void* symbol : {&g_table, &g_limits}) {
      const int first = symbol == &g_table ? kInitial[0] : 0;
      OK(cudaMemcpyToSymbol(symbol, &first, sizeof(first)));
    }
    Check::TearDown();
  }

  cudaError_t Sum(void* out, cudaStream_t stream) {
    void* args[] = {&out};
    return cudaLaunchKernel(&g_sum_stub, dim3(1), dim3(1), args, 0, stream);
  }
  int SumNow() {
    int sum = -1;
    OK(Sum(x_, a_));
    OK(cudaStreamSynchronize(a_));
    OK(cudaMemcpy(&sum, x_, sizeof(sum), cudaMemcpyDeviceToHost));
    return sum;
  }
  cudaError_t Set(const void* symbol, cudaStream_t stream) {
    *reinterpret_cast<int*>(pinned_) = 30;
    return cudaMemcpyToSymbolAsync(symbol, pinned_, sizeof(int), 0, cudaMemcpyHostToDevice, stream);
  }
};

TEST_F(Symbol, ATwinSeesTheFirstContentsAndWhatIsCopied) {
  EXPECT_EQ(7, SumNow());
  const int table = 20, limits = 4;
  OK(cudaMemcpyToSymbol(&g_table, &table, sizeof(table)));
  OK(cudaMemcpyToSymbol(&g_limits, &limits, sizeof(limits)));
  EXPECT_EQ(24, SumNow());
  int second = 0;
  OK(cudaMemcpyFromSymbol(&second, &g_table, sizeof(second), sizeof(int)));
  EXPECT_EQ(8, second);
}

TEST_F(Symbol, ACapturedCopyIsReplayed) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
  OK(Set(&g_table, a_));
  OK(Sum(x_, a_));
  OK(cudaStreamEndCapture(a_, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_EQ(7, SumNow());
  *reinterpret_cast<int*>(pinned_) = 31;
  OK(cudaGraphLaunch(exec, a_));
  OK(cudaStreamSynchronize(a_));
  int sum = 0;
  OK(cudaMemcpy(&sum, x_, sizeof(sum), cudaMemcpyDeviceToHost));
  EXPECT_EQ(31, sum);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

TEST_F(Symbol, AnUnorderedCopyAndKernelAreARace) {
  ExpectOne({"race on 4 bytes of device memory", "cudaMemcpyToSymbolAsync,", "kernel `sum`"}, [&] {
    OK(Set(&g_table, a_));
    OK(Sum(x_, b_));
  });
  ExpectNone([&] {
    OK(Set(&g_table, a_));
    OK(Order(a_, b_, e1_));
    OK(Sum(x_, b_));
  });
}

TEST_F(Symbol, AnAccessBeyondTheEndIsTold) {
  ExpectOne({"16"}, [&] {
    void* address = nullptr;
    OK(cudaGetSymbolAddress(&address, &g_table));
    OK(gcap_test::Step(x_, static_cast<unsigned char*>(address) + 8, 16, a_));
  });
}

// The first contents are there before all work: the kernel that asks first does not write them.
TEST_F(Symbol, FirstUsesOnTwoStreamsAreNoRace) {
  const gcap_sim_symbol_t late = {&g_late, "late", sizeof(int), nullptr};
  gcap_sim_register_symbol(&late);
  ExpectNone([&] {
    for (cudaStream_t stream : {a_, b_}) {
      OK(cudaMemcpyFromSymbolAsync(stream == a_ ? x_ : y_, &g_late, sizeof(int), 0, cudaMemcpyDeviceToDevice, stream));
    }
  });
}

TEST_F(Symbol, NobodyOwnsOne) {
  void* address = nullptr;
  const size_t before = gcap_sim_live("device memory");
  OK(cudaGetSymbolAddress(&address, &g_table));
  EXPECT_EQ(before, gcap_sim_live("device memory"));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFree(address));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFreeAsync(address, a_));
}

using SymbolDeathTest = Symbol;

// Death tests, since a reset takes what other tests have.
void ReadAfterAReset() {
  const int table = 20;
  int read = 0;
  OK(cudaMemcpyToSymbol(&g_table, &table, sizeof(table)));
  OK(cudaDeviceReset());
  OK(cudaMemcpyFromSymbol(&read, &g_table, sizeof(read)));
  _Exit(read);
}

TEST_F(SymbolDeathTest, AResetBringsBackTheFirstContents) {
  EXPECT_EXIT(ReadAfterAReset(), testing::ExitedWithCode(kInitial[0]), "");
}

TEST_F(SymbolDeathTest, AWrongNameStopsTheProgram) {
  EXPECT_DEATH(
      {
        (void)cudaLaunchKernel(&g_wrong_stub, dim3(1), dim3(1), nullptr, 0, a_);
        (void)cudaStreamSynchronize(a_);
      },
      "there is no variable `tabel`");
  const gcap_sim_launch_t launch = {};
  EXPECT_DEATH(gcap_sim_symbol_address(&launch, "table"), "only the twin of a kernel calls it");
}

TEST_F(SymbolDeathTest, ABadRegistrationIsSaidSo) {
  static char variable;
  const gcap_sim_symbol_t nameless = {&variable, nullptr, 4, nullptr}, empty = {&variable, "empty", 0, nullptr},
                          nowhere = {nullptr, "nowhere", 4, nullptr}, twice = {&g_table, "twice", 4, nullptr};
  EXPECT_DEATH(gcap_sim_register_symbol(nullptr), "the symbol is NULL");
  EXPECT_DEATH(gcap_sim_register_symbol(&nameless), "the symbol has no name");
  EXPECT_DEATH(gcap_sim_register_symbol(&empty), "`empty` is a variable of 0 bytes");
  EXPECT_DEATH(gcap_sim_register_symbol(&nowhere), "`nowhere` is a variable of 4 bytes at");
  EXPECT_DEATH(gcap_sim_register_symbol(&twice), "`twice` has the address of `table`");
}

}  // namespace
