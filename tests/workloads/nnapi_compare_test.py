# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/nnapi with stubs in place of both programs; LiteRT itself is not needed."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from nnapi import compare, report  # noqa: E402


def rowOf(modelBytes, ours, theirs, failures=None):
    row = report.Row("model", modelBytes, failures=failures or {})
    for value in ours:
        row.add(report.CACHED, {"finish": value, "libraries": 0.5, "first": 2.0})
    for value in theirs:
        row.add(report.PEER, {"from_file": value})
    return row


class ReportTest(unittest.TestCase):
    def testSmallModelsHaveATime(self):
        within = rowOf(report.LARGE - 1, [0.9, 1.0, 3.0], [2.0])
        self.assertEqual(within.against(), ("1 ms", "≤ 1 ms"))
        beyond = rowOf(report.LARGE - 1, [1.1], [200.0])
        self.assertEqual(beyond.against(), ("**1.1 ms**", "≤ 1 ms, missed"))
        self.assertTrue(beyond.json()["missed"])

    def testLargeModelsHaveAQuotient(self):
        within = rowOf(report.LARGE, [4.0], [80.0])
        self.assertEqual(within.against(), ("20 x", "≥ 20 x faster than LiteRT"))
        beyond = rowOf(report.LARGE, [4.0], [79.0])
        self.assertEqual(beyond.against(), ("**19.8 x**", "≥ 20 x faster than LiteRT, missed"))

    def testAColdFinishHasAGoalBesideHearthH(self):
        row = rowOf(report.LARGE, [4.0], [80.0])
        self.assertEqual(row.againstDirect(), ("–", "≤ 1.2 x hearth.h"))
        row.add(report.COLD, {"finish": 12.0})
        row.add(report.DIRECT, {"prepare": 10.0})
        self.assertEqual(row.againstDirect(), ("1.20 x", "≤ 1.2 x hearth.h"))
        row.add(report.COLD, {"finish": 14.0})
        self.assertEqual(row.againstDirect(), ("**1.30 x**", "≤ 1.2 x hearth.h, missed"))
        self.assertEqual(row.json()["overhead"], 1.3)

    def testNothingIsSaidOfWhatFailed(self):
        row = rowOf(report.LARGE, [4.0], [], {report.PEER: "no result"})
        self.assertEqual(row.against()[0], "–")
        self.assertIsNone(row.json()["missed"])
        text = report.markdown([row], [("peer", "x")])
        self.assertIn(
            "| model | 100 | 0.5 (0.5–0.5) | failed | failed | 4 (4–4) | failed | – |", text)
        self.assertIn("- model, litert: no result", text)

    def testTheSectionTakesItsPlace(self):
        section = report.markdown([rowOf(1, [1.0], [2.0])], [])
        self.assertEqual(report.place("", section), section)
        self.assertEqual(report.place("# Title\n", section), "# Title\n\n" + section)
        document = "# Title\n\n" + report.HEADING + "\n\nold\n\n{}## Next\n\nrest\n"
        for kept in ("", "### What is missed\n\nby hand\n\n"):
            placed = report.place(document.format(kept), section)
            self.assertEqual(placed, "# Title\n\n" + section + "\n" + kept + "## Next\n\nrest\n")
            self.assertEqual(report.place(placed, section), placed)


class CompareTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "small.tflite").write_bytes(b"model")
        self.peer = self.program("python", """
[ "$3 $4 $5" = "--api compiled --only-start" ] || exit 2
echo '{"start": {"prepare_ms": 31, "from_file_ms": 30}}'""")

    def program(self, name, text):
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    def compare(self, hearth, *words):
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = compare.main(["--hearth", str(hearth), "--python", str(self.peer), "--model",
                                 str(self.folder / "small.tflite"), "--rounds", "2", *words])
        return code, out.getvalue()

    def sample(self, finish, cache):
        return json.dumps({"libraries_ms": 0.5, "finish_ms": finish, "first_inference_ms": 2,
                           "start": {"cache": cache}})

    def testReadsBothSides(self):
        # bench MODEL --json --repeat 0 [--api nnapi --cache-dir DIR]: a hit the second time.
        hearth = self.program("hearth", f"""
[ "$1 $3 $4 $5" = "bench --json --repeat 0" ] && [ "$HEARTH_THREADS" = 1 ] || exit 2
case "$HEARTH_STORE$XDG_STATE_HOME" in "") exit 2;; esac
if [ $# = 5 ]; then echo '{{"start": {{"state": "cold", "prepare_ms": 15}}}}'; exit; fi
[ "$6 $7 $8" = "--api nnapi --cache-dir" ] && [ -d "$9" ] || exit 2
if [ -e "$9/file" ]; then echo '{self.sample(0.8, "hit")}'
else touch "$9/file"; echo '{self.sample(16, "There are no files.")}'; fi""")
        figures, document = self.folder / "figures.json", self.folder / "benchmarks.md"
        document.write_text("# Benchmarks\n\n## Other\n\ntext\n")
        code, text = self.compare(hearth, "--threads", "1", "--json", str(figures))
        self.assertEqual(code, 0)
        self.assertIn("| small | 0 | 0.5 (0.5–0.5) | 16 (16–16) | 15 (15–15) | 0.8 (0.8–0.8) "
                      "| 30 (30–30) | 37.5 |", text)
        self.assertIn("| small | 0.8 ms | ≤ 1 ms | 1.07 x | ≤ 1.2 x hearth.h |", text)
        [row] = json.loads(figures.read_text())["rows"]
        self.assertEqual((row["speed_up"], row["missed"]), (37.5, False))
        self.assertEqual(row["times_ms"]["cold, finish"], [16, 16])
        self.compare(hearth, "--threads", "1", "--output", str(document))
        written = document.read_text()
        self.assertTrue(written.startswith("# Benchmarks\n\n## Other\n\ntext\n\n" + report.HEADING))

    def testAnotherStartThanTheMeasuredOneIsAFailure(self):
        code, text = self.compare(self.program("hearth", f"echo '{self.sample(16, 'no map')}'"))
        self.assertEqual(code, 1)
        self.assertIn("- small, from cache: the cache says: no map", text)
        self.assertIn("- small, hearth.h: the start is not cold: it has no state", text)
        self.assertIn("| small | – | ≤ 1 ms | – | ≤ 1.2 x hearth.h |", text)
        for output, sentence in (("echo '[]'", "the cache says: nothing"),
                                 ("echo oops", "the output is no JSON: 'oops"),
                                 ("echo no >&2; exit 1", "ended with exit code 1: no")):
            code, text = self.compare(self.program("hearth", output))
            self.assertEqual(code, 1)
            self.assertIn(f"- small, from cache: {sentence}", text)

    def testUnknownRowsAreAWrongArgument(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertEqual(compare.main(["--rows", "nothing*"]), 2)
        self.assertIn("no row matches nothing*", errors.getvalue())


if __name__ == "__main__":
    unittest.main()
