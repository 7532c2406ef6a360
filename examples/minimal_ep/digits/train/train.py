# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Trains the program's digit classifier and writes its weights and held-out images as .npy files.

The network, in NCHW: conv 1->16 3x3 pad 1, relu; conv 16->32 3x3 pad 1, max-pool 2x2, relu; flatten;
linear 512->64, relu; linear 64->10, softmax. Convolution is im2col and a matrix product, so that
backward is the transpose of forward and NumPy alone suffices. Training is in float32, from one seed.
"""

import argparse
import pathlib

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20240917
EPOCHS = 20
BATCH = 32
LEARNING_RATE = 1e-3
PIXEL_MAX = 16.0  # the data set counts dark pixels of 4x4 blocks: 0..16
ACCURACY_REQUIRED = 0.97

SHAPES = {
    "conv1_weight": (16, 1, 3, 3),
    "conv1_bias": (16,),
    "conv2_weight": (32, 16, 3, 3),
    "conv2_bias": (32,),
    "fc1_weight": (64, 512),
    "fc1_bias": (64,),
    "fc2_weight": (10, 64),
    "fc2_bias": (10,),
}


def initial_weights(rng):
    """He's initialisation for the weights, zeros for the biases."""
    weights = {}
    for name, shape in SHAPES.items():
        if name.endswith("bias"):
            weights[name] = np.zeros(shape, np.float32)
        else:
            fan_in = np.prod(shape[1:])
            weights[name] = rng.normal(0.0, np.sqrt(2.0 / fan_in), shape).astype(np.float32)
    return weights


def im2col(x):
    """(N,C,H,W) -> (N,H,W,C*9): each pixel's 3x3 neighbourhood, zero outside the image."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


def col2im(columns, c):
    """The transpose of im2col: adds every neighbourhood back to its pixels."""
    n, h, w, _ = columns.shape
    parts = columns.reshape(n, h, w, c, 3, 3)
    padded = np.zeros((n, c, h + 2, w + 2), columns.dtype)
    for i in range(3):
        for j in range(3):
            padded[:, :, i : i + h, j : j + w] += parts[..., i, j].transpose(0, 3, 1, 2)
    return padded[:, :, 1:-1, 1:-1]


def conv(columns, weight, bias):
    out = columns @ weight.reshape(len(weight), -1).T + bias
    return out.transpose(0, 3, 1, 2)


def conv_gradients(columns, grad):
    """Gradients of conv by weight (flattened) and by bias; grad is (N,C,H,W)."""
    rows = grad.transpose(0, 2, 3, 1).reshape(-1, grad.shape[1])
    return rows.T @ columns.reshape(len(rows), -1), rows.sum(axis=0)


def windows_2x2(x):
    """(N,C,H,W) -> (N,C,H/2,W/2,4)"""
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    return blocks.reshape(n, c, h // 2, w // 2, 4)


def unpool_2x2(blocks):
    """The inverse of windows_2x2."""
    n, c, h, w, _ = blocks.shape
    return blocks.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * h, 2 * w)


def forward(weights, images):
    """Class probabilities, and what backward needs."""
    columns1 = im2col(images)
    hidden1 = np.maximum(conv(columns1, weights["conv1_weight"], weights["conv1_bias"]), 0)
    columns2 = im2col(hidden1)
    windows = windows_2x2(conv(columns2, weights["conv2_weight"], weights["conv2_bias"]))
    pooled = np.maximum(windows.max(axis=-1), 0)
    flat = pooled.reshape(len(images), -1)
    hidden2 = np.maximum(flat @ weights["fc1_weight"].T + weights["fc1_bias"], 0)
    logits = hidden2 @ weights["fc2_weight"].T + weights["fc2_bias"]
    exps = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = exps / exps.sum(axis=1, keepdims=True)
    return probabilities, (columns1, hidden1, columns2, windows, pooled, flat, hidden2)


def gradients(weights, images, labels):
    """Gradients of the mean cross-entropy by every weight."""
    probabilities, (columns1, hidden1, columns2, windows, pooled, flat, hidden2) = forward(weights, images)
    out = {}
    grad = probabilities.copy()
    grad[np.arange(len(labels)), labels] -= 1
    grad /= len(labels)
    out["fc2_weight"], out["fc2_bias"] = grad.T @ hidden2, grad.sum(axis=0)
    grad = (grad @ weights["fc2_weight"]) * (hidden2 > 0)
    out["fc1_weight"], out["fc1_bias"] = grad.T @ flat, grad.sum(axis=0)
    grad = (grad @ weights["fc1_weight"]).reshape(pooled.shape) * (pooled > 0)
    is_winner = np.arange(4) == windows.argmax(axis=-1)[..., None]
    grad = unpool_2x2(is_winner * grad[..., None])
    out["conv2_weight"], out["conv2_bias"] = conv_gradients(columns2, grad)
    back = grad.transpose(0, 2, 3, 1) @ weights["conv2_weight"].reshape(grad.shape[1], -1)
    grad = col2im(back, hidden1.shape[1]) * (hidden1 > 0)
    out["conv1_weight"], out["conv1_bias"] = conv_gradients(columns1, grad)
    return {name: value.reshape(SHAPES[name]) for name, value in out.items()}


class Adam:
    """Kingma and Ba, 2015, with the paper's constants, updating the weights in place."""

    def __init__(self, weights):
        self.step = 0
        self.mean = {name: np.zeros_like(w) for name, w in weights.items()}
        self.square = {name: np.zeros_like(w) for name, w in weights.items()}

    def update(self, weights, grads, rate):
        self.step += 1
        for name, grad in grads.items():
            self.mean[name] += 0.1 * (grad - self.mean[name])
            self.square[name] += 0.001 * (grad * grad - self.square[name])
            mean = self.mean[name] / (1 - 0.9**self.step)
            square = self.square[name] / (1 - 0.999**self.step)
            weights[name] -= (rate * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)


def accuracy(weights, images, labels):
    return float((forward(weights, images)[0].argmax(axis=1) == labels).mean())


def train(images, labels, rng):
    weights = initial_weights(rng)
    adam = Adam(weights)
    for epoch in range(EPOCHS):
        rate = LEARNING_RATE * (1 - epoch / EPOCHS)  # decays to zero, which ends the noise of the last epochs
        order = rng.permutation(len(images))
        for start in range(0, len(order), BATCH):
            pick = order[start : start + BATCH]
            adam.update(weights, gradients(weights, images[pick], labels[pick]), rate)
        print(f"epoch {epoch + 1}/{EPOCHS}: training accuracy {accuracy(weights, images, labels):.4f}")
    return weights


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=here.parent / "data", help="folder for the .npy files")
    out = parser.parse_args().out

    digits = load_digits()
    images = (digits.images / PIXEL_MAX).astype(np.float32)[:, None, :, :]
    labels = digits.target.astype(np.int32)
    train_images, heldout_images, train_labels, heldout_labels = train_test_split(
        images, labels, test_size=0.2, random_state=SEED, stratify=labels
    )
    weights = train(train_images, train_labels, np.random.default_rng(SEED))

    reached = accuracy(weights, heldout_images, heldout_labels)
    single = forward(weights, heldout_images)[0]
    exact = forward({name: w.astype(np.float64) for name, w in weights.items()}, heldout_images.astype(np.float64))[0]
    print(f"held-out accuracy: {reached:.4f} on {len(heldout_labels)} images")
    print(f"largest difference of a probability, float32 and float64: {np.abs(single - exact).max():.1e}")
    if reached < ACCURACY_REQUIRED:
        raise SystemExit(f"held-out accuracy is {reached:.4f}, expected at least {ACCURACY_REQUIRED}: nothing written")

    out.mkdir(parents=True, exist_ok=True)
    for name, array in weights.items():
        np.save(out / f"{name}.npy", np.ascontiguousarray(array, "<f4"))
    np.save(out / "heldout_images.npy", np.ascontiguousarray(heldout_images, "<f4"))
    np.save(out / "heldout_labels.npy", np.ascontiguousarray(heldout_labels, "<i4"))


if __name__ == "__main__":
    main()
