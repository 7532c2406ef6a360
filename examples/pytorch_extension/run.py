#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# run.py [--rounds N] [--keep FOLDER] [--build-only]: builds gcap beside the PyTorch of this python3, and on a GPU
# checks and measures it. It needs PyTorch with its headers, gcc, g++, a CUDA toolkit's headers and ninja; no Bazel and
# no network. Each part runs in a process of its own, and goes on after a check that fails. Exit code 0 when everything
# was right.

import argparse
import concurrent.futures
import ctypes
import faulthandler
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path("examples/pytorch_extension")
EXTERNAL = pathlib.Path("examples/external_allocator")
GRAPH_SIZES = (1, 10, 100, 1000)
GOAL = 0.6  # of PyTorch's host time of a replay
STEPS = 6
TIMEOUT_S = 240  # of a part

failures = []


# --- Build ------------------------------------------------------------------------------------------------------------


def run_tool(*command):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"run.py: {' '.join(map(str, command))}\n"
                 f"failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")


def cuda_folders():
    """The folders of CUDA's headers and of libcudart.so, as PyTorch finds them."""
    from torch.utils import cpp_extension

    if cpp_extension.CUDA_HOME is None:
        sys.exit("run.py: PyTorch finds no CUDA toolkit: set CUDA_HOME")
    home = pathlib.Path(cpp_extension.CUDA_HOME)
    headers = [home / "include", home / "targets/x86_64-linux/include"]
    libraries = [home / "lib64", home / "targets/x86_64-linux/lib"]
    found = [next((f for f in folders if any(f.glob(name))), None)
             for folders, name in ((headers, "cuda_runtime_api.h"), (libraries, "libcudart.so*"))]
    if None in found:
        sys.exit(f"run.py: {home} lacks CUDA's headers or libcudart.so: {headers} {libraries}")
    return found


def build_gcap(work, cuda_include):
    """All of lib as one archive, to be linked into shared objects."""
    objects = work / "objects"
    objects.mkdir()
    sources = sorted(path.relative_to(ROOT) for path in (ROOT / "lib").glob("*/*.c"))
    flags = ["-std=c11", "-O2", "-DNDEBUG", "-D_GNU_SOURCE", "-fPIC", "-fexceptions", "-fvisibility=hidden", "-I.",
             "-Iinclude", "-isystem", cuda_include]

    def compile_one(source):
        target = objects / (str(source).replace("/", "_") + ".o")
        run_tool("gcc", *flags, "-c", source, "-o", target)
        return target

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        targets = list(pool.map(compile_one, sources))
    archive = work / "libgcap.a"
    run_tool("ar", "crs", archive, *targets)
    return archive


def build(work):
    from torch.utils import cpp_extension

    start = time.monotonic()
    # ninja is beside the python3 that has PyTorch, which the path may not be.
    os.environ["PATH"] = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
    cuda_include, cuda_lib = cuda_folders()
    archive = build_gcap(work, cuda_include)
    print(f"built {archive.name} after {time.monotonic() - start:.0f} s", flush=True)
    run_tool("g++", "-std=c++17", "-O2", "-DNDEBUG", "-Wall", "-Wextra", "-fPIC", "-fvisibility=hidden", "-shared",
             "-I.", "-Iinclude", "-isystem", cuda_include, HERE / "scratch_allocator.cc", archive, f"-L{cuda_lib}",
             "-lcudart", "-pthread", "-o", work / "libgcap_torch_allocator.so")
    print(f"built libgcap_torch_allocator.so after {time.monotonic() - start:.0f} s", flush=True)
    build_folder = work / "extension"
    build_folder.mkdir()
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")  # nothing here is compiled by nvcc
    cpp_extension.load(
        name="gcap_torch",
        sources=[str(ROOT / path) for path in
                 (HERE / "graphs.cc", EXTERNAL / "callbacks.cc", EXTERNAL / "torch_framework.cc")],
        extra_include_paths=[str(ROOT), str(ROOT / "include")],
        extra_cflags=["-O2", "-DNDEBUG", "-fvisibility=hidden"],
        extra_ldflags=[str(archive)],
        build_directory=str(build_folder),
        with_cuda=True,
        is_python_module=False,
        verbose=True,
    )
    print(f"built the extension after {time.monotonic() - start:.0f} s", flush=True)


# --- Checks -----------------------------------------------------------------------------------------------------------


def check(name, step):
    """Runs the step; a failure is told whole and does not stop the others."""
    try:
        said = step()
        print(f"ok      {name}{': ' + said if said else ''}", flush=True)
    except Exception:  # pylint: disable=broad-except
        failures.append(name)
        print(f"FAILED  {name}\n{traceback.format_exc()}", flush=True)


def expect_close(got, expected, what):
    import torch

    if not torch.allclose(got, expected, rtol=1e-4, atol=1e-4):
        raise AssertionError(f"{what}: differs by {(got - expected).abs().max().item()}")


def litter(torch):
    """Fills what is free with NaN: memory that a graph needs must not be among it."""
    return [torch.full((size,), float("nan"), device="cuda") for size in (64, 4096, 65536, 1 << 20) for _ in range(8)]


class Network:
    """Two layers whose intermediates PyTorch allocates in each run."""

    def __init__(self, torch, batch=32, width=256):
        generator = torch.Generator(device="cuda").manual_seed(1)
        self.torch = torch
        self.x = torch.zeros(batch, width, device="cuda")
        self.w1, self.w2 = (torch.randn(width, width, device="cuda", generator=generator) / 16 for _ in range(2))

    def __call__(self):
        return self.torch.relu(self.x @ self.w1) @ self.w2

    def expect(self, step, seed, what):
        """Gives x another content, lets `step` run, and compares what it returns with PyTorch's eager result."""
        self.x.copy_(self.torch.randn(self.x.shape, generator=self.torch.Generator().manual_seed(seed)))
        rubbish = litter(self.torch)
        got = step().clone()
        if not all(tensor.isnan().all().item() for tensor in rubbish):
            raise AssertionError(f"{what}: it wrote to memory of other tensors")
        del rubbish
        expect_close(got, self(), what)


def median_ns(step, stream, rounds):
    """Host time of one call, less what a reading of the clock costs; the stream is drained behind each."""
    now = time.perf_counter_ns
    times = []
    for _ in range(rounds):
        begin = now()
        step()
        middle = now()
        end = now()
        times.append((middle - begin) - (end - middle))
        stream.synchronize()
    return times


# --- gcap's graphs on PyTorch's stream --------------------------------------------------------------------------------


def load_extension(work):
    import importlib.util

    spec = importlib.util.spec_from_file_location("gcap_torch", next((work / "extension").glob("gcap_torch*.so")))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def part_graphs(work, rounds):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.zeros(1, device="cuda")  # PyTorch's own start-up comes first
    gcap_torch = load_extension(work)
    side = torch.cuda.Stream()
    graphs = gcap_torch.Graphs(warm_up_runs=2)
    network = Network(torch)
    torch_graph = torch.cuda.CUDAGraph()
    torch_outputs = []
    reserved = torch.cuda.memory_reserved

    def warm_up_capture_replay():
        states = []
        for seed in range(STEPS):
            network.expect(lambda: graphs.run(0, network), seed, f"run {seed + 1}")
            states.append(graphs.state(0))
        if states != ["WARMING", "WARMING", "CAPTURED", "CAPTURED", "CAPTURED", "CAPTURED"]:
            raise AssertionError(f"the states were {states}")
        return f"{graphs.nodes(0)} nodes"

    def beside_a_graph_of_torch():
        with torch.cuda.graph(torch_graph, stream=side):
            torch_outputs.append(network())

        def replay_of_torch():
            torch_graph.replay()
            return torch_outputs[0]

        replay = graphs.replay_of(0)

        def replay_of_gcap():
            replay()
            return graphs.run(0, network)

        for seed in range(10, 10 + STEPS):
            network.expect(replay_of_torch, seed, "PyTorch's replay")
            network.expect(replay_of_gcap, seed, "gcap's replay")

    def scratch_in_a_graph():
        data = torch.arange(1 << 16, device="cuda", dtype=torch.float32)
        for run in range(STEPS):
            before = data.clone()
            rubbish = litter(torch)
            graphs.run(1, lambda: graphs.swap_halves(data))
            del rubbish
            expect_close(data, torch.cat([before[1 << 15:], before[:1 << 15]]), f"run {run + 1}")
        if graphs.state(1) != "CAPTURED" or graphs.scratch_bytes() == 0:
            raise AssertionError(f"the state is {graphs.state(1)}, scratch holds {graphs.scratch_bytes()} bytes")
        network.expect(lambda: graphs.run(0, network), 20, "the other graph")

    def an_exception_reaches_the_caller():
        def raises():
            raise KeyError("no such layer")

        try:
            graphs.run(2, raises)
        except KeyError:
            return
        raise AssertionError("nothing was raised")

    def a_capture_that_fails_is_run_again():
        calls = []

        def once():
            calls.append(graphs.state(3))
            out = network()
            if calls[-1] == "CAPTURING" and len(calls) < 5:
                out.sum().item()  # waits, which breaks the capture
            return out

        for seed in range(30, 38):
            network.expect(lambda: graphs.run(3, once), seed, f"run {seed - 29}")
        if graphs.state(3) != "CAPTURED" or "CAPTURING" not in calls[:4]:
            raise AssertionError(f"the state is {graphs.state(3)}, the callable was called in {calls}")
        return f"called in {calls}; {graphs.why_failed(3)[:400]}"

    def a_graph_gives_its_memory_back():
        size = 64 << 20

        def big():
            return torch.zeros(size // 4, device="cuda").add_(1).sum()

        for _ in range(3):
            graphs.run(4, big)
        if graphs.state(4) != "CAPTURED":
            raise AssertionError(f"the state is {graphs.state(4)}: {graphs.why_failed(4)}")
        torch.cuda.empty_cache()
        held = reserved()
        graphs.release(4)
        torch.cuda.empty_cache()
        if held - reserved() < size:
            raise AssertionError(f"held {held} before the release and {reserved()} after it, expected {size} less")
        network.expect(lambda: graphs.run(0, network), 50, "another graph, after the release")

    def the_default_stream_is_refused():
        with torch.cuda.stream(torch.cuda.default_stream()):
            try:
                graphs.run(5, network)
            except RuntimeError as error:
                return str(error)
        raise AssertionError("nothing was raised")

    def figures():
        print(f"\n{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; host time of one replay, in ns: "
              f"the median of {rounds} of each kind, in turn\n")
        print("| nodes | PyTorch, Python | gcap, Python | gcap over PyTorch | PyTorch, C++ | gcap, C++ | "
              "gcap over PyTorch | bare launch, C++ |\n|---|---|---|---|---|---|---|---|")
        worst, wrong = 0.0, []
        for number, size in enumerate(GRAPH_SIZES):
            x = torch.zeros(64, device="cuda")

            def add():
                for _ in range(size):
                    x.add_(1)

            graph_id = 100 + number
            for _ in range(3):
                graphs.run(graph_id, add)
            if graphs.nodes(graph_id) != size:
                raise AssertionError(f"graph {graph_id} has {graphs.nodes(graph_id)} nodes, expected {size}")
            of_torch = torch.cuda.CUDAGraph()
            with torch.cuda.graph(of_torch, stream=side):
                add()
            of_gcap = graphs.replay_of(graph_id)
            python = ([], [])
            for _ in range(rounds):
                for times, step in zip(python, (of_torch.replay, of_gcap)):
                    times += median_ns(step, side, 1)
            by_torch, by_gcap = map(statistics.median, python)
            c_torch, c_gcap, c_bare = gcap_torch.time_replays(graphs, graph_id, add, rounds)
            print(f"| {size} | {by_torch:,.0f} | {by_gcap:,.0f} | {by_gcap / by_torch:.2f} | {c_torch:,.0f} | "
                  f"{c_gcap:,.0f} | {c_gcap / c_torch:.2f} | {c_bare:,.0f} |", flush=True)
            x.zero_()
            of_torch.replay()
            of_gcap()
            if x[0].item() != 2 * size:
                wrong.append(f"two replays of {size} additions give {x[0].item()}")
            if size <= 10:
                worst = max(worst, by_gcap / by_torch)
        print()
        if wrong:
            raise AssertionError("; ".join(wrong))
        return f"from Python at most {worst:.2f} of PyTorch's at 1 and 10 nodes, {GOAL} is wanted"

    with torch.cuda.stream(side):
        check("warm-up, capture, replay", warm_up_capture_replay)
        check("beside torch.cuda.graph, replays in turn", beside_a_graph_of_torch)
        check("scratch over PyTorch's memory, in a graph", scratch_in_a_graph)
        check("an exception reaches the caller", an_exception_reaches_the_caller)
        check("a capture that fails is run again, eagerly", a_capture_that_fails_is_run_again)
        check("a released graph gives its memory back", a_graph_gives_its_memory_back)
        check("the default stream is refused", the_default_stream_is_refused)
        check("figures", figures)

    def everything_ends():
        graphs.close()
        torch_graph.reset()
        torch.cuda.synchronize()
        network.expect(network, 60, "PyTorch afterwards")

    check("everything ends", everything_ends)


# --- gcap's scratch as PyTorch's allocator ----------------------------------------------------------------------------


class Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("in_use_bytes", "held_bytes", "num_allocs", "num_extensions")]


def use_gcap_allocator(torch, work):
    """Makes gcap's scratch the allocator of the process. Returns the library, and what must stay alive."""
    path = work / "libgcap_torch_allocator.so"
    allocator = torch.cuda.memory.CUDAPluggableAllocator(str(path), "gcap_torch_alloc", "gcap_torch_free")
    library = ctypes.CDLL(str(path))

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int)
    def current_stream(device):
        return torch.cuda.current_stream(device).cuda_stream

    library.gcap_torch_set_current_stream(current_stream)
    inner = allocator.allocator()
    for setter, function in (
        ("set_record_stream_fn", library.gcap_torch_record_stream),
        ("set_begin_allocate_to_pool", library.gcap_torch_begin_pool),
        ("set_end_allocate_to_pool_fn", library.gcap_torch_end_pool),
        ("set_release_pool", library.gcap_torch_release_pool),
    ):
        getattr(inner, setter)(ctypes.cast(function, ctypes.c_void_p).value)
    torch.cuda.memory.change_current_allocator(allocator)
    return library, (allocator, inner, current_stream)


def train(torch):
    """The losses of a small network in training: tensors of many sizes, on autograd's threads too."""
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for step in range(30):
        x = torch.randn(16 + step, 64, device="cuda")
        loss = torch.nn.functional.cross_entropy(model(x), x[:, :10].argmax(dim=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def tensor_ns(torch, count):
    """A tensor of 4 KiB and its end, from Python, as often as `count`."""
    for _ in range(1000):
        torch.empty(1024, device="cuda")
    best = []
    for _ in range(7):
        begin = time.perf_counter_ns()
        for _ in range(count):
            torch.empty(1024, device="cuda")
        best.append((time.perf_counter_ns() - begin) / count)
    return statistics.median(best)


def part_native(work, rounds):
    """PyTorch as it comes, to compare with."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    losses = train(torch)
    answer = {"losses": losses, "tensor_ns": tensor_ns(torch, rounds), "held": torch.cuda.memory_reserved()}
    (work / "native.json").write_text(json.dumps(answer), encoding="utf-8")


def part_allocator(work, rounds):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    library, keep = use_gcap_allocator(torch, work)
    native_file = work / "native.json"
    native = json.loads(native_file.read_text(encoding="utf-8")) if native_file.exists() else None

    def stats():
        answer = Stats()
        library.gcap_torch_get_stats(0, ctypes.byref(answer))
        return answer

    def summary():
        text = ctypes.create_string_buffer(library.gcap_torch_describe(0, None, 0) + 1)
        library.gcap_torch_describe(0, text, ctypes.c_size_t(len(text)))
        return text.value.decode()

    def training():
        losses = train(torch)
        if not losses[-1] < losses[0]:
            raise AssertionError(f"nothing was learned: {losses}")
        if native is None:
            raise AssertionError("there is nothing to compare with: see part native")
        worst = max(abs(a - b) for a, b in zip(losses, native["losses"]))
        if worst > 1e-4:
            raise AssertionError(f"losses differ by {worst}: {losses} {native['losses']}")
        said = stats()
        if said.num_allocs == 0:
            raise AssertionError("gcap was not called")
        return f"losses differ by {worst:.1e}; {said.num_allocs} allocations, {said.num_extensions} regions"

    def two_streams():
        side = torch.cuda.Stream()
        for step in range(200):
            x = torch.full((1 << 16,), float(step), device="cuda")
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(100000)
                total = x.sum()
            x.record_stream(side)
            del x  # its memory is free for this stream after the other one is done
            rubbish = torch.full((1 << 16,), float("nan"), device="cuda")
            torch.cuda.current_stream().wait_stream(side)
            if total.item() != step * (1 << 16):
                raise AssertionError(f"step {step}: {total.item()}")
            del rubbish

    def a_graph_of_torch():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            network = Network(torch)
            for _ in range(2):
                network()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=side):
                output = network()

            def replay():
                graph.replay()
                return output

            for seed in range(STEPS):
                network.expect(replay, seed, f"replay {seed + 1}")
            graph.reset()
            torch.cuda.synchronize()

    def all_goes_back():
        import gc

        gc.collect()
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.synchronize()
        in_use = stats().in_use_bytes
        library.gcap_torch_trim(0)
        # The last tensors of other checks may be in tracebacks.
        if in_use != 0 and not failures:
            raise AssertionError(f"{in_use} bytes are in use:\n{summary()}")
        return f"{stats().held_bytes} bytes are held after a trim"

    check("training, as with PyTorch's allocator", training)
    check("record_stream", two_streams)
    check("torch.cuda.graph on a reservation of the scratch", a_graph_of_torch)

    def figures():
        ours, theirs = tensor_ns(torch, rounds), native["tensor_ns"]
        return f"a tensor of 4 KiB and its end, from Python: {ours:,.0f} ns, with PyTorch's allocator {theirs:,.0f} ns"

    check("figures", figures)
    check("all goes back", all_goes_back)
    del keep


# --- Main -------------------------------------------------------------------------------------------------------------

PARTS = {"graphs": part_graphs, "native": part_native, "allocator": part_allocator}


def run_part(name, work, rounds):
    """A process of its own: a crash is a failure of the part, and says where it was."""
    print(f"=== {name}", flush=True)
    command = [sys.executable, __file__, "--part", name, "--keep", str(work), "--rounds", str(rounds)]
    try:
        code = subprocess.run(command, timeout=TIMEOUT_S, check=False).returncode
    except subprocess.TimeoutExpired:
        code = f"none: it took more than {TIMEOUT_S} s"
    if code != 0:
        failures.append(f"part {name} (exit code {code})")


def main():
    faulthandler.enable()
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2000, help="replays of each kind that are timed")
    parser.add_argument("--keep", type=pathlib.Path, help="an empty or missing folder for what is built, which stays")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        PARTS[options.part](options.keep, options.rounds)
        sys.exit(1 if failures else 0)
    try:
        import torch
    except ImportError as error:
        sys.exit(f"run.py: {sys.executable} cannot import torch: {error}")

    print(f"python3 {sys.version.split()[0]}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}", flush=True)
    work = (options.keep or pathlib.Path(tempfile.mkdtemp(prefix="gcap_torch."))).resolve()
    work.mkdir(parents=True, exist_ok=True)
    try:
        build(work)
        if not options.build_only:
            if not torch.cuda.is_available():
                sys.exit("run.py: PyTorch sees no GPU")
            print(f"{torch.cuda.get_device_name()}", flush=True)
            for name in PARTS:
                run_part(name, work, options.rounds)
    finally:
        if not options.keep:
            shutil.rmtree(work)
    print(f"FAILED: {failures}" if failures else "all right")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
