# SPDX-License-Identifier: Apache-2.0
"""The inputs for which the results of all runtimes are compared: random ones, and real ones, which
are photographs where the model takes pictures and the stored recordings of other models."""

from dataclasses import dataclass

import numpy as np

from peers.peer import randomArray

PHOTOGRAPHS = ("bird.bmp", "cat.bmp", "grace_hopper.bmp", "owl.jpg")
# Smaller pictures than this are no photographs.
SMALLEST = 96
# Of the networks that PyTorch trained, whose inputs have the channels first.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass
class Cases:
    """Inputs of one model: {name: [array for each input]}. `real` are the names of real ones."""
    inputs: dict
    real: list

    def save(self, path):
        np.savez(path, **{f"{name}/{number}": array for name, arrays in self.inputs.items()
                          for number, array in enumerate(arrays)})


def load(path):
    """{case: [array for each input or output]} of a file that save() or peer.py wrote."""
    arrays = np.load(path)
    result = {}
    for key in arrays.files:
        name, _, number = key.rpartition("/")
        result.setdefault(name, {})[int(number)] = arrays[key]
    return {name: [found[number] for number in sorted(found)] for name, found in result.items()}


def casesOf(name, graph, data, seed):
    """The cases of the model `name`. `data` is the folder with images/ and golden/, or None."""
    tensors = [graph.tensors[index] for index in graph.inputs]
    generator = np.random.default_rng(seed)
    inputs = {"random": [randomArray(generator, tensor.shape, tensor.dtype) for tensor in tensors]}
    inputs.update(photographs(tensors, data) or recordings(name, tensors, data))
    return Cases(inputs, [case for case in inputs if case != "random"])


def photographs(tensors, data):
    """{name: [array]}; empty if the model takes no colour photograph."""
    if data is None or len(tensors) != 1 or len(tensors[0].shape) != 4:
        return {}
    [tensor] = tensors
    isChannelsFirst = tensor.shape[1] == 3
    height, width = tensor.shape[2:] if isChannelsFirst else tensor.shape[1:3]
    if min(height, width) < SMALLEST or (not isChannelsFirst and tensor.shape[3] != 3):
        return {}
    from PIL import Image
    result = {}
    for file in PHOTOGRAPHS:
        path = data / "images" / file
        if path.exists():
            image = Image.open(path).convert("RGB")
            pixels = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))
            result[path.stem] = [inputOf(pixels, tensor, isChannelsFirst)]
    return result


def inputOf(pixels, tensor, isChannelsFirst):
    """The input of a model for a picture's pixels, [height, width, 3] of uint8."""
    if tensor.dtype == np.uint8:
        return pixels[None]
    values = pixels.astype(np.float32)
    if isChannelsFirst:
        values = ((values / 255 - MEAN) / DEVIATION).astype(np.float32).transpose(2, 0, 1)
    else:
        values = values / 127.5 - 1
    if tensor.quantization is not None:
        values = tensor.quantization.quantize(values, tensor.dtype)
    return np.ascontiguousarray(values[None]).astype(tensor.dtype)


def recordings(name, tensors, data):
    """{name: [array for each input]} of the inputs that are stored with the outputs of LiteRT."""
    folder = None if data is None else data / "golden" / name
    result = {}
    for case in [folder, *sorted(folder.glob("alt_*"))] if folder is not None else []:
        files = [case / f"input_{number}.npy" for number in range(len(tensors))]
        if all(file.exists() for file in files):
            result["stored" if case == folder else case.name] = [np.load(file) for file in files]
    return result
