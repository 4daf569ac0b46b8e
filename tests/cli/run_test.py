# SPDX-License-Identifier: Apache-2.0
"""`hearth run` and `hearth bench` on real models: results, files and the keys of docs/cli.md."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np
from PIL import Image

from command import HEARTH, DataTest

KEYS = {"model", "part", "device", "start", "inference_ms", "memory", "outputs", "top",
        "segments", "detections", "key_points", "frames", "overlay", "notes"}
DEVICES = ("hearth-cpu", "nnapi-reference")


class RunTest(DataTest):
    def testRecognisesTheCat(self):
        for device in DEVICES:
            result = self.json(
                "run", self.model("mobilenet_v1_0.25_128_quant"), "--input",
                self.data("images/cat.bmp"), "--labels", self.data("labels/imagenet_labels.txt"),
                "--top", 5, "--device", device)
            self.assertEqual(result["device"], device)
            self.assertEqual(len(result["top"]), 5)
            self.assertEqual(result["top"][0]["index"], 286)
            self.assertEqual(result["top"][0]["label"], "Egyptian cat")
            scores = [one["score"] for one in result["top"]]
            self.assertEqual(scores, sorted(scores, reverse=True))
            self.assertLess(scores[0], 1)

    def testTakesAnotherShape(self):
        model = self.model("mobilenet_v1_0.25_128_quant")
        for given in ("input=3,128,128,3", "3,128,128,3"):
            result = self.json("run", model, "--random-input", 1, "--shape", given)
            self.assertEqual(result["outputs"][0]["shape"], [3, 1001])
        for given, code, text in (("imge=3,128,128,3", 2, '"input"'), ("input=3,128", 1, "has 4"),
                                  ("input=3,0,128,3", 2, "NAME=N"),
                                  ("input=1,256,256,3", 1, "RESHAPE")):
            run = self.hearth("run", model, "--random-input", 1, "--shape", given)
            self.assertEqual(run.returncode, code, run.stderr)
            self.assertIn(text, run.stderr)

    def testInspectsAnotherShape(self):
        model = self.model("mobilenet_v1_0.25_128_quant")
        signature = self.json("inspect", model, "--shape", "input=3,128,128,3")["signatures"][0]
        self.assertEqual(signature["inputs"][0]["shape"], [3, 128, 128, 3])
        self.assertEqual(signature["outputs"][0]["shape"], [3, 1001])
        self.assertIn("[3,1001]", self.succeed("inspect", model, "--shape", "3,128,128,3"))
        self.assertIn("no input", self.refuse(2, "inspect", model, "--shape", "imge=3,128,128,3"))
        self.assertIn("NAME=N", self.refuse(2, "inspect", model, "--shape", "input=3,0"))
        self.assertIn("RESHAPE", self.refuse(1, "inspect", model, "--shape", "1,256,256,3"))

    def testTakesAndShowsStrings(self):
        model = pathlib.Path(__file__).resolve().parents[1] / "corpus/model_file_fuzz/strings.tflite"
        self.assertIn("STRING", self.hearth("inspect", model).stdout.upper())
        text = self.folder / "text"
        text.write_text("a \u00e9 c\n")
        for given in ("a \u00e9 c", f"@{text}"):
            result = self.json("run", model, "--input", given, "--output-dir", self.folder / "out")
            words, numbers, size, _ = result["outputs"]
            self.assertEqual((words["type"], words["shape"], words["first"], words["range"]),
                             ("string", [1, 3], ["a", "\u00e9", "c"], None))
            self.assertEqual((numbers["first"], size["first"]), ([10, -1, 30], [3]))
            self.assertEqual(pathlib.Path(words["file"]).name, "output_0.txt")
            self.assertEqual(pathlib.Path(words["file"]).read_text(), "a\n\u00e9\nc\n")
        self.assertIn('"b", "c"', self.hearth("run", model, "--input", "b c").stdout)
        self.assertIn("never random", self.refuse(2, "run", model, "--random-input", 1))

    def testShowsWhatStandsForUnknownDimensions(self):
        models = pathlib.Path(__file__).resolve().parents[1] / "compatibility" / "models"
        model = models / "conv-3x3-same-open-batch-dynamic.tflite"
        self.assertIn("[?=1,12,12,4]", self.hearth("inspect", model).stdout)
        result = self.json("run", model, "--random-input", 1, "--shape", "3,12,12,4")
        self.assertEqual(result["outputs"][0]["shape"], [3, 12, 12, 8])

    def testNormalizesAndShiftsLabels(self):
        # There are 1000 classes, but the list begins with a background class.
        result = self.json(
            "run", self.model("mobilenet_v2_quantized_1x3x224x224"), "--input",
            self.data("images/cat.bmp"), "--labels", self.data("labels/imagenet_labels.txt"),
            "--mean", "123.675,116.28,103.53", "--std", "58.395,57.12,57.375")
        self.assertEqual(result["top"][0]["index"], 285)
        self.assertEqual(result["top"][0]["label"], "Egyptian cat")

    def testHasTheDocumentedKeys(self):
        for command, runs in (("run", 0), ("bench", 20)):
            result = self.json(command, self.model("person_detect"), "--input",
                               self.data("images/person.bmp"))
            self.assertEqual(set(result), KEYS)
            self.assertEqual(result["model"], str(self.model("person_detect")))
            start = result["start"]
            self.assertIn(start["state"], ("cold", "warm", "uncached"))
            self.assertIsInstance(start["reason"], str)
            self.assertGreater(start["prepare_ms"], 0)
            for key in ("packed_bytes", "mapped_bytes"):
                self.assertIsInstance(start[key], int)
            times = result["inference_ms"]
            self.assertGreater(times["first"], 0)
            self.assertGreaterEqual(times["first_result"], times["first"])
            self.assertEqual(times["runs"], runs)
            for key in ("p50", "p90", "p99"):
                if runs:
                    self.assertGreater(times[key], 0)
                else:
                    self.assertIsNone(times[key])
            for key in ("start_peak_rss_kib", "peak_rss_kib", "anonymous_rss_kib", "pss_kib", "activation_bytes"):
                self.assertGreater(result["memory"][key], 0, key)
            output = result["outputs"][0]
            self.assertEqual(output["shape"], [1, 2])
            self.assertEqual(output["type"], "int8")
            self.assertIsNone(output["file"])

    def testWritesOutputsInTheFilesType(self):
        golden = self.data("golden/split_concat")
        inputs = [golden / f"input_{i}.npy" for i in range(3)]
        out = self.folder / "made" / "here"
        for device in DEVICES:
            result = self.json("run", self.model("split_concat"), "--input", *inputs,
                               "--output-dir", out, "--device", device)
            self.assertEqual([one["file"] for one in result["outputs"]],
                             [str(out / f"output_{i}.npy") for i in range(5)])
            for i in range(5):
                got = np.load(out / f"output_{i}.npy")
                expected = np.load(golden / f"output_{i}.npy")
                self.assertEqual(got.dtype, expected.dtype)
                np.testing.assert_array_equal(got, expected)

    def testOutputsAreThoseOfTheLastRun(self):
        golden = self.data("golden/keras_lstm_mnist_ptq")
        arguments = ("run", self.model("keras_lstm_mnist_ptq"), "--input",
                     golden / "input_0.npy", "--output-dir", self.folder)
        self.json(*arguments, "--repeat", 1)
        second = np.load(self.folder / "output_0.npy").astype(int)
        expected = np.load(golden / "output_0.step2.npy").astype(int)
        self.assertLessEqual(abs(second - expected).max(), 1)

    def testDrawsTheSegments(self):
        picture = self.data("images/bird.bmp")
        result = self.json("run", self.model("deeplabv3_mnv2_pascal_quant"), "--input", picture,
                           "--labels", self.data("labels/pascal_voc_segmentation_labels.txt"),
                           "--output-dir", self.folder)
        self.assertEqual(result["overlay"], str(self.folder / "overlay.png"))
        self.assertEqual([one["label"] for one in result["segments"]][:2], ["background", "bird"])
        self.assertEqual(sum(one["pixels"] for one in result["segments"]), 513 * 513)
        original = np.asarray(Image.open(picture).convert("RGB")).astype(int)
        overlay = np.asarray(Image.open(self.folder / "overlay.png")).astype(int)
        self.assertEqual(overlay.shape, original.shape)
        changed = (overlay != original).any(axis=2).mean()
        self.assertAlmostEqual(changed, result["segments"][1]["pixels"] / 513 ** 2, delta=0.02)

    def testRandomInputsAreTheSameForASeed(self):
        outputs = []
        for seed in (7, 7, 8):
            self.json("run", self.model("mobilenet_v1_0.25_128_quant"), "--random-input", seed,
                      "--output-dir", self.folder)
            outputs.append((self.folder / "output_0.npy").read_bytes())
        self.assertEqual(outputs[0], outputs[1])
        self.assertNotEqual(outputs[0], outputs[2])

    def testReadsPngAndRaw(self):
        picture = Image.open(self.data("images/person.bmp")).convert("L")
        picture.save(self.folder / "person.png")
        pixels = (np.asarray(picture).astype(int) - 128).astype(np.int8)
        (self.folder / "person.bin").write_bytes(pixels.tobytes())
        tops = [self.json("run", self.model("person_detect"), "--input", path)["top"]
                for path in (self.data("images/person.bmp"), self.folder / "person.png",
                             self.folder / "person.bin")]
        self.assertEqual(tops[0], tops[1])
        self.assertEqual(tops[0], tops[2])

    def testSpeaksToPeople(self):
        text = self.succeed("run", self.model("mobilenet_v1_0.25_128_quant"), "--input",
                            self.data("images/cat.bmp"), "--labels",
                            self.data("labels/imagenet_labels.txt"))
        for part in ("Egyptian cat", "inference", "first", "█"):
            self.assertIn(part, text)
        text = self.succeed("bench", self.model("person_detect"), "--repeat", 3)
        for part in ("p50", "(3 runs)", "memory"):
            self.assertIn(part, text)


class InspectTest(DataTest):
    def testTellsWhatAModelHolds(self):
        for path in sorted(self.data("models").glob("*.tflite")):
            result = self.json("inspect", path)
            self.assertEqual(result["file_bytes"], path.stat().st_size)
            self.assertGreater(len(result["subgraphs"]), 0)
            self.assertGreater(len(result["signatures"]), 0)
            self.assertIn(path.name, self.succeed("inspect", path))

    def testTellsWhichDeviceTakesWhat(self):
        result = self.json("inspect", self.model("mobilenet_v1_0.25_128_quant"))
        self.assertGreater(result["weight_bytes"], 400_000)
        signature = result["signatures"][0]
        self.assertIsNone(signature["problem"])
        self.assertEqual(signature["inputs"][0]["shape"], [1, 128, 128, 3])
        self.assertEqual(signature["inputs"][0]["type"], "uint8")
        self.assertEqual({one["device"] for one in signature["devices"]}, set(DEVICES))
        for operation in signature["operations"]:
            for answer in operation["devices"]:
                self.assertTrue(answer["supported"], answer)
                self.assertTrue(answer["kernel"])

    def testTellsWhyNot(self):
        result = self.json("inspect", self.model("audio_preprocessor_int8"))
        self.assertIn("SignalWindow", result["signatures"][0]["problem"])
        self.assertIn("SignalWindow", self.succeed("inspect", self.model("audio_preprocessor_int8")))


class EnvironmentTest(DataTest):
    def environment(self, **variables):
        return {**os.environ, **variables}

    def testThreadsAreThoseOfTheVariable(self):
        model = self.model("split_concat")
        arguments = ("run", model, "--random-input", 1)
        self.succeed(*arguments, env=self.environment(HEARTH_THREADS="2"))
        sentence = self.refuse(1, *arguments, env=self.environment(HEARTH_THREADS="1025"))
        self.assertIn("HEARTH_THREADS is 1025, outside 0 to 1024", sentence)
        self.succeed(*arguments, "--threads", 1, env=self.environment(HEARTH_THREADS="1025"))

    def testTraceIsOneValidFileWithADriverLibrary(self):
        trace = self.folder / "trace.json"
        # The null driver's library has a copy of the tracing code.
        drivers = pathlib.Path(HEARTH).parents[1] / "share/hearth/drivers"
        environment = self.environment(HEARTH_TRACE=str(trace), HEARTH_DRIVER_PATH=str(drivers))
        devices = self.json("devices", env=environment)["devices"]
        self.assertIn("null", [device["name"] for device in devices])
        self.succeed("run", self.model("micro_speech_quantized"), "--random-input", 1, "--repeat",
                     3, "--device", "hearth-cpu", env=environment)
        names = [event["name"] for event in json.loads(trace.read_text())]
        self.assertEqual(names.count("load model"), 1)
        self.assertEqual(names.count("compile"), 1)
        self.assertEqual(names.count("execute"), 4)


if __name__ == "__main__":
    unittest.main()
