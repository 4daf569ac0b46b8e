# SPDX-License-Identifier: Apache-2.0
"""Runs the hearth command with the driver of GPUs, for the tests beside this file."""

import json
import os
import pathlib

from command import HEARTH, CommandTest

DRIVERS = pathlib.Path(HEARTH).parents[1] / "share" / "hearth" / "gpu-drivers"
DEVICE = "vulkan-gpu"
IMPLEMENTATION = "llvmpipe"
PROCESS = f"{DEVICE}=process"
VARIABLES = {"HEARTH_DRIVER_PATH": str(DRIVERS), "HEARTH_VULKAN_DEVICE": IMPLEMENTATION,
             # Where a test has no other place for it.
             "HEARTH_DRIVER_HOSTS": PROCESS,
             # Nothing is measured, else hearth-cpu would get all models.
             "HEARTH_TUNING": "off",
             "MESA_SHADER_CACHE_DISABLE": "true"}


class WithGpu:
    """A part of tests that run the command with the driver of GPUs, on Mesa's implementation of Vulkan on the CPU."""

    def skipWithoutGpu(self):
        if not (DRIVERS / "vulkan.json").exists():
            self.skipTest("The Vulkan driver is not built.")
        if DEVICE not in self.devices(self.environment)[0]:
            self.skipTest(f"Vulkan's {IMPLEMENTATION} is not installed.")

    def devices(self, environment):
        """The names of the devices, what is left out, by name, and what is said on standard error."""
        run = self.hearth("devices", "--json", env=environment)
        self.assertEqual(run.returncode, 0, run.stderr)
        report = json.loads(run.stdout)
        return ([device["name"] for device in report["devices"]],
                {driver["name"]: driver["reason"] for driver in report["left_out"]}, run.stderr)


class GpuCommandTest(WithGpu, CommandTest):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "HEARTH_LOG": "warn", "HEARTH_STORE": str(self.folder / "store"),
                            **VARIABLES}
        self.skipWithoutGpu()
