# SPDX-License-Identifier: Apache-2.0
"""examples/ray on a cluster of two nodes that Ray makes on this machine. Ray is installed in the cache folder, so this
is done in the long mode only."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "bench"))
import comparison  # noqa: E402

PATHS = (ROOT / "build" / "release" / "python", ROOT / "examples" / "ray")
SAMPLES = ROOT / "models" / "digits" / "samples"
WHEELS = ("ray[data,serve]==2.60.0", "pillow==13.0.0")

LARGE_MIB = 64


@unittest.skipUnless(os.environ.get("HEARTH_TEST_LONG") == "1", "It is only done with --long.")
class RayTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        try:
            python = comparison.environmentPython(comparison.CACHE / "ray-venv", *WHEELS)
        except comparison.Failure as failure:
            raise unittest.SkipTest(f"Ray is not there: {failure}.") from None
        with tempfile.TemporaryDirectory(prefix="hearth-ray-") as name:
            large = pathlib.Path(name, "large.tflite")
            subprocess.run([sys.executable, ROOT / "bench" / "workloads" / "generate.py", "mlp", large, "--megabytes",
                            str(LARGE_MIB)], check=True, capture_output=True)
            done = subprocess.run(
                [python, HERE / "ray_session.py", ROOT / "models" / "digits" / "digits.tflite", SAMPLES, large],
                capture_output=True, text=True, check=False,
                env={**os.environ, "HEARTH_STORE": os.path.join(name, "store"), "RAY_USAGE_STATS_ENABLED": "0",
                     "PYTHONPATH": os.pathsep.join(map(str, PATHS))})
        if done.returncode != 0:
            raise AssertionError(done.stderr[-4000:])
        cls.said = json.loads(done.stdout.splitlines()[-1])

    def testActorsShareTheWeightsThatOneOfThemPacked(self):
        first, second = self.said["starts"]
        self.assertEqual((first["nodes"], second["nodes"]), (2, 2))
        self.assertIn("cold", first["states"])
        self.assertEqual(set(second["states"]), {"warm"})
        # Four copies would take four times that.
        self.assertLess(second["memory_mib"], 2 * LARGE_MIB)

    def testActorsReadTheFolder(self):
        digits = {row["path"]: row["digit"] for row in self.said["rows"]}
        self.assertEqual(digits, {path.name: int(path.stem[-1]) for path in SAMPLES.glob("*.png")})

    def testRequestsAreAnswered(self):
        self.assertEqual({name: answer["digit"] for name, answer in self.said["answers"].items()},
                         {path.name: int(path.stem[-1]) for path in SAMPLES.glob("*.png")})


if __name__ == "__main__":
    unittest.main()
