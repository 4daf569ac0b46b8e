# SPDX-License-Identifier: Apache-2.0
"""Tests of models/digits: the file that is shipped, and the training code."""

import os
import sys
import unittest
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "models" / "digits")]
from network import Network  # noqa: E402
from workloads import reference, tflite_reader  # noqa: E402

try:
    from PIL import Image
except ImportError:
    Image = None

MODEL = ROOT / "models" / "digits" / "digits.tflite"


class DigitsModelTest(unittest.TestCase):
    def classify(self, path):
        pixels = np.asarray(Image.open(path).convert("L"))
        image = (pixels / np.float32(127.5) - 1).reshape(1, 28, 28, 1)
        [probabilities] = reference.run(tflite_reader.read(MODEL), [image])
        self.assertAlmostEqual(float(probabilities.sum()), 1.0, places=5)
        return probabilities[0]

    def testIsSmallAndHasTheDocumentedTensors(self):
        self.assertLess(MODEL.stat().st_size, 1 << 20)
        graph = tflite_reader.read(MODEL)
        [image], [probabilities] = graph.inputs, graph.outputs
        self.assertEqual((graph.tensors[image].name, graph.shape(image)),
                         ("image", (1, 28, 28, 1)))
        self.assertEqual((graph.tensors[probabilities].name, graph.shape(probabilities)),
                         ("probabilities", (1, 10)))
        self.assertEqual((MODEL.parent / "labels.txt").read_text().split(), list("0123456789"))

    @unittest.skipIf(Image is None, "Pillow is not installed")
    def testRecognisesTheSamples(self):
        samples = sorted((MODEL.parent / "samples").glob("digit_*.png"))
        self.assertEqual(len(samples), 5)
        for path in samples:
            with self.subTest(path.name):
                self.assertEqual(str(self.classify(path).argmax()), path.stem[-1])

    @unittest.skipIf(Image is None, "Pillow is not installed")
    @unittest.skipUnless("HEARTH_TEST_DATA" in os.environ, "HEARTH_TEST_DATA is not set")
    def testRecognisesAHandwrittenNine(self):
        path = Path(os.environ["HEARTH_TEST_DATA"]) / "data" / "images" / "mnist_nine.bmp"
        probabilities = self.classify(path)
        self.assertEqual(probabilities.argmax(), 9)
        self.assertGreater(probabilities[9], 0.9)


class TrainingTest(unittest.TestCase):
    def testGradientsMatchDifferences(self):
        generator = np.random.default_rng(0)
        network = Network(generator)
        pictures = generator.random((4, 28, 28), np.float32) * 2 - 1
        labels = np.array([1, 5, 5, 9])
        caught = {}
        network._adam = lambda gradients, rate: caught.update(gradients)

        def loss():
            return network.train(pictures, labels, 0.0)

        loss()
        gradients = dict(caught)
        for name, parameter in network.parameters.items():
            with self.subTest(name):
                direction = gradients[name] / np.linalg.norm(gradients[name])
                step = np.float32(1e-3)
                parameter += step * direction
                above = loss()
                parameter -= 2 * step * direction
                below = loss()
                parameter += step * direction
                slope = (above - below) / (2 * step)
                self.assertAlmostEqual(slope / np.linalg.norm(gradients[name]), 1, delta=0.05)


if __name__ == "__main__":
    unittest.main()
