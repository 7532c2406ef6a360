// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// program.h: a program that is recorded, for tests. A recorder lives once in a process, so each test's program is a
// child of the test; what it does is a function of the test, and what was recorded is read from its file.
#ifndef GCAP_TEST_DOCTOR_RECORD_PROGRAM_H_
#define GCAP_TEST_DOCTOR_RECORD_PROGRAM_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "doctor/events/recording.h"
#include "test/doctor/record/fake_cupti.h"

struct DestroyRecording {
  void operator()(gcap_doctor_recording_t* recording) const { gcap_doctor_recording_destroy(recording); }
};

// What a program left.
struct Recorded {
  std::unique_ptr<gcap_doctor_recording_t, DestroyRecording> events;  // null without a file
  std::string path, text;                                             // of the file
  std::string said;                                                   // on stderr
  int status = -1;                                                    // of waitpid

  // The calls of a function, in the order in which they began.
  std::vector<const gcap_doctor_event_call_t*> Calls(const std::string& function) const;
  // The one call of a function; fails the test if there are none or more.
  const gcap_doctor_event_call_t& Call(const std::string& function) const;
  // How many calls of a function there are, those that are counted with one another among them.
  uint64_t Count(const std::string& function) const;
};

using Environment = std::map<std::string, std::string>;

// Runs `program` under the recorder and the fake CUPTI, to its exit() or its death, and reads its file. The file must
// be whole: a line that cannot be read fails the test. Variables of `environment` that are "" are unset.
Recorded Record(const std::function<void()>& program, const Environment& environment = {});

// The files that Bazel built.
std::string RecorderPath();
std::string FakePath();
std::string OldFakePath();
// Loaded before the recorder where FAKE_DRIVER is set.
std::string DriverPath();
// A path to begin files with, of this test alone.
std::string Prefix();

// --- In the program --------------------------------------------------------------------------------------------------

// The fake's functions.
struct Fake {
  decltype(&fake_cupti_enter) enter;
  decltype(&fake_cupti_exit) exit;
  decltype(&fake_cupti_call) call;
  decltype(&fake_cupti_stream) stream;
  decltype(&fake_cupti_graph) graph;
  decltype(&fake_cupti_enabled) enabled;
  decltype(&fake_cupti_is_enabled) is_enabled;
  decltype(&fake_cupti_at_change) at_change;
  decltype(&fake_cupti_flush) flush;
  decltype(&fake_cupti_record) record;
};
extern Fake fake;
// The recorder's.
extern int (*initialize_injection)();

// Ends the program with exit code 3 if it is not so, and says where.
#define IN_PROGRAM(condition) InProgram((condition), #condition, __LINE__)
void InProgram(bool is_so, const char* condition, int line);

void* Handle(uintptr_t value);

// Calls of the driver that the tests make.
void Begin(void* stream, int mode = 0, int result = 0);
void End(void* stream, void* graph, int result = 0);
void Synchronize(void* stream, int result = 0);
// One that is never counted with others: a stream waits for an event.
void Wait(void* stream);
// A call with others inside of it, deeper on the stack, as in the driver.
void Within(uint32_t callback, const char* function, const void* arguments, int result,
            const std::function<void()>& inner);
// A captured launch: its callbacks, and a node with this id in the graph, after `before` unless that is null.
void Launch(void* stream, void* graph, uint64_t* node, uint64_t* before = nullptr, const char* kernel = "kernel");
void Instantiate(void* exec, void* graph, std::vector<std::pair<uint64_t*, uint64_t*>> clones, int result = 0);
void Replay(void* exec, void* stream, int result = 0);

#endif  // GCAP_TEST_DOCTOR_RECORD_PROGRAM_H_
