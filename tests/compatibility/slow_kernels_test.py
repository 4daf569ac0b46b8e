# SPDX-License-Identifier: Apache-2.0
"""No operation of a stored model falls to a slow kernel that did not run on one before. Where fewer
do, `bench/models/slow_kernels.py --update` writes the list anew."""

import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "models")]
import slow_kernels  # noqa: E402

HEARTH = os.environ.get("HEARTH_BIN") or ROOT / "build" / "release" / "bin" / "hearth"


class SlowKernelsTest(unittest.TestCase):
    def testNoneIsNew(self):
        worse, _ = slow_kernels.differences(slow_kernels.find(HEARTH), slow_kernels.known())
        self.assertEqual(worse, [])

    def testTheListIsOfStoredModels(self):
        models = {path.stem for path in slow_kernels.MODELS.glob("*.tflite")}
        self.assertEqual(len(models), 60)
        self.assertLessEqual(slow_kernels.known().keys(), models)

    def testMoreSlowKernelsAreTold(self):
        expected = {"one": {"ADD": 2, "MUL": 1}, "two": {"CONV_2D": 1}}
        found = {"one": {"ADD": 3}, "three": {"PAD": 1}}
        worse, better = slow_kernels.differences(found, expected)
        self.assertEqual(len(worse), 2)
        self.assertIn("one: 3 ADD on slow kernels, 2 in", worse[0])
        self.assertIn("three: 1 PAD on slow kernels, 0 in", worse[1])
        self.assertEqual(len(better), 2)


if __name__ == "__main__":
    unittest.main()
