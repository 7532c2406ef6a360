// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#include "test/doctor/sim_rules/logged.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

namespace gcap {
namespace testing {
namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

// What the command wrote to the descriptor; the other output goes nowhere.
std::string OutputOf(const std::vector<std::string>& command, int wanted) {
  File file(tmpfile(), fclose);
  if (file == nullptr) abort();
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, wanted == 1 ? 2 : 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, fileno(file.get()), wanted);
  pid_t child = 0;
  const int error = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    fprintf(stderr, "%s: %s\n", arguments[0], strerror(error));
    abort();
  }
  waitpid(child, nullptr, 0);
  std::string text;
  char buffer[1 << 16];
  rewind(file.get());
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), file.get())) > 0;) text.append(buffer, n);
  return text;
}

}  // namespace

std::string LogOf(const std::vector<std::string>& command) {
  setenv("GCAP_SIM_LOG", "*", 1);
  const std::string log = OutputOf(command, 2);
  unsetenv("GCAP_SIM_LOG");
  return log;
}

std::vector<std::string> LinesOf(const std::vector<std::string>& command) {
  std::istringstream text(OutputOf(command, 1));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

Logged Logged::Of(const std::vector<std::string>& command) { return Logged(LogOf(command)); }

Logged::Logged(const std::string& log, bool with_says) : log_(log.empty() ? "\n" : log) {
  FILE* file = fmemopen(&log_[0], log_.size(), "r");
  recording_.reset(gcap_doctor_recording_read(file, "log"));
  fclose(file);
  for (size_t i = 0; i < recording_->num_calls; ++i) {
    gcap_doctor_event_call_t& call = recording_->calls[i];
    says_.push_back(call.says != nullptr ? call.says : "");
    if (!with_says) call.says = nullptr;
  }
  diagnosis_.reset(gcap_doctor_diagnosis_create(recording_.get()));
}

std::string Logged::FunctionOf(uint32_t call) const {
  return call < recording_->num_calls ? recording_->calls[call].function : "";
}

const gcap_doctor_finding_t* Logged::Find(gcap_doctor_finding_kind_t kind, const std::string& function) const {
  for (size_t i = 0; i < diagnosis_->num_findings; ++i) {
    const gcap_doctor_finding_t* finding = &diagnosis_->findings[i];
    if (finding->kind == kind && FunctionOf(finding->call) == function) return finding;
  }
  return nullptr;
}

std::string Logged::Findings() const {
  std::ostringstream text;
  for (size_t i = 0; i < diagnosis_->num_findings; ++i) {
    const gcap_doctor_finding_t& finding = diagnosis_->findings[i];
    text << "  " << gcap_doctor_finding_kind_name(finding.kind) << " "
         << (finding.rule != nullptr ? finding.rule->id : "-") << ": " << finding.sentence << "\n";
  }
  return text.str();
}

uint32_t Logged::BreakerOf(const gcap_doctor_captured_t& capture) const {
  const std::string begins = "begins capture ", breaks = "invalidates capture ";
  const size_t at = says_[capture.begin].find(begins);
  if (at == std::string::npos) return GCAP_DOCTOR_NONE;
  const int id = atoi(says_[capture.begin].c_str() + at + begins.size());
  for (size_t call = 0; call < says_.size(); ++call) {
    const std::string& says = says_[call];
    for (size_t from = says.find(breaks); from != std::string::npos; from = says.find(breaks, from + 1)) {
      if (atoi(says.c_str() + from + breaks.size()) == id) return static_cast<uint32_t>(call);
    }
  }
  return GCAP_DOCTOR_NONE;
}

}  // namespace testing
}  // namespace gcap
