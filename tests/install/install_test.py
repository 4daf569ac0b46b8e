# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` of the release build installs is enough for a project outside the
checkout."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
DIGITS = ROOT / "models" / "digits"


class InstallTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hearth-install-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        made = self.folder / "made"
        self.run_("cmake", "--install", BUILD, "--prefix", made)
        # The installed tree may have been moved.
        self.prefix = made.rename(self.folder / "moved")

    def run_(self, *command):
        """Standard output of a command that succeeds without a library path."""
        environment = {name: value for name, value in os.environ.items()
                       if name != "LD_LIBRARY_PATH"}
        run = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                             check=False, timeout=300, env=environment)
        self.assertEqual(run.returncode, 0, f"{command}: {run.stdout}{run.stderr}")
        return run.stdout

    def assertLibrariesAreInstalled(self, program):
        own = re.findall(r"libhearth\S* => (\S+)", self.run_("ldd", program))
        self.assertTrue(own)
        for path in own:
            self.assertTrue(pathlib.Path(path).resolve().is_relative_to(self.prefix), path)

    def testAnotherProjectFindsAndUsesThePackage(self):
        build = self.folder / "build"
        self.run_("cmake", "-G", "Ninja", "-S", ROOT / "tests" / "install" / "consumer", "-B", build,
                  f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.run_("cmake", "--build", build)
        self.assertLibrariesAreInstalled(build / "consumer")
        for digit in (2, 3):
            pixels = np.asarray(Image.open(DIGITS / "samples" / f"digit_{digit}.png").convert("L"))
            values = self.folder / "values"
            values.write_bytes((pixels / np.float32(127.5) - 1).astype(np.float32).tobytes())
            found = self.run_(build / "consumer", DIGITS / "digits.tflite", values)
            self.assertEqual(found, f"{digit}\n")

    def testPkgConfigKnowsWhereTheLibraryIs(self):
        folder = next(self.prefix.rglob("hearth.pc")).parent
        flags = self.run_("pkg-config", "--with-path", folder, "--cflags", "--libs", "hearth").split()
        program = self.folder / "classify"
        self.run_("c++", "-std=c++17", ROOT / "examples" / "classify.cc", *flags,
                  f"-Wl,-rpath,{folder.parent}", "-o", program)
        self.assertLibrariesAreInstalled(program)

    def testADriverIsBuiltTestedAndFoundOutsideTheCheckout(self):
        project = shutil.copytree(self.prefix / "share" / "hearth" / "driver-skeleton",
                                  self.folder / "driver")
        build = self.folder / "build"
        self.run_("cmake", "-G", "Ninja", "-S", project, "-B", build,
                  f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.run_("cmake", "--build", build)
        self.assertIn("100% tests passed", self.run_("ctest", "--test-dir", build))
        drivers = build / "drivers"
        devices = self.run_("env", f"HEARTH_DRIVER_PATH={drivers}", self.prefix / "bin" / "hearth", "devices")
        self.assertRegex(devices, r"(?m)^ +null +other ")

        folder = next(self.prefix.rglob("hearth_driver.pc")).parent
        flags = self.run_("pkg-config", "--with-path", folder, "--cflags", "--libs", "hearth_driver").split()
        library = self.folder / "libhearth_driver_null.so"
        self.run_("c++", "-shared", "-fPIC", project / "driver_entry.cc", project / "null_device.cc", *flags,
                  "-o", library)
        suite = self.prefix / "bin" / "hearth-driver-cts"
        self.assertIn("  PASSED  ", self.run_(suite, library))
        inner = next(self.prefix.rglob("libneuralnetworks.so"))
        manifest = self.folder / "inner.json"
        manifest.write_text(json.dumps({"name": "inner", "library": str(inner), "support_library": True,
                                        "device": "nnapi-reference"}), encoding="utf-8")
        self.assertNotIn("FAILED", self.run_(suite, manifest, "--gtest_filter=*HalExecution*"))

    def testTheDriverOfGpusIsWhereItsManifestSays(self):
        manifest = self.prefix / "share" / "hearth" / "drivers" / "vulkan.json"
        if not manifest.exists():
            self.skipTest("The Vulkan driver is not built.")
        library = manifest.parent / json.loads(manifest.read_text(encoding="utf-8"))["library"]
        self.assertLibrariesAreInstalled(library.resolve())
        # Whether there is a GPU or not, the library is found.
        run = self.run_("env", f"HEARTH_DRIVER_PATH={manifest.parent}", "HEARTH_VULKAN_DEVICE=no such GPU",
                        "HEARTH_LOG=warn", "sh", "-c", "\"$0\" devices 2>&1", self.prefix / "bin" / "hearth")
        self.assertRegex(run, "makes no device: .*Vulkan")

    def testTheCommandRuns(self):
        command = self.prefix / "bin" / "hearth"
        self.assertLibrariesAreInstalled(command)
        self.assertIn("hearth-cpu", self.run_(command, "devices"))


if __name__ == "__main__":
    unittest.main()
