# SPDX-License-Identifier: Apache-2.0
"""Tests that the mutation test detects what it is meant to detect."""

import contextlib
import io
import pathlib
import tempfile
import unittest
from unittest import mock

import mutate_models

MODEL = bytes(range(256)) * 16


class MutateModelsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def runAgainst(self, script, count=1):
        """Runs it with a shell script as the command; returns the number of failing copies and the
        output."""
        command = self.folder / "hearth"
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)
        model = self.folder / "model.tflite"
        model.write_bytes(MODEL)
        campaign = mutate_models.Campaign(str(command), [model], self.folder / "kept")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            failed = campaign.run(range(count), 2)
        return failed, printed.getvalue()

    def testCommandsThatEndWellPass(self):
        self.assertEqual(self.runAgainst("exit 0", 3), (0, ""))
        self.assertEqual(self.runAgainst("echo The file is too short. >&2; exit 1"), (0, ""))
        self.assertFalse((self.folder / "kept").exists())

    def testEachKindOfBadEndFails(self):
        for script, words in (("kill -SEGV $$", "ends with -11"),
                              ("exit 3", "ends with 3"),
                              ("exit 1", "says ''"),
                              ("echo a >&2; echo b >&2; exit 1", "says 'a"),
                              ("echo 'x.cc:1:2: runtime error: overflow' >&2", "reports x.cc")):
            with self.subTest(script):
                failed, printed = self.runAgainst(script)
                self.assertEqual(failed, 1)
                self.assertIn(words, printed)

    def testHangFails(self):
        with mock.patch.object(mutate_models, "HANG_SECONDS", 0.2):
            failed, printed = self.runAgainst("sleep 1000")
        self.assertEqual(failed, 1)
        self.assertIn("hangs", printed)

    def testCopyThatFailsIsKeptAndNamed(self):
        failed, printed = self.runAgainst('[ "$1" = run ] && exit 7; exit 0', 2)
        self.assertEqual(failed, 2)
        kept = sorted((self.folder / "kept").iterdir())
        self.assertEqual([path.name for path in kept], ["0_model.tflite", "1_model.tflite"])
        for path in kept:
            self.assertNotEqual(path.read_bytes(), MODEL)
            self.assertIn(str(path), printed)

    def testCopiesDifferAndCanBeRepeated(self):
        def copies():
            return [mutate_models.damaged(mutate_models.random.Random(number), MODEL)
                    for number in range(50)]

        self.assertEqual(copies(), copies())
        self.assertEqual(len(set(copies())), 50)


if __name__ == "__main__":
    unittest.main()
