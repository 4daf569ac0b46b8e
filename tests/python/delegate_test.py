# SPDX-License-Identifier: Apache-2.0
"""hearth.tflite.load_delegate() with external delegates of others, here that of squaring_delegate.cc: they
compute what they take of a graph, in the program's process."""

import ctypes
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
sys.path.insert(0, str(BUILD / "python"))

import hearth  # noqa: E402
from hearth.tflite import Interpreter, load_delegate  # noqa: E402

DELEGATE = str(BUILD / "lib" / "libsquaring_delegate.so")
STORED = ROOT / "tests" / "compatibility" / "models"
CORPUS = ROOT / "tests" / "corpus" / "model_file_fuzz"
NORM = STORED / "group-norm-float32.tflite"  # has one SQUARE


class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int)
                for name in ("created", "destroyed", "offered", "taken", "released", "invoked")]


def valuesFor(detail, random):
    dtype, shape = np.dtype(detail["dtype"]), detail["shape"]
    if dtype.kind == "S":
        return np.full(shape, b"c b", object)
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2 if dtype.kind == "b" else 4, shape).astype(dtype)


def results(interpreter, inputs):
    for detail, array in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


class DelegateTest(unittest.TestCase):

    def setUp(self):
        self.library = ctypes.PyDLL(DELEGATE)
        self.library.take_counts.restype = Counts
        self.library.take_counts()

    def counted(self):
        """What has happened since the last call, without zeros."""
        counts = self.library.take_counts()
        return {name: getattr(counts, name) for name, _ in Counts._fields_ if getattr(counts, name)}

    def testItComputesWhatItTakes(self):
        random = np.random.default_rng(1)
        plain = Interpreter(str(NORM), num_threads=1)
        plain.allocate_tensors()
        inputs = [valuesFor(plain.get_input_details()[0], random)]
        expected, = results(plain, inputs)
        interpreter = Interpreter(str(NORM), experimental_delegates=[load_delegate(DELEGATE)])
        self.assertEqual(self.counted(), {"created": 1, "offered": 1, "taken": 1})
        interpreter.allocate_tensors()
        np.testing.assert_array_equal(results(interpreter, inputs)[0], expected)
        self.assertEqual(self.counted(), {"invoked": 1})
        other = Interpreter(model_content=NORM.read_bytes(),
                            experimental_delegates=[load_delegate(DELEGATE, {"factor": 4})])
        other.allocate_tensors()
        self.assertGreater(np.abs(results(other, inputs)[0] - expected).max(), 0.01)
        del interpreter, other
        self.assertEqual(self.counted(), {"created": 1, "offered": 1, "taken": 1, "invoked": 1,
                                          "released": 2, "destroyed": 2})

    def testInterpretersShareItAndKeepIt(self):
        delegate = load_delegate(DELEGATE)
        first, second = (Interpreter(str(NORM), experimental_delegates=[delegate]) for _ in range(2))
        self.assertIs(first._delegates[0], delegate)
        del delegate
        self.assertEqual(self.counted(), {"created": 1, "offered": 2, "taken": 2})
        del first
        self.assertEqual(self.counted(), {"released": 1})
        second.allocate_tensors()
        view = second.tensor(second.get_input_details()[0]["index"])()
        del second
        gc.collect()
        # The view lies in memory of the interpreter, which needs the delegate.
        view[:] = 1
        self.assertEqual(self.counted(), {})
        del view
        self.assertEqual(self.counted(), {"released": 1, "destroyed": 1})

    def testTheInterpreterGoesBeforeTheDelegate(self):
        order = []

        class Witness:
            def __del__(self):
                order.append("interpreter")

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)
        def destroyed(what):
            order.append(what.decode())
            return 0

        delegate = load_delegate(DELEGATE)
        interpreter = Interpreter(str(NORM), experimental_delegates=[delegate])
        interpreter._interpreter.stuff = Witness()
        delegate._library.set_destroy_callback(destroyed)
        self.addCleanup(self.library.set_destroy_callback, None)
        del delegate, interpreter
        self.assertEqual(order, ["interpreter", "delegate"])

    def testFailuresAreReported(self):
        with self.assertRaisesRegex(ValueError, "Failed to load delegate from .*squaring.*\nIt was asked to fail."):
            load_delegate(DELEGATE, {"fail": "creation"})
        refused = load_delegate(DELEGATE, {"fail": "preparation"})
        with self.assertRaisesRegex(RuntimeError, "no accelerator here"):
            Interpreter(str(NORM), experimental_delegates=[refused])
        lost = Interpreter(str(NORM),
                           experimental_delegates=[load_delegate(DELEGATE, {"fail": "invocation"})])
        lost.allocate_tensors()
        with self.assertRaisesRegex(RuntimeError, "the square of 7 is gone"):
            lost.invoke()
        with self.assertRaisesRegex(ValueError, "Failed to load delegate from libc.so.6\n.*no library of a"):
            load_delegate("libc.so.6")
        with self.assertRaises(OSError):
            load_delegate("libnothing.so")
        with self.assertRaisesRegex(ValueError, "is no delegate"):
            Interpreter(str(NORM), experimental_delegates=["libnothing.so"])

    def testOptionsOfHearthsDelegateGoWithIt(self):
        own = load_delegate(hearth.delegate_library(), {"threads": 2})
        Interpreter(str(NORM), experimental_delegates=[own, load_delegate(DELEGATE)]).allocate_tensors()
        self.assertEqual(self.counted()["taken"], 1)
        own = load_delegate(hearth.delegate_library(), {"device": "cpu"})
        with self.assertRaisesRegex(ValueError, "cannot be joined"):
            Interpreter(str(NORM), experimental_delegates=[own, load_delegate(DELEGATE)])

    def testShapesChange(self):
        path = str(STORED / "conv-3x3-same-open-batch-dynamic.tflite")
        plain = Interpreter(path, num_threads=1)
        interpreter = Interpreter(path, experimental_delegates=[load_delegate(DELEGATE)])
        random = np.random.default_rng(3)
        for batch in (1, 3, 2, 3):
            for each in (plain, interpreter):
                index = each.get_input_details()[0]["index"]
                each.resize_tensor_input(index, [batch, 12, 12, 4])
                each.allocate_tensors()
            inputs = [random.standard_normal((batch, 12, 12, 4)).astype(np.float32)]
            np.testing.assert_array_equal(results(interpreter, inputs)[0], results(plain, inputs)[0])
        view = interpreter.tensor(index)()
        with self.assertRaisesRegex(RuntimeError, "reference to internal data"):
            interpreter.invoke()
        del view
        interpreter.invoke()

    def testModelsRunAsWithoutIt(self):
        delegate = load_delegate(DELEGATE)
        random = np.random.default_rng(5)
        compared = 0
        for path in (*sorted(STORED.glob("*.tflite")), *sorted(CORPUS.glob("*.tflite"))):
            with self.subTest(path.name):
                try:
                    plain = Interpreter(str(path), num_threads=1)
                    plain.allocate_tensors()
                    details = plain.get_input_details()
                    sequence = [[valuesFor(detail, random) for detail in details] for _ in range(2)]
                    expected = [results(plain, inputs) for inputs in sequence]
                except (RuntimeError, ValueError):
                    continue  # The file is not to be run, or not with such numbers.
                interpreter = Interpreter(str(path), experimental_delegates=[delegate], num_threads=1)
                interpreter.allocate_tensors()
                for inputs, wanted in zip(sequence, expected):
                    for got, known in zip(results(interpreter, inputs), wanted, strict=True):
                        np.testing.assert_array_equal(got, known)
                        self.assertEqual((got.dtype, got.shape), (known.dtype, known.shape))
                self.assertEqual(
                    [each["shape"].tolist() for each in interpreter.get_output_details()],
                    [each["shape"].tolist() for each in plain.get_output_details()])
                compared += 1
        self.assertGreater(compared, 60)

    def testALibraryOfAnInstalledDriverIsItsDevice(self):
        script = """
import ctypes, sys, numpy
sys.path[:0] = [sys.argv[1], sys.argv[4]]
from delegate_test import Counts
from hearth.tflite import Delegate, Interpreter, load_delegate
if sys.argv[5] == "loaded":  # by the program itself
    delegate = Delegate.__new__(Delegate)
    delegate._load(sys.argv[2], {})
else:
    delegate = load_delegate(sys.argv[2])
interpreter = Interpreter(sys.argv[3], experimental_delegates=[delegate])
interpreter.allocate_tensors()
values = numpy.arange(128, dtype=numpy.float32).reshape(1, 4, 4, 8)
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
interpreter.invoke()
print(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tobytes().hex())
library = ctypes.CDLL(sys.argv[2])
library.take_counts.restype = Counts
counts = library.take_counts()
print(counts.created, counts.invoked)
"""
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "starts.json"

            def run(library, how="given", **variables):
                report.unlink(missing_ok=True)
                env = {**os.environ, "HEARTH_STORE_MODE": "off", "HEARTH_REPORT": str(report), **variables}
                command = [sys.executable, "-c", script, str(BUILD / "python"), library, str(NORM),
                           str(pathlib.Path(__file__).parent), how]
                ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=True)
                values, *counts = ran.stdout.split()
                devices = {each for line in report.read_text(encoding="utf-8").splitlines()
                           for each in json.loads(line)["device"].split(", ")}
                return values, counts, devices

            plain = run(DELEGATE)
            self.assertEqual(plain[1:], (["1", "1"], {"hearth-cpu"}))
            # The manifest has other options than the program.
            manifest = {"name": "squares", "needs": {"code": True},
                        "delegate": {"library": DELEGATE, "options": {"factor": 4}}}
            (pathlib.Path(folder) / "squares.json").write_text(json.dumps(manifest), encoding="utf-8")
            same = os.path.join(os.path.dirname(DELEGATE), ".", os.path.basename(DELEGATE))
            for library, how, created in ((DELEGATE, "given", "0"), (same, "given", "0"), (DELEGATE, "loaded", "1")):
                values, counts, devices = run(library, how, HEARTH_DRIVER_PATH=folder)
                self.assertEqual((counts, devices), ([created, "0"], {"hearth-cpu", "squares"}))
                self.assertNotEqual(values, plain[0])
            # Without the device the library computes in this process.
            manifest["delegate"]["library"] = str(pathlib.Path(folder) / "libother.so")
            (pathlib.Path(folder) / "squares.json").write_text(json.dumps(manifest), encoding="utf-8")
            self.assertEqual(run(DELEGATE, HEARTH_DRIVER_PATH=folder), plain)

    def testAllTensorsCanBePreserved(self):
        with self.assertWarns(UserWarning):
            interpreter = Interpreter(str(NORM), experimental_preserve_all_tensors=True,
                                      experimental_delegates=[load_delegate(DELEGATE)])
        interpreter.allocate_tensors()
        results(interpreter, [np.full((1, 4, 4, 8), 3, np.float32)])
        square = next(each for each in interpreter._get_ops_details() if each["op_name"] == "SQUARE")
        before, after = (interpreter.get_tensor(square[side][0]) for side in ("inputs", "outputs"))
        np.testing.assert_array_equal(after, before * before)
        self.assertEqual(self.counted()["invoked"], 1)

    def testThreadsRunInterpretersOfTheirOwn(self):
        delegate = load_delegate(DELEGATE)
        inputs = [np.full((1, 4, 4, 8), 2, np.float32)]
        found = []

        def run():
            interpreter = Interpreter(str(NORM), experimental_delegates=[delegate])
            interpreter.allocate_tensors()
            found.extend(results(interpreter, inputs)[0].tobytes() for _ in range(20))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(found), len(set(found))), (80, 1))


if __name__ == "__main__":
    unittest.main()
