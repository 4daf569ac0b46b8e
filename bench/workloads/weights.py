# SPDX-License-Identifier: Apache-2.0
"""Reproducible weights.

Values are sums of four random bytes: bell-shaped like trained weights, bounded, and made of exact
integer arithmetic, so that a file has the same bytes on every machine.
"""

import zlib

import numpy as np

_CHUNK = 1 << 20
# Mean and standard deviation of the sum of four independent uniform bytes.
_MEAN = 4 * 255 // 2
_STD = (4 * (256**2 - 1) / 12) ** 0.5


def bell(seed, name, shape, std):
    """float32 values with mean 0, at most 3.46 `std`; the stream depends on `seed` and `name`."""
    count = int(np.prod(shape, dtype=np.int64))
    generator = np.random.Generator(np.random.SFC64([seed, zlib.crc32(name.encode())]))
    values = np.empty(count, np.float32)
    for start in range(0, count, _CHUNK):
        size = min(_CHUNK, count - start)
        bytes_ = np.frombuffer(generator.bytes(4 * size), np.uint8).reshape(4, size)
        total = bytes_[0].astype(np.int16)
        for row in bytes_[1:]:
            total += row
        values[start:start + size] = total - _MEAN
    values *= np.float32(std / _STD)
    return values.reshape(shape)


def filters(seed, name, shape, outputAxis, energy, meanKept=1.0):
    """Convolution filters whose squared weights sum up to `energy` for each output channel.

    With `energy` 2 in front of a ReLU and 1 otherwise the second moment of the activations stays
    the same from layer to layer (He et al. 2015); fixing it per filter stands for a folded batch
    normalisation. `meanKept` below 1 takes that part of each filter's mean away, so that the mean
    that all channels have in common behind a ReLU does not drown what depends on the input.
    """
    values = bell(seed, name, shape, 1.0).astype(np.float64)
    axes = tuple(axis for axis in range(len(shape)) if axis != outputAxis)
    values -= (1 - meanKept) * values.mean(axes, keepdims=True)
    values *= np.sqrt(energy / np.square(values).sum(axes, keepdims=True))
    return values.astype(np.float32)
