// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// trace.h: a trace of allocations as C++ sees it. The format is that of gcap/allocator.h (gcap_allocator_event_t);
// a line that starts with '#' is a comment. Nothing but the standard library, so that other allocators' programs can
// use it.
#ifndef GCAP_BENCH_SCRATCH_TRACE_H_
#define GCAP_BENCH_SCRATCH_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

namespace gcap {
namespace bench {

struct TraceOp {
  enum Kind { kAlloc, kReserve, kFree, kTrim };
  Kind kind;
  uint64_t block;   // 0 for a trim
  size_t bytes;     // of an allocation or a reserve, else 0
  uint64_t stream;  // of an allocation; 0: none
};

// One line. False: it is not of the format.
inline bool ParseTraceLine(const std::string& line, TraceOp* out_op) {
  std::istringstream words(line);
  std::string kind, rest;
  *out_op = {};
  words >> kind;
  if (kind == "a") {
    out_op->kind = TraceOp::kAlloc;
    words >> out_op->block >> out_op->bytes >> out_op->stream;
  } else if (kind == "r") {
    out_op->kind = TraceOp::kReserve;
    words >> out_op->block >> out_op->bytes;
  } else if (kind == "f") {
    out_op->kind = TraceOp::kFree;
    words >> out_op->block;
  } else if (kind == "t") {
    out_op->kind = TraceOp::kTrim;
  } else {
    return false;
  }
  // A stream reads "-1" as the largest number.
  return !words.fail() && !(words >> rest) && line.find('-') == std::string::npos;
}

// Reads a trace. False: `out_error` names the file and the line. A block is given once and freed at most once, after.
inline bool ReadTrace(const std::string& path, std::vector<TraceOp>* out_ops, std::string* out_error) {
  out_ops->clear();
  std::ifstream file(path);
  if (!file) {
    *out_error = path + ": cannot be opened";
    return false;
  }
  std::unordered_set<uint64_t> live, given;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    TraceOp op;
    const char* wrong = nullptr;
    if (!ParseTraceLine(line, &op)) {
      wrong = "is none of: a <block> <bytes> <stream>; r <block> <bytes>; f <block>; t";
    } else if (op.kind == TraceOp::kFree && live.erase(op.block) == 0) {
      wrong = "frees a block that is not live";
    } else if ((op.kind == TraceOp::kAlloc || op.kind == TraceOp::kReserve) && !given.insert(op.block).second) {
      wrong = "gives a block that was given before";
    }
    if (wrong != nullptr) {
      *out_error = path + ":" + std::to_string(number) + ": '" + line + "' " + wrong;
      out_ops->clear();
      return false;
    }
    if (op.kind == TraceOp::kAlloc || op.kind == TraceOp::kReserve) live.insert(op.block);
    out_ops->push_back(op);
  }
  return true;
}

}  // namespace bench
}  // namespace gcap

#endif  // GCAP_BENCH_SCRATCH_TRACE_H_
