# SPDX-License-Identifier: Apache-2.0
"""The command ends with exit code 1 or 2 and one sentence, whatever input it is given."""

import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np

from command import HEARTH, ROOT, CommandTest, DataTest


class UsageTest(CommandTest):
    def testKnowsItself(self):
        self.assertRegex(self.succeed("--version"), r"^hearth \d+\.\d+\.\d+")
        for command in ((), ("run",), ("bench",), ("inspect",), ("devices",), ("cache",),
                        ("cache", "ls"), ("cache", "prune")):
            self.assertIn("--help", self.succeed(*command, "--help"))

    def testRefusesWrongCommandLines(self):
        for arguments in (
                ("fly",), ("run",), ("--no-such-option",),
                ("run", "m.tflite", "--no-such-option"),
                ("run", "m.tflite", "--threads", "-1"), ("run", "m.tflite", "--threads", "many"),
                ("run", "m.tflite", "--repeat", "-1"), ("run", "m.tflite", "--top", "-1"),
                ("run", "m.tflite", "--random-input", "x"),
                ("run", "m.tflite", "--random-input", "1", "--input", "a.npy"),
                ("run", "m.tflite", "--timeout", "0"), ("run", "m.tflite", "--timeout", "nan"),
                ("run", "m.tflite", "--max-activation-bytes", "0"),
                ("run", "m.tflite", "--max-activation-bytes", "1Q"),
                ("run", "m.tflite", "--longest-step", "0"),
                ("run", "m.tflite", "--longest-step", "x"),
                ("run", "m.tflite", "--mean", "1,2,3"),
                ("run", "m.tflite", "--mean", "1,2,3", "--std", "1,0,1"),
                ("run", "m.tflite", "--mean", "1,2", "--std", "1,1"),
                ("run", "m.tflite", "--mean", "1,nan,1", "--std", "1,1,1"),
                ("inspect",), ("devices", "x")):
            self.refuse(2, *arguments)

    def testWithoutACommandShowsTheHelp(self):
        for command in ((), ("cache",)):
            self.assertEqual(self.succeed(*command), self.succeed(*command, "--help"))

    def testNamesTheCommandThatWasProbablyMeant(self):
        self.assertIn("Did you mean hearth inspect?", self.refuse(2, "isnpect", "m.tflite"))
        self.assertIn("Did you mean hearth cache prune?", self.refuse(2, "cache", "purne"))
        self.assertNotIn("Did you mean", self.refuse(2, "fly"))

    def testListsDevices(self):
        names = [one["name"] for one in self.json("devices")["devices"]]
        self.assertEqual(names[0], "hearth-cpu")
        self.assertEqual(names[-1], "nnapi-reference")
        self.assertIn("hearth-cpu", self.succeed("devices"))

    def testReportsLostOutput(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            run = subprocess.run([HEARTH, "devices"], stdout=full, stderr=subprocess.PIPE,
                                 text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("Standard output", run.stderr)


class BadModelTest(CommandTest):
    def testRefusesWhatIsNoModel(self):
        empty = self.folder / "empty.tflite"
        empty.touch()
        garbage = self.folder / "garbage.tflite"
        garbage.write_bytes(bytes(range(256)) * 40)
        pipe = self.folder / "pipe.tflite"
        os.mkfifo(pipe)
        for path in (empty, garbage, pipe, self.folder, self.folder / "none.tflite"):
            for command in (("inspect",), ("run", "--random-input", 1), ("bench",)):
                self.assertIn(path.name, self.refuse(1, command[0], path, *command[1:], timeout=60))


    def testSaysInOneLineWhatNnapiLacks(self):
        # NNAPI's functions log the reason and return a code. NNAPI's SVDF takes floats only.
        model = ROOT / "tests" / "corpus" / "model_file_fuzz" / "svdf_int8.tflite"
        sentence = self.refuse(1, "bench", model, "--api", "nnapi")
        self.assertIn("SVDF takes floating-point tensors", sentence)
        self.succeed("bench", model, "--repeat", 1)


class BadInputTest(DataTest):
    def setUp(self):
        super().setUp()
        self.person = self.model("person_detect")
        self.picture = self.data("images/person.bmp")

    def save(self, name, array):
        np.save(self.folder / name, array)
        return self.folder / name

    def testRefusesTruncatedModels(self):
        whole = self.person.read_bytes()
        part = self.folder / "part.tflite"
        for size in (1, 7, 8, 100, 1000, len(whole) // 2, len(whole) - 10_000):
            part.write_bytes(whole[:size])
            for command in (("inspect",), ("run", "--random-input", 1)):
                run = self.hearth(command[0], part, *command[1:])
                self.assertIn(run.returncode, (0, 1), run.stderr)
                if size < 1000:
                    self.assertEqual(run.returncode, 1)

    def testRefusesModelsWithNanScale(self):
        whole = bytearray(self.person.read_bytes())
        scale = np.float32(0.00784313772).tobytes()
        at = whole.find(scale)
        self.assertGreater(at, 0)
        count = 0
        while at >= 0:
            whole[at:at + 4] = np.float32("nan").tobytes()
            at = whole.find(scale)
            count += 1
        self.assertGreater(count, 0)
        path = self.folder / "nan.tflite"
        path.write_bytes(whole)
        self.assertIn("scale", self.refuse(1, "run", path, "--random-input", 1).lower())

    def testRefusesWrongInputCounts(self):
        self.assertIn("takes 1 input", self.refuse(2, "run", self.person))
        self.assertIn("2 are given", self.refuse(2, "run", self.person, "--input", self.picture,
                                                 self.picture))

    def testRefusesWrongShapesAndTypes(self):
        good = np.zeros((1, 96, 96, 1), np.int8)
        self.json("run", self.person, "--input", self.save("good.npy", good))
        self.assertIn("[1,96,96]", self.refuse(1, "run", self.person, "--input",
                                               self.save("shape.npy", good[..., 0])))
        self.assertIn("float32", self.refuse(1, "run", self.person, "--input",
                                             self.save("type.npy", good.astype(np.float32))))
        raw = self.folder / "raw.bin"
        raw.write_bytes(b"x" * 96 * 95)
        self.assertIn("9120 bytes", self.refuse(1, "run", self.person, "--input", raw))
        sound = self.data("audio/yes_1000ms.wav")
        self.assertIn("Sound", self.refuse(1, "run", self.person, "--input", sound))

    def testRefusesUnreadableInputs(self):
        for name, content in (("a.png", b"\x89PNG\r\n\x1a\n" + b"x" * 50), ("a.jpg", b"\xff\xd8x"),
                              ("a.bmp", b"BM"), ("a.npy", b"\x93NUMPY\x01\x00\xff\xff{"),
                              ("a.wav", b"RIFF"), ("empty.png", b"")):
            path = self.folder / name
            path.write_bytes(content)
            self.assertIn(name, self.refuse(1, "run", self.person, "--input", path))
        self.assertIn("none.png",
                      self.refuse(1, "run", self.person, "--input", self.folder / "none.png"))

    def testRefusesUnknownNames(self):
        sentence = self.refuse(2, "run", self.person, "--input", self.picture, "--device", "warp")
        self.assertIn("warp", sentence)
        self.assertIn("hearth-cpu", sentence)
        self.assertIn("nope", self.refuse(2, "run", self.person, "--input", self.picture,
                                          "--signature", "nope"))

    def testRefusesFoldersThatCannotBeWritten(self):
        blocker = self.folder / "file"
        blocker.touch()
        for folder in (blocker, blocker / "below", "/proc/hearth"):
            self.assertIn(str(folder), self.refuse(1, "run", self.person, "--input", self.picture,
                                                   "--output-dir", folder))
        self.refuse(1, "run", self.person, "--input", self.picture, "--labels",
                    self.folder / "none.txt")

    def testRefusesAnOverlayOfNoMap(self):
        self.assertIn("overlay", self.refuse(1, "run", self.person, "--input", self.picture,
                                             "--overlay", self.folder / "o.png"))

    def testRefusesActivationsAboveTheLimit(self):
        sentence = self.refuse(1, "run", self.person, "--input", self.picture,
                               "--max-activation-bytes", "9000")
        self.assertIn("9216 bytes", sentence)
        self.assertIn("9000", sentence)
        self.refuse(1, "run", self.person, "--input", self.picture, "--max-activation-bytes", "40K")
        self.json("run", self.person, "--input", self.picture, "--max-activation-bytes", "1G")

    def testEndsInTime(self):
        sentence = self.refuse(1, "bench", self.model("deeplabv3_mnv2_pascal_quant"), "--repeat",
                               1_000_000, "--timeout", "1.5", timeout=60)
        self.assertIn("time limit of 1.5 s", sentence)
        self.json("run", self.person, "--input", self.picture, "--timeout", 100)


if __name__ == "__main__":
    unittest.main()
