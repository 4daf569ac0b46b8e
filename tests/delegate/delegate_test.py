# SPDX-License-Identifier: Apache-2.0
"""LiteRT with libhearth_delegate.so: results must equal those of `hearth run`, and LiteRT must run
with the delegate whatever it runs alone. Needs LiteRT's wheel, which is installed in the cache
folder."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "compatibility")]
import comparison  # noqa: E402
import judge  # noqa: E402
import stored  # noqa: E402

BUILD = ROOT / "build" / "release"
HEARTH = os.environ.get("HEARTH_BIN") or str(BUILD / "bin" / "hearth")
LIBRARY = str(BUILD / "lib" / "libhearth_delegate.so")
DATA = os.environ.get("HEARTH_TEST_DATA")
STORED = ROOT / "tests" / "compatibility" / "models"
DIGITS = ROOT / "models" / "digits" / "digits.tflite"
# LiteRT needs operators of its own for the first, and rejects the quantisation of the second.
NOT_OF_LITERT = ("audio_preprocessor_int8", "person_detect")
# Of an LSTM without an activation LiteRT gives what its scratch memory held before.
UNDEFINED_WHEN_DAMAGED = ("lstm-operator-float32",)
TAKEN = re.compile(r"Hearth runs (\d+) of (\d+) nodes")


def litertPython():
    try:
        return comparison.environmentPython(comparison.CACHE / "litert-venv",
                                            comparison.PEER_WHEEL)
    except comparison.Failure as failure:
        raise unittest.SkipTest(f"LiteRT is not there: {failure}.") from None


def randomInputs(path, folder):
    """Writes a .npz file with values for the inputs of a model, for session.py; returns its path
    and the values."""
    run = subprocess.run([HEARTH, "inspect", path, "--json"], capture_output=True, check=True)
    signature = json.loads(run.stdout)["signatures"][0]
    generator = np.random.default_rng(7)
    values = {}
    for position, tensor in enumerate(signature["inputs"]):
        name = tensor["name"] if signature["key"] else position
        dtype = np.dtype(tensor["type"].lower())
        shape = [max(size, 1) for size in tensor["shape"]]
        if dtype.kind == "f":
            values[f"0/in/{name}"] = generator.uniform(-1, 1, shape).astype(dtype)
        else:
            limits = np.iinfo(dtype)
            values[f"0/in/{name}"] = generator.integers(limits.min, limits.max + 1, shape, dtype)
    file = folder / f"{path.stem}.npz"
    np.savez(file, **values)
    return file, list(values.values())


def languageInputs(path, keys):
    """Values for the signatures of a language model."""
    run = subprocess.run([HEARTH, "inspect", path, "--json"], capture_output=True, check=True)
    generator = np.random.default_rng(3)
    values = {}
    for signature in json.loads(run.stdout)["signatures"]:
        if signature["key"] not in keys:
            continue
        for tensor in signature["inputs"]:
            shape = tensor["shape"]
            if tensor["name"] == "tokens":
                value = generator.integers(0, 100, shape, np.int32)
            elif tensor["name"] == "input_pos":
                value = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
            else:
                value = generator.uniform(-1, 1, shape).astype(np.float32)
            values[f"{signature['key']}/in/{tensor['name']}"] = value
    return values


class DelegateTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.python = litertPython()
        holder = tempfile.TemporaryDirectory(prefix="hearth-delegate-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        cls.report = cls.folder / "report.json"
        cls.environment = {**os.environ, "HEARTH_STORE": str(cls.folder / "store"),
                           "HEARTH_LOG": "info", "HEARTH_REPORT": str(cls.report)}

    def run_(self, program, *words, timeout=1200):
        """Standard output and error of a Python program in LiteRT's virtual environment."""
        done = subprocess.run([self.python, HERE / program, *map(str, words)], capture_output=True,
                              text=True, timeout=timeout, check=False, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        return done.stdout, done.stderr

    def session(self, jobs):
        """The answers of session.py, and the messages that the library logged."""
        file = self.folder / "jobs.json"
        file.write_text(json.dumps(jobs))
        output, log = self.run_("session.py", file)
        return json.loads(output.splitlines()[-1]), log

    def job(self, model, inputs, **more):
        return {"model": str(model), "inputs": str(inputs), "library": LIBRARY,
                "outputs": str(self.folder / f"{model.stem}-out.npz"), **more}

    def hearthRun(self, model, values, *more):
        """The outputs of `hearth run`."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            words = []
            for position, value in enumerate(values):
                np.save(f"{folder}/{position}.npy", value)
                words += ["--input", f"{folder}/{position}.npy"]
            done = subprocess.run([HEARTH, "run", model, *words, *more, "--output-dir", folder],
                                  capture_output=True, text=True, env=self.environment, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            files = sorted(pathlib.Path(folder).glob("output_*.npy"),
                           key=lambda file: int(file.stem.rpartition("_")[2]))
            return [np.load(file) for file in files]

    def startStates(self):
        """The states of all starts since the last call."""
        lines = self.report.read_text().splitlines() if self.report.exists() else []
        self.report.write_text("")
        return [json.loads(line)["start"]["state"] for line in lines]

    def checkAgainstCommand(self, models):
        jobs, expected = [], []
        for model in models:
            inputs, values = randomInputs(model, self.folder)
            jobs.append(self.job(model, inputs))
            expected.append(self.hearthRun(model, values))
        answers, log = self.session(jobs)
        self.assertEqual([answer["error"] for answer in answers], [None] * len(jobs))
        for taken, all_ in TAKEN.findall(log):
            self.assertEqual(taken, all_)
        for model, job, outputs in zip(models, jobs, expected):
            with self.subTest(model.stem), np.load(job["outputs"]) as found:
                arrays = list(dict(found).values())
                self.assertEqual(len(arrays), len(outputs))
                for one, other in zip(arrays, outputs):
                    self.assertEqual((one.dtype, one.shape), (other.dtype, other.shape))
                    self.assertEqual(one.tobytes(), other.tobytes())

    def testResultsAreThoseOfTheCommand(self):
        self.checkAgainstCommand([DIGITS])

    @unittest.skipUnless(DATA, "HEARTH_TEST_DATA is not set.")
    def testResultsOfSharedModelsAreThoseOfTheCommand(self):
        models = sorted(path for path in (pathlib.Path(DATA) / "data" / "models").glob("*.tflite")
                        if path.stem not in NOT_OF_LITERT)
        self.assertGreaterEqual(len(models), 8)
        self.checkAgainstCommand(models)

    @unittest.skipUnless(DATA, "HEARTH_TEST_DATA is not set.")
    def testModelsThatLiteRTRefusesAreRefusedInItsWords(self):
        inputs = self.folder / "inputs.npz"
        np.savez(inputs, **{"0/in/0": np.zeros(1), "0/in/audio_frame": np.zeros(1)})
        jobs = []
        for name in NOT_OF_LITERT:
            model = pathlib.Path(DATA) / "data" / "models" / f"{name}.tflite"
            jobs += [{**self.job(model, inputs), "library": None}, self.job(model, inputs)]
        answers, _ = self.session(jobs)
        for name, alone, beside in zip(NOT_OF_LITERT, answers[::2], answers[1::2]):
            with self.subTest(name):
                self.assertTrue(alone["error"])
                self.assertEqual(beside["error"], alone["error"])

    def testResultsOfGeneratedNetworksAreThoseOfTheCommand(self):
        isLong = os.environ.get("HEARTH_TEST_LONG") == "1"
        models = []
        for kind in ("mobilenet_v2", "resnet50") if isLong else ("mobilenet_v2",):
            for quant in ("f32", "i8"):
                models.append(self.folder / f"{kind}_{quant}.tflite")
                subprocess.run([sys.executable, ROOT / "bench" / "workloads" / "generate.py", kind,
                                models[-1], "--quant", quant], check=True, capture_output=True)
        self.checkAgainstCommand(models)

    def testStoredModelsAgreeWithLiteRT(self):
        """Also with inputs of several shapes, with variables, loops and branches, and from
        memory."""
        models = stored.read(STORED)
        jobs = []
        for position, model in enumerate(models):
            jobs.append(self.job(model.file, model.inputs, runs=model.about()["runs"],
                                 content=position % 2 == 1))
        answers, log = self.session(jobs)
        whole = [taken == all_ for taken, all_ in TAKEN.findall(log)]
        self.assertGreaterEqual(sum(whole), 55)
        for model, job, answer in zip(models, jobs, answers):
            with self.subTest(model.file.stem):
                self.assertIsNone(answer["error"])
                peers = model.peers()
                about = model.about()
                with np.load(job["outputs"]) as found:
                    for name, array in found.items():
                        step = about["steps"].get(name.partition("/")[2], (0.0, 0))
                        verdict = judge.judge(array, [peer[name] for peer in peers.values()],
                                              model.recipe, step)
                        self.assertEqual(verdict.outcome, judge.AGREES, f"{name} {verdict.why}")

    def testTheSecondStartIsWarm(self):
        model = STORED / "wide-perceptron-aiedge-dynamic4.tflite"
        inputs, _ = randomInputs(model, self.folder)
        for content in (False, True):
            options = {"store": str(self.folder / f"own-{content}")}
            job = self.job(model, inputs, options=options, content=content)
            self.startStates()
            outputs = []
            for _ in range(2):
                answers, _ = self.session([job])
                self.assertEqual(answers, [{"error": None}])
                with np.load(job["outputs"]) as found:
                    outputs.append({key: array.tobytes() for key, array in found.items()})
            self.assertEqual(self.startStates(), ["cold", "warm"])
            self.assertEqual(outputs[0], outputs[1])

    def testTheCompilationCacheIsUsed(self):
        inputs, _ = randomInputs(DIGITS, self.folder)
        cache = self.folder / "cache"
        cache.mkdir()
        options = {"cache_dir": str(cache), "model_token": "digits", "device": "hearth-cpu"}
        for _ in range(2):
            self.report.write_text("")
            answers, _ = self.session([self.job(DIGITS, inputs, options=options)])
            self.assertEqual(answers, [{"error": None}])
        [line] = self.report.read_text().splitlines()
        self.assertEqual(json.loads(line)["start"]["cache"], "hit")

    def testTheDeviceOfTheOptionRunsTheModel(self):
        inputs, values = randomInputs(DIGITS, self.folder)
        self.startStates()
        job = self.job(DIGITS, inputs, options={"device": "nnapi-reference"})
        answers, _ = self.session([job])
        self.assertEqual(answers, [{"error": None}])
        [line] = self.report.read_text().splitlines()
        self.assertEqual(json.loads(line)["device"], "nnapi-reference")
        [expected] = self.hearthRun(DIGITS, values, "--device", "nnapi-reference")
        with np.load(job["outputs"]) as found:
            [array] = list(dict(found).values())
        self.assertEqual(array.tobytes(), expected.tobytes())

    def testSeveralInterpretersAndThreads(self):
        inputs, _ = randomInputs(DIGITS, self.folder)
        answers, _ = self.session([
            self.job(DIGITS, inputs, interpreters=6, runs=1, threads=2),
            self.job(DIGITS, inputs, interpreters=3, options={"threads": 2}, content=True)])
        self.assertEqual([answer["error"] for answer in answers], [None, None])

    def testSignaturesOfALanguageModel(self):
        """Norms and attention are operators, or composites that are taken as a whole."""
        sizes = ["--form", "i8", "--layers", "1", "--hidden", "64", "--feed-forward", "128",
                 "--heads", "4", "--head-size", "16", "--vocabulary", "100", "--prefill", "16",
                 "--cache", "32"]
        keys = ["prefill", "decode"]
        for more in ([], ["--composite"]):
            model = self.folder / f"language{len(more)}.tflite"
            subprocess.run([sys.executable, ROOT / "bench" / "workloads" / "generate.py",
                            "gemma_2b", model, *sizes, *more], check=True, capture_output=True)
            inputs = self.folder / "language.npz"
            np.savez(inputs, **languageInputs(model, keys))
            job = self.job(model, inputs, signatures=keys)
            alone = {**job, "library": None, "outputs": str(self.folder / "alone.npz")}
            answers, log = self.session([alone, job])
            self.assertEqual(answers, [{"error": None}, {"error": None}])
            taken = TAKEN.findall(log)
            self.assertGreaterEqual(len(taken), 2)
            self.assertEqual([one for one, _ in taken], [all_ for _, all_ in taken])
            with np.load(job["outputs"]) as found, np.load(alone["outputs"]) as expected:
                self.assertEqual(set(found), set(expected))
                for name, array in found.items():
                    peer = expected[name]
                    verdict = judge.judge(array, [peer], "dynamic")
                    self.assertEqual(verdict.outcome, judge.AGREES, f"{name} {verdict.why}")

    def testTheExample(self):
        inputs, values = randomInputs(DIGITS, self.folder)
        np.save(inputs.with_suffix(".npy"), values[0])
        done = subprocess.run([self.python, ROOT / "examples" / "litert_delegate.py", DIGITS,
                               inputs.with_suffix(".npy"), LIBRARY], capture_output=True, text=True,
                              timeout=300, check=False, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        [scores] = self.hearthRun(DIGITS, values)
        self.assertEqual(done.stdout, f"{scores.argmax()}\n")
        self.assertIn("Hearth runs 7 of 7 nodes", done.stderr)

    def testWrongOptionsAreSentences(self):
        inputs, _ = randomInputs(DIGITS, self.folder)
        answers, _ = self.session([self.job(DIGITS, inputs, options=options) for options in (
            {"colour": "red"}, {"threads": 0}, {"device": "abacus"}, {"cache_dir": "/x"})])
        for answer, sentence in zip(answers, (
                'The option "colour" is not known; the delegate has allow_fp16, cache_dir, device',
                "threads", "abacus", 'needs the option "model_token"')):
            self.assertIn(sentence, answer["error"])

    def testDamagedModels(self):
        """LiteRT's own checks decide: what it runs alone it runs with the delegate, with the same
        results."""
        count = 2000 if os.environ.get("HEARTH_TEST_LONG") == "1" else 200
        models = [DIGITS, *sorted(path for path in STORED.glob("*.tflite")
                                  if path.stem not in UNDEFINED_WHEN_DAMAGED)]
        self.assertGreater(len(models), 50)
        output, _ = self.run_("damaged_session.py", LIBRARY, count, *models, timeout=7200)
        results = json.loads(output.splitlines()[-1])
        self.assertEqual(len(results), count)
        ran = [entry for entry in results if entry[1] == "ran" and entry[2] is not None]
        refused = [entry for entry in results if entry[1] == "refused" and entry[2] is not None]
        self.assertGreaterEqual(len(ran), 40)
        self.assertGreaterEqual(len(refused), 40)
        self.assertEqual([entry for entry in ran if entry[2:] != ["ran", None]], [])
        # Hearth supports operations that LiteRT refuses.
        self.assertEqual([entry for entry in refused if entry[2] not in ("ran", "refused")], [])


if __name__ == "__main__":
    unittest.main()
