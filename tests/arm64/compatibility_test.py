# SPDX-License-Identifier: Apache-2.0
"""Small models of TensorFlow's converter, of every family and recipe, on both built-in devices of the command for
ARM64 under qemu-user: results are judged beside those that LiteRT computed, and a second start has the same bytes.
With --all only: so many starts take minutes under emulation."""

import pathlib
import sys
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(ROOT / "bench" / "compatibility")]

from packing_test import BoardTest  # noqa: E402
from vectors_test import DEVICES  # noqa: E402

import judge  # noqa: E402
import stored  # noqa: E402

PROCESSOR = "cortex-a76"
MODELS = stored.read(ROOT / "tests" / "compatibility" / "models")


class CompatibilityTest(BoardTest):

    def compute(self, model, names, device, run):
        """State of the start, and {RUN/NAME: array}."""
        with np.load(model.inputs) as arrays:
            given = [arrays[f"{run}/in/{name}"] for name in names["inputs"]]
        paths = [self.folder / f"input_{index}.npy" for index in range(len(given))]
        for path, array in zip(paths, given, strict=True):
            np.save(path, array)
        outputs = self.folder / "outputs"
        inputs = ["--input", *paths] if paths else []
        result = self.board(PROCESSOR, "run", model.file, *inputs, "--output-dir", outputs, "--device", device,
                            "--threads", 1)
        return result["start"]["state"], {f"{run}/{name}": np.load(outputs / f"output_{index}.npy")
                                          for index, name in enumerate(names["outputs"])}

    def names(self, model):
        """Names of inputs and outputs, in the order of the files."""
        [signature] = self.here("inspect", model.file)["signatures"]
        return {list_: [tensor["name"] for tensor in signature[list_]] for list_ in ("inputs", "outputs")}

    def testResultsAreThoseOfLiteRT(self):
        warm = 0
        for model in MODELS:
            names = self.names(model)
            for device in DEVICES:
                with self.subTest(f"{model.graph} / {model.recipe}, {device}"):
                    about, first, second = model.about(), {}, {}
                    for run in range(about["runs"]):
                        first |= self.compute(model, names, device, run)[1]
                        state, again = self.compute(model, names, device, run)
                        second |= again
                        warm += state == "warm"
                    verdict = judge.judgeAll(first, list(model.peers().values()), model.recipe, about, {})
                    self.assertEqual(verdict.outcome, judge.AGREES, verdict.why)
                    if not about["isRandom"]:
                        self.assertIsNone(judge.sameBytes(first, second))
        self.assertEqual(len(MODELS), 60)
        # Models with few weights are not stored.
        self.assertGreaterEqual(warm, 5)


if __name__ == "__main__":
    unittest.main()
