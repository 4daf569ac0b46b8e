# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/peers with stubs in place of the programs, and with those peers whose virtual
environments exist."""

import json
import os
import struct
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from PIL import Image

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "bench"), str(Path(__file__).parent)]
import comparison  # noqa: E402
import stub_programs  # noqa: E402
from comparison import Failure  # noqa: E402
from peers import agreement, cases, chart, compare, models, peer, report  # noqa: E402
from workloads import networks, quantize, tflite_reader, tflite_writer  # noqa: E402
from workloads.graph import Graph, Quantization  # noqa: E402


SVG = "{http://www.w3.org/2000/svg}"


def sample(p50, prepare=1.0, first=2.0, processor=None):
    inference = {"first": first, "p50": p50, "p90": p50, "p99": p50}
    if processor is not None:
        inference["processor_p50"] = processor
    return {"start": {"prepare_ms": prepare, "state": "cold"}, "inference_ms": inference}


def agreed(difference=0.0, right=4, wrong=0, unit=agreement.STEPS, own=0.0):
    return agreement.Agreement(unit, difference, right, 4, wrong, own)


class ReportTest(unittest.TestCase):
    def row(self, times, name="model", failures=None, agreements=None, isa=report.NATIVE):
        samples = {side: [sample(value, processor=2 * value) for value in values]
                   for side, values in times.items()}
        return report.Row(models.Model(name, Path(name)), 1, samples, failures or {}, agreements, isa)

    def testTheFasterInterfaceOfLiteRtCounts(self):
        row = self.row({"hearth": [9.0, 11.0, 10.0], "interpreter": [30.0, 20.0, 25.0],
                        "compiled": [8.0, 8.0, 80.0]})
        self.assertEqual(row.ratio, 10.0 / 8.0)
        self.assertEqual(row.steady["hearth"].json(), {"median": 10.0, "min": 9.0, "max": 11.0})
        self.assertEqual(row.processor["hearth"].json(), {"median": 20.0, "min": 18.0, "max": 22.0})

    def testNoRatioForShortRuns(self):
        self.assertIsNone(self.row({"hearth": [0.2], "interpreter": [0.49]}).ratio)
        self.assertIsNotNone(self.row({"hearth": [0.2], "interpreter": [0.5]}).ratio)
        self.assertIsNone(self.row({"hearth": [0.2], "openvino": [0.5]}).ratio)

    def testMissedLimitsAndFailuresAreShown(self):
        rows = [self.row({"hearth": [10.5], "interpreter": [10.0]}, "within"),
                self.row({"hearth": [10.6], "interpreter": [10.0]}, "beyond"),
                self.row({"hearth": [9.6], "interpreter": [10.0]}, "resnet50_f32"),
                self.row({"hearth": [], "interpreter": [10.0]}, "broken",
                         {"hearth": "exit code 1: no"})]
        text = report.markdown(rows, [("peer", "x")])
        self.assertIn("| within | 1.050 | 1.05 | **1.05** | LiteRT | **1.05** | **1.05** |", text)
        self.assertIn("| **1.060** | 1.05, missed |", text)
        self.assertIn("| **0.960** | 0.95, missed |", text)
        self.assertIn("| broken | Hearth | failed | failed | – | – | – | – |", text)
        self.assertIn("- Hearth: exit code 1: no: broken (1 thread)", text)

    def testAWrongAnswerIsNoFastestPeer(self):
        times = {"hearth": [4.0], "interpreter": [8.0], "openvino": [2.0]}
        row = self.row(times, agreements={"hearth": agreed(), "interpreter": agreed(12, own=12),
                                          "openvino": agreed(83, right=1, wrong=3, own=12)})
        self.assertEqual(row.fastestExactPeer, "interpreter")
        text = report.markdown([row], [])
        self.assertIn("| model | 0.500 | 1.05 | 0.50 | LiteRT | 0.50 | 0.50 |", text)
        self.assertIn("| model | Hearth | 4 (4–4) | 8 (8–8) | 1.00 | 0.50 | 0 steps | 4 of 4 |", text)
        self.assertIn("|  | OpenVINO | 2 (2–2) | 4 (4–4) | 0.50 | 0.25 | **83 steps** | "
                      "**wrong, 1 of 4** |", text)
        self.assertEqual(self.row(times, agreements={"openvino": agreed(6, right=3, own=6)})
                         .fastestExactPeer, "openvino")
        self.assertEqual(self.row(times, agreements={"openvino": agreed(12, own=6)})
                         .fastestExactPeer, "interpreter")

    def testInstructionSetsHaveSectionsOfTheirOwn(self):
        rows = [self.row({"hearth": [4.0], "interpreter": [8.0]}, isa=isa)
                for isa in (report.NATIVE, "avx2")]
        text = report.markdown(rows, [])
        self.assertIn("\n## 1 thread\n", text)
        self.assertIn("\n## avx2, 1 thread\n", text)

    def testTheChartShowsInexactResultsUnfilled(self):
        times = {"hearth": [4.0], "interpreter": [8.0], "openvino": [2.0], "onnxruntime": [64.0]}
        row = self.row(times, agreements={"hearth": agreed(), "onnxruntime": agreed(50),
                                          "openvino": agreed(83, right=1, wrong=3)})
        failed = self.row({"hearth": [], "interpreter": [8.0]}, "failed", {"hearth": "no"})
        drawn = chart.plot([row.json(), failed.json()])
        texts = [text.text for text in ElementTree.fromstring(drawn).iter(f"{SVG}text")]
        self.assertEqual(texts[1:], ["1 thread", "model", "Hearth 1.00", "LiteRT 2.00",
                                     "OpenVINO 0.50, wrong", "ONNX Runtime 16.00, not exact"])
        bars = [(bar.get("fill") != "none", float(bar.get("width")))
                for bar in ElementTree.fromstring(drawn).iter(f"{SVG}rect") if bar.get("x")]
        self.assertEqual([isFilled for isFilled, _ in bars], [True, True, False, False])
        [hearth, peer, faster, cut] = [width for _, width in bars]
        self.assertAlmostEqual(peer, 2 * hearth, delta=0.2)
        self.assertAlmostEqual(faster, hearth / 2, delta=0.2)
        self.assertAlmostEqual(cut, chart.LARGEST * hearth, delta=0.4)

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

    def compareTimes(self, hearth, peerProgram, *words):
        return self.compare(hearth, peerProgram, "--times-only", "--peers", "interpreter",
                            "compiled", *words)

    def testReadsBothSides(self):
        hearth = self.program("hearth", f"""
[ "$1 $3 $4 $5 $6 $7" = "bench --json --threads 2 --repeat 4" ] || exit 2
echo '{json.dumps(sample(3.0))}'""")
        peerProgram = self.program("python", f"""
echo noise >&2
[ "$4" = compiled ] && echo '{json.dumps(sample(6.0))}' || echo '{json.dumps(sample(5.0))}'""")
        figures = self.folder / "figures.json"
        code, text = self.compareTimes(hearth, peerProgram, "--threads", "2", "--rounds", "2",
                                       "--repeat", "4", "--json", str(figures))
        self.assertEqual(code, 0)
        self.assertIn("| small | Hearth | 3 (3–3) | – | 1.00 | 0.60 | – | – |", text)
        self.assertIn("|  | LiteRT | 5 (5–5) | – | 1.67 | 1.00 | – | – |", text)
        self.assertIn("|  | LiteRT, CompiledModel | 6 (6–6) | – | 2.00 | 1.20 | – | – |", text)
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
                code, output = self.compareTimes(self.program("hearth", text), peerProgram,
                                                 "--threads", "1", "--quick")
                self.assertEqual(code, 1)
                self.assertIn(f"- Hearth: {expected}", output)
                self.assertIn("| small | Hearth | failed | failed | – | – | – | – |", output)
        hearth = self.program("hearth", f"echo '{json.dumps(sample(4.0))}'")
        onlyOne = self.program("python", f"""
[ "$4" = compiled ] && exit 3
echo '{json.dumps(sample(5.0))}'""")
        code, output = self.compareTimes(hearth, onlyOne, "--threads", "1", "--quick")
        self.assertEqual(code, 0)
        self.assertIn("| small | 0.800 | 1.05 |", output)
        self.assertIn("- LiteRT, CompiledModel: ended with exit code 3: no message: small (1 thread)",
                      output)
        code, output = self.compareTimes(self.folder / "nowhere", peerProgram, "--threads", "1")
        self.assertEqual(code, 1)
        self.assertIn("cannot be started: No such file or directory", output)

    def testInstructionsAreHiddenFromBothSides(self):
        mask = self.folder / "with_isa.py"
        mask.write_text("import os, sys\nos.environ['LEVEL'] = sys.argv[1]\n"
                        "os.execv(sys.argv[2], sys.argv[2:])\n")
        text = f"""
[ "$LEVEL" = avx2 ] && echo '{json.dumps(sample(7.0))}' || echo '{json.dumps(sample(3.0))}'"""
        hearth, peerProgram = self.program("hearth", text), self.program("python", text)
        figures = self.folder / "figures.json"
        with unittest.mock.patch.object(compare, "WITH_ISA", mask):
            code, output = self.compareTimes(hearth, peerProgram, "--quick", "--threads", "1", "--isa",
                                             "native", "avx2", "--json", figures)
        self.assertEqual(code, 0, output)
        self.assertEqual(
            [(row["instructions"], side, row["steady_ms"][side]["median"])
             for row in json.loads(figures.read_text())["rows"] for side in ("hearth", "compiled")],
            [("native", "hearth", 3.0), ("native", "compiled", 3.0),
             ("avx2", "hearth", 7.0), ("avx2", "compiled", 7.0)])

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


class AgreementTest(unittest.TestCase):
    def agreement(self, wanted, found, dtype=np.int8, own=0.0):
        arrays = lambda values: {"random": [np.array([[0, 9, 5]], dtype)],
                                 "cat": [np.array([values], dtype)]}
        return agreement.agreementOf(arrays(wanted), arrays(found), ["cat"], own)

    def testStepsOfTheFarthestElementCount(self):
        found = self.agreement([100, 50, -100], [90, 50, -120])
        self.assertEqual((found.unit, found.difference), (agreement.STEPS, 20))
        self.assertEqual((found.right, found.wrong, found.real), (1, 0, 1))
        self.assertEqual((found.text(), found.rightText()), ("**20 steps**", "1 of 1"))
        # Not the difference of numbers of 8 bits.
        self.assertEqual(self.agreement([-128, 0, 127], [127, 0, 127]).difference, 255)

    def testAnotherGreatestElementIsWrong(self):
        found = self.agreement([100, 50, 0], [49, 50, 0])
        self.assertTrue(found.isWrong)
        self.assertEqual(found.rightText(), "**wrong, 0 of 1**")

    def testNearTiesAreNotWrong(self):
        found = self.agreement([100, 94, 0], [93, 94, 0], own=6)
        self.assertFalse(found.isWrong)
        self.assertEqual(found.rightText(), "0 of 1, near tie")
        self.assertTrue(self.agreement([100, 93, 0], [92, 93, 0], own=6).isWrong)
        self.assertEqual(self.agreement([100, 100, 0], [99, 100, 0]).right, 1)

    def testLiteRtsOwnDifferenceSaysWhatIsExact(self):
        for difference, isExact in ((9, True), (10, False)):
            found = self.agreement([100, 50, 0], [100, 50, difference], own=5)
            self.assertEqual((found.isExact, found.isWrong), (isExact, False))
            self.assertEqual(found.text(), f"{difference} steps" if isExact
                             else f"**{difference} steps**")

    def testFloatsAreRelativeToTheLargest(self):
        found = self.agreement([1, -8, 4], [1, -8, 4.002], np.float32)
        self.assertAlmostEqual(found.difference, 0.00025, places=6)
        self.assertFalse(found.isExact)
        self.assertTrue(self.agreement([1, -8, 4], [1, -8, 4.0001], np.float32).isExact)
        found = self.agreement([1, -8, 4], [1, -8, 4.1], np.float32)
        self.assertEqual(found.text(), "**1.2e-02**")
        self.assertEqual(self.agreement([1, 2, 3], [1, np.nan, 3], np.float32).difference, np.inf)

    def testMapsOfClassesMayDifferInOneOfAHundred(self):
        wanted = {"bird": [np.zeros((1, 20, 10), np.int64)]}
        for differing, wrong in ((2, 0), (3, 1)):
            pixels = np.zeros(200, np.int64)
            pixels[:differing] = 7
            found = agreement.agreementOf(wanted, {"bird": [pixels.reshape(1, 20, 10)]}, ["bird"])
            self.assertEqual((found.difference, found.wrong), (differing / 200, wrong))
            self.assertEqual(found.text(), f"**{differing / 2:.2g} % of the elements**")

    def testOtherShapesAreRefused(self):
        with self.assertRaisesRegex(Failure, "the outputs have the shapes"):
            agreement.agreementOf({"a": [np.zeros(3)]}, {"a": [np.zeros(4)]}, [])
        with self.assertRaisesRegex(Failure, "the outputs have the shapes"):
            agreement.agreementOf({"a": [np.zeros(3)]}, {}, [])

    def testOutputsThatRankNothingAreNotJudged(self):
        self.assertEqual(agreement.agreementOf({"a": [np.zeros((1, 1, 9))]},
                                               {"a": [np.ones((1, 1, 9))]}, ["a"]).rightText(), "–")


class CasesTest(stub_programs.StubTest):
    def graph(self, shape, dtype=np.uint8, quantization=None):
        graph = Graph("network")
        graph.inputs = [graph.addTensor("image", shape, dtype, quantization=quantization)]
        return graph

    def testPhotographsHaveTheInputsSize(self):
        (self.folder / "images").mkdir()
        pixels = np.zeros((120, 200, 3), np.uint8)
        pixels[:, :100] = 255
        Image.fromarray(pixels).save(self.folder / "images" / "cat.bmp")
        made = cases.casesOf("network", self.graph((1, 96, 112, 3)), self.folder, 1)
        self.assertEqual((list(made.inputs), made.real), (["random", "cat"], ["cat"]))
        [cat] = made.inputs["cat"]
        self.assertEqual((cat.shape, cat.dtype), ((1, 96, 112, 3), np.uint8))
        self.assertEqual((cat[0, 5, 5].tolist(), cat[0, 5, 110].tolist()), ([255] * 3, [0] * 3))

        quantization = Quantization(np.float32([1 / 128]), np.array([0]))
        made = cases.casesOf("network", self.graph((1, 96, 112, 3), np.int8, quantization),
                             self.folder, 1)
        self.assertEqual(made.inputs["cat"][0][0, 5, [5, 110], 0].tolist(), [127, -128])

        made = cases.casesOf("network", self.graph((1, 3, 96, 112), np.float32), self.folder, 1)
        np.testing.assert_allclose(made.inputs["cat"][0][0, :, 5, 5],
                                   [(1 - 0.485) / 0.229, (1 - 0.456) / 0.224, (1 - 0.406) / 0.225],
                                   rtol=1e-6)
        self.assertEqual(cases.casesOf("network", self.graph((1, 96, 112, 3)), None, 1).real, [])

    def testStoredInputsAreFound(self):
        for case in (".", "alt_no"):
            (self.folder / "golden" / "network" / case).mkdir(parents=True)
            np.save(self.folder / "golden" / "network" / case / "input_0.npy", np.zeros((1, 4)))
        made = cases.casesOf("network", self.graph((1, 4)), self.folder, 1)
        self.assertEqual(made.real, ["stored", "alt_no"])

    def testSurvivesItsFile(self):
        made = cases.Cases({"a/b": [np.arange(3), np.zeros((1, 2))], "c": [np.ones(1)]}, [])
        made.save(self.folder / "cases.npz")
        loaded = cases.load(self.folder / "cases.npz")
        self.assertEqual({name: [array.tolist() for array in arrays]
                          for name, arrays in loaded.items()},
                         {"a/b": [[0, 1, 2], [[0, 0]]], "c": [[1]]})


class InstalledPeersTest(stub_programs.StubTest):
    """The whole program with a tiny model, and with the peers that are there."""

    def testATinyModel(self):
        hearth = comparison.ROOT / "build" / "release" / "bin" / "hearth"
        installed = comparison.installedPython
        python = installed(comparison.CACHE / "litert-venv", comparison.PEER_WHEEL)
        if python is None or not hearth.exists():
            self.skipTest("there is no environment with LiteRT, or no hearth")
        others = [side for side, (folder, *wheels) in compare.ENVIRONMENTS.items()
                  if installed(comparison.CACHE / folder, *wheels) is not None]
        (self.folder / "models").mkdir()
        image = np.random.default_rng(1).uniform(-1, 1, (1, 32, 32, 3)).astype(np.float32)
        graph = networks.mobilenetV2(32, 4, [(1, 8, 1, 1), (6, 16, 2, 2)])
        for name, made in (("tiny_f32", graph), ("tiny_i8", quantize.toInt8(graph, [image]))):
            tflite_writer.write(made, self.folder / "models" / f"{name}.tflite")
            stored = self.folder / "golden" / name
            stored.mkdir(parents=True)
            quantization = made.tensors[made.inputs[0]].quantization
            np.save(stored / "input_0.npy", image if quantization is None else
                    quantization.quantize(image, np.int8))
        self.addCleanup(lambda: [file.unlink() for folder in ("references", "onnx")
                                 for file in (comparison.CACHE / folder).glob("tiny_*")])
        figures = self.folder / "figures.json"
        code, text = self.captured(compare.main, [
            "--hearth", hearth, "--python", python, "--data", self.folder, "--models", "tiny_*",
            "--quick", "--threads", "1", "--json", figures, "--peers", "interpreter", *others])
        self.assertEqual(code, 0, text)
        rows = {row["model"]: row for row in json.loads(figures.read_text())["rows"]}
        for name, row in rows.items():
            sides = {"hearth", "interpreter", *others}
            if name == "tiny_i8":
                sides.discard("openvino-float32")
            self.assertEqual(row["failures"], {})
            for key in ("steady_ms", "processor_ms", "start_ms", "agreement"):
                self.assertEqual(set(row[key]), sides, key)
            self.assertEqual(row["agreement"]["hearth"]["real_inputs"], 1)
        agreements = rows["tiny_i8"]["agreement"]
        self.assertLessEqual(agreements["hearth"]["difference"],
                             agreements["interpreter"]["difference"] + 1)
        for side, found in rows["tiny_f32"]["agreement"].items():
            if side != "openvino":  # which may compute in bfloat16
                self.assertLess(found["difference"], 1e-5, side)


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
