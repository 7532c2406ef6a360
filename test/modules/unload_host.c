// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A host that unloads plugin.c while threads that used it live on, and exit later, or exit at that moment. All that the
// plugin made is destroyed by then. Was: each such thread crashed in a destructor that was no longer there.
//   unload_host PLUGIN

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { kRounds = 20 };

typedef int (*plugin_main_t)(void);

static plugin_main_t load(const char* path, void** out_plugin) {
  plugin_main_t plugin_main = NULL;
  *out_plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* symbol = *out_plugin != NULL ? dlsym(*out_plugin, "plugin_main") : NULL;
  if (symbol == NULL) printf("no plugin: %s\n", dlerror());
  memcpy(&plugin_main, &symbol, sizeof(plugin_main));
  return plugin_main;
}

// A thread that uses the plugin, meets the host, and exits; with `stays`, only once the plugin was closed.
typedef struct user {
  plugin_main_t plugin_main;
  pthread_barrier_t *used, *closed;
  int stays, num_good;
} user_t;

static void* use(void* argument) {
  user_t* user = argument;
  user->num_good = user->plugin_main();
  pthread_barrier_wait(user->used);
  if (user->stays) pthread_barrier_wait(user->closed);
  return NULL;
}

// Gives how many runs went well, of 18.
static int one_round(const char* path) {
  void* plugin = NULL;
  const plugin_main_t plugin_main = load(path, &plugin);
  if (plugin_main == NULL) return -1;
  pthread_barrier_t used, closed;
  pthread_barrier_init(&used, NULL, 3);
  pthread_barrier_init(&closed, NULL, 2);
  user_t users[2] = {{plugin_main, &used, &closed, 0, 0}, {plugin_main, &used, &closed, 1, 0}};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, use, &users[i]);
  pthread_barrier_wait(&used);
  const int answer = dlclose(plugin);  // while the first thread exits
  pthread_barrier_wait(&closed);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&used);
  pthread_barrier_destroy(&closed);
  return answer == 0 ? users[0].num_good + users[1].num_good : -1;
}

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  int num_good = 0;
  for (int round = 0; round < kRounds; ++round) num_good += one_round(argv[1]);
  printf("%d runs went well, every thread ended well\n", num_good);
  return num_good != 18 * kRounds;
}
