# SPDX-License-Identifier: Apache-2.0
"""On every instruction set level that this machine can imitate, results are right, and packed
weights of one level are never used on another."""

import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "cli"))

import with_isa
from command import DATA, HEARTH, ROOT, CommandTest, DataTest

PROGRAMS = ROOT / "build" / "release" / "bin"


class IsaLevelsTest(DataTest):

    def setUp(self):
        if not with_isa.isPossible():
            self.skipTest("The processor's flags do not list cpuid_fault.")
        super().setUp()
        self.environment = {"HEARTH_STORE": str(self.folder / "store"),
                            "XDG_STATE_HOME": str(self.folder / "state")}

    def at(self, level):
        """The environment of a command at a level; with None the machine's own level."""
        return {**(os.environ if level is None else with_isa.environment(level)),
                **self.environment}

    def passAt(self, level, program, *arguments):
        """Runs a test program, all of whose tests have to pass."""
        run = subprocess.run([PROGRAMS / program, *arguments], env=self.at(level),
                             capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(run.returncode, 0, run.stdout[-4000:] + run.stderr[-2000:])
        self.assertRegex(run.stdout, r"\[  PASSED  \] [1-9]\d* tests")

    def testGoldenCases(self):
        for level in with_isa.LEVELS:
            with self.subTest(level=level):
                self.passAt(level, "golden_test", "--gtest_filter=*hearth_cpu*")

    def testDriver(self):
        # The levels at which the driver's own kernels come into use.
        for level in ("avx512vnni", "avx512skx", "avx_vnni", "avx2", "fma3"):
            with self.subTest(level=level):
                self.passAt(level, "driver_cpu_test")

    def testConformance(self):
        cases = sorted((pathlib.Path(DATA) / "conformance").glob("*.nntv"))
        for level in with_isa.LEVELS:
            with self.subTest(level=level):
                run = self.hearth("conformance", *cases, "--device", "hearth-cpu",
                                  env=self.at(level), timeout=900)
                self.assertEqual(run.returncode, 0, run.stdout[-4000:] + run.stderr[-2000:])
                self.assertRegex(run.stdout, r"[1-9]\d* passed, 0 failed\s*$")

    def testStoreOfAnotherLevel(self):
        def start(level):
            result = self.json("run", self.model("mobilenet_v2_quantized_1x3x224x224"),
                               "--random-input", "7", "--top", "5", env=self.at(level))
            return result["start"], [(one["index"], one["score"]) for one in result["top"]]

        first, native = start(None)
        self.assertEqual(first["state"], "cold", first)
        for level in ("avx2", "sse41"):
            cold, classes = start(level)
            self.assertEqual(cold["state"], "cold", cold)
            self.assertIn("CPU", cold["reason"], cold)
            self.assertGreater(cold["packed_bytes"], 1_000_000)
            warm, again = start(level)
            self.assertEqual(warm["state"], "warm", warm)
            self.assertEqual(again, classes)
        third, again = start(None)
        self.assertEqual(third["state"], "warm", third)
        self.assertEqual(third["packed_bytes"], 0)
        self.assertEqual(again, native)


class WithIsaTest(CommandTest):

    def run_(self, *arguments, environment=None):
        return subprocess.run([sys.executable, with_isa.__file__, *map(str, arguments)],
                              capture_output=True, text=True, timeout=60, check=False,
                              env=environment)

    def testUsage(self):
        for arguments in ((), ("avx2",), ("avx3", HEARTH)):
            run = self.run_(*arguments)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn("usage: with_isa.py", run.stderr)

    def testHidesInstructionSets(self):
        if not with_isa.isPossible():
            self.skipTest("The processor's flags do not list cpuid_fault.")
        run = self.run_("sse2", HEARTH, "devices")
        self.assertEqual(run.returncode, 0, run.stderr)
        unknown = subprocess.run([HEARTH, "devices"], capture_output=True, text=True, timeout=60,
                                 check=False, env=with_isa.environment("avx3"))
        self.assertEqual(unknown.returncode, 125)
        self.assertIn("names no level", unknown.stderr)


if __name__ == "__main__":
    unittest.main()
