// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Each template of gcap.hpp once, for compile_test.sh: nothing of it runs.

#include "gcap/gcap.hpp"

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
template class gcap::owner<gcap_stream_pool_destroy>;
template class gcap::owner<gcap_thread_contexts_destroy>;
template class gcap::lease<gcap_allocator_free>;
template class gcap::lease<gcap_scratch_free>;
template class gcap::lease<gcap_stream_pool_release>;
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

  const auto options = gcap::filled_by<gcap_graph_replay_options_init>();
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_replay(graphs, 0, &options, nullptr));
  const auto info = gcap::filled_by<gcap_graph_manager_get_info>(graphs, 0);
  const gcap_tensor_t x = gcap::tensor(data, {static_cast<int64_t>(info.nodes), 3}), y = gcap::tensor(data);
  const gcap_graph_binding_t bindings[] = {gcap::binding_of("x", x), gcap::binding_of("y", y)};
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_sign(graphs, bindings, 2));

  gcap::status outcome = gcap::run(graphs, 0, stream, [&](cudaStream_t) { *data = 1; });
  if (!outcome.ok()) return outcome;
  const auto buffers = gcap::filled_by<gcap_graph_buffers_init>();
  outcome = gcap::run_on(graphs, 1, stream, buffers, [](cudaStream_t, void* const*) {});
  if (!outcome.ok()) return outcome;
  return gcap::run(
      runtime, 0, [](const gcap_run_resources_t& resources) { return gcap_stream_synchronize(resources.stream); },
      /*synchronize=*/true);
}
