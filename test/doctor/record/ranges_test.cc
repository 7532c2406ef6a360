// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The ranges of NVTX, by an NVTX of the test's own: the tables in which a tool puts its functions.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <wchar.h>

#include <thread>

#include "doctor/record/nvtx_abi.h"
#include "test/doctor/record/program.h"

namespace {

void* const kStream = Handle(0x1000);
void* const kGraph = Handle(0x3000);

// A library's NVTX. Places begin at 1.
struct Nvtx {
  gcap_doctor_nvtx_function_t core[16] = {}, core2[16] = {};
  gcap_doctor_nvtx_function_t* core_places[16] = {};
  gcap_doctor_nvtx_function_t* core2_places[16] = {};
};
Nvtx* current;

int TableOf(int module, gcap_doctor_nvtx_function_t*** out_table, unsigned* out_size) {
  if (module != GCAP_DOCTOR_NVTX_CORE && module != GCAP_DOCTOR_NVTX_CORE2) return 0;
  *out_table = module == GCAP_DOCTOR_NVTX_CORE ? current->core_places : current->core2_places;
  *out_size = 16;
  return 1;
}

const void* ExportTable(uint32_t table) {
  static const gcap_doctor_nvtx_callbacks_t callbacks = {sizeof(callbacks), TableOf};
  return table == GCAP_DOCTOR_NVTX_CALLBACKS ? &callbacks : nullptr;
}

void Initialize(Nvtx* nvtx) {
  for (int i = 1; i < 16; ++i) {
    nvtx->core_places[i] = &nvtx->core[i];
    nvtx->core2_places[i] = &nvtx->core2[i];
  }
  current = nvtx;
  void* recorder = dlopen(RecorderPath().c_str(), RTLD_NOW);
  auto initialize =
      reinterpret_cast<int (*)(gcap_doctor_nvtx_get_table_t)>(dlsym(recorder, "InitializeInjectionNvtx2"));
  IN_PROGRAM(initialize != nullptr && initialize(ExportTable) == 1);
}

template <typename Function>
Function At(gcap_doctor_nvtx_function_t function) {
  IN_PROGRAM(function != nullptr);
  return reinterpret_cast<Function>(function);
}

int Push(const Nvtx& nvtx, const char* text) {
  return At<int (*)(const char*)>(nvtx.core[GCAP_DOCTOR_NVTX_PUSH_A])(text);
}
int Pop(const Nvtx& nvtx) { return At<int (*)()>(nvtx.core[GCAP_DOCTOR_NVTX_POP])(); }

void Query() { fake.call(125, "cuStreamQuery", &kStream, 0); }

// "outer > inner" of the calls of cuStreamQuery.
std::vector<std::string> Labels(const Recorded& recorded) {
  std::vector<std::string> labels;
  for (const gcap_doctor_event_call_t* call : recorded.Calls("cuStreamQuery")) {
    std::string label;
    for (uint32_t range = call->range; range != GCAP_DOCTOR_NONE; range = recorded.events->ranges[range].outer) {
      label = recorded.events->ranges[range].text + (label.empty() ? "" : " > " + label);
    }
    labels.push_back(label);
  }
  return labels;
}

using Texts = std::vector<std::string>;

TEST(RecordedRange, LabelsTheCallsInIt) {
  Recorded recorded = Record([] {
    Nvtx nvtx, other;  // of two libraries
    Initialize(&nvtx);
    Initialize(&other);
    IN_PROGRAM(Push(nvtx, "step") == 0);  // before the capture
    Begin(kStream);
    for (int i = 0; i < 2; ++i) {
      Query();
      IN_PROGRAM(Push(other, "attention") == 1);
      Query();
      IN_PROGRAM(Pop(nvtx) == 1);
    }
    IN_PROGRAM(Pop(nvtx) == 0);
    IN_PROGRAM(Pop(nvtx) < 0);  // one too many
    Query();
    End(kStream, kGraph);
  });
  EXPECT_EQ(Labels(recorded), (Texts{"step", "step > attention", "step", "step > attention", ""}));
  EXPECT_EQ(recorded.events->num_ranges, 2u);  // a range is written once
}

TEST(RecordedRange, HasAnyKindOfText) {
  Recorded recorded = Record([] {
    Nvtx nvtx;
    Initialize(&nvtx);
    const auto push = At<int (*)(const void*)>(nvtx.core[GCAP_DOCTOR_NVTX_PUSH_EX]);
    const auto push_wide = At<int (*)(const wchar_t*)>(nvtx.core[GCAP_DOCTOR_NVTX_PUSH_W]);
    const auto add = At<const void* (*)(const void*, const char*)>(nvtx.core2[GCAP_DOCTOR_NVTX_REGISTER_A]);
    const auto add_wide = At<const void* (*)(const void*, const wchar_t*)>(nvtx.core2[GCAP_DOCTOR_NVTX_REGISTER_W]);
    EXPECT_EQ(add(nullptr, "registered"), add(nullptr, "registered"));
    EXPECT_NE(add(nullptr, "registered"), add(nullptr, "another"));
    Begin(kStream);
    const struct {
      int32_t type;
      const void* message;
    } messages[] = {{GCAP_DOCTOR_NVTX_MESSAGE_A, "bytes"},
                    {GCAP_DOCTOR_NVTX_MESSAGE_W, L"\x00e9\x20ac\x1f600"},
                    {GCAP_DOCTOR_NVTX_MESSAGE_REGISTERED, add(nullptr, "registered")},
                    {GCAP_DOCTOR_NVTX_MESSAGE_REGISTERED, add_wide(nullptr, L"wide")},
                    {0, nullptr}};
    for (const auto& message : messages) {
      gcap_doctor_nvtx_attributes_t attributes = {};
      attributes.message_type = message.type;
      attributes.message = message.message;
      push(&attributes);
      Query();
      Pop(nvtx);
    }
    push_wide(L"pushed");
    Query();
    Pop(nvtx);
    Push(nvtx, std::string(1000, 'x').c_str());
    Query();
    Pop(nvtx);
    End(kStream, kGraph);
  });
  EXPECT_EQ(Labels(recorded), (Texts{"bytes", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "registered", "wide", "",
                                     "pushed", std::string(256, 'x')}));
}

TEST(RecordedRange, OfADomainEndsTheInnermostOfThatDomain) {
  Recorded recorded = Record([] {
    Nvtx nvtx;
    Initialize(&nvtx);
    const auto push = At<int (*)(const void*, const void*)>(nvtx.core2[GCAP_DOCTOR_NVTX_DOMAIN_PUSH_EX]);
    const auto pop = At<int (*)(const void*)>(nvtx.core2[GCAP_DOCTOR_NVTX_DOMAIN_POP]);
    int domain;
    gcap_doctor_nvtx_attributes_t attributes = {};
    attributes.message_type = GCAP_DOCTOR_NVTX_MESSAGE_A;
    attributes.message = "library";
    Begin(kStream);
    IN_PROGRAM(push(&domain, &attributes) == 0);
    IN_PROGRAM(Push(nvtx, "program") == 0);
    Query();
    IN_PROGRAM(pop(&domain) == 0);
    Query();
    IN_PROGRAM(pop(&domain) < 0);
    IN_PROGRAM(Pop(nvtx) == 0);
    End(kStream, kGraph);
  });
  EXPECT_EQ(Labels(recorded), (Texts{"library > program", "program"}));
}

TEST(RecordedRange, IsItsThreadsAlone) {
  Recorded recorded = Record([] {
    Nvtx nvtx;
    Initialize(&nvtx);
    Push(nvtx, "main");
    Begin(kStream);
    std::thread([&] {
      Query();
      Push(nvtx, "worker");
      Query();  // the range is left open
    }).join();
    Query();
    End(kStream, kGraph);
  });
  EXPECT_EQ(Labels(recorded), (Texts{"", "worker", "main"}));
}

TEST(RecordedRange, ThatNobodyEndsTakesNoMoreMemoryForEver) {
  Recorded recorded = Record([] {
    Nvtx nvtx;
    Initialize(&nvtx);
    for (int i = 0; i < 5000; ++i) Push(nvtx, "leak");
    for (int i = 0; i < 5000; ++i) IN_PROGRAM(Pop(nvtx) >= 0);
    IN_PROGRAM(Pop(nvtx) < 0);
    Begin(kStream);
    Query();
    End(kStream, kGraph);
  });
  EXPECT_EQ(Labels(recorded), (Texts{""}));
}

TEST(RecordedRange, OfAnUnknownNvtxIsNone) {
  Recorded recorded = Record([] {
    void* recorder = dlopen(RecorderPath().c_str(), RTLD_NOW);
    auto initialize =
        reinterpret_cast<int (*)(gcap_doctor_nvtx_get_table_t)>(dlsym(recorder, "InitializeInjectionNvtx2"));
    IN_PROGRAM(initialize([](uint32_t) -> const void* { return nullptr; }) == 0);
  });
}

}  // namespace
