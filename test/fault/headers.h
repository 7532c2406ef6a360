// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// headers.h: what the public headers declare. A table of a test that is compared with them lacks no function.
#ifndef GCAP_TEST_FAULT_HEADERS_H_
#define GCAP_TEST_FAULT_HEADERS_H_

#include <dirent.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace gcap {
namespace testing {

// A public function that returns a status, and what stands between its brackets.
using Declarations = std::map<std::string, std::string>;

// The functions of a text. Types of functions, and members, are no functions.
inline Declarations DeclarationsIn(const std::string& text) {
  static const std::regex declaration(R"(gcap_status_t\s+(gcap_\w+)\s*\(([^;{]*)\)[^();{]*(\([^;{]*\))?[;{])");
  Declarations found;
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at) found[(*at)[1]] = (*at)[2];
  return found;
}

// Those of the public headers but of status.h, which makes statuses, of calls that others made, and of `without`.
inline Declarations DeclarationsInHeaders(const std::string& without = "status.h") {
  Declarations all;
  for (const std::string folder : {"include/gcap", "include/gcap/kit"}) {
    DIR* const entries = opendir(folder.c_str());
    while (const dirent* entry = entries == nullptr ? nullptr : readdir(entries)) {
      const std::string name = entry->d_name;
      if (name.size() <= 2 || name.substr(name.size() - 2) != ".h" || name == "status.h" || name == without) continue;
      std::ifstream file(folder + "/" + name);
      std::ostringstream text;
      for (std::string line; std::getline(file, line);) text << line.substr(0, line.find("//")) << "\n";
      all.merge(DeclarationsIn(text.str()));
    }
    if (entries != nullptr) closedir(entries);
  }
  EXPECT_GT(all.size(), 80u) << "no headers in include/gcap";
  return all;
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_FAULT_HEADERS_H_
