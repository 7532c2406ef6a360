// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The reader of allocator traces. Input: the trace. What it accepts, gcap writes and it reads again alike.
#include <string>
#include <vector>

#include "bench/scratch/trace.h"
#include "lib/allocator/trace_file.h"
#include "test/fuzz/memory_file.h"

namespace {

using gcap::bench::TraceOp;

gcap_allocator_event_t EventOf(const TraceOp& op) {
  gcap_allocator_event_t event = {};
  switch (op.kind) {
    case TraceOp::kAlloc: event.kind = GCAP_ALLOCATOR_EVENT_ALLOC; break;
    case TraceOp::kReserve: event.kind = GCAP_ALLOCATOR_EVENT_RESERVE; break;
    case TraceOp::kFree: event.kind = GCAP_ALLOCATOR_EVENT_FREE; break;
    case TraceOp::kTrim: event.kind = GCAP_ALLOCATOR_EVENT_TRIM; break;
  }
  event.block = op.block;
  event.bytes = op.bytes;
  return event;  // without a stream: a trace has a number that only identifies it
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const fuzz_memory_file_t file = fuzz_memory_file(data, bytes);
  std::vector<TraceOp> ops;
  std::string error;
  const bool read = gcap::bench::ReadTrace(file.path, &ops, &error);
  close(file.descriptor);
  FUZZ_CHECK(read ? error.empty() : ops.empty() && error.find(file.path) == 0, "'%s'", error.c_str());
  for (const TraceOp& op : ops) {
    const gcap_allocator_event_t event = EventOf(op);
    char line[100];
    const int length = gcap_trace_line(&event, line, sizeof(line));
    FUZZ_CHECK(length > 0 && length < static_cast<int>(sizeof(line)), "%d", length);
    TraceOp again;
    FUZZ_CHECK(gcap::bench::ParseTraceLine(line, &again), "'%s'", line);
    FUZZ_CHECK(again.kind == op.kind && again.block == op.block && again.bytes == op.bytes, "'%s'", line);
  }
  return 0;
}
