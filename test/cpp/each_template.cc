// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Each template of gcap.hpp once, with the owners of kit.hpp, for compile_test.sh: nothing of it runs.

#include "gcap/kit/kit.hpp"

template class gcap::owner<gcap_allocator_destroy>;
template class gcap::owner<gcap_capture_abort>;
template class gcap::owner<gcap_ep_destroy>;
template class gcap::owner<gcap_graph_manager_destroy>;
template class gcap::owner<gcap_io_binding_destroy>;
template class gcap::owner<gcap_notification_destroy>;
template class gcap::owner<gcap_retained_release>;
template class gcap::owner<gcap_runtime_destroy>;
template class gcap::owner<gcap_scratch_destroy>;
template class gcap::owner<gcap_scratch_reservation_release>;
template class gcap::owner<gcap_session_destroy>;
template class gcap::owner<gcap_stream_destroy>;
template class gcap::lease<gcap_allocator_free>;
template class gcap::lease<gcap_scratch_free>;
template class gcap::result<gcap::stream>;

gcap::status use(gcap_graph_manager_t* graphs, gcap_runtime_t* runtime, cudaStream_t stream, float* data) {
  auto on = gcap::own<gcap_stream_create>(0);
  if (!on) return std::move(on).failure();
  auto arena = gcap::own<gcap_scratch_create>(nullptr, nullptr);
  if (!arena) return std::move(arena).failure();
  auto block = gcap::own<gcap_scratch_alloc>(arena->get(), size_t{64}, on->get());
  if (!block) return std::move(block).failure();
  auto scope = gcap::own<gcap_capture_begin>(stream, nullptr);
  if (!scope) return std::move(scope).failure();
  auto ended = gcap::end_capture(*scope);
  if (!ended) return std::move(ended).failure();

  gcap::run_args how(0);
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_replay(graphs, &how, nullptr));
  const auto info = gcap::filled_by<gcap_graph_manager_get_info>(graphs, 0);
  const gcap_tensor_t x = gcap::tensor(data, {static_cast<int64_t>(info.nodes), 3}), y = gcap::tensor(data);
  const gcap_graph_binding_t bindings[] = {gcap::binding_of("x", x), gcap::binding_of("y", y)};
  how.bindings = bindings;
  how.num_bindings = 2;
  how.stream = stream;
  GCAP_RETURN_IF_ERROR(gcap::run(graphs, how, [&](cudaStream_t) { *data = 1; }));
  GCAP_RETURN_IF_ERROR(gcap::run(graphs, {1, stream}, [] {}));
  const auto key = gcap::key_of(info.captures, "captures");
  GCAP_RETURN_IF_ERROR(gcap::run(graphs, {&key, stream}, [] {}));
  const gcap::number<float> scale = {"scale", 0, 1};
  const gcap_graph_value_t values[] = {scale, gcap::value_in_memory("info", info)};
  const auto changing = gcap::buffers_of(values);
  how.buffers = &changing;
  GCAP_RETURN_IF_ERROR(gcap::run(graphs, how, [&](const gcap_run_resources_t& resources) {
    *data = gcap::value<float>(resources, 0);
    static_cast<void>(gcap::value_on_device<gcap_graph_info_t>(resources, 1));
  }));
  gcap_graph_tap_t taps[] = {gcap::tap_into("data", data, 1)};
  how.taps = taps;
  how.num_taps = 1;
  const auto holed = [&](const gcap_run_resources_t& resources) -> gcap::status {
    GCAP_RETURN_IF_ERROR(gcap::hole(resources, "nothing", [] {}));
    GCAP_RETURN_IF_ERROR(gcap::hole(
        resources, "data", [data](cudaStream_t) { *data = 1; }, true));
    return gcap::tap(stream, "data", data, 1);
  };
  GCAP_RETURN_IF_ERROR(gcap::run(graphs, how, holed));
  return gcap::run(runtime, 0,
                   [](const gcap_run_resources_t& resources) { return gcap_stream_synchronize(resources.stream); });
}
