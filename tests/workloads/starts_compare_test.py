# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/starts with stubs in place of both builds."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import stub_programs  # noqa: E402

# A build whose starts take this many milliseconds, and cold ones, without a store, ten times as
# many.
STUB = """
import json, os, pathlib
store = pathlib.Path(os.environ["HEARTH_STORE"])
isWarm = store.is_dir()
store.mkdir(exist_ok=True)
print(json.dumps({{"start": {{"prepare_ms": {ready} * (1 if isWarm else 10)}},
                  "inference_ms": {{"first": 3, "p50": 1}},
                  "memory": {{"start_peak_rss_kib": 4, "peak_rss_kib": 5,
                             "anonymous_rss_kib": 6}}}}))
"""


class StartsTest(stub_programs.StubTest):
    def setUp(self):
        super().setUp()
        self.compare = stub_programs.load("starts")
        self.measureOnly(self.compare, self.folder / "model.tflite", rounds=1)

    def stub(self, name, ready):
        return self.pythonProgram(name, STUB, ready=ready)

    def testRatiosAreOfMediansOfBothBuilds(self):
        figures = self.folder / "figures.json"
        code, output = self.captured(
            self.compare.main, ["--before", self.stub("before", 4), "--hearth",
                                self.stub("now", 5), "--json", figures])
        self.assertEqual(code, 0)
        self.assertIn("| cold, ready | 40 (40–40) | 50 (50–50) | 1.250 |", output)
        self.assertIn("| warm, ready | 4 (4–4) | 5 (5–5) | 1.250 |", output)
        self.assertIn("| warm, first inference | 3 (3–3) | 3 (3–3) | 1.000 |", output)
        samples = json.loads(figures.read_text())["rows"][0]["samples"]
        self.assertEqual(len(samples["now, reusing"]), 3 * len(samples["now, building"]))

    def testABuildThatFailsIsSaid(self):
        broken = self.program("broken", "echo It broke. >&2\nexit 1\n")
        code, output = self.captured(
            self.compare.main, ["--before", self.stub("before", 4), "--hearth", broken])
        self.assertEqual(code, 1)
        self.assertIn("It broke.", output)
        code, _ = self.captured(self.compare.main, ["--before", self.folder / "none"])
        self.assertEqual(code, 2)
        self.assertIn("is no program", self.errors.getvalue())

    def testArguments(self):
        before = self.stub("before", 4)
        self.checkRows(lambda words: self.compare.main(["--before", str(before), *words]),
                       "mobilenet_v2_f32")


if __name__ == "__main__":
    unittest.main()
