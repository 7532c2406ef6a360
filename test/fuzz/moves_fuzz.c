// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Bytes as work on buffers that move: three works under three ids of one manager that evicts, on buffers that are drawn
// to be anywhere, to touch, to overlap or to be equal. Runs, binds, replays, releases, recaptures and checks of moves
// come in any order, from several threads by turns.
//
// What must hold: each run that answers OK leaves what the work leaves that is issued on the same addresses, and its
// kernels got the same arguments (drawn_moves.h); a refusal is one of those that the headers name; nothing is left.
#include "gcap/log.h"
#include "gcap_sim.h"
#include "test/fuzz/input.h"
#include "test/support/moves/drawn_moves.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  static const uint8_t nothing[1];
  drawn_source_t source = {.at = bytes != 0 ? data : nothing, .left = bytes};
  drawn_counts_t counts = {0};
  char text[1024] = "";
  gcap_log_set_sink(NULL, NULL, GCAP_LOG_ERROR);
  const size_t before = gcap_sim_live(NULL);
  FUZZ_CHECK(drawn_moves_play(&source, &counts, text, sizeof(text)), "%s", text);
  FUZZ_CHECK(gcap_sim_live(NULL) == before, "handles are left");
  if (getenv("FUZZ_VERBOSE") != NULL) {
    fprintf(stderr, "%u runs, %u replays, %u moved, %u eager, %u binds refused\n", counts.runs, counts.replays,
            counts.moved, counts.eager, counts.refused_binds);
  }
  return 0;
}
