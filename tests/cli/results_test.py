# SPDX-License-Identifier: Apache-2.0
"""`hearth run` shows results as what they are, as models say or their operators tell, and draws
them. `golden` beside this file has the pictures."""

import pathlib
import sys
import unittest
import wave

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import numpy as np
from PIL import Image

from command import ROOT, CommandTest
from workloads import tflite_metadata as metadata
from workloads import tflite_writer
from workloads.graph import Graph

GOLDEN = pathlib.Path(__file__).parent / "golden"
HEIGHT, WIDTH = 48, 64


class ResultsTest(CommandTest):

    def constants(self, outputs, shape=(1, HEIGHT, WIDTH, 3), last=None, meta=b"", files=None):
        """A model whose outputs have these values, whatever the input is: `last` names the
        operator that computes them of their logarithms, or is None."""
        graph = Graph("constants")
        x = graph.addInput("picture", shape)
        begin = graph.slice("one", x, [0] * len(shape), [1] * len(shape))
        zero = graph.multiply("zero", begin, graph.addConstant("nothing", np.zeros([1] * len(shape), np.float32)))
        graph.outputs = []
        for name, value in outputs.items():
            value = np.asarray(value, np.float32)
            flat = graph.reshape(f"{name}_zero", zero, [1] * max(value.ndim, 1))
            y = graph.add(name if last is None else f"{name}_sum", flat,
                          graph.addConstant(f"{name}_value", value.reshape(value.shape or (1,))))
            if last == "SOFTMAX":
                y = graph.softmax(name, y)
            graph.outputs.append(y)
        path = self.folder / "model.tflite"
        tflite_writer.write(graph, path, metadata=meta)
        if files:
            metadata.pack(path, files)
        return path

    def picture(self):
        y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
        pixels = np.stack([x * 3, y * 4, (x + y) * 2], axis=-1).astype(np.uint8)
        path = self.folder / "picture.png"
        Image.fromarray(pixels).save(path)
        return path

    def assertIsGolden(self, name, path):
        drawn = np.asarray(Image.open(path))
        np.testing.assert_array_equal(drawn, np.asarray(Image.open(GOLDEN / f"{name}.png")))

    BOXES = [[[0.1, 0.2, 0.5, 0.6], [0.4, 0.3, 1.0, 0.9], [0, 0, 1, 1]]]

    def detector(self, **more):
        meta = metadata.metadata("detector", [metadata.tensor("image", content="image")], [
            metadata.tensor("score", threshold=0.25),
            metadata.tensor("location", content="bounding box",
                            properties={0: metadata.Vector(np.uint32, [1, 0, 3, 2]),
                                        1: metadata.Scalar("b", 1)}),
            metadata.tensor("number of detections"),
            metadata.tensor("category", files=[("labels.txt", "value labels", "en"),
                                               ("namen.txt", "value labels", "de")])])
        return self.constants({"a": [[0.5, 0.875, 0.125]], "b": self.BOXES, "c": [3], "d": [[1, 2, 0]]},
                              meta=meta, files={"labels.txt": "house\ntree\ncar\n",
                                                "namen.txt": "Haus\nBaum\nAuto\n"}, **more)

    def testADetectorFindsThings(self):
        path = self.detector()
        overlay = self.folder / "overlay.png"
        result = self.json("run", path, "--input", self.picture(), "--overlay", overlay)
        found = [(one["label"], one["score"], one["left"], one["top"], one["right"], one["bottom"])
                 for one in result["detections"]]
        np.testing.assert_allclose([one[1:] for one in found],
                                   [(0.875, 0.3, 0.4, 0.9, 1), (0.5, 0.2, 0.1, 0.6, 0.5)], rtol=1e-6)
        self.assertEqual([one[0] for one in found], ["car", "tree"])
        self.assertEqual((result["top"], result["overlay"]), ([], str(overlay)))
        self.assertIsGolden("boxes", overlay)
        german = self.json("run", path, "--input", self.picture(), "--locale", "de", "--top", 3)
        self.assertEqual([one["label"] for one in german["detections"]], ["Auto", "Baum", "Haus"])
        self.assertIn("fr", self.refuse(1, "run", path, "--input", self.picture(), "--locale", "fr"))
        text = self.succeed("run", path, "--input", self.picture())
        for part in ("car", "0.875", "90.0 %"):
            self.assertIn(part, text)

    def testBoxesWithoutScoresAreNoDetections(self):
        meta = metadata.metadata("boxes", [metadata.tensor("image", content="image")], [
            metadata.tensor("location", content="bounding box")])
        path = self.constants({"b": self.BOXES}, meta=meta)
        result = self.json("run", path, "--input", self.picture())
        self.assertIsNone(result["detections"])

    def testTheOperatorMakesADetector(self):
        path = ROOT / "tests" / "corpus" / "model_file_fuzz" / "detector.tflite"
        result = self.json("run", path, "--random-input", 1, "--top", 9)
        self.assertIsInstance(result["detections"], list)
        self.assertEqual(result["top"], [])

    def testWantedOutputsKeepWhatTheModelSaysOfThem(self):
        files = {"weather.txt": "rain\nwind\nsun\n", "animals.txt": "cat\ndog\nbird\n"}
        meta = metadata.metadata("two", [metadata.tensor("image", content="image")], [
            metadata.tensor("weather", files=[("weather.txt", "axis labels", "")]),
            metadata.tensor("animal", files=[("animals.txt", "axis labels", "")])])
        path = self.constants({"a": [[0, 5, 1]], "b": [[0, 1, 5]]}, meta=meta, files=files)
        for names, label in ((["b"], "bird"), (["a"], "wind"), (["b", "a"], "wind")):
            result = self.json("run", path, "--input", self.picture(), "--outputs", *names, "--output-dir", self.folder)
            self.assertEqual(result["top"][0]["label"], label)
            self.assertEqual([one["name"] for one in result["outputs"]], sorted(names))
            self.assertEqual(np.load(result["outputs"][0]["file"]).argmax(), 1 if label == "wind" else 2)
        self.assertIn('no output "c"', self.refuse(2, "run", path, "--input", self.picture(), "--outputs", "b", "c"))

    def testKeyPointsAreDrawn(self):
        points = [[i / 20, 1 - i / 20, 0.9 if i % 4 else 0.1] for i in range(17)]
        path = self.constants({"y": [[points]]})
        result = self.json("run", path, "--input", self.picture(), "--output-dir", self.folder)
        self.assertEqual(len(result["key_points"]), 17)
        np.testing.assert_allclose(result["key_points"][5]["x"], 0.75, rtol=1e-6)
        np.testing.assert_allclose(result["key_points"][5]["y"], 0.25, rtol=1e-6)
        self.assertIsGolden("key_points", result["overlay"])

    def testLandmarksOfHandsAndFacesAreDrawn(self):
        angle = np.linspace(0, 6, 21)
        hand = np.stack([32 + 20 * np.cos(angle), 24 + 15 * np.sin(angle), angle], axis=-1)
        result = self.json("run", self.constants({"y": hand.reshape(1, 63)}), "--input", self.picture(),
                           "--output-dir", self.folder)
        self.assertEqual(len(result["key_points"]), 21)
        np.testing.assert_allclose(result["key_points"][0]["x"], 52 / 64, rtol=1e-6)
        self.assertIsGolden("hand", result["overlay"])
        angle = np.arange(468) * 2.4
        radius = np.sqrt(np.arange(468) / 468)
        face = np.stack([0.5 + 0.4 * radius * np.cos(angle), 0.5 + 0.45 * radius * np.sin(angle), angle], axis=-1)
        result = self.json("run", self.constants({"y": face.reshape(1, 1, 1, 1404)}), "--input",
                           self.picture(), "--output-dir", self.folder)
        self.assertEqual(len(result["key_points"]), 468)
        self.assertIsGolden("face", result["overlay"])

    def testSegmentsAreDrawn(self):
        scores = np.zeros((1, 4, 4, 3))
        scores[0, :2, :, 1] = 1
        scores[0, :, 2:, 2] = 2
        result = self.json("run", self.constants({"y": scores}), "--input", self.picture(),
                           "--output-dir", self.folder)
        self.assertEqual([(one["index"], one["pixels"]) for one in result["segments"]],
                         [(2, 8), (0, 4), (1, 4)])
        self.assertIsGolden("segments", result["overlay"])

    def testNumbersThatAreNoScoresAreNumbers(self):
        path = self.constants({"embedding": [[0.5, -1.5, 2, 0.25, 1]]})
        result = self.json("run", path, "--input", self.picture())
        self.assertEqual(result["top"], [])
        self.assertEqual(result["outputs"][0]["range"], [-1.5, 2])
        self.assertEqual(result["outputs"][0]["first"], [0.5, -1.5, 2, 0.25])
        text = self.succeed("run", path, "--input", self.picture())
        self.assertIn("-1.5", text)
        self.assertNotIn("class", text)
        # Whoever gives labels knows that they are scores, and hears when the list does not fit.
        labels = self.folder / "labels.txt"
        labels.write_text("a\nb\nc\n")
        result = self.json("run", path, "--input", self.picture(), "--labels", labels)
        self.assertEqual([one["label"] for one in result["top"][:2]], ["c", None])
        self.assertEqual(result["notes"], ["There are 3 labels for 5 classes."])

    def testScoresAreCalibrated(self):
        files = {"labels.txt": "a\nb\nc\n", "calibration.csv": "1,2,0\n\n0.5,1,-1,0.9\n"}
        meta = metadata.metadata("classifier", [metadata.tensor("image", content="image")], [
            metadata.tensor("probability", calibration=(0, 0.125),
                            files=[("labels.txt", "axis labels", ""),
                                   ("calibration.csv", "score calibration", "")])])
        path = self.constants({"y": [[0, 5, 1]]}, meta=meta, files=files)
        result = self.json("run", path, "--input", self.picture())
        self.assertEqual([one["label"] for one in result["top"]], ["a", "c", "b"])
        np.testing.assert_allclose([one["score"] for one in result["top"]], [0.5, 0.25, 0.125])

    def testPicturesAreNormalizedAsTheModelSays(self):
        graph = Graph("identity")
        x = graph.addInput("picture", (1, HEIGHT, WIDTH, 3))
        graph.outputs = [graph.add("y", x, graph.addConstant("zero", np.zeros(3, np.float32)))]
        path = self.folder / "model.tflite"
        tflite_writer.write(graph, path, metadata=metadata.metadata(
            "identity", [metadata.tensor("image", content="image", mean=[10], std=[20])], []))
        self.json("run", path, "--input", self.picture(), "--output-dir", self.folder)
        pixels = np.asarray(Image.open(self.picture()), np.float32)
        np.testing.assert_allclose(np.load(self.folder / "output_0.npy")[0], (pixels - 10) / 20,
                                   rtol=1e-6)
        self.json("run", path, "--input", self.picture(), "--output-dir", self.folder, "--mean", "0",
                  "--std", "255")
        np.testing.assert_allclose(np.load(self.folder / "output_0.npy")[0], pixels / 255, rtol=1e-6)

    def testASoundHasClassesOverTime(self):
        sound = self.folder / "sound.wav"
        with wave.open(str(sound), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(44100)
            file.writeframes(bytes(200))
        meta = metadata.metadata("sounds", [metadata.tensor(
            "audio", content="audio", properties={0: metadata.Scalar("I", 44100)})], [
                metadata.tensor("scores", files=[("labels.txt", "axis labels", "")])])
        path = self.constants({"y": [[1, 0], [2, 0], [0, 1], [3, 0]]}, shape=(1, 100), meta=meta,
                              files={"labels.txt": "rain\nwind\n"})
        result = self.json("run", path, "--input", sound)
        self.assertEqual([(one["first"], one["count"], one["label"], one["score"])
                          for one in result["frames"]],
                         [(0, 2, "rain", 2), (2, 1, "wind", 1), (3, 1, "rain", 3)])
        with wave.open(str(sound), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16000)
            file.writeframes(bytes(200))
        self.assertIn("44100 are needed", self.refuse(1, "run", path, "--input", sound))

    def testInspectTellsWhatTheModelSays(self):
        meta = metadata.metadata(
            "A classifier", [metadata.tensor("image", "A picture of 64 by 48 pixels.", "image", mean=[127.5],
                                             std=[127.5])],
            [metadata.tensor("probability", files=[("labels.txt", "axis labels", "en")])],
            description="Tells rain from wind.", author="Nobody", license="Apache-2.0")
        path = self.constants({"y": [[0, 1]]}, meta=meta, files={"labels.txt": "rain\nwind\n"})
        said = self.json("inspect", path)["metadata"]
        self.assertEqual((said["name"], said["author"], said["license"]),
                         ("A classifier", "Nobody", "Apache-2.0"))
        self.assertEqual(said["inputs"][0]["mean"], [127.5])
        self.assertEqual(said["packed"], [{"name": "labels.txt", "bytes": 10, "problem": None}])
        text = self.succeed("inspect", path)
        for part in ("A classifier", "Tells rain from wind.", "Nobody", "Apache-2.0",
                     "A picture of 64 by 48 pixels.", "labels.txt"):
            self.assertIn(part, text)
        # Damage in it costs the metadata, not the model.
        content = path.read_bytes()
        at = content.index(b"M001")
        path.write_bytes(content[:at - 4] + b"\xff\xff\xff\x7f" + content[at:])
        self.assertIn("damaged", self.json("inspect", path)["metadata"]["problem"])
        self.json("run", path, "--input", self.picture())


if __name__ == "__main__":
    unittest.main()
