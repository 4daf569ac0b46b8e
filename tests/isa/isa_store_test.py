# SPDX-License-Identifier: Apache-2.0
"""On processors with AVX2 and no AVX-512, a second process finds in the store all that the first one
packed, and computes the same."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "cli"))

import with_isa
from command import ROOT, CommandTest

# Arguments of bench/workloads/generate.py: models with the kinds of weights that the driver packs at
# these levels.
SMALL = ("--layers", "1", "--hidden", "256", "--feed-forward", "512", "--vocabulary", "2048")
MODELS = {
    "float32 convolutions": ("resnet50", "--quant", "f32", "--resolution", "32"),
    "int8 convolutions": ("resnet50", "--quant", "i8", "--resolution", "64"),
    "int8 depthwise convolutions": ("mobilenet_v2", "--quant", "i8", "--resolution", "64"),
    "float16 weights": ("gemma_2b", *SMALL, "--form", "f16"),
    "int8 weights": ("gemma_2b", *SMALL, "--form", "i8"),
    "int4 weights": ("gemma_2b", *SMALL, "--form", "i4"),
}
LEVELS = ("avx2", "avx_vnni")
# What the first start with a store does, and no later one.
ONCE = {"self-test", "build identity", "probe packings"}


class IsaStoreTest(CommandTest):

    def setUp(self):
        if not with_isa.isPossible():
            self.skipTest("The processor's flags do not list cpuid_fault.")
        super().setUp()

    def start(self, model, level, **variables):
        """The report of a start in a process of its own, its outputs, and what it traced."""
        outputs, trace = self.folder / "outputs", self.folder / "trace.json"
        environment = {**with_isa.environment(level), "HEARTH_STORE": str(self.folder / level),
                       "XDG_STATE_HOME": str(self.folder / "state"), "HEARTH_TRACE": str(trace),
                       **variables}
        result = self.json("run", model, "--random-input", "7", "--output-dir", outputs,
                           env=environment)
        names = {event["name"] for event in json.loads(trace.read_text())}
        return (result["start"],
                {path.name: path.read_bytes() for path in sorted(outputs.iterdir())}, names)

    def testTheSecondProcessPacksNothing(self):
        done = {level: set() for level in LEVELS}
        for index, (name, arguments) in enumerate(MODELS.items()):
            model = self.folder / f"{index}.tflite"
            kind, *options = arguments
            subprocess.run([sys.executable, ROOT / "bench" / "workloads" / "generate.py", kind, model,
                            *options], check=True, stdout=subprocess.DEVNULL)
            for level in LEVELS:
                with self.subTest(model=name, level=level):
                    alone, expected, _ = self.start(model, level, HEARTH_STORE_MODE="off")
                    self.assertEqual(alone["state"], "uncached", alone)
                    cold, made, work = self.start(model, level)
                    done[level] |= work
                    self.assertEqual(cold["state"], "cold", cold)
                    self.assertGreater(cold["packed_bytes"], 100_000)
                    self.assertEqual(made, expected)
                    warm, again, work = self.start(model, level)
                    self.assertEqual(warm["state"], "warm", warm)
                    self.assertEqual((warm["packed_bytes"], warm["repacked_bytes"]), (0, 0), warm)
                    self.assertGreaterEqual(warm["mapped_bytes"], cold["packed_bytes"], warm)
                    self.assertEqual(again, expected)
                    self.assertEqual(work & ONCE, set())
            model.unlink()
        for level in LEVELS:
            # Whether packings are probed depends on the CPU.
            self.assertLessEqual(ONCE - {"probe packings"}, done[level], level)


if __name__ == "__main__":
    unittest.main()
