# SPDX-License-Identifier: Apache-2.0
"""The wheel for ARM64 in a fresh Debian 12 for ARM64, under emulation. With --all only: building and emulating take
many minutes. Skipped where the archive of Debian or that of Python does not answer, and where no such system can be
made or entered."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from board_root import ARCHITECTURE, PICTURE, ROOT, BoardRoot, InstalledHearth  # noqa: E402
from fresh_root import USER, lastLines  # noqa: E402

import wheels as wheel_maker  # noqa: E402

CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


def setUpModule():
    global folder, wheel
    holder = tempfile.TemporaryDirectory(prefix="hearth-wheels-test-")
    unittest.addModuleCleanup(holder.cleanup)
    folder = pathlib.Path(holder.name)
    made = subprocess.run(
        [sys.executable, ROOT / "tools" / "dev" / "wheels.py", "--arch", ARCHITECTURE, "--preset", "wheels_test",
         "--output", folder / "dist"], capture_output=True, text=True, check=False)
    if made.returncode == wheel_maker.UNREACHABLE:
        raise unittest.SkipTest(lastLines(made.stderr))
    if made.returncode != 0:
        raise AssertionError(f"The wheel is not made: {made.stdout[-2000:]}{made.stderr}")
    wheel, = (folder / "dist").iterdir()


class WheelTest(InstalledHearth, unittest.TestCase):
    """Debian 12 has Python 3.11, for which the wheel has a module of its own, and an older glibc than that with which
    the wheel is built."""

    HEARTH = "/home/user/venv/bin/hearth"
    PYTHON = "/home/user/venv/bin/python"

    @classmethod
    def setUpClass(cls):
        cls.root = BoardRoot(folder, "bookworm")
        shutil.copy(wheel, cls.root.path("/src"))
        settings = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        if CERTIFICATES.is_file():
            shutil.copy(CERTIFICATES, cls.root.path("/src/certificates"))
            settings["PIP_CERT"] = "/src/certificates"
        cls.root.fetch("apt-get", "-q", "-o", "APT::Update::Error-Mode=any", "update")
        cls.root.install("python3-venv")
        cls.succeed("python3", "-m", "venv", "/home/user/venv")
        install = (cls.PYTHON, "-m", "pip", "install", "--quiet")
        # What is not ours, so that a failure afterwards is one of the wheel.
        code, output = cls.root.run(*install, "numpy", user=USER, **settings)
        if code != 0:
            raise unittest.SkipTest(f"The archive of Python does not answer: {lastLines(output)}")
        cls.succeed(*install, "--no-index", f"/src/{wheel.name}")

    def testTheCommandIsAlsoAModule(self):
        digits = pathlib.Path("models/digits")
        shown = self.succeed(self.PYTHON, "-m", "hearth", "run", digits / "digits.tflite", "--input",
                             digits / "samples" / PICTURE, "--top", "1", "--json")
        self.assertEqual(json.loads(shown)["top"][0]["index"], 3)


if __name__ == "__main__":
    unittest.main()
