# SPDX-License-Identifier: Apache-2.0
"""The digit classifier and its training in plain NumPy.

conv 3x3 - ReLU - max pool 2x2 - conv 3x3 - ReLU - max pool 2x2 - fully connected - soft-max.
"""

import numpy as np

CHANNELS = (1, 12, 24)
CLASSES = 10


class Network:
    """`parameters` holds weights as .tflite stores them: [out, 3, 3, in] and [out, in]."""

    def __init__(self, generator):
        self.parameters = {}
        for number, (inputs, outputs) in enumerate(zip(CHANNELS, CHANNELS[1:]), 1):
            self._add(generator, f"conv{number}", (outputs, 3, 3, inputs))
        self._add(generator, "dense", (CLASSES, 7 * 7 * CHANNELS[-1]))
        self._moments = {name: (np.zeros_like(value), np.zeros_like(value))
                         for name, value in self.parameters.items()}
        self._step = 0

    def _add(self, generator, name, shape):
        std = (2 / np.prod(shape[1:])) ** 0.5
        self.parameters[name] = generator.standard_normal(shape, np.float32) * np.float32(std)
        self.parameters[name + "/bias"] = np.zeros(shape[0], np.float32)

    def logits(self, pictures):
        """[n, 10] for pictures [n, 28, 28] with values in [-1, 1]."""
        return self._forward(pictures)[0]

    def _forward(self, pictures):
        p = self.parameters
        x = pictures[..., None]
        saved = []
        for name in ("conv1", "conv2"):
            patches = _patches(x)
            y = patches @ p[name].reshape(len(p[name]), -1).T + p[name + "/bias"]
            n, side = x.shape[:2]
            y = y.reshape(n, side // 2, 2, side // 2, 2, -1)
            quarters = [y[:, :, row, :, column] for row in (0, 1) for column in (0, 1)]
            pooled = np.maximum(np.maximum(quarters[0], quarters[1]),
                                np.maximum(quarters[2], quarters[3]))
            pooled = np.maximum(pooled, 0, out=pooled)
            saved.append((patches, quarters, pooled))
            x = pooled
        x = x.reshape(len(x), -1)
        return x @ p["dense"].T + p["dense/bias"], x, saved

    def train(self, pictures, labels, rate):
        """One step of Adam on the cross entropy; returns its mean before the step."""
        p = self.parameters
        logits, features, saved = self._forward(pictures)
        logits = logits - logits.max(1, keepdims=True)
        probabilities = np.exp(logits)
        probabilities /= probabilities.sum(1, keepdims=True)
        rows = np.arange(len(labels))
        loss = -np.log(probabilities[rows, labels] + 1e-12).mean()

        error = probabilities
        error[rows, labels] -= 1
        error /= len(labels)
        gradients = {"dense": error.T @ features, "dense/bias": error.sum(0)}
        error = error @ p["dense"]
        for name, (patches, quarters, pooled) in (("conv2", saved[1]), ("conv1", saved[0])):
            error = error.reshape(pooled.shape) * (pooled > 0)
            n, half = pooled.shape[:2]
            spread = np.empty((n, half, 2, half, 2, pooled.shape[3]), np.float32)
            for number, quarter in enumerate(quarters):
                # Only the position of the maximum passes the error on.
                np.multiply(error, quarter == pooled, spread[:, :, number // 2, :, number % 2])
            spread = spread.reshape(n * 4 * half * half, -1)
            gradients[name] = (spread.T @ patches).reshape(p[name].shape)
            gradients[name + "/bias"] = spread.sum(0)
            if name == "conv2":
                back = spread @ p[name].reshape(len(p[name]), -1)
                error = _sumPatches(back.reshape(n, 2 * half, 2 * half, 3, 3, -1))
        self._adam(gradients, rate)
        return float(loss)

    def _adam(self, gradients, rate):
        self._step += 1
        for name, gradient in gradients.items():
            mean, square = self._moments[name]
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (np.square(gradient) - square)
            correctedMean = mean / (1 - 0.9**self._step)
            correctedSquare = square / (1 - 0.999**self._step)
            self.parameters[name] -= (
                rate * correctedMean / (np.sqrt(correctedSquare) + 1e-8)).astype(np.float32)


def _patches(x):
    """Rows of 3x3 windows with zero padding: [n * h * w, 9 * c]."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    return view.transpose(0, 1, 2, 4, 5, 3).reshape(-1, 9 * x.shape[3])


def _sumPatches(patches):
    """The transpose of `_patches`: [n, h, w, 3, 3, c] to [n, h, w, c]."""
    n, height, width, _, _, channels = patches.shape
    padded = np.zeros((n, height + 2, width + 2, channels), np.float32)
    for row in range(3):
        for column in range(3):
            padded[:, row:row + height, column:column + width] += patches[:, :, :, row, column]
    return padded[:, 1:-1, 1:-1]
