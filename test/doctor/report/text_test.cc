// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The report for a terminal.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "doctor/report/report.h"
#include "test/doctor/report/sample.h"

namespace {

using gcap_test::Sample;
using gcap_test::Text;

long CountLines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(TextReport, CulpritComesFirstWithItsPlacesAndRemedy) {
  std::unique_ptr<Sample> sample(gcap_test::MakeBroken());
  EXPECT_EQ(Text(*sample),
            "gcap-doctor: capture 1 broke: cudaStreamSynchronize answered 900 cudaErrorStreamCaptureUnsupported\n"
            "  what     cudaStreamSynchronize on stream 1, which captures, by thread 'python3' broke the capture.\n"
            "  Python   serve.py:12 in body\n"
            "  through  /opt/venv/lib/python3.11/site-packages/torch/_tensor.py:99 in item\n"
            "  C        at::native::_local_scalar_dense_cuda (libtorch_cuda.so)\n"
            "  thread   'python3' (the capturing thread), capture begun at serve.py:41 in main\n"
            "  rule     R11: a call that a capturing stream cannot be given\n"
            "  remedy   read the value after the replay, or keep it on the device\n"
            "  page     docs/rules/r11.md (gcap-doctor explain --rule R11 prints it)\n"
            "  warning  cudaMalloc of 4096 bytes by thread 'loader' answered 901 while capture 1 was open. (3 times)\n"
            "           at loader.py:5 in load; remedy: do it before the capture begins, or exchange the thread to "
            "relaxed mode around it\n");
}

TEST(TextReport, AnotherThreadIsNamedBesideTheCapturingOne) {
  std::unique_ptr<Sample> sample(gcap_test::MakeBroken());
  gcap_doctor_finding_t& finding = const_cast<gcap_doctor_finding_t*>(sample->diagnosis()->findings)[0];
  finding.call = sample->Call(5);
  finding.is_certain = false;
  const std::string text = Text(*sample);
  EXPECT_TRUE(Has(text, "gcap-doctor: capture 1 broke, probably: cudaMalloc answered 901 ")) << text;
  EXPECT_TRUE(Has(text, "thread   'loader', while 'python3' captures, capture begun at serve.py:41 in main\n")) << text;
}

// An exception stands among the calls; each report says what it is.
TEST(Reports, ExceptionIsNoCall) {
  Sample sample(std::string(gcap_test::kFirstLine) +
                "thread\tid=1\tos=7\npyframe\tid=1\tfile=a.py\tline=3\tfunction=f\nstack\tid=1\tpy=1\n"
                "raise\tn=1\tt=5\tthread=1\ttype=ValueError\ttext=no such layer\tstack=1\n");
  sample.AddFinding(GCAP_DOCTOR_FINDING_EXCEPTION, GCAP_DOCTOR_SEVERITY_ERROR, "ValueError left capture 1.").call = 0;
  EXPECT_TRUE(Has(Text(sample), "gcap-doctor: ValueError left capture 1.\n  Python   a.py:3 in f\n")) << Text(sample);
  const std::string json = gcap_test::Written(gcap_doctor_report_json, sample);
  EXPECT_TRUE(Has(json, "\"exception\": \"ValueError\"")) << json;
  EXPECT_TRUE(Has(json, "\"arguments\": \"no such layer\"")) << json;
  EXPECT_TRUE(Has(gcap_test::Written(gcap_doctor_report_html, sample), "ValueError: no such layer"));
  EXPECT_TRUE(Has(gcap_test::Written(gcap_doctor_report_trace, sample), "\"raise ValueError\""));
}

TEST(TextReport, DriversWordsStandBelowTheCall) {
  std::unique_ptr<Sample> sample(gcap_test::MakeBroken());
  sample->recording()->calls[sample->Call(4)].log = "the stream captures\nmore";
  EXPECT_TRUE(Has(Text(*sample), "broke the capture.\n  driver   the stream captures\n  Python   ")) << Text(*sample);
}

TEST(TextReport, CallThatSucceededIsNamedWithTheAnswerOfTheEnd) {
  std::unique_ptr<Sample> sample(gcap_test::MakeBroken());
  const_cast<gcap_doctor_finding_t*>(sample->diagnosis()->findings)[0].call = sample->Call(3);
  EXPECT_TRUE(Has(Text(*sample), "cudaLaunchKernel, which answered 0; its end answered 901 cudaErrorStreamCapture"))
      << Text(*sample);
}

TEST(TextReport, FindingsOfAnyNumberTakeTwentyLinesAtMost) {
  for (unsigned findings = 0; findings <= 50; ++findings) {
    std::unique_ptr<Sample> sample(gcap_test::MakeMany(findings));
    const std::string text = Text(*sample);
    EXPECT_LE(CountLines(text), 20) << text;
    // Each finding is in a line or is counted.
    unsigned shown = 0;
    for (unsigned i = 0; i < findings; ++i) shown += Has(text, "finding number " + std::to_string(i) + "\n");
    const size_t more = text.find(" more finding");
    const unsigned counted = more == std::string::npos ? 0 : std::stoul(text.substr(text.rfind(' ', more - 1)));
    EXPECT_EQ(shown + counted, findings) << text;
    EXPECT_TRUE(Has(text, "note     second note (1 more: --json)\n")) << text;
    EXPECT_TRUE(Has(text, "cut off  the recording has no end")) << text;
  }
}

TEST(TextReport, HealthyRecordingSaysWhatWasCaptured) {
  std::unique_ptr<Sample> sample(gcap_test::MakeHealthy());
  EXPECT_EQ(Text(*sample),
            "gcap-doctor: no finding: 1 capture, 1 graph, 1000 replays\n"
            "  capture  1: 4 nodes, 1000 replays, begun at app.py:20 in forward\n"
            "  times    graph 1, 1000 replays, 10.0 us of device time each; by Python line:\n"
            "            70 %  7.00 us  app.py:30 in head (2 nodes)\n"
            "            30 %  3.00 us  app.py:20 in forward (2 nodes)\n");
}

TEST(TextReport, LabelsAddUpToTheWhole) {
  std::unique_ptr<Sample> gaps(gcap_test::MakeLabelled(12000));
  EXPECT_TRUE(Has(Text(*gaps),
                  "  times    graph 1, 1000 replays, 12.0 us of device time each; by label:\n"
                  "            58 %  7.00 us  step (2 nodes)\n"
                  "            17 %  2.00 us  step > attention (1 node)\n"
                  "             8 %  1.00 us  (no label) (1 node)\n"
                  "            17 %  2.00 us  (between nodes)\n"))
      << Text(*gaps);
  std::unique_ptr<Sample> parallel(gcap_test::MakeLabelled(8000));
  EXPECT_TRUE(Has(Text(*parallel), "           - 25 %  -2.00 us  (nodes that ran at once)\n")) << Text(*parallel);
}

// The line of what has no label is shown, however little it is.
TEST(TextReport, UnlabelledPartIsShownAmongManyLabels) {
  std::string events = std::string(gcap_test::kFirstLine) + "thread\tid=1\tos=7\nexec\tid=1\tgraph=1\n";
  for (int i = 1; i <= 9; ++i) {
    const std::string number = std::to_string(i);
    events += "range\tid=" + number + "\ttext=label " + number + "\n";
    events += "node\tgraph=1\tid=" + number + "\ttype=kernel\tcall=" + number + "\n";
    events += "call\tn=" + number + "\tthread=1\tfunction=cuLaunchKernel\tresult=0" +
              (i < 9 ? "\trange=" + number : "") + "\n";
    events += "time\texec=1\tnode=" + number + "\tcount=1\tns=" + std::to_string(1000 - 100 * i) + "\n";
  }
  Sample sample(events + "replays\texec=1\tcount=1\nend\tt=9\n");
  const std::string text = Text(sample);
  EXPECT_TRUE(Has(text, " label 4 (1 node)\n")) << text;
  EXPECT_FALSE(Has(text, " label 5 (1 node)\n")) << text;
  EXPECT_TRUE(Has(text, "   2 %  100 ns   (no label) (1 node)\n")) << text;
}

TEST(TextReport, WorkThatHasANameIsCalledByIt) {
  std::unique_ptr<Sample> healthy(gcap_test::MakeHealthy());
  healthy->recording()->calls[healthy->diagnosis()->captures[0].begin].label = "graph id -2, key 'decode'";
  EXPECT_TRUE(Has(Text(*healthy), "  capture  1 (graph id -2, key 'decode'): 4 nodes, ")) << Text(*healthy);
  std::unique_ptr<Sample> broken(gcap_test::MakeBroken());
  broken->recording()->calls[broken->diagnosis()->captures[0].begin].label = "graph id 3";
  EXPECT_EQ(Text(*broken).find("gcap-doctor: capture 1 (graph id 3) broke"), 0u) << Text(*broken);
}

TEST(TextReport, TimesLeaveRoomForFindings) {
  std::unique_ptr<Sample> sample(gcap_test::MakeLarge(100));
  for (int i = 0; i < 20; ++i) {
    sample->AddFinding(GCAP_DOCTOR_FINDING_PAGEABLE, GCAP_DOCTOR_SEVERITY_WARNING, "finding " + std::to_string(i));
  }
  const std::string text = Text(*sample);
  EXPECT_LE(CountLines(text), 20) << text;
  EXPECT_TRUE(Has(text, "finding 3")) << text;
  EXPECT_TRUE(Has(text, "by Python line:")) << text;
}

TEST(TextReport, DamageIsSaid) {
  Sample empty("");
  const std::string text = Text(empty);
  EXPECT_TRUE(Has(text, "no finding: 0 captures, 0 graphs, 0 replays\n")) << text;
  EXPECT_TRUE(Has(text, "damage   1 line could not be read; the first is line 1: the file is empty\n")) << text;
}

// One call, and what stands behind it.
std::string TextOf(const std::string& tail) {
  Sample sample(std::string(gcap_test::kFirstLine) +
                "thread\tid=1\tos=7\ncall\tn=1\tthread=1\tfunction=cuGraphLaunch\tresult=0\n" + tail);
  return Text(sample);
}

TEST(TextReport, RecordingWithoutAnEndIsSaid) {
  EXPECT_TRUE(
      Has(TextOf(""),
          "\n  cut off  the recording has no end: the program was ended by a signal or _exit, crashed, or still "
          "runs\n"));
  EXPECT_FALSE(Has(TextOf("end\tt=9\n"), "cut off"));
}

// The recorder that stopped is no program that crashed, and however many notes there are, this one is shown.
TEST(TextReport, RecordingThatStoppedAtItsLimitSaysSoInOneLine) {
  const std::string limit = "the recording stopped at 256 MB, the limit; GCAP_DOCTOR_LIMIT_MB sets another one.";
  const std::string notes = "note\ttext=one\nnote\ttext=two\nnote\ttext=three\nnote\ttext=" + limit + "\n";
  for (const char* end : {"", "end\tt=9\n"}) {
    const std::string text = TextOf(notes + end);
    EXPECT_TRUE(Has(text, "\n  stopped  " + limit + "\n  note     one\n  note     two (1 more: --json)\n")) << text;
    EXPECT_EQ(text.find(limit), text.rfind(limit)) << text;
    EXPECT_FALSE(Has(text, "cut off")) << text;
    EXPECT_FALSE(Has(text, "crashed")) << text;
  }
  const std::string failed = "the recording stopped: writing to its file failed (No space left on device).";
  EXPECT_TRUE(Has(TextOf("note\ttext=" + failed + "\n"), "\n  stopped  " + failed + "\n"));
  EXPECT_FALSE(Has(TextOf("note\ttext=" + failed + "\n"), "cut off"));
}

TEST(TextReport, ColourIsThereWhenAskedFor) {
  std::unique_ptr<Sample> sample(gcap_test::MakeBroken());
  EXPECT_FALSE(Has(Text(*sample, false), "\033"));
  const std::string text = Text(*sample, true);
  EXPECT_EQ(text.find("\033[1;31mgcap-doctor:\033[0m"), 0u) << text;
  EXPECT_EQ(CountLines(text), CountLines(Text(*sample, false)));
}

TEST(TextReport, NamesOfTheProgramMoveNoCursor) {
  std::unique_ptr<Sample> sample(gcap_test::MakeHostile());
  const std::string text = Text(*sample);
  EXPECT_EQ(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xE0) == 0 && c != '\n'; }), 0) << text;
  EXPECT_FALSE(Has(text, "\xff"));
  EXPECT_FALSE(Has(text, "\xe2\x80\xae"));  // right to left
  EXPECT_TRUE(Has(text, "\xf0\x9f\x98\x80"));
  EXPECT_LE(CountLines(text), 20);
}

}  // namespace
