# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/workloads: python3 -m unittest discover -s tests/workloads -p '*_test.py'."""

import contextlib
import io
import struct
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from workloads import generate, networks, quantize, reference  # noqa: E402
from workloads import tflite_reader, tflite_schema, tflite_writer  # noqa: E402
from workloads.flatbuffer import (Blob, Scalar, String, Table, TableVector,  # noqa: E402
                                  Vector, encode)
from workloads.weights import bell, filters  # noqa: E402

SMALL_RESNET = dict(resolution=32, classes=10, width=8, blocks=(2, 1))
SMALL_MOBILENET = dict(resolution=32, classes=10, blocks=[(1, 8, 1, 1), (6, 8, 2, 2)])


def randomInput(graph, seed=3):
    shape = graph.shape(graph.inputs[0])
    return np.random.default_rng(seed).random(shape, np.float32) * 2 - 1


class FlatBufferTest(unittest.TestCase):
    def testFieldsComeBackAndAreAligned(self):
        data, places = encode(Table({
            0: Scalar("b", -3),
            2: Scalar("q", 1 << 40),
            3: String("name"),
            4: Vector(np.int64, [5, -6]),
            5: TableVector([Table({0: Scalar("i", 7)}), Table({})]),
            6: None,
            7: Blob("payload", 5),
        }), b"TFL3", 16)
        [(key, position)] = places
        self.assertEqual(key, "payload")
        self.assertEqual(position % 16, 0)
        data += bytes(position - 4 - len(data)) + struct.pack("<I", 5) + b"abcde"
        root = tflite_reader.TableView.root(data)
        self.assertEqual(root.scalar(0, "b", 0), -3)
        self.assertEqual(root.scalar(1, "i", 11), 11)
        self.assertEqual(root.scalar(2, "q", 0), 1 << 40)
        self.assertEqual(root.fieldPosition(2) % 8, 0)
        self.assertEqual(root.string(3), "name")
        self.assertEqual(root.vector(4, np.int64).tolist(), [5, -6])
        self.assertEqual([table.scalar(0, "i", 1) for table in root.tables(5)], [7, 1])
        self.assertIsNone(root.fieldPosition(6))
        self.assertEqual(root.vector(7, np.uint8).tobytes(), b"abcde")

    def testRefusesWhatReferencesCannotReach(self):
        with self.assertRaisesRegex(ValueError, "2147483647"):
            encode(Table({0: Blob("large", 1 << 31)}), b"TFL3", 16)


class WeightsTest(unittest.TestCase):
    def testMomentsAndStream(self):
        values = bell(1, "a", (1 << 20) + 3, 0.5)
        self.assertAlmostEqual(float(values.mean()), 0.0, places=2)
        self.assertAlmostEqual(float(values.std()), 0.5, places=2)
        self.assertTrue(np.array_equal(values, bell(1, "a", (1 << 20) + 3, 0.5)))
        self.assertFalse(np.array_equal(values[:100], bell(2, "a", 100, 0.5)))
        self.assertFalse(np.array_equal(values[:100], bell(1, "b", 100, 0.5)))

    def testFiltersHaveTheirEnergy(self):
        values = filters(1, "w", (4, 3, 3, 5), 0, 2.0, meanKept=0.0)
        np.testing.assert_allclose(np.square(values).sum((1, 2, 3)), 2.0, rtol=1e-5)
        np.testing.assert_allclose(values.sum((1, 2, 3)), 0.0, atol=1e-5)


class ReferenceTest(unittest.TestCase):
    def testConvolutionMatchesTheDefinition(self):
        generator = np.random.default_rng(0)
        graph = networks.Graph("conv")
        x = graph.addInput("x", (1, 6, 5, 3))
        weights = generator.standard_normal((4, 3, 3, 3)).astype(np.float32)
        bias = generator.standard_normal(4).astype(np.float32)
        graph.outputs = [graph.conv("y", x, weights, bias, 2, tflite_schema.PADDING_SAME)]
        value = generator.standard_normal((1, 6, 5, 3)).astype(np.float32)
        # Height 6, stride 2: one row of padding, below. Width 5: one column on both sides.
        padded = np.pad(value, ((0, 0), (0, 1), (1, 1), (0, 0)))
        expected = np.zeros((1, 3, 3, 4), np.float32)
        for row in range(3):
            for column in range(3):
                window = padded[0, 2 * row:2 * row + 3, 2 * column:2 * column + 3]
                expected[0, row, column] = (weights * window).sum((1, 2, 3)) + bias
        np.testing.assert_allclose(reference.run(graph, [value])[0], expected, atol=1e-5)

    def testDepthwiseConvolutionMatchesTheDefinition(self):
        generator = np.random.default_rng(0)
        graph = networks.Graph("depthwise")
        x = graph.addInput("x", (1, 4, 4, 2))
        weights = generator.standard_normal((1, 3, 3, 2)).astype(np.float32)
        graph.outputs = [graph.depthwiseConv("y", x, weights, np.zeros(2, np.float32))]
        value = generator.standard_normal((1, 4, 4, 2)).astype(np.float32)
        padded = np.pad(value, ((0, 0), (1, 1), (1, 1), (0, 0)))
        expected = np.zeros((1, 4, 4, 2), np.float32)
        for row in range(4):
            for column in range(4):
                window = padded[0, row:row + 3, column:column + 3]
                expected[0, row, column] = (weights[0] * window).sum((0, 1))
        np.testing.assert_allclose(reference.run(graph, [value])[0], expected, atol=1e-5)


class NetworkTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name) / "model.tflite"

    def roundTrip(self, graph):
        size = tflite_writer.write(graph, self.path)
        self.assertEqual(size, self.path.stat().st_size)
        return tflite_reader.read(self.path)

    def testFilesHoldWhatWasBuilt(self):
        for build, options in ((networks.resnet50, SMALL_RESNET),
                               (networks.mobilenetV2, SMALL_MOBILENET),
                               (networks.mlp, dict(megabytes=1, features=16, hidden=64))):
            graph = build(**options)
            for variant in (graph, quantize.toInt8(graph, [randomInput(graph)])):
                with self.subTest(variant.name):
                    self.assertSameGraph(variant, self.roundTrip(variant))

    def assertSameGraph(self, expected, actual):
        self.assertEqual((actual.name, actual.inputs, actual.outputs),
                         (expected.name, expected.inputs, expected.outputs))
        self.assertEqual(len(actual.tensors), len(expected.tensors))
        for a, b in zip(actual.tensors, expected.tensors):
            self.assertEqual((a.name, a.shape, a.dtype), (b.name, b.shape, b.dtype))
            self.assertEqual(a.data is None, b.data is None)
            if a.data is not None:
                np.testing.assert_array_equal(a.data, np.asarray(b.data))
            self.assertEqual(a.quantization is None, b.quantization is None)
            if a.quantization is not None:
                np.testing.assert_array_equal(a.quantization.scale, b.quantization.scale)
                np.testing.assert_array_equal(a.quantization.zero_point, b.quantization.zero_point)
                self.assertEqual(a.quantization.axis, b.quantization.axis)
        self.assertEqual(len(actual.operators), len(expected.operators))
        for a, b in zip(actual.operators, expected.operators):
            self.assertEqual((a.kind, a.inputs, a.outputs), (b.kind, b.inputs, b.outputs))
            self.assertEqual(b.options, {key: a.options[key] for key in b.options})

    def testCodesOfEarlierConvertersAreRead(self):
        graph = networks.mobilenetV2(**SMALL_MOBILENET)
        tflite_writer.write(graph, self.path)
        data = bytearray(self.path.read_bytes())
        for code in tflite_reader.TableView.root(data).tables(tflite_schema.MODEL_OPERATOR_CODES):
            position = code.fieldPosition(tflite_schema.OPERATOR_CODE_BUILTIN)
            if position is not None:
                struct.pack_into("<i", data, position, 0)
        self.path.write_bytes(data)
        self.assertEqual([operator.kind for operator in tflite_reader.read(self.path).operators],
                         [operator.kind for operator in graph.operators])

    def testSmallNetworksRun(self):
        # reference.run checks the shape of every intermediate result.
        for build, options in ((networks.resnet50, SMALL_RESNET),
                               (networks.mobilenetV2, SMALL_MOBILENET)):
            with self.subTest(build.__name__):
                graph = build(**options)
                [logits] = reference.run(graph, [randomInput(graph)])
                self.assertEqual(logits.shape, (1, 10))
                self.assertGreater(logits.std(), 0.2)
                self.assertLess(np.abs(logits).max(), 50)
                [other] = reference.run(graph, [randomInput(graph, seed=4)])
                self.assertGreater(np.abs(logits - other).max(), 0.01)

    def testFullNetworksHaveTheKnownSizes(self):
        # Multiply-accumulates and weights of the published networks.
        for build, operations, parameters in ((networks.resnet50, 3.86e9, 25.53e6),
                                              (networks.mobilenetV2, 300e6, 3.47e6)):
            with self.subTest(build.__name__):
                graph = build()
                count = total = 0
                for operator in graph.operators:
                    if len(operator.inputs) == 3:
                        weights = graph.tensors[operator.inputs[1]].data
                        output = graph.shape(operator.outputs[0])
                        count += weights.size + output[-1]
                        pixels = int(np.prod(output[1:-1]))
                        total += pixels * weights.size
                self.assertAlmostEqual(total / operations, 1, delta=0.02)
                self.assertAlmostEqual(count / parameters, 1, delta=0.02)

    def testInt8IsNearFloat(self):
        for build, options in ((networks.resnet50, SMALL_RESNET),
                               (networks.mobilenetV2, SMALL_MOBILENET)):
            with self.subTest(build.__name__):
                graph = build(**options)
                sample = randomInput(graph)
                integer = self.roundTrip(quantize.toInt8(graph, [sample]))
                for tensor in integer.tensors:
                    if not tensor.name.endswith(("/paddings", "/axes")):
                        self.assertIn(tensor.dtype, (np.int8, np.int32), tensor.name)
                stored = integer.tensors[integer.inputs[0]].quantization.quantize(sample, np.int8)
                [result] = reference.run(integer, [stored])
                self.assertEqual(result.dtype, np.int8)
                real = integer.tensors[integer.outputs[0]].quantization.dequantize(result)
                [expected] = reference.run(graph, [sample])
                self.assertGreater(np.corrcoef(real[0], expected[0])[0, 1], 0.98)

    def testMlpHasTheSizeThatWasAskedFor(self):
        size = tflite_writer.write(networks.mlp(5, features=64, hidden=256), self.path)
        self.assertGreaterEqual(size, 5 << 20)
        self.assertLess(size, 6 << 20)


class CommandTest(unittest.TestCase):
    def generate(self, *words):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(generate.main([str(word) for word in words]), 0)

    def testSameArgumentsGiveTheSameBytes(self):
        with tempfile.TemporaryDirectory() as folder:
            for words in (["resnet50", "--quant", "i8", "--resolution", 32],
                          ["mobilenet_v2", "--quant", "i8", "--resolution", 32],
                          ["mobilenet_v2", "--quant", "f32", "--resolution", 32],
                          ["mlp", "--megabytes", 1]):
                with self.subTest(words[0]):
                    paths = [Path(folder) / name for name in ("a", "b", "c")]
                    for path, seed in zip(paths, (1, 1, 2)):
                        self.generate(words[0], path, *words[1:], "--seed", seed)
                    first, second, other = (path.read_bytes() for path in paths)
                    self.assertEqual(first, second)
                    self.assertNotEqual(first, other)

    def testAFailureLeavesNoFile(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.tflite"
            errors = io.StringIO()
            with contextlib.redirect_stderr(errors):
                code = generate.main(["mlp", str(path), "--megabytes", "3000"])
            self.assertEqual(code, 1)
            self.assertIn(str(path), errors.getvalue())
            self.assertEqual(list(Path(folder).iterdir()), [])


if __name__ == "__main__":
    unittest.main()
