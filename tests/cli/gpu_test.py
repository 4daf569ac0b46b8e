# SPDX-License-Identifier: Apache-2.0
"""The driver of GPUs as programs get it: a library with a manifest, in the process or behind a host.
It runs on Mesa's implementation of Vulkan on the CPU."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np

from command import HEARTH, DataTest

DRIVERS = pathlib.Path(HEARTH).parents[1] / "share" / "hearth" / "gpu-drivers"
DEVICE = "vulkan-gpu"
IMPLEMENTATION = "llvmpipe"


class GpuTest(DataTest):

    def setUp(self):
        super().setUp()
        if not (DRIVERS / "vulkan.json").exists():
            self.skipTest("The Vulkan driver is not built.")
        self.environment = {**os.environ, "HEARTH_DRIVER_PATH": str(DRIVERS), "HEARTH_LOG": "warn",
                            "HEARTH_STORE": str(self.folder / "store"),
                            "HEARTH_VULKAN_DEVICE": IMPLEMENTATION,
                            "MESA_SHADER_CACHE_DISABLE": "true"}
        if DEVICE not in self.hearth("devices", env=self.environment).stdout:
            self.skipTest(f"Vulkan's {IMPLEMENTATION} is not installed.")

    def output(self, *options, **environment):
        """The scores of a quantised MobileNet for a picture, and what the command prints."""
        folder = self.folder / "outputs"
        text = self.succeed("run", self.model("mobilenet_v1_0.25_128_quant"), "--input",
                            self.data("images/cat.bmp"), "--output-dir", folder, *options,
                            env={**self.environment, **environment})
        return np.load(folder / "output_0.npy"), text

    def testQuantisedResultsEqualThoseOfTheReference(self):
        expected = self.output("--device", "nnapi-reference")[0]
        for hosts in ("", f"{DEVICE}=spawn"):
            scores, text = self.output(HEARTH_DRIVER_HOSTS=hosts)
            self.assertIn(f" on {DEVICE}\n", text)
            np.testing.assert_array_equal(scores, expected)

    def testTheNextProcessComesFromTheCompilationCache(self):
        for hosts in ("", f"{DEVICE}=spawn"):
            cache = self.folder / f"cache{hosts}"
            cache.mkdir()
            environment = {**self.environment, "HEARTH_DRIVER_HOSTS": hosts,
                           "XDG_STATE_HOME": str(self.folder / "state")}

            def start():
                report = self.json("run", self.model("mobilenet_v1_0.25_128_quant"), "--random-input", 1,
                                   "--cache-dir", cache, "--token", "5a" * 32,
                                   env=environment)
                return report["start"], report["outputs"]

            first, outputs = start()
            self.assertNotEqual(first["cache"], "hit")
            second, cached = start()
            self.assertEqual((second["cache"], second["packed_bytes"]), ("hit", 0))
            self.assertEqual(cached, outputs)
            if hosts:
                continue
            for path in cache.iterdir():
                path.write_bytes(bytes(path.stat().st_size))
                repaired, outputsAfter = start()
                self.assertNotEqual(repaired["cache"], "hit")
                self.assertEqual(outputsAfter, outputs)
            self.assertEqual(start()[0]["cache"], "hit")

    def testAnImplementationOnTheCpuIsNotTakenForAGpu(self):
        run = self.hearth("devices", env={**self.environment, "HEARTH_VULKAN_DEVICE": "no such GPU"})
        self.assertEqual(run.returncode, 0)
        self.assertNotIn(DEVICE, run.stdout)
        self.assertIn("No device of Vulkan 1.2 has \"no such GPU\" in its name", run.stderr)
        self.assertIn(IMPLEMENTATION, run.stderr)


if __name__ == "__main__":
    unittest.main()
