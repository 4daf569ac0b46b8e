# SPDX-License-Identifier: Apache-2.0
"""Models of TensorFlow's converter: Hearth's results must equal those that LiteRT computed, and programs for
TensorFlow Lite must get the same bytes from hearth.tflite and libtensorflowlite_c.so."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "compatibility")]
import compare  # noqa: E402
import short  # noqa: E402

LIBRARY = ROOT / "build" / "release" / "lib" / "libtensorflowlite_c.so"


class StoredModelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="hearth-compatibility-test-") as folder:
            path = pathlib.Path(folder) / "rows.json"
            with contextlib.redirect_stdout(io.StringIO()), \
                    contextlib.redirect_stderr(io.StringIO()):
                compare.main(["--short", "--json", str(path), "--library", str(LIBRARY)])
            cls.rows = json.loads(path.read_text())["rows"]

    def testResultsAreThoseOfLiteRT(self):
        for row in self.rows:
            with self.subTest(row["name"]):
                self.assertEqual(row["outcome"], "agrees", row["why"])
                self.assertEqual(set(row["devices"]), set(compare.DEVICES))

    def testTheDoorsOfTensorFlowLiteAreCompared(self):
        self.assertTrue(LIBRARY.exists(), f"Build the target tensorflowlite_c; {LIBRARY} is missing.")

    def testAllModelsAreCompared(self):
        self.assertEqual(sorted(row["name"] for row in self.rows), sorted(short.NAMES))
        self.assertEqual(len(self.rows), 60)

    def testSomeStartsAreWarm(self):
        """Models with few weights are not stored, so their second start proves nothing."""
        warm = [row["name"] for row in self.rows
                if row["states"]["hearth-cpu"]["warm"] == "warm"]
        self.assertGreaterEqual(len(warm), 5)

    def testTheFilesAreSmall(self):
        size = sum(path.stat().st_size for path in compare.STORED.iterdir())
        self.assertLess(size, 3 << 19)


if __name__ == "__main__":
    unittest.main()
