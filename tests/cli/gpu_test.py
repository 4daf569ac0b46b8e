# SPDX-License-Identifier: Apache-2.0
"""The driver of GPUs as programs get it: a library with a manifest, in the process or behind a host.
It runs on Mesa's implementation of Vulkan on the CPU."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import numpy as np

from command import DATA, HEARTH, DataTest
from gpu_command import DEVICE, DRIVERS, IMPLEMENTATION, PROCESS, GpuCommandTest
from host_processes import hostsWith, waitFor
from workloads import quantize, tflite_reader, tflite_writer

IS_LONG = os.environ.get("HEARTH_TEST_LONG") == "1"
PATIENCE = 120
# The layer that watches how Vulkan is used, with its checks of missing barriers.
VALIDATION = {"VK_LOADER_LAYERS_ENABLE": "VK_LAYER_KHRONOS_validation",
              "VK_KHRONOS_VALIDATION_VALIDATE_SYNC": "true",
              "VK_KHRONOS_VALIDATION_SYNCVAL_SHADER_ACCESSES_HEURISTIC": "true"}
# Quantised models all of whose operations the GPU has, and those that take long on the CPU's implementation.
MODELS = ["micro_speech_quantized", "mobilenet_v1_0.75_192_quant", "mobilenet_v2_quantized_1x3x224x224",
          "person_detect", "split_concat"]
LONG_MODELS = ["deeplabv3_mnv2_pascal_quant"]
# Classifiers, and folders of inputs and outputs below "golden".
GOLDEN = [("micro_speech_quantized", ""), ("micro_speech_quantized", "alt_no"),
          ("person_detect", ""), ("person_detect", "alt_no_person"),
          ("mobilenet_v1_0.25_128_quant", ""), ("mobilenet_v1_0.25_128_quant", "alt_bird"),
          ("mobilenet_v1_0.75_192_quant", ""), ("mobilenet_v1_0.75_192_quant", "alt_owl"),
          ("mobilenet_v2_quantized_1x3x224x224", ""), ("mobilenet_v2_quantized_1x3x224x224", "alt_bird")]
# NNAPI's vectors that pass, as in vulkan_conformance_test.
ALL_PASSED = 4738
# Programs with tests of all devices along HEARTH_DRIVER_PATH.
PROGRAMS = [("nnapi_behaviours_test", "*"), ("random_graph_test", "*InstalledDrivers*")]


class GpuTest(GpuCommandTest, DataTest):

    def output(self, *options, **environment):
        """The scores of a quantised MobileNet for a picture, and what the command prints."""
        folder = self.folder / "outputs"
        text = self.succeed("run", self.model("mobilenet_v1_0.25_128_quant"), "--input",
                            self.data("images/cat.bmp"), "--output-dir", folder, *options,
                            env={**self.environment, **environment})
        return np.load(folder / "output_0.npy"), text

    def testQuantisedResultsEqualThoseOfTheReference(self):
        expected = self.output("--device", "nnapi-reference")[0]
        for hosts in (PROCESS, f"{DEVICE}=spawn"):
            scores, text = self.output(HEARTH_DRIVER_HOSTS=hosts)
            self.assertIn(f" on {DEVICE}\n", text)
            np.testing.assert_array_equal(scores, expected)

    def sharing(self, **variables):
        """The variables of programs that have the driver where its manifest says: in a host that they share."""
        runtime = self.folder / "runtime"
        runtime.mkdir(mode=0o700)
        self.addCleanup(self.endSharedHosts)
        return {**self.environment, "HEARTH_DRIVER_HOSTS": "", "XDG_RUNTIME_DIR": str(runtime), **variables}

    def sharedHosts(self):
        return hostsWith(f"HEARTH_STORE={self.environment['HEARTH_STORE']}")

    def endSharedHosts(self):
        for host in self.sharedHosts():
            os.kill(host, signal.SIGTERM)
        waitFor(self, lambda: not self.sharedHosts())

    def testProgramsShareTheHostOfTheDriver(self):
        expected = self.output("--device", "nnapi-reference")[0]
        environment = self.sharing()
        for _ in range(2):
            scores, text = self.output("--device", DEVICE, **environment)
            self.assertIn(f" on {DEVICE}\n", text)
            np.testing.assert_array_equal(scores, expected)
        hosts = {device["name"]: device["host"]
                 for device in json.loads(self.succeed("devices", "--json", env=environment))["devices"]}
        self.assertEqual(hosts[DEVICE]["kind"], "shared")
        self.assertEqual(self.sharedHosts(), [hosts[DEVICE]["process"]])

    def testAHostWithoutAGpuTellsProgramsSo(self):
        manifest = json.loads((DRIVERS / "vulkan.json").read_text(encoding="utf-8"))
        manifest["library"] = str(DRIVERS / manifest["library"])
        del manifest["needs"]["if_present"]["devices"]
        (self.folder / "vulkan.json").write_text(json.dumps(manifest), encoding="utf-8")
        environment = self.sharing(VK_DRIVER_FILES="/nowhere/icd.json", HEARTH_DRIVER_PATH=str(self.folder))
        del environment["HEARTH_VULKAN_DEVICE"]
        for _ in range(2):
            names, leftOut, said = self.devices(environment)
            self.assertNotIn(DEVICE, names)
            self.assertIn("makes no device: ", leftOut[DEVICE])
            self.assertEqual(said, "")
        # Who asks for the device by its name hears the same.
        run = self.hearth("run", self.model("mobilenet_v1_0.25_128_quant"), "--random-input", 1, "--device", DEVICE,
                          env=environment)
        self.assertEqual(run.returncode, 2)
        self.assertIn("makes no device: ", run.stderr)
        # The host ends soon.
        waitFor(self, lambda: not self.sharedHosts())

    def testModelsRunInOnePartWithTheResultsOfTheReference(self):
        for model in MODELS + (LONG_MODELS if IS_LONG else []):
            with self.subTest(model=model):
                outputs = {}
                for device in (DEVICE, "nnapi-reference"):
                    folder = self.folder / f"{device}-{model}"
                    text = self.succeed("run", self.model(model), "--random-input", 1, "--device", device,
                                        "--output-dir", folder, env=self.environment)
                    self.assertIn(f" on {device}\n", text)
                    outputs[device] = {path.name: path.read_bytes() for path in folder.glob("*.npy")}
                self.assertNotEqual(outputs[DEVICE], {})
                self.assertEqual(outputs[DEVICE], outputs["nnapi-reference"])

    def testFloat32TwinsOfGoldenModelsFindTheSameClasses(self):
        """Layers of real numbers in whole networks, by the classes that LiteRT finds with the integers."""
        for model, case in GOLDEN:
            with self.subTest(model=model, case=case):
                graph = tflite_reader.read(self.model(model))
                golden = self.data("golden") / model / case
                twin, values = self.folder / "twin.tflite", self.folder / "input.npy"
                tflite_writer.write(quantize.toFloat32(graph), twin)
                stored = graph.tensors[graph.inputs[0]].quantization
                np.save(values, stored.dequantize(np.load(golden / "input_0.npy")))
                scores = {}
                for device in (DEVICE, "nnapi-reference"):
                    text = self.succeed("run", twin, "--input", values, "--device", device,
                                        "--output-dir", self.folder, env=self.environment)
                    self.assertIn(f" on {device}\n", text)
                    scores[device] = np.load(self.folder / "output_0.npy")
                np.testing.assert_allclose(scores[DEVICE], scores["nnapi-reference"], rtol=1e-3, atol=1e-4)
                self.assertEqual(scores[DEVICE].argmax(), np.load(golden / "output_0.npy").argmax())

    def testMeasuredSpeedsChooseTheDevice(self):
        """The implementation on the CPU is slower than hearth-cpu, whatever the driver thinks of a GPU."""
        environment = {**self.environment, "HEARTH_TUNING": "on"}

        def speeds():
            report = json.loads(self.succeed("devices", "--json", env=environment))
            return {device["name"]: device["speed"] for device in report["devices"]}

        def run(*options):
            report = self.json("run", self.model("mobilenet_v1_0.25_128_quant"), "--random-input", 1, *options,
                               env=environment)
            return report["device"], report["start"]["device_choice"]

        # Whoever names one device measures nothing.
        for device in ("hearth-cpu", DEVICE):
            self.assertEqual(run("--device", device), (device, ""))
        self.assertEqual(set(speeds().values()), {None})
        device, choice = run()
        self.assertEqual(device, "hearth-cpu")
        self.assertRegex(choice, rf"^hearth-cpu alone [\d.e+]+ ms, {DEVICE} alone [\d.e+]+ ms, taken hearth-cpu$")
        known = speeds()
        self.assertIsNone(known["nnapi-reference"])
        for device in ("hearth-cpu", DEVICE):
            self.assertGreater(known[device]["quantized_product_s"], 0)
            self.assertIsNone(known[device]["float32_product_s"])
        # The next process knows the same.
        self.assertEqual(run(), ("hearth-cpu", choice))
        self.assertEqual(speeds(), known)
        self.assertIn("8-bit G/s", self.succeed("devices", env=environment))
        # Whoever asks for it gets new figures, of all kinds of numbers, and so do the others.
        renewed = {device["name"]: device["speed"]
                   for device in self.json("devices", "--measure", env=environment)["devices"]}
        for device in ("hearth-cpu", DEVICE):
            self.assertNotEqual(renewed[device], known[device])
            self.assertGreater(min(renewed[device][f"{kind}_product_s"]
                                   for kind in ("float32", "float16", "quantized")), 0)
        self.assertIsNone(renewed["nnapi-reference"])
        self.assertEqual(speeds(), renewed)
        known = renewed
        # The way to a host makes another device of it.
        environment["HEARTH_DRIVER_HOSTS"] = f"{DEVICE}=spawn"
        hosted = speeds()
        self.assertEqual((hosted["hearth-cpu"], hosted[DEVICE]), (known["hearth-cpu"], None))
        self.assertEqual(run()[0], "hearth-cpu")
        self.assertIsNotNone(speeds()[DEVICE])

    def testTheNextProcessComesFromTheCompilationCache(self):
        for hosts in (PROCESS, f"{DEVICE}=spawn"):
            cache = self.folder / f"cache{hosts}"
            cache.mkdir()
            environment = {**self.environment, "HEARTH_DRIVER_HOSTS": hosts,
                           "XDG_STATE_HOME": str(self.folder / "state")}

            def start():
                report = self.json("run", self.model("mobilenet_v1_0.25_128_quant"), "--random-input", 1,
                                   "--cache-dir", cache, "--token", "5a" * 32,
                                   env=environment)
                return report["start"], report["outputs"]

            first, outputs = start()
            self.assertNotEqual(first["cache"], "hit")
            second, cached = start()
            self.assertEqual((second["cache"], second["packed_bytes"]), ("hit", 0))
            self.assertEqual(cached, outputs)
            if hosts != PROCESS:
                continue
            for path in cache.iterdir():
                path.write_bytes(bytes(path.stat().st_size))
                repaired, outputsAfter = start()
                self.assertNotEqual(repaired["cache"], "hit")
                self.assertEqual(outputsAfter, outputs)
            self.assertEqual(start()[0]["cache"], "hit")

    def testAnImplementationOnTheCpuIsNotTakenForAGpu(self):
        names, _, said = self.devices({**self.environment, "HEARTH_VULKAN_DEVICE": "no such GPU"})
        self.assertNotIn(DEVICE, names)
        self.assertIn("No device of Vulkan 1.2 has \"no such GPU\" in its name", said)
        self.assertIn(IMPLEMENTATION, said)

    def testWhereNobodyAsksForItItMayBeMissing(self):
        environment = {**self.environment, "VK_DRIVER_FILES": "/nowhere/icd.json"}
        del environment["HEARTH_VULKAN_DEVICE"]
        names, leftOut, said = self.devices(environment)
        self.assertNotIn(DEVICE, names)
        self.assertIn(DEVICE, leftOut)
        self.assertEqual(said, "")
        # Whatever device nodes there are.
        manifest = json.loads((DRIVERS / "vulkan.json").read_text(encoding="utf-8"))
        manifest["library"] = str(DRIVERS / manifest["library"])
        del manifest["needs"]["if_present"]["devices"]
        (self.folder / "vulkan.json").write_text(json.dumps(manifest), encoding="utf-8")
        names, leftOut, said = self.devices({**environment, "HEARTH_DRIVER_PATH": str(self.folder)})
        self.assertNotIn(DEVICE, names)
        self.assertIn("makes no device: ", leftOut[DEVICE])
        self.assertEqual(said, "")

    def testEachGpuIsADevice(self):
        """On a machine on which Vulkan has the implementation on the CPU twice, by two manifests of its driver."""
        files = sorted(pathlib.Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))
        if not files:
            self.skipTest("Mesa's implementation of Vulkan on the CPU is elsewhere.")
        copy = self.folder / "icd.json"
        copy.write_bytes(files[0].read_bytes())
        twice = {"VK_DRIVER_FILES": f"{files[0]}:{copy}"}
        second = f"{DEVICE}-2"

        def gpus(**environment):
            names, leftOut, said = self.devices({**self.environment, **twice, **environment})
            self.assertEqual((said, leftOut), ("", {}))
            return [name for name in names if name.startswith(DEVICE)]

        self.assertEqual(gpus(), [DEVICE, second])
        both = f"{DEVICE}=spawn,{second}=spawn"
        self.assertEqual(gpus(HEARTH_DRIVER_HOSTS=both), [DEVICE, second])
        # The host of the first one knows of the second.
        self.assertEqual(gpus(HEARTH_DRIVER_HOSTS=f"{DEVICE}=spawn"), [DEVICE, second])
        shared = self.sharing()
        for _ in range(2):
            self.assertEqual(gpus(**shared), [DEVICE, second])
            self.assertEqual(len(self.sharedHosts()), 2)
        expected = self.output("--device", "nnapi-reference")[0]
        for hosts in (PROCESS, both):
            scores, text = self.output("--device", second, HEARTH_DRIVER_HOSTS=hosts, **twice)
            self.assertIn(f" on {second}\n", text)
            np.testing.assert_array_equal(scores, expected)
        # Files of the first device are no files of the second.
        cache = self.folder / "cache"
        cache.mkdir()
        for device, state in ((DEVICE, "miss"), (DEVICE, "hit"), (second, "miss"), (second, "hit")):
            report = self.json("run", self.model("mobilenet_v1_0.25_128_quant"), "--random-input", 1, "--device", device,
                               "--cache-dir", cache, "--token", "5a" * 32,
                               env={**self.environment, **twice, "XDG_STATE_HOME": str(self.folder / "state")})
            self.assertEqual(report["start"]["cache"] == "hit", state == "hit", device)

    def testAHostOpensTheDriversOfVulkanThatItsClientNames(self):
        spawned = {**self.environment, "HEARTH_DRIVER_HOSTS": f"{DEVICE}=spawn"}
        self.assertIn(DEVICE, self.devices(spawned)[0])
        names, _, said = self.devices({**spawned, "VK_DRIVER_FILES": "/nowhere/icd.json"})
        self.assertNotIn(DEVICE, names)
        self.assertIn("Vulkan", said)

    def startHost(self, name, environment):
        """A shared host in its sandbox, its socket, and the file of what it says."""
        socket = self.folder / f"{name}.sock"
        output = self.folder / f"{name}.txt"
        with output.open("w", encoding="utf-8") as file:
            host = subprocess.Popen([HEARTH, "serve", "--device", DEVICE, "--socket", socket],
                                    env=environment, stdout=file, stderr=file)
        self.addCleanup(host.wait, PATIENCE)
        self.addCleanup(host.kill)
        end = time.monotonic() + PATIENCE
        while not socket.exists():
            self.assertIsNone(host.poll(), output.read_text(encoding="utf-8"))
            self.assertLess(time.monotonic(), end, "The host does not listen.")
            time.sleep(0.05)
        return host, socket, output

    def testAHostThatIsKilledWhileTheGpuComputes(self):
        """A program that has named the GPU gets an error, another one the results of the CPU."""
        def processorTicks(process):
            fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            return int(fields[11])

        for isNamed in (True, False):
            with self.subTest(isNamed=isNamed):
                host, socket, _ = self.startHost(f"killed-{isNamed}", self.environment)
                before = processorTicks(host)
                with subprocess.Popen(
                        [HEARTH, "bench", self.model("mobilenet_v1_0.25_128_quant"), "--random-input", "1", "--repeat",
                         "600", *(["--device", DEVICE] if isNamed else [])],
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                        env={**self.environment, "HEARTH_DRIVER_HOSTS": f"{DEVICE}={socket}"}) as client:
                    self.addCleanup(client.kill)
                    end = time.monotonic() + PATIENCE
                    # It has prepared the model, and computes.
                    while processorTicks(host) < before + os.sysconf("SC_CLK_TCK"):
                        self.assertIsNone(client.poll(), "The program ends before its host is killed.")
                        self.assertLess(time.monotonic(), end, "The host does not compute.")
                        time.sleep(0.01)
                    host.kill()
                    output, errors = client.communicate(timeout=PATIENCE)
                self.assertEqual(client.returncode, 1 if isNamed else 0, errors)
                if isNamed:
                    self.assertIn("hearth: ", errors)
                self.assertEqual(output == "", isNamed)

    def startValidatedHost(self):
        """A shared host with Vulkan's validation layer."""
        host, socket, output = self.startHost("gpu", {**self.environment, **VALIDATION})
        maps = pathlib.Path(f"/proc/{host.pid}/maps").read_text(encoding="utf-8")
        if "libVkLayer_khronos_validation" not in maps:
            self.skipTest("Vulkan's validation layer is not installed.")
        return host, socket, output

    def runVectors(self, vectors, environment):
        """The number of the file's cases that pass. The others have an operation that is refused."""
        run = self.hearth("conformance", vectors, "--device", DEVICE, "--json", env=environment,
                          timeout=7200)
        report = json.loads(run.stdout)
        wrong = [case for case in report["cases"] if not case["passed"] and
                 "The device does not support operation" not in case["message"] and
                 "The GPU driver has no WHILE" not in case["message"]]
        self.assertEqual(wrong, [])
        return report["passed"]

    def runProgram(self, program, tests, environment):
        run = subprocess.run([pathlib.Path(HEARTH).parent / program, f"--gtest_filter={tests}"],
                             capture_output=True, text=True, check=False, timeout=3 * 3600,
                             env=environment)
        self.assertEqual(run.returncode, 0, run.stdout[-4000:])
        self.assertNotIn("SKIPPED", run.stdout)

    def testVectorsBehavioursAndRandomGraphsBehindASharedHost(self):
        host, socket, output = self.startValidatedHost()
        environment = {**self.environment, "HEARTH_DRIVER_HOSTS": f"{DEVICE}={socket}",
                       "HEARTH_LOG": "error"}
        folder = pathlib.Path(DATA) / "conformance"
        with self.subTest("vectors"):
            self.assertGreaterEqual(sum(self.runVectors(file, environment) for file in sorted(folder.glob("*.nntv"))),
                                    ALL_PASSED)
        for program, tests in PROGRAMS:
            with self.subTest(program):
                self.runProgram(program, tests, environment)
        self.assertIsNone(host.poll())
        host.send_signal(signal.SIGTERM)
        self.assertEqual(host.wait(PATIENCE), 0)
        self.assertEqual(output.read_text(encoding="utf-8"), "")

    def testBehavioursAndRandomGraphsInTheProcess(self):
        """vulkan_conformance_test has the vectors."""
        for program, tests in PROGRAMS:
            with self.subTest(program):
                messages = self.folder / f"{program}.txt"
                self.runProgram(program, tests,
                                {**self.environment, **VALIDATION, "HEARTH_LOG": "error",
                                 "VK_KHRONOS_VALIDATION_LOG_FILENAME": str(messages)})
                # The layer makes the file when it is loaded.
                if not messages.exists():
                    self.skipTest("Vulkan's validation layer is not installed.")
                self.assertEqual(messages.read_text(encoding="utf-8"), "")


if __name__ == "__main__":
    unittest.main()
