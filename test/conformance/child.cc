// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Starts this program again with posix_spawn, since a process that has used a GPU must not fork and go on. Both streams
// of the child go to unnamed files: no pipe can fill up, and what it wrote before it died is there.
#include "test/conformance/child.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <thread>

namespace conformance {

namespace {

// Far above what a case takes on a busy machine, a device's first call included.
constexpr std::chrono::seconds kTimeLimit(300);

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

File Temporary() {
  File file(tmpfile(), fclose);
  if (file == nullptr) {
    perror("tmpfile");
    std::abort();
  }
  return file;
}

std::string ReadAll(FILE* file) {
  std::string text;
  char buffer[4096];
  rewind(file);
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), file)) > 0;) text.append(buffer, n);
  return text;
}

pid_t Spawn(std::vector<std::string> arguments, FILE* out, FILE* err) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(&argument[0]);
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(err), STDERR_FILENO);
  pid_t child = 0;
  if (posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ) != 0) {
    perror("posix_spawn");
    std::abort();
  }
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

int Wait(pid_t child) {
  const auto end = std::chrono::steady_clock::now() + kTimeLimit;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status;
}

}  // namespace

const char kObserveFlag[] = "--observe=";
const char kWithoutFlag[] = "--without=";

ChildResult RunInChild(const std::string& block, const std::set<std::string>& skipped) {
  std::vector<std::string> arguments = {"conformance_test", kObserveFlag + block};
  for (const std::string& step : skipped) arguments.push_back(kWithoutFlag + step);
  File out = Temporary();
  File err = Temporary();
  const int status = Wait(Spawn(arguments, out.get(), err.get()));
  ChildResult result;
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  result.errors = ReadAll(err.get());
  std::istringstream text(ReadAll(out.get()));
  for (std::string line; std::getline(text, line);) {
    if (line.compare(0, 1, "@") == 0) {
      result.last_probe = line.substr(1);
    } else {
      result.lines.push_back(line);
    }
  }
  return result;
}

}  // namespace conformance
