// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// out.h: a place for what a call gives, where nobody looks at it.
#ifndef GCAP_TEST_FAULT_OUT_H_
#define GCAP_TEST_FAULT_OUT_H_

namespace gcap {
namespace testing {

// Becomes a pointer to whatever the call fills in.
struct Out {
  template <typename Type>
  operator Type*() const {
    static Type made;
    return &made;
  }
};
constexpr Out kOut;

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_FAULT_OUT_H_
