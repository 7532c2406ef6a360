// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The options that gcap knows. Keys, defaults and meanings of ONNX Runtime's CUDA EP are those of its
// OrtCUDAProviderOptionsV2 (cuda_provider_options.h), of its parser (cuda_execution_provider_info.cc) and of the CUDA
// plugin (plugin/cuda_ep_factory.cc). An option that only its default leaves as it is stands here too, so that a host's
// configuration is not refused for a key that asks for nothing.

#include "lib/options/inner.h"

#include "gcap/options.h"
#include "lib/options/rows.h"

#define OPTIONS gcap_options_t

static const gcap_option_t provider_rows[] = {
    ROW("device_id", ORT, GCAP, DEVICE, device_id, "the device of all that the runtime makes"),
    // Graphs.
    ROW("enable_cuda_graph", ORT, GCAP, BOOL, enable_cuda_graph, "capture and replay graphs"),
    ROW("min_num_runs_before_cuda_graph_capture", ORT, GCAP, COUNT, graph.min_num_runs_before_capture,
        "eager runs of an id before its capture"),
    ROW("graph.scope", OWN, GCAP, SCOPE, graph_scope,
        "whether each thread has a stream and graphs of its own, or all threads share them and take turns; "
        "session where there is a unified stream"),
    ROW("graph.policy", OWN, GCAP, POLICY, graph.policy,
        "capture after a number of runs, or once the allocations of a run repeat"),
    ROW("graph.max_runs_before_capture", OWN, GCAP, COUNT, graph.max_runs_before_capture,
        "with policy stable: capture after so many runs in any case"),
    ROW("graph.backoff_runs", OWN, GCAP, COUNT, graph.backoff_runs,
        "runs that stay eager after a failed capture; doubles with each further failure"),
    ROW("graph.rerun_failed_capture", OWN, GCAP, BOOL, graph.rerun_failed_capture,
        "issue the work again, eagerly, after a failed capture"),
    ROW("graph.upload", OWN, GCAP, BOOL, graph.upload, "upload a new executable before its first launch"),
    ROW("graph.keep_source", OWN, GCAP, BOOL, graph.keep_source, "keep the captured graph, for a dump"),
    ROW("graph.max_graphs", OWN, GCAP, NUMBER, graph.max_graphs,
        "most graphs of a thread, or of all that share them; 0: no limit"),
    ROW("graph.max_bytes", OWN, GCAP, BYTES, graph.max_bytes,
        "most bytes that these graphs keep, with their executables; 0: no limit"),
    ROW("graph.max_ids_without_graph", OWN, GCAP, NUMBER, graph.max_ids_without_graph,
        "ids without a graph that are remembered; 0: no limit"),
    ROW("graph.max_variants", OWN, GCAP, NUMBER, graph.max_variants,
        "most graphs of an id that differ by their guards or by how their buffers lie; 0: no limit"),
    ROW("graph.ledger_calls", OWN, GCAP, CALLS, graph.capture.ledger_calls,
        "newest calls of a capture that its ledger keeps; 0: no ledger"),
    ROW("graph.audit", OWN, GCAP, AUDIT, graph.audit,
        "look whether the memory that graphs work on is still theirs: never, when asked, or before each replay, which "
        "is "
        "then refused"),
    // Streams.
    ROW("has_user_compute_stream", ORT, GCAP, BOOL, has_user_stream,
        "there is a user stream; needs user_compute_stream, and is 1 where that is not 0"),
    ROW("user_compute_stream", ORT, GCAP, ADDRESS, user_stream,
        "the application's stream for all work; given as 0, with has_user_compute_stream, the legacy default "
        "stream. May be combined with gpu_external_alloc, unlike in ONNX Runtime: an application whose "
        "memory is in the order of a stream lends both"),
    ROW("use_ep_level_unified_stream", ORT, GCAP, BOOL, use_unified_stream,
        "one stream for all threads, which take turns; 1 with a user stream or external memory, whatever is "
        "given"),
    ROW("do_copy_in_default_stream", ORT, GCAP, BOOL, do_copy_in_default_stream,
        "a copy without a stream goes to the stream of the thread's runs, not to one of its own"),
    // Memory.
    ROW("gpu_external_alloc", ORT, GCAP, ADDRESS, external_alloc,
        "`void* (*)(size_t)`: memory comes from the application; together with gpu_external_free"),
    ROW("gpu_external_free", ORT, GCAP, ADDRESS, external_free, "`void (*)(void*)`"),
    ROW("gpu_external_empty_cache", ORT, GCAP, ADDRESS, external_empty_cache,
        "`void (*)(void)`: gives back what the application caches; optional"),
    ROW_ALSO("arena.max_mem", ORT, GCAP, BYTES, arena.memory_limit_bytes,
             "most bytes that the arena holds; 0: no limit", "gpu_mem_limit", "cuda_mem_limit"),
    ROW_ALSO("arena.extend_strategy", ORT, GCAP, STRATEGY, arena.extend_as_requested,
             "whether the arena grows ahead of requests", "arena_extend_strategy"),
    ROW("arena.initial_chunk_size_bytes", ORT, GCAP, BYTES, arena.initial_chunk_bytes,
        "least size of the first region"),
    ROW("arena.initial_growth_chunk_size_bytes", ORT, GCAP, BYTES, arena.initial_growth_chunk_bytes,
        "least size of the first region after a trim"),
    ROW("arena.max_power_of_two_extend_bytes", ORT, GCAP, BYTES, arena.max_extend_bytes,
        "no later region is larger unless a request is"),
    ROW("arena.max_dead_bytes_per_chunk", ORT, GCAP, BYTES, arena.max_dead_bytes_per_chunk,
        "most excess of a block that is handed out whole"),
    ROW("arena.use_cuda_mempool", ORT, GCAP, BOOL, use_mempool, "a CUDA memory pool below the arena"),
    ROW("arena.cuda_mempool_release_threshold", ORT, GCAP, BYTES_64, mempool.release_threshold_bytes,
        "what that pool keeps at a synchronization"),
    ROW("arena.cuda_mempool_bytes_to_keep_on_shrink", ORT, GCAP, BYTES, mempool.bytes_kept_on_trim,
        "what that pool keeps in a trim"),
    ROW("arena.bypass", OWN, GCAP, BOOL, arena.bypass,
        "no caching by gcap: each allocation is a request to what lies below, and goes back once it is "
        "passed"),
    ROW("arena.share_graph_memory", OWN, GCAP, BOOL, share_graph_memory,
        "all graphs of a stream share one reservation of scratch"),
    ROW("arena.red_zones", OWN, GCAP, BOOL, arena.red_zones, "look for writes beside blocks"),
    ROW("arena.poison_on_free", OWN, GCAP, BOOL, arena.poison_on_free, "fill freed blocks with NaN"),
    ROW("arena.recorded_operations", OWN, GCAP, NUMBER, arena.recorded_operations,
        "calls that messages about addresses remember"),
    ROW("arena.trace_file", OWN, GCAP, PATH, trace_file, "a line for each call of the arena"),
    NO_FIELD("default_memory_arena_cfg", REFUSED, ADDRESS,
             "a C struct of ONNX Runtime's, which gcap does not know; give the keys arena.* instead"),
    // Kernels.
    ROW_ALSO("cudnn_conv_algo_search", ORT, KERNELS, CONV_SEARCH, kernels.conv_search,
             "how the algorithm of a convolution is chosen", "cudnn_conv_algo"),
    ROW("cudnn_conv_use_max_workspace", ORT, KERNELS, BOOL, kernels.conv_use_max_workspace,
        "algorithms of convolutions may use all the memory they want, else 32 MiB"),
    ROW("cudnn_conv1d_pad_to_nc1d", ORT, KERNELS, BOOL, kernels.conv1d_pad_to_nc1d,
        "[N,C,D] becomes [N,C,1,D], else [N,C,D,1]"),
    ROW("fuse_conv_bias", ORT, KERNELS, BOOL, kernels.fuse_conv_bias,
        "bias and activation may be fused into a convolution"),
    ROW("use_tf32", ORT, KERNELS, BOOL, kernels.use_tf32, "products of floats may use TF32"),
    ROW_ALSO("prefer_nhwc", ORT, KERNELS, BOOL, kernels.prefer_nhwc, "convolutions and pools want the channels last",
             "prefer_nhwc_layout"),
    ROW("enable_cudnn", ORT, KERNELS, BOOL, kernels.use_cudnn, "kernels may use cuDNN"),
    NO_FIELD("enable_skip_layer_norm_strict_mode", REFUSED, BOOL,
             "gcap has no SkipLayerNormalization to make more exact"),
    NO_FIELD("sdpa_kernel", REFUSED, COUNT, "gcap has no scaled dot-product attention to choose kernels for"),
    NO_FIELD("tunable_op_enable", REFUSED, BOOL, "gcap has no tunable operators"),
    NO_FIELD("tunable_op_tuning_enable", REFUSED, BOOL, "gcap has no tunable operators"),
    NO_FIELD("tunable_op_max_tuning_duration_ms", REFUSED, COUNT, "gcap has no tunable operators"),
    NO_FIELD("gelu_disable_half2", REFUSED, BOOL, "gcap has no half2 version of Gelu to disable"),
};

_Static_assert(GCAP_NUM_OPTION_ROWS(provider_rows) <= GCAP_OPTION_MAX_ROWS, "parsing has a place for each row");

const gcap_option_table_t gcap_provider_option_table = {
    .noun = "option",
    .function = "gcap_options_parse",
    .rows = provider_rows,
    .num_rows = GCAP_NUM_OPTION_ROWS(provider_rows),
};
