# SPDX-License-Identifier: Apache-2.0
"""Models of all kinds of weights in a store that this machine makes for processors without and with dot product:
the command for ARM64 starts them warm as these processors, with nothing packed, and their outputs are those of a
cold start. With --all only: larger models take minutes under emulation."""

import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from packing_test import BOARD_HEARTH, ROOT, TARGETS, BoardTest  # noqa: E402

# Of the test data: unsigned and signed 8-bit numbers, and float32.
STORED = ("mobilenet_v1_0.25_128_quant", "mobilenet_v2_quantized_1x3x224x224", "person_detect",
          "dtln_noise_suppression")
LANGUAGE_MODEL = ("--layers", 1, "--hidden", 256, "--feed-forward", 512, "--heads", 4, "--groups", 1, "--head-size", 64,
                  "--vocabulary", 1024, "--prefill", 8, "--cache", 32)
# Generated: 4-bit weights with scales of blocks and of rows, 8-bit weights beside float32 numbers, float16.
GENERATED = {
    "int4-blocks": ("gemma_2b", "--form", "i4b32", *LANGUAGE_MODEL),
    "int4-rows": ("gemma_2b", "--form", "i4", *LANGUAGE_MODEL),
    "int8-hybrid": ("gemma_2b", "--form", "i8", *LANGUAGE_MODEL),
    "float16": ("text_encoder", "--form", "f16", "--depth", 1, "--width", 256, "--heads", 4, "--vocabulary", 1024),
    "int8": ("mobilenet_v2", "--quant", "i8", "--resolution", 64),
}


class StoredModelsTest(BoardTest):

    def setUp(self):
        super().setUp()
        self.models = {name: self.model(name) for name in STORED}
        for name, (kind, *options) in GENERATED.items():
            self.models[name] = self.folder / f"{name}.tflite"
            subprocess.run([sys.executable, ROOT / "bench" / "workloads" / "generate.py", kind, self.models[name],
                            *map(str, options)], check=True, capture_output=True)
        # A file that has just changed is not believed to be unchanged.
        time.sleep(3)

    def compute(self, processor, name, **variables):
        """How a model starts on a board, and the bytes of its outputs for random numbers."""
        folder = self.folder / "outputs" / name
        folder.mkdir(parents=True, exist_ok=True)
        result = self.board(processor, "run", self.models[name], "--random-input", 3, "--output-dir", folder,
                            **variables)
        return result["start"], {path.name: path.read_bytes() for path in sorted(folder.glob("*.npy"))}

    def testEachStartsWarmWithTheOutputsOfAColdStart(self):
        packed = {}
        for name, path in self.models.items():
            result = self.here("cache", "warm", "--for", ",".join(TARGETS), "--program", BOARD_HEARTH, path)
            packed[name] = [sum(signature["packed_bytes"] for signature in target["signatures"])
                            for target in result["targets"]]
        for name in self.models:
            for place, (target, (processor, _)) in enumerate(TARGETS.items()):
                with self.subTest(f"{name}, {target}"):
                    self.assertGreater(packed[name][place], 0)
                    start, outputs = self.compute(processor, name)
                    self.assertEqual((start["state"], start["packed_bytes"]), ("warm", 0), start["reason"])
                    cold, expected = self.compute(processor, name, HEARTH_STORE=str(self.folder / f"{name}-{target}"))
                    self.assertEqual(cold["state"], "cold")
                    self.assertGreater(cold["packed_bytes"], 0)
                    self.assertTrue(outputs)
                    self.assertEqual(outputs, expected)


if __name__ == "__main__":
    unittest.main()
