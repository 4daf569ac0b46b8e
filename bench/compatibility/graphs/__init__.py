# SPDX-License-Identifier: Apache-2.0
"""The graphs that are converted: one module for each family, each graph a function of TensorFlow.

Only the generator imports this package, since the modules import TensorFlow.
"""

import dataclasses
import importlib

import numpy as np

FAMILIES = ("convolutions", "wide", "detectors", "audio", "recurrent", "attention", "indexing",
            "reductions", "normalization", "pooling", "resizing", "control_flow", "arithmetic",
            "random_numbers")

FLOAT = ("float32", "float16")
# For graphs with weights, for those without weights, and for those that nobody quantizes.
ALL = (*FLOAT, "dynamic", "int8", "int8-io", "uint8-io", "int16x8", "aiedge-dynamic8",
       "aiedge-weights8", "aiedge-int8")
ACTIVATIONS = ("float32", "int8", "int8-io", "int16x8")
PLAIN = ("float32",)
# Further ones for networks of convolutions and of fully connected layers.
FOUR_BIT = ("aiedge-dynamic4", "aiedge-weights4")
INT16 = ("int16-io", "int16x8-bias32", "aiedge-int16")
PER_TENSOR = ("int8-per-tensor",)
BLOCKS = ("aiedge-dynamic4-blocks", "aiedge-dynamic8-blocks", "aiedge-dynamic2")


@dataclasses.dataclass(frozen=True)
class Open:
    """A dimension that the model leaves open, and its sizes in the first and the second run."""
    first: int
    second: int


@dataclasses.dataclass(frozen=True)
class Input:
    """An input and how its values are drawn: floats from [low, high), integers likewise."""
    shape: tuple
    dtype: str = "float32"
    low: float = -1
    high: float = 1
    # An input whose values are given, for example lengths or indices that have to be in order.
    values: tuple = None

    @property
    def signature(self):
        """The shape as TensorFlow's signatures have it."""
        return [None if isinstance(size, Open) else size for size in self.shape]

    @property
    def isOpen(self):
        return None in self.signature

    def array(self, generator, run):
        """Values for run 0 or 1."""
        shape = [(size.first, size.second)[run] if isinstance(size, Open) else size
                 for size in self.shape]
        if self.values is not None:
            return np.array(self.values, self.dtype).reshape(shape)
        dtype = np.dtype(self.dtype)
        if dtype.kind == "f":
            return generator.uniform(self.low, self.high, shape).astype(dtype)
        if dtype.kind == "c":
            return (generator.uniform(-1, 1, shape) + 1j * generator.uniform(-1, 1, shape)
                    ).astype(dtype)
        if dtype.kind == "b":
            return generator.integers(0, 2, shape).astype(bool)
        return generator.integers(self.low, self.high, shape).astype(dtype)


def f32(*shape, low=-1, high=1):
    return Input(shape, "float32", low, high)


def i32(*shape, low=0, high=10, values=None):
    return Input(shape, "int32", low, high, values)


def i64(*shape, low=0, high=10, values=None):
    return Input(shape, "int64", low, high, values)


def boolean(*shape):
    return Input(shape, "bool")


@dataclasses.dataclass(frozen=True)
class Graph:
    name: str
    # Gives the function that is converted; called in the generator, so layers are made there.
    build: object
    inputs: tuple
    recipes: tuple
    # Outputs are random: only their shapes and their distribution are compared.
    isRandom: bool = False
    # It has an operator that is none of LiteRT's built-in ones.
    isCustom: bool = False
    # The module that registered it.
    family: str = ""

    @property
    def runs(self):
        """How often the model is run: a second time where it has other sizes."""
        return 2 if any(one.isOpen for one in self.inputs) else 1


GRAPHS = {}
# The families that were or are being loaded.
_loading = []


def add(name, build, *inputs, recipes=PLAIN, isRandom=False, isCustom=False,
        openBatch=()):
    """Registers a graph; with `openBatch` once more for these recipes, with the first dimension
    of each input left open."""
    assert name not in GRAPHS, name
    GRAPHS[name] = Graph(name, build, inputs, tuple(recipes), isRandom, isCustom, _loading[-1])
    if openBatch:
        opened = tuple(dataclasses.replace(one, shape=(Open(one.shape[0], one.shape[0] + 2),
                                                       *one.shape[1:])) for one in inputs)
        add(f"{name} open-batch", build, *opened, recipes=openBatch, isRandom=isRandom)


def op(name, function, *inputs, recipes=PLAIN, **words):
    """Registers a graph that is one plain function of its inputs."""
    add(name, lambda: function, *inputs, recipes=recipes, **words)


def stack(*made):
    """What builds a function that applies layers one after the other; `made` makes them."""
    def build():
        chain = [make() for make in made]

        def function(x):
            for layer in chain:
                x = layer(x)
            return x
        return function
    return build


def load():
    """All graphs by their names."""
    for family in FAMILIES:
        _loading.append(family)
        importlib.import_module(f"graphs.{family}")
    return GRAPHS
