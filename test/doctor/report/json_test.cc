// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// JSON, and clean UTF-8. What a parser makes of whole reports is parse_test's.
#include "doctor/report/json_text.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <functional>
#include <string>

namespace {

std::string Json(const std::function<void(gcap_doctor_json_t*)>& write) {
  char* text = nullptr;
  size_t bytes = 0;
  FILE* file = open_memstream(&text, &bytes);
  gcap_doctor_json_t json;
  gcap_doctor_json_init(&json, file);
  write(&json);
  fclose(file);
  std::string all(text, bytes);
  free(text);
  return all;
}

std::string TextOf(const char* value) {
  return Json([&](gcap_doctor_json_t* json) { gcap_doctor_json_text(json, nullptr, value); });
}

TEST(Json, TextsAreEscaped) {
  EXPECT_EQ(TextOf("a\"b\\c/\n\t"), "\"a\\\"b\\\\c/\\n\\t\"");
  EXPECT_EQ(TextOf("\x01\x1b\x7f"), "\"\\u0001\\u001b\\u007f\"");
  EXPECT_EQ(TextOf("\xe2\x80\xa8"), "\"\\u2028\"");
  EXPECT_EQ(TextOf("\xf0\x9f\x98\x80"), "\"\xf0\x9f\x98\x80\"");
}

TEST(Json, BytesThatAreNoUtf8AreReplaced) {
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(TextOf("\xff"), "\"" + mark + "\"");
  EXPECT_EQ(TextOf("\xc3("), "\"" + mark + "(\"");
  EXPECT_EQ(TextOf("\xc0\xaf"), "\"" + mark + mark + "\"");                        // too long a form
  EXPECT_EQ(TextOf("\xed\xa0\x80"), "\"" + mark + mark + mark + "\"");             // half of a pair
  EXPECT_EQ(TextOf("\xf4\x90\x80\x80"), "\"" + mark + mark + mark + mark + "\"");  // beyond Unicode
  EXPECT_EQ(TextOf("\xe2\x82"), "\"" + mark + mark + "\"");                        // cut
}

TEST(Json, ContainersNest) {
  EXPECT_EQ(Json([](gcap_doctor_json_t* json) {
              gcap_doctor_json_open(json, nullptr, '{');
              gcap_doctor_json_open(json, "none", '[');
              gcap_doctor_json_close(json, '[');
              gcap_doctor_json_open_flat(json, "line", '{');
              gcap_doctor_json_number(json, "a", 18446744073709551615u);
              gcap_doctor_json_open_flat(json, "b", '[');
              gcap_doctor_json_hex(json, nullptr, 255);
              gcap_doctor_json_us(json, nullptr, 1234567);
              gcap_doctor_json_close(json, '[');
              gcap_doctor_json_close(json, '{');
              gcap_doctor_json_signed(json, "c", -1);
              gcap_doctor_json_flag(json, "d", true);
              gcap_doctor_json_text(json, "e", nullptr);
              gcap_doctor_json_close(json, '{');
            }),
            "{\n \"none\": [],\n \"line\": {\"a\": 18446744073709551615, \"b\": [\"0xff\", 1234.567]},\n \"c\": -1,\n"
            " \"d\": true,\n \"e\": null\n}\n");
}

}  // namespace
