// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An engine in C++: gcap/gcap.hpp owns what the engine is made of, a lambda is the work of a run, and exceptions take
// the place of statuses. It is the engine of examples/own_engine, with a token that is another one in each run: a value
// in memory, which replays bring. In run 4 the model throws: the exception reaches main as if there were no C in
// between, the run is ended, and its scratch goes back. It prints:
//
//     run 1: graph 0 is WARMING, output 11
//     run 2: graph 0 is WARMING, output 12
//     run 3: graph 0 is CAPTURED, output 13
//     run 4: layer 1 has no weights yet; graph 1 is WARMING
//     run 5: graph 1 is WARMING, output 15
//     run 6: graph 1 is WARMING, output 16
//     run 7: graph 1 is CAPTURED, output 17
//     run 8: graph 1 is CAPTURED, output 18
//     run 9: graph 0 is CAPTURED, output 19
//     4 bytes of scratch are live

#include <cuda_runtime_api.h>

#include <cstdio>
#include <stdexcept>

#include "gcap/gcap.hpp"

namespace {

constexpr size_t kScratchBytes = size_t{1} << 20;

// What the engine consists of. Members end in reverse order, which is the order that gcap asks for.
class Engine {
 public:
  // Runs the model of `id` on a token, and returns its output.
  int Run(int id, unsigned char token, bool has_weights) {
    const cudaStream_t stream = gcap_stream_handle(stream_.get());
    // A capture gets no memory from the driver; see own_engine.c.
    if (Info(id).captures_next) gcap::check(gcap_scratch_reservation_prepare(scratch_.get(), stream_.get()));
    const gcap_graph_value_t values[] = {gcap::value_in_memory("token", token)};
    const auto changing = gcap::buffers_of(values);
    gcap::run_args how(id, stream);
    how.buffers = &changing;
    gcap::check(gcap::run(graphs_.get(), how, [&](const gcap_run_resources_t& run) {
      Issue(gcap::value_on_device<unsigned char>(run, 0), has_weights);
    }));
    unsigned char output = 0;
    gcap::check(GCAP_CUDA(cudaMemcpyAsync(&output, output_.get(), 1, cudaMemcpyDeviceToHost, stream)));
    gcap::check(gcap_stream_synchronize(stream_.get()));
    return output;
  }

  gcap_graph_info_t Info(int id) { return gcap::filled_by<gcap_graph_manager_get_info>(graphs_.get(), id); }
  size_t LiveBytes() { return gcap::filled_by<gcap_scratch_get_stats>(scratch_.get()).requested_in_use_bytes; }

 private:
  // The work of a run: a model's intermediate is filled and begins with the token, and its first byte is the output.
  // The intermediate goes back to the scratch when the function is left, by a return or by an exception.
  void Issue(const unsigned char* token, bool has_weights) {
    const cudaStream_t stream = gcap_stream_handle(stream_.get());
    auto intermediate = gcap::own<gcap_scratch_alloc>(scratch_.get(), kScratchBytes, stream_.get()).value_or_throw();
    gcap::check(GCAP_CUDA(cudaMemsetAsync(intermediate.get(), 0, kScratchBytes, stream)));
    gcap::check(GCAP_CUDA(cudaMemcpyAsync(intermediate.get(), token, 1, cudaMemcpyDeviceToDevice, stream)));
    if (!has_weights) throw std::runtime_error("layer 1 has no weights yet");
    gcap::check(GCAP_CUDA(cudaMemcpyAsync(output_.get(), intermediate.get(), 1, cudaMemcpyDeviceToDevice, stream)));
  }

  gcap::stream stream_ = gcap::own<gcap_stream_create>(/*device_id=*/0).value_or_throw();
  gcap::allocator device_memory_ = gcap::own<gcap_device_allocator_create>(/*device_id=*/0).value_or_throw();
  gcap::scratch scratch_ = gcap::own<gcap_scratch_create>(device_memory_.get(), nullptr).value_or_throw();
  gcap::scratch_memory output_ =
      gcap::own<gcap_scratch_alloc>(scratch_.get(), size_t{4}, stream_.get()).value_or_throw();
  gcap::graph_manager graphs_ = gcap::own<gcap_graph_manager_create>(nullptr).value_or_throw();
};

}  // namespace

int main() try {
  Engine engine;
  constexpr int kIds[] = {0, 0, 0, 1, 1, 1, 1, 1, 0};
  int run = 0;
  for (const int id : kIds) {
    std::printf("run %d: ", ++run);
    try {
      const int output = engine.Run(id, static_cast<unsigned char>(10 + run), /*has_weights=*/run != 4);
      std::printf("graph %d is %s, output %d\n", id, gcap_graph_state_name(engine.Info(id).state), output);
    } catch (const std::runtime_error& error) {
      std::printf("%s; graph %d is %s\n", error.what(), id, gcap_graph_state_name(engine.Info(id).state));
    }
  }
  std::printf("%zu bytes of scratch are live\n", engine.LiveBytes());
  return 0;
} catch (const gcap::error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
