// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// log_catcher.h: collects what gcap logs while it lives, from a level on. One at a time.
#ifndef GCAP_TEST_SUPPORT_LOG_CATCHER_H_
#define GCAP_TEST_SUPPORT_LOG_CATCHER_H_

#include <mutex>
#include <string>

#include "gcap/log.h"

namespace gcap {
namespace testing {

class LogCatcher {
 public:
  explicit LogCatcher(gcap_log_level_t level = GCAP_LOG_WARNING) {
    gcap_log_set_sink(
        [](void* self, gcap_log_level_t, const char* message) {
          LogCatcher* const catcher = static_cast<LogCatcher*>(self);
          const std::lock_guard<std::mutex> lock(catcher->mutex_);
          catcher->text_ += message;
        },
        this, level);
  }
  LogCatcher(const LogCatcher&) = delete;
  LogCatcher& operator=(const LogCatcher&) = delete;
  ~LogCatcher() { gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING); }

  // Of what was logged so far; when no other thread logs.
  const std::string& text() const { return text_; }

 private:
  std::mutex mutex_;
  std::string text_;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SUPPORT_LOG_CATCHER_H_
