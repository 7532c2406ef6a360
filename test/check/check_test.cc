// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A check itself: what it refuses, what it reports, what it writes, and that it ends what it made.

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "gcap/graph_guards.h"
#include "test/check/operation.h"

namespace gcap {
namespace testing {
namespace {

class CheckTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    operation_ = std::make_unique<Operation>("scale");
    x_ = operation_->Input("x");
    y_ = operation_->Output("y");
    operation_->work = [this](const gcap_run_resources_t* r) { return Relu(x_, y_, r->cuda_stream); };
    gcap_check_report_init(&report_);
  }
  // Refused, before the operation ran, and by a message that names these.
  void ExpectRefused(const std::vector<std::string>& texts, gcap_code_t code = GCAP_INVALID_ARGUMENT) {
    int runs = 0;
    operation_->work = [&runs](const gcap_run_resources_t*) -> gcap_status_t {
      ++runs;
      return nullptr;
    };
    const Outcome outcome(operation_->Run(&report_));
    EXPECT_STREQ(gcap_code_name(outcome.code), gcap_code_name(code)) << outcome.message;
    for (const std::string& text : texts) EXPECT_TRUE(outcome.Names(text)) << text << " is not in: " << outcome.message;
    EXPECT_EQ(runs, 0);
    EXPECT_FALSE(report_.is_done);
    EXPECT_EQ(report_.num_findings, 0u);
  }

  std::unique_ptr<Operation> operation_;
  float *x_ = nullptr, *y_ = nullptr;
  gcap_check_report_t report_;
};

// --- Bad input ------------------------------------------------------------------------------------------------------------

TEST_F(CheckTest, WithoutWorkIsRefused) {
  gcap_check_buffer_t output = operation_->last_output();
  gcap_check_t check;
  gcap_check_init(&check);
  check.outputs = &output;
  check.num_outputs = 1;
  GCAP_EXPECT_FAILS(gcap_check_capturable(&check, &report_), GCAP_INVALID_ARGUMENT, "no work");
}

TEST_F(CheckTest, WithoutOutputsIsRefused) {
  gcap_check_t check = operation_->check;
  check.work = [](void*, const gcap_run_resources_t*) -> gcap_status_t { return nullptr; };
  GCAP_EXPECT_FAILS(gcap_check_capturable(&check, &report_), GCAP_INVALID_ARGUMENT, "no outputs");
}

TEST_F(CheckTest, ACountWithoutAListIsRefused) {
  gcap_check_t check = operation_->check;
  check.work = [](void*, const gcap_run_resources_t*) -> gcap_status_t { return nullptr; };
  check.num_outputs = 3;
  GCAP_EXPECT_FAILS(gcap_check_capturable(&check, &report_), GCAP_INVALID_ARGUMENT, "3 outputs");
}

TEST_F(CheckTest, ABufferWithoutBytesIsRefused) {
  operation_->last_output().bytes = 0;
  ExpectRefused({"output 0 'y'", "0 bytes", "no address, or no bytes"});
}

TEST_F(CheckTest, ABufferWithoutAddressIsRefused) {
  operation_->last_input().address = nullptr;
  ExpectRefused({"input 0 'x'", "no address, or no bytes"});
}

TEST_F(CheckTest, HalfAnElementIsRefused) {
  operation_->last_input().bytes -= 2;
  ExpectRefused({"input 0 'x'", "1022 bytes", "no multiple of an element's"});
}

TEST_F(CheckTest, AnUnknownTypeIsRefused) {
  operation_->last_input().type = static_cast<gcap_dtype_t>(99);
  ExpectRefused({"input 0 'x'", "gcap_dtype_t"});
}

TEST_F(CheckTest, AToleranceThatIsNoneIsRefused) {
  for (const double tolerance : {-1.0, std::nan("")}) {
    operation_->last_output().absolute = tolerance;
    ExpectRefused({"output 0 'y'", "a number of at least 0"});
    operation_->last_output().absolute = 0;
    operation_->last_output().relative = tolerance;
    ExpectRefused({"output 0 'y'", "a number of at least 0"});
    operation_->last_output().relative = 0;
  }
}

TEST_F(CheckTest, BytesBeyondTheAllocationAreRefused) {
  operation_->last_output().bytes *= 4096;
  ExpectRefused({"'y'", "beyond the end of its allocation"});
}

TEST_F(CheckTest, BytesBeyondTheAddressSpaceAreRefused) {
  operation_->last_output().bytes = SIZE_MAX - 3;
  ExpectRefused({"output 0 'y'", "end of the address space"});
}

TEST_F(CheckTest, PageableMemoryIsRefused) {
  std::vector<float> pageable(kElements);
  operation_->last_output().address = pageable.data();
  ExpectRefused({"'y'", "no memory that CUDA knows"});
}

TEST_F(CheckTest, BuffersThatShareBytesAreRefused) {
  operation_->last_output().address = x_ + kElements / 2;
  operation_->last_output().bytes = kElementBytes / 2;
  ExpectRefused({"'x'", "'y'", "share bytes", "in_place"});
}

TEST_F(CheckTest, BuffersThatTouchAreNotRefused) {
  float* whole = operation_->Output("whole");
  operation_->last_output().bytes = kElementBytes / 2;
  gcap_check_buffer_t half = operation_->last_output();
  half.address = whole + kElements / 2;
  half.name = "half";
  operation_->Append(half);
  operation_->work = [this, whole](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(x_, whole, 1, r->cuda_stream));
    return Relu(x_, y_, r->cuda_stream);
  };
  GCAP_EXPECT_OK(operation_->Run(&report_));
  EXPECT_EQ(report_.num_findings, 0u) << TextOf(operation_->check, report_);
}

TEST_F(CheckTest, AnInputInPlaceIsRefused) {
  operation_->last_input().in_place = true;
  ExpectRefused({"input 0 'x'", "in_place"});
}

TEST_F(CheckTest, AnOutputOnTheHostIsRefused) {
  operation_->last_output().on_host = true;
  ExpectRefused({"output 0 'y'", "on_host"});
}

TEST_F(CheckTest, AFillThatFailsEndsTheCheck) {
  operation_->last_input().fill = [](void*, uint64_t, void*) { return GCAP_STATUS(GCAP_NOT_FOUND, "no such file"); };
  ExpectRefused({"no such file"}, GCAP_NOT_FOUND);
}

TEST_F(CheckTest, StructsThatWereNotInitializedAreRefused) {
  operation_->check.struct_size = 0;
  ExpectRefused({"gcap_check", "_init"});
  operation_->check.struct_size = sizeof(gcap_check_t);
  report_.struct_size = 3;
  GCAP_EXPECT_FAILS(operation_->Run(&report_), GCAP_INVALID_ARGUMENT, "gcap_check_report_init");
  EXPECT_EQ(report_.struct_size, 3u);
}

TEST_F(CheckTest, ACapturingThreadIsRefused) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream, nullptr, &capture));
  ExpectRefused({"gcap_check_capturable"}, GCAP_FAILED_PRECONDITION);
  gcap_capture_abort(capture);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(CheckTest, AFileThatCannotBeWrittenFailsTheCheckBehindItsVerdict) {
  operation_->check.events = "/nonexistent/check.events";
  GCAP_EXPECT_FAILS(operation_->Run(&report_), GCAP_INVALID_ARGUMENT, "/nonexistent/check.events");
  EXPECT_FALSE(report_.is_done);
}

// --- What is reported -----------------------------------------------------------------------------------------------------

TEST_F(CheckTest, AReportSaysWhatWasDoneAndWhatStaysHeld) {
  operation_->check.seed = 4711;
  operation_->work = [this](const gcap_run_resources_t* r) -> gcap_status_t {
    void* between = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(r->scratch, kElementBytes, r->stream, &between));
    gcap_status_t status = Relu(x_, static_cast<float*>(between), r->cuda_stream);
    if (status == nullptr) status = Add(static_cast<float*>(between), y_, 1, r->cuda_stream);
    return gcap_status_join(status, gcap_scratch_free(r->scratch, between));
  };
  GCAP_EXPECT_OK(operation_->Run(&report_));
  EXPECT_TRUE(report_.is_done);
  EXPECT_EQ(report_.seed, 4711u);
  EXPECT_EQ(report_.num_findings, 0u);
  EXPECT_EQ(report_.nodes, 2u);
  EXPECT_EQ(report_.kernel_nodes, 2u);
  EXPECT_GE(report_.held_bytes, kElementBytes);
  EXPECT_GT(report_.exec_bytes, 0u);
  EXPECT_EQ(report_.kept_scratch_bytes, 0u);
  // Twice in a row: nothing of one check is left for the next.
  gcap_check_report_t again;
  gcap_check_report_init(&again);
  GCAP_EXPECT_OK(operation_->Run(&again));
  EXPECT_EQ(again.eager_runs, report_.eager_runs);
  EXPECT_EQ(again.replays, report_.replays);
}

TEST_F(CheckTest, KeptScratchIsCounted) {
  auto kept = std::make_shared<void*>(nullptr);
  operation_->work = [this, kept](const gcap_run_resources_t* r) -> gcap_status_t {
    if (*kept == nullptr) {
      GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(r->scratch, kElementBytes, r->stream, kept.get()));
      GCAP_RETURN_IF_ERROR(gcap_scratch_keep(r->scratch, *kept));
    }
    return Relu(x_, y_, r->cuda_stream);
  };
  GCAP_EXPECT_OK(operation_->Run(&report_));
  EXPECT_EQ(report_.num_findings, 0u) << TextOf(operation_->check, report_);
  EXPECT_EQ(report_.kept_scratch_bytes, kElementBytes);
}

TEST_F(CheckTest, ATextHasTheVerdictTheSentenceAndTheRemedy) {
  operation_->work = [this](const gcap_run_resources_t* r) { return Relu(x_, y_, r->cuda_stream, kElements / 2); };
  GCAP_EXPECT_OK(operation_->Run(&report_));
  const std::string text = TextOf(operation_->check, report_);
  for (const char* part :
       {"scale is not capturable (seed 1)", "reads_output: ", "element 128", "list the output as in_place"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
  gcap_check_report_init(&report_);
  EXPECT_NE(TextOf(operation_->check, report_).find("was not checked to the end"), std::string::npos);
}

TEST_F(CheckTest, ASeedDecidesTheFills) {
  std::vector<uint64_t> seeds;
  operation_->last_input().fill_user = &seeds;
  operation_->last_input().fill = [](void* user, uint64_t seed, void* values) -> gcap_status_t {
    static_cast<std::vector<uint64_t>*>(user)->push_back(seed);
    for (size_t i = 0; i < kElements; ++i) static_cast<float*>(values)[i] = static_cast<float>((seed + i) % 16);
    return nullptr;
  };
  for (const uint64_t seed : {7, 7, 8}) {
    operation_->check.seed = seed;
    GCAP_EXPECT_OK(operation_->Run(&report_));
    EXPECT_EQ(report_.num_findings, 0u) << TextOf(operation_->check, report_);
  }
  ASSERT_EQ(seeds.size(), 6u);
  EXPECT_NE(seeds[0], seeds[1]) << "two fills";
  EXPECT_EQ(seeds[0], seeds[2]);
  EXPECT_EQ(seeds[1], seeds[3]);
  EXPECT_NE(seeds[0], seeds[4]);
}

// The values of all types, as they are drawn.
TEST_F(CheckTest, DrawnValuesAreOfTheirType) {
  constexpr size_t kCount = 64;
  float* halves = operation_->Input("f16", kCount * 2, GCAP_DTYPE_F16);
  float* bfloats = operation_->Input("bf16", kCount * 2, GCAP_DTYPE_BF16);
  float* longs = operation_->Input("i64", kCount * 8, GCAP_DTYPE_I64);
  float* ints = operation_->Input("i32", kCount * 4, GCAP_DTYPE_I32);
  float* bytes = operation_->Input("i8", kCount, GCAP_DTYPE_I8);
  float* bools = operation_->Input("bool", kCount, GCAP_DTYPE_BOOL);
  std::vector<float> f32(kElements);
  std::vector<uint16_t> f16(kCount), bf16(kCount);
  std::vector<int64_t> i64(kCount);
  std::vector<int32_t> i32(kCount);
  std::vector<int8_t> i8(kCount);
  std::vector<uint8_t> flags(kCount);
  operation_->work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    if (!gcap_thread_is_capturing()) {
      EXPECT_EQ(cudaMemcpy(f32.data(), x_, kElementBytes, cudaMemcpyDeviceToHost), cudaSuccess);
      EXPECT_EQ(cudaMemcpy(f16.data(), halves, kCount * 2, cudaMemcpyDeviceToHost), cudaSuccess);
      EXPECT_EQ(cudaMemcpy(bf16.data(), bfloats, kCount * 2, cudaMemcpyDeviceToHost), cudaSuccess);
      EXPECT_EQ(cudaMemcpy(i64.data(), longs, kCount * 8, cudaMemcpyDeviceToHost), cudaSuccess);
      EXPECT_EQ(cudaMemcpy(i32.data(), ints, kCount * 4, cudaMemcpyDeviceToHost), cudaSuccess);
      EXPECT_EQ(cudaMemcpy(i8.data(), bytes, kCount, cudaMemcpyDeviceToHost), cudaSuccess);
      EXPECT_EQ(cudaMemcpy(flags.data(), bools, kCount, cudaMemcpyDeviceToHost), cudaSuccess);
    }
    return Relu(x_, y_, r->cuda_stream);
  };
  GCAP_EXPECT_OK(operation_->Run(&report_));
  const auto is_drawn = [](float value) { return value >= -2 && value < 2 && value * 8 == std::floor(value * 8); };
  const auto from_bits = [](uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  };
  for (const float value : f32) EXPECT_TRUE(is_drawn(value)) << value;
  for (const uint16_t bits : bf16) EXPECT_TRUE(is_drawn(from_bits(uint32_t{bits} << 16))) << bits;
  for (const uint16_t bits : f16) {  // all drawn values but zero are normal numbers
    const int exponent = (bits >> 10 & 31) - 15;
    const float magnitude = (bits & 0x7fff) == 0 ? 0.0f : std::ldexp(1.0f + float(bits & 1023) / 1024.0f, exponent);
    EXPECT_TRUE(is_drawn(bits & 0x8000 ? -magnitude : magnitude)) << bits;
  }
  for (const int64_t value : i64) EXPECT_TRUE(value >= 0 && value < 4) << value;
  for (const int32_t value : i32) EXPECT_TRUE(value >= 0 && value < 4) << value;
  for (const int8_t value : i8) EXPECT_TRUE(value >= 0 && value < 4) << int{value};
  for (const uint8_t value : flags) EXPECT_LE(value, 1);
  EXPECT_GT(std::set<float>(f32.begin(), f32.end()).size(), 16u) << "of 32 values";
  EXPECT_EQ(std::set<int32_t>(i32.begin(), i32.end()).size(), 4u);
  EXPECT_EQ(std::set<int8_t>(i8.begin(), i8.end()).size(), 4u);
}

// An output within its tolerance is no difference.
TEST_F(CheckTest, AToleranceLetsAnOutputDiffer) {
  auto calls = std::make_shared<uint64_t>(0);
  operation_->work = [this, calls](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Relu(x_, y_, r->cuda_stream));
    return Add(y_, y_, ++*calls % 2, r->cuda_stream);
  };
  GCAP_EXPECT_OK(operation_->Run(&report_));
  ASSERT_EQ(report_.num_findings, 1u);
  EXPECT_EQ(report_.findings[0].kind, GCAP_CHECK_NOT_REPEATABLE);
  operation_->last_output().absolute = 1;
  GCAP_EXPECT_OK(operation_->Run(&report_));
  EXPECT_EQ(report_.num_findings, 0u) << TextOf(operation_->check, report_);
}

// The second of two replays in a row is the third one; the end of the capture asks once, too.
TEST_F(CheckTest, AReplayThatAGuardRefusesIsNotCompared) {
  Operation operation("counter");
  float* const y = operation.InPlace("y");
  int64_t asked = 0;
  operation.work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.kind = GCAP_GRAPH_GUARD_ANSWER;
    guard.user = &asked;
    guard.ask = [](void* user, int64_t* out_answer) -> gcap_status_t {
      *out_answer = ++*static_cast<int64_t*>(user) == 4 ? 1 : 0;
      return nullptr;
    };
    asked = -1;
    GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
    asked = 0;
    return Add(y, y, 1, r->cuda_stream);
  };
  GCAP_EXPECT_OK(operation.Run(&report_));
  EXPECT_EQ(report_.num_findings, 0u) << TextOf(operation.check, report_);
  EXPECT_EQ(report_.guarded_replays, 1u);
}

TEST_F(CheckTest, AnExceptionOfTheWorkEndsTheCheck) {
  int runs = 0;
  operation_->work = [this, &runs](const gcap_run_resources_t* r) -> gcap_status_t {
    if (++runs == 9) throw std::runtime_error("no such shape");  // in the capture
    return Relu(x_, y_, r->cuda_stream);
  };
  EXPECT_THROW(gcap_status_ignore(operation_->Run(&report_)), std::runtime_error);
  EXPECT_FALSE(gcap_thread_is_capturing());
  GCAP_EXPECT_OK(operation_->Run(&report_));  // the device is usable
  EXPECT_EQ(report_.num_findings, 0u) << TextOf(operation_->check, report_);
}

TEST_F(CheckTest, AnExceptionOfAFillEndsTheCheck) {
  operation_->last_input().fill = [](void*, uint64_t, void*) -> gcap_status_t {
    throw std::runtime_error("no such file");
  };
  EXPECT_THROW(gcap_status_ignore(operation_->Run(&report_)), std::runtime_error);
  operation_->last_input().fill = nullptr;
  GCAP_EXPECT_OK(operation_->Run(&report_));  // the device is usable
  EXPECT_EQ(report_.num_findings, 0u) << TextOf(operation_->check, report_);
}

TEST_F(CheckTest, ASentenceThatIsTooLongSaysSo) {
  const std::string name(2 * GCAP_CHECK_SENTENCE_BYTES, 'n');
  operation_->last_output().name = name.c_str();
  operation_->work = [this](const gcap_run_resources_t* r) { return Relu(x_, y_, r->cuda_stream, kElements / 2); };
  GCAP_EXPECT_OK(operation_->Run(&report_));
  ASSERT_EQ(report_.num_findings, 1u);
  const std::string sentence = report_.findings[0].sentence;
  EXPECT_EQ(sentence.size(), GCAP_CHECK_SENTENCE_BYTES - 1u);
  EXPECT_EQ(sentence.substr(sentence.size() - 5), "nn...");
}

// --- Events ---------------------------------------------------------------------------------------------------------------

TEST_F(CheckTest, FindingsAreWrittenAsEvents) {
  const std::string path =
      std::string(std::getenv("TEST_TMPDIR") != nullptr ? std::getenv("TEST_TMPDIR") : "/tmp") + "/check.events";
  operation_->check.events = path.c_str();
  operation_->check.file = "scale.cc";
  operation_->check.line = 42;
  operation_->work = [this](const gcap_run_resources_t* r) { return Relu(x_, y_, r->cuda_stream, kElements / 2); };
  GCAP_EXPECT_OK(operation_->Run(&report_));
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  for (const char* part : {"gcap-events\tversion=1", "file=scale.cc\tline=42", "call\tn=1\tthread=1\tfunction=scale",
                           "difference\tcall=1\tfault=reads_output\ttext=", "element 128", "\nend\tt=0\n"}) {
    EXPECT_NE(text.str().find(part), std::string::npos) << part << " is not in: " << text.str();
  }
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
