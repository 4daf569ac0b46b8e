# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/weight-cache with stubs in place of both programs; LiteRT itself is not needed."""

import contextlib
import io
import sys
import unittest
import xml.etree.ElementTree
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "bench" / "weight-cache"
sys.path[:0] = [str(FOLDER), str(Path(__file__).parent)]
import compare  # noqa: E402
import measurement  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import stub_programs  # noqa: E402
from measurement import BUILDING, HEARTH, NONE, PEER, REUSING  # noqa: E402

# A program that holds memory for a moment, writes its cache, and prints its arguments.
STUB = """
import json, os, pathlib, sys, time
words = sys.argv[1:]
named = words[words.index("--weight-cache") + 1] if "--weight-cache" in words else None
cache = os.environ.get("HEARTH_STORE") or named
kept = bytearray(20 << 20)
time.sleep({seconds})
if {fails}: sys.exit("it broke")
if cache and os.environ.get("HEARTH_STORE_MODE") != "off":
    pathlib.Path(cache).mkdir(exist_ok=True)
    (pathlib.Path(cache) / "segment").write_bytes(bytes(4096))
print(json.dumps({{"start": {{"prepare_ms": 2}}, "inference_ms": {{"first": 3, "p50": 1}},
                  "memory": {{"start_peak_rss_kib": 4, "peak_rss_kib": 5,
                             "anonymous_rss_kib": 6}}}}))
"""


def sample(init, **others):
    return {"init": init, "first": 10.0, "steady": 8.0, "anonymous_kib": 1000,
            "start_peak_kib": 1, "peak_anonymous_kib": 1, **others}


def result(samples, modelBytes=10 << 20, isLanguageModel=False, failures=None):
    return report.Result("model", modelBytes, isLanguageModel, samples, failures or {})


class ReportTest(unittest.TestCase):
    def goal(self, one, what):
        return [(value, goal) for name, value, goal in report.goals(one) if name == what]

    def testMediansGiveTheRatios(self):
        one = result({(HEARTH, REUSING): [sample(1.0), sample(9.0), sample(2.0)],
                      (PEER, REUSING): [sample(4.0)], (PEER, NONE): [sample(100.0)]})
        self.assertEqual(self.goal(one, "init, reusing / LiteRT's, reusing"), [(0.5, 0.33)])
        # Small models have a goal in milliseconds, large ones ratios.
        self.assertEqual(self.goal(one, "init + first − steady, reusing, ms"), [(4.0, 2.5)])
        self.assertEqual(self.goal(one, "init, reusing / LiteRT's, no cache"), [])
        one.modelBytes = 200 << 20
        self.assertEqual(self.goal(one, "init, reusing / LiteRT's, no cache"), [(0.02, 0.02)])
        self.assertEqual(self.goal(one, "init + first − steady, reusing, ms"), [])

    def testFurtherProcessesCountByWhatEachAdds(self):
        one = result({(side, f"{count} processes"): [{"peak_pss_kib": pss}]
                      for side, count, pss in ((HEARTH, 1, 100), (HEARTH, 4, 130), (PEER, 1, 100),
                                               (PEER, 4, 400))})
        self.assertEqual(self.goal(one, "each further process, PSS / LiteRT's"), [(0.1, 0.5)])

    def testMissedGoalsAndFailuresAreShown(self):
        one = result({(HEARTH, REUSING): [sample(3.0)], (PEER, REUSING): [sample(4.0)]},
                     failures={(PEER, BUILDING): "it broke"})
        text = report.markdown([one], [("peer", "x")])
        self.assertIn("| **0.75** | ≤ 0.33, missed |", text)
        self.assertIn("- model, litert, building: it broke", text)
        self.assertIn("| failed |", text)

    def testThePlotIsAPicture(self):
        one = result({(HEARTH, REUSING): [sample(3.0)], (PEER, REUSING): [sample(40.0)]})
        picture = xml.etree.ElementTree.fromstring(report.plot([one]))
        bars = [float(bar.get("width")) for bar in picture.iter("{http://www.w3.org/2000/svg}rect")
                if bar.get("height") == "9"]
        self.assertEqual(len(bars), 2)
        self.assertLess(bars[0], bars[1])


class MeasureTest(stub_programs.StubTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model.tflite"
        self.model.write_bytes(b"model")

    def programs(self, fails=False, seconds=0.1):
        stub = self.pythonProgram("stub", STUB, fails=fails, seconds=seconds)
        # For the stub, the peer's program is an argument like any other.
        return measurement.Programs(stub, stub, 2, self.folder)

    def testMemoryIsWatched(self):
        row = rows.Row("stub", ())
        # Long enough that both hold their memory at the same time when it is measured, on a busy
        # machine, too.
        programs = self.programs(seconds=1)
        one = programs.run(HEARTH, row, self.model, REUSING, 1, 1, count=2)
        self.assertGreater(one["peak_anonymous_kib"], 2 * 20_000)
        self.assertGreater(one["peak_pss_kib"], 2 * 20_000)
        self.assertEqual((one["init"], one["first"], one["steady"]), (2, 3, 1))
        self.assertEqual(self.programs().bytesOnDisk(HEARTH, row), 4096)
        self.programs().clear(HEARTH, row)
        self.assertFalse(self.programs().cache(HEARTH, row).exists())

    def testEveryStateIsMeasured(self):
        row = rows.Row("stub", (), processes=(1, 2))
        arguments = compare.parseArguments(["--rounds", "2", "--repeat", "1"])
        with contextlib.redirect_stderr(io.StringIO()):
            samples, failures = compare.measure(self.programs(), row, self.model, arguments)
        self.assertEqual({key for key in samples if key[0] == HEARTH},
                         {(HEARTH, state) for state in (NONE, BUILDING, REUSING, report.DROPPED,
                                                        "1 processes", "2 processes")})
        self.assertEqual(len(samples[(HEARTH, REUSING)]), 2)
        self.assertNotIn((HEARTH, REUSING), failures)

    def testAFailureIsNoEndOfTheRun(self):
        row = rows.Row("stub", (), processes=(1,))
        arguments = compare.parseArguments(["--rounds", "1"])
        with contextlib.redirect_stderr(io.StringIO()):
            samples, failures = compare.measure(self.programs(True), row, self.model, arguments)
        self.assertEqual(samples, {})
        self.assertIn("it broke", failures[(HEARTH, NONE)])

    def testTheReportIsWritten(self):
        self.measureOnly(rows, self.model, processes=(1,))
        stub = self.pythonProgram("stub", STUB, fails=False, seconds=0)
        output, plot = self.folder / "output.md", self.folder / "plot.svg"
        code, text = self.captured(compare.main, [
            "--hearth", stub, "--python", stub, "--rounds", 1, "--output", output, "--plot", plot])
        self.assertEqual((code, text), (0, ""))
        self.assertIn("mobilenet_v2_f32", output.read_text())
        self.assertTrue(plot.read_text().startswith("<svg"))

    def testGeneratedModelsAreKept(self):
        words = ("gemma_2b", "--layers", "1", "--hidden", "64", "--feed-forward", "64",
                 "--head-size", "16", "--vocabulary", "100")
        row = rows.Row("tiny", words)
        path = row.path(self.folder / "cache", lambda text: None)
        stamp = path.stat().st_mtime_ns
        self.assertEqual(row.path(self.folder / "cache", self.fail), path)
        self.assertEqual(path.stat().st_mtime_ns, stamp)

    def testArguments(self):
        self.checkRows(compare.main, "gemma_2b_i8")


if __name__ == "__main__":
    unittest.main()
