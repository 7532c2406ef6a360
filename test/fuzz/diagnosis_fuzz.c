// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap-doctor's reader and analyser. Input: a file of events, or a simulator's log. Whatever it says, the recording has
// no index out of range, and the diagnosis refers to nothing that the recording does not have.
#include <stdio.h>

#include "doctor/analyse/diagnosis.h"
#include "doctor/events/recording.h"
#include "test/fuzz/memory_file.h"

static void check_index(uint32_t index, size_t count, const char* what) {
  FUZZ_CHECK(index == GCAP_DOCTOR_NONE || index < count, "%s %u of %zu", what, index, count);
}

static void check_recording(const gcap_doctor_recording_t* recording) {
  for (size_t i = 0; i < recording->num_calls; ++i) {
    const gcap_doctor_event_call_t* call = &recording->calls[i];
    FUZZ_CHECK(call->thread < recording->num_threads, "thread %u", call->thread);
    check_index(call->stack, recording->num_stacks, "stack");
    check_index(call->stream, recording->num_streams, "stream");
    check_index(call->range, recording->num_ranges, "range");
    check_index(call->raised_at, recording->num_calls, "call of an exception");
    FUZZ_CHECK(i == 0 || recording->calls[i - 1].number <= call->number, "call %zu is out of order", i);
    FUZZ_CHECK(call->count != 0 && call->count <= UINT32_MAX, "call %zu is %llu calls", i,
               (unsigned long long)call->count);
  }
  for (size_t i = 0; i < recording->num_logs; ++i) check_index(recording->logs[i].call, recording->num_calls, "log");
  for (size_t i = 0; i < recording->num_ranges; ++i) {
    FUZZ_CHECK(recording->ranges[i].outer == GCAP_DOCTOR_NONE || recording->ranges[i].outer < i, "range %zu", i);
  }
  for (size_t i = 0; i < recording->num_nodes; ++i) {
    check_index(recording->nodes[i].call, recording->num_calls, "call of a node");
  }
}

static void check_capture(const gcap_doctor_recording_t* recording, const gcap_doctor_captured_t* capture) {
  FUZZ_CHECK(capture->begin < recording->num_calls, "begin %u", capture->begin);
  check_index(capture->end, recording->num_calls, "end");
  check_index(capture->culprit, recording->num_calls, "culprit");
  check_index(capture->stream, recording->num_streams, "stream of a capture");
  FUZZ_CHECK((capture->end == GCAP_DOCTOR_NONE) == (capture->outcome == GCAP_DOCTOR_OUTCOME_OPEN), "outcome %d",
             capture->outcome);
}

static void check_finding(const gcap_doctor_diagnosis_t* diagnosis, size_t i) {
  const gcap_doctor_finding_t* finding = &diagnosis->findings[i];
  check_index(finding->capture, diagnosis->num_captures, "capture of a finding");
  check_index(finding->call, diagnosis->recording->num_calls, "call of a finding");
  check_index(finding->other, diagnosis->recording->num_calls, "other call of a finding");
  for (size_t k = 0; k < finding->num_places; ++k) {
    check_index(finding->places[k].call, diagnosis->recording->num_calls, "call of a finding's place");
    FUZZ_CHECK(finding->places[k].call != GCAP_DOCTOR_NONE, "a place without a call");
  }
  FUZZ_CHECK(finding->count != 0, "a finding that happened 0 times");
  FUZZ_CHECK(strlen(finding->sentence) > 10, "sentence '%s'", finding->sentence);
  FUZZ_CHECK(finding->remedy[0] != '\0', "no remedy of '%s'", finding->sentence);
  FUZZ_CHECK(strcmp(gcap_doctor_finding_kind_name(finding->kind), "unknown") != 0, "kind %d", (int)finding->kind);
  FUZZ_CHECK(i == 0 || diagnosis->findings[i - 1].severity <= finding->severity, "a worse finding comes later");
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const fuzz_memory_file_t memory = fuzz_memory_file(data, bytes);
  FILE* file = fopen(memory.path, "r");
  FUZZ_CHECK(file != NULL, "%s", memory.path);
  gcap_doctor_recording_t* recording = gcap_doctor_recording_read(file, "fuzz");
  fclose(file);
  close(memory.descriptor);
  check_recording(recording);
  gcap_doctor_diagnosis_t* diagnosis = gcap_doctor_diagnosis_create(recording);
  for (size_t i = 0; i < diagnosis->num_captures; ++i) check_capture(recording, &diagnosis->captures[i]);
  for (size_t i = 0; i < diagnosis->num_findings; ++i) check_finding(diagnosis, i);
  for (uint32_t i = 0; i < recording->num_calls; ++i) {
    check_index(gcap_doctor_diagnosis_capture_of(diagnosis, i), diagnosis->num_captures, "capture of a call");
  }
  gcap_doctor_diagnosis_destroy(diagnosis);
  gcap_doctor_recording_destroy(recording);
  return 0;
}
