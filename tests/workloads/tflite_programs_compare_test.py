# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/tflite-programs without the peers."""

import importlib.util
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench")]
from peers import models  # noqa: E402

# All benchmarks have programs of this name.
SPEC = importlib.util.spec_from_file_location("tflite_programs_compare", ROOT / "bench/tflite-programs/compare.py")
compare = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(compare)


class ReportTest(unittest.TestCase):
    def row(self):
        row = compare.Row(models.Model("net", pathlib.Path("net.tflite")))
        row.memory = {compare.ORIGINAL: [300.0], compare.DELEGATE: [1000.0, 900.0, 2000.0], compare.HEARTH: [200.0]}
        row.first = {compare.ORIGINAL: [50.0], compare.DELEGATE: [80.0], compare.HEARTH: [20.0, 21.0, 0.0]}
        row.run = {compare.ORIGINAL: [9.0], compare.DELEGATE: [6.0], compare.HEARTH: [3.0]}
        row.python = {compare.LITERT: [40.0], compare.HEARTH: [30.0]}
        return row

    def testRatiosAreToThePeerWithTheSameResults(self):
        figures = self.row().json()
        self.assertEqual((figures["memory_ratio"], figures["first_ratio"], figures["python_ratio"]),
                         (0.2, 0.25, 0.75))

    def testTheReportHasATableForEachMeasurement(self):
        text = compare.markdown([self.row()], [120, -5, 130], [("rounds", 5)])
        self.assertEqual(text.count("| net |"), 4)
        self.assertIn("| net | 300.0 (300.0–300.0) | 1000.0 (900.0–2000.0) | 200.0 (200.0–200.0) | 0.20 | 0.35 |", text)
        self.assertIn("| 9.0 (9.0–9.0) | 6.0 (6.0–6.0) | 3.0 (3.0–3.0) | 0.50 | – |", text)
        self.assertIn("| digits | 120 (-5–130) | 1000 |", text)

    def testTheProgramImportsWhatBothSidesAnswer(self):
        with tempfile.TemporaryDirectory() as folder:
            script = compare.pythonScript(pathlib.Path(folder))
            compile(script.read_text(), script, "exec")
            self.assertIn("tflite_runtime.interpreter", script.read_text())
            self.assertTrue((script.parent / "peer" / "tflite_runtime" / "interpreter.py").exists())


if __name__ == "__main__":
    unittest.main()
