# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/peers with stubs in place of both programs; LiteRT itself is not needed."""

import json
import os
import struct
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "bench"), str(Path(__file__).parent)]
import stub_programs  # noqa: E402
from peers import compare, models, peer, report  # noqa: E402
from workloads import networks, quantize, tflite_reader, tflite_writer  # noqa: E402


def sample(p50, prepare=1.0, first=2.0):
    return {"start": {"prepare_ms": prepare, "state": "cold"},
            "inference_ms": {"first": first, "p50": p50, "p90": p50, "p99": p50}}


class ReportTest(unittest.TestCase):
    def row(self, hearth, interpreter, compiled, name="model", failures=None):
        samples = {side: [sample(value) for value in values] for side, values in
                   (("hearth", hearth), ("interpreter", interpreter), ("compiled", compiled))}
        return report.Row(models.Model(name, Path(name)), 1, samples, failures or {})

    def testTheFasterPeerCounts(self):
        row = self.row([9.0, 11.0, 10.0], [30.0, 20.0, 25.0], [8.0, 8.0, 80.0])
        self.assertEqual(row.ratio, 10.0 / 8.0)
        self.assertEqual(row.steady["hearth"].json(), {"median": 10.0, "min": 9.0, "max": 11.0})

    def testNoRatioForShortRuns(self):
        self.assertIsNone(self.row([0.2], [0.49], [0.6]).ratio)
        self.assertIsNotNone(self.row([0.2], [0.5], [0.6]).ratio)

    def testMissedLimitsAndFailuresAreShown(self):
        rows = [self.row([10.5], [10.0], [10.0], "within"),
                self.row([10.6], [10.0], [10.0], "beyond"),
                self.row([9.6], [10.0], [10.0], "resnet50_f32"),
                self.row([], [10.0], [], "broken",
                         {"hearth": "exit code 1: no", "compiled": "no result"})]
        text = report.markdown(rows, [("peer", "x")])
        self.assertIn("1.050 | 1.05 |", text)
        self.assertIn("**1.060** | 1.05, missed", text)
        self.assertIn("**0.960** | 0.95, missed", text)
        self.assertIn("| broken | failed | 10 (10–10) | failed | – | – |", text)
        self.assertIn("- hearth: exit code 1: no: broken (1)", text)

    def testMissingKeysAreNamed(self):
        self.assertIsNone(report.missing(sample(1.0)))
        incomplete = sample(1.0)
        del incomplete["inference_ms"]["p50"]
        self.assertEqual(report.missing(incomplete), "inference_ms.p50")
        self.assertEqual(report.missing({**sample(1), "start": None}), "start.prepare_ms")
        self.assertEqual(report.missing(sample("1")), "inference_ms.p50")
        self.assertEqual(report.missing([1]), "start.prepare_ms")


class CompareTest(stub_programs.StubTest):
    def setUp(self):
        super().setUp()
        data = self.folder / "data" / "models"
        data.mkdir(parents=True)
        graph = networks.mlp(1, features=256, hidden=256, classes=3)
        self.graph = quantize.toInt8(graph, [np.ones((1, 256), np.float32)])
        tflite_writer.write(self.graph, data / "small.tflite")
        cache = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")
        self.addCleanup(lambda: os.environ.pop("XDG_CACHE_HOME") if cache is None
                        else os.environ.update(XDG_CACHE_HOME=cache))

    def compare(self, hearth, peerProgram, *words):
        return self.captured(compare.main, ["--hearth", hearth, "--python", peerProgram, "--data",
                                            self.folder / "data", "--models", "small", *words])

    def testReadsBothSides(self):
        hearth = self.program("hearth", f"""
[ "$1 $3 $4 $5 $6 $7" = "bench --json --threads 2 --repeat 4" ] || exit 2
echo '{json.dumps(sample(3.0))}'""")
        peerProgram = self.program("python", f"""
echo noise >&2
[ "$4" = compiled ] && echo '{json.dumps(sample(6.0))}' || echo '{json.dumps(sample(5.0))}'""")
        figures = self.folder / "figures.json"
        code, text = self.compare(hearth, peerProgram, "--threads", "2", "--rounds", "2",
                                  "--repeat", "4", "--json", str(figures))
        self.assertEqual(code, 0)
        self.assertIn("| small | 3 (3–3) | 5 (5–5) | 6 (6–6) | 0.600 | 1.05 |", text)
        [row] = json.loads(figures.read_text())["rows"]
        self.assertEqual((row["model"], row["threads"], row["ratio"]), ("small", 2, 0.6))
        self.assertEqual(row["start_ms"]["hearth"]["median"], 3.0)

    def testAFailingSideIsReported(self):
        peerProgram = self.program("python", f"echo '{json.dumps(sample(5.0))}'")
        for text, expected in (("echo cannot open it >&2; echo INFO: bye >&2; exit 1",
                                "ended with exit code 1: cannot open it"),
                               ("kill -SEGV $$", "was ended by signal 11: no message"),
                               ("echo oops", "the output is no JSON: 'oops"),
                               ("echo '{}'", "the output has no number start.prepare_ms")):
            with self.subTest(text):
                code, output = self.compare(self.program("hearth", text), peerProgram,
                                            "--threads", "1", "--quick")
                self.assertEqual(code, 1)
                self.assertIn(f"- hearth: {expected}", output)
                self.assertIn("| small | failed | 5 (5–5) | 5 (5–5) | – | – |", output)
        hearth = self.program("hearth", f"echo '{json.dumps(sample(4.0))}'")
        onlyOne = self.program("python", f"""
[ "$4" = compiled ] && exit 3
echo '{json.dumps(sample(5.0))}'""")
        code, output = self.compare(hearth, onlyOne, "--threads", "1", "--quick")
        self.assertEqual(code, 0)
        self.assertIn("| small | 4 (4–4) | 5 (5–5) | failed | 0.800 | 1.05 |", output)
        self.assertIn("- compiled: ended with exit code 3: no message: small (1)", output)
        code, output = self.compare(self.folder / "nowhere", peerProgram, "--threads", "1")
        self.assertEqual(code, 1)
        self.assertIn("cannot be started: No such file or directory", output)

    def testCheckLogitsCountsSteps(self):
        ours, theirs = (np.array([values], np.int8) for values in ([[1, 2, 3]], [[1, 4, -3]]))
        np.save(self.folder / "ours.npy", ours)
        np.save(self.folder / "theirs.npy", theirs)
        # hearth run MODEL --input I --output-dir D --threads N
        hearth = self.program("hearth", f'test -s "$4" && cp {self.folder}/ours.npy '
                                        '"$6/output_0.npy"')
        # python peer.py MODEL --api A --repeat 0 --threads N --input I --output O
        peerProgram = self.program("python", f'cp {self.folder}/theirs.npy "${{12}}"')
        code, text = self.compare(hearth, peerProgram, "--check-logits", "--threads", "1")
        self.assertEqual(code, 0, text)
        self.assertIn("interpreter: largest difference 6 quantisation steps, 2 of 3", text)
        code, text = self.compare(self.program("hearth", "exit 1"), peerProgram, "--check-logits",
                                  "--threads", "1")
        self.assertEqual(code, 1)
        self.assertIn("ended with exit code 1", text)


class ModelsTest(unittest.TestCase):
    def testRepairChangesOnlyOneDimensionalTensors(self):
        graph = quantize.toInt8(networks.mobilenetV2(32, 4, [(1, 8, 1, 1)]),
                                [np.zeros((1, 32, 32, 3), np.float32)])
        biases = [tensor for tensor in graph.tensors if tensor.dtype == np.int32
                  and tensor.quantization is not None]
        for tensor in biases:
            tensor.quantization.axis = 3
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.tflite"
            tflite_writer.write(graph, path)
            broken = path.read_bytes()
            repaired = models.repairQuantizedDimension(broken)
            path.write_bytes(repaired)
            axes = {tensor.name: tensor.quantization.axis
                    for tensor in tflite_reader.read(path).tensors if tensor.quantization}
        self.assertEqual(len(repaired), len(broken))
        different = [i for i, (a, b) in enumerate(zip(broken, repaired)) if a != b]
        self.assertEqual(len(different), len(biases))
        for tensor in graph.tensors:
            if tensor.quantization is not None:
                expected = 0 if tensor in biases else tensor.quantization.axis
                self.assertEqual(axes[tensor.name], expected, tensor.name)
        self.assertIn(3, axes.values())

    def testRepairRefusesOtherFiles(self):
        with self.assertRaisesRegex(ValueError, "identifier"):
            models.repairQuantizedDimension(struct.pack("<I4s", 8, b"ELF ") + bytes(16))


class PeerTest(unittest.TestCase):
    def testRandomValuesStayValid(self):
        generator = np.random.default_rng(1)
        floats = peer.randomArray(generator, (1000,), "float32")
        self.assertEqual(floats.dtype, np.float32)
        self.assertTrue(-1 <= floats.min() < -0.9 and 0.9 < floats.max() < 1)
        for name in ("int8", "uint8"):
            values = peer.randomArray(generator, (5000,), name)
            limits = np.iinfo(name)
            self.assertEqual((values.dtype, values.min(), values.max()),
                             (np.dtype(name), limits.min, limits.max))
        self.assertEqual(set(peer.randomArray(generator, (100,), "int32").tolist()), {0, 1})


if __name__ == "__main__":
    unittest.main()
