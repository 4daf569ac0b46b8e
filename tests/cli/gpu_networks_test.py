# SPDX-License-Identifier: Apache-2.0
"""Families of networks on a GPU: small ones with random weights run there in one part, but for what a detector does
with the boxes that it has found, and have the results of other devices."""

import copy
import pathlib
import sys
import unittest
from dataclasses import replace

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import numpy as np

from gpu_command import DEVICE, GpuCommandTest
from workloads import quantize, small_networks, tflite_writer, transformer

CPU = "hearth-cpu"
REFERENCE = "nnapi-reference"
# Operations that follow a network and are left to the CPU.
POST_PROCESSING = {"anchored_yolo": {"TOPK_V2"}}
# Of the largest number of an output. Layers that round their data to 256 steps may round a number otherwise that is
# computed otherwise.
TOLERANCE, HYBRID_TOLERANCE = 1e-3, 3e-2
# The part of the integers that float32 networks compute (classes, places) which have to be equal: two numbers may be
# near each other.
EQUAL_PART = 0.99
GEMMA = replace(transformer.GEMMA_2B, layers=2, hidden=64, feedForward=96, headSize=16, vocabulary=200, heads=4,
                groups=1)
# How many words a network knows, by the name of its input.
WORDS = {"ids": small_networks.WORDS, "tokens": GEMMA.vocabulary}


class GpuNetworksTest(GpuCommandTest):

    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(41)
        self.count = 0

    def write(self, model):
        self.count += 1
        path = self.folder / f"model_{self.count}.tflite"
        tflite_writer.write(model, path)
        return path

    def inputs(self, graph):
        """Values for the inputs of a graph."""
        values = []
        for index in graph.inputs:
            tensor = graph.tensors[index]
            if tensor.dtype == np.float32:
                values.append(self.random.uniform(-1, 1, tensor.shape).astype(np.float32))
            elif tensor.dtype == np.int8:
                values.append(self.random.integers(-128, 128, tensor.shape).astype(np.int8))
            elif tensor.name == "input_pos":
                values.append(np.arange(1, 1 + tensor.shape[0], dtype=tensor.dtype))
            else:
                values.append(self.random.integers(0, WORDS.get(tensor.name, 2), tensor.shape).astype(tensor.dtype))
        return values

    def outputs(self, path, values, device, *options):
        """What `device` computes; None leaves the choice to Hearth."""
        folder = self.folder / f"run_{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        files = []
        for number, value in enumerate(values):
            files.append(folder / f"input_{number}.npy")
            np.save(files[-1], value)
        self.succeed("run", path, "--input", *files, "--output-dir", folder, *options,
                     *(["--device", device] if device else []), env=self.environment)
        return [np.load(folder / f"output_{number}.npy") for number in range(len(list(folder.glob("output_*"))))]

    def expectOnePart(self, path, postProcessing=frozenset()):
        """Expects that the GPU gets all operations but these, which follow it on the CPU."""
        for signature in self.json("inspect", path, env=self.environment)["signatures"]:
            self.assertIsNone(signature["problem"])
            operations = signature["operations"]
            refused = {f"{operation['type']}: {device['reason']}" for operation in operations
                       for device in operation["devices"] if device["device"] == DEVICE and not device["supported"]
                       and operation["type"] not in postProcessing}
            self.assertEqual(refused, set())
            steps = [(step["device"], {operations[index]["type"] for index in step["operations"]})
                     for step in signature["plan"]["steps"]]
            self.assertEqual(steps[0][0], DEVICE)
            self.assertEqual(steps[1:], [(CPU, postProcessing)] if postProcessing else [])

    def expectNear(self, path, values, device, tolerance, *options):
        """Expects numbers near those of the CPU."""
        expected = self.outputs(path, values, CPU, *options)
        for actual, near in zip(self.outputs(path, values, device, *options), expected, strict=True):
            if near.dtype == np.float32:
                np.testing.assert_allclose(actual, near, rtol=0, atol=tolerance * np.abs(near).max())
                self.assertGreater(np.ptp(near), 0)
            else:
                self.assertGreaterEqual(np.mean(actual == near), EQUAL_PART)

    def toInt8(self, graph, values):
        """The graph in integers of 8 bits, by the ranges of what the CPU computes for these inputs."""
        everything = copy.copy(graph)
        everything.outputs = [output for operator in graph.operators for output in operator.outputs
                              if graph.tensors[output].dtype == np.float32]
        results = self.outputs(self.write(everything), values, CPU)
        ranges = {index: (min(0.0, float(value.min())), max(0.0, float(value.max())))
                  for index, value in zip(everything.outputs, results, strict=True)}
        ranges |= {index: (-1.0, 1.0) for index in graph.inputs if graph.tensors[index].dtype == np.float32}
        return quantize.toInt8OfRanges(graph, ranges)

    def testFloat32(self):
        for name, build in small_networks.FAMILIES.items():
            with self.subTest(name):
                graph = build()
                path, values = self.write(graph), self.inputs(graph)
                left = POST_PROCESSING.get(name, set())
                self.expectOnePart(path, left)
                self.expectNear(path, values, None if left else DEVICE, TOLERANCE)

    def testIntegersOf8BitsEqualThoseOfTheReference(self):
        for name, build in small_networks.FAMILIES.items():
            with self.subTest(name):
                # A mask of minus ten thousand would leave no step for anything else.
                graph = build(hasMask=False) if name == "bert" else build()
                graph = self.toInt8(graph, self.inputs(graph))
                path, values = self.write(graph), self.inputs(graph)
                left = POST_PROCESSING.get(name, set())
                self.expectOnePart(path, left)
                expected = self.outputs(path, values, REFERENCE)
                for actual, equal in zip(self.outputs(path, values, None if left else DEVICE), expected, strict=True):
                    np.testing.assert_array_equal(actual, equal)
                    self.assertGreater(len(np.unique(equal)), 1)

    def testMatricesOf8Bits(self):
        graph = small_networks.bert(form="i8")
        path = self.write(graph)
        self.expectOnePart(path)
        self.expectNear(path, self.inputs(graph), DEVICE, HYBRID_TOLERANCE)

    def testLanguageModels(self):
        for form, tolerance in (("f32", TOLERANCE), ("i8", HYBRID_TOLERANCE)):
            for isComposite in (False, True):
                with self.subTest(form=form, isComposite=isComposite):
                    model = transformer.languageModel("gemma", GEMMA, form, prefill=6, cache=12,
                                                      isComposite=isComposite)
                    path = self.write(model)
                    self.expectOnePart(path)
                    for signature in model.signatures:
                        values = self.inputs(signature.graph)
                        self.expectNear(path, values, DEVICE, tolerance, "--signature", signature.key)


if __name__ == "__main__":
    unittest.main()
