// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reads graphs through the driver's functions that tell of nodes. A pointer is known by its value alone, so every
// aligned word of every argument is looked at that lies between the lowest and the highest address of the program's
// memory. A call of the driver costs more than all that is done with its answer: the parameters and the name of a
// function are asked for once a read, since a handle may be another function's by the next one.
//
// Locking: none of its own over a call of the driver; names are kept under a lock over memory.
#include "doctor/record/audit_read.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/base/grow.h"
#include "doctor/record/cupti_abi.h"
#include "doctor/record/map.h"
#include "doctor/record/writer.h"

enum {
  kMaxDepth = 16,      // of child graphs
  kMaxParams = 4096,   // of a kernel; no kernel takes more than 32,764 bytes of arguments
  kDescription = 256,  // of a node: the driver's largest has 200 bytes
  kTypeKernel = 0,     // CUgraphNodeType
  kTypeCopy = 1,
  kTypeMemset = 2,
  kTypeChild = 4,
  kTypeAlloc = 10,
  kMemoryUnified = 4,  // CUmemorytype
};

static struct {
  int (*nodes)(void* graph, void** out_nodes, size_t* count);
  int (*type)(void* node, int* out_type);
  int (*kernel)(void* node, void* out_description);
  int (*param)(void* function, size_t index, size_t* out_offset, size_t* out_bytes);
  int (*copy)(void* node, void* out_description);
  int (*memset)(void* node, void* out_description);
  int (*child)(void* node, void** out_graph);
  // May be NULL.
  int (*alloc)(void* node, void* out_description);
  int (*name)(const char** out_name, void* function);
} driver;
static const gcap_doctor_cupti_t* cupti;

// --- The driver's functions ------------------------------------------------------------------------------------------

static bool find(void* library, const char* name, void* out_function) {
  void* symbol = dlsym(library, name);
  memcpy(out_function, &symbol, sizeof(symbol));
  return symbol != NULL;
}

bool gcap_doctor_audit_read_start(const gcap_doctor_cupti_t* functions) {
  cupti = functions;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const bool has_all = library != NULL && find(library, "cuGraphGetNodes", &driver.nodes) &&
                       find(library, "cuGraphNodeGetType", &driver.type) &&
                       find(library, "cuGraphKernelNodeGetParams_v2", &driver.kernel) &&
                       find(library, "cuFuncGetParamInfo", &driver.param) &&
                       find(library, "cuGraphMemcpyNodeGetParams", &driver.copy) &&
                       find(library, "cuGraphMemsetNodeGetParams", &driver.memset) &&
                       find(library, "cuGraphChildGraphNodeGetGraph", &driver.child);
  if (has_all) {
    find(library, "cuGraphMemAllocNodeGetParams", &driver.alloc);
    find(library, "cuFuncGetName", &driver.name);
  } else {
    gcap_doctor_writer_note(
        "the driver does not tell the arguments of kernels, which needs CUDA 12.4, so graphs are not audited.");
  }
  return has_all;
}

// --- What is kept ----------------------------------------------------------------------------------------------------

// Names of kernels, each once, for ever: what the driver answers ends with the function's module.
static const char* keep_name(const char* name) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static gcap_doctor_map_t known;  // index + 1, by hash
  static char** names;
  static size_t num_names, capacity;
  const char* kept = NULL;
  const uint64_t key = gcap_doctor_hash(0, name, strlen(name));
  pthread_mutex_lock(&lock);
  const uint32_t place = gcap_doctor_map_get(&known, key);
  if (place != 0) {
    kept = names[place - 1];
  } else if (gcap_doctor_grow(&names, &capacity, num_names + 1, sizeof(*names)) &&
             (names[num_names] = strdup(name)) != NULL) {
    kept = names[num_names++];
    gcap_doctor_map_set(&known, key, (uint32_t)num_names);
  }
  pthread_mutex_unlock(&lock);
  return kept;
}

// Returns the index of a new node; SIZE_MAX without memory.
static size_t add_node(gcap_doctor_audit_read_t* read, void* handle) {
  if (!gcap_doctor_grow(&read->nodes, &read->node_capacity, read->num_nodes + 1, sizeof(*read->nodes))) return SIZE_MAX;
  gcap_doctor_audit_node_t* node = &read->nodes[read->num_nodes];
  *node = (gcap_doctor_audit_node_t){.handle = handle};
  if (cupti->GetGraphNodeId(handle, &node->id) != GCAP_DOCTOR_CUPTI_SUCCESS) node->id = 0;
  return read->num_nodes++;
}

static void add_word(gcap_doctor_audit_read_t* read, size_t node, uint64_t value, gcap_doctor_audit_use_t use,
                     size_t argument, size_t offset) {
  const bool is_of_kernel = use == GCAP_DOCTOR_AUDIT_ARGUMENT || use == GCAP_DOCTOR_AUDIT_WORD;
  if (is_of_kernel && (value < read->low || value >= read->high)) return;
  if (!gcap_doctor_grow(&read->words, &read->word_capacity, read->num_words + 1, sizeof(*read->words))) return;
  read->words[read->num_words++] = (gcap_doctor_audit_word_t){.value = value,
                                                              .node = (uint32_t)node,
                                                              .argument = (uint16_t)argument,
                                                              .offset = (uint16_t)offset,
                                                              .use = (uint8_t)use};
}

void gcap_doctor_audit_read_free(gcap_doctor_audit_read_t* read) {
  free(read->nodes);
  free(read->words);
  *read = (gcap_doctor_audit_read_t){0};
}

// --- Kernels ---------------------------------------------------------------------------------------------------------

// The parameters of the functions of a read.
typedef struct layouts {
  gcap_doctor_map_t places;  // by function: index + 1 of its first parameter, which tells how many there are
  struct param {
    size_t offset, bytes;
  } * params;
  size_t num_params, capacity;
  gcap_doctor_map_t names;  // by function: index + 1
  const char** kernels;
  size_t num_kernels, kernel_capacity;
} layouts_t;

static void free_layouts(layouts_t* layouts) {
  gcap_doctor_map_clear(&layouts->places);
  gcap_doctor_map_clear(&layouts->names);
  free(layouts->params);
  free(layouts->kernels);
}

// Asks for the parameters of a function. An entry of no bytes ends them. Returns the first one's index + 1; 0 where the
// driver does not tell.
static uint32_t ask_layout(layouts_t* layouts, void* function) {
  const size_t first = layouts->num_params;
  struct param param = {0};
  int answer = 0;
  for (size_t i = 0; answer == 0 && i < kMaxParams; ++i) {
    answer = driver.param(function, i, &param.offset, &param.bytes);
    if (answer != 0) param.bytes = 0;
    if (!gcap_doctor_grow(&layouts->params, &layouts->capacity, layouts->num_params + 1, sizeof(*layouts->params)))
      return 0;
    layouts->params[layouts->num_params++] = param;
  }
  // Past the last parameter the answer is that the value is invalid.
  const bool is_told = answer == 1;
  if (!is_told || !gcap_doctor_map_set(&layouts->places, (uintptr_t)function, (uint32_t)first + 1)) return 0;
  return (uint32_t)first + 1;
}

static const char* ask_name(layouts_t* layouts, void* function) {
  const uint32_t place = gcap_doctor_map_get(&layouts->names, (uintptr_t)function);
  if (place != 0) return layouts->kernels[place - 1];
  const char* name = NULL;
  if (driver.name == NULL || driver.name(&name, function) != 0 || name == NULL) return NULL;
  name = keep_name(name);
  if (name == NULL || !gcap_doctor_grow(&layouts->kernels, &layouts->kernel_capacity, layouts->num_kernels + 1,
                                        sizeof(*layouts->kernels))) {
    return name;
  }
  layouts->kernels[layouts->num_kernels++] = name;
  gcap_doctor_map_set(&layouts->names, (uintptr_t)function, (uint32_t)layouts->num_kernels);
  return name;
}

// Where the arguments lie one behind the other; NULL if `extra` does not say.
static const char* packed_of(void* const* extra, size_t* out_bytes) {
  enum { kBuffer = 1, kBytes = 2 };
  const char* buffer = NULL;
  *out_bytes = 0;
  for (; extra != NULL && extra[0] != NULL; extra += 2) {
    if ((uintptr_t)extra[0] == kBuffer) buffer = extra[1];
    if ((uintptr_t)extra[0] == kBytes) memcpy(out_bytes, extra[1], sizeof(*out_bytes));
  }
  return buffer;
}

// The aligned words of an argument. Where they are aligned is told by the place among all arguments.
static void add_argument(gcap_doctor_audit_read_t* read, size_t node, size_t argument, const struct param* param,
                         const char* bytes) {
  const gcap_doctor_audit_use_t use = param->bytes == 8 ? GCAP_DOCTOR_AUDIT_ARGUMENT : GCAP_DOCTOR_AUDIT_WORD;
  for (size_t i = (8 - param->offset % 8) % 8; i + 8 <= param->bytes; i += 8) {
    uint64_t value;
    memcpy(&value, bytes + i, sizeof(value));
    const size_t before = read->num_words;
    add_word(read, node, value, use, argument, i);
    if (read->num_words != before) read->words[before].bytes = (uint16_t)param->bytes;
  }
}

static void add_kernel(gcap_doctor_audit_read_t* read, layouts_t* layouts, size_t node, const char* description) {
  void *function, **params, **extra;
  memcpy(&function, description, sizeof(function));
  memcpy(&params, description + GCAP_DOCTOR_CUDA_KERNEL_PARAMS, sizeof(params));
  memcpy(&extra, description + GCAP_DOCTOR_CUDA_KERNEL_EXTRA, sizeof(extra));
  uint32_t place = function != NULL ? gcap_doctor_map_get(&layouts->places, (uintptr_t)function) : 0;
  if (place == 0 && function != NULL) place = ask_layout(layouts, function);
  if (function != NULL) read->nodes[node].kernel = ask_name(layouts, function);
  size_t packed_bytes;
  const char* packed = packed_of(extra, &packed_bytes);
  if (place == 0 || (params == NULL && packed == NULL && layouts->params[place - 1].bytes != 0)) {
    ++read->untold;
    return;
  }
  const struct param* param = &layouts->params[place - 1];
  for (size_t i = 0; param[i].bytes != 0; ++i) {
    const char* bytes = NULL;
    if (packed == NULL) bytes = params[i];
    if (packed != NULL && param[i].offset + param[i].bytes <= packed_bytes) bytes = packed + param[i].offset;
    if (bytes != NULL) add_argument(read, node, i, &param[i], bytes);
  }
}

void gcap_doctor_audit_read_kernel(gcap_doctor_audit_read_t* read, void* node, const void* description) {
  layouts_t layouts = {0};
  const size_t index = add_node(read, node);
  if (index != SIZE_MAX && description != NULL) add_kernel(read, &layouts, index, description);
  free_layouts(&layouts);
}

// --- Copies and memsets ----------------------------------------------------------------------------------------------

static void add_side(gcap_doctor_audit_read_t* read, size_t node, const char* description, size_t type_at,
                     size_t host_at, gcap_doctor_audit_use_t use) {
  int32_t type;
  uint64_t host, device;
  memcpy(&type, description + type_at, sizeof(type));
  memcpy(&host, description + host_at, sizeof(host));
  memcpy(&device, description + host_at + 8, sizeof(device));
  if (type == GCAP_DOCTOR_CUDA_MEMORY_HOST) {
    const size_t before = read->num_words;
    add_word(read, node, host, use, 0, 0);
    if (read->num_words != before) read->words[before].is_host = true;
  }
  if (type == GCAP_DOCTOR_CUDA_MEMORY_DEVICE || type == kMemoryUnified) add_word(read, node, device, use, 0, 0);
}

static void add_copy(gcap_doctor_audit_read_t* read, size_t node, const char* description) {
  add_side(read, node, description, GCAP_DOCTOR_CUDA_COPY_3D_FROM_TYPE, GCAP_DOCTOR_CUDA_COPY_3D_FROM_HOST,
           GCAP_DOCTOR_AUDIT_COPY_FROM);
  add_side(read, node, description, GCAP_DOCTOR_CUDA_COPY_3D_TO_TYPE, GCAP_DOCTOR_CUDA_COPY_3D_TO_HOST,
           GCAP_DOCTOR_AUDIT_COPY_TO);
}

static void add_memset(gcap_doctor_audit_read_t* read, size_t node, const char* description) {
  uint64_t address;
  memcpy(&address, description, sizeof(address));
  add_word(read, node, address, GCAP_DOCTOR_AUDIT_MEMSET, 0, 0);
}

void gcap_doctor_audit_read_copy(gcap_doctor_audit_read_t* read, void* node, const void* description) {
  const size_t index = add_node(read, node);
  if (index != SIZE_MAX && description != NULL) add_copy(read, index, description);
}

void gcap_doctor_audit_read_memset(gcap_doctor_audit_read_t* read, void* node, const void* description) {
  const size_t index = add_node(read, node);
  if (index != SIZE_MAX && description != NULL) add_memset(read, index, description);
}

// --- Graphs ----------------------------------------------------------------------------------------------------------

static void add_graph(gcap_doctor_audit_read_t* read, layouts_t* layouts, void* graph, int depth);

static void read_node(gcap_doctor_audit_read_t* read, layouts_t* layouts, void* handle, int depth) {
  int type;
  _Alignas(16) char description[kDescription] = {0};
  if (driver.type(handle, &type) != 0) return;
  const size_t node = add_node(read, handle);
  if (node == SIZE_MAX) return;
  void* child = NULL;
  switch (type) {
    case kTypeKernel:
      if (driver.kernel(handle, description) == 0) {
        add_kernel(read, layouts, node, description);
      } else {
        ++read->untold;
      }
      break;
    case kTypeCopy:
      if (driver.copy(handle, description) == 0) add_copy(read, node, description);
      break;
    case kTypeMemset:
      if (driver.memset(handle, description) == 0) add_memset(read, node, description);
      break;
    case kTypeChild:
      if (driver.child(handle, &child) == 0 && child != NULL) add_graph(read, layouts, child, depth + 1);
      read->nodes[node].inner = (uint32_t)(read->num_nodes - 1 - node);
      break;
    case kTypeAlloc:
      if (driver.alloc != NULL && driver.alloc(handle, description) == 0) {
        uint64_t bytes;
        memcpy(&bytes, description + GCAP_DOCTOR_CUDA_ALLOC_BYTES, sizeof(bytes));
        read->allocated_bytes += bytes;
      }
      break;
    default: break;
  }
}

static void add_graph(gcap_doctor_audit_read_t* read, layouts_t* layouts, void* graph, int depth) {
  size_t count = 0;
  if (depth > kMaxDepth || driver.nodes(graph, NULL, &count) != 0 || count == 0) return;
  void** nodes = calloc(count, sizeof(*nodes));
  if (nodes == NULL) return;
  if (driver.nodes(graph, nodes, &count) == 0) {
    for (size_t i = 0; i < count; ++i) read_node(read, layouts, nodes[i], depth);
  }
  free(nodes);
}

void gcap_doctor_audit_read_graph(gcap_doctor_audit_read_t* read, void* graph) {
  layouts_t layouts = {0};
  add_graph(read, &layouts, graph, 0);
  free_layouts(&layouts);
}
