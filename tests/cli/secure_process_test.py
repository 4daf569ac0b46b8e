# SPDX-License-Identifier: Apache-2.0
"""The command as a set-uid program: the user who starts it cannot influence it by variables."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from command import HEARTH, DataTest

DRIVERS = pathlib.Path(HEARTH).parent.parent / "share" / "hearth" / "drivers"
NOBODY = 65534


def nothingPreventsSetUid(folder):
    """Whether the kernel honours the set-uid bit of a file in `folder`."""
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    return (os.geteuid() == 0 and not os.statvfs(folder).f_flag & os.ST_NOSUID
            and "NoNewPrivs:\t1" not in status)


class SecureProcessTest(DataTest):

    def setUp(self):
        super().setUp()
        if not nothingPreventsSetUid(self.folder):
            self.skipTest("Only root can make set-uid programs, and not on every file system.")
        self.folder.chmod(0o755)
        self.own = self.folder / "model.tflite"
        shutil.copyfile(self.model("mobilenet_v1_0.25_128_quant"), self.own)
        self.program = self.folder / "hearth"
        shutil.copyfile(HEARTH, self.program)
        # A file that is written because of a variable would be here.
        self.planted = self.folder / "planted"
        self.planted.mkdir(mode=0o777)
        self.planted.chmod(0o777)
        self.drivers = self.planted / "drivers"
        shutil.copytree(DRIVERS, self.drivers)
        (self.drivers / "broken.json").write_text("{", encoding="utf-8")
        self.before = self.files()
        self.variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.planted / "home"),
            "XDG_CACHE_HOME": str(self.planted / "cache"),
            "XDG_STATE_HOME": str(self.planted / "state"),
            "HEARTH_DRIVER_PATH": str(self.drivers),
            "HEARTH_STORE": str(self.planted / "store"),
            "HEARTH_SYSTEM_STORES": str(self.planted / "system"),
            "HEARTH_REPORT": str(self.planted / "report"),
            "HEARTH_TRACE": str(self.planted / "trace"),
            "HEARTH_LOG": "trace",
        }

    def files(self):
        return sorted(str(path.relative_to(self.planted)) for path in self.planted.rglob("*"))

    def start(self, *arguments):
        """Starts the command as the user nobody, who owns no file here."""
        run = subprocess.run([self.program, *map(str, arguments), "--json"], capture_output=True,
                             text=True, timeout=300, check=False, env=self.variables, user=NOBODY,
                             group=NOBODY, extra_groups=[], cwd="/")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout), run.stderr

    def startEverything(self):
        """Lists the devices and starts a model; returns the start report, and standard error of
        both."""
        devices, devicesLog = self.start("devices")
        result, log = self.start("bench", self.own, "--repeat", "0")
        return [one["name"] for one in devices["devices"]], result["start"], devicesLog + log

    def testVariablesCountWithoutTheBit(self):
        self.program.chmod(0o755)
        devices, _, log = self.startEverything()
        self.assertIn("null", devices)
        self.assertIn("broken.json", log)
        self.assertTrue({"report", "trace", "store"} <= set(self.files()))

    def testASetUidProgramReadsNoVariable(self):
        self.program.chmod(0o4755)
        devices, start, log = self.startEverything()
        self.assertNotIn("null", devices)
        self.assertEqual(log, "")
        self.assertEqual(self.files(), self.before)
        self.assertEqual(start["state"], "uncached")
        self.assertTrue(start["reason"].startswith("secure-process"), start["reason"])

    def testAStoreThatTheProgramNamesIsUsed(self):
        self.program.chmod(0o4755)
        store = self.folder / "store"
        for state in ("cold", "warm"):
            result, _ = self.start("bench", self.own, "--repeat", "0", "--store", store)
            self.assertEqual(result["start"]["state"], state, result["start"])
        self.assertEqual(store.stat().st_uid, 0)


if __name__ == "__main__":
    unittest.main()
