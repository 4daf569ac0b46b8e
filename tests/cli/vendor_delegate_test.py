# SPDX-License-Identifier: Apache-2.0
"""Devices that are external delegates for TensorFlow Lite: Hearth's own delegate in a vendor's place, and a
delegate for tests that does harm."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np
from command import HEARTH, ROOT, DataTest

sys.path.insert(0, str(ROOT / "bench"))

from workloads import tflite_schema as schema  # noqa: E402
from workloads.flatbuffer import Scalar, String, Table, TableVector, Vector, encode  # noqa: E402

BUILD = pathlib.Path(HEARTH).parents[1]
OWN_DELEGATE = BUILD / "lib" / "libhearth_delegate.so"
COMPATIBILITY = ROOT / "tests" / "compatibility" / "models"
DRIVER_SUITE = pathlib.Path(HEARTH).with_name("hearth-driver-cts")
TEST_DELEGATE = BUILD / "share" / "hearth" / "test-delegates" / "libvendor_delegate_20.so"
CORPUS = ROOT / "tests" / "corpus" / "model_file_fuzz"
# All that `hearth run` takes.
MODELS = ["deeplabv3_mnv2_pascal_quant", "dtln_noise_suppression", "keras_lstm_mnist_ptq", "micro_speech_quantized",
          "mobilenet_v1_0.25_128_quant", "mobilenet_v1_0.75_192_quant", "mobilenet_v2_quantized_1x3x224x224",
          "person_detect", "split_concat"]
# With states, which TensorFlow Lite keeps in variable tensors.
RECURRENT = [CORPUS / "lstm_float.tflite", CORPUS / "lstm_int8.tflite", CORPUS / "recurrent.tflite",
             CORPUS / "svdf_int8.tflite", COMPATIBILITY / "lstm-operator-float32.tflite",
             COMPATIBILITY / "lstm-operator-int8.tflite"]
CONVERTED = [COMPATIBILITY / f"{name}.tflite" for name in
             ("keyword-spotting-uint8-io", "layer-norm-int8", "mobilenet-v3-block-int8", "resnet-float32",
              "shufflenet-int16x8", "transformer-block-int8", "u-net-int8-io")]
STORELESS = {**os.environ, "HEARTH_STORE_MODE": "off", "HEARTH_LOG": "off"}


# Of the schema's enumeration of operations, and fields of it that no network of the benchmarks uses.
RELU, CUSTOM = 19, 32
CUSTOM_CODE = 1
CUSTOM_OPTIONS = 5


def customModel(name, options):
    """y = name(relu(x)) of float32 [2,3], as a vendor's tool writes a part that it has compiled."""
    tensors = [Table({schema.TENSOR_SHAPE: Vector(np.int32, [2, 3]), schema.TENSOR_TYPE: Scalar("b", 0),
                      schema.TENSOR_BUFFER: Scalar("I", 0), schema.TENSOR_NAME: String(each)}) for each in "xry"]
    codes = [Table({schema.OPERATOR_CODE_DEPRECATED: Scalar("b", code), schema.OPERATOR_CODE_VERSION: Scalar("i", 1),
                    schema.OPERATOR_CODE_BUILTIN: Scalar("i", code), **more})
             for code, more in ((RELU, {}), (CUSTOM, {CUSTOM_CODE: String(name)}))]
    operators = [Table({schema.OPERATOR_OPCODE_INDEX: Scalar("I", index),
                        schema.OPERATOR_INPUTS: Vector(np.int32, [index]),
                        schema.OPERATOR_OUTPUTS: Vector(np.int32, [index + 1]), **more})
                 for index, more in enumerate(({}, {CUSTOM_OPTIONS: Vector(np.uint8, list(options))}))]
    model = Table({schema.MODEL_VERSION: Scalar("I", schema.SCHEMA_VERSION),
                   schema.MODEL_OPERATOR_CODES: TableVector(codes),
                   schema.MODEL_SUBGRAPHS: TableVector([Table({
                       schema.SUBGRAPH_TENSORS: TableVector(tensors),
                       schema.SUBGRAPH_INPUTS: Vector(np.int32, [0]),
                       schema.SUBGRAPH_OUTPUTS: Vector(np.int32, [2]),
                       schema.SUBGRAPH_OPERATORS: TableVector(operators)})]),
                   schema.MODEL_BUFFERS: TableVector([Table({})])})
    return encode(model, schema.FILE_IDENTIFIER, schema.BUFFER_ALIGNMENT)[0]


class VendorDelegateTest(DataTest):
    def environment(self, library, options, **fields):
        """Variables with which there is the device npu."""
        manifest = {"name": "npu", "needs": {"code": True},
                    "delegate": {"library": str(library), "options": options, **fields}}
        (self.folder / "npu.json").write_text(json.dumps(manifest), encoding="utf-8")
        return {**STORELESS, "HEARTH_DRIVER_PATH": str(self.folder)}

    def outputs(self, model, *options, env):
        """The output files of a run with the same random inputs each time."""
        results = self.folder / "results"
        shutil.rmtree(results, ignore_errors=True)
        self.succeed("run", model, "--random-input", 1, "--output-dir", results, *options, env=env)
        return {path.name: path.read_bytes() for path in results.iterdir()}

    def testDevicesShowLibraryOptionsAndHost(self):
        env = self.environment(OWN_DELEGATE, {"device": "hearth-cpu"})
        devices = self.json("devices", env=env)["devices"]
        npu = next(device for device in devices if device["name"] == "npu")
        self.assertRegex(npu["version"], r"^libhearth_delegate\.so [0-9a-f]{12} device=hearth-cpu$")
        self.assertEqual(npu["host"]["kind"], "spawned")
        self.assertEqual(npu["type"], "accelerator")

    def testResultsAreThoseOfTheCpu(self):
        env = self.environment(OWN_DELEGATE, {"device": "hearth-cpu"}, tflite="2.14")
        for model in [*map(self.model, MODELS), *RECURRENT, *CONVERTED]:
            with self.subTest(model.stem):
                self.assertEqual(self.outputs(model, "--device", "npu", env=env),
                                 self.outputs(model, "--device", "hearth-cpu", env=env))

    def testCustomOperationsGoToTheDeviceThatNamesThem(self):
        model = self.folder / "custom.tflite"
        model.write_bytes(customModel("vendor-times", [5]))
        env = self.environment(TEST_DELEGATE, {"take": ",32,"})
        self.assertIn("names it in its manifest", self.refuse(1, "run", model, "--random-input", 1, env=env))
        manifest = json.loads((self.folder / "npu.json").read_text(encoding="utf-8"))
        manifest["custom_operators"] = ["vendor-times"]
        (self.folder / "npu.json").write_text(json.dumps(manifest), encoding="utf-8")
        x = np.asarray([[1, -2, 3], [-4, 5, 6]], np.float32)
        np.save(self.folder / "x.npy", x)
        self.succeed("run", model, "--input", self.folder / "x.npy", "--output-dir", self.folder, env=env)
        np.testing.assert_array_equal(np.load(self.folder / "output_0.npy"), np.maximum(x, 0) * 5)
        operations = self.json("inspect", model, env=env)["signatures"][0]["operations"]
        taken = {device["device"]: device["supported"] for device in operations[1]["devices"]}
        self.assertEqual(taken, {"hearth-cpu": False, "npu": True, "nnapi-reference": False})
        self.assertIn("Only a device", self.hearth("run", model, "--random-input", 1, "--device", "hearth-cpu",
                                                   env=env).stderr)

    def testModelsThatAreDividedGiveTheResultsOfTheCpu(self):
        env = {**self.environment(OWN_DELEGATE, {"device": "hearth-cpu"}), "HEARTH_LOG": "warning"}
        for model in sorted(COMPATIBILITY.glob("*.tflite")):
            with self.subTest(model.stem):
                results = self.folder / model.stem
                run = self.hearth("run", model, "--random-input", 1, "--output-dir", results, env=env)
                self.assertEqual(run.returncode, 0, run.stderr)
                # No part fails there, which the CPU would then compute.
                self.assertNotRegex(run.stderr, "computed again|goes to|ended")
                given = {path.name: path.read_bytes() for path in results.iterdir()}
                self.assertTrue(given)
                self.assertEqual(given, self.outputs(model, env=STORELESS))

    def probe(self, library, *arguments):
        return self.json("devices", "--probe", library, *arguments, env=STORELESS)

    def testItIsTakenWhereNoDeviceIsNamed(self):
        env = self.environment(OWN_DELEGATE, {"device": "hearth-cpu"})
        self.assertEqual(self.json("bench", self.model("person_detect"), "--repeat", 1, env=env)["device"], "npu")

    def testAProbeShowsWhatADelegateMakesOfAModel(self):
        report = self.probe(OWN_DELEGATE, self.model("person_detect"), "--option", "device=hearth-cpu",
                            "--variable", "A=b", "--tflite", "2.14")
        operations = report["operations"]
        self.assertEqual(operations["taken"], operations["count"])
        self.assertGreater(operations["count"], 20)
        self.assertEqual(report["devices"], "hearth-delegate")
        self.assertEqual(report["results"], {"different_elements": 0, "greatest_difference": 0})
        for times in (report["ready_ms"], report["run_ms"]):
            self.assertEqual(set(times), {"delegate", "cpu"})
        # The manifest makes the device that was tried.
        (self.folder / "npu.json").write_text(json.dumps(report["manifest"]), encoding="utf-8")
        devices = self.json("devices", env={**STORELESS, "HEARTH_DRIVER_PATH": str(self.folder)})["devices"]
        self.assertIn((report["device"], report["version"]), [(each["name"], each["version"]) for each in devices])

    def testAProbeTakesTheDefaultsOfUnknownShapes(self):
        report = self.probe(OWN_DELEGATE, COMPATIBILITY / "conv-3x3-same-open-batch-dynamic.tflite",
                            "--option", "device=hearth-cpu")
        self.assertEqual(report["devices"], "hearth-delegate")
        self.assertEqual(report["results"]["different_elements"], 0)

    def testAProbeNamesWhatIsNotTaken(self):
        text = self.succeed("devices", "--probe", OWN_DELEGATE, CORPUS / "spectrum.tflite", env=STORELESS)
        self.assertRegex(text, r"it takes \d+ of \d+\n +not \d+ [A-Z_0-9]+: TensorFlow Lite has no")

    def testAProbeOfALibraryThatDoesHarmIsAnError(self):
        self.assertRegex(self.refuse(2, "devices", "--probe", "/usr/lib/libnone.so"), "There is no library")
        for stage in ("prepare", "invoke"):
            with self.subTest(stage):
                self.assertIn("host", self.refuse(1, "devices", "--probe", TEST_DELEGATE, self.model("person_detect"),
                                                  "--option", f"stage={stage}", "--option", "harm=crash",
                                                  env=STORELESS))

    def testTheDriverSuiteTakesItsManifest(self):
        env = self.environment(OWN_DELEGATE, {})
        run = subprocess.run([DRIVER_SUITE, self.folder / "npu.json", "--gtest_filter=*HalExecution*"],
                             env=env, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("The device npu, version libhearth_delegate.so", run.stdout)
        self.assertRegex(run.stdout, r"PASSED  \] [1-9]")

    def testAHostThatEndsLeavesTheModelToTheCpu(self):
        right = self.outputs(self.model("person_detect"), "--device", "hearth-cpu", env=STORELESS)
        for stage in ("load", "create", "prepare", "init", "kernel", "invoke", "free", "destroy"):
            with self.subTest(stage):
                env = self.environment(TEST_DELEGATE, {"stage": stage, "harm": "crash"},
                                       variables={"VENDOR_LOAD": "crash" if stage == "load" else ""})
                self.assertEqual(self.outputs(self.model("person_detect"), env=env), right)

    def testWhatALibraryPrintsIsNotOnStandardOutput(self):
        env = self.environment(TEST_DELEGATE, {"habit": "print"})
        run = self.hearth("run", self.model("person_detect"), "--random-input", 1, "--json", env=env)
        self.assertIn("vendor: invoke\n", run.stderr)
        self.assertIn("outputs", json.loads(run.stdout))

    def serve(self, env):
        """A host of npu for all clients, and the variables of these."""
        socket = self.folder / "npu.sock"
        host = subprocess.Popen([HEARTH, "serve", "--manifest", self.folder / "npu.json", "--socket", socket], env=env)
        self.addCleanup(host.wait)
        self.addCleanup(host.kill)
        clients = {**env, "HEARTH_DRIVER_HOSTS": f"npu={socket}"}
        for _ in range(600):
            devices = self.hearth("devices", "--json", env=clients)
            if devices.returncode == 0 and '"npu"' in devices.stdout:
                return host, clients
            self.assertIsNone(host.poll())
            time.sleep(0.05)
        self.fail("The host does not listen.")

    def testClientsGoOnWhenTheirHostIsKilled(self):
        model = self.model("person_detect")
        right = self.outputs(model, "--device", "hearth-cpu", env=STORELESS)
        env = self.environment(OWN_DELEGATE, {"device": "hearth-cpu"})
        host, clients = self.serve(env)
        self.assertEqual(self.outputs(model, "--device", "npu", env=clients), right)
        # A client that names no device computes on, and so does another one that comes meanwhile.
        running = subprocess.Popen([HEARTH, "bench", model, "--repeat", "10000", "--json"], env=clients,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.kill)
        for _ in range(600):
            if self.hostOf(clients)["clients"] >= 2:  # with the one that asks
                break
        else:
            self.fail("The client does not use the host.")
        host.kill()
        host.wait()
        self.assertEqual(self.outputs(model, env=clients), right)
        # Both kinds of clients find the next host, and so does the one that goes on.
        (self.folder / "npu.sock").unlink(missing_ok=True)
        _, clients = self.serve(env)
        for options in (("--device", "npu"), ()):
            self.assertEqual(self.outputs(model, *options, env=clients), right)
        output, errors = running.communicate(timeout=120)
        self.assertEqual(running.returncode, 0, errors)
        self.assertEqual(json.loads(output)["inference_ms"]["runs"], 10000)

    def hostOf(self, env):
        devices = self.json("devices", env=env)["devices"]
        return next(device for device in devices if device["name"] == "npu")["host"]

    def testALibraryThatDoesNotReturnIsGivenUp(self):
        right = self.outputs(self.model("person_detect"), "--device", "hearth-cpu", env=STORELESS)
        env = self.environment(TEST_DELEGATE, {"stage": "prepare", "harm": "hang"}, prepare_seconds=1)
        self.assertEqual(self.outputs(self.model("person_detect"), env=env), right)

    def testALongestStepEndsAComputationThatHangs(self):
        # Its host answers the pulse, so that it would be waited for without that, and the CPU computes instead.
        env = {**self.environment(TEST_DELEGATE, {"stage": "numbers", "harm": "hang", "take": ",0,"}),
               "HEARTH_LOG": "warning", "PYTHONPATH": str(BUILD / "python")}
        model = COMPATIBILITY / "resnet-float32.tflite"
        program = ("import hearth, numpy, sys\n"
                   "compiled = hearth.Model(sys.argv[1]).compile(longest_step=0.5)\n"
                   "compiled.run(numpy.ones(compiled.inputs[0].shape, numpy.float32))\n")
        for command in ([HEARTH, "run", model, "--random-input", "1", "--longest-step", "0.5"],
                        [sys.executable, "-c", program, model]):
            with self.subTest(command[0]):
                run = subprocess.run(command, env=env, check=True, capture_output=True, text=True, timeout=300)
                self.assertRegex(run.stderr, "The host of the device npu hangs: .* has begun no step")


if __name__ == "__main__":
    unittest.main()
