# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Operations that are capturable, for gcap_doctor.check on a GPU: no error and no warning is to be found in any."""
import torch
import torch.nn.functional as F

DEVICE = "cuda"
OPERATIONS = {}


def sound(make):
    """Of a function that returns (fn, inputs...)."""
    OPERATIONS[make.__name__] = make
    return make


def floats(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=DEVICE, dtype=dtype)


def integers(high, *shape):
    return torch.randint(0, high, shape, device=DEVICE)


def enter(name, fn, *inputs):
    """A short one: the inputs are functions, so that they are made when the operation is checked."""
    OPERATIONS[name] = lambda: (fn, *[make() if callable(make) else make for make in inputs])


def matrix(*shape, dtype=torch.float32):
    return lambda: floats(*(shape or (64, 64)), dtype=dtype)


# --- Element by element, reductions, shapes ---------------------------------------------------------------------------

enter("add", lambda x, y: x + y, matrix(), matrix())
enter("gelu_of_halves", F.gelu, matrix(dtype=torch.float16))
enter("bfloat16", lambda x: (x * 3).exp(), matrix(dtype=torch.bfloat16))
enter("double", lambda x: x.sin(), matrix(dtype=torch.float64))
enter("complex_fft", lambda x: torch.fft.fft(x).abs(), matrix())
enter("integers", lambda x: x * 3 + 1, lambda: integers(9, 64))
enter("booleans", lambda x: (x > 0) & (x < 1), matrix())
enter("casts", lambda x: x.half().float().to(torch.int32), matrix())
enter("where", lambda x: torch.where(x > 0, x, -x), matrix())
enter("clamp", lambda x: x.clamp(-1, 1), matrix())
enter("nans", lambda x: (x - 10).log(), matrix())
enter("sum", lambda x: x.sum(), matrix())
enter("mean_and_variance", lambda x: torch.var_mean(x, dim=-1), matrix())
enter("log_sum_exp", lambda x: x.logsumexp(-1), matrix())
enter("softmax", lambda x: x.softmax(-1), matrix())
enter("cumulative_sum", lambda x: x.cumsum(-1), matrix())
enter("argmax", lambda x: x.argmax(-1), matrix())
enter("top_k", lambda x: x.topk(8), matrix())
enter("sort", lambda x: x.sort(-1), matrix())
enter("cat", lambda x, y: torch.cat([x, y]), matrix(), matrix())
enter("split", lambda x: [part * 2 for part in x.split(16)], matrix())
enter("transposed_input", lambda x: x.contiguous() + 1, lambda: floats(32, 64).t())
enter("expanded_input", lambda x: x * 2, lambda: floats(64, 1).expand(64, 64))
enter("pad", lambda x: F.pad(x, (1, 2)), matrix())
enter("dictionary", lambda x: {"logits": x * 2, "hidden": [x + 1, (x, None)]}, matrix())
enter("empty_input", lambda x, y: (x * 2, y + 1), matrix(0, 4), matrix())
enter("number_of_the_caller", lambda x, factor: x * factor, matrix(), 3.5)

# --- Indices ----------------------------------------------------------------------------------------------------------

enter("embedding", F.embedding, lambda: integers(64, 16), matrix())
enter("gather", lambda x, i: x.gather(1, i), matrix(), lambda: integers(64, 64, 8))
enter("index_select", lambda x, i: x.index_select(0, i), matrix(), lambda: integers(64, 8))
enter("scatter_add", lambda x, i: torch.zeros(64, 64, device=DEVICE).scatter_add(1, i, x), matrix(),
      lambda: integers(64, 64, 64))
enter("one_hot", lambda i: torch.zeros(16, 64, device=DEVICE).scatter(1, i, 1.0), lambda: integers(64, 16, 1))
enter("masked_fill", lambda x: x.masked_fill(x > 0, float("-inf")), matrix())

# --- Products and networks --------------------------------------------------------------------------------------------

enter("matmul", torch.matmul, matrix(), matrix())
enter("matmul_of_halves", torch.matmul, matrix(dtype=torch.float16), matrix(dtype=torch.float16))
enter("large_matmul", torch.matmul, matrix(1024, 1024), matrix(1024, 1024))
enter("batched_matmul", torch.bmm, matrix(4, 32, 64), matrix(4, 64, 32))
enter("linear", F.linear, matrix(), matrix(32, 64), matrix(32))
enter("einsum", lambda x, y: torch.einsum("bij,bjk->bik", x, y), matrix(4, 8, 8), matrix(4, 8, 8))
enter("attention", F.scaled_dot_product_attention, *[matrix(2, 4, 64, 32, dtype=torch.float16)] * 3)
enter("convolution", F.conv2d, matrix(2, 8, 16, 16), matrix(8, 8, 3, 3))
enter("max_pool", lambda x: F.max_pool2d(x, 2), matrix(2, 8, 16, 16))
enter("layer_norm", F.layer_norm, matrix(), (64,))
enter("group_norm", lambda x: F.group_norm(x, 4), matrix(2, 8, 16, 16))
enter("cross_entropy", F.cross_entropy, matrix(), lambda: integers(64, 64))
enter("interpolate", lambda x: F.interpolate(x, scale_factor=2), matrix(2, 8, 16, 16))

# --- Random numbers ---------------------------------------------------------------------------------------------------

enter("dropout", lambda x: F.dropout(x, 0.5, training=True), matrix())
enter("normal", lambda x: x + torch.randn_like(x), matrix())


# --- State, gradients, streams ----------------------------------------------------------------------------------------


@sound
def in_place():
    def fn(x):
        x.mul_(2).add_(1)

    return fn, floats(64)


@sound
def result_of_the_caller():
    def fn(x, out):
        torch.mul(x, 2, out=out)

    return fn, floats(64), torch.empty(64, device=DEVICE)


@sound
def key_value_cache():
    cache = torch.zeros(32, 64, device=DEVICE)

    def fn(x, position):
        cache.index_copy_(0, position, x)
        return cache.sum(0)

    return fn, floats(1, 64), torch.tensor([3], device=DEVICE)


@sound
def counter_on_the_device():
    step = torch.zeros(1, device=DEVICE)

    def fn(x):
        step.add_(1)
        return x * step

    return fn, floats(64)


@sound
def workspace_that_is_cleared():
    workspace = torch.empty(64, device=DEVICE)

    def fn(x):
        workspace.zero_()
        workspace.add_(x)
        return workspace * 2

    return fn, floats(64)


@sound
def multilayer_perceptron():
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).to(DEVICE)
    return model, floats(32, 64)


@sound
def batch_norm_in_training():
    return torch.nn.BatchNorm2d(8).to(DEVICE).train(), floats(4, 8, 16, 16)


@sound
def inference_mode():
    model = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).to(DEVICE).eval()

    @torch.inference_mode()
    def fn(x):
        return model(x)

    return fn, floats(2, 16, 64)


@sound
def gradients():
    weight = floats(64, 64).requires_grad_()

    def fn(x):
        weight.grad = None
        loss = (x @ weight).square().mean()
        loss.backward()
        return loss.detach()

    return fn, floats(32, 64)


@sound
def training_step():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fn(x, target):
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return fn, floats(32, 64), floats(32, 8)


@sound
def fork_and_join():
    side = torch.cuda.Stream()

    def fn(x):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            z = x * 3
        y = x * 2
        torch.cuda.current_stream().wait_stream(side)
        return y + z

    return fn, floats(64)


@sound
def pinned_copy():
    host = torch.randn(64).pin_memory()

    def fn(x):
        return x + host.to(DEVICE, non_blocking=True)

    return fn, floats(64)


@sound
def autocast():
    weight = floats(64, 64)

    def fn(x):
        with torch.autocast("cuda", dtype=torch.float16, cache_enabled=False):
            return x @ weight

    return fn, floats(64, 64)
