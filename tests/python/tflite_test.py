# SPDX-License-Identifier: Apache-2.0
"""hearth.tflite: programs written for TensorFlow Lite's Python interpreter find what they know, and the
results of hearth.Model."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "build" / "release" / "python"
sys.path[:0] = [str(PACKAGE), str(ROOT / "bench")]

import hearth  # noqa: E402
from hearth.tflite import (Interpreter, InterpreterWithCustomOps, OpResolverType,  # noqa: E402
                           load_delegate)
from hearth.tflite._graph import _as_bytes  # noqa: E402
from hearth.tflite.compiled_model import (CompiledModel, CpuOptions, Environment,  # noqa: E402
                                          HardwareAccelerator, Options, TensorBuffer)
from workloads import graph as graphs, tflite_schema, tflite_writer  # noqa: E402

DIGITS = ROOT / "models" / "digits" / "digits.tflite"
STORED = ROOT / "tests" / "compatibility" / "models"
OPEN_BATCH = STORED / "conv-3x3-same-open-batch-dynamic.tflite"
OPEN_SIZE = STORED / "conv-any-size-int8.tflite"
STRINGS = ROOT / "tests" / "corpus" / "model_file_fuzz" / "strings.tflite"
LSTM = STORED / "lstm-operator-float32.tflite"
DATA = os.environ.get("HEARTH_TEST_DATA")


def valuesFor(detail, random):
    dtype, shape = np.dtype(detail["dtype"]), detail["shape"]
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2 if dtype.kind == "b" else 4, shape).astype(dtype)


class InterpreterTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="hearth-tflite-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def allocated(self, path=DIGITS, **options):
        interpreter = Interpreter(model_path=str(path), **options)
        interpreter.allocate_tensors()
        return interpreter

    def testResultsAreThoseOfTheModel(self):
        random = np.random.default_rng(1)
        models = [DIGITS, *STORED.glob("*.tflite")]
        if DATA:
            models += (pathlib.Path(DATA) / "data" / "models").glob("*.tflite")
        self.assertGreater(len(models), 20)
        for path in models:
            with self.subTest(path.name):
                try:
                    compiled = hearth.Model(path).compile(threads=1)
                except hearth.errors.Unsupported as error:
                    with self.assertRaisesRegex(RuntimeError, str(error)[:40]):
                        self.allocated(path)
                    continue
                interpreter = self.allocated(path)
                execution = compiled.create_execution()
                for _ in range(2):
                    arrays = [valuesFor(detail, random) for detail in interpreter.get_input_details()]
                    for detail, array in zip(interpreter.get_input_details(), arrays):
                        interpreter.set_tensor(detail["index"], array)
                    interpreter.invoke()
                    expected = execution.run(arrays)
                    for tensor, detail in zip(compiled.outputs, interpreter.get_output_details()):
                        got = interpreter.get_tensor(detail["index"])
                        np.testing.assert_array_equal(got, expected[tensor.name])
                        self.assertEqual(got.dtype, expected[tensor.name].dtype)
                        self.assertEqual(got.dtype, detail["dtype"])
                        self.assertEqual(got.shape, tuple(detail["shape"]))

    def testStringsAreArraysOfBytes(self):
        interpreter = self.allocated(STRINGS)
        detail, = interpreter.get_input_details()
        self.assertIs(detail["dtype"], np.bytes_)
        outputs = [each["index"] for each in interpreter.get_output_details()]
        for given in (np.array(["c b"]), np.array([b"c b"]), np.array(["c b"], object)):
            interpreter.set_tensor(detail["index"], given)
            self.assertEqual(interpreter.get_tensor(detail["index"]).tolist(), [b"c b"])
            interpreter.invoke()
            words, numbers, size, is_b = (interpreter.get_tensor(each) for each in outputs)
            self.assertEqual((words.dtype, words.tolist()), (np.dtype(object), [[b"c", b"b"]]))
            self.assertEqual((numbers.tolist(), size.tolist(), is_b.tolist()),
                             ([[30, 20]], [3], [[False, True]]))
        interpreter.set_tensor(detail["index"], np.array([""]))
        interpreter.invoke()
        self.assertEqual(interpreter.get_tensor(outputs[0]).shape, (1, 0))
        for wrong in (np.array([1.0], np.float32), np.array([1], object), np.array(["a", "b"])):
            with self.assertRaisesRegex(ValueError, "Cannot set tensor"):
                interpreter.set_tensor(detail["index"], wrong)

    def testAStringWithoutDimensionsIsAnArray(self):
        interpreter = Interpreter(model_path=str(STRINGS))
        index = interpreter.get_input_details()[0]["index"]
        interpreter.resize_tensor_input(index, [])
        interpreter.allocate_tensors()
        interpreter.set_tensor(index, np.array(b"ab\0\0"))
        self.assertEqual(interpreter.get_tensor(index).item(0), b"ab\0\0")

    def testASingleStringKeepsItsZeroBytes(self):
        self.assertEqual(_as_bytes(np.array(b"ab\0\0")).item(), b"ab\0\0")
        self.assertEqual(_as_bytes(np.array(["ab", "c"])).tolist(), [b"ab", b"c"])

    def testDetailsHaveTheKnownKeys(self):
        interpreter = Interpreter(model_content=DIGITS.read_bytes())
        detail, = interpreter.get_input_details()
        self.assertEqual(list(detail), ["name", "index", "shape", "shape_signature", "dtype", "quantization",
                                        "quantization_parameters", "sparsity_parameters"])
        self.assertEqual((detail["dtype"], detail["quantization"], detail["sparsity_parameters"]),
                         (np.float32, (0.0, 0), {}))
        self.assertEqual((detail["shape"].tolist(), detail["shape"].dtype), ([1, 28, 28, 1], np.int32))
        self.assertEqual(list(detail["quantization_parameters"]),
                         ["scales", "zero_points", "quantized_dimension", "block_size"])
        self.assertEqual(interpreter.num_subgraphs(), 1)
        described = interpreter.get_tensor_details()
        subgraph, = hearth.Model(DIGITS).inspect()["subgraphs"]
        self.assertEqual([each["name"] for each in described],
                         [each["name"] for each in subgraph["tensors"]])
        self.assertEqual([each["shape"].tolist() for each in described],
                         [each["shape"] for each in subgraph["tensors"]])
        self.assertEqual(detail["index"], subgraph["inputs"][0])
        kinds = [each["op_name"] for each in interpreter._get_ops_details()]
        self.assertEqual(len(kinds), subgraph["operation_count"])
        for each in subgraph["operations"]:
            self.assertEqual(kinds.count(each["type"]), each["count"])

    def testQuantizationIsThatOfTheFile(self):
        path = STORED / "u-net-int8-io.tflite"
        interpreter = Interpreter(model_path=path)
        compared = 0
        for detail, tensor in zip(interpreter.get_tensor_details(),
                                  hearth.Model(path).inspect()["subgraphs"][0]["tensors"]):
            known = detail["quantization_parameters"]
            np.testing.assert_array_equal(known["scales"], np.array(tensor["scales"], np.float32))
            np.testing.assert_array_equal(known["zero_points"], tensor["zero_points"])
            if len(tensor["scales"]) == 1:
                self.assertEqual(detail["quantization"],
                                 (np.float32(tensor["scales"][0]), tensor["zero_points"][0]))
                compared += 1
        self.assertGreater(compared, 2)

    def testConstantsAreThereBeforeAllocation(self):
        interpreter = Interpreter(model_path=DIGITS)
        subgraph, = hearth.Model(DIGITS).inspect()["subgraphs"]
        sizes = [(tensor["index"], tensor["constant_bytes"]) for tensor in subgraph["tensors"]
                 if tensor["constant_bytes"]]
        self.assertGreater(len(sizes), 3)
        for index, size in sizes:
            self.assertEqual(np.asarray(interpreter.get_tensor(index)).nbytes, size)

    def testCreationPreparesNothing(self):
        interpreter = Interpreter(model_path=DIGITS)
        interpreter.get_input_details()
        interpreter.get_output_details()
        interpreter.get_tensor_details()
        self.assertIsNone(interpreter._interpreter._compilation)
        interpreter.allocate_tensors()
        prepared = interpreter._interpreter._compilation
        interpreter.allocate_tensors()
        self.assertIs(interpreter._interpreter._compilation, prepared)

    def testTheImportLeavesOutWhatTakesLong(self):
        script = ("import sys, numpy; known = set(sys.modules); import hearth.tflite; "
                  "print(*set(sys.modules) - known)")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        imported = set(done.stdout.split())
        self.assertIn("hearth._hearth", imported)
        self.assertEqual(imported & {"importlib.abc", "importlib.resources", "importlib.util", "inspect", "json",
                                     "pathlib", "tempfile"}, set())

    def testMistakesAreTheKnownExceptions(self):
        fresh = Interpreter(model_path=DIGITS)
        interpreter = self.allocated()
        x = np.zeros((1, 28, 28, 1), np.float32)
        first = interpreter.get_input_details()[0]["index"]
        last = interpreter.get_output_details()[0]["index"]
        inner = next(index for index in range(len(interpreter.get_tensor_details()))
                     if interpreter._file.subgraphs[0].computed().count(index) and index != last)
        count = len(interpreter.get_tensor_details())
        page = self.folder / "page.tflite"
        page.write_text("<!DOCTYPE html>")
        for call, error, text in (
                (fresh.invoke, RuntimeError, "Invoke called on model that is not ready."),
                (lambda: fresh.set_tensor(first, x), ValueError,
                 "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first"),
                (lambda: fresh.get_tensor(last), ValueError,
                 "Tensor data is null. Run allocate_tensors() first"),
                (fresh.tensor(first), ValueError, "Tensor data is null. Run allocate_tensors() first"),
                (lambda: interpreter.set_tensor(first, x.astype(np.float64)), ValueError,
                 f"Cannot set tensor: Got value of type FLOAT64 but expected type FLOAT32 for input {first}, "),
                (lambda: interpreter.set_tensor(first, [1, 2]), ValueError,
                 "Cannot set tensor: Got value of type INT64 but expected type FLOAT32"),
                (lambda: interpreter.set_tensor(first, "a text"), ValueError,
                 "Cannot set tensor: Got value of type STRING but expected type FLOAT32"),
                (lambda: interpreter.set_tensor(first, x[0]), ValueError,
                 f"Cannot set tensor: Dimension mismatch. Got 3 but expected 4 for input {first}."),
                (lambda: interpreter.set_tensor(first, x[:, :, :27]), ValueError,
                 f"Cannot set tensor: Dimension mismatch. Got 27 but expected 28 for dimension 2 of input {first}."),
                (lambda: interpreter.set_tensor(last, x), ValueError, "is not an input"),
                (lambda: interpreter.set_tensor("image", x), TypeError, "integer"),
                (lambda: interpreter.set_tensor(count, x), ValueError,
                 f"Invalid tensor index {count} exceeds max tensor index {count}"),
                (lambda: interpreter.get_tensor(-1), ValueError,
                 f"Invalid tensor index -1 exceeds max tensor index {count}"),
                (lambda: interpreter.get_tensor(first, 1), ValueError,
                 "Invalid subgraph index 1 exceeds max subgraph index 1"),
                (lambda: interpreter.get_tensor(inner), ValueError, "experimental_preserve_all_tensors"),
                (lambda: interpreter.get_tensor_details(3), ValueError,
                 "subgraph_index is out of range: 3 for the model, which has 1 subgraphs."),
                (lambda: interpreter.resize_tensor_input(last, [1]), ValueError, "is not an input"),
                (lambda: interpreter.resize_tensor_input(first, [-1, 28, 28, 1]), RuntimeError,
                 "not negative"),
                (lambda: interpreter.resize_tensor_input(first, [2, 28, 28, 1], strict=True), RuntimeError,
                 "Attempting to resize dimension 0 of tensor"),
                (lambda: interpreter.get_signature_runner("training"), ValueError,
                 'Invalid signature_key provided: "training".'),
                (lambda: interpreter._get_op_details(1000), ValueError, "Invalid node index"),
                (Interpreter, ValueError, "`model_path` or `model_content` must be specified."),
                (lambda: Interpreter(DIGITS, b"TFL3"), ValueError, "Can't both provide"),
                (lambda: Interpreter("none.tflite"), ValueError, "Could not open 'none.tflite'"),
                (lambda: Interpreter(page), ValueError, "The model is not a valid Flatbuffer buffer"),
                (lambda: Interpreter(model_content=b"TFL3"), ValueError,
                 "The model is not a valid Flatbuffer buffer"),
                (lambda: Interpreter(model_content=b"garbage"), ValueError,
                 "Model provided has model identifier 'age', should be 'TFL3'"),
                (lambda: Interpreter(model_content="TFL3"), TypeError, "It needs bytes"),
                (lambda: InterpreterWithCustomOps(["NoSuchRegisterer"], model_path=DIGITS), ValueError,
                 "Looking up symbol 'NoSuchRegisterer' failed"),
                (lambda: InterpreterWithCustomOps(["no_such_module.Registerer"], model_path=DIGITS), ValueError,
                 "Loading library 'no_such_module.so' failed with error 'no_such_module.so: cannot open shared object"),
                (lambda: interpreter._get_tensor_details(len(interpreter.get_tensor_details()), 0), ValueError,
                 "Tensor with no shape found."),
                (lambda: Interpreter(DIGITS, num_threads=0), ValueError, "num_threads should >= 1"),
                (lambda: Interpreter(DIGITS, num_threads=2.0), ValueError,
                 "type of num_threads should be int"),
                (lambda: Interpreter(DIGITS, experimental_op_resolver_type=1), ValueError,
                 "Unrecognized passed in op resolver type: 1"),
                (lambda: Interpreter(DIGITS, experimental_delegates=["npu"]), ValueError, "no delegate"),
                (lambda: load_delegate("libnone.so.1"), OSError, "libnone.so.1"),
                (lambda: load_delegate("libc.so.6"), ValueError, "Failed to load delegate from libc.so.6"),
                (lambda: load_delegate("libhearth_delegate.so", {"speed": 2}), ValueError,
                 "There is no option 'speed'")):
            with self.assertRaises(error) as caught:
                call()
            self.assertIn(text, str(caught.exception))
        # Nothing of this has spoilt it.
        interpreter.set_tensor(first, x)
        interpreter.invoke()

    def testCutModelsAreRefusedOrRun(self):
        content = DIGITS.read_bytes()
        for size in range(0, len(content), 997):
            try:
                interpreter = Interpreter(model_content=content[:size] or b"\0")
                interpreter.get_tensor_details()
                interpreter.allocate_tensors()
                interpreter.invoke()
            except (ValueError, hearth.Error) as error:
                self.assertNotEqual(str(error), "")

    def testViewsAreInPlaceAndMustNotBeKept(self):
        interpreter = self.allocated()
        first = interpreter.get_input_details()[0]["index"]
        last = interpreter.get_output_details()[0]["index"]
        image, scores = interpreter.tensor(first), interpreter.tensor(last)
        image()[:] = 0.5
        np.testing.assert_array_equal(interpreter.get_tensor(first), np.full((1, 28, 28, 1), 0.5, "f4"))
        interpreter.invoke()
        np.testing.assert_array_equal(scores(), interpreter.get_tensor(last))
        copied = interpreter.get_tensor(last)
        self.assertTrue(interpreter._safe_to_run())
        kept = image()
        self.assertFalse(interpreter._safe_to_run())
        part = scores()[0, 2:5]
        for call in (interpreter.invoke, interpreter.allocate_tensors,
                     lambda: interpreter.resize_tensor_input(first, [1, 28, 28, 1])):
            with self.assertRaisesRegex(RuntimeError, "There is at least 1 reference to internal data"):
                call()
        del kept
        with self.assertRaisesRegex(RuntimeError, "reference to internal data"):
            interpreter.invoke()
        del part
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(last), copied)

    def testOpenDimensionsAreResized(self):
        interpreter = self.allocated(OPEN_BATCH)
        execution = hearth.Model(OPEN_BATCH).compile(threads=1).create_execution()
        detail, = interpreter.get_input_details()
        self.assertEqual(detail["shape_signature"].tolist(), [-1, 12, 12, 4])
        self.assertEqual(detail["shape"].tolist(), [1, 12, 12, 4])
        random = np.random.default_rng(2)
        for batch in (3, 1, 3, 2, 1):
            interpreter.resize_tensor_input(detail["index"], [batch, 12, 12, 4], strict=True)
            interpreter.allocate_tensors()
            self.assertEqual(interpreter.get_input_details()[0]["shape"][0], batch)
            result = interpreter.get_output_details()[0]
            self.assertEqual((result["shape"][0], result["shape_signature"][0]), (batch, -1))
            x = random.standard_normal((batch, 12, 12, 4)).astype(np.float32)
            interpreter.set_tensor(detail["index"], x)
            interpreter.invoke()
            expected, = execution.run(x).values()
            np.testing.assert_array_equal(interpreter.get_tensor(result["index"]), expected)
        with self.assertRaisesRegex(RuntimeError, "dimension 3 of tensor"):
            interpreter.resize_tensor_input(detail["index"], [1, 12, 12, 3], strict=True)
        interpreter.resize_tensor_input(detail["index"], [2, 12, 12, 4])
        interpreter.allocate_tensors()
        interpreter.resize_tensor_input(detail["index"], [5, 12, 12, 4])
        with self.assertRaisesRegex(RuntimeError, "not ready"):
            interpreter.invoke()

    def testFixedShapesAreResizedAndKept(self):
        interpreter = self.allocated()
        detail, = interpreter.get_input_details()
        last = interpreter.get_output_details()[0]["index"]
        images = np.random.default_rng(7).standard_normal((5, 28, 28, 1)).astype(np.float32)
        single = hearth.Model(DIGITS).compile(threads=1)
        prepared = {}
        for batch in (3, 1, 3, 5, 1, 5):
            interpreter.resize_tensor_input(detail["index"], [batch, 28, 28, 1])
            interpreter.allocate_tensors()
            self.assertEqual(interpreter.get_output_details()[0]["shape"].tolist(), [batch, 10])
            interpreter.set_tensor(detail["index"], images[:batch])
            interpreter.invoke()
            scores = interpreter.get_tensor(last)
            for image, row in zip(images, scores):
                np.testing.assert_array_equal(row, single.run(image[np.newaxis])["probabilities"][0])
            compilation = interpreter._interpreter._compilation
            self.assertIs(prepared.setdefault(batch, compilation), compilation)
        runner = interpreter.get_signature_runner()
        np.testing.assert_array_equal(runner(image=images)["probabilities"], scores)
        interpreter.resize_tensor_input(detail["index"], [1, 28, 28])
        with self.assertRaisesRegex(RuntimeError, "has the shape .1,28,28., its rank must be 4"):
            interpreter.allocate_tensors()
        with self.assertRaisesRegex(RuntimeError, "not ready"):
            interpreter.invoke()
        interpreter.resize_tensor_input(detail["index"], [1, 28, 28, 1])
        interpreter.allocate_tensors()
        interpreter.invoke()

    def testOptionsThatOtherRanksWouldLoseAreRefused(self):
        delegate = load_delegate(hearth.delegate_library(), {"device": "nnapi-reference", "threads": 2})
        interpreter = Interpreter(model_path=str(STORED / "activation-gelu-int8.tflite"),
                                  experimental_delegates=[delegate])
        index = interpreter.get_input_details()[0]["index"]
        with self.assertRaisesRegex(ValueError, "The options device of .*inputs of another rank"):
            interpreter.resize_tensor_input(index, [48])
        interpreter.resize_tensor_input(index, [3, 16])
        interpreter.allocate_tensors()
        interpreter.invoke()

    def testRanksChange(self):
        random = np.random.default_rng(9)
        for path, shapes in ((STORED / "activation-gelu-int8.tflite", [[3, 16], [48], [2, 2, 3, 4], [3, 16]]),
                             (STORED / "dense-aiedge-dynamic4-blocks.tflite", [[2, 64], [1, 2, 64], [128]])):
            interpreter = Interpreter(model_path=str(path), num_threads=1)
            detail, = interpreter.get_input_details()
            last = interpreter.get_output_details()[0]["index"]
            values = random.standard_normal(shapes[0]).astype(np.float32)
            results = []
            for shape in shapes:
                interpreter.resize_tensor_input(detail["index"], shape)
                self.assertEqual(interpreter.get_input_details()[0]["shape"].tolist(), shape)
                interpreter.allocate_tensors()
                interpreter.set_tensor(detail["index"], values.reshape(shape))
                interpreter.invoke()
                results.append(interpreter.get_tensor(last))
                self.assertEqual(results[-1].shape, tuple(interpreter.get_output_details()[0]["shape"]))
            for result in results:
                np.testing.assert_array_equal(result.ravel(), results[0].ravel())

    def testOutputsOfUnknownRankAreWrittenLikeScalars(self):
        graph = graphs.Graph("sums")
        x, axis = graph.addInput("x", (3, 4)), graph.addInput("axis", (1,), np.int32)
        axes = graph.addConstant("axes", np.array([0, 1], np.int32))
        # The file says [] of both, and not that it knows the rank; the first has a dimension.
        graph.outputs = [graph.addOperator("SUM", "sums", [x, axis], ()),
                         graph.addOperator("SUM", "sum", [x, axes], ())]
        made = tflite_writer._tensor

        def withoutRank(*arguments):
            table = made(*arguments)
            del table.fields[tflite_schema.TENSOR_HAS_RANK]
            return table

        with unittest.mock.patch.object(tflite_writer, "_tensor", withoutRank):
            tflite_writer.write(graph, self.folder / "sums.tflite")
        interpreter = Interpreter(str(self.folder / "sums.tflite"))
        sums, total = (detail["index"] for detail in interpreter.get_output_details())
        value = np.arange(12, dtype=np.float32).reshape(3, 4)
        for _ in range(2):
            interpreter.allocate_tensors()
            interpreter.set_tensor(x, value)
            for along in (1, 0, 0, 1):
                interpreter.set_tensor(axis, np.array([along], np.int32))
                interpreter.invoke()
                np.testing.assert_array_equal(interpreter.get_tensor(sums), value.sum(along))
                self.assertEqual(interpreter.get_tensor(total), 66)
            self.assertEqual(interpreter.get_output_details()[0]["shape"].tolist(), [3])
            self.assertEqual(interpreter.get_output_details()[1]["shape"].tolist(), [])

    def testInputsThatKeepTheirShapeKeepTheirValue(self):
        interpreter = self.allocated(STORED / "squared-difference-broadcast-int8.tflite")
        first, second = interpreter.get_input_details()
        x = np.random.default_rng(4).random(second["shape"], np.float32)
        interpreter.set_tensor(second["index"], x)
        interpreter.resize_tensor_input(first["index"], [1])
        interpreter.allocate_tensors()
        np.testing.assert_array_equal(interpreter.get_tensor(second["index"]), x)

    def testInputsMayHaveNoElements(self):
        interpreter = Interpreter(model_path=str(OPEN_BATCH))
        detail, = interpreter.get_input_details()
        result, = interpreter.get_output_details()
        execution = hearth.Model(OPEN_BATCH).compile(threads=1).create_execution()
        for batch in (0, 2, 0, 1):
            interpreter.resize_tensor_input(detail["index"], [batch, 12, 12, 4], strict=True)
            interpreter.allocate_tensors()
            x = np.ones((batch, 12, 12, 4), np.float32)
            interpreter.set_tensor(detail["index"], x)
            interpreter.invoke()
            got = interpreter.get_tensor(result["index"])
            self.assertEqual(got.shape, (batch, 12, 12, 8))
            if batch:
                np.testing.assert_array_equal(got, execution.run(x)[hearth.Model(OPEN_BATCH).compile().outputs[0].name])
        runner = interpreter.get_signature_runner()
        name, = interpreter.get_signature_list()["serving_default"]["inputs"]
        got, = runner(**{name: np.ones((0, 12, 12, 4), np.float32)}).values()
        self.assertEqual(got.shape, (0, 12, 12, 8))

    def testShapesOfOutputsAreKnownBeforeARun(self):
        interpreter = Interpreter(model_path=OPEN_SIZE)
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [1, 9, 14, 3])
        interpreter.allocate_tensors()
        detail, = interpreter.get_output_details()
        self.assertEqual(interpreter.get_tensor(detail["index"]).shape, tuple(detail["shape"]))
        interpreter.invoke()
        self.assertEqual(interpreter.get_tensor(detail["index"]).shape, tuple(detail["shape"]))

    def testStateIsKeptUntilItIsReset(self):
        interpreter = self.allocated(LSTM)
        execution = hearth.Model(LSTM).compile(threads=1).create_execution()
        detail, = interpreter.get_input_details()
        last = interpreter.get_output_details()[0]["index"]
        x = valuesFor(detail, np.random.default_rng(3))
        results = []
        for step in range(4):
            if step == 2:
                interpreter.reset_all_variables()
                execution.reset_state()
            interpreter.set_tensor(detail["index"], x)
            interpreter.invoke()
            results.append(interpreter.get_tensor(last))
            np.testing.assert_array_equal(results[-1], *execution.run(x).values())
        self.assertFalse(np.array_equal(results[0], results[1]))
        np.testing.assert_array_equal(results[0], results[2])
        np.testing.assert_array_equal(results[1], results[3])

    def testSignaturesAreFunctions(self):
        interpreter = Interpreter(model_path=OPEN_BATCH)
        self.assertEqual(interpreter.get_signature_list(),
                         {"serving_default": {"inputs": ["x0"], "outputs": ["y0"]}})
        run = interpreter.get_signature_runner()
        execution = hearth.Model(OPEN_BATCH).compile(threads=1).create_execution()
        for batch in (1, 4):
            x = np.random.default_rng(batch).standard_normal((batch, 12, 12, 4)).astype(np.float32)
            np.testing.assert_array_equal(run(x0=x)["y0"], execution.run(x)["y0"])
        self.assertEqual(run.get_input_details()["x0"]["index"], interpreter.get_input_details()[0]["index"])
        self.assertEqual(run.get_output_details()["y0"]["name"], interpreter.get_output_details()[0]["name"])
        for inputs, text in (({}, "expected 1 vs provided 0"), ({"x1": x}, "Invalid Input name (x1)"),
                             ({"x0": x.astype(np.float64)}, "Got value of type FLOAT64")):
            with self.assertRaises(ValueError) as caught:
                run(**inputs)
            self.assertIn(text, str(caught.exception))

    def testAllTensorsCanBePreserved(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            interpreter = self.allocated(experimental_preserve_all_tensors=True)
        plain = self.allocated()
        detail, = interpreter.get_input_details()
        self.assertEqual(len(interpreter.get_output_details()), 1)
        x = valuesFor(detail, np.random.default_rng(4))
        for each in (interpreter, plain):
            each.set_tensor(detail["index"], x)
            each.invoke()
        last = plain.get_output_details()[0]["index"]
        np.testing.assert_array_equal(interpreter.get_tensor(last), plain.get_tensor(last))
        operators = interpreter._get_ops_details()
        for each in operators:
            for index in each["outputs"]:
                value = interpreter.get_tensor(index)
                self.assertEqual(value.shape, tuple(interpreter.get_tensor_details()[index]["shape"]))
        softmax = operators[-1]
        self.assertEqual(softmax["op_name"], "SOFTMAX")
        scores = np.exp(interpreter.get_tensor(softmax["inputs"][0]).astype(np.float64))
        np.testing.assert_allclose(interpreter.get_tensor(last), scores / scores.sum(), rtol=1e-4, atol=1e-30)

    def testTheDelegateNamesADevice(self):
        delegate = load_delegate(hearth.delegate_library(), {"device": "nnapi-reference", "threads": 2})
        interpreter = self.allocated(experimental_delegates=[delegate],
                                     experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        self.assertEqual(interpreter._interpreter._compilation.device, "nnapi-reference")
        interpreter.invoke()

    def testProgramsRunAsTheyAre(self):
        (self.folder / "helper.py").write_text("NAME = 'helper'\n")
        script = self.folder / "program.py"
        script.write_text(
            "import sys, helper\n"
            "import tflite_runtime.interpreter as tflite\n"
            "from ai_edge_litert.interpreter import Interpreter, load_delegate\n"
            "from ai_edge_litert.compiled_model import CompiledModel\n"
            "from ai_edge_litert.cpu_options import CpuOptions\n"
            "from ai_edge_litert.hardware_accelerator import HardwareAccelerator\n"
            "from ai_edge_litert.qualcomm_options import QualcommBackend, QualcommOptions\n"
            "assert QualcommOptions(backend=QualcommBackend.HTP).backend is QualcommOptions.BACKEND.HTP\n"
            "assert CompiledModel.__module__ == 'hearth.tflite.compiled_model'\n"
            "try:\n"
            "    import tensorflow as tf\n"
            "    assert tf.lite.Interpreter is Interpreter or tf.__file__\n"
            "except ImportError:\n"
            "    raise SystemExit('tensorflow.lite is not answered')\n"
            "assert tflite.Interpreter is Interpreter\n"
            "interpreter = Interpreter(sys.argv[1])\n"
            "interpreter.allocate_tensors()\n"
            "interpreter.invoke()\n"
            "print(type(interpreter).__module__, __name__, helper.NAME, sys.argv[2:])\n")
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
        for arguments, folder in (([script], None), (["-m", "program"], self.folder)):
            shown = subprocess.run([sys.executable, "-m", "hearth.tflite", *arguments, DIGITS, "-x", "y"],
                                   env=environment, cwd=folder, capture_output=True, text=True)
            self.assertEqual(shown.stderr, "")
            self.assertEqual(shown.stdout, "hearth.tflite.interpreter __main__ helper ['-x', 'y']\n")
        for arguments, text in (([], "usage: "), (["none.py"], "there is no file 'none.py'")):
            shown = subprocess.run([sys.executable, "-m", "hearth.tflite", *arguments], env=environment,
                                   capture_output=True, text=True)
            self.assertEqual(shown.returncode, 2)
            self.assertIn(text, shown.stderr)

    def testWorkersThatAreSpawnedRepeatTheInstallation(self):
        script = self.folder / "workers.py"
        script.write_text(
            "import multiprocessing, sys\n"
            "import hearth.tflite\n"
            "hearth.tflite.install()\n"
            "from tflite_runtime.interpreter import Interpreter\n"
            "def work(path):\n"
            "    interpreter = Interpreter(path)\n"
            "    interpreter.allocate_tensors()\n"
            "    interpreter.invoke()\n"
            "    return type(interpreter).__module__\n"
            "if __name__ == '__main__':\n"
            "    for method in ('fork', 'spawn', 'forkserver'):\n"
            "        with multiprocessing.get_context(method).Pool(1) as pool:\n"
            "            print(*pool.map(work, [sys.argv[1]]))\n")
        shown = subprocess.run([sys.executable, script, DIGITS], capture_output=True, text=True, check=False, timeout=120,
                               env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        self.assertEqual(shown.stdout, "hearth.tflite.interpreter\n" * 3, shown.stderr[-2000:])


class CompiledModelTest(unittest.TestCase):

    def testResultsAreThoseOfTheModel(self):
        random = np.random.default_rng(5)
        for path in (DIGITS, OPEN_BATCH, LSTM, STORED / "variable-that-counts-float32.tflite",
                     STORED / "ssd-regular-suppression-int8.tflite"):
            with self.subTest(path.name), CompiledModel.from_file(str(path)) as model:
                key, = model.get_signature_list()
                inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
                details = list(model.get_input_tensor_details(key).values())
                execution = hearth.Model(path).compile(threads=1).create_execution()
                for _ in range(2):
                    arrays = [valuesFor(detail, random) for detail in details]
                    for buffer, array in zip(inputs, arrays):
                        buffer.write(array)
                    model.run_by_index(0, inputs, outputs)
                    expected = execution.run(arrays)
                    for name, buffer in zip(model.get_signature_list()[key]["outputs"], outputs):
                        known = expected[name]
                        np.testing.assert_array_equal(buffer.read(known.size, known.dtype), known.ravel())

    def testSignaturesAreDescribed(self):
        model = CompiledModel.from_buffer(DIGITS.read_bytes())
        self.assertEqual(model.get_signature_list(), {"serving_default": {"inputs": ["image"],
                                                                          "outputs": ["probabilities"]}})
        self.assertEqual(model.get_signature_by_index(0)["key"], "serving_default")
        self.assertEqual((model.get_num_signatures(), model.get_signature_index("serving_default"),
                          model.get_signature_index("training")), (1, 0, -1))
        detail = model.get_input_tensor_details("serving_default")["image"]
        self.assertEqual((detail["dtype"], detail["shape"]), ("float32", [1, 28, 28, 1]))
        self.assertEqual(model.get_output_buffer_requirements(0),
                         {"buffer_size": 40, "supported_types": [1]})
        self.assertTrue(model.is_fully_accelerated())

    def testBuffersComeByNameAndFromMemory(self):
        model = CompiledModel.from_file(DIGITS)
        x = np.random.default_rng(6).standard_normal((1, 28, 28, 1)).astype(np.float32)
        scores = model.create_output_buffer_by_name("serving_default", "probabilities")
        image = TensorBuffer.create_from_host_memory(x)
        model.run_by_name("serving_default", {"image": image}, {"probabilities": scores})
        expected = hearth.Model(DIGITS).compile(threads=1).run(x)["probabilities"]
        np.testing.assert_array_equal(scores.read(10, np.float32), expected[0])
        x[:] = 0
        model.run_by_name("serving_default", {"image": image}, {"probabilities": scores})
        self.assertFalse(np.array_equal(scores.read(10, np.float32), expected[0]))
        self.assertEqual(scores.get_tensor_details(), {"dtype": "float32", "shape": [1, 10]})

    def testOpenDimensionsAreResized(self):
        model = CompiledModel.from_file(OPEN_BATCH)
        execution = hearth.Model(OPEN_BATCH).compile(threads=1).create_execution()
        for batch in (3, 1, 3):
            model.resize_input_tensor_by_name("serving_default", "x0", (batch, 12, 12, 4))
            x = np.random.default_rng(batch).standard_normal((batch, 12, 12, 4)).astype(np.float32)
            inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
            inputs[0].write(x)
            model.run_by_index(0, inputs, outputs)
            expected = execution.run(x)["y0"]
            self.assertEqual(outputs[0].get_tensor_details()["shape"], list(expected.shape))
            np.testing.assert_array_equal(outputs[0].read(expected.size, np.float32), expected.ravel())

    def testFixedShapesAreResized(self):
        model = CompiledModel.from_file(DIGITS)
        model.resize_input_tensor(0, [3, 28, 28, 1], strict=False)
        inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
        self.assertEqual(outputs[0].get_tensor_details()["shape"], [3, 10])
        x = np.random.default_rng(8).standard_normal((3, 28, 28, 1)).astype(np.float32)
        inputs[0].write(x)
        model.run_by_index(0, inputs, outputs)
        single = hearth.Model(DIGITS).compile(threads=1)
        expected = np.concatenate([single.run(image[np.newaxis])["probabilities"] for image in x])
        np.testing.assert_array_equal(outputs[0].read(30, np.float32), expected.ravel())

    def testMistakesAreSentences(self):
        model = CompiledModel.from_file(DIGITS, options=Options(cpu_options=CpuOptions(num_threads=2)))
        inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
        closed, gone = CompiledModel.from_file(DIGITS), model.create_input_buffers(0)[0]
        closed.close()
        gone.destroy()
        environment = Environment.create()
        environment.close()
        for call, error, text in (
                (closed.get_num_signatures, ValueError, "closed"),
                (lambda: CompiledModel.from_file("none.tflite"), RuntimeError, "Failed to load model from file"),
                (lambda: CompiledModel.from_buffer(b"TFL3"), RuntimeError, "Failed to load model from buffer"),
                (lambda: CompiledModel.from_file(DIGITS, HardwareAccelerator.GPU), RuntimeError, "type gpu"),
                (lambda: CompiledModel.from_file(DIGITS, HardwareAccelerator.CPU, options=Options()),
                 ValueError, "not both"),
                (lambda: CompiledModel.from_file(DIGITS, environment=environment), ValueError,
                 "no longer valid"),
                (lambda: model.get_input_tensor_details("training"), RuntimeError, "Signature not found"),
                (lambda: model.get_signature_by_index(-1), RuntimeError, "out of range"),
                (lambda: model.create_input_buffers(1), RuntimeError, "out of range"),
                (lambda: model.create_input_buffer_by_name("serving_default", "x"), RuntimeError,
                 "Input tensor not found: x"),
                (lambda: model.resize_input_tensor(0, [2, 28, 28, 1]), RuntimeError, "dimension 0"),
                (lambda: model.resize_input_tensor_by_name("training", "x", [1]), ValueError,
                 "Unknown signature: training"),
                (lambda: model.run_by_index(0, [], outputs), RuntimeError, "number of input buffers is 0"),
                (lambda: model.run_by_index(0, outputs, inputs), RuntimeError, "resize tensor"),
                (lambda: model.run_by_index(0, [gone], outputs), ValueError, "destroyed"),
                (lambda: model.run_by_name("serving_default", {}, {}), RuntimeError, "missing"),
                (lambda: inputs[0].write([1]), ValueError, "must be a NumPy array"),
                (lambda: inputs[0].write(np.zeros(784)), ValueError, "Unsupported dtype: float64"),
                (lambda: inputs[0].write(np.zeros(785, np.float32)), RuntimeError, "larger"),
                (lambda: outputs[0].read(11, np.float32), RuntimeError, "larger"),
                (lambda: gone.read(1, np.float32), RuntimeError, "destroyed"),
                (lambda: TensorBuffer.create_from_host_memory(np.zeros((4, 4))[:, :2]), ValueError,
                 "C-contiguous")):
            with self.assertRaises(error) as caught:
                call()
            self.assertIn(text, str(caught.exception))
        model.run_by_index(0, inputs, outputs)


if __name__ == "__main__":
    unittest.main()
