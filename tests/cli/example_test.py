# SPDX-License-Identifier: Apache-2.0
"""The example program, built beside the command, on a real model."""

import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np

from command import HEARTH, DataTest

CLASSIFY = pathlib.Path(HEARTH).parent / "classify"


class ExampleTest(DataTest):
    def classify(self, *arguments):
        return subprocess.run([CLASSIFY, *map(str, arguments)], capture_output=True, text=True,
                              check=False, timeout=60)

    def testFindsTheCat(self):
        pixels = np.load(self.data("golden/mobilenet_v1_0.25_128_quant/input_0.npy"))
        image = self.folder / "cat.rgb"
        image.write_bytes(pixels.tobytes())
        run = self.classify(self.model("mobilenet_v1_0.25_128_quant"), image)
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = run.stdout.splitlines()
        self.assertEqual(len(lines), 5)
        self.assertEqual(lines[0].split()[0], "286")

    def testReportsErrors(self):
        self.assertEqual(self.classify().returncode, 2)
        run = self.classify(self.folder / "none.tflite", self.folder / "none.rgb")
        self.assertEqual(run.returncode, 1)
        self.assertIn("none.tflite", run.stderr)
        run = self.classify(self.model("mobilenet_v1_0.25_128_quant"), self.folder / "none.rgb")
        self.assertEqual(run.returncode, 1)
        self.assertIn("49152", run.stderr)


if __name__ == "__main__":
    unittest.main()
