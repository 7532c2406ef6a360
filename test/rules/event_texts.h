// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// event_texts.h: texts, and how they are written in a file of events. The tests of both writers have this table.
#ifndef GCAP_TEST_RULES_EVENT_TEXTS_H_
#define GCAP_TEST_RULES_EVENT_TEXTS_H_

namespace gcap {
namespace testing {

struct EventText {
  const char* text;
  const char* written;
};

#define GCAP_TEST_INSTEAD "\xef\xbf\xbd"

constexpr EventText kEventTexts[] = {
    {"plain text, with = signs", "plain text, with = signs"},
    {"a\tb\nc\rd\\e", R"(a\tb\nc\rd\\e)"},
    {"\t\t", R"(\t\t)"},
    {"\\t", R"(\\t)"},
    {"gr\xc3\xb6\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x98\x80",
     "gr\xc3\xb6\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf",
     "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"},  // beside the refused ones
    {"\xff", GCAP_TEST_INSTEAD},
    {"a\x80z", "a" GCAP_TEST_INSTEAD "z"},
    {"\xc3", GCAP_TEST_INSTEAD},                                              // cut off
    {"\xe2\x82", GCAP_TEST_INSTEAD GCAP_TEST_INSTEAD},                        // cut off
    {"\xe2\x82\t", GCAP_TEST_INSTEAD GCAP_TEST_INSTEAD "\\t"},                // cut off by what is escaped
    {"\xc0\xaf", GCAP_TEST_INSTEAD GCAP_TEST_INSTEAD},                        // longer than needed
    {"\xe0\x9f\xbf", GCAP_TEST_INSTEAD GCAP_TEST_INSTEAD GCAP_TEST_INSTEAD},  // longer than needed
    {"\xed\xa0\x80", GCAP_TEST_INSTEAD GCAP_TEST_INSTEAD GCAP_TEST_INSTEAD},  // half of a pair
    {"\xf0\x8f\xbf\xbf", GCAP_TEST_INSTEAD GCAP_TEST_INSTEAD GCAP_TEST_INSTEAD GCAP_TEST_INSTEAD},
    {"\xf4\x90\x80\x80", GCAP_TEST_INSTEAD GCAP_TEST_INSTEAD GCAP_TEST_INSTEAD GCAP_TEST_INSTEAD},  // beyond the last
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_RULES_EVENT_TEXTS_H_
