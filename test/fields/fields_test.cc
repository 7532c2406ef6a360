// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Structs by name, against the text of the headers: every struct and every field is there, in its order.

#include "gcap/fields.h"

#include <dirent.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gcap/external_allocator.h"
#include "gcap/runtime.h"
#include "gcap/runtime_ops.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

struct Struct {
  std::string name;  // "gcap_run_t"
  std::vector<std::string> fields;
};

// The names in one declaration of a struct: "a" of `int a`, "b" and "c" of `enum E b, c`, "f" of `int (*f)(void*
// self)`, "g" of `char g[8]`.
std::vector<std::string> NamesIn(const std::string& declaration) {
  std::smatch found;
  if (std::regex_search(declaration, found, std::regex(R"(\(\*(\w+)\)\()"))) return {found[1]};
  std::vector<std::string> names;
  std::istringstream parts(declaration);
  for (std::string part; std::getline(parts, part, ',');) {
    if (std::regex_search(part, found, std::regex(R"((\w+)\s*(\[\w+\])?\s*$)"))) names.push_back(found[1]);
  }
  return names;
}

std::vector<Struct> StructsOf(const std::string& header) {
  std::stringstream text;
  text << std::ifstream(header).rdbuf();
  const std::string code = std::regex_replace(text.str(), std::regex("//[^\n]*"), "");
  std::vector<Struct> structs;
  const std::regex definition(R"(typedef struct \w+ \{([^{}]*)\} (\w+);)");
  for (std::sregex_iterator it(code.begin(), code.end(), definition), end; it != end; ++it) {
    Struct found = {(*it)[2], {}};
    std::istringstream body((*it)[1]);
    for (std::string declaration; std::getline(body, declaration, ';');) {
      for (const std::string& name : NamesIn(declaration)) found.fields.push_back(name);
    }
    structs.push_back(found);
  }
  return structs;
}

std::vector<Struct> StructsOfTheCore() {
  std::vector<Struct> structs;
  DIR* folder = opendir("include/gcap");
  EXPECT_NE(folder, nullptr);
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name.size() < 2 || name.substr(name.size() - 2) != ".h") continue;
    for (Struct& found : StructsOf("include/gcap/" + name)) structs.push_back(std::move(found));
  }
  EXPECT_EQ(closedir(folder), 0);
  EXPECT_GT(structs.size(), 20u) << "the headers were not read";
  return structs;
}

struct Place {
  size_t offset = 0, bytes = 0;
};

Place Find(const char* type, const char* field) {
  Place place;
  GCAP_EXPECT_OK(gcap_struct_find_field(type, field, &place.offset, &place.bytes));
  return place;
}

TEST(Fields, OfAllStructsOfTheHeadersAreFound) {
  for (const Struct& expected : StructsOfTheCore()) {
    SCOPED_TRACE(expected.name + ": lib/fields/structs.inc has its fields");
    const Place whole = Find(expected.name.c_str(), nullptr);
    EXPECT_EQ(whole.offset, 0u);
    EXPECT_FALSE(expected.fields.empty());
    size_t end = 0;
    for (const std::string& field : expected.fields) {
      SCOPED_TRACE(field);
      const Place place = Find(expected.name.c_str(), field.c_str());
      EXPECT_GE(place.offset, end);  // in the header's order, and none upon another
      EXPECT_GT(place.bytes, 0u);
      end = place.offset + place.bytes;
    }
    EXPECT_LE(end, whole.bytes);
    EXPECT_LT(whole.bytes, end + alignof(std::max_align_t));
  }
}

TEST(Fields, LieWhereTheCompilerSays) {
  EXPECT_EQ(Find("gcap_run_t", nullptr).bytes, sizeof(gcap_run_t));
  EXPECT_EQ(Find("gcap_run_t", "bindings").offset, offsetof(gcap_run_t, bindings));
  EXPECT_EQ(Find("gcap_run_t", "synchronize").bytes, sizeof(bool));
  EXPECT_EQ(Find("gcap_tensor_t", "shape").bytes, sizeof(int64_t) * GCAP_MAX_RANK);
  EXPECT_EQ(Find("gcap_graph_info_t", "replays").offset, offsetof(gcap_graph_info_t, replays));
}

TEST(Fields, OfEmbeddedStructsAreFoundBehindADot) {
  const Place graph = Find("gcap_options_t", "graph");
  EXPECT_EQ(graph.offset, offsetof(gcap_options_t, graph));
  EXPECT_EQ(graph.bytes, sizeof(gcap_graph_manager_options_t));
  EXPECT_EQ(Find("gcap_options_t", "graph.max_graphs").offset, offsetof(gcap_options_t, graph.max_graphs));
  const Place mode = Find("gcap_options_t", "graph.capture.mode");
  EXPECT_EQ(mode.offset, offsetof(gcap_options_t, graph.capture.mode));
  EXPECT_EQ(mode.bytes, sizeof(gcap_capture_mode_t));
}

TEST(Fields, OutcomesMayBeLeftOut) {
  size_t bytes = 0;
  GCAP_EXPECT_OK(gcap_struct_find_field("gcap_run_t", "id", nullptr, &bytes));
  EXPECT_EQ(bytes, sizeof(int));
  size_t offset = 0;
  GCAP_EXPECT_OK(gcap_struct_find_field("gcap_run_t", "id", &offset, nullptr));
  EXPECT_EQ(offset, offsetof(gcap_run_t, id));
}

TEST(Fields, ThatDoNotExistAreRefusedByName) {
  size_t offset = 7, bytes = 7;
  GCAP_EXPECT_FAILS(gcap_struct_find_field("gcap_rum_t", "id", &offset, &bytes), GCAP_NOT_FOUND, "'gcap_rum_t'");
  EXPECT_EQ(offset, 0u);
  EXPECT_EQ(bytes, 0u);
  GCAP_EXPECT_FAILS(
      gcap_struct_find_field("gcap_run_result_t", "why", &offset, &bytes), GCAP_NOT_FOUND,
      "gcap_run_result_t has no field 'why': expected one of struct_size, outcome, why_eager, was_issued");
  GCAP_EXPECT_FAILS(gcap_struct_find_field("gcap_run_t", "", &offset, &bytes), GCAP_NOT_FOUND, "no field ''");
  GCAP_EXPECT_FAILS(gcap_struct_find_field("gcap_run_t", "id.id", &offset, &bytes), GCAP_NOT_FOUND, "'id.id'");
  GCAP_EXPECT_FAILS(gcap_struct_find_field("gcap_options_t", "graph.maxgraphs", &offset, &bytes), GCAP_NOT_FOUND,
                    "gcap_graph_manager_options_t has no field 'maxgraphs'");
  GCAP_EXPECT_FAILS(gcap_struct_find_field("gcap_options_t", "graph.", &offset, &bytes), GCAP_NOT_FOUND, "no field ''");
  GCAP_EXPECT_FAILS(gcap_struct_find_field(nullptr, "id", &offset, &bytes), GCAP_INVALID_ARGUMENT, "type_name");
}

// --- Init -----------------------------------------------------------------------------------------------------------

// Whether a field is an embedded struct, in which there may be bytes that belong to no field.
bool IsEmbedded(const std::string& type, const std::string& field) {
  return Outcome(gcap_struct_find_field(type.c_str(), (field + ".struct_size").c_str(), nullptr, nullptr)).ok();
}

template <typename T>
void ExpectInitAs(const std::string& type, void (*init)(T*)) {
  SCOPED_TRACE(type);
  T expected, given;
  memset(&given, 0xA5, sizeof(given));
  init(&expected);
  GCAP_EXPECT_OK(gcap_struct_init(type.c_str(), &given, sizeof(given)));
  for (const Struct& all : StructsOfTheCore()) {
    for (const std::string& field : all.name == type ? all.fields : std::vector<std::string>()) {
      if (IsEmbedded(type, field)) continue;
      const Place at = Find(type.c_str(), field.c_str());
      const char *a = reinterpret_cast<const char*>(&expected), *b = reinterpret_cast<const char*>(&given);
      EXPECT_EQ(memcmp(a + at.offset, b + at.offset, at.bytes), 0) << field;
    }
  }
}

TEST(StructInit, IsTheInitFunctionOfTheHeader) {
  ExpectInitAs("gcap_run_t", gcap_run_init);
  ExpectInitAs("gcap_run_result_t", gcap_run_result_init);
  ExpectInitAs("gcap_scratch_options_t", gcap_scratch_options_init);
  ExpectInitAs("gcap_graph_manager_options_t", gcap_graph_manager_options_init);
  ExpectInitAs("gcap_options_t", gcap_options_init);
}

TEST(StructInit, FillsInEmbeddedStructs) {
  gcap_options_t expected, given;
  gcap_options_init(&expected);
  GCAP_EXPECT_OK(gcap_struct_init("gcap_options_t", &given, sizeof(given)));
  EXPECT_EQ(given.graph.struct_size, sizeof(given.graph));
  EXPECT_EQ(given.graph.capture.struct_size, sizeof(given.graph.capture));
  EXPECT_EQ(given.graph.capture.ledger_calls, expected.graph.capture.ledger_calls);
  EXPECT_GT(given.graph.capture.ledger_calls, 0u);
  EXPECT_EQ(given.arena.max_extend_bytes, expected.arena.max_extend_bytes);
}

// What begins with its size has the size, or the library would refuse it.
TEST(StructInit, SetsTheSizeOfEverySizedStruct) {
  for (const Struct& type : StructsOfTheCore()) {
    SCOPED_TRACE(type.name);
    const size_t bytes = Find(type.name.c_str(), nullptr).bytes;
    std::vector<char> memory(bytes + 1, '\x5A');
    GCAP_EXPECT_OK(gcap_struct_init(type.name.c_str(), memory.data(), bytes));
    EXPECT_EQ(memory[bytes], '\x5A') << "written behind the struct";
    size_t size = 0;
    memcpy(&size, memory.data(), sizeof(size));
    if (type.fields[0] == "struct_size") {
      EXPECT_EQ(size, bytes);
    } else {
      memory.resize(bytes);
      EXPECT_EQ(memory, std::vector<char>(bytes, '\0')) << "no zeros";
    }
  }
}

TEST(StructInit, RefusesWhatItCannotFill) {
  gcap_run_t run;
  memset(&run, 0x5A, sizeof(run));
  const gcap_run_t before = run;
  GCAP_EXPECT_FAILS(gcap_struct_init("gcap_run_t", &run, sizeof(run) - 1), GCAP_INVALID_ARGUMENT,
                    "gcap_run_t has " + std::to_string(sizeof(run)) + " bytes, and the memory has " +
                        std::to_string(sizeof(run) - 1));
  GCAP_EXPECT_FAILS(gcap_struct_init("gcap_runs_t", &run, sizeof(run)), GCAP_NOT_FOUND, "'gcap_runs_t'");
  GCAP_EXPECT_FAILS(gcap_struct_init(nullptr, &run, sizeof(run)), GCAP_INVALID_ARGUMENT, "type_name");
  GCAP_EXPECT_FAILS(gcap_struct_init("gcap_run_t", nullptr, sizeof(run)), GCAP_INVALID_ARGUMENT, "memory");
  EXPECT_EQ(memcmp(&run, &before, sizeof(run)), 0);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
