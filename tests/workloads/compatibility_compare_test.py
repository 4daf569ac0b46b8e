# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/compatibility; TensorFlow and LiteRT are not needed."""

import csv
import os
import sys
import unittest
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[2] / "bench" / "compatibility"
sys.path[:0] = [str(FOLDER), str(Path(__file__).parent)]
import compare  # noqa: E402
import judge  # noqa: E402
import report  # noqa: E402
import service  # noqa: E402
import stored  # noqa: E402
import stub_programs  # noqa: E402
from comparison import Failure  # noqa: E402
from judge import AGREES, DIFFERS, NEARER  # noqa: E402


def f32(*values):
    return np.array(values, np.float32)


def int8(*values):
    return np.array(values, np.int8)


class JudgeTest(unittest.TestCase):
    def outcome(self, *arguments, **words):
        return judge.judge(*arguments, **words).outcome

    def testFloatsMayBeAPartOfTheRangeApart(self):
        peers = [f32(100, 0)]
        self.assertEqual(self.outcome(f32(100, 0.0019), peers, "float32"), AGREES)
        self.assertEqual(self.outcome(f32(100, 0.0021), peers, "float32"), DIFFERS)
        self.assertEqual(self.outcome(f32(100, 0.15), peers, "aiedge-dynamic8"), AGREES)
        self.assertEqual(self.outcome(f32(100, 0.15), peers, "aiedge-weights8"), DIFFERS)

    def testFloatsMayBeAsFarApartAsKernelSetsOfLiteRT(self):
        peers = [f32(1, 2), f32(1, 2.1)]
        verdict = judge.judge(f32(1, 1.95), peers, "float32")
        self.assertEqual(verdict.outcome, AGREES)
        self.assertAlmostEqual(verdict.difference, 0.05, places=5)
        self.assertAlmostEqual(verdict.spread, 0.1, places=5)
        self.assertEqual(self.outcome(f32(1, 1.8), peers, "float32"), DIFFERS)

    def testQuantizedResultsMayBeAStepApart(self):
        step = (0.5, 3)
        self.assertEqual(self.outcome(int8(1, -128), [int8(2, -127)], "int8-io", step), AGREES)
        self.assertEqual(self.outcome(int8(1, 5), [int8(1, 7)], "int8-io", step), DIFFERS)
        self.assertEqual(self.outcome(int8(1, 5), [int8(1, 7), int8(1, 9)], "int8-io", step),
                         AGREES)
        self.assertEqual(self.outcome(f32(1.5, 2), [f32(1.5, 2.5)], "int8", step), AGREES)
        self.assertEqual(self.outcome(f32(1.5, 2), [f32(1.5, 3)], "int8", step), DIFFERS)

    def testPlainIntegersAreEqual(self):
        self.assertEqual(self.outcome(int8(1, 2), [int8(1, 3)], "float32"), DIFFERS)
        self.assertEqual(self.outcome(int8(1, 2), [int8(1, 3), int8(1, 2)], "float32"), AGREES)
        flags = np.array([True, False])
        self.assertEqual(self.outcome(flags, [flags], "float32"), AGREES)
        self.assertEqual(self.outcome(flags, [~flags], "float32"), DIFFERS)

    def testShapesAndTypesAreEqual(self):
        for other in (f32(1), int8(1, 2), f32(1, 2).reshape(1, 2)):
            with self.subTest(judge.describe(other)):
                verdict = judge.judge(f32(1, 2), [other], "dynamic")
                self.assertEqual(verdict.outcome, DIFFERS)
                self.assertIn(f"is float32[2], and {judge.describe(other)} in LiteRT", verdict.why)

    def testWhatIsNoNumberIsSoOnBothSides(self):
        peers = [f32(np.nan, np.inf, 1)]
        self.assertEqual(self.outcome(f32(np.nan, np.inf, 1), peers, "float32"), AGREES)
        self.assertEqual(self.outcome(f32(np.nan, -np.inf, 1), peers, "float32"), DIFFERS)
        self.assertEqual(self.outcome(f32(0, np.inf, 1), peers, "float32"), DIFFERS)
        self.assertEqual(self.outcome(f32(np.nan, np.inf, np.nan), peers, "dynamic"), DIFFERS)

    def testTensorFlowSaysWhoseFaultItIs(self):
        peers = [f32(1, 2)]
        self.assertEqual(self.outcome(f32(1, 3), peers, "float32", reference=f32(1, 4)), NEARER)
        self.assertEqual(self.outcome(f32(1, 3), peers, "float32", reference=f32(1, 2)), DIFFERS)
        # A quantized result stands for (5 - 3) * 0.5.
        verdict = judge.judge(int8(5), [int8(9)], "int8-io", (0.5, 3), f32(1.25))
        self.assertEqual((verdict.outcome, verdict.hearthError, verdict.peerError),
                         (NEARER, 0.25, 1.75))
        self.assertEqual(self.outcome(int8(9), [int8(5)], "int8-io", (0.5, 3), f32(1.25)), DIFFERS)

    def testComplexNumbersAndEmptyResults(self):
        one = np.array([1 + 2j], np.complex64)
        self.assertEqual(self.outcome(one, [one], "float32"), AGREES)
        self.assertEqual(self.outcome(one, [one * 1j], "float32"), DIFFERS)
        self.assertEqual(self.outcome(f32(), [f32()], "float32"), AGREES)

    def testRandomNumbersHaveTheSameDistribution(self):
        one, two = (np.random.default_rng(seed).normal(size=5000) for seed in (1, 2))
        self.assertEqual(judge.judgeRandom(one, [two]).outcome, AGREES)
        self.assertEqual(judge.judgeRandom(one + 0.5, [two]).outcome, DIFFERS)
        self.assertEqual(judge.judgeRandom(one * 2, [two]).outcome, DIFFERS)
        self.assertEqual(judge.judgeRandom(one[:10], [two]).outcome, DIFFERS)

    def testTheWorstOutputCounts(self):
        about = {"steps": {"y0": [0.5, 0]}}
        peers = [{"0/y0": int8(1), "0/y1": f32(1)}]
        same = judge.judgeAll(peers[0], peers, "int8", about, {})
        self.assertEqual((same.outcome, same.why), (AGREES, ""))
        wrong = judge.judgeAll({"0/y0": int8(2), "0/y1": f32(2)}, peers, "int8", about, {})
        self.assertEqual(wrong.outcome, DIFFERS)
        self.assertTrue(wrong.why.startswith("output 0/y1 is 1 from LiteRT"), wrong.why)
        missing = judge.judgeAll({"0/y0": int8(1)}, peers, "int8", about, {})
        self.assertEqual((missing.outcome, missing.why), (DIFFERS, "has no output 0/y1"))

    def testStartsAreComparedByBytes(self):
        result = {"0/a": f32(0.0), "0/b": f32(np.nan)}
        self.assertIsNone(judge.sameBytes(result, dict(result)))
        self.assertEqual(judge.sameBytes(result, {**result, "0/a": f32(-0.0)}), "0/a")
        self.assertEqual(judge.sameBytes(result, {"0/a": f32(0.0)}), "0/b")

    def testEachRecipeHasATolerance(self):
        for recipe, name in (("float16", "float16"), ("sparse", "float32"),
                             ("sparse-dynamic", "dynamic"),
                             ("aiedge-dynamic4-blocks", "dynamic"),
                             ("aiedge-weights4", "weights"), ("int8-io", "8 bits"),
                             ("uint8-io", "8 bits"), ("int16x8", "16 bits"),
                             ("aiedge-int16", "16 bits")):
            self.assertEqual(judge.toleranceOf(recipe), judge.TOLERANCES[name], recipe)


class ReportTest(unittest.TestCase):
    def rows(self):
        agreeing, differing, failing = (report.Row("conv", "float32"), report.Row("conv", "int8"),
                                        report.Row("pool", "int8", report.PEER_FAILS, "no kernel"))
        agreeing.add("hearth-cpu", AGREES)
        differing.add("hearth-cpu", report.REFUSED, "(cold): no such type")
        differing.add("nnapi-reference", DIFFERS, "output 0/y0 is 1 from LiteRT")
        agreeing.states = {"hearth-cpu": {"warm": "warm"}}
        return [agreeing, differing, failing]

    def testARowHasTheWorstOfItsDevices(self):
        row = self.rows()[1]
        self.assertEqual((row.outcome, row.why),
                         (report.REFUSED, "hearth-cpu (cold): no such type"))
        self.assertEqual(row.devices, {"hearth-cpu": report.REFUSED, "nnapi-reference": DIFFERS})

    def testTheTableCounts(self):
        text = report.text(self.rows(), [("peer", "x")])
        for part in ("| float32 | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |",
                     "| int8 | 2 | 0 | 0 | 0 | 1 | 0 | 1 | 0 |",
                     "| all | 3 | 1 | 0 | 0 | 1 | 0 | 1 | 0 |",
                     "LiteRT runs 2 models; Hearth refuses 1 of them (50.0 %).",
                     "1 of them started warm",
                     "- conv / int8: hearth-cpu (cold): no such type"):
            self.assertIn(part, text)


class TableTest(stub_programs.StubTest):
    def testOtherProgramsReadATable(self):
        rows = [report.Row("conv", "int8", operators=["CONV_2D", "RELU"]),
                report.Row("pool", "int8", report.PEER_FAILS, "no, kernel")]
        rows[0].add("hearth-cpu", AGREES)
        report.writeCsv(self.folder / "rows.csv", rows)
        with open(self.folder / "rows.csv", newline="") as file:
            self.assertEqual(list(csv.reader(file)), [
                ["graph", "recipe", "outcome", "hearth-cpu", "operators", "why"],
                ["conv", "int8", "agrees", "agrees", "CONV_2D RELU", ""],
                ["pool", "int8", "LiteRT fails", "", "", "no, kernel"]])


class Model:
    """A model with one output."""

    def __init__(self, isRandom=False):
        self._about = {"runs": 1, "isRandom": isRandom, "steps": {}, "operators": ["ABS"]}

    def about(self):
        return self._about

    def references(self):
        return {}

    def peers(self):
        return None


class Sides:
    """Stubs of LiteRT and Hearth with given results: a value, or an exception."""
    devices = ("hearth-cpu",)

    def __init__(self, peer, hearth, doors=None):
        self._peer, self._hearth, self._doors = peer, hearth, doors
        self.isForgotten = False

    def peer(self, model, kernels, runs):
        return self._give(self._peer[kernels])

    def hearth(self, model, device, start, process, preparation, runs):
        return self._give(self._hearth[start]), start

    def hasDoors(self):
        return self._doors is not None

    def door(self, model, device, door, process, runs):
        return self._give(self._doors[door])

    def forget(self):
        self.isForgotten = True

    def _give(self, value):
        if isinstance(value, Exception):
            raise value
        return {"0/y0": f32(value)}


class MeasureTest(unittest.TestCase):
    def row(self, peer, hearth, model=None, doors=None):
        if not isinstance(peer, dict):
            peer = dict.fromkeys(compare.KERNELS, peer)
        hearth = {"cold": hearth, "warm": hearth, "just-in-time": hearth} \
            if not isinstance(hearth, dict) else hearth
        sides = Sides(peer, hearth, doors)
        row, results = compare.measure(sides, model or Model(), "graph", "float32")
        self.assertEqual(sides.isForgotten, bool(results))
        return row

    def testResultsAgree(self):
        row = self.row(1.0, 1.0)
        self.assertEqual((row.outcome, row.devices), (AGREES, {"hearth-cpu": AGREES}))
        self.assertEqual(row.states["hearth-cpu"]["warm"], "warm")
        self.assertTrue(row.isWarm)

    def testEachDoorGivesTheSameBytes(self):
        alike = dict.fromkeys(compare.DOORS, 1.0)
        self.assertEqual(self.row(1.0, 1.0, doors=alike).outcome, AGREES)
        for door in compare.DOORS:
            row = self.row(1.0, 1.0, doors={**alike, door: 1.0000001})
            self.assertEqual(row.outcome, DIFFERS)
            self.assertIn(f"through {door}", row.why)
            row = self.row(1.0, 1.0, doors={**alike, door: Failure("it has none")})
            self.assertEqual(row.outcome, report.REFUSED)

    def testOneKernelSetIsEnough(self):
        row = self.row({"default": Failure("no such kernel"), "built-in": service.Lost("crash"),
                        "reference": 1.0}, 1.0)
        self.assertEqual(row.outcome, AGREES)
        self.assertEqual(row.peerFailures, {"default": "no such kernel", "built-in": "crash"})

    def testWhatLiteRTDoesNotRunIsNotCompared(self):
        row = self.row(Failure("no such kernel"), 1.0)
        self.assertEqual((row.outcome, row.why, row.devices),
                         (report.PEER_FAILS, "no such kernel", {}))

    def testRefusalsAndCrashes(self):
        row = self.row(1.0, Failure("no such type"))
        self.assertEqual((row.outcome, row.why),
                         (report.REFUSED, "hearth-cpu (cold): no such type"))
        row = self.row(1.0, {"cold": 1.0, "warm": service.Lost("was ended by signal 11")})
        self.assertEqual((row.outcome, row.why),
                         (report.LOST, "hearth-cpu (warm): was ended by signal 11"))

    def testStartsComputeTheSameBytes(self):
        hearth = {"cold": 1.0, "warm": 1.0, "just-in-time": np.nextafter(np.float32(1), 2)}
        row = self.row(1.0, hearth)
        self.assertEqual((row.outcome, row.why), (
            DIFFERS, "hearth-cpu computes other bytes of output 0/y0 just-in-time than cold"))
        self.assertEqual(self.row(1.0, hearth, Model(isRandom=True)).outcome, AGREES)

    def testPatternsChooseModels(self):
        names = [("conv 1x1", "int8"), ("conv 1x1", "float32"), ("dense", "int8")]
        choose = lambda *words: compare.chosen(names, compare.parseArguments(words))
        self.assertEqual(choose(), names)
        self.assertEqual(choose("--filter", "conv*"), names[:2])
        self.assertEqual(choose("--filter", "* / int8", "--recipes", "int8", "float16"),
                         [names[0], names[2]])
        self.assertEqual(choose("--filter", "conv"), [])
        self.assertEqual(choose("--store", os.devnull), [])


class ServiceTest(stub_programs.StubTest):
    def service(self, text, timeout=60):
        path = self.folder / "side.py"
        path.write_text(f"import sys, os, time\nsys.path.insert(0, {str(FOLDER)!r})\n"
                        f"import service\n{text}\nservice.serve(answer)\n")
        made = service.Service([sys.executable, path], timeout)
        self.addCleanup(made.close)
        return made

    def testAnswersAndErrors(self):
        side = self.service("def answer(job):\n    print('noise')\n"
                            "    return {'twice': 2 * job['n']}")
        self.assertEqual(side.ask({"n": 3}), {"twice": 6})
        self.assertEqual(side.ask({}), {"error": "'n'"})
        self.assertEqual(side.ask({"n": 4}), {"twice": 8})

    def testACrashLosesOneJob(self):
        side = self.service("def answer(job):\n    if job['n'] == 1:\n"
                            "        print('it broke', flush=True)\n        os.abort()\n"
                            "    return job")
        with self.assertRaisesRegex(service.Lost, "was ended by signal 6: it broke"):
            side.ask({"n": 1})
        self.assertEqual(side.ask({"n": 2}), {"n": 2})

    def testAHangLosesOneJob(self):
        side = self.service("def answer(job):\n    if job['n'] == 1:\n        time.sleep(3600)\n"
                            "    return job", timeout=0.5)
        # The first answer includes the time to start the process.
        with self.assertRaisesRegex(service.Lost, "no answer within 0.5 s"):
            side.ask({"n": 1})


class StoredTest(stub_programs.StubTest):
    def testModelsAreReadAsTheyWereWritten(self):
        class Made:
            file = self.folder / "a.tflite"
            inputs = self.folder / "a.npz"

            def about(self):
                return {"runs": 1, "steps": {}, "operators": ["ABS"], "isRandom": False}

        Made.file.write_bytes(b"model")
        np.savez(Made.inputs, **{"0/in/x0": f32(1), "0/reference/y0": f32(2)})
        peers = {"default": {"0/y0": f32(3)}, "built-in": {"0/y0": f32(3)},
                 "reference": {"0/y0": f32(4)}}
        kept = self.folder / "kept"
        kept.mkdir()
        (kept / "old.tflite").write_bytes(b"old")
        stored.write(kept, [("a graph, of 2-D", "int8", Made(), peers)])
        [model] = stored.read(kept)
        self.assertEqual((model.graph, model.recipe, model.file.name),
                         ("a graph, of 2-D", "int8", "a-graph-of-2-d-int8.tflite"))
        self.assertEqual(model.file.read_bytes(), b"model")
        self.assertEqual(model.about(), Made().about())
        self.assertEqual(model.references(), {})
        del peers["built-in"]
        self.assertEqual(model.peers(), peers)
        self.assertEqual(np.load(model.inputs)["0/in/x0"], f32(1))
        self.assertFalse((kept / "old.tflite").exists())


if __name__ == "__main__":
    unittest.main()
