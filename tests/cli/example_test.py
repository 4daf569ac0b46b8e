# SPDX-License-Identifier: Apache-2.0
"""The example programs, built beside the command, run real models; the example of a custom operator
runs a model that is generated for it."""

import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np

from command import HEARTH, ROOT, CommandTest, DataTest

sys.path.insert(0, str(ROOT / "bench"))

from workloads import tflite_schema as schema  # noqa: E402
from workloads.flatbuffer import (Scalar, String, Table, TableVector, Vector,  # noqa: E402
                                  encode)

CLASSIFY = pathlib.Path(HEARTH).parent / "classify"
OPERATORS = pathlib.Path(HEARTH).parent.parent / "lib" / "custom_operator.so"

CUSTOM = 32
# Fields of the schema that no network of the benchmarks uses.
CUSTOM_CODE = 1
CUSTOM_OPTIONS = 5


def customModel(name, options):
    """A model of one custom operation from float32 [2,3] to a tensor without a shape."""
    def tensor(shape, name):
        return Table({schema.TENSOR_SHAPE: Vector(np.int32, shape),
                      schema.TENSOR_TYPE: Scalar("b", 0),
                      schema.TENSOR_BUFFER: Scalar("I", 0),
                      schema.TENSOR_NAME: String(name)})

    model = Table({
        schema.MODEL_VERSION: Scalar("I", schema.SCHEMA_VERSION),
        schema.MODEL_OPERATOR_CODES: TableVector([Table({
            schema.OPERATOR_CODE_DEPRECATED: Scalar("b", CUSTOM),
            CUSTOM_CODE: String(name),
            schema.OPERATOR_CODE_VERSION: Scalar("i", 1),
            schema.OPERATOR_CODE_BUILTIN: Scalar("i", CUSTOM)})]),
        schema.MODEL_SUBGRAPHS: TableVector([Table({
            schema.SUBGRAPH_TENSORS: TableVector([tensor([2, 3], "x"), tensor([], "y")]),
            schema.SUBGRAPH_INPUTS: Vector(np.int32, [0]),
            schema.SUBGRAPH_OUTPUTS: Vector(np.int32, [1]),
            schema.SUBGRAPH_OPERATORS: TableVector([Table({
                schema.OPERATOR_OPCODE_INDEX: Scalar("I", 0),
                schema.OPERATOR_INPUTS: Vector(np.int32, [0]),
                schema.OPERATOR_OUTPUTS: Vector(np.int32, [1]),
                CUSTOM_OPTIONS: Vector(np.uint8, list(options))})])})]),
        schema.MODEL_BUFFERS: TableVector([Table({})])})
    return encode(model, schema.FILE_IDENTIFIER, schema.BUFFER_ALIGNMENT)[0]


class ExampleTest(DataTest):
    def classify(self, *arguments):
        return subprocess.run([CLASSIFY, *map(str, arguments)], capture_output=True, text=True,
                              check=False, timeout=60)

    def testFindsTheCat(self):
        pixels = np.load(self.data("golden/mobilenet_v1_0.25_128_quant/input_0.npy"))
        image = self.folder / "cat.rgb"
        image.write_bytes(pixels.tobytes())
        run = self.classify(self.model("mobilenet_v1_0.25_128_quant"), image)
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = run.stdout.splitlines()
        self.assertEqual(len(lines), 5)
        self.assertEqual(lines[0].split()[0], "286")

    def testReportsErrors(self):
        self.assertEqual(self.classify().returncode, 2)
        run = self.classify(self.folder / "none.tflite", self.folder / "none.rgb")
        self.assertEqual(run.returncode, 1)
        self.assertIn("none.tflite", run.stderr)
        run = self.classify(self.model("mobilenet_v1_0.25_128_quant"), self.folder / "none.rgb")
        self.assertEqual(run.returncode, 1)
        self.assertIn("49152", run.stderr)


class CustomOperatorTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "decay.tflite"
        self.model.write_bytes(customModel("Decay", np.float32(0.5).tobytes()))
        np.save(self.folder / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))

    def testRunsTheModel(self):
        for device in ("hearth-cpu", "nnapi-reference"):
            out = self.folder / device
            self.succeed("run", self.model, "--input", self.folder / "x.npy", "--output-dir", out,
                         "--device", device, "--custom-operators", OPERATORS)
            np.testing.assert_array_equal(np.load(out / "output_0.npy"),
                                          [[0, 0.5, 0.5], [3, 2, 1.25]])
        report = self.json("bench", self.model, "--repeat", 2, "--custom-operators", OPERATORS)
        self.assertEqual(report["outputs"][0]["shape"], [2, 3])

    def testInspectNamesTheOperator(self):
        report = self.json("inspect", self.model, "--custom-operators", OPERATORS)
        signature = report["signatures"][0]
        self.assertIsNone(signature["problem"])
        self.assertEqual([one["type"] for one in signature["operations"]], ["Decay"])
        self.assertTrue(report["subgraphs"][0]["operations"][0]["translated"])
        text = self.succeed("inspect", self.model, "--custom-operators", OPERATORS)
        self.assertIn("Decay", text)
        report = self.json("inspect", self.model)
        self.assertIn("--custom-operators", report["signatures"][0]["problem"])
        self.assertFalse(report["subgraphs"][0]["operations"][0]["translated"])

    def testTheStoreIsExplainedWithTheOperator(self):
        report = self.json("cache", "explain", self.model, "--store", self.folder / "store",
                           "--custom-operators", OPERATORS)
        self.assertEqual(report["signatures"][0]["state"], "uncached")

    def testFailuresAreSentences(self):
        run = ("run", self.model, "--input", self.folder / "x.npy")
        self.assertIn("hearth_custom_operator_register", self.refuse(1, *run))
        self.assertIn("none.so", self.refuse(1, *run, "--custom-operators", "none.so"))
        # A library without the function, and one that registers a registered operator again.
        self.assertIn("hearth_register_custom_operators",
                      self.refuse(1, *run, "--custom-operators", OPERATORS.with_name(
                          "libhearth.so")))
        self.assertIn("registered already",
                      self.refuse(1, *run, "--custom-operators", OPERATORS,
                                  "--custom-operators", OPERATORS))
        # The operator itself refuses.
        self.model.write_bytes(customModel("Decay", b"abc"))
        self.assertIn("The options are not one float32.",
                      self.refuse(1, *run, "--custom-operators", OPERATORS))


if __name__ == "__main__":
    unittest.main()
