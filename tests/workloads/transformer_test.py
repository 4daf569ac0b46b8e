# SPDX-License-Identifier: Apache-2.0
"""Tests of the generated language and diffusion models: files, reference, and both devices."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from workloads import (check, diffusion, flexbuffer, generate, reference, tflite_reader,  # noqa: E402
                       tflite_writer, transformer)
from workloads.graph import Graph  # noqa: E402
from workloads.stored_weights import FORMS, WeightMaker, dequantizeRows, unpackInt4  # noqa: E402

HEARTH = Path(os.environ.get("HEARTH_BIN") or ROOT / "build" / "release" / "bin" / "hearth")
DEVICES = ("hearth-cpu", "nnapi-reference")
SIZES = dict(layers=2, hidden=64, feedForward=96, headSize=16, vocabulary=200)
GEMMA = replace(transformer.GEMMA_2B, **SIZES, heads=4, groups=1)
PHI = replace(transformer.PHI_2, **SIZES, heads=4, groups=4)
LENGTHS = dict(prefill=6, cache=12)


class Folder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="hearth-transformer-")
        self.addCleanup(holder.cleanup)
        self.path = Path(holder.name) / "model.tflite"

    def written(self, model, isInline=False):
        """The model as the reader returns it."""
        self.assertEqual(tflite_writer.write(model, self.path, isInline),
                         self.path.stat().st_size)
        return tflite_reader.readModel(self.path)


class FlexBufferTest(unittest.TestCase):
    def testNumbersComeBack(self):
        numbers = {"epsilon": 0.5, "num_groups": 32, "axis": -1}
        self.assertEqual(flexbuffer.decode(flexbuffer.encode(numbers)), numbers)
        self.assertEqual(flexbuffer.decode(b""), {})


class WeightTest(unittest.TestCase):
    def testFormsHaveTheirDeviation(self):
        for form in FORMS:
            graph = Graph("weights")
            weight = WeightMaker(3, form).matrix("w", (64, 256), 0.1)
            tensor = graph.tensors[weight.tensorIn(graph)]
            self.assertEqual(len(graph.operators), 1 if form == "f16" else 0)
            if form == "f16":
                tensor = graph.tensors[graph.operators[0].inputs[0]]
            values = dequantizeRows(tensor, np.asarray(tensor.data), weight.blockScales)
            self.assertEqual(values.shape, (64, 256), form)
            self.assertAlmostEqual(float(values.std()), 0.1, delta=0.003, msg=form)
            rows = dequantizeRows(tensor, np.asarray(tensor.data), weight.blockScales,
                                  slice(5, 7))
            np.testing.assert_array_equal(rows, values[5:7])

    def testInt4IsReadLowHalfFirst(self):
        self.assertEqual(unpackInt4(np.array([0x8F, 0x70], np.uint8), (3,)).tolist(), [-1, -8, 0])

    def testBlocksMustDivideTheRow(self):
        with self.assertRaisesRegex(ValueError, "blocks of 32"):
            WeightMaker(1, "i4b32").matrix("w", (4, 48), 1.0)


class LanguageModelTest(Folder):
    def testSignaturesShareTheWeights(self):
        both = self.written(transformer.languageModel("lm", GEMMA, "i8", **LENGTHS))
        self.assertEqual([one.key for one in both.signatures], ["prefill", "decode"])
        size = self.path.stat().st_size
        weights = sum(tensor.data.nbytes for tensor in both.signature("decode").graph.tensors
                      if tensor.dtype == np.int8)
        # Tables and small constants of two graphs, and one copy of the matrices.
        self.assertGreater(weights, 64 * 1024)
        self.assertLess(size, weights + 90 * 1024)

    def testFilesHoldWhatWasBuilt(self):
        for isInline in (False, True):
            model = transformer.languageModel("lm", PHI, "i4b32", isComposite=True, **LENGTHS)
            actual = self.written(model, isInline)
            for key in ("prefill", "decode"):
                one, other = model.signature(key), actual.signature(key)
                self.assertEqual((one.inputs, one.outputs), (other.inputs, other.outputs))
                for a, b in zip(one.graph.operators, other.graph.operators, strict=True):
                    self.assertEqual((a.kind, a.inputs, a.outputs), (b.kind, b.inputs, b.outputs))
                for a, b in zip(one.graph.tensors, other.graph.tensors, strict=True):
                    self.assertEqual((a.name, a.shape, a.dtype), (b.name, b.shape, b.dtype))
                    if a.data is not None:
                        np.testing.assert_array_equal(np.asarray(a.data), np.asarray(b.data))

    def testSameArgumentsGiveTheSameBytes(self):
        words = ["--form", "i8", "--layers", "1", "--hidden", "64", "--feed-forward", "64",
                 "--head-size", "16", "--vocabulary", "100"]
        contents = []
        for seed in ("1", "1", "2"):
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(generate.main(["gemma_2b", str(self.path), *words, "--seed",
                                                seed]), 0)
            contents.append(self.path.read_bytes())
        self.assertEqual(contents[0], contents[1])
        self.assertNotEqual(contents[0], contents[2])

    def testFullShapesHaveTheKnownSizes(self):
        # Parameters of the published models, in billions.
        for shape, billions in ((transformer.GEMMA_2B, 2.51), (transformer.PHI_2, 2.78)):
            model = transformer.languageModel("lm", shape, "i8")
            count = sum(int(np.prod(tensor.shape, dtype=np.int64))
                        for tensor in model.signature("decode").graph.tensors
                        if tensor.data is not None and tensor.dtype == np.int8)
            self.assertAlmostEqual(count / 1e9, billions, delta=0.02)

    def testDecodingContinuesAPrefill(self):
        # The last token of a prefill and the same token in a decode step give the same cache
        # entries.
        model = transformer.languageModel("lm", PHI, "f32", **LENGTHS)
        tokens = np.array([[5, 9, 7, 100, 3, 8]], np.int32)
        cache = {name: np.zeros((1, 12, 4, 16), np.float32)
                 for name in model.signature("decode").inputs if name.startswith("kv")}
        whole = reference.runSignature(model, "prefill", {
            "tokens": tokens, "input_pos": np.arange(6, dtype=np.int32), **cache})
        last = reference.runSignature(model, "decode", {
            "tokens": tokens[:, 5:], "input_pos": np.array([5], np.int32), **whole})
        for name in cache:
            np.testing.assert_allclose(last[name], whole[name], atol=1e-5)
        self.assertGreater(float(last["logits"].std()), 0.1)


class DeviceTest(Folder):
    def setUp(self):
        super().setUp()
        if not HEARTH.exists():
            self.skipTest("The command is not built.")

    def runner(self, model, device):
        return check.Runner(self.path, model, HEARTH, device).run

    def testLanguageModels(self):
        for shape in (GEMMA, PHI):
            for form in FORMS:
                for isComposite in (False, True):
                    model = self.written(transformer.languageModel(
                        "lm", shape, form, isComposite=isComposite, **LENGTHS))
                    expected = check.decodedLogits(
                        model, lambda key, inputs: reference.runSignature(model, key, inputs), 4)
                    # A value between two steps of the rounded activations may be rounded either
                    # way.
                    limit = 2e-5 if form in ("f32", "f16") else 0.05
                    for device in DEVICES:
                        with self.subTest((shape.norm, form, isComposite, device)):
                            actual = check.decodedLogits(model, self.runner(model, device), 4)
                            self.assertLessEqual(check.relativeError(actual, expected), limit)
                            self.assertEqual(actual.argmax(1).tolist(),
                                             expected.argmax(1).tolist())

    def testTheExampleContinuesAText(self):
        model = self.written(transformer.languageModel("lm", PHI, "f32", prefill=6, cache=24))
        prompt = [5, 9, 7, 100, 3, 8, 11, 150, 2]

        def greedy(count):
            # One token at a time, which needs no prefill.
            shape = model.signature("decode").graph.shape
            cache = {name: np.zeros(shape(index), np.float32)
                     for name, index in model.signature("decode").inputs.items()
                     if name.startswith("kv")}
            tokens = list(prompt)
            for step in range(len(prompt) - 1 + count):
                cache = reference.runSignature(model, "decode", {
                    "tokens": np.array([[tokens[step]]], np.int32),
                    "input_pos": np.array([step], np.int32), **cache})
                logits = cache.pop("logits").reshape(-1)
                if step + 1 == len(tokens):
                    tokens.append(int(logits.argmax()))
            return tokens[len(prompt):]

        program = [HEARTH.parent / "generate_tokens", self.path]
        words = [*map(str, prompt), "--count", "8"]
        expected = greedy(8)
        self.assertGreater(len(set(expected)), 1)
        for _ in ("cold", "warm"):
            run = subprocess.run([*program, *words], capture_output=True, text=True, timeout=60)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual([int(word) for word in run.stdout.split()], expected)
        run = subprocess.run([*program, *words, "--json", "--threads", "1"], capture_output=True,
                             text=True, timeout=60)
        self.assertEqual(json.loads(run.stdout)["tokens"], expected)
        self.assertEqual(subprocess.run(program, capture_output=True, timeout=60).returncode, 2)
        run = subprocess.run([*program, "1", "--count", "24"], capture_output=True, text=True,
                             timeout=60)
        self.assertEqual(run.returncode, 1)
        self.assertIn("24", run.stderr)

    def testDiffusion(self):
        for form in ("f32", "f16", "i8"):
            for isComposite in (False, True):
                options = dict(form=form, isComposite=isComposite)
                for model in (
                        diffusion.textEncoder(depth=1, width=64, heads=2, vocabulary=128,
                                              **options),
                        diffusion.unet(latent=8, channels=32, levels=2, blocks=1, heads=2,
                                       groups=8, contextWidth=64, **options),
                        diffusion.imageDecoder(latent=4, channels=16, groups=8, **options)):
                    self.checkOutputs(self.written(model), 2e-5 if form != "i8" else 0.1)

    def checkOutputs(self, model, limit):
        [signature] = model.signatures
        inputs = check.randomInputs(signature)
        expected = reference.runSignature(model, signature.key, inputs)
        for device in DEVICES:
            actual = self.runner(model, device)(signature.key, inputs)
            for name, value in expected.items():
                with self.subTest((signature.key, name, device)):
                    self.assertLessEqual(check.relativeError(actual[name], value), limit)


if __name__ == "__main__":
    unittest.main()
