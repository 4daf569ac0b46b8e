# SPDX-License-Identifier: Apache-2.0
"""`hearth conformance`: its report, its exit codes and files that are no vectors."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from command import DATA, CommandTest


class ConformanceTest(CommandTest):
    def vectors(self):
        if not DATA:
            self.skipTest("HEARTH_TEST_DATA is not set.")
        return sorted((pathlib.Path(DATA) / "conformance").glob("*.nntv"))

    def testEndsWithTheCounts(self):
        for device in ("hearth-cpu", "nnapi-reference"):
            text = self.succeed("conformance", *self.vectors(), "--device", device, "--filter",
                                "SVDF")
            self.assertEqual(text.splitlines()[-1], "18 passed, 0 failed")

    def testRunsThroughTheNeuralNetworksApi(self):
        for device in ("hearth-cpu", "nnapi-reference", "default"):
            for mode in ("sync", "burst", "device-memory"):
                text = self.succeed("conformance", *self.vectors(), "--api", "nnapi", "--mode",
                                    mode, "--device", device, "--filter", "FLOOR")
                self.assertRegex(text.splitlines()[-1], r"^[1-9]\d* passed, 0 failed$")
        self.assertIn("no mode", self.refuse(2, "conformance", *self.vectors(), "--api", "nnapi",
                                             "--mode", "sideways"))
        self.refuse(2, "conformance", *self.vectors(), "--mode", "burst")
        self.refuse(2, "conformance", *self.vectors(), "--api", "other")

    def testNamesTheKernels(self):
        report = self.json("conformance", *self.vectors(), "--device", "hearth-cpu", "--filter",
                           "svdf_state_float16")
        self.assertEqual(report["device"], "hearth-cpu")
        self.assertEqual(report["passed"], len(report["cases"]))
        self.assertEqual(report["operations"]["SVDF"], {"passed": report["passed"], "failed": 0})
        for case in report["cases"]:
            self.assertTrue(case["passed"])
            self.assertIn("SVDF", [one["operation"] for one in case["kernels"]])
            self.assertTrue(all(one["kernel"] for one in case["kernels"]))

    def testReportsFailures(self):
        # With one bit of every byte flipped, no output is the floor of its input.
        whole = bytearray(self.vectors()[0].read_bytes())
        expected = json.loads(self.succeed("conformance", self.vectors()[0], "--filter", "FLOOR",
                                           "--json"))["passed"]
        self.assertGreater(expected, 0)
        blobs = int.from_bytes(whole[24:32], "little")
        size = int.from_bytes(whole[32:40], "little")
        whole[blobs:blobs + size] = bytes(byte ^ 0x40 for byte in whole[blobs:blobs + size])
        damaged = self.folder / "damaged.nntv"
        damaged.write_bytes(whole)
        run = self.hearth("conformance", damaged, "--filter", "FLOOR")
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stdout.splitlines()[-1], f"0 passed, {expected} failed")
        self.assertEqual(run.stderr, f"hearth: {expected} of {expected} cases fail.\n")

    def testRefusesWhatIsNoVector(self):
        other = self.folder / "other.nntv"
        other.write_bytes(b"NNTVEC02" + bytes(100))
        self.assertIn("NNTVEC01", self.refuse(1, "conformance", other))
        self.refuse(1, "conformance", self.folder / "missing.nntv")
        self.assertIn("no device nobody", self.refuse(2, "conformance", other, "--device",
                                                      "nobody"))
        self.refuse(2, "conformance")


if __name__ == "__main__":
    unittest.main()
