// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Parameters of kernels, from names and machine code.
//
// The idea: the machine code knows the sizes, and the mangled name of a C++ kernel knows which parameters are pointers,
// and to what. Either may be missing: code may be compressed, and a kernel of C linkage has its name alone. The C++
// library takes names apart; a program that nvcc compiled links it, and one without it has no such names. No state.
#include "sim/nvcc/signature.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/heap.h"
#include "sim/nvcc/fat_binary.h"

char* __cxa_demangle(const char* mangled, char* buffer, size_t* length, int* status) __attribute__((weak));

static char* copy_of(const char* text, size_t length) {
  char* copy = gcap_sim_calloc(length + 1, 1);
  memcpy(copy, text, length);
  return copy;
}

// --- Names ----------------------------------------------------------------------------------------------------------

// The parenthesis that opens the list of parameters; NULL when there is none.
static const char* params_of(const char* text) {
  const char* end = strrchr(text, ')');
  int depth = 0;
  for (const char* at = end; at != NULL && at >= text; --at) {
    depth += (*at == ')') - (*at == '(');
    if (depth == 0) return at;
  }
  return NULL;
}

// With relocatable device code, nvcc puts __nv_static_<length>_<module>_ before the name of a kernel that is its file's
// own.
static const char* without_module(const char* name) {
  static const char prefix[] = "__nv_static_";
  if (strncmp(name, prefix, sizeof(prefix) - 1) != 0) return name;
  char* module;
  const size_t length = strtoul(name + sizeof(prefix) - 1, &module, 10);
  return *module == '_' && length + 2 < strlen(module) ? module + length + 2 : name;
}

// The name without what nvcc put before it, taken apart where it is mangled, as *mangled tells. A block of the
// caller's.
static char* taken_apart(const char* registered, bool* mangled) {
  int status = -1;
  const char* name = without_module(registered);
  const bool can_be = strncmp(name, "_Z", 2) == 0 && __cxa_demangle != NULL;
  char* text = can_be ? __cxa_demangle(name, NULL, NULL, &status) : NULL;
  *mangled = status == 0;
  char* copy = *mangled ? copy_of(text, strlen(text)) : copy_of(name, strlen(name));
  free(text);
  return copy;
}

char* gcap_sim_plain_name(const char* registered) {
  bool mangled;
  return taken_apart(registered, &mangled);
}

static void read_name(gcap_sim_signature_t* signature, const char* registered) {
  bool mangled;
  char* plain = taken_apart(registered, &mangled);
  // A kernel returns nothing, which is said of templates alone.
  const char* text = mangled && strncmp(plain, "void ", 5) == 0 ? plain + 5 : plain;
  signature->text = copy_of(text, strlen(text));
  free(plain);
  const char* params = mangled ? params_of(signature->text) : NULL;
  const size_t length = params != NULL ? (size_t)(params - signature->text) : strlen(signature->text);
  signature->name = copy_of(signature->text, length);
}

// --- Types ----------------------------------------------------------------------------------------------------------

typedef struct type {
  const char* text;
  size_t length;
} type_t;

static bool ends_with(type_t type, const char* end) {
  const size_t length = strlen(end);
  return type.length >= length && memcmp(type.text + type.length - length, end, length) == 0;
}

// The next of a list of types, behind `*at`; false at the end of the list.
static bool next_type(const char** at, type_t* out) {
  if (**at == ')' || **at == '\0') return false;
  *at += strspn(*at, " ");
  const char* begin = *at;
  int depth = 0;
  for (; **at != '\0'; ++*at) {
    if (depth == 0 && (**at == ',' || **at == ')')) break;
    if (strchr("(<[{", **at) != NULL) ++depth;
    if (strchr(")>]}", **at) != NULL) --depth;
  }
  *out = (type_t){begin, (size_t)(*at - begin)};
  if (**at == ',') ++*at;
  return out->length > 0;
}

// The size of a type that every program has; 0 for others.
static size_t bytes_of(type_t type) {
  static const struct {
    const char* name;
    size_t bytes;
  } known[] = {{"bool", 1},  {"char", 1},           {"signed char", 1}, {"unsigned char", 1},
               {"short", 2}, {"unsigned short", 2}, {"int", 4},         {"unsigned int", 4},
               {"long", 8},  {"unsigned long", 8},  {"long long", 8},   {"unsigned long long", 8},
               {"float", 4}, {"double", 8},         {"__half", 2},      {"__nv_bfloat16", 2},
               {"dim3", 12}, {"uint3", 12},         {"float2", 8},      {"float4", 16},
               {"int2", 8},  {"int4", 16}};
  if (ends_with(type, "*")) return sizeof(void*);
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
    if (strlen(known[i].name) == type.length && memcmp(known[i].name, type.text, type.length) == 0) {
      return known[i].bytes;
    }
  }
  return 0;
}

static gcap_sim_param_kind_t kind_of(type_t type) {
  if (!ends_with(type, "*")) return bytes_of(type) != 0 ? GCAP_SIM_PARAM_VALUE : GCAP_SIM_PARAM_WORDS;
  return ends_with(type, " const*") ? GCAP_SIM_PARAM_SOURCE : GCAP_SIM_PARAM_TARGET;
}

static bool is_table(type_t type) { return ends_with(type, "**") || ends_with(type, "* const*"); }

// --- Signatures -----------------------------------------------------------------------------------------------------

static size_t count_types(const char* list) {
  size_t count = 0;
  for (type_t type; next_type(&list, &type);) ++count;
  return count;
}

// The list of types, behind its parenthesis; NULL when the name does not tell, or tells what is no list of types alone.
static const char* types_of(const gcap_sim_signature_t* signature) {
  const char* params = signature->text + strlen(signature->name);
  // An expression among the types has brackets that are none: `(a)>(b)`.
  static const char* const others[] = {"decltype", "operator", ")>("};
  bool is_plain = true;
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i)
    is_plain &= strstr(signature->text, others[i]) == NULL;
  return *params == '(' && is_plain ? params + 1 : NULL;
}

static void read_kinds(gcap_sim_signature_t* signature, const char* types) {
  type_t type;
  for (size_t i = 0; i < signature->count && next_type(&types, &type); ++i) {
    signature->kinds[i] = kind_of(type);
    if (signature->bytes[i] == 0) signature->bytes[i] = bytes_of(type);
    signature->reaches_all |= is_table(type);
  }
}

gcap_sim_signature_t* gcap_sim_signature_create(const char* registered, const void* code) {
  gcap_sim_signature_t* signature = gcap_sim_calloc(1, sizeof(*signature));
  read_name(signature, registered);
  const char* types = types_of(signature);
  gcap_sim_params_t params = {0};
  signature->known = gcap_sim_fat_binary_params(code, registered, &params);
  signature->needs = gcap_sim_fat_binary_needs(code, registered);
  signature->count = params.count;
  signature->bytes = params.bytes;
  signature->offsets = params.offsets;
  if (!signature->known && types != NULL) {
    signature->known = true;
    signature->count = count_types(types);
    signature->bytes = gcap_sim_calloc(signature->count + 1, sizeof(size_t));
  }
  signature->kinds = gcap_sim_calloc(signature->count + 1, sizeof(gcap_sim_param_kind_t));
  for (size_t i = 0; i < signature->count; ++i) signature->kinds[i] = GCAP_SIM_PARAM_WORDS;
  if (types != NULL && count_types(types) == signature->count) read_kinds(signature, types);
  signature->reaches_all |= !signature->known;
  for (size_t i = 0; i < signature->count; ++i) signature->reaches_all |= signature->bytes[i] == 0;
  return signature;
}

// --- Accesses -------------------------------------------------------------------------------------------------------

// How many addresses the parameter may hold.
static size_t words_of(const gcap_sim_signature_t* signature, size_t i) {
  return signature->kinds[i] == GCAP_SIM_PARAM_VALUE ? 0 : signature->bytes[i] / sizeof(void*);
}

size_t gcap_sim_signature_accesses(const gcap_sim_signature_t* signature, void* const* args, gcap_sim_access_t* out,
                                   size_t capacity) {
  size_t count = 0;
  for (size_t i = 0; i < signature->count; ++i) {
    for (size_t word = 0; word < words_of(signature, i); ++word, ++count) {
      if (count >= capacity) continue;
      const void* address;
      memcpy(&address, (const char*)args[i] + word * sizeof(void*), sizeof(address));
      out[count] = (gcap_sim_access_t){address, address != NULL, signature->kinds[i] == GCAP_SIM_PARAM_TARGET};
    }
  }
  return count;
}

bool gcap_sim_signature_is_word(const gcap_sim_signature_t* signature, size_t index) {
  for (size_t i = 0; i < signature->count; ++i) {
    if (index < words_of(signature, i)) return signature->kinds[i] == GCAP_SIM_PARAM_WORDS;
    index -= words_of(signature, i);
  }
  return false;
}
