# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite's own NNAPI delegate with libneuralnetworks.so: results must equal those of
hearth.Model, cold and warm, on each device. Needs the C library of TensorFlow Lite in the wheel of
pymicro-wakeword, which is installed in the cache folder."""

import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import unittest

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "release"
sys.path[:0] = [str(ROOT / "bench"), str(BUILD / "python")]
import comparison  # noqa: E402
import hearth  # noqa: E402

DATA = os.environ.get("HEARTH_TEST_DATA")
STORED = ROOT / "tests" / "compatibility" / "models"
DIGITS = ROOT / "models" / "digits" / "digits.tflite"
WIDE = STORED / "wide-conv-int8.tflite"
# Models that the delegate gives to NNAPI, whole or but for operators whose kernels in TensorFlow Lite round
# as Hearth's.
SAMPLE = ("activation-gelu-int8", "average-pool-3x3-same-int8", "concat-of-rank-6-int8",
          "conv-3x3-same-int8-io", "conv-3x3-same-open-batch-dynamic", "conv-5x3-dilated-valid-int8",
          "conv-any-size-int8", "depthwise-3x3-same-float16", "einsum-bqhd-bkhd-bhqk-int8",
          "keyword-spotting-uint8-io", "mobilenet-v3-block-int8", "non-max-suppression-5-float32",
          "resize-nearest-half-pixel-centers-int8", "resnet-float32", "separable-uint8-io",
          "strided-slice-new-axis-float32", "top-k-int16x8", "u-net-int8-io", "wide-conv-int8")
# What the delegate itself gets wrong, so that there is no interpreter; docs/tflite-programs.md says why.
REFUSED = ("lstm-operator-int8", "sparse-dense-sparse", "wide-conv-aiedge-dynamic4", "gru-of-any-length-dynamic",
           "unique-float32")
# TensorFlow Lite lacks an operator of the first, gives quantised LSTMs to NNAPI, and finds the quantisation of the
# last wrong.
NOT_OF_TFLITE = ("audio_preprocessor_int8", "dtln_noise_suppression", "keras_lstm_mnist_ptq", "person_detect")


def setUpModule():
    global library
    if platform.machine() != "x86_64":
        raise unittest.SkipTest("The wheel's library is taken for x86-64 only.")
    try:
        python = comparison.environmentPython(comparison.CACHE / "tflite-c-venv", comparison.TFLITE_C_WHEEL)
    except comparison.Failure as failure:
        raise unittest.SkipTest(f"TensorFlow Lite is not there: {failure}.") from None
    library, = python.parents[1].glob("lib/python*/site-packages/pymicro_wakeword/lib/libtensorflowlite_c.so")


class NnapiDelegateTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="hearth-nnapi-delegate-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.cache = self.folder / "cache"
        self.cache.mkdir()
        self.report = self.folder / "report.json"

    def job(self, model, options=None, **more):
        """A job of client.py, with random inputs; and what hearth.Model makes of them."""
        compiled = hearth.Model(model).compile(store=self.folder / "other-store")
        random = np.random.default_rng(1)
        arrays = []
        for tensor in compiled.inputs:
            shape, dtype = [size or 1 for size in tensor.shape], np.dtype(tensor.dtype)
            arrays.append(random.standard_normal(shape).astype(dtype) if dtype.kind == "f"
                          else random.integers(0, 4, shape).astype(dtype))
        inputs = self.folder / f"{model.stem}-in.npz"
        np.savez(inputs, **{str(place): array for place, array in enumerate(arrays)})
        return ({"model": str(model), "inputs": str(inputs), "outputs": str(self.folder / f"{model.stem}-out.npz"),
                 "options": options or {}, **more}, list(compiled.run(arrays).values()))

    def client(self, jobs, **variables):
        """The answers of client.py."""
        file = self.folder / "jobs.json"
        file.write_text(json.dumps(jobs))
        environment = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "lib"),
                       "HEARTH_STORE": str(self.folder / "store"), "HEARTH_REPORT": str(self.report), **variables}
        done = subprocess.run([sys.executable, HERE / "client.py", library, file], capture_output=True, text=True,
                              env=environment, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return json.loads(done.stdout)

    def starts(self):
        """The reports of all starts since the last call."""
        lines = self.report.read_text().splitlines() if self.report.exists() else []
        self.report.write_text("")
        return [json.loads(line) for line in lines]

    def check(self, pairs, **variables):
        """Runs jobs and compares the results."""
        for (job, expected), answer in zip(pairs, self.client([job for job, _ in pairs], **variables)):
            with self.subTest(job["model"]):
                self.assertEqual(answer, {"error": None, "same": True})
                outputs = np.load(job["outputs"])
                self.assertEqual(len(outputs.files), len(expected))
                for place, array in enumerate(expected):
                    np.testing.assert_array_equal(outputs[str(place)], array)

    def testResultsAreThoseOfTheModel(self):
        models = [DIGITS, *(STORED / f"{name}.tflite" for name in SAMPLE)]
        if DATA:
            models += [path for path in sorted((pathlib.Path(DATA) / "data" / "models").glob("*.tflite"))
                       if path.stem not in NOT_OF_TFLITE]
        self.check([self.job(model) for model in models])
        self.assertGreaterEqual(len(self.starts()), len(models) - 1)

    def testASecondStartIsWarm(self):
        options = {"cache_dir": str(self.cache), "model_token": "wide"}
        states = []
        for _ in range(2):
            self.check([self.job(WIDE, options)])
            states.append([start["start"]["state"] for start in self.starts()])
        self.assertEqual(states, [["cold"], ["warm"]])
        self.assertTrue(any(self.cache.iterdir()))

    def testADamagedCacheFolderIsPutRight(self):
        options = {"cache_dir": str(self.cache), "model_token": "wide"}
        pair = self.job(WIDE, options)
        self.check([pair])
        for damage in (lambda path: os.truncate(path, path.stat().st_size // 2),
                       lambda path: path.write_bytes(bytes(path.stat().st_size)),
                       lambda path: path.unlink()):
            # The delegate's own file, which ends in .bin, is read without a check.
            for path in self.cache.iterdir():
                if path.suffix != ".bin":
                    damage(path)
            self.check([pair])
        self.starts()
        self.check([pair])
        self.assertEqual([start["start"]["state"] for start in self.starts()], ["warm"])

    def testTheOptionsNameADevice(self):
        for device in ("hearth-cpu", "nnapi-reference"):
            job, expected = self.job(DIGITS, {"accelerator_name": device, "execution_preference": 2})
            self.assertEqual(self.client([job]), [{"error": None, "same": True}])
            np.testing.assert_allclose(np.load(job["outputs"])["0"], expected[0], atol=1e-5)
            self.assertEqual([start["device"] for start in self.starts()], [device])
        job, _ = self.job(DIGITS, {"accelerator_name": "npu"})
        self.assertEqual(self.client([job])[0]["error"], "The interpreter cannot be created.")

    def testInterpretersRunInThreads(self):
        pairs = [self.job(model, {}, interpreters=4, runs=5) for model in (DIGITS, WIDE)]
        self.check(pairs)

    def testADriverRunsInAProcessOfItsOwn(self):
        self.check([self.job(model) for model in (DIGITS, WIDE)], HEARTH_DRIVER_HOSTS="hearth-cpu=spawn")

    def testWhatTheDelegateGetsWrongIsAnError(self):
        jobs = [self.job(STORED / f"{name}.tflite")[0] for name in REFUSED]
        for job, answer in zip(jobs, self.client(jobs, HEARTH_LOG="off")):
            self.assertEqual(answer["error"], "The interpreter cannot be created.", job["model"])


if __name__ == "__main__":
    unittest.main()
