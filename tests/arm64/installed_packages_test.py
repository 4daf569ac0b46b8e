# SPDX-License-Identifier: Apache-2.0
"""The Debian packages for ARM64 in a fresh Debian system for ARM64, and the container image that is made of them,
under emulation. With --all only: building and emulating take many minutes. Skipped where no such system can be made
or entered."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from board_root import ARCHITECTURE, EMULATE, PICTURE, ROOT, BoardRoot, InstalledHearth  # noqa: E402
from fresh_root import USER  # noqa: E402
from unpacked_image import Image, UnpackedImage  # noqa: E402

import image as image_maker  # noqa: E402
import target  # noqa: E402

# Of debian/tests those that need no compiler, no systemd and no other shell.
TESTS = ("delegate", "python", "run-model")


def setUpModule():
    global folder, packages
    holder = tempfile.TemporaryDirectory(prefix="hearth-packages-test-")
    unittest.addModuleCleanup(holder.cleanup)
    folder = pathlib.Path(holder.name)
    made = subprocess.run(
        [sys.executable, ROOT / "tools" / "dev" / "packages.py", "--arch", ARCHITECTURE, "--preset", "packages_test",
         "--output", folder / "packages"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise AssertionError(f"The packages are not made: {made.stdout[-2000:]}{made.stderr}")
    packages = sorted((folder / "packages").glob("*.deb"))


class PackagesTest(InstalledHearth, unittest.TestCase):

    HEARTH = "hearth"
    PYTHON = "python3"

    @classmethod
    def setUpClass(cls):
        cls.root = BoardRoot(folder)
        cls.root.addArchive("hearth", packages)
        cls.root.install(*(path.name.split("_")[0] for path in packages))

    def testAllOfThemAreInstalledForTheArchitecture(self):
        shown = self.root.succeed("dpkg-query", "-W", "-f", "${Package} ${Architecture} ${db:Status-Status}\n",
                                  "*hearth*")
        rows = dict(line.split(" ", 1) for line in shown.splitlines())
        self.assertEqual(rows, {path.name.split("_")[0]: f"{path.stem.rsplit('_', 1)[1]} installed"
                                for path in packages})
        self.assertIn(f"{ARCHITECTURE} installed", rows.values())

    def testTheTestsOfThePackages(self):
        for name in TESTS:
            with self.subTest(name):
                self.succeed("mkdir", "-p", f"/home/user/{name}")
                code, output = self.root.run(f"debian/tests/{name}", user=USER, folder="/src",
                                             AUTOPKGTEST_TMP=f"/home/user/{name}")
                self.assertEqual(code, 0, output)

    def testAProgramBuiltOnThisMachineRuns(self):
        """The compiler of cross_root.sh, with headers and libraries that the packages have installed."""
        [board] = target.targets(ARCHITECTURE)
        libraries = self.root.path(f"/usr/lib/{board.triplet}")
        subprocess.run(
            [board.tool("gcc-14"), f"--sysroot={board.root / 'sysroot'}", "-std=c11", "-Wall", "-Wextra", "-Werror",
             ROOT / "examples" / "nnapi_hello.c", f"-I{self.root.path('/usr/include')}", f"-L{libraries}",
             f"-Wl,-rpath-link={libraries}", "-lneuralnetworks", "-o", self.root.path("/src/nnapi_hello")], check=True)
        self.assertIn("max(0, 1 + 10 * 3) = 31\n", self.succeed("/src/nnapi_hello"))


class ImageTest(unittest.TestCase):

    def testItRunsAsAnyUserWithAReadOnlyRoot(self):
        path = folder / "image" / "hearth.tar"
        with tempfile.TemporaryDirectory(dir=folder) as place:
            try:
                needed = image_maker.download(image_maker.ownPackages(folder / "packages"), pathlib.Path(place))
            except image_maker.ArchiveError as error:
                raise unittest.SkipTest(str(error)) from error
            image_maker.makeImage(folder / "packages", needed, path)
        image = Image(path)
        self.assertEqual((image.configuration["architecture"], image.configuration["os"]), (ARCHITECTURE, "linux"))
        with tempfile.TemporaryDirectory(dir=folder) as place:
            entered = UnpackedImage(image, pathlib.Path(place), EMULATE)
            shutil.copytree(ROOT / "models" / "digits", entered.home / "digits")
            subprocess.run([sys.executable, ROOT / "bench" / "workloads" / "generate.py", "mlp",
                            entered.home / "large.tflite", "--megabytes", "4"], check=True, capture_output=True)

            def enter(*arguments):
                code, output = entered.enter(*arguments, "--json")
                self.assertEqual(code, 0, output)
                return json.loads(output)

            result = enter("run", "/home/digits/digits.tflite", "--input", f"/home/digits/samples/{PICTURE}",
                           "--labels", "/home/digits/labels.txt", "--top", "1")
            self.assertEqual(result["top"][0]["label"], "3")
            # A file that has just changed is not believed to be unchanged.
            time.sleep(3)
            states = [enter("bench", "/home/large.tflite", "--repeat", "0")["start"]["state"] for _ in range(2)]
            self.assertEqual(states, ["cold", "warm"])


if __name__ == "__main__":
    unittest.main()
