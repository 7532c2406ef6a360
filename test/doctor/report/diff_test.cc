// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// How recordings differ: what is a difference, and what is none.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "doctor/report/report.h"

namespace {

struct Kernel {
  std::string name;
  unsigned ns = 0;  // 0 without device times
};

// A program of captures, each of kernels in a row.
class Program {
 public:
  // `file` and `line` of the begin.
  Program& Capture(unsigned line, const std::vector<Kernel>& kernels, const std::string& label = "", int result = 0,
                   const std::string& file = "/app/serve.py", const std::string& function = "step") {
    const std::string id = std::to_string(++captures_);
    text_ += "pyframe\tid=" + id + "\tfile=" + file + "\tline=" + std::to_string(line) + "\tfunction=" + function +
             "\n" + "stack\tid=" + id + "\tpy=" + id + "\n";
    Call("cuStreamBeginCapture", 0, id, "\tmode=global" + (label.empty() ? "" : "\tlabel=" + label));
    std::string times;
    for (size_t i = 0; i < kernels.size(); ++i) {
      const std::string call = Call("cuLaunchKernel", 0, id, "\tkernel=" + kernels[i].name);
      const std::string node = "0x" + id + std::to_string(1000 + i);
      text_ += "node\tgraph=" + id + "\tid=" + node + "\ttype=kernel\tcall=" + call + "\n";
      if (i != 0) text_ += "edge\tgraph=" + id + "\tfrom=0x" + id + std::to_string(999 + i) + "\tto=" + node + "\n";
      times += "clone\texec=" + id + "\tfrom=" + node + "\tto=" + node + "\n";
      if (kernels[i].ns != 0) {
        times += "time\texec=" + id + "\tnode=" + node + "\tcount=10\tns=" + std::to_string(kernels[i].ns * 10) + "\n";
      }
    }
    Call("cuStreamEndCapture", result, id, result == 0 ? "\tgraph=" + id : "");
    if (result == 0)
      text_ += "exec\tid=" + id + "\tgraph=" + id + "\n" + times + "replays\texec=" + id + "\tcount=10\n";
    return *this;
  }
  Program& Replays(unsigned exec, unsigned count) {
    text_ += "replays\texec=" + std::to_string(exec) + "\tcount=" + std::to_string(count) + "\n";
    return *this;
  }
  Program& IsKilled() {
    is_killed_ = true;
    return *this;
  }
  std::string text() const {
    return "gcap-events\tversion=1\tpid=1\ttime=1\tprogram=p\nthread\tid=1\tos=1\nstream\tid=1\twhat=nonblocking\n" +
           text_ + (is_killed_ ? "" : "end\tt=9\n");
  }

 private:
  std::string Call(const std::string& function, int result, const std::string& stack, const std::string& more) {
    const std::string number = std::to_string(++calls_);
    text_ += "call\tn=" + number + "\tthread=1\tstream=1\tfunction=" + function + "\tresult=" + std::to_string(result) +
             "\tstack=" + stack + more + "\n";
    return number;
  }
  std::string text_;
  int captures_ = 0, calls_ = 0;
  bool is_killed_ = false;
};

struct Read {
  explicit Read(std::string text) {
    FILE* file = fmemopen(&text[0], text.size(), "r");
    recording = gcap_doctor_recording_read(file, "test");
    fclose(file);
    EXPECT_EQ(recording->damage.lines, 0u) << recording->damage.reason << text;
    diagnosis = gcap_doctor_diagnosis_create(recording);
  }
  ~Read() {
    gcap_doctor_diagnosis_destroy(diagnosis);
    gcap_doctor_recording_destroy(recording);
  }
  gcap_doctor_recording_t* recording;
  gcap_doctor_diagnosis_t* diagnosis;
};

std::string Diff(const Program& first, const Program& second) {
  Read a(first.text()), b(second.text());
  char* text = nullptr;
  size_t bytes = 0;
  FILE* out = open_memstream(&text, &bytes);
  const bool differs = gcap_doctor_report_diff(out, a.diagnosis, b.diagnosis);
  fclose(out);
  std::string written(text, bytes);
  free(text);
  EXPECT_EQ(differs, !written.empty()) << written;
  return written;
}

TEST(Diff, OfWhatIsAlikeIsNothing) {
  const Program program = Program().Capture(10, {{"a", 5}, {"b", 7}}).Capture(20, {{"a"}}, "graph id 3");
  EXPECT_EQ(Diff(program, program), "");
  // How long a program ran is no difference.
  EXPECT_EQ(Diff(program, Program(program).Replays(1, 90)), "");
}

TEST(Diff, CapturesThatMovedArePartners) {
  EXPECT_EQ(Diff(Program().Capture(10, {{"a"}}), Program().Capture(14, {{"a"}})), "");
  EXPECT_EQ(Diff(Program().Capture(10, {{"a"}}), Program().Capture(10, {{"a"}}, "", 0, "/home/other/serve.py")), "");
  // Each has its own line before one takes another's.
  EXPECT_EQ(Diff(Program().Capture(10, {{"a"}}).Capture(20, {{"a"}, {"a"}}),
                 Program().Capture(20, {{"a"}, {"a"}}).Capture(10, {{"a"}})),
            "");
}

TEST(Diff, CapturesOfOtherPlacesAreNot) {
  EXPECT_EQ(Diff(Program().Capture(10, {{"a"}}), Program().Capture(10, {{"a"}}, "", 0, "/app/serve.py", "warm_up")),
            "capture only in the first: at /app/serve.py:10 in step\n"
            "capture only in the second: at /app/serve.py:10 in warm_up\n");
}

TEST(Diff, CapturesOfOnePlaceAreToldApartByTheirLabels) {
  EXPECT_EQ(Diff(Program().Capture(10, {{"a"}}, "one").Capture(10, {{"a"}, {"a"}}, "two"),
                 Program().Capture(10, {{"a"}, {"a"}}, "two").Capture(10, {{"a"}, {"b"}}, "one")),
            "capture at /app/serve.py:10 in step (one)\n"
            "  nodes: 1, then 2\n"
            "  edges: 0, then 1\n"
            "  nodes of b: 0, then 1\n");
}

TEST(Diff, NodesThatChangedAreNamedByKernel) {
  EXPECT_EQ(Diff(Program().Capture(10, {{"a"}, {"a"}, {"old"}}), Program().Capture(10, {{"a"}, {"fused"}, {"fused"}})),
            "capture at /app/serve.py:10 in step\n"
            "  nodes of a: 2, then 1\n"
            "  nodes of old: 1, then 0\n"
            "  nodes of fused: 0, then 2\n");
}

TEST(Diff, SameChangesAreCounted) {
  Program first, second;
  for (int i = 0; i < 3; ++i) {
    first.Capture(10, {{"a"}});
    second.Capture(10, {{"b"}});
  }
  second.Capture(10, {{"b"}}).Capture(10, {{"b"}});
  EXPECT_EQ(Diff(first, second),
            "capture at /app/serve.py:10 in step (3 times)\n"
            "  nodes of a: 1, then 0\n"
            "  nodes of b: 0, then 1\n"
            "capture only in the second: at /app/serve.py:10 in step (2 times)\n");
}

TEST(Diff, TimesDifferByMoreThanATenth) {
  const Program before = Program().Capture(10, {{"a", 1000}, {"b", 10000}});
  EXPECT_EQ(Diff(before, Program().Capture(10, {{"a", 1100}, {"b", 9000}})), "");
  EXPECT_EQ(Diff(before, Program().Capture(10, {{"a", 1101}, {"b", 8999}})),
            "capture at /app/serve.py:10 in step\n"
            "  time of b: 10.0 us, then 8.99 us\n"
            "  time of a: 1.00 us, then 1.10 us\n");
  EXPECT_EQ(Diff(before, Program().Capture(10, {{"a", 3000}, {"b", 10000}})),
            "capture at /app/serve.py:10 in step\n"
            "  device time of a replay: 11.0 us, then 13.0 us\n"
            "  time of a: 1.00 us, then 3.00 us\n");
  // Nothing was measured, or the kernel takes next to no time.
  EXPECT_EQ(Diff(before, Program().Capture(10, {{"a"}, {"b"}})), "");
  EXPECT_EQ(Diff(Program().Capture(10, {{"a", 10}, {"b", 10000}}), Program().Capture(10, {{"a", 90}, {"b", 10000}})),
            "");
}

TEST(Diff, FindingsComeAndGo) {
  const Program good = Program().Capture(10, {{"a"}}), broken = Program().Capture(10, {{"a"}}, "", 901);
  const std::string worse = Diff(good, broken), better = Diff(broken, good);
  EXPECT_EQ(worse.find("capture at /app/serve.py:10 in step\n  outcome: graph, then broken\n"), 0u) << worse;
  EXPECT_NE(worse.find("\nerror only in the second: culprit"), std::string::npos) << worse;
  EXPECT_EQ(better.find("capture at /app/serve.py:10 in step\n  outcome: broken, then graph\n"), 0u) << better;
  EXPECT_NE(better.find("\nerror only in the first: culprit"), std::string::npos) << better;
  EXPECT_EQ(Diff(broken, Program().Capture(33, {{"a"}}, "", 901)), "");
}

TEST(Diff, ACrashIsADifference) {
  const Program program = Program().Capture(10, {{"a"}});
  EXPECT_EQ(Diff(program, Program(program).IsKilled()), "the program ended in order only in the first\n");
  EXPECT_EQ(Diff(Program(program).IsKilled(), Program(program).IsKilled()), "");
}

TEST(Diff, OfManyKernelsIsShort) {
  std::vector<Kernel> before, after;
  for (int i = 0; i < 300; ++i) {
    before.push_back({"k" + std::to_string(i)});
    after.push_back({"n" + std::to_string(i)});
  }
  const std::string text = Diff(Program().Capture(10, before), Program().Capture(10, after));
  EXPECT_NE(text.find("  and 580 more kernels\n"), std::string::npos) << text;
}

TEST(Diff, TextsOfTheProgramMoveNoCursor) {
  const std::string text = Diff(Program(), Program().Capture(10, {{"a"}}, "x\\n\x1b[31m"));
  EXPECT_EQ(text, "capture only in the second: at /app/serve.py:10 in step (x ?[31m)\n");
}

}  // namespace
