// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sets the words of a relocation in an executable: addresses of buffers and bytes of values. All words are patched
// first, in the arguments that the contents keep. Then each node that has one is set once. If the driver refuses a
// node, the words are patched and set once more, to what they were. Nothing is shared, so nothing is locked.

#include <string.h>

#include "lib/contents/contents.h"
#include "lib/contents/driver.h"
#include "lib/contents/relocation.h"

// --- Moving ---------------------------------------------------------------------------------------------------------

static gcap_status_t set_kernel(gcap_relocation_t* relocation, cudaGraphExec_t exec, const gcap_contents_node_t* node,
                                cudaGraphNode_t handle) {
  unsigned char* bytes = gcap_contents_bytes_of(relocation->contents, node);
  const gcap_contents_part_t* parts = gcap_contents_parts_of(relocation->contents, node);
  gcap_driver_kernel_t kernel = {.function = node->function, .kernel = node->kernel, .context = node->context};
  memcpy(kernel.grid, node->grid, sizeof(kernel.grid));
  memcpy(kernel.block, node->block, sizeof(kernel.block));
  kernel.shared_bytes = node->shared_bytes;
  size_t num_bytes = node->bytes;
  void* extra[] = {GCAP_DRIVER_EXTRA_BUFFER, bytes, GCAP_DRIVER_EXTRA_BYTES, &num_bytes, GCAP_DRIVER_EXTRA_END};
  for (size_t i = 0; i < node->num_parts; ++i) relocation->params[i] = bytes + parts[i].offset;
  kernel.params = node->by_extra ? NULL : relocation->params;
  kernel.extra = node->by_extra ? extra : NULL;
  gcap_driver_t driver;
  GCAP_RETURN_IF_ERROR(gcap_driver_get(&driver));
  return GCAP_DRIVER("cuGraphExecKernelNodeSetParams", driver.set_kernel(exec, handle, &kernel));
}

// The driver sets a copy of several rows to what it is, and to nothing else. So gcap refuses such a copy itself: a copy
// that is set as it is would pass for one that moves. Measured on an H200, driver 580.159.04:
// probe.single.rows_in_an_executable.
static gcap_status_t set_copy(const gcap_relocation_t* relocation, cudaGraphExec_t exec,
                              const gcap_contents_node_t* node, cudaGraphNode_t handle) {
  const struct cudaMemcpy3DParms copy = gcap_contents_copy_of(relocation->contents, node);
  if (copy.extent.height > 1 || copy.extent.depth > 1) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "it copies %zu rows of %zu bytes, and only copies of one row change; remedy: a kernel that "
                       "copies the rows, or a copy of each row; see docs/graphs.md",
                       copy.extent.height * copy.extent.depth, copy.extent.width);
  }
  return GCAP_CUDA(cudaGraphExecMemcpyNodeSetParams(exec, handle, &copy));
}

// `handle` names the node in the graph that the executable was made from.
static gcap_status_t set_in(gcap_relocation_t* relocation, cudaGraphExec_t exec, const gcap_contents_node_t* node,
                            cudaGraphNode_t handle) {
  if (node->type == cudaGraphNodeTypeKernel) return set_kernel(relocation, exec, node, handle);
  if (node->type == cudaGraphNodeTypeMemcpy) return set_copy(relocation, exec, node, handle);
  struct cudaMemsetParams fill;
  memcpy(&fill, gcap_contents_bytes_of(relocation->contents, node), sizeof(fill));
  return GCAP_CUDA(cudaGraphExecMemsetNodeSetParams(exec, handle, &fill));
}

static gcap_status_t set_node(gcap_relocation_t* relocation, const cudaGraphExec_t* execs, size_t index) {
  const gcap_contents_node_t* node = &relocation->contents->nodes[index];
  return set_in(relocation, execs[node->graph], node, node->node);
}

// Puts the buffer's address into the arguments, and marks the nodes.
static void patch_buffer(gcap_relocation_t* relocation, size_t buffer, uintptr_t address) {
  relocation->buffers[buffer].address = address;
  for (size_t i = relocation->first_word[buffer]; i < relocation->first_word[buffer + 1]; ++i) {
    const gcap_relocation_word_t* word = &relocation->words[i];
    const gcap_contents_node_t* node = &relocation->contents->nodes[word->node];
    const uintptr_t pointer = address + word->distance;
    memcpy(gcap_contents_bytes_of(relocation->contents, node) + word->offset, &pointer, sizeof(pointer));
    relocation->is_changed[word->node] = true;
  }
}

// The same for a value.
static void patch_value(gcap_relocation_t* relocation, size_t value, const gcap_value_bytes_t* bytes) {
  relocation->values[value].now = *bytes;
  for (size_t i = relocation->first_value_word[value]; i < relocation->first_value_word[value + 1]; ++i) {
    const gcap_value_word_t* word = &relocation->value_words[i];
    const gcap_contents_node_t* node = &relocation->contents->nodes[word->node];
    memcpy(gcap_contents_bytes_of(relocation->contents, node) + word->offset, bytes->at + word->from, word->bytes);
    relocation->is_changed[word->node] = true;
  }
}

// Sets a node that is marked, and unmarks it. After a failure nodes are only unmarked.
static void set_changed(gcap_relocation_t* relocation, const cudaGraphExec_t* execs, size_t node,
                        gcap_status_t* status) {
  if (!relocation->is_changed[node]) return;
  relocation->is_changed[node] = false;
  if (*status == NULL) *status = set_node(relocation, execs, node);
}

// What is another one goes to where the present one is, and the present one to `addresses` and `values`.
static void exchange(gcap_relocation_t* relocation, uintptr_t* addresses, gcap_value_bytes_t* values) {
  for (size_t i = 0; addresses != NULL && i < relocation->num_buffers; ++i) {
    const uintptr_t old = relocation->buffers[i].address;
    if (addresses[i] != 0 && addresses[i] != old) patch_buffer(relocation, i, addresses[i]);
    addresses[i] = old;
  }
  for (size_t i = 0; values != NULL && i < relocation->num_values; ++i) {
    const gcap_value_bytes_t old = relocation->values[i].now;
    if (memcmp(values[i].at, old.at, relocation->values[i].bytes) != 0) patch_value(relocation, i, &values[i]);
    values[i] = old;
  }
}

// Exchanges, and sets the nodes that read what is another one now.
static gcap_status_t swap(gcap_relocation_t* relocation, const cudaGraphExec_t* execs, uintptr_t* addresses,
                          gcap_value_bytes_t* values) {
  exchange(relocation, addresses, values);
  gcap_status_t status = NULL;
  for (size_t i = 0; addresses != NULL && i < relocation->num_buffers; ++i) {
    if (addresses[i] == relocation->buffers[i].address) continue;
    for (size_t k = relocation->first_word[i]; k < relocation->first_word[i + 1]; ++k) {
      set_changed(relocation, execs, relocation->words[k].node, &status);
    }
  }
  for (size_t i = 0; values != NULL && i < relocation->num_values; ++i) {
    if (memcmp(values[i].at, relocation->values[i].now.at, relocation->values[i].bytes) == 0) continue;
    for (size_t k = relocation->first_value_word[i]; k < relocation->first_value_word[i + 1]; ++k) {
      set_changed(relocation, execs, relocation->value_words[k].node, &status);
    }
  }
  return status;
}

// Measured on an H200: the driver crashes when it sets a kernel node for a thread that has no current context. A thread
// gets one with its first call of the runtime that needs one, as the last one here.
static gcap_status_t make_context_current(cudaGraphExec_t exec) {
  gcap_driver_t driver;
  void* context = NULL;
  unsigned long long flags = 0;
  GCAP_RETURN_IF_ERROR(gcap_driver_get(&driver));
  GCAP_RETURN_IF_ERROR(GCAP_DRIVER("cuCtxGetCurrent", driver.current_context(&context)));
  return context != NULL ? NULL : GCAP_CUDA(cudaGraphExecGetFlags(exec, &flags));
}

static cudaGraphExec_t last_of(const gcap_relocation_t* relocation, const cudaGraphExec_t* execs) {
  return execs[relocation->contents->num_graphs - 1];
}

// Marks each node that has a word.
static void mark_all(gcap_relocation_t* relocation) {
  for (size_t i = 0; i < relocation->num_words; ++i) relocation->is_changed[relocation->words[i].node] = true;
  for (size_t i = 0; i < relocation->num_value_words; ++i) {
    relocation->is_changed[relocation->value_words[i].node] = true;
  }
}

gcap_status_t gcap_relocation_check_nodes(gcap_relocation_t* relocation, const cudaGraphExec_t* execs) {
  GCAP_RETURN_IF_ERROR(make_context_current(last_of(relocation, execs)));
  mark_all(relocation);
  gcap_status_t status = NULL;
  for (size_t i = 0; i < relocation->contents->count; ++i) {
    if (!relocation->is_changed[i]) continue;
    relocation->is_changed[i] = false;
    if (status != NULL) continue;
    status = set_node(relocation, execs, i);
    if (status == NULL) continue;
    char where[256];
    gcap_contents_write_node(relocation->contents, &relocation->contents->nodes[i], where, sizeof(where));
    status = gcap_status_annotate(status, GCAP_FAILED_PRECONDITION,
                                  "%s: the driver does not change this node in an executable", where);
  }
  return status;
}

static gcap_status_t set_twin(gcap_relocation_t* relocation, const gcap_contents_node_t* node, cudaGraph_t clone,
                              cudaGraphExec_t exec) {
  char where[256];
  gcap_contents_write_node(relocation->contents, node, where, sizeof(where));
  if (node->parent != GCAP_CONTENTS_TOP) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: its arguments were moved, and a clone has those of the capture",
                       where);
  }
  cudaGraphNode_t twin = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphNodeFindInClone(&twin, node->node, clone)));
  gcap_status_t status = set_in(relocation, exec, node, twin);
  return status == NULL ? NULL : gcap_status_annotate(status, gcap_status_code(status), "%s", where);
}

gcap_status_t gcap_relocation_set_clone(gcap_relocation_t* relocation, size_t graph, size_t end, cudaGraph_t clone,
                                        cudaGraphExec_t exec) {
  GCAP_RETURN_IF_ERROR(make_context_current(exec));
  mark_all(relocation);
  gcap_status_t status = NULL;
  for (size_t i = 0; i < relocation->contents->count; ++i) {
    const gcap_contents_node_t* node = &relocation->contents->nodes[i];
    const bool is_wanted = relocation->is_changed[i] && node->graph == graph && i < end;
    relocation->is_changed[i] = false;
    if (is_wanted && status == NULL) status = set_twin(relocation, node, clone, exec);
  }
  return status;
}

gcap_status_t gcap_relocation_move(gcap_relocation_t* relocation, const cudaGraphExec_t* execs, uintptr_t* addresses,
                                   gcap_value_bytes_t* values, bool* out_torn) {
  *out_torn = false;
  GCAP_RETURN_IF_ERROR(make_context_current(last_of(relocation, execs)));
  gcap_status_t status = swap(relocation, execs, addresses, values);
  if (status == NULL) return NULL;
  gcap_status_t undone = swap(relocation, execs, addresses, values);
  *out_torn = undone != NULL;
  return gcap_status_join(status, undone);
}
