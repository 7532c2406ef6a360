// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// held_thread.h: a thread that has done its work and does not exit yet.
#ifndef GCAP_TEST_SUPPORT_HELD_THREAD_H_
#define GCAP_TEST_SUPPORT_HELD_THREAD_H_

#include <atomic>
#include <functional>
#include <thread>

namespace gcap {
namespace testing {

// Its constructor returns once `work` is done; the thread exits at Release.
class HeldThread {
 public:
  explicit HeldThread(std::function<void()> work)
      : thread_([this, work] {
          work();
          worked_ = true;
          while (!released_) std::this_thread::yield();
        }) {
    while (!worked_) std::this_thread::yield();
  }
  void Release() {
    released_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> worked_{false};
  std::atomic<bool> released_{false};
  std::thread thread_;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SUPPORT_HELD_THREAD_H_
