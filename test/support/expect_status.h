// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// expect_status.h: assertions about a gcap_status_t, which they free.
#ifndef GCAP_TEST_SUPPORT_EXPECT_STATUS_H_
#define GCAP_TEST_SUPPORT_EXPECT_STATUS_H_

#include <string>

#include "gcap/status.h"
#include "gtest/gtest.h"

namespace gcap {
namespace testing {

inline gcap_status_info_t StatusInfo(gcap_status_t status) {
  gcap_status_info_t info;
  gcap_status_get_info(status, &info);
  return info;
}

// What became of a call, taken from its status, which it frees.
struct Outcome {
  explicit Outcome(gcap_status_t status)
      : code(gcap_status_code(status)),
        message(gcap_status_message(status)),
        cuda_error(StatusInfo(status).cuda_error),
        cuda_call(StatusInfo(status).cuda_call) {
    gcap_status_free(status);
  }
  bool ok() const { return code == GCAP_OK; }
  bool Names(const std::string& text) const { return message.find(text) != std::string::npos; }

  gcap_code_t code;
  std::string message;
  cudaError_t cuda_error;
  std::string cuda_call;
};

}  // namespace testing
}  // namespace gcap

#define GCAP_ASSERT_OK(expr)                                                   \
  do {                                                                         \
    const ::gcap::testing::Outcome gcap_outcome_(expr);                        \
    ASSERT_TRUE(gcap_outcome_.ok()) << #expr << ": " << gcap_outcome_.message; \
  } while (0)

#define GCAP_EXPECT_OK(expr)                                                   \
  do {                                                                         \
    const ::gcap::testing::Outcome gcap_outcome_(expr);                        \
    EXPECT_TRUE(gcap_outcome_.ok()) << #expr << ": " << gcap_outcome_.message; \
  } while (0)

// Expects the code, and a message that names `culprit`.
#define GCAP_EXPECT_FAILS(expr, expected_code, culprit)                                                            \
  do {                                                                                                             \
    const ::gcap::testing::Outcome gcap_outcome_(expr);                                                            \
    EXPECT_STREQ(gcap_code_name(gcap_outcome_.code), gcap_code_name(expected_code)) << #expr;                      \
    EXPECT_TRUE(gcap_outcome_.Names(culprit)) << "does not name '" << (culprit) << "': " << gcap_outcome_.message; \
  } while (0)

#endif  // GCAP_TEST_SUPPORT_EXPECT_STATUS_H_
