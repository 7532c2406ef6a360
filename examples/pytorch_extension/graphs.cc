// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap's graph manager as a PyTorch extension. A Python callable is the work of a run on PyTorch's current stream: it
// is warmed up, captured and replayed by id. See README.md for what it must see to.
//
// Memory, both ways:
// - What PyTorch's operators allocate in a capture is the graph's. As torch.cuda.graph does, the capture gets a pool of
//   PyTorch's allocator of its own. The pool is opened in the work, closed by a close step of the capture, and released
//   when gcap releases the graph, or at the end of a capture that failed.
// - gcap's scratch stands on PyTorch's allocator, by examples/external_allocator.
// Thread: all under the interpreter's lock.

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <torch/extension.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "examples/external_allocator/callbacks.h"
#include "gcap/gcap.hpp"

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

gcap::run_args OnCurrentStream(int id) { return {id, c10::cuda::getCurrentCUDAStream().stream()}; }

// --- Memory of a graph ----------------------------------------------------------------------------------------------

// A pool of PyTorch's allocator for one capture.
struct Pool {
  c10::DeviceIndex device;
  c10::cuda::MempoolId_t id;
};

// No exception may leave a callback of gcap.
template <class Step>
void LogFailure(const char* what, Step step) {
  try {
    step();
  } catch (const std::exception& exception) {
    gcap_log(GCAP_LOG_ERROR, "PyTorch's allocator could not %s: %s", what, exception.what());
  }
}

void ClosePool(void* user, bool /*committed*/) {
  const Pool* const pool = static_cast<Pool*>(user);
  LogFailure("close a graph's pool", [&] { caching::endAllocateToPool(pool->device, pool->id); });
}

void ReleasePool(void* user) {
  const std::unique_ptr<Pool> pool(static_cast<Pool*>(user));
  LogFailure("release a graph's pool", [&] { caching::releasePool(pool->device, pool->id); });
}

// Gives the open capture a pool: to its stream, and to all others that take part in it.
gcap::status OpenPool(c10::DeviceIndex device) {
  gcap_capture_t* const scope = gcap_capture_current();
  unsigned long long capture = 0;
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetCaptureInfo(gcap_capture_stream(scope), &state, &capture)));
  auto pool = std::make_unique<Pool>(Pool{device, at::cuda::graph_pool_handle()});
  caching::beginAllocateToPool(device, pool->id, [capture](cudaStream_t stream) {
    unsigned long long other = 0;
    cudaStreamCaptureStatus active = cudaStreamCaptureStatusNone;
    return cudaStreamGetCaptureInfo(stream, &active, &other) == cudaSuccess &&
           active == cudaStreamCaptureStatusActive && other == capture;
  });
  gcap::status kept = gcap_capture_retain(scope, ReleasePool, /*bytes=*/nullptr, pool.get());
  if (!kept.ok()) {
    ClosePool(pool.get(), false);
    ReleasePool(pool.release());
    return kept;
  }
  Pool* const retained = pool.release();  // the graph's from here on
  gcap::status closes = gcap_capture_on_close(scope, ClosePool, retained);
  if (!closes.ok()) ClosePool(retained, false);
  return closes;
}

// --- gcap's scratch on PyTorch's memory -----------------------------------------------------------------------------

gcap::allocator MakeAllocator(Framework* framework, int device) {
  auto callbacks = gcap::filled_by<gcap_options_init>();
  TORCH_CHECK(SetCallbacks(framework, &callbacks), "no stream for the callbacks");
  auto options = gcap::filled_by<gcap_external_allocator_options_init>();
  options.device_id = device;
  options.alloc = callbacks.external_alloc;
  options.free = callbacks.external_free;
  options.empty_cache = callbacks.external_empty_cache;
  return gcap::own<gcap_external_allocator_create>(&options).value_or_throw();
}

struct EndOfCallbacks {
  ~EndOfCallbacks() { EndCallbacks(); }
};

// Members end in reverse order: the callbacks serve until all memory has gone back.
class Memory {
 public:
  explicit Memory(int device) : device_(device) {}

  gcap_scratch_t* scratch() const { return scratch_.get(); }
  gcap_stream_t* StreamOf(cudaStream_t handle) {
    gcap::stream& stream = streams_[handle];
    if (!stream) {
      stream = gcap::own<gcap_stream_wrap>(handle, GCAP_STREAM_USER, unsigned{GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM},
                                           device_)
                   .value_or_throw();
    }
    return stream.get();
  }
  void Close() {
    for (const auto& stream : streams_) gcap::check(gcap_stream_synchronize(stream.second.get()));
    gcap::check(scratch_.destroy());
  }

 private:
  const int device_;
  std::unique_ptr<Framework> framework_ = MakeFramework();
  EndOfCallbacks end_of_callbacks_;
  gcap::allocator allocator_ = MakeAllocator(framework_.get(), device_);
  std::unordered_map<cudaStream_t, gcap::stream> streams_;
  gcap::scratch scratch_ = gcap::own<gcap_scratch_create>(allocator_.get(), nullptr).value_or_throw();
};

// --- Graphs ---------------------------------------------------------------------------------------------------------

bool exists = false;  // the callbacks have no user pointer, so there is one at a time

class Graphs {
 public:
  explicit Graphs(int warm_up_runs) : device_(c10::cuda::current_device()), memory_(std::make_unique<Memory>(device_)) {
    auto options = gcap::filled_by<gcap_graph_manager_options_init>();
    options.min_num_runs_before_capture = static_cast<uint32_t>(warm_up_runs);
    graphs_ = gcap::own<gcap_graph_manager_create>(&options).value_or_throw();
  }

  // Runs `work()` on the current stream: eagerly, captured, or by a replay, and returns what it returned, of a replay
  // what it returned in the capture. A capture that fails, by an exception too, is undone, and `work` is called again.
  py::object Run(int id, const py::function& work) {
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
    if (Info(id).captures_next) {
      gcap::check(gcap_scratch_reservation_prepare(memory_->scratch(), memory_->StreamOf(stream.stream())));
    }
    py::object outputs;
    bool captured = false;
    gcap::check(gcap::run(manager(), {id, stream.stream()}, [&]() -> gcap::status {
      captured = gcap_thread_is_capturing();
      if (!captured) {
        outputs = work();
        return {};
      }
      GCAP_RETURN_IF_ERROR(OpenPool(stream.device_index()));
      try {
        outputs = work();
        return {};
      } catch (const py::error_already_set& thrown) {
        return GCAP_STATUS(GCAP_UNAVAILABLE, "the callable raised in the capture: %s", thrown.what());
      }
    }));
    if (!outputs) return outputs_.at(id);
    if (captured) outputs_[id] = outputs;
    return outputs;
  }

  void Release(int id) {
    gcap::check(gcap_graph_manager_release(manager(), id));
    outputs_.erase(id);
  }

  // Ends all graphs and the scratch; raises what a destructor could only log.
  void Close() {
    outputs_.clear();
    gcap::check(graphs_.destroy());
    memory_->Close();
  }

  gcap_graph_info_t Info(int id) { return gcap::filled_by<gcap_graph_manager_get_info>(manager(), id); }
  std::string State(int id) { return gcap_graph_state_name(Info(id).state); }
  std::string WhyFailed(int id) {
    return gcap::status(gcap_graph_manager_explain(manager(), id, GCAP_GRAPH_WHY_CAPTURE_FAILED)).message();
  }
  uint64_t ScratchBytes() { return gcap::filled_by<gcap_scratch_get_stats>(memory_->scratch()).total_allocated_bytes; }

  // An operator of an engine's own, with an intermediate in gcap's scratch: swaps the halves of a tensor, in place.
  void SwapHalves(const at::Tensor& tensor) {
    TORCH_CHECK(graphs_, "the graphs were closed");
    TORCH_CHECK(tensor.is_cuda() && tensor.is_contiguous() && tensor.numel() % 2 == 0, "need an even CUDA tensor");
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
    const size_t bytes = tensor.nbytes() / 2;
    char* const first = static_cast<char*>(tensor.data_ptr());
    char* const second = first + bytes;
    const auto half =
        gcap::own<gcap_scratch_alloc>(memory_->scratch(), bytes, memory_->StreamOf(stream)).value_or_throw();
    gcap::check(GCAP_CUDA(cudaMemcpyAsync(half.get(), first, bytes, cudaMemcpyDeviceToDevice, stream)));
    gcap::check(GCAP_CUDA(cudaMemcpyAsync(first, second, bytes, cudaMemcpyDeviceToDevice, stream)));
    gcap::check(GCAP_CUDA(cudaMemcpyAsync(second, half.get(), bytes, cudaMemcpyDeviceToDevice, stream)));
  }

  gcap_graph_manager_t* manager() const {
    TORCH_CHECK(graphs_, "the graphs were closed");
    return graphs_.get();
  }

 private:
  const int device_;
  std::unique_ptr<Memory> memory_;  // outlives the graphs, which keep reservations
  gcap::graph_manager graphs_;
  std::unordered_map<int, py::object> outputs_;  // of captured ids
};

std::shared_ptr<Graphs> MakeGraphs(int warm_up_runs) {
  TORCH_CHECK(!exists, "there is one Graphs at a time");
  auto made = std::make_unique<Graphs>(warm_up_runs);
  exists = true;
  return {made.release(), [](Graphs* graphs) {
            delete graphs;
            exists = false;
          }};
}

// --- A replay from Python ------------------------------------------------------------------------------------------

// A builtin function without arguments is the cheapest call that Python has. The run is filled in once.
struct Bound {
  std::shared_ptr<Graphs> graphs;
  gcap::run_args run;
};

constexpr char kBound[] = "gcap_torch.replay";

PyObject* Replay(PyObject* self, PyObject*) {
  Bound* const bound = static_cast<Bound*>(PyCapsule_GetPointer(self, kBound));
  try {
    bound->run.stream = c10::cuda::getCurrentCUDAStream().stream();
    gcap::check(gcap_graph_manager_replay(bound->graphs->manager(), &bound->run, nullptr));
    Py_RETURN_NONE;
  } catch (const std::exception& exception) {
    PyErr_SetString(PyExc_RuntimeError, exception.what());
    return nullptr;
  }
}

PyMethodDef replay_method = {"replay", Replay, METH_NOARGS, "Replays the graph on the current stream."};

py::object ReplayOf(const std::shared_ptr<Graphs>& graphs, int id) {
  const py::capsule self(new Bound{graphs, OnCurrentStream(id)}, kBound,
                         [](PyObject* o) { delete static_cast<Bound*>(PyCapsule_GetPointer(o, kBound)); });
  return py::reinterpret_steal<py::object>(PyCFunction_New(&replay_method, self.ptr()));
}

// --- Host time from C++ --------------------------------------------------------------------------------------------

using Clock = std::chrono::steady_clock;

double MedianNs(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// One call, timed by itself, less what a reading of the clock costs; the stream is drained behind it.
template <class Step>
double TimeNs(Step step, cudaStream_t stream) {
  const auto begin = Clock::now();
  step();
  const auto middle = Clock::now();
  const auto end = Clock::now();
  gcap::check(GCAP_CUDA(cudaStreamSynchronize(stream)));
  return std::chrono::duration<double, std::nano>((middle - begin) - (end - middle)).count();
}

// The medians of `rounds` replays each, in turn: PyTorch's graph of `work`, gcap's graph `id` of the same, and the bare
// launch of PyTorch's executable.
std::vector<double> TimeReplays(const std::shared_ptr<Graphs>& graphs, int id, const py::function& work, int rounds) {
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
  at::cuda::CUDAGraph torch_graph;
  torch_graph.capture_begin();
  const py::object outputs = work();
  torch_graph.capture_end();
  const cudaGraphExec_t exec = torch_graph.raw_cuda_graph_exec();
  std::vector<double> torch_ns, gcap_ns, bare_ns;
  for (int round = 0; round < rounds; ++round) {
    torch_ns.push_back(TimeNs([&] { torch_graph.replay(); }, stream));
    const auto replay = [&] {
      const auto run = OnCurrentStream(id);
      gcap::check(gcap_graph_manager_replay(graphs->manager(), &run, nullptr));
    };
    gcap_ns.push_back(TimeNs(replay, stream));
    bare_ns.push_back(TimeNs([&] { gcap::check(GCAP_CUDA(cudaGraphLaunch(exec, stream))); }, stream));
  }
  return {MedianNs(std::move(torch_ns)), MedianNs(std::move(gcap_ns)), MedianNs(std::move(bare_ns))};
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  py::register_exception<gcap::error>(module, "Error", PyExc_RuntimeError);
  py::class_<Graphs, std::shared_ptr<Graphs>>(module, "Graphs")
      .def(py::init(&MakeGraphs), py::arg("warm_up_runs") = 2)
      .def("run", &Graphs::Run, py::arg("id"), py::arg("work"))
      .def("replay_of", &ReplayOf, py::arg("id"))
      .def("release", &Graphs::Release, py::arg("id"))
      .def("close", &Graphs::Close)
      .def("state", &Graphs::State, py::arg("id"))
      .def("nodes", [](Graphs& graphs, int id) { return graphs.Info(id).nodes; })
      .def("why_failed", &Graphs::WhyFailed, py::arg("id"))
      .def("scratch_bytes", &Graphs::ScratchBytes)
      .def("swap_halves", &Graphs::SwapHalves, py::arg("tensor"));
  module.def("time_replays", &TimeReplays, py::arg("graphs"), py::arg("id"), py::arg("work"), py::arg("rounds"));
}
