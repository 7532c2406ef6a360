// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// environment.h: numbers that who runs a test sets, such as GCAP_SIM_SEED and GCAP_TEST_ROUNDS.
#ifndef GCAP_TEST_SUPPORT_ENVIRONMENT_H_
#define GCAP_TEST_SUPPORT_ENVIRONMENT_H_

#include <cstdint>
#include <cstdlib>

namespace gcap {
namespace testing {

inline uint64_t NumberOr(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SUPPORT_ENVIRONMENT_H_
