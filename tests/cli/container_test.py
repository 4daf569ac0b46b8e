# SPDX-License-Identifier: Apache-2.0
"""Models in .task and .litertlm files: every command reads them, and the weight store keeps their
weights."""

import json
import os
import pathlib
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from command import ROOT, CommandTest, DataTest

DIGITS = ROOT / "models" / "digits" / "digits.tflite"
PICTURE = ROOT / "models" / "digits" / "samples" / "digit_3.png"
# Written by hearth_tflite_corpus.
SAMPLES = ROOT / "tests" / "corpus" / "container_fuzz"


def writeArchive(path, members):
    """An archive of stored members, aligned to 4 bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name)
            start = archive.fp.tell() + 30 + len(name)
            member.extra = bytes(4 + -start % 4)
            archive.writestr(member, content)
    return path


class ContainerTest(CommandTest):
    def testInspectListsTheParts(self):
        path = writeArchive(self.folder / "a.task",
                            {"digits.tflite": DIGITS.read_bytes(), "labels.txt": b"a\nb\n"})
        listed = self.json("inspect", path)
        self.assertEqual(set(listed), {"model", "format", "version", "file_bytes", "metadata",
                                       "parts", "language_model"})
        self.assertIsNone(listed["language_model"])
        self.assertEqual((listed["model"], listed["format"], listed["version"]),
                         (str(path), "zip", None))
        self.assertEqual(listed["file_bytes"], path.stat().st_size)
        model, labels = listed["parts"]
        self.assertEqual((model["name"], model["kind"], model["type"], model["bytes"]),
                         ("digits.tflite", "model", "stored", DIGITS.stat().st_size))
        self.assertEqual(path.read_bytes()[model["offset"]:][:model["bytes"]],
                         DIGITS.read_bytes())
        self.assertEqual((labels["name"], labels["kind"], labels["problem"]),
                         ("labels.txt", "other", None))
        self.assertIn("digits.tflite", self.succeed("inspect", path))

        described = self.json("inspect", path, "--part", "digits.tflite")
        self.assertEqual(described["part"], "digits.tflite")
        whole = self.json("inspect", DIGITS)
        self.assertIsNone(whole["part"])
        self.assertEqual({**described, "model": None, "part": None}, {**whole, "model": None})

    def testInspectShowsALitertlmFile(self):
        path = SAMPLES / "model.litertlm"
        listed = self.json("inspect", path)
        self.assertEqual((listed["format"], listed["version"]), ("litertlm", "1.4.0"))
        self.assertEqual(listed["metadata"], [{"key": "Authors", "value": "Hearth"}])
        self.assertEqual([(part["name"], part["kind"]) for part in listed["parts"]],
                         [("LlmMetadataProto", "metadata"), ("SP_Tokenizer", "tokenizer"),
                          ("prefill_decode", "model"), ("embedder", "model")])
        self.assertIn({"key": "backend_constraint", "value": "cpu"},
                      listed["parts"][2]["metadata"])
        text = self.succeed("inspect", path)
        self.assertIn("backend_constraint = cpu", text)
        self.assertIn("Authors = Hearth", text)
        self.json("run", path, "--part", "embedder", "--random-input", 1, "--store-mode", "off")

    def testRunsTheModelOfAContainer(self):
        content = DIGITS.read_bytes()
        one = writeArchive(self.folder / "one.task", {"digits.tflite": content, "x": b"x"})
        two = writeArchive(self.folder / "two.task", {"a.tflite": content, "b.tflite": content})
        inner = writeArchive(self.folder / "inner.task", {"d.tflite": content})
        outer = writeArchive(self.folder / "outer.task", {"inner.task": inner.read_bytes()})
        behind = self.folder / "labelled.tflite"
        behind.write_bytes(content)
        with zipfile.ZipFile(behind, "a") as archive:
            archive.writestr("labels.txt", "0\n1\n")
        for model in ([one], [one, "--part", "digits.tflite"], [two, "--part", "b.tflite"],
                      [outer], [outer, "--part", "inner.task/d.tflite"], [behind]):
            result = self.json("run", *model, "--input", PICTURE, "--top", 1, "--store-mode", "off")
            self.assertEqual(result["top"][0]["index"], 3)
            self.assertEqual(result["model"], str(model[0]))
            self.assertEqual(result["part"], model[2] if len(model) > 1 else None)
        result = self.json("bench", two, "--part", "a.tflite", "--api", "nnapi", "--repeat", 1)
        self.assertEqual(result["part"], "a.tflite")

    def testSaysWhichPartsThereAre(self):
        content = DIGITS.read_bytes()
        two = writeArchive(self.folder / "two.task", {"a.tflite": content, "b.tflite": content})
        for command in (["run"], ["bench"], ["cache", "explain"], ["cache", "warm"]):
            self.assertIn("name one of the parts: a.tflite, b.tflite",
                          self.refuse(2, *command, two))
        for command in (["run"], ["inspect"], ["cache", "warm"]):
            self.assertIn('no part "c.tflite"; its models are: a.tflite, b.tflite',
                          self.refuse(2, *command, two, "--part", "c.tflite"))
        self.assertIn("leave the part out", self.refuse(2, "run", DIGITS, "--part", "a.tflite"))
        self.assertIn("No such file", self.refuse(1, "run", self.folder / "none", "--part", "a"))

    def testSaysWhatToDoWithOtherArchives(self):
        path = self.folder / "deflated.task"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(DIGITS, "digits.tflite")
        sentence = self.refuse(1, "run", path)
        self.assertIn("compressed", sentence)
        self.assertIn("unzip", sentence)
        self.assertIn("compressed", self.json("inspect", path)["parts"][0]["problem"])
        path.write_bytes(path.read_bytes()[:-1])
        for command in ("run", "inspect"):
            self.assertIn("its end is missing", self.refuse(1, command, path))


class ContainerStoreTest(DataTest):
    def testASecondStartIsWarm(self):
        content = self.model("mobilenet_v1_0.25_128_quant").read_bytes()
        other = self.model("person_detect").read_bytes()
        path = writeArchive(self.folder / "two.task", {"a.tflite": other, "b.tflite": content})
        environment = {**os.environ, "HEARTH_STORE": str(self.folder / "store")}
        environment.pop("HEARTH_STORE_MODE", None)

        def start(*arguments):
            return self.json("bench", *arguments, "--repeat", 0, env=environment)["start"]

        def explained(*arguments):
            return self.json("cache", "explain", *arguments,
                             env=environment)["signatures"][0]["state"]

        report = self.folder / "report.jsonl"
        environment["HEARTH_REPORT"] = str(report)
        part = (path, "--part", "b.tflite")
        self.assertEqual(explained(*part), "cold")
        first = start(*part)
        self.assertEqual(first["state"], "cold")
        again = start(*part)
        self.assertEqual((again["state"], again["packed_bytes"]), ("warm", 0))
        for line in map(json.loads, report.read_text().splitlines()):
            self.assertEqual((line["model"], line["part"]), (str(path), "b.tflite"))
        # The first start read the part, not the whole file.
        self.assertLessEqual(first["hashed_bytes"], len(content))
        self.assertEqual(explained(*part), "warm")
        self.assertEqual(explained(self.model("mobilenet_v1_0.25_128_quant")), "warm")
        self.assertEqual(explained(path, "--part", "a.tflite"), "cold")
        self.assertEqual(self.json("cache", "warm", path, "--part", "a.tflite",
                                   env=environment)["signatures"][0]["state"], "warm")

        # A change of the other model has no effect; a change of this model's weights is noticed.
        def flip(where):
            changed = bytearray(path.read_bytes())
            changed[changed.index(where) + len(where) // 2] ^= 1
            path.write_bytes(changed)

        flip(other)
        self.assertEqual(explained(*part), "warm")
        flip(content)
        self.assertEqual(explained(*part), "cold")


if __name__ == "__main__":
    unittest.main()
