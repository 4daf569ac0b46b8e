# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/starts with stubs in place of both builds."""

import contextlib
import importlib.util
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "bench" / "starts"

# A build whose starts take this many milliseconds, and cold ones, without a store, ten times as
# many.
STUB = """#!{python}
import json, os, pathlib
store = pathlib.Path(os.environ["HEARTH_STORE"])
isWarm = store.is_dir()
store.mkdir(exist_ok=True)
print(json.dumps({{"start": {{"prepare_ms": {ready} * (1 if isWarm else 10)}},
                  "inference_ms": {{"first": 3, "p50": 1}},
                  "memory": {{"start_peak_rss_kib": 4, "peak_rss_kib": 5,
                             "anonymous_rss_kib": 6}}}}))
"""


def load():
    spec = importlib.util.spec_from_file_location("starts_compare", FOLDER / "compare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class StartsTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.compare = load()
        row = self.compare.ROWS[0]
        self.addCleanup(setattr, self.compare, "ROWS", self.compare.ROWS)
        model = self.folder / "model.tflite"
        stubRow = type(row)(row.name, row.words, rounds=1)
        object.__setattr__(stubRow, "path", lambda cache, say: model)
        self.compare.ROWS = [stubRow]

    def stub(self, name, ready):
        path = self.folder / name
        path.write_text(STUB.format(python=sys.executable, ready=ready))
        path.chmod(0o700)
        return path

    def run_(self, *words):
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = self.compare.main([str(word) for word in words])
        return code, output.getvalue(), errors.getvalue()

    def testRatiosAreOfMediansOfBothBuilds(self):
        figures = self.folder / "figures.json"
        code, output, _ = self.run_("--before", self.stub("before", 4), "--hearth",
                                    self.stub("now", 5), "--json", figures)
        self.assertEqual(code, 0)
        self.assertIn("| cold, ready | 40 (40–40) | 50 (50–50) | 1.250 |", output)
        self.assertIn("| warm, ready | 4 (4–4) | 5 (5–5) | 1.250 |", output)
        self.assertIn("| warm, first inference | 3 (3–3) | 3 (3–3) | 1.000 |", output)
        samples = json.loads(figures.read_text())["rows"][0]["samples"]
        self.assertEqual(len(samples["now, reusing"]), 3 * len(samples["now, building"]))

    def testABuildThatFailsIsSaid(self):
        broken = self.folder / "broken"
        broken.write_text("#!/bin/sh\necho It broke. >&2\nexit 1\n")
        broken.chmod(0o700)
        code, output, _ = self.run_("--before", self.stub("before", 4), "--hearth", broken)
        self.assertEqual(code, 1)
        self.assertIn("It broke.", output)
        code, _, errors = self.run_("--before", self.folder / "none")
        self.assertEqual(code, 2)
        self.assertIn("is no program", errors)


if __name__ == "__main__":
    unittest.main()
