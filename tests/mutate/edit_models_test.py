# SPDX-License-Identifier: Apache-2.0
"""Tests that edited copies of models are whole files with other values."""

import pathlib
import random
import sys
import unittest

import edit_models

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from workloads import tflite_schema as schema  # noqa: E402
from workloads.tflite_reader import TableView  # noqa: E402

MODEL = ROOT / "models" / "digits" / "digits.tflite"


def names(content):
    """What is found by offsets, of which none is edited."""
    return [tensor.string(schema.TENSOR_NAME)
            for graph in TableView.root(content).tables(schema.MODEL_SUBGRAPHS)
            for tensor in graph.tables(schema.SUBGRAPH_TENSORS)]


class EditModelsTest(unittest.TestCase):

    def testCopiesDifferAndCanBeRepeated(self):
        original = MODEL.read_bytes()
        copies = lambda: [edit_models.edited(random.Random(number), original) for number in range(60)]
        made = copies()
        self.assertEqual(made, copies())
        self.assertGreater(len(set(made)), 50)
        for copy in made:
            self.assertEqual(len(copy), len(original))
            self.assertLessEqual(sum(one != other for one, other in zip(copy, original)), 3 * 8)
            self.assertEqual(names(copy), names(original))


if __name__ == "__main__":
    unittest.main()
