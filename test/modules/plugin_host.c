// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A host of plugin.c that exports functions of its own, as any program linked with -rdynamic does, under names that
// gcap's internal functions had once. The plugin must not call them.
//   plugin_host PLUGIN

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int num_calls;

// The host's own cache.
void* evict(void* cache, const void* key);
void* find_graph(void* graphs, int id);

void* evict(void* cache, const void* key) {
  (void)cache, (void)key;
  ++num_calls;
  return NULL;
}
void* find_graph(void* graphs, int id) {
  (void)graphs, (void)id;
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
