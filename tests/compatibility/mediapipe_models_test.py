# SPDX-License-Identifier: Apache-2.0
"""Models with MediaPipe's operators: results must equal those that MediaPipe computed, which
bench/compatibility/mediapipe_graphs.py wrote beside the models."""

import json
import pathlib
import sys
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build" / "release" / "python"))
import hearth  # noqa: E402

MODELS = pathlib.Path(__file__).parent / "mediapipe"


class MediapipeModelsTest(unittest.TestCase):
    def testResultsAreThoseOfMediapipe(self):
        files = json.loads((MODELS / "models.json").read_text())
        self.assertEqual(len(files), 14)
        with np.load(MODELS / "results.npz") as results:
            for name, file in files.items():
                expected = results[name]
                # Sums of up to 27 products in another order.
                limit = 1e-6 * np.abs(expected).max()
                for device in ("hearth-cpu", "nnapi-reference"):
                    with self.subTest(name, device=device):
                        model = hearth.Model(MODELS / file).compile(device=device, cache="off")
                        found = model.run(results["picture"])["folded"]
                        self.assertEqual(found.shape, expected.shape)
                        self.assertLessEqual(np.abs(found - expected).max(), limit)
                        # A result of zeros alone would prove nothing.
                        self.assertGreater(np.count_nonzero(expected), 20)


if __name__ == "__main__":
    unittest.main()
