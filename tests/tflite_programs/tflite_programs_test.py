# SPDX-License-Identifier: Apache-2.0
"""Programs that others wrote for TensorFlow Lite's C library, unchanged: `edgefirst-tflite` and
`pymicro-wakeword` from PyPI, which are installed in the cache folder, with Hearth's library in place of the
original. Results must be those of hearth.Model and of the original library."""

import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
sys.path[:0] = [str(ROOT / "bench"), str(BUILD / "python")]
import comparison  # noqa: E402
import hearth  # noqa: E402

STORED = ROOT / "tests" / "compatibility" / "models"
SAMPLE = ("activation-gelu-int8", "conv-3x3-same-int8-io", "depthwise-3x3-same-float16", "keyword-spotting-uint8-io",
          "layer-norm-int8", "mobilenet-v3-block-int8", "resnet-float32", "shufflenet-int16x8",
          "transformer-block-int8", "u-net-int8-io", "wide-conv-int8")
# Each model of a list of paths on the same inputs, by the calls of the package's description.
CLASSIFY = """
import sys
import numpy
from edgefirst_tflite import Interpreter
folder = sys.argv[1]
for path in sys.argv[2:]:
    interpreter = Interpreter(model_path=path, num_threads=1)
    random = numpy.random.default_rng(1)
    for place, detail in enumerate(interpreter.get_input_details()):
        dtype = numpy.dtype(detail["dtype"])
        shape = detail["shape"]
        value = random.standard_normal(shape) if dtype.kind == "f" else random.integers(0, 4, shape)
        interpreter.set_tensor(place, value.astype(dtype))
    interpreter.invoke()
    outputs = [interpreter.get_output_tensor(place) for place in range(len(interpreter.get_output_details()))]
    numpy.savez(f"{folder}/{path.rpartition('/')[2]}.npz", *outputs)
"""
# Bumps that move through the bands, in place of the features of speech.
LISTEN = """
import sys
import numpy
from pymicro_wakeword import MicroWakeWord, Model
library = {"libtensorflowlite_c_path": sys.argv[2]} if len(sys.argv) > 2 else {}
words = MicroWakeWord.from_builtin(Model(sys.argv[1]), **library)
random = numpy.random.default_rng(2)
found = []
for step in range(3000):
    if step % 30 == 0:
        center, width, height = random.uniform(0, 40), random.uniform(2, 12), random.uniform(5, 25)
    center += random.normal(0, 0.6)
    features = height * numpy.exp(-((numpy.arange(40) - center) / width) ** 2) + random.uniform(0, 3, 40)
    found.append(words.process_streaming_prob(features.astype(numpy.float32).reshape(1, 1, 40)))
print(found)
"""


def setUpModule():
    global python
    if platform.machine() != "x86_64":
        raise unittest.SkipTest("The packages' wheels are taken for x86-64 only.")
    try:
        python = comparison.environmentPython(comparison.CACHE / "tflite-programs-venv", "edgefirst-tflite==0.10.3",
                                              comparison.TFLITE_C_WHEEL)
    except comparison.Failure as failure:
        raise unittest.SkipTest(f"The packages are not there: {failure}.") from None


class TfliteProgramsTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="hearth-tflite-programs-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.report = self.folder / "starts.json"

    def output(self, script, *arguments, **variables):
        """What a script prints."""
        env = {**os.environ, "HEARTH_STORE": str(self.folder / "store"), "HEARTH_REPORT": str(self.report), **variables}
        done = subprocess.run([python, "-c", script, *map(str, arguments)], env=env, capture_output=True, text=True,
                              timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def testEdgefirstTakesTheLibraryThatAVariableNames(self):
        models = [STORED / f"{name}.tflite" for name in SAMPLE]
        for start in ("cold", "warm"):
            self.report.unlink(missing_ok=True)
            self.output(CLASSIFY, self.folder, *models, TFLITE_LIBRARY_PATH=hearth.tflite_library())
            self.assertEqual(len(self.report.read_text(encoding="utf-8").splitlines()), len(models))
            for model in models:
                with self.subTest(model.stem, start=start):
                    self.compare(model)

    def compare(self, model):
        compiled = hearth.Model(model).compile(threads=1, store=self.folder / "other-store")
        random = np.random.default_rng(1)
        inputs = []
        for tensor in compiled.inputs:
            shape, dtype = [size or 1 for size in tensor.shape], np.dtype(tensor.dtype)
            value = random.standard_normal(shape) if dtype.kind == "f" else random.integers(0, 4, shape)
            inputs.append(value.astype(dtype))
        expected = list(compiled.run(inputs).values())
        with np.load(self.folder / f"{model.name}.npz") as arrays:
            got = [arrays[f"arr_{place}"] for place in range(len(arrays.files))]
        self.assertEqual(len(got), len(expected))
        for one, other in zip(got, expected):
            np.testing.assert_array_equal(one.reshape(other.shape), other)

    def testAWakeWordHasTheProbabilitiesOfTheOriginal(self):
        for word in ("alexa", "hey_mycroft"):
            with self.subTest(word):
                original = np.array(json.loads(self.output(LISTEN, word)))
                self.assertFalse(self.report.exists())
                ours = np.array(json.loads(self.output(LISTEN, word, hearth.tflite_library())))
                self.assertEqual(len(self.report.read_text(encoding="utf-8").splitlines()), 1)
                self.report.unlink()
                self.assertGreater(original.max(), 0.2)
                # The package takes the original's own kernels, which round otherwise than XNNPACK's.
                np.testing.assert_allclose(ours, original, rtol=0, atol=0.05)


if __name__ == "__main__":
    unittest.main()
