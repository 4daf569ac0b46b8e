# SPDX-License-Identifier: Apache-2.0
"""The Python package: its results are those of the command, arrays are used in place, errors
explain themselves."""

import array
import ast
import gc
import inspect
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from unittest import mock

import numpy as np

from package_models import BUILD, DIGITS, ROOT, picture, writeSlowModel  # before hearth, which it finds

import hearth
from workloads import tflite_metadata, tflite_writer
from workloads.graph import Graph

# The words of a sentence, their numbers in a table, and which of them is "b".
STRINGS = ROOT / "tests" / "corpus" / "model_file_fuzz" / "strings.tflite"
DATA = os.environ.get("HEARTH_TEST_DATA")


class PackageTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="hearth-python-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        cls.store = cls.folder / "store"
        # Well before it is first read: the store does not trust a file that has just changed.
        writeSlowModel(cls.folder / "slow.tflite")
        cls.model = hearth.Model(DIGITS)
        cls.compiled = cls.model.compile(store=cls.store)

    def testRecognisesDigits(self):
        execution = self.compiled.create_execution()
        for digit in (0, 2, 3, 5, 8):
            for run in (self.compiled.run, execution.run):
                scores = run({"image": picture(digit)})["probabilities"]
                self.assertEqual(scores.argmax(), digit)
                self.assertEqual((scores.shape, scores.dtype), ((1, 10), np.float32))

    def testStringsComeAndGo(self):
        compiled = hearth.Model(STRINGS).compile(store=self.store)
        tensor, = compiled.inputs
        self.assertEqual((tensor.dtype, tensor.shape), ("object", (1,)))
        self.assertEqual(tensor.empty().tolist(), [b""])
        for given in (["a c x"], [b"a c x"], np.array(["a c x"]), np.array([b"a c x"]),
                      np.array(["a c x"], object)):
            for inputs in (given, {tensor.name: given}):
                results = list(compiled.run(inputs).values())
                self.assertEqual(results[0].dtype, object)
                self.assertEqual(results[0].tolist(), [[b"a", b"c", b"x"]])
                self.assertEqual(results[1].tolist(), [[10, 30, -1]])
                self.assertEqual(results[2].tolist(), [3])
                self.assertEqual(results[3].tolist(), [[False, False, False]])
        execution = compiled.create_execution()
        for words in ("b", "\u00e9 \u3042", ""):
            results = list(execution.start([words]).wait().values())
            self.assertEqual([word.decode() for word in results[0][0]], words.split())
        for wrong, text in (([1], "neither str nor bytes"), (["a", "b"], "has the shape"),
                            ([["a"]], "has the shape")):
            with self.assertRaisesRegex(hearth.errors.InvalidArgument, text):
                compiled.run({tensor.name: wrong})
        name = compiled.outputs[0].name
        with self.assertRaisesRegex(hearth.errors.InvalidArgument, "no array can be given"):
            compiled.run(["a"], outputs={name: np.empty((1, 1), object)})

    def testTakesAPartOfAContainer(self):
        path = self.folder / "digits.task"
        content = DIGITS.read_bytes()
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("first.tflite", "second.tflite"):
                member = zipfile.ZipInfo(name)
                # A field of zeros that aligns the content to 4 bytes.
                start = archive.fp.tell() + 30 + len(name)
                member.extra = bytes(4 + -start % 4)
                archive.writestr(member, content)
        described = hearth.describe_container(path)
        self.assertEqual([part["name"] for part in described["parts"]],
                         ["first.tflite", "second.tflite"])
        for model in (hearth.Model(path, part="second.tflite"),
                      hearth.Model.from_bytes(path.read_bytes(), "first.tflite")):
            scores = model.compile(store=self.store).run({"image": picture(5)})["probabilities"]
            self.assertEqual(scores.argmax(), 5)
        for part in (None, "third.tflite"):
            with self.assertRaisesRegex(hearth.Error, "first.tflite, second.tflite"):
                hearth.Model(path, part=part)
        self.assertEqual(hearth.describe_container(DIGITS)["format"], "tflite")

    def testDescribesItself(self):
        self.assertEqual(self.model.signatures, ["serving_default"])
        self.assertEqual(self.model.inspect()["signatures"][0]["key"], "serving_default")
        signature, = self.model.inspect(shapes={"image": (4, 28, 28, 1)})["signatures"]
        self.assertEqual([signature["inputs"][0]["shape"], signature["outputs"][0]["shape"]],
                         [[4, 28, 28, 1], [4, 10]])
        with self.assertRaisesRegex(hearth.errors.NotFound, "image"):
            self.model.inspect(shapes={"picture": (4, 28, 28, 1)})
        tensor, = self.compiled.inputs
        self.assertEqual((tensor.name, tensor.dtype, tensor.shape), ("image", "float32", (1, 28, 28, 1)))
        self.assertEqual([device.name for device in hearth.devices()][0], "hearth-cpu")
        self.assertIn(self.compiled.device, [device.name for device in hearth.devices()])
        self.assertRegex(hearth.version(), r"^\d+\.\d+\.\d+")
        self.assertIn(self.compiled.start_report["state"], ("cold", "warm", "uncached"))

    def testInputsComeByNamePlaceOrAlone(self):
        x = picture(5)
        expected = self.compiled.run({"image": x})["probabilities"]
        for inputs in (x, [x], (x,), x.tolist(), [x.tolist()], list(x), x.astype(">f4"),
                       np.asfortranarray(x), memoryview(x)):
            np.testing.assert_array_equal(self.compiled.run(inputs)["probabilities"], expected)
        x.flags.writeable = False
        np.testing.assert_array_equal(self.compiled.run(x)["probabilities"], expected)

    def testMemoryOfTheTensorIsUsedInPlace(self):
        execution = self.compiled.create_execution()
        x = self.compiled.inputs[0].empty()
        x[:] = picture(3)
        mine = self.compiled.outputs[0].empty()
        result = execution.run(x, outputs={"probabilities": mine})
        self.assertIs(result["probabilities"], mine)
        self.assertEqual(mine.argmax(), 3)
        self.assertEqual(execution.statistics.copied_bytes, 0)
        self.assertEqual(execution.statistics.runs, 1)
        self.assertEqual(x.ctypes.data % self.compiled.inputs[0].alignment, 0)

    def testResultsOutliveTheirExecution(self):
        execution = self.compiled.create_execution()
        result = execution.run(picture(8))["probabilities"]
        before = result.copy()
        execution.run(picture(2))
        del execution
        gc.collect()
        np.testing.assert_array_equal(result, before)

    def testRunsWithTheSameAndWithOtherArrays(self):
        """What is bound is kept from run to run, and replaced when the arrays are others."""
        execution = self.compiled.create_execution()
        x, y = picture(3), picture(5)
        first = execution.run(x)["probabilities"]
        kept = first.copy()
        first[:] = 7
        second = execution.run(x)["probabilities"]
        self.assertIsNot(first, second)
        np.testing.assert_array_equal(second, kept)
        self.assertTrue(second.flags.owndata and second.flags.writeable)
        self.assertEqual(execution.run(y)["probabilities"].argmax(), 5)
        mine = self.compiled.outputs[0].empty()
        for inputs, digit in ((x, 3), (y, 5), (x, 3)):
            execution.run(inputs, outputs={"probabilities": mine})
            self.assertEqual(mine.argmax(), digit)
            mine[:] = 0
            self.assertEqual(execution.run(inputs)["probabilities"].argmax(), digit)
            self.assertEqual(mine.max(), 0)
        x[:] = picture(8)
        self.assertEqual(execution.run(x)["probabilities"].argmax(), 8)
        self.assertEqual(execution.start(x).wait()["probabilities"].argmax(), 8)
        # Bytes in another order are converted, not taken as they are.
        self.assertEqual(execution.run(x.astype(">f4"))["probabilities"].argmax(), 8)
        self.assertEqual(execution.run(x)["probabilities"].argmax(), 8)
        np.testing.assert_array_equal(second, kept)

    def testMistakesAreSentences(self):
        x = picture(0)
        wrong = np.zeros((1, 10), np.float64)
        frozen = self.compiled.outputs[0].empty()
        frozen.flags.writeable = False
        for call, error, text in (
                (lambda: self.compiled.run(), hearth.errors.InvalidArgument, "has 1 input ('image'), and 0 are given"),
                (lambda: self.compiled.run({"picture": x}), hearth.errors.InvalidArgument,
                 "no input 'picture'"),
                (lambda: self.compiled.run({}), hearth.errors.InvalidArgument, "missing"),
                (lambda: self.compiled.run(x.astype(np.float64)), hearth.errors.InvalidArgument,
                 "float64"),
                (lambda: self.compiled.run(x.astype(np.float64)), hearth.errors.InvalidArgument,
                 "array.astype(numpy.float32) converts it"),
                (lambda: self.compiled.run(x[0, :, :, 0]), hearth.errors.InvalidArgument,
                 "array[numpy.newaxis, :, :, numpy.newaxis]"),
                (lambda: self.compiled.run([x, x]), hearth.errors.InvalidArgument, "and 2 are"),
                (lambda: self.compiled.run(x[0]), hearth.errors.InvalidArgument,
                 "(28, 28, 1), the tensor (1, 28, 28, 1). It lacks the batch: "
                 "array[numpy.newaxis]"),
                (lambda: self.compiled.run(x.transpose(0, 3, 1, 2)), hearth.errors.InvalidArgument,
                 "array.transpose(0, 2, 3, 1)"),
                (lambda: self.compiled.run(x[0].transpose(2, 0, 1)), hearth.errors.InvalidArgument,
                 "array.transpose(1, 2, 0)[numpy.newaxis]"),
                (lambda: self.compiled.run(x.astype(object)), hearth.errors.InvalidArgument,
                 "another kind than numbers (object)"),
                (lambda: self.compiled.run(x.astype(">f8")), hearth.errors.InvalidArgument,
                 "has >f8, the tensor float32"),
                (lambda: self.model.compile(threads=-1), hearth.errors.InvalidArgument,
                 "threads is -1. It needs an integer from 0"),
                (lambda: self.model.compile(cache=True), hearth.errors.InvalidArgument,
                 "cache is True. It needs a text."),
                (lambda: hearth.Model(DIGITS.read_bytes()), hearth.errors.InvalidArgument,
                 "from_bytes"),
                (lambda: hearth.Model(bytearray(b"TFL3")), hearth.errors.InvalidArgument,
                 "from_bytes"),
                (lambda: self.compiled.run("a text"), hearth.errors.InvalidArgument, "no array"),
                (lambda: self.compiled.run(x, outputs={"probabilities": wrong}),
                 hearth.errors.InvalidArgument, "float64"),
                (lambda: self.compiled.run(x, outputs={"probabilities": frozen}),
                 hearth.errors.InvalidArgument, "writable"),
                (lambda: self.compiled.run(x, timeout=-1.0), hearth.errors.InvalidArgument,
                 "time-out"),
                (lambda: self.model.compile("training"), hearth.errors.NotFound, "training"),
                (lambda: self.model.compile(device="npu"), hearth.errors.NotFound, "npu"),
                (lambda: self.model.compile(cache="later"), hearth.errors.InvalidArgument,
                 "'read-only'"),
                (lambda: self.model.compile(thread=2), hearth.errors.InvalidArgument, "threads"),
                (lambda: self.model.compile(cache_dir=self.folder, cache_token=b"short"),
                 hearth.errors.InvalidArgument, "32"),
                (lambda: hearth.Model(self.folder / "none.tflite"), hearth.errors.NotFound,
                 "none.tflite"),
                (lambda: hearth.Model.from_bytes(b"TFL3"), hearth.errors.InvalidArgument, "TFL3")):
            with self.assertRaises(error) as caught:
                call()
            self.assertIn(text, str(caught.exception))
            self.assertIsInstance(caught.exception, hearth.Error)
            self.assertNotEqual(caught.exception.status, 0)

    def testErrorsNameTheFileOnce(self):
        page = self.folder / "page.tflite"
        page.write_text("<!DOCTYPE html><html>404</html>")
        for path, text in ((page, "web page"), (self.folder, "folder"),
                           (self.folder / "none.tflite", "No such file")):
            with self.assertRaises(hearth.Error) as caught:
                hearth.Model(path)
            self.assertIn(text, str(caught.exception))
            self.assertEqual(str(caught.exception).count(str(path)), 1, caught.exception)

    def testPeopleAndToolsSeeWhatThereIs(self):
        self.assertEqual(hearth.__version__, hearth.version())
        for text, thing in (("(path, part=None)", hearth.Model),
                            ("(content, part=None)", hearth.Model.from_bytes),
                            ("(inputs=None, *, outputs=None, timeout=None)", self.compiled.run),
                            ("(shape=None)", self.compiled.inputs[0].empty),
                            ("()", self.model.close), ("()", self.compiled.close),
                            ("()", self.compiled.create_execution().close),
                            ("(timeout=None)", hearth.flush)):
            self.assertEqual(str(inspect.signature(thing)), text)
        for method in (self.model.compile, self.model.explain_start, self.model.compile_signatures):
            self.assertIn("threads=None", str(inspect.signature(method)))
            self.assertTrue(inspect.getdoc(method))
        with self.assertRaisesRegex(hearth.errors.InvalidArgument, "weight_cache") as caught:
            self.model.compile(speed=2)
        # What help() shows is what the library takes.
        shown = set(inspect.signature(self.model.compile).parameters)
        known = re.search("There are (.*)\\.$", str(caught.exception)).group(1)
        self.assertEqual(shown, set(known.replace(" and ", ", ").split(", ")))
        execution = self.compiled.create_execution()
        run = execution.start(picture(2))
        run.wait()
        for text, thing in ((r"<hearth.Model 'digits.tflite', 1 signature, input float32\[1,28,28,1\], "
                             r"output float32\[1,10\]>", self.model),
                            (r"<hearth.Model of bytes, ", hearth.Model.from_bytes(DIGITS.read_bytes())),
                            (r"<hearth.Compilation on hearth-cpu, 'image' float32\(1, 28, 28, 1\) -> "
                             r"'probabilities' float32\(1, 10\)>", self.compiled),
                            (r"<hearth.Execution 1 run>", execution), (r"<hearth.Run done>", run),
                            (r"<hearth.Tensor 'image' float32\(1, 28, 28, 1\)>",
                             self.compiled.inputs[0]),
                            (r"<hearth.Device 'hearth-cpu' cpu, version ", hearth.devices()[0])):
            self.assertRegex(repr(thing), text)
        closed = hearth.Model(DIGITS)
        closed.close()
        self.assertEqual(repr(closed), "<hearth.Model 'digits.tflite', closed>")

    def testTheStubsNameTheKeysThatThereAre(self):
        stub = ast.parse((BUILD / "python" / "hearth" / "__init__.pyi").read_text())
        known = {node.name: {field.target.id for field in node.body} for node in stub.body
                 if isinstance(node, ast.ClassDef) and node.bases
                 and getattr(node.bases[0], "id", "") == "TypedDict"}
        inspected = self.model.inspect()
        report = self.compiled.start_report
        for name, given in (("StartReport", report), ("Tuning", report["tuning"]),
                            ("Inspection", inspected), ("Signature", inspected["signatures"][0]),
                            ("Argument", inspected["signatures"][0]["inputs"][0]),
                            ("Metadata", self.model.metadata)):
            self.assertEqual(known[name], set(given), name)
        self.assertEqual(known["Options"] | {"signature"},
                         set(inspect.signature(self.model.compile).parameters))

    def testACompilationIsAFunction(self):
        self.assertEqual(self.compiled(picture(5))["probabilities"].argmax(), 5)
        for device in ("cpu", "CPU"):
            self.assertEqual(self.model.compile(device=device, store=self.store).device, "hearth-cpu")
        with self.assertRaisesRegex(hearth.errors.NotFound,
                                    r"no device of the type gpu; there are: hearth-cpu \(cpu\)"):
            self.model.compile(device="GPU")
        self.assertEqual(self.compiled.create_execution()(picture(5))["probabilities"].argmax(), 5)

    def testWithClosesAndWhatWasMadeGoesOn(self):
        with hearth.Model(DIGITS) as model, model.compile(store=self.store) as compiled, \
                compiled.create_execution() as execution:
            model.close()
            compiled.close()
            self.assertEqual(execution.run(picture(3))["probabilities"].argmax(), 3)
        for call, text in ((model.inspect, "model"), (model.compile, "model"),
                           (lambda: compiled.run(picture(3)), "compilation"),
                           (compiled.create_execution, "compilation"),
                           (lambda: execution.run(picture(3)), "execution"),
                           (lambda: execution.statistics, "execution")):
            with self.assertRaisesRegex(hearth.errors.BadState, f"The {text} is closed"):
                call()
        execution.close()

    def testModelsAndCompilationsGoToOtherProcesses(self):
        model = pickle.loads(pickle.dumps(self.model))
        self.assertEqual(model.signatures, self.model.signatures)
        compiled = pickle.loads(pickle.dumps(self.compiled))
        self.assertEqual(compiled.run(picture(8))["probabilities"].argmax(), 8)
        for thing, text in ((hearth.Model.from_bytes(DIGITS.read_bytes()), "from_bytes"),
                            (self.compiled.create_execution(), "make an execution there")):
            with self.assertRaisesRegex(TypeError, text):
                pickle.dumps(thing)

    def testModelsSayWhatTheyAre(self):
        metadata = self.model.metadata
        self.assertEqual((metadata["name"], metadata["inputs"], metadata["packed"]), ("", [], []))
        self.assertEqual(metadata["output_operations"], ["SOFTMAX"])
        self.assertEqual(self.model.labels(), [])
        with self.assertRaisesRegex(hearth.errors.NotFound, "no labels"):
            self.model.labels(locale="en")
        with self.assertRaisesRegex(hearth.errors.NotFound, "there are: none"):
            self.model.packed_file("labels.txt")

    def testLabelsComeFromTheMetadata(self):
        graph = Graph("named")
        graph.outputs = [graph.softmax("y", graph.addInput("x", (1, 2)))]
        path = self.folder / "named.tflite"
        tflite_writer.write(graph, path, metadata=tflite_metadata.metadata(
            "named", [], [tflite_metadata.tensor("score", files=[
                ("labels.txt", "axis labels", "en"), ("namen.txt", "axis labels", "de")])]))
        tflite_metadata.pack(path, {"labels.txt": "rain\r\nwind\n", "namen.txt": "Regen\nWind"})
        for model in (hearth.Model(path), hearth.Model.from_bytes(path.read_bytes())):
            self.assertEqual(model.metadata["name"], "named")
            self.assertEqual(model.labels(), ["rain", "wind"])
            self.assertEqual(model.labels("score", "de"), ["Regen", "Wind"])
            self.assertEqual(model.packed_file("namen.txt"), b"Regen\nWind")
            with self.assertRaisesRegex(hearth.errors.NotFound, "the languages are: en, de"):
                model.labels(0, "fr")
            with self.assertRaisesRegex(hearth.errors.NotFound, "there are: score"):
                model.labels("probability")

    def testEveryCutOfAModelIsRefusedOrRuns(self):
        content = DIGITS.read_bytes()
        refused = 0
        for size in range(0, len(content), len(content) // 60):
            try:
                hearth.Model.from_bytes(content[:size]).compile(cache="off")
            except hearth.Error:
                refused += 1
        self.assertGreater(refused, 50)

    def testEmptyArraysHaveTheShapeOfTheTensor(self):
        tensor, = self.compiled.inputs
        self.assertEqual(tensor.empty().shape, (1, 28, 28, 1))
        self.assertEqual(tensor.empty((1, 28, np.int64(28), 1)).shape, (1, 28, 28, 1))
        for shape in ((1, 28, 28, 3), (28, 28), 784, (1, 28, 28, 1 << 40), (1, 28, 28, 1 << 70),
                      (1, 28, 28, -1)):
            with self.assertRaisesRegex(hearth.errors.InvalidArgument,
                                        r"has the shape \(1, 28, 28, 1\), not "):
                tensor.empty(shape)

    def testAModelTakesOtherShapes(self):
        digits = (0, 2, 3, 5)
        batch = np.concatenate([picture(digit) for digit in digits])
        with self.assertRaisesRegex(ValueError, r"compile\(shapes=\{'image': \(4, 28, 28, 1\)\}\)"):
            self.compiled.run(batch)
        for device in ("cpu", "nnapi-reference"):
            one = self.model.compile(store=self.store, device=device)
            four = self.model.compile(store=self.store, device=device,
                                      shapes={"image": np.array(batch.shape)})
            self.assertEqual(four.inputs[0].empty().shape, batch.shape)
            scores = four.run(batch)["probabilities"]
            self.assertEqual(tuple(scores.argmax(axis=1)), digits)
            alone = [one.run(picture(digit))["probabilities"] for digit in digits]
            np.testing.assert_allclose(scores, np.concatenate(alone), rtol=0, atol=1e-6)
        again = pickle.loads(pickle.dumps(four))
        self.assertEqual(again.outputs[0].shape, (4, 10))
        for shapes, sentence in (({"imge": (4, 28, 28, 1)}, 'There is no input "imge".* Did you mean "image"\\?'),
                                 ({"image": (28, 28)}, "has 2 dimensions; the input has 4"),
                                 ({"image": (-1, 28, 28, 1)}, "a dimension that is not from 1"),
                                 ({"image": (1 << 32, 28, 28, 1)}, "a dimension that is not from 1"),
                                 ({"image": "4"}, "not a sequence of numbers"),
                                 ((4, 28, 28, 1), "maps names of inputs to shapes"),
                                 ({"image": (1, 56, 56, 1)}, "FULLY_CONNECTED .* rows of 1176")):
            with self.assertRaisesRegex(hearth.Error, sentence):
                self.model.compile(store=self.store, shapes=shapes)

    def testOutputsThatAreNotWantedAreNotThere(self):
        graph = Graph("two")
        x = graph.addInput("x", (1, 3))
        graph.outputs = [graph.add("sum", x, x), graph.multiply("product", x, x)]
        path = self.folder / "two.tflite"
        tflite_writer.write(graph, path)
        model = hearth.Model(path)
        given = np.float32([[1, 3, 5]])
        whole = model.compile(store=self.store).run(given)
        self.assertEqual(set(whole), {"sum", "product"})
        for names in (["product"], ("sum",)):
            compiled = model.compile(store=self.store, outputs=names)
            for each in (compiled, pickle.loads(pickle.dumps(compiled))):
                self.assertEqual([tensor.name for tensor in each.outputs], list(names))
                result = each.run(given)
                self.assertEqual(set(result), set(names))
                np.testing.assert_array_equal(result[names[0]], whole[names[0]])
        both = model.compile(store=self.store, outputs=["product", "sum"])
        self.assertEqual([tensor.name for tensor in both.outputs], ["sum", "product"])
        with self.assertRaisesRegex(hearth.errors.NotFound, 'no output "produkt".* Did you mean "product"'):
            model.compile(store=self.store, outputs=["produkt"])
        for names in ("sum", [], ["sum", 1], {"sum": given}, 1):
            with self.assertRaisesRegex(hearth.errors.InvalidArgument, "It lists names of outputs"):
                model.compile(store=self.store, outputs=names)

    def testUnknownDimensionsShowTheirDefaults(self):
        model = hearth.Model(ROOT / "tests/compatibility/models/conv-3x3-same-open-batch-dynamic.tflite")
        compiled = model.compile(store=self.store)
        tensor = compiled.inputs[0]
        self.assertEqual((tensor.shape, tensor.default_shape), ((None, 12, 12, 4), (1, 12, 12, 4)))
        self.assertIn("float32(?=1, 12, 12, 4)", repr(tensor))
        self.assertIn("float32(?=1, 12, 12, 4)", repr(compiled))
        self.assertEqual(tensor.empty().shape, (1, 12, 12, 4))
        with self.assertRaisesRegex(ValueError, r"the tensor \(\?=1, 12, 12, 4\)"):
            compiled.run(np.zeros((3, 4), np.float32))
        argument = model.inspect()["signatures"][0]["inputs"][0]
        self.assertEqual((argument["shape"], argument["default_shape"]), ([0, 12, 12, 4], [1, 12, 12, 4]))
        three = model.compile(store=self.store, shapes={tensor.name: (3, 12, 12, 4)})
        self.assertEqual(three.inputs[0].shape, (3, 12, 12, 4))
        self.assertEqual(three.start_report["shapes"], 0)
        x = np.random.default_rng(1).random((3, 12, 12, 4), np.float32)
        np.testing.assert_array_equal(*(list(made.run(x).values())[0] for made in (three, compiled)))

    def testShapesInTurnOnOneExecution(self):
        model = hearth.Model(ROOT / "tests/compatibility/models/conv-3x3-same-open-batch-dynamic.tflite")
        compiled = model.compile(store=self.store)
        execution = compiled.create_execution()
        random = np.random.default_rng(2)
        name = compiled.inputs[0].name
        # More than are kept, small outputs and large ones.
        inputs = [random.random((batch, 12, 12, 4), np.float32) for batch in (1, 4, 8, 3, 2, 5, 6, 7, 9, 24)]
        expected = []
        for x in inputs:
            fixed = model.compile(store=self.store, shapes={name: x.shape})
            expected.append(list(fixed.run(x).values())[0])
        results = []
        for _ in range(3):
            for x, right in zip(inputs, expected):
                results.append((list(execution.run(x).values())[0], right))
        # The same memory with another shape, and a copy where the first dimension is the same.
        memory = np.zeros((8, 12, 12, 4), np.float32)
        for x, right in list(zip(inputs, expected))[:4]:
            memory[:len(x)] = x
            results.append((list(execution.run(memory[:len(x)]).values())[0], right))
            results.append((list(execution.run(np.asfortranarray(x)).values())[0], right))
        given = np.zeros_like(expected[1])
        output = compiled.outputs[0].name
        self.assertIs(execution.run(inputs[1], outputs={output: given})[output], given)
        results.append((given, expected[1]))
        for value, right in results:  # later runs have not written to earlier results
            np.testing.assert_array_equal(value, right)
            value[...] = 0
        self.assertLessEqual(compiled.start_report["shapes"], 8)

    def testTheNextStartIsWarm(self):
        hearth.Model(self.folder / "slow.tflite").compile(store=self.store)
        hearth.flush()
        script = ("import sys; sys.path.insert(0, sys.argv[1]); import hearth; "
                  "print(hearth.Model(sys.argv[2]).compile(store=sys.argv[3]).start_report['state'])")
        run = subprocess.run([sys.executable, "-c", script, BUILD / "python",
                              self.folder / "slow.tflite", self.store], capture_output=True,
                             text=True, check=True, timeout=120)
        self.assertEqual(run.stdout, "warm\n")
        explained = hearth.Model(self.folder / "slow.tflite").explain_start(store=self.store)
        self.assertEqual(explained["state"], "warm")

    def testTheModuleIsTheCommand(self):
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
        run = subprocess.run([sys.executable, "-m", "hearth", "inspect", "--json", DIGITS],
                             capture_output=True, text=True, check=True, timeout=60,
                             env=environment)
        self.assertEqual(json.loads(run.stdout)["signatures"][0]["key"], "serving_default")

    def testComplexNumbers(self):
        spectrum = ROOT / "tests" / "corpus" / "model_file_fuzz" / "spectrum.tflite"
        frames = np.random.default_rng(7).normal(size=(2, 1, 6)).astype(np.float32)
        compiled = hearth.Model(spectrum).compile(store=self.store)
        magnitudes, real, imaginary, found = compiled.run(frames).values()
        self.assertEqual((found.shape, found.dtype), ((2, 1, 5), np.complex64))
        np.testing.assert_allclose(found, np.fft.rfft2(frames, (1, 8)), rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(real + 1j * imaginary, found)
        np.testing.assert_allclose(magnitudes, np.abs(found), rtol=1e-6)

    def testBuffersOfOtherKindsAreArrays(self):
        values = array.array("f", picture(5).ravel())
        shaped = memoryview(values).cast("B").cast("f", (1, 28, 28, 1))
        self.assertEqual(self.compiled.run(shaped)["probabilities"].argmax(), 5)


@unittest.skipUnless(DATA, "There is no test data.")
class DataTest(unittest.TestCase):
    """Real models give the same results as the command, bit for bit."""

    def testEveryModelGivesWhatTheCommandGives(self):
        models = sorted(pathlib.Path(DATA, "data", "models").glob("*.tflite"))
        self.assertGreater(len(models), 5)
        with tempfile.TemporaryDirectory(prefix="hearth-python-") as name:
            folder, refused = pathlib.Path(name), []
            for path in models:
                try:
                    compiled = hearth.Model(path).compile(store=folder / "store", tuning="off")
                except hearth.errors.Unsupported:
                    refused.append(path.stem)
                    continue
                random = np.random.default_rng(7)
                inputs, files = [], []
                for number, tensor in enumerate(compiled.inputs):
                    x = tensor.empty()
                    if x.dtype.kind == "f":
                        x[...] = random.uniform(-1, 1, x.shape)
                    else:
                        x.view(np.uint8)[...] = random.integers(0, 100, x.view(np.uint8).shape)
                    inputs.append(x)
                    files.append(folder / f"input_{number}.npy")
                    np.save(files[-1], x)
                execution = compiled.create_execution()
                outputs = execution.run(inputs)
                self.assertEqual(execution.statistics.copied_bytes, 0, path.name)
                subprocess.run([BUILD / "bin/hearth", "run", path, "--input", *files, "--tuning", "off",
                                "--store", folder / "store", "--output-dir", folder],
                               capture_output=True, check=True, timeout=120)
                for number, output in enumerate(outputs.values()):
                    expected = np.load(folder / f"output_{number}.npy")
                    np.testing.assert_array_equal(output, expected, path.name)
                    self.assertEqual(output.dtype, expected.dtype)
        # It contains operators of an audio front end, which the command refuses, too.
        self.assertEqual(refused, ["audio_preprocessor_int8"])


class FilesTest(unittest.TestCase):

    def testTheDelegateIsBesideThePackageOrFoundByName(self):
        self.assertEqual(pathlib.Path(hearth.delegate_library()).resolve(),
                         BUILD / "lib" / "libhearth_delegate.so")
        with mock.patch.object(hearth._files, "_PACKAGE", pathlib.Path("/nowhere/python/hearth")):
            self.assertEqual(hearth.delegate_library(), "libhearth_delegate.so")

    def testTheLibraryOfTensorFlowLiteIsBesideThePackageOrFoundByName(self):
        self.assertEqual(pathlib.Path(hearth.tflite_library()).resolve(), BUILD / "lib" / "libtensorflowlite_c.so")
        with mock.patch.object(hearth._files, "_PACKAGE", "/nowhere/python/hearth"):
            found = hearth.tflite_library()
        self.assertTrue(found == "libtensorflowlite_c.so" or found.startswith("/usr/lib/"), found)


if __name__ == "__main__":
    unittest.main()
