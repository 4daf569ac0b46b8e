# SPDX-License-Identifier: Apache-2.0
"""Support libraries of NNAPI as devices, with Hearth's own libneuralnetworks.so as the first one."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np

from command import DATA, HEARTH, ROOT, CommandTest

MODELS = ROOT / "models"
LIBRARY = pathlib.Path(HEARTH).parents[1] / "lib" / "libneuralnetworks.so"
INNER = {"inner-cpu": "hearth-cpu", "inner-reference": "nnapi-reference"}


class SupportLibraryTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.drivers = self.folder / "drivers"
        self.drivers.mkdir()
        self.variables = {**os.environ, "HEARTH_STORE": str(self.folder / "store"),
                          "XDG_STATE_HOME": str(self.folder / "state"),
                          "HEARTH_DRIVER_PATH": str(self.drivers)}
        for name, device in INNER.items():
            self.manifest(name, device=device)

    def manifest(self, name, **fields):
        text = json.dumps({"name": name, "library": str(LIBRARY), "support_library": True, **fields})
        (self.drivers / f"{name}.json").write_text(text, encoding="utf-8")

    def outputs(self, model, device):
        folder = self.folder / f"{model.stem}-{device}"
        folder.mkdir()
        self.succeed("run", model, "--random-input", "7", "--device", device, "--output-dir", folder,
                     env=self.variables)
        return [np.load(file) for file in sorted(folder.glob("*.npy"))]

    def testItsDevicesStandInHostsAndFindNoOthers(self):
        devices = {each["name"]: each for each in self.json("devices", env=self.variables)["devices"]}
        self.assertEqual(set(devices), {"hearth-cpu", "nnapi-reference", *INNER})
        for name in INNER:
            self.assertEqual(devices[name]["host"]["kind"], "spawned")
            self.assertEqual(devices[name]["type"], "cpu")
            self.assertEqual(devices[name]["feature_level"], devices["hearth-cpu"]["feature_level"])
            self.assertEqual(devices[name]["extensions"], "hearth.tflite")

    def testResultsAreThoseOfTheDeviceInside(self):
        models = [MODELS / "digits" / "digits.tflite"]
        if DATA:
            models += [pathlib.Path(DATA) / "data" / "models" / f"{name}.tflite"
                       for name in ("person_detect", "keras_lstm_mnist_ptq", "split_concat")]
        for model in models:
            for outer, inner in INNER.items():
                with self.subTest(model=model.name, device=outer):
                    for made, expected in zip(self.outputs(model, outer), self.outputs(model, inner),
                                              strict=True):
                        np.testing.assert_array_equal(made, expected)

    def testAProcessStartsFromTheLibrarysCache(self):
        def start(token):
            return self.json("bench", MODELS / "digits" / "digits.tflite", "--api", "nnapi", "--repeat", "0",
                             "--device", "inner-cpu", "--cache-dir", self.folder, "--token", token * 32,
                             env=self.variables)

        first, second, other = start("5a"), start("5a"), start("5b")
        self.assertIn("support library", first["start"]["reason"])
        self.assertNotEqual(first["start"]["cache"], "hit")
        self.assertEqual(second["start"]["cache"], "hit")
        self.assertNotEqual(other["start"]["cache"], "hit")
        self.assertEqual({each["outputs_sha256"] for each in (first, second, other)}, {first["outputs_sha256"]})

    def testASampleOfNnapisVectorsIsRight(self):
        if not DATA:
            self.skipTest("HEARTH_TEST_DATA is not set.")
        vectors = sorted((pathlib.Path(DATA) / "conformance").glob("*.nntv"))
        for name in INNER:
            for operation in ("SVDF", "WHILE", "GATHER"):
                run = self.hearth("conformance", *vectors, "--device", name, "--filter", operation,
                                  env=self.variables)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertRegex(run.stdout.splitlines()[-1], r"^[1-9]\d* passed, 0 failed$")

    def testWhatIsWrongIsSaid(self):
        for name, fields, message in [
                ("several", {}, "has 2 devices (hearth-cpu, nnapi-reference)"),
                ("unknown", {"device": "npu"}, "has no device npu; there are: hearth-cpu"),
                ("other", {"library": str(LIBRARY.parent / "libhearth.so")},
                 "does not export ANeuralNetworks_getSLDriverImpl"),
                ("native", {"support_library": False, "api_version": 6},
                 'add "support_library": true')]:
            self.manifest(name, **fields)
            run = self.hearth("devices", env=self.variables)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertNotIn(f"  {name} ", run.stdout)
            self.assertIn(message, run.stderr)
            (self.drivers / f"{name}.json").unlink()


if __name__ == "__main__":
    unittest.main()
