// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A child that loads the recorder as the driver does. The child is forked before there are threads, ends by exit(), so
// that handlers and checkers of leaks run, and sends stderr into a file.
#include "test/doctor/record/program.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

Fake fake;
int (*initialize_injection)();

namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

template <typename Function>
void Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr) {
    fprintf(stderr, "no %s: %s\n", name, dlerror());
    exit(3);
  }
}

void* Load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    exit(3);
  }
  return library;
}

void LoadFake() {
  void* library = Load(FakePath());
  Find(library, "fake_cupti_enter", &fake.enter);
  Find(library, "fake_cupti_exit", &fake.exit);
  Find(library, "fake_cupti_call", &fake.call);
  Find(library, "fake_cupti_stream", &fake.stream);
  Find(library, "fake_cupti_graph", &fake.graph);
  Find(library, "fake_cupti_enabled", &fake.enabled);
  Find(library, "fake_cupti_is_enabled", &fake.is_enabled);
  Find(library, "fake_cupti_at_change", &fake.at_change);
  Find(library, "fake_cupti_flush", &fake.flush);
  Find(library, "fake_cupti_record", &fake.record);
}

[[noreturn]] void RunChild(const std::function<void()>& program, const Environment& environment,
                           const std::string& messages) {
  int file = open(messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(file, STDERR_FILENO);
  for (const auto& [name, value] : environment) {
    if (value.empty()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  LoadFake();
  if (getenv("FAKE_DRIVER") != nullptr) Load(DriverPath());
  Find(Load(RecorderPath()), "InitializeInjection", &initialize_injection);
  IN_PROGRAM(initialize_injection() == 1);
  program();
  exit(0);
}

}  // namespace

std::string RecorderPath() { return "doctor/record/libgcap_doctor.so"; }
std::string FakePath() { return "test/doctor/record/libfake_cupti.so"; }
std::string DriverPath() { return "test/doctor/record/libfake_driver.so"; }
std::string OldFakePath() { return "test/doctor/record/libfake_old_cupti.so"; }

std::string Prefix() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test->test_suite_name()) + "." + test->name();
  for (char& c : name) c = c == '/' ? '_' : c;  // of tests with parameters
  return testing::TempDir() + "/" + name;
}

Recorded Record(const std::function<void()>& program, const Environment& environment) {
  Environment all = {{"GCAP_DOCTOR_EVENTS", Prefix()}, {"GCAP_DOCTOR_CUPTI", "./" + FakePath()}};
  for (const auto& [name, value] : environment) all[name] = value;
  const std::string messages = Prefix() + ".stderr";
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) RunChild(program, all, messages);
  Recorded recorded;
  EXPECT_EQ(waitpid(pid, &recorded.status, 0), pid);
  recorded.said = ReadFile(messages);
  recorded.path = all["GCAP_DOCTOR_EVENTS"] + "." + std::to_string(pid) + ".events";
  recorded.text = ReadFile(recorded.path);
  if (FILE* file = fopen(recorded.path.c_str(), "r")) {
    recorded.events.reset(gcap_doctor_recording_read(file, "test"));
    fclose(file);
    EXPECT_EQ(recorded.events->damage.lines, 0u)
        << "line " << recorded.events->damage.first << ": " << recorded.events->damage.reason << "\n"
        << recorded.text;
    EXPECT_EQ(recorded.events->pid, static_cast<uint64_t>(pid));
  }
  EXPECT_TRUE(!WIFEXITED(recorded.status) || WEXITSTATUS(recorded.status) == 0) << recorded.said;
  return recorded;
}

std::vector<const gcap_doctor_event_call_t*> Recorded::Calls(const std::string& function) const {
  std::vector<const gcap_doctor_event_call_t*> calls;
  for (size_t i = 0; events != nullptr && i < events->num_calls; ++i) {
    if (function == events->calls[i].function) calls.push_back(&events->calls[i]);
  }
  return calls;
}

const gcap_doctor_event_call_t& Recorded::Call(const std::string& function) const {
  static const gcap_doctor_event_call_t kNone = {};
  const auto calls = Calls(function);
  EXPECT_EQ(calls.size(), 1u) << function << "\n" << text;
  return calls.size() == 1 ? *calls[0] : kNone;
}

uint64_t Recorded::Count(const std::string& function) const {
  uint64_t count = 0;
  for (const auto* call : Calls(function)) count += call->count;
  return count;
}

void InProgram(bool is_so, const char* condition, int line) {
  if (is_so) return;
  fprintf(stderr, "line %d: not so: %s\n", line, condition);
  _exit(3);
}

void* Handle(uintptr_t value) { return reinterpret_cast<void*>(value); }

// The structures of arguments, as CUPTI gives them: each argument in its turn. driver_calls.inc has the numbers.

void Begin(void* stream, int mode, int result) {
  const struct {
    void* stream;
    int mode;
  } arguments = {stream, mode};
  fake.call(539, "cuStreamBeginCapture_v2", &arguments, result);
}

void End(void* stream, void* graph, int result) {
  const struct {
    void* stream;
    void** graph;
  } arguments = {stream, &graph};
  fake.call(497, "cuStreamEndCapture", &arguments, result);
}

void Synchronize(void* stream, int result) { fake.call(126, "cuStreamSynchronize", &stream, result); }

void Wait(void* stream) {
  const void* arguments[] = {stream, Handle(0x9000), nullptr};
  fake.call(295, "cuStreamWaitEvent", arguments, 0);
}

void Within(uint32_t callback, const char* function, const void* arguments, int result,
            const std::function<void()>& inner) {
  const uint32_t correlation = fake.enter(callback, function, arguments);
  inner();
  fake.exit(callback, function, arguments, correlation, result, nullptr);
}

void Launch(void* stream, void* graph, uint64_t* node, uint64_t* before, const char* kernel) {
  const struct {
    void* function;
    unsigned sizes[7];
    void* stream;
    void *parameters, *extra;
  } arguments = {nullptr, {1, 1, 1, 1, 1, 1, 0}, stream, nullptr, nullptr};
  const uint32_t correlation = fake.enter(307, "cuLaunchKernel", &arguments);
  gcap_doctor_cupti_graph_t data = {};
  data.graph = graph;
  data.node = node;
  data.dependency = before;
  if (node != nullptr) fake.graph(GCAP_DOCTOR_CUPTI_NODE_STARTS, &data);
  if (before != nullptr) fake.graph(GCAP_DOCTOR_CUPTI_DEPENDENCY_CREATED, &data);
  if (node != nullptr) fake.graph(GCAP_DOCTOR_CUPTI_NODE_CREATED, &data);
  fake.exit(307, "cuLaunchKernel", &arguments, correlation, 0, kernel);
}

void Instantiate(void* exec, void* graph, std::vector<std::pair<uint64_t*, uint64_t*>> clones, int result) {
  struct {
    void** exec;
    void* graph;
    unsigned long long flags;
  } arguments = {&exec, graph, 0};
  const uint32_t correlation = fake.enter(643, "cuGraphInstantiateWithFlags", &arguments);
  gcap_doctor_cupti_graph_t data = {};
  for (const auto& [from, to] : clones) {
    data.graph = exec;
    data.original_graph = graph;
    data.original_node = from;
    data.node = to;
    fake.graph(GCAP_DOCTOR_CUPTI_NODE_CLONED, &data);
  }
  if (result == 0) {
    data = {};
    data.graph = graph;
    data.exec = exec;
    fake.graph(GCAP_DOCTOR_CUPTI_EXEC_CREATED, &data);
  }
  fake.exit(643, "cuGraphInstantiateWithFlags", &arguments, correlation, result, nullptr);
}

void Replay(void* exec, void* stream, int result) {
  const struct { void *exec, *stream; } arguments = {exec, stream};
  fake.call(514, "cuGraphLaunch", &arguments, result);
}
