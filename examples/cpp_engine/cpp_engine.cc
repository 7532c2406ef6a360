// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An engine in C++: gcap/gcap.hpp owns what the engine is made of, a lambda is the work of a run, and exceptions take
// the place of statuses. It is the engine of examples/own_engine, with a token that is another one in each run: a value
// in memory, which replays bring. The host reads the output in the run itself, and waits for it, as no capture allows:
// in a hole, whose function is a lambda too. A tap shows the token inside of the graph. In run 4 the model throws: the
// exception reaches main as if there were no C in between, the run is ended, and its scratch goes back. It prints:
//
//     run 1: graph 0 is WARMING, token 11, output 11
//     run 2: graph 0 is WARMING, token 12, output 12
//     run 3: graph 0 is CAPTURED, token 13, output 13
//     run 4: layer 1 has no weights yet; graph 1 is WARMING
//     run 5: graph 1 is WARMING, token 15, output 15
//     run 6: graph 1 is WARMING, token 16, output 16
//     run 7: graph 1 is CAPTURED, token 17, output 17
//     run 8: graph 1 is CAPTURED, token 18, output 18
//     run 9: graph 0 is CAPTURED, token 19, output 19
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
  // What a run has seen.
  struct Seen {
    unsigned char token, output;
  };

  // Runs the model of `id` on a token.
  Seen Run(int id, unsigned char token, bool has_weights) {
    // A capture gets no memory from the driver; see own_engine.c.
    if (Info(id).captures_next) gcap::check(gcap_scratch_reservation_prepare(scratch_.get(), stream_.get()));
    const gcap_graph_value_t values[] = {gcap::value_in_memory("token", token)};
    const auto changing = gcap::buffers_of(values);
    unsigned char inside[1] = {};
    gcap_graph_tap_t taps[] = {gcap::tap_into("token", inside)};
    gcap::run_args how(id, gcap_stream_handle(stream_.get()));
    how.buffers = &changing;
    how.taps = taps;
    how.num_taps = 1;
    gcap::check(gcap::run(graphs_.get(), how, [&](const gcap_run_resources_t& run) { Issue(run, has_weights); }));
    return {inside[0], output_on_host_};
  }

  gcap_graph_info_t Info(int id) { return gcap::filled_by<gcap_graph_manager_get_info>(graphs_.get(), id); }
  size_t LiveBytes() { return gcap::filled_by<gcap_scratch_get_stats>(scratch_.get()).requested_in_use_bytes; }

 private:
  // The work of a run: a model's intermediate is filled and begins with the token, and its first byte is the output.
  // The intermediate goes back to the scratch when the function is left, by a return or by an exception.
  void Issue(const gcap_run_resources_t& run, bool has_weights) {
    const cudaStream_t stream = run.cuda_stream;
    const auto* const token = gcap::value_on_device<unsigned char>(run, 0);
    auto intermediate = gcap::own<gcap_scratch_alloc>(scratch_.get(), kScratchBytes, stream_.get()).value_or_throw();
    auto* const filled = static_cast<unsigned char*>(intermediate.get());
    gcap::check(GCAP_CUDA(cudaMemsetAsync(filled, 0, kScratchBytes, stream)));
    gcap::check(GCAP_CUDA(cudaMemcpyAsync(filled, token, 1, cudaMemcpyDeviceToDevice, stream)));
    gcap::check(gcap::tap(stream, "token", filled, 1));
    if (!has_weights) throw std::runtime_error("layer 1 has no weights yet");
    gcap::check(GCAP_CUDA(cudaMemcpyAsync(output_.get(), filled, 1, cudaMemcpyDeviceToDevice, stream)));
    gcap::check(gcap::hole(run, "read output", [this](cudaStream_t on) { ReadOutput(on); }));
  }

  // The hole. The engine outlives its graphs, so the lambda may keep a pointer to the engine.
  void ReadOutput(cudaStream_t stream) {
    gcap::check(GCAP_CUDA(cudaMemcpyAsync(&output_on_host_, output_.get(), 1, cudaMemcpyDeviceToHost, stream)));
    gcap::check(GCAP_CUDA(cudaStreamSynchronize(stream)));
  }

  unsigned char output_on_host_ = 0;
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
      const Engine::Seen seen = engine.Run(id, static_cast<unsigned char>(10 + run), /*has_weights=*/run != 4);
      std::printf("graph %d is %s, token %d, output %d\n", id, gcap_graph_state_name(engine.Info(id).state), seen.token,
                  seen.output);
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
