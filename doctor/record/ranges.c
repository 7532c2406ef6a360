// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The NVTX ranges of the program, which label the calls that are made in them. Each library of a program that uses NVTX
// has an NVTX of its own, which asks for functions at its first call, maybe before CUDA starts; all of them share a
// thread's stack of ranges. A range of a domain ends the innermost one of that domain. Ranges that begin and end on
// different threads (nvtxRangeStart) are not nested, and label nothing.
//
// A range costs a copy of its text. Its line is written with the first call that is recorded in the range. Locking:
// none, but that of the interned ids and of the texts that the program registers: a stack is its thread's alone.
#include "doctor/record/ranges.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "doctor/base/grow.h"
#include "doctor/record/map.h"
#include "doctor/record/nvtx_abi.h"

enum {
  kMaxText = 256,   // bytes of a text
  kMaxOpen = 1024,  // ranges of a thread; more are counted, for a program that never ends its ranges
};

int InitializeInjectionNvtx2(gcap_doctor_nvtx_get_table_t get_table);

static gcap_doctor_intern_t ranges = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct {
  pthread_mutex_t lock;
  gcap_doctor_map_t ids;  // index + 1 by the text's hash
  char** texts;
  size_t count, capacity;
} registered = {.lock = PTHREAD_MUTEX_INITIALIZER};

// --- Texts -----------------------------------------------------------------------------------------------------------

// A new copy, cut where a character begins; NULL without memory.
static char* copy_text(const char* text) {
  return strndup(text, gcap_doctor_line_cut(text, strnlen(text, kMaxText + 1), kMaxText));
}

static size_t put_utf8(char* out, uint32_t code) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  const size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static const uint8_t kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  out[0] = (char)(kFirst[more] | (code >> (6 * more) & 0x3f));
  for (size_t i = 1; i <= more; ++i) out[i] = (char)(0x80 | (code >> (6 * (more - i)) & 0x3f));
  return more + 1;
}

static char* copy_wide(const wchar_t* text) {
  char bytes[kMaxText + 5];
  size_t length = 0;
  for (; *text != L'\0' && length < kMaxText; ++text) length += put_utf8(bytes + length, (uint32_t)*text);
  bytes[length] = '\0';
  return copy_text(bytes);
}

static char* copy_message(const gcap_doctor_nvtx_attributes_t* attributes) {
  const void* message = attributes != NULL ? attributes->message : NULL;
  if (message == NULL) return copy_text("");
  switch (attributes->message_type) {
    case GCAP_DOCTOR_NVTX_MESSAGE_A:
    case GCAP_DOCTOR_NVTX_MESSAGE_REGISTERED: return copy_text(message);  // a registered text is its own handle
    case GCAP_DOCTOR_NVTX_MESSAGE_W: return copy_wide(message);
    default: return copy_text("");
  }
}

// --- The stack -------------------------------------------------------------------------------------------------------

// Takes the text. The range's level, counted from 0.
static int push(const void* domain, char* text) {
  gcap_doctor_thread_t* thread = text != NULL ? gcap_doctor_thread_current() : NULL;
  if (thread == NULL || thread->num_ranges == kMaxOpen ||
      !gcap_doctor_grow(&thread->ranges, &thread->range_capacity, thread->num_ranges + 1, sizeof(*thread->ranges))) {
    if (thread != NULL) ++thread->num_lost_ranges;
    free(text);
    return 0;
  }
  int level = 0;
  for (size_t i = 0; i < thread->num_ranges; ++i) level += thread->ranges[i].domain == domain;
  thread->ranges[thread->num_ranges++] = (struct gcap_doctor_range){.domain = domain, .text = text};
  return level;
}

static int pop(const void* domain) {
  gcap_doctor_thread_t* thread = gcap_doctor_thread_current();
  if (thread == NULL) return -1;
  if (thread->num_lost_ranges != 0) {
    --thread->num_lost_ranges;
    return 0;
  }
  size_t at = thread->num_ranges;
  while (at > 0 && thread->ranges[at - 1].domain != domain) --at;
  if (at == 0) return -1;
  free(thread->ranges[at - 1].text);
  memmove(&thread->ranges[at - 1], &thread->ranges[at], (--thread->num_ranges - (at - 1)) * sizeof(*thread->ranges));
  int level = 0;
  for (size_t i = 0; i < at - 1; ++i) level += thread->ranges[i].domain == domain;
  return level;
}

void gcap_doctor_ranges_free(gcap_doctor_thread_t* thread) {
  for (size_t i = 0; i < thread->num_ranges; ++i) free(thread->ranges[i].text);
  free(thread->ranges);
}

uint32_t gcap_doctor_range_record(gcap_doctor_thread_t* thread) {
  uint32_t outer = 0;
  for (size_t i = 0; i < thread->num_ranges; ++i) {
    const char* text = thread->ranges[i].text;
    const uint64_t key = gcap_doctor_hash(outer, text, strlen(text));
    uint32_t id = gcap_doctor_intern_find(&ranges, key, &thread->definitions, &thread->defined);
    if (id == 0) {
      gcap_doctor_line_t fields = {0};
      gcap_doctor_line_field(&fields, "text", text);
      if (outer != 0) gcap_doctor_line_number(&fields, "in", outer);
      id = gcap_doctor_intern_add(&ranges, key, "range", &fields, &thread->definitions, &thread->defined);
      gcap_doctor_line_free(&fields);
    }
    if (id == 0) return outer;
    outer = id;
  }
  return outer;
}

// --- What NVTX calls -------------------------------------------------------------------------------------------------

static int push_ex(const gcap_doctor_nvtx_attributes_t* attributes) { return push(NULL, copy_message(attributes)); }
static int push_a(const char* text) { return push(NULL, copy_text(text != NULL ? text : "")); }
static int push_w(const wchar_t* text) { return push(NULL, copy_wide(text != NULL ? text : L"")); }
static int pop_any(void) { return pop(NULL); }

static int domain_push_ex(const void* domain, const gcap_doctor_nvtx_attributes_t* attributes) {
  return push(domain, copy_message(attributes));
}

// A program registers a text for as long as it runs, maybe again and again. Takes the text; NULL without memory.
static const void* keep_registered(char* text) {
  if (text == NULL) return NULL;
  const uint64_t key = gcap_doctor_hash(0, text, strlen(text));
  pthread_mutex_lock(&registered.lock);
  const uint32_t known = gcap_doctor_map_get(&registered.ids, key);
  const char* kept = known != 0 ? registered.texts[known - 1] : NULL;
  if (known == 0 &&
      gcap_doctor_grow(&registered.texts, &registered.capacity, registered.count + 1, sizeof(*registered.texts)) &&
      gcap_doctor_map_set(&registered.ids, key, (uint32_t)registered.count + 1)) {
    kept = registered.texts[registered.count++] = text;
  }
  pthread_mutex_unlock(&registered.lock);
  if (kept != text) free(text);
  return kept;
}

static const void* register_a(const void* domain, const char* text) {
  (void)domain;
  return keep_registered(copy_text(text != NULL ? text : ""));
}

static const void* register_w(const void* domain, const wchar_t* text) {
  (void)domain;
  return keep_registered(copy_wide(text != NULL ? text : L""));
}

#define PUT(table, size, at, function) \
  if ((at) < (size)) *(table)[at] = (gcap_doctor_nvtx_function_t)(function)

// What NVTX calls at its first call. 0 has it do without.
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(gcap_doctor_nvtx_get_table_t get_table) {
  const gcap_doctor_nvtx_callbacks_t* callbacks = get_table(GCAP_DOCTOR_NVTX_CALLBACKS);
  gcap_doctor_nvtx_function_t** table = NULL;
  unsigned size = 0;
  if (callbacks == NULL || callbacks->struct_size < sizeof(*callbacks) || !gcap_doctor_threads_start()) return 0;
  if (callbacks->GetModuleFunctionTable(GCAP_DOCTOR_NVTX_CORE, &table, &size) != 0 && table != NULL) {
    PUT(table, size, GCAP_DOCTOR_NVTX_PUSH_EX, push_ex);
    PUT(table, size, GCAP_DOCTOR_NVTX_PUSH_A, push_a);
    PUT(table, size, GCAP_DOCTOR_NVTX_PUSH_W, push_w);
    PUT(table, size, GCAP_DOCTOR_NVTX_POP, pop_any);
  }
  table = NULL;
  if (callbacks->GetModuleFunctionTable(GCAP_DOCTOR_NVTX_CORE2, &table, &size) != 0 && table != NULL) {
    PUT(table, size, GCAP_DOCTOR_NVTX_DOMAIN_PUSH_EX, domain_push_ex);
    PUT(table, size, GCAP_DOCTOR_NVTX_DOMAIN_POP, pop);
    PUT(table, size, GCAP_DOCTOR_NVTX_REGISTER_A, register_a);
    PUT(table, size, GCAP_DOCTOR_NVTX_REGISTER_W, register_w);
  }
  return 1;
}
