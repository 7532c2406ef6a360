// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Recordings with a diagnosis made by hand.
#include "test/doctor/report/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/report/report.h"

namespace gcap_test {

const char kFirstLine[] = "gcap-events\tversion=1\tpid=7\ttime=1700000000\tprogram=python serve.py\n";

Sample::Sample(std::string events) {
  FILE* file = fmemopen(&events[0], events.size(), "r");
  recording_ = gcap_doctor_recording_read(file, "test");
  fclose(file);
  gcap_doctor_heap_init(&diagnosis_.heap);
  diagnosis_.recording = recording_;
}

Sample::~Sample() {
  gcap_doctor_heap_deinit(&diagnosis_.heap);
  gcap_doctor_recording_destroy(recording_);
}

gcap_doctor_captured_t& Sample::AddCapture() {
  gcap_doctor_captured_t capture = {};
  capture.begin = capture.end = capture.stream = capture.thread = GCAP_DOCTOR_NONE;
  capture.graph = capture.exec = capture.culprit = GCAP_DOCTOR_NONE;
  captures_.push_back(capture);
  return captures_.back();
}

gcap_doctor_finding_t& Sample::AddFinding(gcap_doctor_finding_kind_t kind, gcap_doctor_severity_t severity,
                                          std::string sentence) {
  gcap_doctor_finding_t finding = {};
  finding.kind = kind;
  finding.severity = severity;
  finding.capture = finding.call = finding.other = GCAP_DOCTOR_NONE;
  finding.is_certain = true;
  finding.count = 1;
  finding.sentence = gcap_doctor_heap_copy(&diagnosis_.heap, sentence.data(), sentence.size());
  findings_.push_back(finding);
  return findings_.back();
}

uint32_t Sample::Call(uint64_t number) const {
  for (size_t i = 0; i < recording_->num_calls; ++i) {
    if (recording_->calls[i].number == number) return static_cast<uint32_t>(i);
  }
  fprintf(stderr, "the sample has no call %llu\n", static_cast<unsigned long long>(number));
  abort();
}

const gcap_doctor_diagnosis_t* Sample::diagnosis() {
  // All calls are of the first capture.
  capture_of_.assign(recording_->num_calls, captures_.empty() ? GCAP_DOCTOR_NONE : 0);
  diagnosis_.capture_of = capture_of_.data();
  diagnosis_.captures = captures_.data();
  diagnosis_.num_captures = captures_.size();
  diagnosis_.findings = findings_.data();
  diagnosis_.num_findings = findings_.size();
  return &diagnosis_;
}

namespace {

struct Stream {
  char* text = nullptr;
  size_t bytes = 0;
  FILE* file = open_memstream(&text, &bytes);
  std::string Close() {
    fclose(file);
    std::string all(text, bytes);
    free(text);
    return all;
  }
};

}  // namespace

std::string Written(void (*report)(FILE*, const gcap_doctor_diagnosis_t*), Sample& sample) {
  Stream stream;
  report(stream.file, sample.diagnosis());
  return stream.Close();
}

std::string Text(Sample& sample, bool colour) {
  Stream stream;
  gcap_doctor_report_text(stream.file, sample.diagnosis(), colour);
  return stream.Close();
}

// --- Samples ---------------------------------------------------------------------------------------------------------

namespace {

const char kBroken[] =
    "system\tdriver=13000\tcupti=130000\n"
    "thread\tid=1\tos=4711\tname=python3\n"
    "thread\tid=2\tos=4712\tname=loader\n"
    "stream\tid=1\twhat=nonblocking\n"
    "stream\tid=2\twhat=nonblocking\n"
    "frame\tid=1\tmodule=/usr/lib/x86_64-linux-gnu/libcuda.so.1\toffset=0x2a41f0\tfunction=cuStreamSynchronize\n"
    "frame\tid=2\tmodule=/opt/venv/nvidia/libcudart.so.13\toffset=0x71a30\tfunction=cudaStreamSynchronize\n"
    "frame\tid=3\tmodule=/opt/venv/torch/lib/libtorch_cuda.so\toffset=0x1f3a771"
    "\tfunction=_ZN2at6native24_local_scalar_dense_cudaERKNS_6TensorE\n"
    "frame\tid=4\tmodule=/opt/venv/torch/lib/libtorch_cpu.so\toffset=0x22"
    "\tfunction=_ZN2at4_ops19_local_scalar_dense4callERKNS_6TensorE\n"
    "frame\tid=5\tmodule=/opt/venv/torch/lib/libtorch_cuda.so\toffset=0x99"
    "\tfunction=_ZN2at6native17gpu_kernel_nocastERNS_18TensorIteratorBaseE\n"
    "pyframe\tid=6\tfile=/opt/venv/lib/python3.11/site-packages/torch/_tensor.py\tline=99\tfunction=item\n"
    "pyframe\tid=7\tfile=serve.py\tline=12\tfunction=body\n"
    "pyframe\tid=8\tfile=serve.py\tline=41\tfunction=main\n"
    "pyframe\tid=9\tfile=serve.py\tline=10\tfunction=body\n"
    "pyframe\tid=10\tfile=loader.py\tline=5\tfunction=load\n"
    "frame\tid=11\tmodule=/app/loader.so\toffset=0x77\tfunction=load_weights\n"
    "stack\tid=1\tc=1,2,3,4\tpy=6,7,8\n"
    "stack\tid=2\tc=1,2,4\tpy=8\n"
    "stack\tid=3\tc=1,2,5,4\tpy=9,8\n"
    "stack\tid=4\tc=11\tpy=10\n"
    "call\tn=1\tt=1000000\tend=1010000\tthread=1\tfunction=cuStreamBeginCapture\tresult=0\tstream=1\tmode=global"
    "\tstack=2\n"
    "node\tgraph=1\tid=0x100000000\ttype=kernel\tcall=2\n"
    "call\tn=2\tt=1020000\tend=1040000\tthread=1\tfunction=cuLaunchKernel\tresult=0\tstream=1\tstack=3"
    "\tkernel=_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_21CUDAFunctorOnSelf_addIfEESt5arrayIPcLm2EEEEviT0_"
    "T1_\n"
    "node\tgraph=1\tid=0x100000001\ttype=kernel\tcall=3\n"
    "edge\tgraph=1\tfrom=0x100000000\tto=0x100000001\n"
    "call\tn=3\tt=1050000\tend=1070000\tthread=1\tfunction=cuLaunchKernel\tresult=0\tstream=2\tstack=3\tkernel=scale\n"
    "call\tn=5\tt=1085000\tend=1088000\tthread=2\tfunction=cuMemAlloc\tresult=901\tbytes=4096\tstack=4\n"
    "call\tn=4\tt=1080000\tend=1090000\tthread=1\tfunction=cuStreamSynchronize\tresult=900\tstream=1\tstack=1\n"
    "call\tn=6\tt=1200000\tend=1220000\tthread=1\tfunction=cuStreamEndCapture\tresult=901\tstream=1\tstack=2\n";

void DiagnoseBroken(Sample* sample) {
  gcap_doctor_captured_t& capture = sample->AddCapture();
  capture.begin = sample->Call(1);
  capture.end = sample->Call(6);
  capture.stream = 0;
  capture.thread = 0;
  capture.mode = GCAP_DOCTOR_MODE_GLOBAL;
  capture.outcome = GCAP_DOCTOR_OUTCOME_BROKEN;
  capture.result = 901;
  capture.num_nodes = 2;
  capture.culprit = sample->Call(4);
  gcap_doctor_finding_t& culprit =
      sample->AddFinding(GCAP_DOCTOR_FINDING_CULPRIT, GCAP_DOCTOR_SEVERITY_ERROR,
                         "cudaStreamSynchronize on stream 1, which captures, by thread 'python3' broke the capture.");
  culprit.rule = gcap_rule_by_id("R11");
  culprit.capture = 0;
  culprit.call = sample->Call(4);
  culprit.other = sample->Call(1);
  culprit.remedy = "read the value after the replay, or keep it on the device";
  gcap_doctor_finding_t& lost =
      sample->AddFinding(GCAP_DOCTOR_FINDING_LOST_CALL, GCAP_DOCTOR_SEVERITY_WARNING,
                         "cudaMalloc of 4096 bytes by thread 'loader' answered 901 while capture 1 was open.");
  lost.rule = gcap_rule_by_id("R26");
  lost.capture = 0;
  lost.call = sample->Call(5);
  lost.count = 3;
}

}  // namespace

Sample* MakeBroken() {
  Sample* sample = new Sample(std::string(kFirstLine) + kBroken + "end\tt=1300000\n");
  DiagnoseBroken(sample);
  return sample;
}

Sample* MakeMany(unsigned findings) {
  std::string notes = "note\ttext=first note\nnote\ttext=second note\nnote\ttext=third note\ncall\tn=9\n";
  Sample* sample = new Sample(std::string(kFirstLine) + kBroken + notes);
  DiagnoseBroken(sample);
  for (unsigned i = 0; i < findings; ++i) {
    sample->AddFinding(GCAP_DOCTOR_FINDING_PAGEABLE, GCAP_DOCTOR_SEVERITY_WARNING,
                       "finding number " + std::to_string(i));
  }
  return sample;
}

namespace {

const char kHealthy[] =
    "thread\tid=1\tos=50\tname=app\n"
    "stream\tid=1\twhat=blocking\n"
    "frame\tid=1\tmodule=/app/lib/app.so\toffset=0x10\tfunction=run_model\n"
    "pyframe\tid=2\tfile=app.py\tline=20\tfunction=forward\n"
    "pyframe\tid=3\tfile=app.py\tline=30\tfunction=head\n"
    "stack\tid=1\tc=1\tpy=2\n"
    "stack\tid=2\tc=1\tpy=3\n"
    "call\tn=1\tt=100\tend=200\tthread=1\tfunction=cuStreamBeginCapture\tresult=0\tstream=1\tmode=relaxed\tstack=1\n"
    "node\tgraph=1\tid=0x100000000\ttype=memcpy\tcall=2\n"
    "call\tn=2\tt=300\tend=400\tthread=1\tfunction=cuMemcpyHtoDAsync\tresult=0\tstream=1\tcopy=htod\tbytes=64"
    "\thost=pinned\tstack=1\n"
    "node\tgraph=1\tid=0x100000001\ttype=kernel\tcall=3\n"
    "edge\tgraph=1\tfrom=0x100000000\tto=0x100000001\n"
    "call\tn=3\tt=500\tend=600\tthread=1\tfunction=cuLaunchKernel\tresult=0\tstream=1\tkernel=_Z4axpyfPf\tstack=1\n"
    "node\tgraph=1\tid=0x100000002\ttype=kernel\tcall=4\n"
    "edge\tgraph=1\tfrom=0x100000000\tto=0x100000002\n"
    "call\tn=4\tt=700\tend=800\tthread=1\tfunction=cuLaunchKernel\tresult=0\tstream=1\tkernel=_Z4axpyfPf\tstack=2\n"
    "node\tgraph=1\tid=0x100000003\ttype=kernel\tcall=5\n"
    "edge\tgraph=1\tfrom=0x100000001\tto=0x100000003\n"
    "edge\tgraph=1\tfrom=0x100000002\tto=0x100000003\n"
    "call\tn=5\tt=900\tend=1000\tthread=1\tfunction=cuLaunchKernel\tresult=0\tstream=1\tkernel=sum\tstack=2\n"
    "call\tn=6\tt=1100\tend=1200\tthread=1\tfunction=cuStreamEndCapture\tresult=0\tstream=1\tgraph=1\tstack=1\n"
    "exec\tid=1\tgraph=1\n"
    "clone\texec=1\tfrom=0x100000000\tto=0x200000000\n"
    "clone\texec=1\tfrom=0x100000001\tto=0x200000001\n"
    "clone\texec=1\tfrom=0x100000002\tto=0x200000002\n"
    "clone\texec=1\tfrom=0x100000003\tto=0x200000003\n"
    "replays\texec=1\tcount=1000\n"
    "time\texec=1\tnode=0x200000000\tcount=1000\tns=1000000\n"
    "time\texec=1\tnode=0x200000001\tcount=1000\tns=2000000\n"
    "time\texec=1\tnode=0x200000002\tcount=500\tns=1000000\n"
    "time\texec=1\tnode=0x200000002\tcount=500\tns=2000000\n"
    "time\texec=1\tnode=0x200000003\tcount=1000\tns=4000000\n"
    "time\texec=1\tnode=0x299999999\tcount=1\tns=77\n"
    "whole\texec=1\tcount=1000\tns=9000000\n"
    "end\tt=5000\n";

Sample* Healthy(const std::string& events) {
  Sample* sample = new Sample(std::string(kFirstLine) + events);
  gcap_doctor_captured_t& capture = sample->AddCapture();
  capture.begin = sample->Call(1);
  capture.end = sample->Call(6);
  capture.stream = capture.thread = 0;
  capture.mode = GCAP_DOCTOR_MODE_RELAXED;
  capture.outcome = GCAP_DOCTOR_OUTCOME_GRAPH;
  capture.graph = capture.exec = 1;
  capture.num_nodes = 4;
  capture.replays = 1000;
  return sample;
}

// A call's fields, and others behind them.
void Append(std::string* events, const std::string& call, const std::string& fields) {
  const size_t at = events->find("call\tn=" + call);
  events->insert(events->find('\n', at), fields);
}

}  // namespace

Sample* MakeHealthy() { return Healthy(kHealthy); }

Sample* MakeLabelled(unsigned whole_ns) {
  std::string events = kHealthy;
  Append(&events, "3", "\trange=2");
  Append(&events, "4", "\trange=1");
  Append(&events, "5", "\trange=1");
  const std::string whole = "whole\texec=1\tcount=1000\tns=9000000\n";
  events.replace(events.find(whole), whole.size(),
                 "whole\texec=1\tcount=1000\tns=" + std::to_string(1000 * whole_ns) + "\n");
  return Healthy("range\tid=1\ttext=step\nrange\tid=2\ttext=attention\tin=1\n" + events);
}

Sample* MakeHostile() {
  const std::string script = "</title></style></script><script>document.title='injected'</script><img src=x onerror=x>";
  const std::string broken = "\x1b[31m\xff\xc3\x28\xed\xa0\x80\xf0\x9f\x98\x80\x01\xe2\x80\xae&lt;\"'";
  std::string events = std::string(kFirstLine);
  events += "thread\tid=1\tos=50\tname=" + script + broken + "\n";
  events += "stream\tid=1\twhat=" + script + "\n";
  events += "frame\tid=1\tmodule=/app/" + script + "\toffset=0x10\tfunction=" + script + broken + "\n";
  events += "pyframe\tid=2\tfile=" + script + broken + "\\n.py\tline=20\tfunction=" + script + "\n";
  events += "stack\tid=1\tc=1\tpy=2\n";
  events += "call\tn=1\tt=100\tend=200\tthread=1\tfunction=" + script + "\tresult=0\tstream=1\tstack=1\n";
  events += "node\tgraph=1\tid=0x1\ttype=kernel\tcall=2\n";
  events += "call\tn=2\tt=300\tend=400\tthread=1\tfunction=" + script + broken +
            "\tresult=718\tstream=1\tstack=1\tkernel=" + script + broken + "\n";
  events += "node\tgraph=1\tid=0x2\ttype=" + script + "\tcall=2\n";
  events += "edge\tgraph=1\tfrom=0x1\tto=0x2\n";
  events += "call\tn=3\tt=500\tend=600\tthread=1\tfunction=" + script +
            "\tresult=900\tstream=1\tstack=1\tkernel=" + script + broken + "\n";
  events += "note\ttext=" + script + broken + "\n";
  Sample* sample = new Sample(events);
  gcap_doctor_captured_t& capture = sample->AddCapture();
  capture.begin = sample->Call(1);
  capture.stream = capture.thread = 0;
  capture.graph = 1;
  capture.culprit = sample->Call(3);
  gcap_doctor_finding_t& finding =
      sample->AddFinding(GCAP_DOCTOR_FINDING_CULPRIT, GCAP_DOCTOR_SEVERITY_ERROR, script + broken);
  finding.call = sample->Call(3);
  finding.capture = 0;
  finding.remedy = "take <b>less</b> & more";
  sample->AddFinding(GCAP_DOCTOR_FINDING_ESCAPED, GCAP_DOCTOR_SEVERITY_WARNING, broken + script).call = sample->Call(3);
  return sample;
}

namespace {

const char* const kKernels[] = {
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_21CUDAFunctorOnSelf_addIfEESt5arrayIPcLm2EEEEviT0_T1_",
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_16gelu_kernel_cudaIfEESt5arrayIPcLm2EEEEviT0_T1_",
    "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfZNS0_11sum_functorIfffEclERNS_14"
    "TensorIteratorEEUlffE_EEjfLi4ELi4EEEEEvT1_",
    "cutlass_80_tensorop_s1688gemm_128x128_16x4_tn_align4",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_execute_segment_k_off_kernel",
    "_ZN2at6native40_GLOBAL__N__0f1a8107_8_Shape_cu_49f7391c26CatArrayBatchedCopy_contigINS1_10OpaqueTypeILj4EEEjLi1E"
    "Li128ELi1EEEvPT_NS1_25CatArrInputTensorMetadataIS5_T0_XT2_EXT3_EEENS1_16TensorSizeStrideIS8_Lj4EEEiS8_",
    "triton_poi_fused_add_mul_0",
};

std::string Format(const char* format, unsigned long long a, unsigned long long b = 0, unsigned long long c = 0) {
  char text[512];
  snprintf(text, sizeof(text), format, a, b, c);
  return text;
}

// Node i is on stream i % 3; each depends on the one before on its stream, and every twelfth joins all three.
void AddLargeNode(std::string* events, unsigned i) {
  const unsigned long long graph = 0x100000000ull, clone = 0x200000000ull;
  *events += Format("node\tgraph=1\tid=0x%llx\ttype=kernel\tcall=%llu\n", graph + i, i + 2);
  if (i >= 3) *events += Format("edge\tgraph=1\tfrom=0x%llx\tto=0x%llx\n", graph + i - 3, graph + i);
  if (i >= 12 && i % 12 == 0) {
    *events += Format("edge\tgraph=1\tfrom=0x%llx\tto=0x%llx\n", graph + i - 1, graph + i);
    *events += Format("edge\tgraph=1\tfrom=0x%llx\tto=0x%llx\n", graph + i - 2, graph + i);
  }
  *events += Format("call\tn=%llu\tt=%llu\tend=%llu\tthread=1\tfunction=cuLaunchKernel\tresult=0", i + 2,
                    10000 + 9000ull * i, 15000 + 9000ull * i);
  *events += Format("\tstream=%llu\tstack=%llu\tkernel=", i % 3 + 1, i % 40 + 1) + kKernels[i % 7] + "\n";
  *events += Format("clone\texec=1\tfrom=0x%llx\tto=0x%llx\n", graph + i, clone + i);
  *events += Format("time\texec=1\tnode=0x%llx\tcount=500\tns=%llu\n", clone + i, 500ull * (1000 + 700 * (i % 11)));
}

}  // namespace

Sample* MakeLarge(unsigned nodes) {
  std::string events = std::string(kFirstLine) + "thread\tid=1\tos=50\tname=python3\n";
  for (int i = 1; i <= 3; ++i) events += Format("stream\tid=%llu\twhat=nonblocking\n", i);
  for (unsigned i = 0; i < 40; ++i) {
    events += Format("frame\tid=%llu\tmodule=/opt/venv/torch/lib/libtorch_cuda.so\toffset=0x%llx\t", 3 * i + 1, i);
    events += Format("function=_ZN2at6native11launch_op%02lluEv\n", i % 15);
    events += Format("pyframe\tid=%llu\tfile=model.py\tline=%llu\tfunction=forward\n", 3 * i + 2, 100 + i / 2);
    events += Format("pyframe\tid=%llu\tfile=serve.py\tline=%llu\tfunction=main\n", 3 * i + 3, 7);
    events += Format("stack\tid=%llu\tc=%llu\t", i + 1, 3 * i + 1) + Format("py=%llu,%llu\n", 3 * i + 2, 3 * i + 3);
  }
  events += "call\tn=1\tt=1000\tend=2000\tthread=1\tfunction=cuStreamBeginCapture\tresult=0\tstream=1\tstack=1\n";
  events += "exec\tid=1\tgraph=1\n";
  for (unsigned i = 0; i < nodes; ++i) AddLargeNode(&events, i);
  events += Format("call\tn=%llu\tt=%llu\tend=%llu", nodes + 2, 20000 + 9000ull * nodes, 30000 + 9000ull * nodes);
  events += "\tthread=1\tfunction=cuStreamEndCapture\tresult=0\tstream=1\tgraph=1\tstack=1\n";
  events += "replays\texec=1\tcount=500\nend\tt=99999999\n";
  Sample* sample = new Sample(events);
  gcap_doctor_captured_t& capture = sample->AddCapture();
  capture.begin = sample->Call(1);
  capture.end = sample->Call(nodes + 2);
  capture.stream = capture.thread = 0;
  capture.mode = GCAP_DOCTOR_MODE_GLOBAL;
  capture.outcome = GCAP_DOCTOR_OUTCOME_GRAPH;
  capture.graph = capture.exec = 1;
  capture.num_nodes = nodes;
  capture.replays = 500;
  return sample;
}

Sample* MakeByName(const std::string& name) {
  if (name == "broken") return MakeBroken();
  if (name == "healthy") return MakeHealthy();
  if (name == "labelled") return MakeLabelled(12000);
  if (name == "hostile") return MakeHostile();
  if (name == "many") return MakeMany(50);
  if (name == "large") return MakeLarge(1000);
  if (name == "small") return MakeLarge(60);
  if (name == "empty") return new Sample(std::string(kFirstLine) + "note\ttext=no CUPTI was found\n");
  return nullptr;
}

}  // namespace gcap_test
