# SPDX-License-Identifier: Apache-2.0
"""Hosts of drivers that the programs of a user share, and which the first of them starts."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np

from command import DATA, HEARTH, ROOT, CommandTest
from host_processes import PATIENCE, hostsWith, running, waitFor

MODEL = ROOT / "models" / "digits" / "digits.tflite"
CPU = "hearth-cpu"
EXAMPLE_DRIVERS = pathlib.Path(HEARTH).parents[1] / "share" / "hearth" / "example-drivers"


class UserHostTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.runtime = self.folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.variables = {**os.environ, "HEARTH_STORE": str(self.folder / "store"),
                          "XDG_STATE_HOME": str(self.folder / "state"), "XDG_RUNTIME_DIR": str(self.runtime),
                          "HEARTH_DRIVER_HOSTS": f"{CPU}=shared"}
        self.addCleanup(self.endHosts)

    def hosts(self):
        """The processes of hosts that were started with the variables of this test."""
        return hostsWith(f"XDG_STATE_HOME={self.variables['XDG_STATE_HOME']}")

    def endHosts(self):
        for host in self.hosts():
            os.kill(host, signal.SIGTERM)
        waitFor(self, lambda: not self.hosts())

    def host(self, name=CPU, **variables):
        """Where a device runs, as a new program sees it."""
        devices = self.json("devices", env={**self.variables, **variables})["devices"]
        return next(device["host"] for device in devices if device["name"] == name)

    def outputs(self, **variables):
        folder = self.folder / f"outputs{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        self.succeed("run", MODEL, "--random-input", "7", "--output-dir", folder, "--device", CPU,
                     env={**self.variables, **variables})
        return np.load(folder / "output_0.npy")

    def testProgramsShareAHostThatTheFirstOneStarts(self):
        expected = self.outputs(HEARTH_DRIVER_HOSTS="")
        self.assertEqual(self.hosts(), [])
        for _ in range(3):
            np.testing.assert_array_equal(self.outputs(), expected)
        self.assertEqual(len(self.hosts()), 1)
        host = self.host()
        self.assertEqual((host["kind"], host["process"], host["restarts"]), ("shared", self.hosts()[0], 0))
        # One that comes later is served by the same process in the same sandbox.
        status = pathlib.Path(f"/proc/{host['process']}/status").read_text(encoding="utf-8")
        self.assertIn("NoNewPrivs:\t1", status)
        self.assertEqual(os.readlink(f"/proc/{host['process']}/cwd"), "/")
        self.assertEqual([path.stat().st_mode & 0o777 for path in [self.runtime / "hearth"]], [0o700])

    def testProgramsThatStartAtOnceShareOneHost(self):
        programs = [subprocess.Popen([HEARTH, "devices", "--json"], env=self.variables, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
        found = set()
        for program in programs:
            output, errors = program.communicate(timeout=PATIENCE)
            self.assertEqual((program.returncode, errors), (0, ""))
            host = json.loads(output)["devices"][0]["host"]
            self.assertEqual(host["kind"], "shared")
            found.add(host["process"])
        self.assertEqual(sorted(found), self.hosts())
        self.assertEqual(len(found), 1)

    def testAStaleSocketIsReplaced(self):
        first = self.host()["process"]
        os.kill(first, signal.SIGKILL)
        waitFor(self, lambda: not running(first))
        self.assertEqual(len(list((self.runtime / "hearth").glob("*.sock"))), 1)
        second = self.host()
        self.assertEqual(second["kind"], "shared")
        self.assertNotEqual(second["process"], first)
        self.assertEqual(len(list((self.runtime / "hearth").glob("*.sock"))), 1)

    def testAClientStartsAKilledHostAgain(self):
        first = self.host()["process"]
        report = self.folder / "report"
        with subprocess.Popen([HEARTH, "bench", MODEL, "--random-input", "1", "--repeat", "10000000"],
                              env={**self.variables, "HEARTH_REPORT": str(report)},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
            self.addCleanup(client.kill)
            # The model is prepared by then.
            waitFor(self, lambda: report.exists() or client.poll() is not None)
            self.assertEqual(self.hosts(), [first])
            os.kill(first, signal.SIGKILL)
            waitFor(self, lambda: [each for each in self.hosts() if each != first])
            self.assertIsNone(client.poll())
            # And shares it with whoever comes.
            host = self.host()
            self.assertEqual(host["kind"], "shared")
            waitFor(self, lambda: self.host()["clients"] == 2)
            client.kill()

    def testOtherVariablesMakeAnotherHost(self):
        first = self.host()["process"]
        second = self.host(HEARTH_THREADS="1")
        self.assertEqual(second["kind"], "shared")
        self.assertNotEqual(second["process"], first)
        # These are about the program.
        manager = str(self.folder / "manager.sock")
        self.assertEqual(self.host(HEARTH_REPORT=str(self.folder / "report"), NOTIFY_SOCKET=manager,
                                   WATCHDOG_USEC="1000000")["process"], first)

    def testWithoutAFolderOfItsOwnAProgramHasAHostOfItsOwn(self):
        expected = self.outputs(HEARTH_DRIVER_HOSTS="")
        own = self.runtime / "hearth"
        own.mkdir(mode=0o700)
        for folder in (self.runtime, own):
            folder.chmod(0o750)
            self.assertEqual(self.host()["kind"], "spawned")
            folder.chmod(0o700)
        own.rmdir()
        for value in ("", "relative", str(self.folder / "none")):
            self.assertEqual(self.host(XDG_RUNTIME_DIR=value)["kind"], "spawned")
        np.testing.assert_array_equal(self.outputs(XDG_RUNTIME_DIR=""), expected)
        waitFor(self, lambda: not self.hosts())
        self.assertEqual(list(self.runtime.iterdir()), [])

    @unittest.skipUnless(DATA, "HEARTH_TEST_DATA is not set.")
    def testAnotherStoreOfAProgramHasAnotherHost(self):
        """Options of a shared host's clients do not count, so this is not one."""
        model = pathlib.Path(DATA) / "data" / "models" / "mobilenet_v2_quantized_1x3x224x224.tflite"
        store = self.folder / "more" / "store"
        shared = self.host()["process"]

        def start(*options):
            return self.json("run", model, "--random-input", "1", "--device", CPU, *options,
                             env=self.variables)["start"]["state"]

        self.assertEqual([start("--store", store) for _ in range(2)], ["cold", "warm"])
        self.assertTrue(store.exists())
        waitFor(self, lambda: self.hosts() == [shared])
        self.assertEqual([start() for _ in range(2)], ["cold", "warm"])
        self.assertEqual(self.hosts(), [shared])

    def testTheStarterMayEndWithAllThatItHas(self):
        """Whoever reads what the first program prints need not wait for the host."""
        run = subprocess.run([HEARTH, "devices", "--json"], env=self.variables, capture_output=True,
                             text=True, check=False, timeout=30, stdin=subprocess.DEVNULL)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(len(self.hosts()), 1)
        host = pathlib.Path(f"/proc/{self.hosts()[0]}")
        targets = [os.readlink(path) for path in (host / "fd").iterdir()]
        self.assertEqual([each for each in targets if each.startswith("pipe:")], [])
        self.assertEqual((host / "fd" / "2").resolve().suffix, ".log")
        self.assertIn(b"--idle-exit\x0060\x00", (host / "cmdline").read_bytes())

    def testAHostEndsWhenNobodyUsesIt(self):
        path = self.folder / "host.sock"
        host = subprocess.Popen([HEARTH, "serve", "--device", CPU, "--socket", path, "--idle-exit", "2"],
                                env=self.variables, stderr=subprocess.PIPE, text=True)
        self.addCleanup(host.kill)
        waitFor(self, lambda: path.exists() or host.poll() is not None)
        self.assertEqual(self.host(HEARTH_DRIVER_HOSTS=f"{CPU}={path}")["process"], host.pid)
        _, errors = host.communicate(timeout=PATIENCE)
        self.assertEqual((host.returncode, errors), (0, ""))
        self.refuse(2, "serve", "--device", CPU, "--socket", path, "--idle-exit", "0")
        self.refuse(2, "serve", "--device", CPU, "--socket", path, "--idle-exit", "soon")

    def testManifestsSayWhatIsShared(self):
        original = json.loads((EXAMPLE_DRIVERS / "fibonacci.json").read_text(encoding="utf-8"))
        manifest = {**original, "library": str(EXAMPLE_DRIVERS / original["library"]), "host": "hearth",
                    "shared": True}
        drivers = self.folder / "drivers"
        drivers.mkdir()
        (drivers / "fibonacci.json").write_text(json.dumps(manifest), encoding="utf-8")
        places = {"HEARTH_DRIVER_PATH": str(drivers), "HEARTH_DRIVER_HOSTS": ""}
        first = self.host("fibonacci", **places)
        self.assertEqual(first["kind"], "shared")
        # Wherever a program is, and however it names the folder.
        run = subprocess.run([HEARTH, "devices", "--json"], env={**self.variables, **places,
                                                                 "HEARTH_DRIVER_PATH": "drivers"},
                             cwd=self.folder, capture_output=True, text=True, check=False)
        hosts = {device["name"]: device["host"] for device in json.loads(run.stdout)["devices"]}
        self.assertEqual(hosts["fibonacci"]["process"], first["process"])
        self.assertEqual(hosts[CPU]["kind"], "in process")
        for place, kind in (("process", "in process"), ("spawn", "spawned"), ("shared", "shared")):
            host = self.host("fibonacci", **{**places, "HEARTH_DRIVER_HOSTS": f"fibonacci={place}"})
            self.assertEqual(host["kind"], kind)
        # What is installed anew is another driver.
        (drivers / "fibonacci.json").write_text(json.dumps({**manifest, "of": "later"}), encoding="utf-8")
        self.assertNotEqual(self.host("fibonacci", **places)["process"], first["process"])


if __name__ == "__main__":
    unittest.main()
