// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The simulator's log, a line a call:
//   gcap sim: #12 thread 1 cudaStreamSynchronize(stream 1) -> 900 cudaErrorStreamCaptureUnsupported, ... [capture 1
//   invalidated]
#include "doctor/events/sim_log.h"

#include <string.h>

bool gcap_sim_log_is(const char* line) {
  if (strncmp(line, "gcap sim: ", strlen("gcap sim: ")) == 0) line += strlen("gcap sim: ");
  return line[0] == '#' && line[1] >= '0' && line[1] <= '9';
}

// TODO(#17): read the lines.
gcap_recording_t* gcap_sim_log_read(FILE* file, char** line, size_t* capacity) {
  (void)file;
  (void)line;
  (void)capacity;
  return gcap_recording_create("simulator log");
}
