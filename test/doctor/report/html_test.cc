// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The page, as text. What a browser makes of it is browser_test's.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "doctor/report/report.h"
#include "test/doctor/report/sample.h"

namespace {

using gcap_test::Sample;

std::string Html(Sample& sample) { return gcap_test::Written(gcap_doctor_report_html, sample); }

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(HtmlReport, FindingsComeFirstWithBothStacks) {
  std::unique_ptr<Sample> sample(gcap_test::MakeBroken());
  const std::string page = Html(*sample);
  EXPECT_EQ(Count(page, "<article class=\"finding "), 2u);
  EXPECT_LT(page.find("id=\"finding-1\""), page.find("id=\"capture-1\""));
  EXPECT_LT(page.find("id=\"capture-1\""), page.find("id=\"graph-1\""));
  EXPECT_NE(page.find("<li class=\"chief\">serve.py:12 in body</li>"), std::string::npos);
  EXPECT_NE(page.find("<li class=\"chief\">at::native::_local_scalar_dense_cuda (libtorch_cuda.so)</li>"),
            std::string::npos);
  EXPECT_NE(page.find("R11: a call that a capturing stream cannot be given"), std::string::npos);
  EXPECT_NE(page.find("read the value after the replay, or keep it on the device"), std::string::npos);
}

// Begin, launch, culprit and end on stream 1 and, with the launch on stream 2, on the capturing thread; a call beside.
TEST(HtmlReport, TimelineHasASliceForEachCallOnEachTrack) {
  std::unique_ptr<Sample> sample(gcap_test::MakeBroken());
  const std::string page = Html(*sample);
  EXPECT_EQ(Count(page, "<rect class=\"s-"), 4u + 1u + 5u + 1u);
  EXPECT_EQ(Count(page, "<rect class=\"s-culprit\""), 2u);
  EXPECT_EQ(Count(page, "<rect class=\"s-node\""), 4u);
  EXPECT_EQ(Count(page, "<rect class=\"s-failed\""), 3u);
}

TEST(HtmlReport, NoNameBecomesMarkup) {
  std::unique_ptr<Sample> hostile(gcap_test::MakeHostile()), broken(gcap_test::MakeBroken());
  const std::string page = Html(*hostile);
  EXPECT_EQ(Count(page, "<script"), Count(Html(*broken), "<script"));
  EXPECT_EQ(Count(page, "<script"), 1u);
  EXPECT_EQ(Count(page, "<img"), 0u);
  EXPECT_EQ(Count(page, "<b>"), 0u);
  EXPECT_EQ(Count(page, "</title>") - Count(page, "<title>"), 0u);
  EXPECT_GT(Count(page, "&lt;script&gt;"), 5u);
  EXPECT_EQ(Count(page, "\x1b"), 0u);
  EXPECT_EQ(Count(page, "\xff"), 0u);
}

TEST(HtmlReport, PageOfAThousandNodesIsBelowAMegabyte) {
  std::unique_ptr<Sample> sample(gcap_test::MakeLarge(1000));
  const std::string page = Html(*sample);
  EXPECT_LT(page.size(), 1000000u);
  EXPECT_EQ(Count(page, "<tr><td class=\"id mono\">0x"), 1000u);
  EXPECT_NE(page.find("229 us"), std::string::npos);  // line 103
}

TEST(HtmlReport, EmbeddedFilesKeepTheirBackslashesAndQuotes) {
  Sample sample("");
  const std::string page = Html(sample);
  EXPECT_EQ(Count(page, "button::after { content: \" \\2191\"; }"), 1u);
  EXPECT_EQ(Count(page, "\"use strict\";\n"), 1u);
}

TEST(HtmlReport, NothingIsFetched) {
  std::unique_ptr<Sample> sample(gcap_test::MakeLarge(50));
  const std::string page = Html(*sample);
  for (const char* part : {"http:", "https:", "src=", "@import", "url(", "<link"})
    EXPECT_EQ(Count(page, part), 0u) << part;
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

// Thirty graphs of names of two hundred characters, two hundred findings with stacks of sixty frames.
TEST(HtmlReport, AnyRecordingGivesAPageOfThreeMegabytesAtMost) {
  std::string events = std::string(gcap_test::kFirstLine) + "thread\tid=1\tos=1\tname=t\nstream\tid=1\n";
  const std::string name(200, '<');
  std::string frames, lines;
  for (int i = 1; i <= 120; ++i) {
    const std::string id = std::to_string(i);
    events += i <= 60 ? "frame\tid=" + id + "\tmodule=m\toffset=0x1\tfunction=" + id + name + "\n"
                      : "pyframe\tid=" + id + "\tfile=" + name + "\tline=1\tfunction=f\n";
    (i <= 60 ? frames : lines) += (i % 60 == 1 ? "" : ",") + id;
  }
  events += "stack\tid=1\tc=" + frames + "\tpy=" + lines + "\n";
  for (int i = 1; i <= 3000; ++i) {
    const std::string id = std::to_string(i);
    events += "node\tgraph=" + std::to_string(i % 30) + "\tid=" + id + "\ttype=kernel\tcall=" + id + "\n";
    events += "call\tn=" + id + "\tt=" + id + "0000\tend=" + id + "5000\tthread=1\tfunction=" + name +
              "\tresult=0\tstream=1\tstack=1\tkernel=" + id + name + "\n";
  }
  Sample sample(events);
  sample.AddCapture().begin = 0;
  for (int i = 0; i < 200; ++i)
    sample.AddFinding(GCAP_DOCTOR_FINDING_ESCAPED, GCAP_DOCTOR_SEVERITY_NOTE, name).call = 7;
  const std::string page = Html(sample);
  EXPECT_LT(page.size(), 3000000u);
  EXPECT_NE(page.find("100 findings more"), std::string::npos);
  EXPECT_NE(page.find("10 graphs more"), std::string::npos);
}

TEST(HtmlReport, EmptyRecordingIsAPage) {
  Sample sample("");
  const std::string page = Html(sample);
  EXPECT_NE(page.find("No finding"), std::string::npos);
  EXPECT_NE(page.find("the file is empty"), std::string::npos);
  EXPECT_EQ(page.substr(page.size() - 8), "</html>\n");
}

TEST(HtmlReport, RecordingWithoutTimesSaysSo) {
  Sample sample(std::string(gcap_test::kFirstLine) +
                "thread\tid=1\tos=1\n"
                "call\tn=1\tthread=1\tfunction=cudaStreamBeginCapture\tresult=0\n"
                "call\tn=2\tthread=1\tfunction=cudaStreamEndCapture\tresult=0\n");
  sample.AddCapture().begin = 0;
  const std::string page = Html(sample);
  EXPECT_NE(page.find("timelines give each call the same width"), std::string::npos);
  EXPECT_NE(page.find("x=\"0.0\" y=\"4\" width=\"400.0\""), std::string::npos);
  EXPECT_NE(page.find("x=\"500.0\" y=\"4\" width=\"400.0\""), std::string::npos);
}

// In the table and on the tracks of the page, and in the other reports.
TEST(HtmlReport, CallsThatAreCountedAreAsMany) {
  Sample sample(
      "gcap-events\tversion=3\tpid=7\ttime=1\tprogram=a\nthread\tid=1\tos=70\nstream\tid=2\n"
      "like\tid=1\tthread=1\tfunction=cuLaunchKernel\tresult=0\tstream=2\n"
      "call\tn=1\tt=1000\tns=10\tthread=1\tfunction=cuStreamBeginCapture\tresult=0\tstream=2\n"
      "call\tn=40\tt=9000\tns=10\tlike=1\tcount=39\tfirst=2\tsince=2000\n"
      "call\tn=41\tt=9100\tns=10\tthread=1\tfunction=cuStreamEndCapture\tresult=0\tstream=2\n");
  gcap_doctor_captured_t& capture = sample.AddCapture();
  capture.begin = 0;
  capture.end = 2;
  capture.stream = capture.thread = 0;
  sample.AddFinding(GCAP_DOCTOR_FINDING_ESCAPED, GCAP_DOCTOR_SEVERITY_ERROR, "beside").call = 1;
  const std::string page = Html(sample);
  EXPECT_NE(page.find("<summary>41 calls"), std::string::npos);
  EXPECT_NE(page.find("cudaLaunchKernel &times; 39"), std::string::npos);
  EXPECT_NE(page.find(": 41 calls, 0 with an error"), std::string::npos);
  EXPECT_NE(page.find("cudaLaunchKernel and 38 calls more</title>"), std::string::npos);
  const std::string json = gcap_test::Written(gcap_doctor_report_json, sample);
  EXPECT_NE(json.find("\"calls\": 41,"), std::string::npos);
  EXPECT_NE(json.find("\"repeats\": 39,"), std::string::npos);
  const std::string trace = gcap_test::Written(gcap_doctor_report_trace, sample);
  // On the thread and on the stream: the last call, since slices of a loop's calls would overlap.
  EXPECT_EQ(Count(trace, "\"ts\": 9.000, \"dur\": 0.010, \"args\": {\"call\": 40, \"repeats\": 39, \"since\": 2.000"),
            2u);
}

}  // namespace
