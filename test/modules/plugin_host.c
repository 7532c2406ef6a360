// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A host of plugin.c that exports functions of its own, as any program linked with -rdynamic does: one has the name of
// an internal function of gcap, one that of a public function. The plugin must call neither.
//   plugin_host PLUGIN

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int num_calls;

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void* gcap_graph_evict(void* manager, int kept_id, void** out_evicted);
EXPORTED void* gcap_scratch_alloc(void* scratch, size_t bytes, void* stream, void** out_ptr);

void* gcap_graph_evict(void* manager, int kept_id, void** out_evicted) {
  (void)manager, (void)kept_id;
  *out_evicted = NULL;
  ++num_calls;
  return NULL;
}
void* gcap_scratch_alloc(void* scratch, size_t bytes, void* stream, void** out_ptr) {
  (void)scratch, (void)bytes, (void)stream;
  *out_ptr = NULL;
  ++num_calls;
  return NULL;
}

int main(int argc, char** argv) {
  void* plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
  void* symbol = plugin != NULL ? dlsym(plugin, "plugin_main") : NULL;
  if (symbol == NULL) {
    printf("no plugin: %s\n", argc == 2 ? dlerror() : "expected its path");
    return 1;
  }
  int (*plugin_main)(void);
  memcpy(&plugin_main, &symbol, sizeof(plugin_main));  // alike wherever dlsym exists, but C does not convert them
  const int num_good = plugin_main();
  printf("%d runs went well, the plugin called the host's functions %d times\n", num_good, num_calls);
  return num_good != 9 || num_calls != 0;
}
