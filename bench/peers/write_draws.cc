// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// write_draws FOLDER: writes the draws of bench/scratch for programs in other languages. mixed_<live>.draws has a line
// "<slot> <bytes>" for each; <trace>.trace is as trace.h reads it.

#include <cstdio>
#include <fstream>
#include <string>

#include "bench/scratch/draws.h"

namespace {

void WriteMixed(const std::string& folder, size_t live) {
  std::ofstream file(folder + "/mixed_" + std::to_string(live) + ".draws");
  for (const gcap::bench::Draw& draw : gcap::bench::MixedDraws(live, gcap::bench::kSeed)) {
    file << draw.slot << ' ' << draw.bytes << '\n';
  }
}

void WriteTrace(const std::string& folder, const gcap::bench::Trace& trace) {
  std::ofstream file(folder + "/" + trace.name + ".trace");
  for (const gcap::bench::TraceOp& op : trace.ops) {
    if (op.kind == gcap::bench::TraceOp::kFree) {
      file << "f " << op.block << '\n';
    } else {
      file << "a " << op.block << ' ' << op.bytes << ' ' << op.stream << '\n';
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_draws FOLDER\n");
    return 1;
  }
  for (size_t live : {16, 256, 4096}) WriteMixed(argv[1], live);
  for (const gcap::bench::Trace& trace : gcap::bench::MadeUpTraces()) WriteTrace(argv[1], trace);
  return 0;
}
