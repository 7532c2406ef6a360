// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Captures that ended well, in a graph that is not what was meant: work beside it, calls that failed, memory that will
// be gone, nothing at all; and captures that did not end.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "test/doctor/analyse/sentences.h"

namespace {

using script::Diagnose;
using script::Diagnosis;
using script::Script;

// A capture of stream 1 by `main` around the lines, and a launched graph.
Diagnosis Captured(std::initializer_list<std::string> lines, const std::string& mode = "global") {
  Script s;
  s.Run({"main cuStreamBeginCapture stream=1 mode=" + mode, "main cuLaunchKernel stream=1 +kernel"});
  s.Run(lines);
  s.Run({"main cuStreamEndCapture stream=1", "! exec id=1 graph=1", "! replays exec=1 count=5", "! end t=9000"});
  return s.Diagnose();
}

// --- Work beside the capture -----------------------------------------------------------------------------------------

TEST(Escaped, LaunchOnTheLegacyStream) {
  Diagnosis d = Captured({"main cuLaunchKernel stream=9 kernel=_ZN2at6native4copyIfEEvPf"});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_ESCAPED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_ERROR);
  EXPECT_EQ(d.Rule(f), "R64");
  EXPECT_EQ(d.Call(f), 3u);
  EXPECT_EQ(d.Other(f), 1u);
}

TEST(Escaped, SynchronousCopyHasNoStream) {
  Diagnosis d = Captured({"main cuMemcpyHtoD bytes=64 copy=htod"});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_ESCAPED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d.Call(f), 3u);
}

TEST(Escaped, EachKindOfWork) {
  for (const char* call : {"cuLaunchKernelEx stream=3", "cuMemcpyDtoDAsync stream=3", "cuMemsetD8Async stream=3",
                           "cuMemsetD32 ", "cuLaunchHostFunc stream=3", "cuGraphLaunch stream=3 exec=1"}) {
    EXPECT_NE(Captured({std::string("main ") + call}).Find(GCAP_DOCTOR_FINDING_ESCAPED), nullptr) << call;
  }
  for (const char* call : {"cuStreamCreate", "cuMemcpyDtoD bytes=0", "cuEventCreate", "cuModuleGetFunction"}) {
    EXPECT_EQ(Captured({std::string("main ") + call})->num_findings, 0u) << call;
  }
}

// A prefetch, say, or the replay of another graph: the program chose that stream, and nothing ties it to the capture.
TEST(Escaped, CopyOrReplayOnAStreamOfItsOwnIsANote) {
  for (const char* call : {"cuMemcpyHtoDAsync stream=2 copy=htod host=pinned bytes=4096",
                           "cuGraphLaunch stream=2 exec=1", "cuMemcpyDtoDAsync stream=8"}) {
    Diagnosis d = Captured({std::string("main ") + call}, "thread_local");
    const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_ESCAPED);
    ASSERT_NE(f, nullptr) << d.All();
    EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_NOTE) << d.All();
    EXPECT_EQ(d.NumSerious(), 0u) << d.All();
  }
  for (const char* call : {"cuMemcpyHtoD bytes=64", "cuGraphLaunch stream=9 exec=1", "cuLaunchKernel stream=2"}) {
    EXPECT_EQ(Captured({std::string("main ") + call}, "thread_local").Find(GCAP_DOCTOR_FINDING_ESCAPED)->severity,
              GCAP_DOCTOR_SEVERITY_ERROR);
  }
}

// The capture and the stream wait for one another, so the work was to be in the graph.
TEST(Escaped, WorkOnAStreamThatIsTiedToTheCaptureIsAnError) {
  Diagnosis early = Captured({"main cuMemcpyDtoDAsync stream=2", "main cuEventRecord stream=1 event=5",
                              "main cuStreamWaitEvent stream=2 event=5", "main cuLaunchKernel stream=2 +kernel",
                              "main cuEventRecord stream=2 event=6", "main cuStreamWaitEvent stream=1 event=6"});
  ASSERT_NE(early.Find(GCAP_DOCTOR_FINDING_ESCAPED), nullptr) << early.All();
  EXPECT_EQ(early.Find(GCAP_DOCTOR_FINDING_ESCAPED)->severity, GCAP_DOCTOR_SEVERITY_ERROR) << early.All();
  Diagnosis isolated = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuLaunchKernel stream=1 +kernel",
      "main cuMemcpyDtoDAsync stream=2",
      "main cuMemcpyDtoDAsync stream=3",  // and one of which the capture knows nothing
      "main cuEventRecord stream=2 event=6",
      "main cuStreamWaitEvent stream=1 event=6 -> 905",
      "main cuStreamEndCapture stream=1 -> 901",
  });
  ASSERT_EQ(isolated->num_findings, 3u) << isolated.All();
  EXPECT_EQ(isolated->findings[0].kind, GCAP_DOCTOR_FINDING_CULPRIT);
  EXPECT_EQ(isolated->findings[1].severity, GCAP_DOCTOR_SEVERITY_ERROR) << isolated.All();
  EXPECT_EQ(isolated.Call(&isolated->findings[1]), 3u);
  EXPECT_EQ(isolated->findings[2].severity, GCAP_DOCTOR_SEVERITY_NOTE) << isolated.All();
}

// The program waits for an event outside of the graph, and says so.
TEST(Escaped, ExternalEventIsMeant) {
  Diagnosis d = Captured({"main cuMemcpyHtoDAsync stream=2 bytes=4096", "main cuEventRecord stream=2 event=6",
                          "main cuStreamWaitEvent stream=1 event=6 +event_wait"},
                         "thread_local");
  EXPECT_EQ(d.NumSerious(), 0u) << d.All();
}

TEST(Escaped, OneFindingAPlaceCounts) {
  Script s;
  s.Place("one", {"app:one"}).Place("two", {"app:two"});
  s.Run({"main cuStreamBeginCapture stream=1 mode=global", "main cuLaunchKernel stream=1 +kernel"});
  for (int i = 0; i < 5; ++i) s.Run("main cuLaunchKernel stream=9 at=one");
  s.Run({"main cuLaunchKernel stream=9 at=two", "main cuStreamEndCapture stream=1", "! exec id=1 graph=1",
         "! replays exec=1 count=1"});
  Diagnosis d = s.Diagnose();
  ASSERT_EQ(d->num_findings, 2u) << d.All();
  EXPECT_EQ(d->findings[0].count, 5u);
  EXPECT_EQ(d.Call(&d->findings[0]), 3u);
  EXPECT_EQ(d->findings[1].count, 1u);
  EXPECT_EQ(d.Call(&d->findings[1]), 8u);
}

TEST(Escaped, WorkOfOtherThreadsIsTheirOwn) {
  EXPECT_EQ(Captured({"loader cuLaunchKernel stream=3", "loader cuMemcpyHtoD bytes=64"})->num_findings, 0u);
}

TEST(Escaped, WorkOfTwoCapturesOfOneThreadIsInThem) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=thread_local",
      "main cuStreamBeginCapture stream=2 mode=thread_local",
      "main cuLaunchKernel stream=1 +kernel@1",
      "main cuLaunchKernel stream=2 +kernel@2",
      "main cuStreamEndCapture stream=1",
      "main cuLaunchKernel stream=2 +kernel@2",
      "main cuStreamEndCapture stream=2",
      "! exec id=1 graph=1",
      "! exec id=2 graph=2",
      "! replays exec=1 count=1",
      "! replays exec=2 count=1",
      "! end t=900",
  });
  EXPECT_EQ(d->num_findings, 0u) << d.All();
  ASSERT_EQ(d->num_captures, 2u);
  EXPECT_EQ(d->captures[0].num_nodes, 1u);
  EXPECT_EQ(d->captures[1].num_nodes, 2u);
  EXPECT_EQ(gcap_doctor_diagnosis_capture_of(d.get(), 2), 0u);
  EXPECT_EQ(gcap_doctor_diagnosis_capture_of(d.get(), 3), 1u);
}

TEST(Escaped, NodeOfAnInnerCallIsTheOuterOnes) {
  EXPECT_EQ(
      Captured({"main cuMemcpyHtoDAsync stream=1 bytes=8", "> main cuMemcpyAsync stream=1 +memcpy"})->num_findings, 0u);
}

TEST(Escaped, RelaxedExchangeMeansIt) {
  Diagnosis d = Captured({"main cuThreadExchangeStreamCaptureMode mode=relaxed", "main cuMemcpyHtoD bytes=64",
                          "main cuThreadExchangeStreamCaptureMode mode=global"});
  EXPECT_EQ(d.NumSerious(), 0u) << d.All();
  EXPECT_NE(d.Find(GCAP_DOCTOR_FINDING_ESCAPED), nullptr);
}

// --- Calls that failed -----------------------------------------------------------------------------------------------

TEST(LostCall, FailedCopy) {
  Diagnosis d = Captured({"main cuMemcpyDtoDAsync stream=1 bytes=9 -> 1"});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_LOST_CALL);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d.Rule(f), "R9");
  EXPECT_EQ(d.Call(f), 3u);
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_ERROR);
}

TEST(LostCall, BatchOfCopiesIsRefused) {
  const Diagnosis d = Captured({"main cuMemcpyBatchAsync stream=1 -> 900"});
  EXPECT_EQ(d.Rule(d.Find(GCAP_DOCTOR_FINDING_LOST_CALL)), "R22") << d.All();
}

TEST(LostCall, WaitOnAnEventOfACaptureThatIsOver) {
  const std::initializer_list<std::string> wait = {"main cuStreamBeginCapture stream=1 mode=global",
                                                   "main cuLaunchKernel stream=1 +kernel",
                                                   "main cuEventRecord stream=1 event=5",
                                                   "main cuStreamEndCapture stream=1",
                                                   "! exec id=1 graph=1",
                                                   "! replays exec=1 count=1",
                                                   "main cuStreamWaitEvent stream=2 event=5 -> 1"};
  Diagnosis d = Diagnose(wait);
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_LOST_CALL);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d.Rule(f), "R19");
  EXPECT_EQ(d.Call(f), 5u);
  // Recorded again, the event is no longer the capture's.
  EXPECT_EQ(Diagnose({"main cuStreamBeginCapture stream=1 mode=global", "main cuLaunchKernel stream=1 +kernel",
                      "main cuEventRecord stream=1 event=5", "main cuStreamEndCapture stream=1", "! exec id=1 graph=1",
                      "! replays exec=1 count=1", "main cuEventRecord stream=3 event=5",
                      "main cuStreamWaitEvent stream=2 event=5 -> 1"})
                ->num_findings,
            0u);
}

TEST(LostCall, QuestionsAndSecondTriesAreNoLoss) {
  for (const char* call : {"cuPointerGetAttribute -> 1", "cuEventQuery event=4 -> 600",
                           "cuStreamIsCapturing stream=9 -> 906", "cuModuleGetFunction -> 500",
                           "cuCtxEnablePeerAccess -> 704", "cuOccupancyMaxActiveBlocksPerMultiprocessor -> 1"}) {
    EXPECT_EQ(Captured({std::string("main ") + call})->num_findings, 0u) << call;
  }
  EXPECT_EQ(Captured({"main cuMemAlloc -> 2", "main cuMemFree", "main cuMemAlloc"})->num_findings, 0u);
  EXPECT_NE(Captured({"main cuMemAlloc -> 2"}).Find(GCAP_DOCTOR_FINDING_LOST_CALL), nullptr);
  EXPECT_EQ(Captured({"other cuMemcpyDtoDAsync stream=3 -> 1"})->num_findings, 0u);
}

TEST(LostCall, ProbesThatSucceedAtOnceAreNoLoss) {
  EXPECT_EQ(Captured({"main cuFuncSetAttribute -> 1", "main cuFuncSetAttribute"})->num_findings, 0u);
  EXPECT_EQ(Captured({"main cuLibraryLoadData -> 218", "main cuLibraryLoadData"}, "relaxed")->num_findings, 0u);
  EXPECT_EQ(Captured({"main cuMemHostRegister -> 712"}, "relaxed")->num_findings, 0u);  // it is registered
  EXPECT_EQ(Captured({"main cuMemHostRegister -> 704"}, "relaxed")->num_findings, 0u);
  EXPECT_NE(Captured({"main cuFuncSetAttribute -> 1", "other cuFuncSetAttribute"}).Find(GCAP_DOCTOR_FINDING_LOST_CALL),
            nullptr);
  // The graph lacks the first of two copies, whatever becomes of the second.
  EXPECT_NE(Captured({"main cuMemcpyDtoDAsync stream=1 -> 1", "main cuMemcpyDtoDAsync stream=1 +memcpy"})
                .Find(GCAP_DOCTOR_FINDING_LOST_CALL),
            nullptr);
}

// --- Questions after which nothing came ------------------------------------------------------------------------------

// A capture as PyTorch makes it; the lines come after its last node.
Script Torch(std::initializer_list<std::string> lines, const std::string& replays) {
  Script s;
  s.Place("begin", {"libtorch_cuda.so:capture_begin"}, {"torch/cuda/graphs.py:90:capture_begin", "train.py:40:main"});
  s.Place("end", {"libtorch_cuda.so:capture_end"}, {"torch/cuda/graphs.py:126:capture_end", "train.py:40:main"});
  s.Place("add", {"libtorch_cuda.so:add"}, {"train.py:11:body", "train.py:41:main"});
  s.Place("copy", {"libtorch_cuda.so:copy_kernel"}, {"train.py:12:body", "train.py:41:main"});
  s.Place("seed", {"libtorch_cuda.so:new_generator"}, {"train.py:13:body", "train.py:41:main"});
  s.Place("plain", {"app:work"});
  s.Run({"main cuStreamBeginCapture stream=1 mode=global at=begin", "main cuStreamGetCaptureInfo stream=1 at=begin",
         "main cuStreamIsCapturing stream=1 at=add", "main cuLaunchKernel stream=1 at=add +kernel"});
  s.Run(lines);
  s.Run({"main cuStreamEndCapture stream=1 at=end", "main cuGraphInstantiateWithFlags graph=1 exec=1",
         "! exec id=1 graph=1", "! replays exec=1 count=" + replays, "! end t=9000"});
  return s;
}

TEST(Refused, QuestionOfACopy) {
  Diagnosis d =
      Torch({"main cuStreamIsCapturing stream=1 at=copy", "main cuPointerGetAttributes at=copy"}, "0").Diagnose();
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_REFUSED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_ERROR);
  EXPECT_FALSE(f->is_certain);
  EXPECT_EQ(d.Rule(f), "R38");
  EXPECT_EQ(d.Call(f), 5u);
}

// Whether a framework's question from such a C function is taken for that of a copy.
bool IsCopy(const std::string& function) {
  Script s;
  s.Place("begin", {"a:b"}, {"graphs.py:9:capture_begin"});
  s.Place("ask", {"libtorch_cuda.so:" + function}, {"train.py:12:body"});
  s.Run({"main cuStreamBeginCapture stream=1 mode=global at=begin", "main cuStreamIsCapturing stream=1 at=ask",
         "main cuStreamEndCapture stream=1 at=begin", "! end t=900"});
  Diagnosis d = s.Diagnose();
  return d.Rule(d.Find(GCAP_DOCTOR_FINDING_REFUSED)) == "R38";
}

TEST(Refused, OnlyPyTorchsCopiesAreCopies) {
  for (const char* function :
       {"copy_", "at::_ops::copy_::call", "at::native::copy_kernel_cuda", "_ZN2at6native5copy_ERNS_6TensorERKS1_b",
        "_ZN2at4_ops5copy_4callERNS_6TensorERKS2_b", "_ZN2at6nativeL16copy_kernel_cudaERNS_14TensorIteratorEb"}) {
    EXPECT_TRUE(IsCopy(function)) << function;
  }
  for (const char* function : {"copy", "deepcopy_", "copy_weights", "std::copy<float*>", "_ZN3app12copy_weightsEv",
                               "_ZN3app15copy_", "_ZN2at6native5clone", "no_copy_", "copy_2"}) {
    EXPECT_FALSE(IsCopy(function)) << function;
  }
}

TEST(Refused, QuestionOfAnythingElseHasNoRule) {
  Diagnosis d = Torch({"main cuStreamIsCapturing stream=1 at=seed"}, "0").Diagnose();
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_REFUSED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(f->rule, nullptr);
}

// CuPy throws from C, and the capture stays open.
TEST(Refused, QuestionInACaptureThatNobodyEnds) {
  Script s;
  s.Place("begin", {"runtime.so:begin"}, {"infer.py:12:<module>"});
  s.Place("ask", {"memory.so:copy_to_host"}, {"infer.py:14:<module>"});
  s.Run({"main cuStreamBeginCapture stream=1 mode=relaxed at=begin", "main cuLaunchKernel stream=1 +kernel",
         "main cuStreamIsCapturing stream=1 at=ask"});
  EXPECT_EQ(s.Diagnose().Find(GCAP_DOCTOR_FINDING_REFUSED), nullptr);  // it may go on
  s.Run("! end t=900");
  Diagnosis d = s.Diagnose();
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_REFUSED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_ERROR);
  EXPECT_EQ(d.Call(f), 3u);
  EXPECT_NE(d.Find(GCAP_DOCTOR_FINDING_LEFT_OPEN), nullptr);
}

// `os._exit` and signals leave no end in the file.
TEST(Refused, ProgramThatWentOnAndDidNotEndInOrder) {
  Script s;
  s.Place("begin", {"a:b"}, {"graphs.py:9:capture_begin"}).Place("copy", {"a:copy_"}, {"train.py:12:body"});
  s.Run({"main cuStreamBeginCapture stream=1 mode=global at=begin", "main cuLaunchKernel stream=1 +kernel",
         "main cuStreamIsCapturing stream=1 at=copy", "main cuStreamEndCapture stream=1 at=begin",
         "other cuThreadExchangeStreamCaptureMode mode=global"});
  Diagnosis died = s.Diagnose();
  ASSERT_NE(died.Find(GCAP_DOCTOR_FINDING_REFUSED), nullptr) << died.All();
  EXPECT_EQ(died.Find(GCAP_DOCTOR_FINDING_REFUSED)->severity, GCAP_DOCTOR_SEVERITY_NOTE);
  s.Run("main cuGraphInstantiateWithFlags graph=1 exec=1");
  Diagnosis lived = s.Diagnose();
  ASSERT_NE(lived.Find(GCAP_DOCTOR_FINDING_REFUSED), nullptr) << lived.All();
  EXPECT_EQ(lived.Find(GCAP_DOCTOR_FINDING_REFUSED)->severity, GCAP_DOCTOR_SEVERITY_ERROR);
}

// --- Exceptions ------------------------------------------------------------------------------------------------------

const char kLaterCalls[] = "main cuStreamGetCaptureInfo stream=1";

Script Raising() {
  Script s;
  s.Place("begin", {"a:b"}, {"graphs.py:9:capture_begin", "train.py:10:main"});
  s.Place("ask", {"libtorch_cuda.so:copy_"}, {"train.py:12:body", "train.py:10:main"});
  s.Place("raised", {}, {"train.py:12:body", "train.py:10:main"});
  s.Run({"main cuStreamBeginCapture stream=1 mode=global at=begin", "main cuLaunchKernel stream=1 +kernel"});
  return s;
}

// torch.cuda.graph ends the capture as the exception passes; nothing but the exception tells that work is missing.
TEST(Exception, ThatEndsACaptureIsTheFinding) {
  Diagnosis d = Raising()
                    .Run({"main cuStreamEndCapture stream=1 at=begin",
                          "! raise n=4 thread=1 type=ValueError text=no_such_layer stack=3 call=3", "! end t=900"})
                    .Diagnose();
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_EXCEPTION);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_ERROR);
  EXPECT_TRUE(f->is_certain);
  EXPECT_EQ(d.Call(f), 4u);
  EXPECT_EQ(f->capture, 0u);
  EXPECT_NE(std::string(f->sentence).find("ValueError left capture 1"), std::string::npos) << f->sentence;
  EXPECT_NE(std::string(f->sentence).find("no_such_layer"), std::string::npos) << f->sentence;
}

TEST(Exception, ThatNobodyCatchesComesBeforeTheOpenCapture) {
  Diagnosis d = Raising()
                    .Run({"main cuStreamIsCapturing stream=1 at=ask",
                          "! raise n=4 thread=1 type=RuntimeError text=refused stack=3", "! end t=900"})
                    .Diagnose();
  ASSERT_EQ(d->num_findings, 2u) << d.All();
  EXPECT_EQ(d->findings[0].kind, GCAP_DOCTOR_FINDING_EXCEPTION);
  EXPECT_TRUE(d->findings[0].is_certain);
  EXPECT_EQ(d.Rule(&d->findings[0]), "R38");
  EXPECT_EQ(d.Other(&d->findings[0]), 3u);
  EXPECT_NE(std::string(d->findings[0].sentence).find("Nobody ended"), std::string::npos) << d.All();
  EXPECT_EQ(d->findings[1].kind, GCAP_DOCTOR_FINDING_LEFT_OPEN);
}

TEST(Exception, ThatIsHandledInAnOpenCaptureIsProbable) {
  Script s = Raising();
  s.Run({kLaterCalls, "! raise n=4 thread=1 type=RuntimeError stack=3 call=3"});
  EXPECT_EQ(s.Diagnose().Find(GCAP_DOCTOR_FINDING_EXCEPTION), nullptr);  // the capture may go on
  Diagnosis d = s.Run("! end t=900").Diagnose();
  ASSERT_NE(d.Find(GCAP_DOCTOR_FINDING_EXCEPTION), nullptr) << d.All();
  EXPECT_FALSE(d.Find(GCAP_DOCTOR_FINDING_EXCEPTION)->is_certain);
  EXPECT_EQ(std::string(d.Find(GCAP_DOCTOR_FINDING_EXCEPTION)->sentence).find("Probably RuntimeError"), 0u);
}

TEST(Exception, ThatTheCaptureOutlivesIsNone) {
  const char* raise = "! raise n=4 thread=1 type=KeyError text=x stack=3 call=3";
  // Handled inside of a capture that ends without it.
  Diagnosis inside =
      Raising().Run({kLaterCalls, raise, "main cuStreamEndCapture stream=1 at=begin", "! end t=900"}).Diagnose();
  EXPECT_EQ(inside.NumSerious(), 0u) << inside.All();
  // The graph is launched: the program ends its captures so.
  Diagnosis launched =
      Raising()
          .Run({"main cuStreamEndCapture stream=1 at=begin", raise, "main cuGraphInstantiateWithFlags graph=1 exec=1",
                "! exec id=1 graph=1", "! replays exec=1 count=2", "! end t=900"})
          .Diagnose();
  EXPECT_EQ(launched.NumSerious(), 0u) << launched.All();
  // Another thread's.
  Diagnosis others = Raising()
                         .Run({"other cuThreadExchangeStreamCaptureMode mode=global",
                               "! raise n=4 thread=2 type=KeyError text=x stack=3", "! end t=900"})
                         .Diagnose();
  EXPECT_EQ(others.Find(GCAP_DOCTOR_FINDING_EXCEPTION), nullptr) << others.All();
}

// The exception repeats what the call answered.
TEST(Exception, OfACallThatBrokeTheCaptureIsNoFinding) {
  Diagnosis d = Raising()
                    .Run({"main cuStreamSynchronize stream=1 -> 900", "main cuStreamEndCapture stream=1 -> 901",
                          "! raise n=5 thread=1 type=RuntimeError text=x stack=3 call=4", "! end t=900"})
                    .Diagnose();
  EXPECT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d->findings[0].kind, GCAP_DOCTOR_FINDING_CULPRIT);
}

TEST(Refused, LaunchedGraphWasNotRefused) {
  EXPECT_EQ(Torch({"main cuStreamIsCapturing stream=1 at=seed"}, "2").Diagnose()->num_findings, 0u);
}

TEST(Refused, QuestionsOfBeginAndEndAndThoseBeforeWorkMeanNothing) {
  Diagnosis d = Torch({"main cuStreamIsCapturing stream=1 at=end"}, "0").Diagnose();
  EXPECT_EQ(d.Find(GCAP_DOCTOR_FINDING_REFUSED), nullptr) << d.All();
  EXPECT_NE(d.Find(GCAP_DOCTOR_FINDING_NEVER_LAUNCHED), nullptr);
  d = Torch({"main cuStreamIsCapturing stream=1 at=seed", "main cuLaunchKernel stream=1 +kernel"}, "0").Diagnose();
  EXPECT_EQ(d.Find(GCAP_DOCTOR_FINDING_REFUSED), nullptr) << d.All();
}

TEST(Refused, QuestionOfAPlainLibraryMeansNothing) {
  Diagnosis d = Torch({"main cuStreamIsCapturing stream=1 at=plain"}, "0").Diagnose();
  EXPECT_EQ(d.Find(GCAP_DOCTOR_FINDING_REFUSED), nullptr) << d.All();
  EXPECT_EQ(d.NumSerious(), 0u) << d.All();
}

TEST(Refused, FirstOperationIsNoEmptyGraph) {
  Script s;
  s.Place("begin", {"a:b"}, {"graphs.py:9:capture_begin"}).Place("copy", {"a:copy_"}, {"train.py:12:body"});
  s.Run({"main cuStreamBeginCapture stream=1 mode=global at=begin", "main cuStreamIsCapturing stream=1 at=copy",
         "main cuStreamEndCapture stream=1 at=begin", "! end t=900"});
  Diagnosis d = s.Diagnose();
  EXPECT_NE(d.Find(GCAP_DOCTOR_FINDING_REFUSED), nullptr) << d.All();
  EXPECT_EQ(d.Find(GCAP_DOCTOR_FINDING_EMPTY_GRAPH), nullptr) << d.All();
}

// --- Memory ----------------------------------------------------------------------------------------------------------

TEST(Pageable, CopyFromPageableMemory) {
  Diagnosis d = Captured({"main cuMemcpyHtoDAsync stream=1 bytes=4096 copy=htod host=pageable +memcpy"});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_PAGEABLE);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_WARNING);
  EXPECT_EQ(d.Rule(f), "R38");
  EXPECT_EQ(d.Call(f), 3u);
}

TEST(Pageable, MemoryOfAStackIsCalledSo) {
  Diagnosis d = Captured({"main cuMemcpyDtoHAsync stream=1 host=stack +memcpy"});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_PAGEABLE);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d.Call(f), 3u);
}

TEST(Pageable, PinnedMemoryAndCopiesOfOthersAreFine) {
  Diagnosis d = Captured(
      {"main cuMemcpyHtoDAsync stream=1 host=pinned +memcpy", "other cuMemcpyHtoDAsync stream=3 host=pageable"});
  EXPECT_EQ(d->num_findings, 0u) << d.All();
}

TEST(AllocationNode, WithoutAFree) {
  Script s;
  s.Run({"main cuStreamBeginCapture stream=1 mode=global", "main cuMemAllocAsync stream=1 bytes=64 +alloc",
         "main cuMemAllocAsync stream=1 bytes=64 +alloc", "main cuMemFreeAsync stream=1 +free",
         "main cuStreamEndCapture stream=1", "! exec id=1 graph=1", "! replays exec=1 count=1"});
  Diagnosis d = s.Diagnose();
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_ALLOCATION_NODE);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_WARNING);
  EXPECT_EQ(d.Rule(f), "R29");
  EXPECT_EQ(f->count, 1u);
  EXPECT_EQ(d.Call(f), 2u);
}

TEST(AllocationNode, FreedInTheGraphOrOnLaunch) {
  EXPECT_EQ(Captured({"main cuMemAllocAsync stream=1 +alloc", "main cuMemFreeAsync stream=1 +free"})->num_findings, 0u);
  // Five good launches: the executable frees by itself.
  EXPECT_EQ(Captured({"main cuMemAllocAsync stream=1 +alloc"}).NumSerious(), 0u);
}

TEST(AllocationNode, WorkspaceOfALibrary) {
  Script s;
  s.Place("gemm", {"libcuda.so.1:cuMemAllocAsync", "libcublas.so.13:cublasSgemm_v2", "app:main"});
  s.Run({"main cuStreamBeginCapture stream=1 mode=global", "main cuMemAllocAsync stream=1 at=gemm +alloc",
         "main cuStreamEndCapture stream=1"});
  EXPECT_EQ(Diagnosis(s.text()).Rule(s.Diagnose().Find(GCAP_DOCTOR_FINDING_ALLOCATION_NODE)), "R44");
}

// --- Nothing ---------------------------------------------------------------------------------------------------------

// PyTorch's trees of graphs keep a pool of memory so.
TEST(EmptyGraph, ThatNobodyLaunchesMayBeMeant) {
  Diagnosis d = Diagnose({"main cuStreamBeginCapture stream=1 mode=global", "main cuStreamEndCapture stream=1",
                          "! exec id=1 graph=1", "! end t=900"});
  EXPECT_EQ(d.NumSerious(), 0u) << d.All();
  ASSERT_NE(d.Find(GCAP_DOCTOR_FINDING_EMPTY_GRAPH), nullptr) << d.All();
}

TEST(EmptyGraph, WithoutANode) {
  Diagnosis d = Diagnose({"main cuStreamBeginCapture stream=1 mode=global", "main cuStreamEndCapture stream=1",
                          "! exec id=1 graph=1", "! replays exec=1 count=2"});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_EMPTY_GRAPH);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d->num_findings, 1u);
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_WARNING);
  EXPECT_EQ(d.Rule(f), "R8");
  EXPECT_EQ(d.Call(f), 1u);
}

TEST(EmptyGraph, WorkThatEscapedIsNamedFirst) {
  Diagnosis d = Diagnose({"main cuStreamBeginCapture stream=1 mode=global", "main cuLaunchKernel stream=2",
                          "main cuStreamEndCapture stream=1"});
  ASSERT_EQ(d->num_findings, 2u) << d.All();
  EXPECT_EQ(d->findings[0].kind, GCAP_DOCTOR_FINDING_ESCAPED);
  EXPECT_EQ(d->findings[1].kind, GCAP_DOCTOR_FINDING_EMPTY_GRAPH);
}

TEST(EmptyGraph, RecordingWithoutNodesDoesNotMakeGraphsEmpty) {
  Diagnosis d = Diagnose({"main cuStreamBeginCapture stream=1 mode=global", "main cuLaunchKernel stream=1",
                          "main cuStreamEndCapture stream=1", "! exec id=1 graph=1", "! replays exec=1 count=2"});
  EXPECT_EQ(d->num_findings, 0u) << d.All();
}

TEST(LeftOpen, CaptureWithoutAnEnd) {
  Diagnosis d = Diagnose(
      {"main cuStreamBeginCapture stream=1 mode=global", "main cuLaunchKernel stream=1 +kernel", "! end t=900"});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_LEFT_OPEN);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_ERROR);
  EXPECT_EQ(d.Rule(f), "R7");
  EXPECT_EQ(d.Call(f), 1u);
}

TEST(LeftOpen, ProgramThatDied) {
  Diagnosis d = Diagnose({"main cuStreamBeginCapture stream=1 mode=global"});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_LEFT_OPEN);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_WARNING);
}

// A recorder that reached its limit stops writing, and may have missed the end.
TEST(LeftOpen, RecordingThatReachedItsLimit) {
  Script s;
  s.Run({"main cuStreamBeginCapture stream=1 mode=global", "main cuLaunchKernel stream=1 +kernel",
         "! note text=the%20limit%20of%2064%20MiB%20was%20reached", "! end t=900"});
  Diagnosis d = s.Diagnose();
  ASSERT_EQ(d.recording()->num_notes, 1u);
  EXPECT_EQ(d->num_findings, 0u) << d.All();
  s.Run({"main cuStreamBeginCapture stream=2 mode=global", "main cuStreamSynchronize stream=2 -> 900"});
  EXPECT_NE(s.Diagnose().Find(GCAP_DOCTOR_FINDING_CULPRIT), nullptr);  // what broke a capture is still told
}

// The sentence is the writer's, with the place of the call.
TEST(Differs, IsTheFindingAsItWasWritten) {
  Script s;
  s.Place("step", {"app:step"});
  s.Run({"main cuLaunchKernel at=step", "main cuLaunchKernel", "! difference call=1 fault=stale_pointer text=wrong",
         "! difference text=another"});
  Diagnosis d = s.Diagnose();
  ASSERT_EQ(d->num_findings, 2u) << d.All();
  const gcap_doctor_finding_t* f = &d->findings[0];
  EXPECT_EQ(f->kind, GCAP_DOCTOR_FINDING_DIFFERS);
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_ERROR);
  EXPECT_EQ(d.Call(f), 1u);
  EXPECT_STREQ(f->sentence, "wrong");
  EXPECT_STREQ(d->findings[1].sentence, "another");
  EXPECT_EQ(d->findings[1].call, GCAP_DOCTOR_NONE);
  EXPECT_STRNE(f->remedy, d->findings[1].remedy);
}

// A line without its sentence is counted, and is no finding.
TEST(Differs, NeedsASentence) {
  Diagnosis d = Diagnose({"main cuLaunchKernel", "! difference call=1 fault=hole"});
  EXPECT_EQ(d->num_findings, 0u) << d.All();
  EXPECT_EQ(d.recording()->damage.lines, 1u);
}

TEST(Differs, EachFaultHasARemedy) {
  std::set<std::string> remedies;
  for (const char* fault : {"stale_pointer", "frozen_value", "dropped_call", "missing_join", "outside_of_capture",
                            "hole", "uninitialized", "host_decision", "unknown"}) {
    Diagnosis d = Diagnose({"main cuLaunchKernel", std::string("! difference call=1 text=differs fault=") + fault});
    ASSERT_EQ(d->num_findings, 1u) << d.All();
    remedies.insert(d->findings[0].remedy);
  }
  EXPECT_EQ(remedies.size(), 9u);
}

TEST(Differs, AWritersRemedyGoesBeforeThatOfTheFault) {
  Diagnosis d = Diagnose({"main cuLaunchKernel", "! difference call=1 text=differs fault=hole remedy=mend"});
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_STREQ(d->findings[0].remedy, "mend");
}

TEST(ModeKept, RelaxedModeThatNobodyTookBack) {
  Diagnosis d = Diagnose({"main cuThreadExchangeStreamCaptureMode mode=relaxed", "! end t=900"});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_MODE_KEPT);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_WARNING);
  EXPECT_EQ(d.Rule(f), "R60");
  EXPECT_EQ(d.Call(f), 1u);
}

TEST(ModeKept, PairsAndThreadLocalModeAreFine) {
  Diagnosis d = Diagnose({"main cuThreadExchangeStreamCaptureMode mode=relaxed",
                          "main cuThreadExchangeStreamCaptureMode mode=global",
                          "pool cuThreadExchangeStreamCaptureMode mode=thread_local",
                          "pool cuThreadExchangeStreamCaptureMode mode=relaxed -> 1", "! end t=900"});
  EXPECT_EQ(d->num_findings, 0u) << d.All();
  EXPECT_EQ(Diagnose({"main cuThreadExchangeStreamCaptureMode mode=relaxed"})->num_findings, 0u);  // it died in between
}

}  // namespace
