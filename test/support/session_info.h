// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// session_info.h: what a session says of itself, as a value.
#ifndef GCAP_TEST_SUPPORT_SESSION_INFO_H_
#define GCAP_TEST_SUPPORT_SESSION_INFO_H_

#include "gcap/kit/session.h"

namespace gcap {
namespace testing {

inline gcap_session_info_t SessionInfo(const gcap_session_t* session) {
  gcap_session_info_t info;
  gcap_session_get_info(session, &info);
  return info;
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SUPPORT_SESSION_INFO_H_
