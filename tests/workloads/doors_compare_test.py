# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/doors with stubs in place of all programs; LiteRT itself is not needed."""

import importlib.util
import json
import sys
import unittest
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(Path(__file__).parent)]
import stub_programs  # noqa: E402
from peers import models  # noqa: E402
from workloads import networks, quantize, tflite_writer  # noqa: E402

# All benchmarks have programs of this name.
SPEC = importlib.util.spec_from_file_location("doors_compare", ROOT / "bench/doors/compare.py")
compare = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(compare)


# In place of the Python package.
PACKAGE = """
import numpy

class Tensor:
    name = "x"
    def empty(self):
        return numpy.zeros(4)

class Model:
    inputs = outputs = [Tensor()]
    def __init__(self, path):
        self.path = path
    def compile(self, threads):
        return self
    def create_execution(self):
        return self
    def run(self, inputs, outputs=None):
        return inputs
"""


def sample(p50, prepare=1.0, first=2.0):
    return {"start": {"prepare_ms": prepare}, "inference_ms": {"first": first, "p50": p50}}


class RowTest(unittest.TestCase):
    def row(self, memory=None, failures=None, **samples):
        return compare.Row(models.Model("model", Path("model")), samples, memory or {},
                           failures or {})

    def testRatiosAreThoseOfMedians(self):
        row = self.row({"delegate": 500, "compiled": 1000, "interpreter": 2000},
                       delegate=[sample(2.0, 3.0), sample(2.2, 90.0), sample(2.1, 4.0)],
                       compiled=[sample(9.0, 10.0)], hearth=[sample(2.0)])
        self.assertEqual(row.startRatio, 6.0 / 12.0)
        self.assertEqual(row.steadyRatio, 2.1 / 2.0)
        self.assertEqual(row.memoryRatio, 0.25)
        text = compare.markdown([row], [("peer", "x")])
        self.assertIn("| model | 6 (5–92) | 12 (12–12) | – | 3 (3–3) | 0.50 |", text)
        self.assertIn("| **1.05** |", text)
        self.assertIn("| model | 0 | 1 | 2 | 0.25 |", text)

    def testWhatIsMissingHasNoRatio(self):
        row = self.row(failures={"compiled": "no result"}, delegate=[sample(0.1)],
                       hearth=[sample(0.1)])
        self.assertEqual((row.startRatio, row.steadyRatio, row.memoryRatio), (None, None, None))
        self.assertIn("- model, CompiledModel with weight cache: no result",
                      compare.markdown([row], []))


    def testARunFromPythonHasALimit(self):
        python = compare.PythonRow([{"hearth": 0.020, "new": 0.0275, "given": 0.022}])
        text = compare.markdown([], [], python)
        self.assertIn("| digits | 20.0 | 27.5 | 22.0 | **7.5** and 2.0 |", text)
        failed = compare.PythonRow([], "no result")
        self.assertIn("- a run from Python: no result", compare.markdown([], [], failed))
        self.assertEqual(failed.json()["python_overhead_us"], {})


class CompareTest(stub_programs.StubTest):
    def setUp(self):
        super().setUp()
        data = self.folder / "data" / "models"
        data.mkdir(parents=True)
        graph = quantize.toInt8(networks.mlp(1, features=256, hidden=256, classes=3),
                                [np.ones((1, 256), np.float32)])
        tflite_writer.write(graph, data / "small.tflite")

    def compare(self, hearth, python, *words):
        package = self.folder / "package"
        (package / "hearth").mkdir(parents=True, exist_ok=True)
        (package / "hearth" / "__init__.py").write_text(PACKAGE)
        return self.captured(compare.main, [
            "--hearth", hearth, "--python", python, "--data", self.folder / "data", "--delegate",
            "/the/delegate.so", "--package", package, "--models", "small", *words])

    def testRunsAllSides(self):
        figures = self.folder / "figures.json"
        hearth = self.program("hearth", f"""
case "$1 $3 $4 $5 ${{HEARTH_STORE:+store}} $HEARTH_STORE_MODE" in
  "bench --json --threads 2 store "*|"bench --json --threads 1 "*" off") ;;
  *) exit 2;;
esac
echo '{json.dumps(sample(3.0, 1.0))}'""")
        peer = self.program("python", f"""
case "$*" in
  *"--delegate /the/delegate.so --delegate-store "*) echo '{json.dumps(sample(3.0, 2.0))}';;
  *"--api compiled --weight-cache "*) echo '{json.dumps(sample(5.0, 8.0))}';;
  *"--api interpreter --threads"*) echo '{json.dumps(sample(6.0, 18.0))}';;
  *) exit 2;;
esac
case "$*" in *--wait) cat > /dev/null;; esac""")
        code, text = self.compare(hearth, peer, "--quick", "--threads", "2", "--json", figures)
        self.assertEqual(code, 0, text)
        self.assertIn("| small | 4 (4–4) | 10 (10–10) | 20 (20–20) | 3 (3–3) | 0.40 |", text)
        self.assertIn("| digits | 3000.0 | ", text)
        row, fromPython = json.loads(figures.read_text())["rows"]
        self.assertEqual(set(fromPython["python_overhead_us"]), {"new", "given"})
        self.assertEqual((row["start_ratio"], row["steady_ratio"]), (0.4, 1.0))
        self.assertEqual(set(row["memory_kib"]), {"delegate", "compiled", "interpreter"})

    def testAFailingSideIsReported(self):
        hearth = self.program("hearth", f"echo '{json.dumps(sample(3.0))}'")
        for text, expected in (("echo no such operator >&2; exit 1",
                                "ended with 1: no such operator"),
                               ("echo oops", "the output is no JSON: 'oops"),
                               ("echo '{}'", "the output has no number start.prepare_ms")):
            with self.subTest(text):
                code, output = self.compare(hearth, self.program("python", text), "--quick")
                self.assertEqual(code, 1)
                self.assertIn(f"- small, LiteRT with Hearth: {expected}", output)
                self.assertIn("| small | failed | failed | failed | 3 (3–3) | – |", output)
        code, output = self.compare(hearth, self.folder / "nowhere", "--quick")
        self.assertEqual(code, 1)
        code, output = self.compare(self.program("broken", "exit 3"), self.folder / "nowhere", "--quick")
        self.assertIn("- a run from Python: ", output)
        self.assertIn("cannot be started: No such file or directory", output)


if __name__ == "__main__":
    unittest.main()
