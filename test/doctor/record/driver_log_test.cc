// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The driver's log of errors: which call a message is of.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "test/doctor/record/fake_driver.h"
#include "test/doctor/record/program.h"

namespace {

void* const kStream = Handle(0x1000);
const Environment kWithDriver = {{"FAKE_DRIVER", "1"}};

// Whether anybody listens.
bool Log(const char* message) {
  static const auto log = reinterpret_cast<decltype(&fake_driver_log)>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "fake_driver_log"));
  return log(0, message) != 0;
}

void SynchronizeWith(const char* message) {
  const uint32_t correlation = fake.enter(126, "cuStreamSynchronize", &kStream);
  Log(message);
  fake.exit(126, "cuStreamSynchronize", &kStream, correlation, 900, nullptr);
}

std::string LogOf(const gcap_doctor_event_call_t& call) { return call.log != nullptr ? call.log : ""; }

TEST(DriverLog, IsOfTheCallThatFails) {
  Recorded recorded = Record(
      [] {
        IN_PROGRAM(!Log("nobody listens before the first capture"));
        Begin(kStream);
        SynchronizeWith("the stream captures\n");
        Log("and the call returns");
        End(kStream, nullptr, 901);
      },
      kWithDriver);
  EXPECT_EQ(LogOf(recorded.Call("cuStreamSynchronize")), "the stream captures\nand the call returns");
  EXPECT_EQ(LogOf(recorded.Call("cuStreamEndCapture")), "");
}

TEST(DriverLog, OfACallThatIsNotRecordedIsSkipped) {
  Recorded recorded = Record(
      [] {
        Begin(kStream);
        Synchronize(kStream, 900);
        fake.call(125, "cuStreamQuery", &kStream, 0);
        Log("of no call: the last one went well");
        Synchronize(kStream, 900);
        // A question that is legal in every capture is not recorded.
        const uint32_t correlation = fake.enter(6, "cuDeviceGetAttribute", nullptr);
        Log("of a question");
        fake.exit(6, "cuDeviceGetAttribute", nullptr, correlation, 0, nullptr);
        End(kStream, nullptr, 901);
        Log("behind the capture");
        SynchronizeWith("outside of captures");
      },
      kWithDriver);
  EXPECT_EQ(recorded.events->num_logs, 0u) << recorded.text;
}

TEST(DriverLog, OfManyWordsIsCut) {
  Recorded recorded = Record(
      [] {
        Begin(kStream);
        SynchronizeWith((std::string(511, 'x') + "\xc3\xa4 and more").c_str());
        End(kStream, nullptr, 901);
      },
      kWithDriver);
  EXPECT_EQ(LogOf(recorded.Call("cuStreamSynchronize")), std::string(511, 'x'));
}

}  // namespace
