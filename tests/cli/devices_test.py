# SPDX-License-Identifier: Apache-2.0
"""What `hearth devices` says of optional drivers, which are left out without a message."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from command import ROOT, CommandTest

DIGITS = ROOT / "models" / "digits"


class DevicesTest(CommandTest):

    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "HEARTH_DRIVER_PATH": str(self.folder), "HEARTH_STORE_MODE": "off"}

    def install(self, **fields):
        manifest = {"name": "npu", "optional": True, "delegate": {"library": "/nowhere/libvx.so"}, **fields}
        (self.folder / "npu.json").write_text(json.dumps(manifest), encoding="utf-8")

    def testTheReasonIsTold(self):
        self.install()
        reason = "The library /nowhere/libvx.so is not installed."
        self.assertIn(f"\nnpu is left out: {reason}\n", self.succeed("devices", env=self.environment))
        report = self.json("devices", env=self.environment)
        self.assertEqual(report["left_out"],
                         [{"name": "npu", "manifest": str(self.folder / "npu.json"), "reason": reason}])
        self.assertNotIn("npu", [device["name"] for device in report["devices"]])
        # Nor is it said where nobody asks.
        self.succeed("run", DIGITS / "digits.tflite", "--random-input", 1, env=self.environment)
        self.assertIn(reason, self.refuse(2, "run", DIGITS / "digits.tflite", "--random-input", 1, "--device", "npu",
                                          env=self.environment))

    def testOneOfTheDeviceNodesIsEnough(self):
        self.install(delegate={"library": "/proc/self/exe"},
                     needs={"if_present": {"devices": ["/nowhere/npu*", "/nowhere/vx"]}})
        report = self.json("devices", env=self.environment)
        self.assertEqual([driver["reason"] for driver in report["left_out"]],
                         ["There is no /nowhere/npu* or /nowhere/vx."])

    def testNothingIsMeasuredWhereNoDriverWantsIt(self):
        self.assertIn("There is no device whose driver wants it measured.",
                      self.refuse(1, "devices", "--measure", env=self.environment))

    def testADriverThatIsNotOptionalIsWarnedOf(self):
        self.install(optional=False)
        run = self.hearth("devices", "--json", env=self.environment)
        self.assertEqual(json.loads(run.stdout)["left_out"], [])
        self.assertIn("npu", run.stderr)


if __name__ == "__main__":
    unittest.main()
