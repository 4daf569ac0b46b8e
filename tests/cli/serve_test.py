# SPDX-License-Identifier: Apache-2.0
"""Drivers in processes of their own, chosen by a variable or a manifest, in unchanged programs."""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np

from command import DATA, HEARTH, ROOT, CommandTest
from host_processes import PATIENCE, hostsWith, waitFor

MODEL = ROOT / "models" / "digits" / "digits.tflite"
NNAPI_HELLO = pathlib.Path(HEARTH).parent / "nnapi_hello"
FIBONACCI = pathlib.Path(HEARTH).parent / "fibonacci"
# Programs whose tests hold for devices of any place, and those that cannot apply behind a shared host:
# arguments behind pointers are copied, operators of a program are not known, and a client's options do
# not name the store.
ANYWHERE = {
    "nnapi_behaviours_test": ["MemoryBehaviour.B43_ArgumentsReachTheKernels*"],
    "random_graph_test": [],
    "api_test": ["CustomOperatorTest.*", "CustomStarts.*", "*StringsTest.*", "ContractTest.MemoryIsUsedInPlace*",
                 "ContractTest.FlushWritesWhatWasPacked"],
}
EXAMPLE_DRIVERS = pathlib.Path(HEARTH).parents[1] / "share" / "hearth" / "example-drivers"
CPU = "hearth-cpu"
SPAWNED = f"{CPU}=spawn,nnapi-reference=spawn"


class ServeTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.variables = {**os.environ, "HEARTH_STORE": str(self.folder / "store"),
                          "XDG_STATE_HOME": str(self.folder / "state")}
        self.variables.pop("HEARTH_DRIVER_HOSTS", None)
        self.path = self.folder / "host.sock"

    def spawned(self):
        return hostsWith(f"HEARTH_STORE={self.variables['HEARTH_STORE']}")

    def hosted(self, hosts):
        return {**self.variables, "HEARTH_DRIVER_HOSTS": hosts}

    def outputs(self, env):
        """The outputs of a model for random inputs."""
        folder = self.folder / f"outputs{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        self.succeed("run", MODEL, "--random-input", "7", "--output-dir", folder, env=env)
        return np.load(folder / "output_0.npy")

    def waitFor(self, done):
        waitFor(self, done)

    def startHost(self, *arguments, path=None, **options):
        host = subprocess.Popen([HEARTH, "serve", *map(str, arguments)], env=self.variables,
                                stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(self.endHost, host)
        if path:
            self.waitFor(lambda: path.exists() or host.poll() is not None)
            self.assertIsNone(host.poll())
        return host

    def endHost(self, host):
        """Ends a host as a service manager does, and returns its output."""
        if host.stderr.closed:
            return ""
        host.send_signal(signal.SIGTERM)
        _, errors = host.communicate(timeout=PATIENCE)
        self.assertEqual(host.returncode, 0, errors)
        return errors

    def hello(self, env):
        return self.outputOf([NNAPI_HELLO], env)

    def outputOf(self, command, env):
        run = subprocess.run(command, capture_output=True, text=True, check=False,
                             timeout=PATIENCE, env=env)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stderr, "")
        return run.stdout

    def testSpawnedHostsComputeTheSame(self):
        expected = self.outputs(self.variables)
        np.testing.assert_array_equal(self.outputs(self.hosted(SPAWNED)), expected)
        # The host ends when its client does.
        self.waitFor(lambda: not self.spawned())

    def testASharedHostComputesTheSame(self):
        self.startHost("--device", CPU, "--socket", self.path, path=self.path)
        expected = self.outputs(self.variables)
        env = self.hosted(f"{CPU}={self.path}")
        for _ in range(3):
            np.testing.assert_array_equal(self.outputs(env), expected)
        bench = self.json("bench", MODEL, "--random-input", "1", "--repeat", "5", env=env)
        self.assertEqual(bench["device"], CPU)

    def testAProgramOfTheCInterfaceRunsUnchanged(self):
        expected = self.hello(self.variables)
        self.assertIn("= 31", expected)
        self.assertEqual(self.hello(self.hosted(SPAWNED)), expected)
        self.startHost("--device", CPU, "--socket", self.path, path=self.path)
        self.assertEqual(self.hello(self.hosted(f"{CPU}={self.path}")), expected)

    def testAnExtensionOfADriverWorksWhereverTheDriverIs(self):
        manifest = EXAMPLE_DRIVERS / "fibonacci.json"
        env = {**self.variables, "HEARTH_DRIVER_PATH": str(EXAMPLE_DRIVERS)}
        expected = "1 10\n1 10\n2 20\n3 30\n5 50\n8 80\n"
        self.assertEqual(self.outputOf([FIBONACCI, "6"], env), expected)
        spawned = {**env, "HEARTH_DRIVER_HOSTS": f"fibonacci=spawn,{SPAWNED}"}
        self.assertEqual(self.outputOf([FIBONACCI, "6"], spawned), expected)
        devices = {device["name"]: device for device in self.json("devices", env=spawned)["devices"]}
        self.assertEqual(devices["fibonacci"]["host"]["kind"], "spawned")
        self.assertEqual(devices["fibonacci"]["extensions"], "com.example.fibonacci")
        self.startHost("--manifest", manifest, "--device", "fibonacci", "--socket", self.path,
                       path=self.path)
        shared = {**env, "HEARTH_DRIVER_HOSTS": f"fibonacci={self.path}"}
        self.assertEqual(self.outputOf([FIBONACCI, "6"], shared), expected)
        # Without the driver the program says what is missing.
        run = subprocess.run([FIBONACCI], capture_output=True, text=True, check=False,
                             timeout=PATIENCE, env=self.variables)
        self.assertEqual(run.returncode, 1)
        self.assertIn('No device has the extension "com.example.fibonacci"', run.stderr)

    def testDevicesSayWhereTheyAre(self):
        self.startHost("--device", CPU, "--socket", self.path, path=self.path)
        env = self.hosted(f"{CPU}={self.path},nnapi-reference=spawn")
        cpu, reference = self.json("devices", env=env)["devices"]
        self.assertEqual(cpu["host"]["kind"], "shared")
        self.assertEqual(reference["host"]["kind"], "spawned")
        for device in (cpu, reference):
            self.assertGreater(device["host"]["process"], 0)
            self.assertEqual(device["host"]["clients"], 1)
            self.assertGreater(device["host"]["memory_bytes"], 0)
            self.assertEqual(device["host"]["restarts"], 0)
        self.assertIn("spawned", self.succeed("devices", env=env))
        device = self.json("devices", env=self.variables)["devices"][0]
        self.assertEqual(device["host"], {"kind": "in process", "process": 0, "clients": 0,
                                          "memory_bytes": 0, "restarts": 0})

    def testManifestsNameHosts(self):
        drivers = self.folder / "drivers"
        drivers.mkdir()
        self.startHost("--device", "nnapi-reference", "--socket", self.path, path=self.path)
        manifests = {
            # The name must be that of the device in the host, which is a built-in one here.
            "wrong.json": {"name": "other", "socket": str(self.path), "api_version": 3},
            "gone.json": {"name": "gone", "socket": str(self.folder / "none"), "api_version": 3},
        }
        for name, manifest in manifests.items():
            (drivers / name).write_text(json.dumps(manifest), encoding="utf-8")
        run = self.hearth("devices", "--json",
                          env={**self.variables, "HEARTH_DRIVER_PATH": str(drivers)})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual([each["name"] for each in json.loads(run.stdout)["devices"]],
                         [CPU, "nnapi-reference"])
        self.assertIn("has the device nnapi-reference", run.stderr)
        self.assertIn("Joining the host", run.stderr)

    def sandboxOf(self, pid):
        """What the kernel says of a process: new privileges forbidden, calls filtered."""
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        fields = dict(line.split(":\t", 1) for line in status.splitlines())
        return fields["NoNewPrivs"], fields["Seccomp"]

    def testHostsAreConfinedBeforeTheyListen(self):
        host = self.startHost("--device", CPU, "--socket", self.path, path=self.path)
        self.hello(self.hosted(f"{CPU}={self.path}"))
        self.assertEqual(self.sandboxOf(host.pid), ("1", "2"))
        path = self.folder / "open.sock"
        free = self.startHost("--device", CPU, "--socket", path, "--sandbox", "off", path=path)
        self.hello(self.hosted(f"{CPU}={path}"))
        self.assertEqual(self.sandboxOf(free.pid), ("0", "0"))
        with subprocess.Popen([HEARTH, "bench", MODEL, "--random-input", "1", "--repeat",
                               "10000000"], env=self.hosted(f"{CPU}=spawn"),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
            self.addCleanup(client.kill)
            self.waitFor(lambda: [each for each in self.spawned()
                                  if self.sandboxOf(each) == ("1", "2")])
            client.kill()

    @unittest.skipUnless(DATA, "HEARTH_TEST_DATA is not set.")
    def testAConfinedHostKeepsPackedWeights(self):
        model = (pathlib.Path(DATA) / "data" / "models" /
                 "mobilenet_v2_quantized_1x3x224x224.tflite")

        def start(env, *options):
            return self.json("run", model, "--random-input", "1", *options, env=env)["start"]

        spawned = self.hosted(f"{CPU}=spawn")
        self.assertEqual(start(spawned)["state"], "cold")
        self.assertEqual(start(spawned)["state"], "warm")
        # A folder that only the client's options name, and that is not there yet.
        options = ("--store", self.folder / "more" / "store")
        self.assertEqual(start(spawned, *options)["state"], "cold")
        self.assertEqual(start(spawned, *options)["state"], "warm")
        # Those of a shared host's clients do not count.
        self.startHost("--device", CPU, "--socket", self.path, path=self.path)
        shared = self.hosted(f"{CPU}={self.path}")
        # It copies constants that could be indices, so the plan is another one.
        self.assertEqual(start(shared)["state"], "cold")
        self.assertEqual(start(shared)["state"], "warm")
        self.assertEqual(start(shared, "--store", self.folder / "third")["state"], "warm")
        self.assertFalse((self.folder / "third").exists())
        self.waitFor(lambda: not self.spawned())

    @unittest.skipUnless(DATA, "HEARTH_TEST_DATA is not set.")
    def testAProgramHasItsResultThoughAllHostsOfTheDriverDie(self):
        model = (pathlib.Path(DATA) / "data" / "models" /
                 "mobilenet_v2_quantized_1x3x224x224.tflite")
        folders = [self.folder / "first", self.folder / "second"]
        command = ["run", model, "--random-input", "1", "--output-dir"]
        self.succeed(*command, folders[0], env=self.variables)
        # Every host of this device dies when it publishes what it has packed, which is before or after
        # it has computed. Another device takes over, or the next host does.
        dying = {**self.hosted(f"{CPU}=spawn"), "HEARTH_CRASH_AT": "segment.after_write",
                 "HEARTH_STORE": str(self.folder / "dying")}
        run = self.hearth(*command, folders[1], env=dying)
        self.assertEqual(run.returncode, 0, run.stderr)
        expected, actual = (np.load(folder / "output_0.npy") for folder in folders)
        self.assertEqual(int(np.argmax(actual)), int(np.argmax(expected)))

    def testUnknownPlacesAreSaid(self):
        for hosts, text in ((f"{CPU}=nowhere", "which is not DEVICE=spawn"),
                            ("other=spawn", "which is not there"),
                            (f"{CPU}={self.path}", "cannot be reached")):
            run = self.hearth("devices", env=self.hosted(hosts))
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(text, run.stderr)

    def testAServiceManagersSocketIsUsed(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(str(self.path))
            listening.listen()

            def pass_():
                os.dup2(listening.fileno(), 3)
                os.environ["LISTEN_PID"] = str(os.getpid())

            # The variable holds the number of the process that is started, so a shell sets it.
            host = subprocess.Popen(
                ["/bin/sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", HEARTH, "serve", "--device",
                 CPU], env={**self.variables, "LISTEN_FDS": "1"}, stderr=subprocess.PIPE,
                text=True, pass_fds=(3,), preexec_fn=pass_)
            self.addCleanup(self.endHost, host)
        self.assertEqual(self.hello(self.hosted(f"{CPU}={self.path}")),
                         self.hello(self.variables))

    def testAServiceManagerHearsThatTheHostIsReadyAndAlive(self):
        name = self.folder / "notify.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(name))
            manager.settimeout(PATIENCE)
            self.variables |= {"NOTIFY_SOCKET": str(name), "WATCHDOG_USEC": "100000"}
            host = self.startHost("--device", CPU, "--socket", self.path)
            self.assertEqual(manager.recv(99), b"READY=1")
            # It listens by then.
            self.assertIn("= 31", self.hello(self.hosted(f"{CPU}={self.path}")))
            for _ in range(5):
                self.assertEqual(manager.recv(99), b"WATCHDOG=1")
            # One that hangs is silent, so that the manager ends it.
            host.send_signal(signal.SIGSTOP)
            self.waitFor(lambda: "T (stopped)" in pathlib.Path(
                f"/proc/{host.pid}/status").read_text(encoding="utf-8"))
            manager.setblocking(False)
            with self.assertRaises(BlockingIOError):
                while True:
                    manager.recv(99)
            time.sleep(0.3)
            self.assertRaises(BlockingIOError, manager.recv, 99)
            host.send_signal(signal.SIGCONT)
            manager.settimeout(PATIENCE)
            self.assertEqual(manager.recv(99), b"WATCHDOG=1")
            # The watchdog is another process's.
            other = self.folder / "other.sock"
            self.variables["WATCHDOG_PID"] = "1"
            self.endHost(host)
            manager.setblocking(False)
            with self.assertRaises(BlockingIOError):
                while True:
                    manager.recv(99)
            manager.settimeout(PATIENCE)
            self.startHost("--device", CPU, "--socket", other)
            self.assertEqual(manager.recv(99), b"READY=1")
            manager.settimeout(0.3)
            self.assertRaises(TimeoutError, manager.recv, 99)
        self.variables["NOTIFY_SOCKET"] = str(self.folder / "nobody")
        self.assertIn("service manager", self.refuse(
            1, "serve", "--device", CPU, "--socket", self.folder / "third.sock", env=self.variables))
        self.variables["NOTIFY_SOCKET"] = "vsock:2"
        self.assertIn("not the socket of a manager", self.refuse(
            1, "serve", "--device", CPU, "--socket", self.folder / "third.sock", env=self.variables))

    def testWrongCommandLinesAreRefused(self):
        self.refuse(2, "serve")
        self.refuse(2, "serve", "--device", CPU, "--fd", "-1")
        self.refuse(2, "serve", "--device", CPU, "--fd", "0", "--socket", self.path)
        self.refuse(2, "serve", "--device", CPU, "--detach")
        self.refuse(2, "serve", "--device", CPU, "--sandbox", "maybe")
        self.refuse(2, "serve", "--device", CPU, "--memory", "much")
        self.refuse(2, "serve", "--device", CPU, "--memory", "1G", "--sandbox", "off")
        self.assertIn("no service manager", self.refuse(1, "serve", "--device", CPU))
        self.assertIn("no driver of a device x", self.refuse(1, "serve", "--device", "x",
                                                             "--socket", self.path))
        with socket.socket() as other:
            self.assertIn("SOCK_SEQPACKET", self.refuse(1, "serve", "--device", CPU, "--fd", "0",
                                                        stdin=other))
        self.startHost("--device", CPU, "--socket", self.path, path=self.path)
        self.assertIn("Another process", self.refuse(1, "serve", "--device", CPU, "--socket",
                                                     self.path))

    def testAHostThatIsKilledIsReplaced(self):
        report = self.folder / "report"
        with subprocess.Popen([HEARTH, "bench", MODEL, "--random-input", "1", "--repeat", "10000000"],
                              env={**self.hosted(f"{CPU}=spawn"), "HEARTH_REPORT": str(report)},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
            self.addCleanup(client.kill)
            # The model is prepared by then.
            self.waitFor(lambda: report.exists() or client.poll() is not None)
            first = self.spawned()
            self.assertEqual(len(first), 1)
            os.kill(first[0], signal.SIGKILL)
            # If no device was named, another device computes what the host was computing.
            self.waitFor(lambda: [each for each in self.spawned() if each != first[0]])
            self.assertIsNone(client.poll())
            client.kill()
        self.waitFor(lambda: not self.spawned())

    def testNothingIsLeftOfClientsThatAreKilled(self):
        host = self.startHost("--device", CPU, "--socket", self.path, "--clients", "256",
                              path=self.path)
        env = self.hosted(f"{CPU}={self.path}")

        def has():
            """Descriptors, mappings of clients' memory, threads."""
            process = pathlib.Path(f"/proc/{host.pid}")
            mappings = (process / "maps").read_text(encoding="utf-8")
            return (len(list((process / "fd").iterdir())),
                    sum("memfd:" in line for line in mappings.splitlines()),
                    len(list((process / "task").iterdir())))

        self.hello(env)
        # The threads that the driver makes once.
        self.json("bench", MODEL, "--random-input", "1", "--repeat", "5", env=env)
        self.waitFor(lambda: has()[0] <= 8)
        before = has()
        chance = random.Random(5)
        for _ in range(1000 if os.environ.get("HEARTH_TEST_LONG") == "1" else 15):
            with subprocess.Popen([HEARTH, "bench", MODEL, "--random-input", "1", "--repeat",
                                   "10000000"], env=env, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as client:
                time.sleep(chance.random() * 0.1)
                client.kill()
        self.waitFor(lambda: all(now <= then for now, then in zip(has(), before)))
        self.assertEqual(self.hello(env), self.hello(self.variables))

    @unittest.skipUnless(DATA, "HEARTH_TEST_DATA is not set.")
    def testAllInterfacesBehaveTheSameBehindSharedHosts(self):
        places = []
        for device in (CPU, "nnapi-reference"):
            path = self.folder / f"{device}.sock"
            self.startHost("--device", device, "--socket", path, path=path)
            places.append(f"{device}={path}")
        for program, excluded in ANYWHERE.items():
            with self.subTest(program=program):
                run = subprocess.run([pathlib.Path(HEARTH).parent / program,
                                      f"--gtest_filter=*-{':'.join(excluded)}"],
                                     capture_output=True, text=True, check=False, timeout=600,
                                     env=self.hosted(",".join(places)))
                self.assertEqual(run.returncode, 0, run.stdout[-4000:])

    def testNnapisVectorsPassBehindHosts(self):
        for device in (CPU, "nnapi-reference"):
            path = self.folder / f"{device}.sock"
            self.startHost("--device", device, "--socket", path, path=path)
            for hosts in (SPAWNED, f"{device}={path}"):
                for version, least in (("V1_0", 250), ("V1_1", 370), ("V1_2", 3700), ("V1_3", 1700),
                                       ("V1_3_cts_only", 130)):
                    vectors = pathlib.Path(DATA) / "conformance" / f"{version}.nntv"
                    with self.subTest(hosts=hosts, version=version):
                        # Hosts warn of operations that run on a slow kernel, which vectors want, too.
                        report = self.json("conformance", vectors, "--device", device,
                                           env={**self.hosted(hosts), "HEARTH_LOG": "error"},
                                           timeout=1200)
                        self.assertEqual(report["failed"], 0)
                        self.assertGreater(report["passed"], least)


if __name__ == "__main__":
    unittest.main()
