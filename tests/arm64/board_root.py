# SPDX-License-Identifier: Apache-2.0
"""A Debian system for ARM64 in a folder, whose programs qemu-user runs, and what each way to install Hearth in one
has to pass."""

import json
import pathlib
import shutil
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "packages"), str(HERE.parent / "cli")]

import numpy as np  # noqa: E402

from command import DATA, ROOT  # noqa: E402
from fresh_root import USER, FreshRoot  # noqa: E402

import golden_session  # noqa: E402
from arm64_tests import LAUNCHER, PROCESSORS  # noqa: E402

ARCHITECTURE = "arm64"
EMULATE = (ROOT / LAUNCHER[0], "--all-users")
# As which most programs run.
PROCESSOR = "cortex-a76"
# Of unsigned and of signed numbers, with states, with several inputs and outputs.
MODELS = ("mobilenet_v1_0.25_128_quant", "person_detect", "micro_speech_quantized", "dtln_noise_suppression",
          "split_concat")
# Has weights that are packed.
STORED = "mobilenet_v1_0.25_128_quant"
PICTURE = "digit_3.png"


class BoardRoot(FreshRoot):
    """Has models, golden inputs and outputs in /src/data, and digits in /src/models/digits as the checkout does."""

    def __init__(self, folder, release=None):
        if not DATA:
            raise unittest.SkipTest("HEARTH_TEST_DATA is not set.")
        super().__init__(folder, release, ARCHITECTURE, EMULATE)
        self.path("/src/data/models").mkdir(parents=True)
        shutil.copy(golden_session.__file__, self.path("/src"))
        for name in ("debian/tests", "models/digits"):
            shutil.copytree(ROOT / name, self.path(f"/src/{name}"))
        data = pathlib.Path(DATA) / "data"
        for name in MODELS:
            shutil.copy(data / "models" / f"{name}.tflite", self.path("/src/data/models"))
            shutil.copytree(data / "golden" / name, self.path(f"/src/data/golden/{name}"))

    def entering(self, command, user, folder, variables):
        return super().entering(command, user, folder, {"QEMU_CPU": PROCESSOR, **variables})


class InstalledHearth:
    """Tests of what is installed in `root`: HEARTH is the command and PYTHON has the package."""

    root = HEARTH = PYTHON = None

    @classmethod
    def succeed(cls, *command, processor=PROCESSOR, **variables):
        """The output of a user's command."""
        return cls.root.succeed(*command, user=USER, folder="/src", QEMU_CPU=processor, **variables)

    def testTheCommandGivesTheGoldenOutputsAsEachProcessor(self):
        for processor in PROCESSORS:
            for name in MODELS:
                with self.subTest(f"{processor}, {name}"):
                    given = self.root.path(f"/src/data/golden/{name}")
                    inputs = sorted(f"data/golden/{name}/{path.name}" for path in given.glob("input_?.npy"))
                    folder = f"/home/user/{processor}-{name}"
                    self.succeed(self.HEARTH, "run", f"data/models/{name}.tflite", "--input", *inputs,
                                 "--output-dir", folder, "--device", "hearth-cpu", processor=processor)
                    golden = golden_session.goldenOutputs(given)
                    self.assertTrue(golden)
                    self.assertEqual(len(list(self.root.path(folder).iterdir())), len(golden))
                    for i, wanted in enumerate(golden):
                        np.testing.assert_array_equal(
                            np.load(self.root.path(f"{folder}/output_{i}.npy")), wanted, strict=True)

    def testPythonGivesTheGoldenOutputs(self):
        shown = self.succeed(self.PYTHON, "golden_session.py", "hearth", *MODELS)
        self.assertEqual(shown.split(), list(MODELS))

    def testProgramsForTensorFlowLiteGiveTheGoldenOutputs(self):
        shown = self.succeed(self.PYTHON, "-m", "hearth.tflite", "golden_session.py", "tflite", *MODELS)
        self.assertEqual(shown.split(), list(MODELS))
        # Also with the C library.
        self.succeed(self.PYTHON, "debian/tests/tflite", AUTOPKGTEST_TMP="/home/user/tflite")

    def testLaterStartsAreWarm(self):
        store = "/home/user/kept"
        path = f"data/models/{STORED}.tflite"

        def start():
            shown = self.succeed(self.HEARTH, "bench", path, "--repeat", "0", "--json", HEARTH_STORE=store)
            return json.loads(shown)["start"]

        first, second = start(), start()
        self.assertEqual((first["state"], second["state"]), ("cold", "warm"), second["reason"])
        self.assertGreater(first["packed_bytes"], 0)
        self.assertEqual(second["packed_bytes"], 0)
        shown = self.succeed(self.PYTHON, "-c", "import hearth, sys\n"
                             "print(hearth.Model(sys.argv[1]).compile().start_report['state'])", path,
                             HEARTH_STORE=store)
        self.assertEqual(shown.strip(), "warm")
        listed = json.loads(self.succeed(self.HEARTH, "cache", "ls", "--json", HEARTH_STORE=store))
        [plan] = [plan for plan in listed["plans"] if plan["segments"]]
        self.assertEqual(plan["model"], f"{STORED}.tflite")
        self.assertRegex(plan["details"], f"^packed for {ARCHITECTURE} ")
