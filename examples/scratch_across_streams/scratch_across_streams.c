// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch knows which stream used a block last. A block that the producer freed is the producer's again at once, since
// its stream keeps the order; another stream gets the block only after that stream has waited for the producer. No
// event is recorded for that and nothing is asked of the driver: the wait that the program makes anyway is what scratch
// sees. It prints:
//
//     the producer again:             its own block
//     the consumer before it waited:  other memory
//     the consumer after it waited:   the producer's block

#include <stdio.h>

#include "gcap/allocator.h"
#include "gcap/scratch.h"
#include "gcap/stream.h"

#define BYTES ((size_t)1 << 20)

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

int main(void) {
  gcap_stream_t *producer, *consumer;
  gcap_allocator_t* memory;
  gcap_scratch_t* scratch;
  TRY(gcap_stream_create(/*device_id=*/0, &producer));
  TRY(gcap_stream_create(/*device_id=*/0, &consumer));
  TRY(gcap_device_allocator_create(/*device_id=*/0, &memory));
  TRY(gcap_scratch_create(memory, /*options=*/NULL, &scratch));

  // The producer writes a block and frees it. The write is still under way: to free is to say that no further work of
  // this stream comes.
  void *first, *again, *early, *late;
  TRY(gcap_scratch_alloc(scratch, BYTES, producer, &first));
  TRY(GCAP_CUDA(cudaMemsetAsync(first, 1, BYTES, gcap_stream_handle(producer))));
  TRY(gcap_scratch_free(scratch, first));

  TRY(gcap_scratch_alloc(scratch, BYTES, producer, &again));
  printf("the producer again:             %s\n", again == first ? "its own block" : "other memory");
  TRY(gcap_scratch_free(scratch, again));

  TRY(gcap_scratch_alloc(scratch, BYTES, consumer, &early));
  printf("the consumer before it waited:  %s\n", early == first ? "the producer's block" : "other memory");

  gcap_notification_t* done;
  TRY(gcap_notification_create(producer, &done));
  TRY(gcap_notification_record(done));
  TRY(gcap_notification_wait(done, consumer));
  TRY(gcap_scratch_alloc(scratch, BYTES, consumer, &late));
  printf("the consumer after it waited:   %s\n", late == first ? "the producer's block" : "other memory");
  TRY(GCAP_CUDA(cudaMemsetAsync(late, 2, BYTES, gcap_stream_handle(consumer))));

  gcap_notification_destroy(done);
  TRY(gcap_scratch_free(scratch, late));
  TRY(gcap_scratch_free(scratch, early));
  TRY(gcap_stream_synchronize(consumer));
  TRY(gcap_stream_synchronize(producer));
  TRY(gcap_scratch_destroy(scratch));
  gcap_allocator_destroy(memory);
  TRY(gcap_stream_destroy(consumer));
  TRY(gcap_stream_destroy(producer));
  return 0;
}
