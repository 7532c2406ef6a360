// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The report. The JSON is one flat object of numbers with a single string in it, so it is written by hand.

#include "examples/minimal_ep/digits/report.h"

#include <inttypes.h>
#include <math.h>

static void print_latency(FILE* stream, const char* name, stats_summary_t latency) {
  fprintf(stream, "  %-36s %10.1f us median %10.1f us p99\n", name, (double)latency.median_ns / 1e3,
          (double)latency.p99_ns / 1e3);
}

void report_print_table(const report_t* r, FILE* stream) {
  fprintf(stream, "gcap digits: %zu handwritten digits in batches of %zu, %zu thread%s\n", r->images, r->batch,
          r->threads, r->threads == 1 ? "" : "s");
  fprintf(stream, "  %-36s %s\n", "device", r->device);
  fprintf(stream, "  %-36s %10.4f\n", "accuracy", r->accuracy);
  fprintf(stream, "  %-36s %10.2e\n", "largest difference to plain C", r->max_abs_diff_reference);
  if (r->has_replay) {
    fprintf(stream, "  %-36s %10.2e\n", "largest difference eager to replayed", r->max_abs_diff_eager_replay);
  }
  print_latency(stream, "eager run", r->eager);
  if (r->has_replay) {
    print_latency(stream, "replayed run", r->replay);
    fprintf(stream, "  %-36s %10zu\n", "nodes in the graph", r->nodes);
    if (r->holes > 0) fprintf(stream, "  %-36s %10zu\n", "holes of the graph", r->holes);
    const size_t launches = r->holes + 1;  // of the segments, at most
    fprintf(stream, "  %-36s %10zu a replay: %zu instead of %zu\n", "launches saved",
            r->nodes > launches ? r->nodes - launches : 0, launches, r->nodes);
    fprintf(stream, "  %-36s %10zu\n", "eager runs before a capture", r->eager_warm_ups);
    fprintf(stream, "  %-36s %10" PRIu64 "\n", "captures", r->captures);
    fprintf(stream, "  %-36s %10" PRIu64 "\n", "replays", r->replays);
  }
  fprintf(stream, "  %-36s %10" PRIu64 " bytes\n", "scratch reserved", r->scratch_reserved_bytes);
  fprintf(stream, "  %-36s %10" PRIu64 " bytes\n", "scratch peak", r->scratch_peak_bytes);
}

static void print_json_string(FILE* stream, const char* text) {
  fputc('"', stream);
  for (; *text != '\0'; ++text) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') {
      fprintf(stream, "\\%c", c);
    } else if (c < 0x20) {
      fprintf(stream, "\\u%04x", c);
    } else {
      fputc(c, stream);
    }
  }
  fputc('"', stream);
}

// JSON has no infinity, and a figure that was not measured is not a number either.
static void print_json_real(FILE* stream, const char* name, bool measured, double value) {
  if (measured && isfinite(value)) {
    fprintf(stream, ", \"%s\": %.9g", name, value);
  } else {
    fprintf(stream, ", \"%s\": null", name);
  }
}

static void print_json_count(FILE* stream, const char* name, bool measured, uint64_t value) {
  if (measured) {
    fprintf(stream, ", \"%s\": %" PRIu64, name, value);
  } else {
    fprintf(stream, ", \"%s\": null", name);
  }
}

void report_print_json(const report_t* r, FILE* stream) {
  fputs("{\"device\": ", stream);
  print_json_string(stream, r->device);
  print_json_real(stream, "accuracy", true, r->accuracy);
  print_json_count(stream, "images", true, r->images);
  print_json_real(stream, "max_abs_diff_eager_replay", r->has_replay, r->max_abs_diff_eager_replay);
  print_json_real(stream, "max_abs_diff_reference", true, r->max_abs_diff_reference);
  print_json_count(stream, "eager_ns_median", true, r->eager.median_ns);
  print_json_count(stream, "eager_ns_p99", true, r->eager.p99_ns);
  print_json_count(stream, "replay_ns_median", r->has_replay, r->replay.median_ns);
  print_json_count(stream, "replay_ns_p99", r->has_replay, r->replay.p99_ns);
  print_json_count(stream, "nodes", true, r->nodes);
  print_json_count(stream, "holes", true, r->holes);
  print_json_count(stream, "captures", true, r->captures);
  print_json_count(stream, "replays", true, r->replays);
  print_json_count(stream, "scratch_reserved_bytes", true, r->scratch_reserved_bytes);
  print_json_count(stream, "scratch_peak_bytes", true, r->scratch_peak_bytes);
  print_json_count(stream, "cuda_calls", r->has_cuda_calls, r->cuda_calls);
  fputs("}\n", stream);
}
