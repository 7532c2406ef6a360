// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "gcap/status.h"

#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "lib/base/rename.h"
#include "test/base/heap_failure.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

using StatusOnDevice = DeviceTest;

// A status that a test must end itself.
gcap_status_t CudaFailure() { return gcap_status_from_cuda(cudaErrorInvalidValue, "cudaThing(1, 2)", "there.c", 7); }

std::string MessageOf(gcap_status_t status) { return gcap_status_message(status); }

gcap_status_t ReturnEarly(gcap_status_t status, bool* went_on) {
  GCAP_RETURN_IF_ERROR(status);
  *went_on = true;
  return nullptr;
}

TEST(Status, NullIsSuccess) {
  EXPECT_EQ(gcap_status_code(nullptr), GCAP_OK);
  EXPECT_STREQ(gcap_status_message(nullptr), "OK");
  EXPECT_EQ(StatusInfo(nullptr).cuda_error, cudaSuccess);
  EXPECT_STREQ(StatusInfo(nullptr).cuda_call, "");
  EXPECT_STREQ(StatusInfo(nullptr).file, "");
  EXPECT_EQ(StatusInfo(nullptr).line, 0);
  gcap_status_free(nullptr);
  gcap_status_ignore(nullptr);
}

TEST(Status, CarriesCodeFormattedMessageAndPlace) {
  gcap_status_t status = GCAP_STATUS(GCAP_NOT_FOUND, "id is %d of %s", 7, "many");
  const int line = __LINE__ - 1;
  EXPECT_EQ(gcap_status_code(status), GCAP_NOT_FOUND);
  EXPECT_STREQ(gcap_status_message(status), "id is 7 of many");
  EXPECT_STREQ(StatusInfo(status).file, __FILE__);
  EXPECT_EQ(StatusInfo(status).line, line);
  EXPECT_EQ(StatusInfo(status).cuda_error, cudaSuccess);
  EXPECT_STREQ(StatusInfo(status).cuda_call, "");
  gcap_status_free(status);
}

TEST(Status, CopiesTheTextsItIsMadeFrom) {
  char word[] = "before";
  gcap_status_t status = GCAP_STATUS(GCAP_INTERNAL, "%s", word);
  char call[] = "cudaBefore()";
  gcap_status_t cuda = gcap_status_from_cuda(cudaErrorUnknown, call, "f", 1);
  std::memcpy(word, "after!", sizeof(word));
  std::memcpy(call, "cudaAfter()!", sizeof(call));
  EXPECT_STREQ(gcap_status_message(status), "before");
  EXPECT_STREQ(StatusInfo(cuda).cuda_call, "cudaBefore()");
  gcap_status_free(status);
  gcap_status_free(cuda);
}

TEST(Status, MessageIsWholeUpTo64KiBAndCutBeyondWithAMark) {
  const std::string longest(65536, 'x');
  gcap_status_t status = GCAP_STATUS(GCAP_INTERNAL, "%s", longest.c_str());
  EXPECT_EQ(MessageOf(status), longest);
  gcap_status_free(status);
  // Was: all of it, be it a name of a megabyte.
  status = GCAP_STATUS(GCAP_INTERNAL, "%sx", longest.c_str());
  EXPECT_EQ(MessageOf(status), longest.substr(3) + "...");
  status = gcap_status_annotate(status, GCAP_INTERNAL, "%s", std::string(1000000, 'p').c_str());
  EXPECT_LT(MessageOf(status).size(), 3 * longest.size());
  gcap_status_free(status);
}

TEST(Status, EachCodeHasItsName) {
  const struct {
    gcap_code_t code;
    const char* name;
  } rows[] = {
      {GCAP_OK, "OK"},
      {GCAP_INVALID_ARGUMENT, "INVALID_ARGUMENT"},
      {GCAP_FAILED_PRECONDITION, "FAILED_PRECONDITION"},
      {GCAP_NOT_FOUND, "NOT_FOUND"},
      {GCAP_ALREADY_EXISTS, "ALREADY_EXISTS"},
      {GCAP_RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"},
      {GCAP_UNAVAILABLE, "UNAVAILABLE"},
      {GCAP_CAPTURE_INVALIDATED, "CAPTURE_INVALIDATED"},
      {GCAP_CUDA_ERROR, "CUDA_ERROR"},
      {GCAP_LIBRARY_ERROR, "LIBRARY_ERROR"},
      {GCAP_UNIMPLEMENTED, "UNIMPLEMENTED"},
      {GCAP_INTERNAL, "INTERNAL"},
      {GCAP_LEAKED, "LEAKED"},
      {GCAP_CANCELLED, "CANCELLED"},
      {GCAP_DEVICE_LOST, "DEVICE_LOST"},
      {GCAP_REPLAY_DIFFERS, "REPLAY_DIFFERS"},
  };
  for (const auto& row : rows) EXPECT_STREQ(gcap_code_name(row.code), row.name);
}

TEST(Status, OfCudaSuccessIsNull) { EXPECT_EQ(gcap_status_from_cuda(cudaSuccess, "cudaThing()", "f", 1), nullptr); }

TEST(Status, OfACudaFailureNamesCallCodeAndPlace) {
  gcap_status_t status = CudaFailure();
  EXPECT_EQ(gcap_status_code(status), GCAP_CUDA_ERROR);
  EXPECT_EQ(StatusInfo(status).cuda_error, cudaErrorInvalidValue);
  EXPECT_STREQ(StatusInfo(status).cuda_call, "cudaThing(1, 2)");
  EXPECT_STREQ(StatusInfo(status).file, "there.c");
  EXPECT_EQ(StatusInfo(status).line, 7);
  for (const char* part :
       {"cudaThing(1, 2)", "cudaErrorInvalidValue", "(1)", cudaGetErrorString(cudaErrorInvalidValue)}) {
    EXPECT_NE(MessageOf(status).find(part), std::string::npos) << part << " in " << MessageOf(status);
  }
  gcap_status_free(status);
}

TEST_F(StatusOnDevice, OfACudaFailureClearsTheLastError) {
  gcap_status_t status = GCAP_CUDA(cudaSetDevice(-1));
  EXPECT_EQ(StatusInfo(status).cuda_error, cudaErrorInvalidDevice);
  EXPECT_STREQ(StatusInfo(status).cuda_call, "cudaSetDevice(-1)");
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  gcap_status_free(status);
}

TEST(Status, ReturnIfErrorReturnsEarlyOnlyOnFailure) {
  bool went_on = false;
  GCAP_EXPECT_OK(ReturnEarly(nullptr, &went_on));
  EXPECT_TRUE(went_on);
  went_on = false;
  GCAP_EXPECT_FAILS(ReturnEarly(GCAP_STATUS(GCAP_UNAVAILABLE, "not now"), &went_on), GCAP_UNAVAILABLE, "not now");
  EXPECT_FALSE(went_on);
}

TEST(Status, JoinKeepsTheFirstAndAddsTheLaterMessage) {
  gcap_status_t joined = gcap_status_join(CudaFailure(), GCAP_STATUS(GCAP_INTERNAL, "the undo failed"));
  EXPECT_EQ(gcap_status_code(joined), GCAP_CUDA_ERROR);
  EXPECT_EQ(StatusInfo(joined).cuda_error, cudaErrorInvalidValue);
  EXPECT_STREQ(StatusInfo(joined).cuda_call, "cudaThing(1, 2)");
  EXPECT_STREQ(StatusInfo(joined).file, "there.c");
  EXPECT_EQ(StatusInfo(joined).line, 7);
  const std::string message = MessageOf(joined);
  ASSERT_NE(message.find("cudaErrorInvalidValue"), std::string::npos) << message;
  EXPECT_LT(message.find("cudaErrorInvalidValue"), message.find("the undo failed")) << message;
  EXPECT_NE(message.find("the undo failed"), std::string::npos) << message;
  gcap_status_free(joined);
}

TEST(Status, JoinWithNullIsTheOther) {
  EXPECT_EQ(gcap_status_join(nullptr, nullptr), nullptr);
  gcap_status_t status = GCAP_STATUS(GCAP_INTERNAL, "one");
  EXPECT_EQ(gcap_status_join(status, nullptr), status);
  EXPECT_EQ(gcap_status_join(nullptr, status), status);
  gcap_status_free(status);
}

TEST(Status, AnnotateChangesTheCodeAndPrefixesTheMessage) {
  gcap_status_t status = gcap_status_annotate(CudaFailure(), GCAP_CAPTURE_INVALIDATED, "graph id %d", 5);
  EXPECT_EQ(gcap_status_code(status), GCAP_CAPTURE_INVALIDATED);
  EXPECT_EQ(MessageOf(status).rfind("graph id 5: cudaThing(1, 2) failed", 0), 0u) << MessageOf(status);
  EXPECT_EQ(StatusInfo(status).cuda_error, cudaErrorInvalidValue);
  EXPECT_STREQ(StatusInfo(status).cuda_call, "cudaThing(1, 2)");
  EXPECT_STREQ(StatusInfo(status).file, "there.c");
  EXPECT_EQ(StatusInfo(status).line, 7);
  gcap_status_free(status);
}

TEST(Status, AnnotateOfNullIsNull) { EXPECT_EQ(gcap_status_annotate(nullptr, GCAP_INTERNAL, "prefix"), nullptr); }

TEST(Status, CloneSaysTheSameAndOutlivesTheOriginal) {
  gcap_status_t original = CudaFailure();
  const std::string message = MessageOf(original);
  gcap_status_t clone = gcap_status_clone(original);
  gcap_status_free(original);
  EXPECT_EQ(gcap_status_code(clone), GCAP_CUDA_ERROR);
  EXPECT_EQ(MessageOf(clone), message);
  EXPECT_EQ(StatusInfo(clone).cuda_error, cudaErrorInvalidValue);
  EXPECT_STREQ(StatusInfo(clone).cuda_call, "cudaThing(1, 2)");
  EXPECT_STREQ(StatusInfo(clone).file, "there.c");
  EXPECT_EQ(StatusInfo(clone).line, 7);
  gcap_status_free(clone);
  EXPECT_EQ(gcap_status_clone(nullptr), nullptr);
}

// Was: RESOURCE_EXHAUSTED for every code, so that a caller who goes by the code did the wrong thing: an object that was
// LEAKED was taken for a whole one.
TEST(Status, WithoutMemoryIsAStaticOneOfTheSameCodeThatIsFreedLikeAnyOther) {
  for (int code = GCAP_INVALID_ARGUMENT; code <= GCAP_LEAKED; ++code) {
    gcap_status_t status = nullptr;
    {
      const HeapFailure no_memory;
      status = GCAP_STATUS(static_cast<gcap_code_t>(code), "never told");
      EXPECT_EQ(no_memory.hits(), 1);
    }
    EXPECT_EQ(gcap_status_code(status), code);
    EXPECT_NE(MessageOf(status).find("memory"), std::string::npos) << MessageOf(status);
    EXPECT_EQ(StatusInfo(status).cuda_error, cudaSuccess);
    EXPECT_STREQ(StatusInfo(status).cuda_call, "");
    gcap_status_free(status);
  }
}

TEST(Status, WithoutMemoryCanBeJoinedAnnotatedAndCloned) {
  gcap_status_t bare = nullptr;
  gcap_status_t leaked = nullptr;
  {
    const HeapFailure no_memory(2);
    bare = CudaFailure();
    leaked = gcap_status_annotate(bare, GCAP_LEAKED, "prefix");  // nor is there memory for the prefix
    EXPECT_EQ(no_memory.hits(), 2);
  }
  EXPECT_EQ(gcap_status_code(bare), GCAP_CUDA_ERROR);
  EXPECT_EQ(gcap_status_code(leaked), GCAP_LEAKED);
  gcap_status_free(leaked);
  gcap_status_t clone = gcap_status_clone(bare);
  EXPECT_EQ(gcap_status_code(clone), GCAP_CUDA_ERROR);
  GCAP_EXPECT_FAILS(gcap_status_annotate(clone, GCAP_INTERNAL, "while testing"), GCAP_INTERNAL, "while testing");
  GCAP_EXPECT_FAILS(gcap_status_join(bare, GCAP_STATUS(GCAP_INTERNAL, "later")), GCAP_CUDA_ERROR, "later");
}

// Was: the static status, so that a caller who goes by the code of the first failure was lost.
TEST(Status, JoinWithoutMemoryIsTheFirst) {
  gcap_status_t first = CudaFailure();
  const std::string message = MessageOf(first);
  gcap_status_t later = GCAP_STATUS(GCAP_INTERNAL, "later");
  gcap_status_t joined = nullptr;
  {
    const HeapFailure no_memory;
    joined = gcap_status_join(first, later);
    EXPECT_EQ(no_memory.hits(), 1);
  }
  EXPECT_EQ(gcap_status_code(joined), GCAP_CUDA_ERROR);
  EXPECT_EQ(StatusInfo(joined).cuda_error, cudaErrorInvalidValue);
  EXPECT_EQ(MessageOf(joined), message);
  // The one that was not told is counted as soon as there is memory.
  GCAP_EXPECT_FAILS(gcap_status_join(joined, GCAP_STATUS(GCAP_INTERNAL, "the last")), GCAP_CUDA_ERROR,
                    message + "; and 2 more failures, the last: the last");
}

// Was: the static status, so that CAPTURE_INVALIDATED ("run eagerly") was lost.
TEST(Status, AnnotateWithoutMemoryChangesTheCode) {
  gcap_status_t status = CudaFailure();
  {
    const HeapFailure no_memory;
    status = gcap_status_annotate(status, GCAP_CAPTURE_INVALIDATED, "prefix");
    EXPECT_EQ(no_memory.hits(), 1);
  }
  EXPECT_EQ(StatusInfo(status).cuda_error, cudaErrorInvalidValue);
  GCAP_EXPECT_FAILS(status, GCAP_CAPTURE_INVALIDATED, "cudaThing(1, 2) failed");
}

// Was: a call of more than 512 bytes pushed the error out of its own message, and no mark said so.
TEST(Status, OfALongCallCutsTheCallAndKeepsTheError) {
  const std::string call = "cudaThing(" + std::string(5000, 'x') + ")";
  gcap_status_t status = gcap_status_from_cuda(cudaErrorInvalidValue, call.c_str(), "there.c", 7);
  EXPECT_EQ(StatusInfo(status).cuda_call, call);
  EXPECT_LT(MessageOf(status).size(), 1000u);
  GCAP_EXPECT_FAILS(status, GCAP_CUDA_ERROR, "xxx... failed: cudaErrorInvalidValue (1)");
}

// --- Many failures --------------------------------------------------------------------------------------------------

gcap_status_t NumberedFailure(int number) {
  return GCAP_STATUS(GCAP_CUDA_ERROR, "%06d %s", number, std::string(100, 'x').c_str());
}

// Was: each join copied all messages, and 8,000 of them made a message of 1 MB. So many that copying all of them each
// time would be 100,000 * 100,000 / 2 * 100 bytes: it would not end.
TEST(Status, JoinsAreBoundedHoweverManyTheyAre) {
  constexpr int kFailures = 100000;
  const std::string first(20000, 'f');
  gcap_status_t status = GCAP_STATUS(GCAP_LIBRARY_ERROR, "%s", first.c_str());
  for (int i = 1; i <= kFailures; ++i) status = gcap_status_join(status, NumberedFailure(i));
  const std::string message = MessageOf(status);
  EXPECT_EQ(gcap_status_code(status), GCAP_LIBRARY_ERROR);
  EXPECT_EQ(message.compare(0, first.size(), first), 0) << "the first failure is whole";
  EXPECT_NE(message.find("; then: 000001 "), std::string::npos);
  EXPECT_NE(message.find("; then: 000010 "), std::string::npos) << "and so are some others";
  EXPECT_LT(message.size(), first.size() + 8192);
  // What is told and what is counted are all.
  int told = 0;
  for (size_t at = 0; (at = message.find("; then: ", at)) != std::string::npos; ++at) ++told;
  const std::string rest = "; and " + std::to_string(kFailures - told) + " more failures, the last: 100000 xxx";
  EXPECT_NE(message.find(rest), std::string::npos) << message.substr(first.size());
  gcap_status_free(status);
}

TEST(Status, ALongLaterFailureIsCutWithAMarkBetweenTwoCharacters) {
  std::string text;
  while (text.size() < 20000) text += "\xe2\x82\xac";  // a euro sign: three bytes
  gcap_status_t status = gcap_status_join(CudaFailure(), GCAP_STATUS(GCAP_INTERNAL, "%s", text.c_str()));
  status = gcap_status_join(status, GCAP_STATUS(GCAP_INTERNAL, "x%s", text.c_str()));
  const std::string message = MessageOf(status);
  gcap_status_free(status);
  EXPECT_LT(message.size(), 8192u);
  EXPECT_NE(message.find("; then: \xe2\x82\xac\xe2\x82\xac"), std::string::npos) << message;
  EXPECT_NE(message.find("\xe2\x82\xac...; and 1 more failure: x\xe2\x82\xac"), std::string::npos) << message;
  EXPECT_EQ(message.substr(message.size() - 6), "\xe2\x82\xac...") << message;
}

TEST(Status, WhatWasJoinedIsCountedThroughAnnotateCloneAndJoin) {
  gcap_status_t many = NumberedFailure(0);
  for (int i = 1; i < 1000; ++i) many = gcap_status_join(many, NumberedFailure(i));
  many = gcap_status_annotate(many, GCAP_INTERNAL, "the end of all");
  gcap_status_t clone = gcap_status_clone(many);
  EXPECT_EQ(MessageOf(clone), MessageOf(many));
  clone = gcap_status_join(clone, many);  // a thousand more
  clone = gcap_status_join(clone, GCAP_STATUS(GCAP_INTERNAL, "and one"));
  const std::string message = MessageOf(clone);
  gcap_status_free(clone);
  EXPECT_EQ(message.find("the end of all: 000000 "), 0u);
  int told = 0;
  for (size_t at = 0; (at = message.find("; then: ", at)) != std::string::npos; ++at) ++told;
  const std::string rest = "; and " + std::to_string(2001 - 1 - told) + " more failures, the last: and one";
  ASSERT_GE(message.size(), rest.size());
  EXPECT_EQ(message.substr(message.size() - rest.size()), rest);
}

// --- Texts of the caller --------------------------------------------------------------------------------------------

// Was: a key with a newline forged a log line, an escape sequence reached the terminal.
TEST(Status, TextsAreOneLineWithoutControlCharacters) {
  const struct {
    const char* text;
    const char* shown;
  } rows[] = {
      {"a\nb", "a\\x0ab"},
      {"\r\n", "\\x0d\\x0a"},
      {"\x1b[31mred", "\\x1b[31mred"},
      {"\x01\t\x7f.", "\\x01\\x09\\x7f."},
      {"one \\x0a stays", "one \\x0a stays"},
      {"gr\xc3\xbc\xc3\x9f"
       "e \xe2\x82\xac \xf0\x9f\x99\x82",
       "gr\xc3\xbc\xc3\x9f"
       "e \xe2\x82\xac \xf0\x9f\x99\x82"},
      {"\xc2\x9b"
       "31m \xc2\xa0",
       "\\xc2\\x9b31m \xc2\xa0"},  // U+009B is a terminal's escape, U+00A0 a space
      {"\xff\xfe broken", "\xff\xfe broken"},
      {"", ""},
  };
  for (const auto& row : rows) {
    gcap_status_t status = GCAP_STATUS(GCAP_INTERNAL, "%s", row.text);
    EXPECT_STREQ(gcap_status_message(status), row.shown);
    status = gcap_status_annotate(status, GCAP_INTERNAL, "%s", row.text);
    status = gcap_status_join(status, GCAP_STATUS(GCAP_INTERNAL, "%s", row.text));
    EXPECT_EQ(MessageOf(status), std::string(row.shown) + ": " + row.shown + "; then: " + row.shown);
    gcap_status_t clone = gcap_status_clone(status);
    EXPECT_EQ(MessageOf(clone), MessageOf(status));
    gcap_status_free(clone);
    gcap_status_free(status);
    gcap_status_t cuda = gcap_status_from_cuda(cudaErrorInvalidValue, row.text, "there.c", 7);
    EXPECT_STREQ(StatusInfo(cuda).cuda_call, row.shown);
    EXPECT_EQ(MessageOf(cuda).find(std::string(row.shown) + " failed"), 0u) << MessageOf(cuda);
    gcap_status_free(cuda);
  }
}

TEST(Status, IsRenamedWhereItHasTheName) {
  EXPECT_EQ(gcap_status_rename(nullptr, "a", "b"), nullptr);
  const struct {
    const char *message, *renamed;
  } cases[] = {{"graph id -2: no", "'x': no"},
               {"in graph id -21, graph id -2: no", "in graph id -21, 'x': no"},
               {"no memory", "'x': no memory"},
               {"graph id -2", "'x'"}};
  for (const auto& c : cases) {
    gcap_status_t status = GCAP_STATUS(GCAP_NOT_FOUND, "%s", c.message);
    status = gcap_status_rename(status, "graph id -2", "'x'");
    EXPECT_STREQ(gcap_status_message(status), c.renamed);
    EXPECT_EQ(gcap_status_code(status), GCAP_NOT_FOUND);
    gcap_status_free(status);
  }
  gcap_status_t failed = gcap_status_from_cuda(cudaErrorInvalidValue, "cudaFree(graph id -2)", "file", 7);
  failed = gcap_status_rename(failed, "graph id -2", "'x'");
  gcap_status_info_t info;
  info.struct_size = sizeof(info);
  gcap_status_read_info(failed, &info);
  EXPECT_EQ(info.line, 7);
  EXPECT_STREQ(info.cuda_call, "cudaFree(graph id -2)");
  EXPECT_EQ(info.cuda_error, cudaErrorInvalidValue);
  gcap_status_free(failed);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
