# SPDX-License-Identifier: Apache-2.0
"""Runs the hearth command for the tests beside this file."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEARTH = os.environ.get("HEARTH_BIN") or str(ROOT / "build" / "release" / "bin" / "hearth")
DATA = os.environ.get("HEARTH_TEST_DATA")


class CommandTest(unittest.TestCase):
    """Base of tests that run the command in a new folder."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="hearth-cli-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def hearth(self, *arguments, timeout=300, **options):
        return subprocess.run([HEARTH, *map(str, arguments)], capture_output=True, text=True,
                              timeout=timeout, check=False, **options)

    def succeed(self, *arguments, **options):
        """Standard output of a command that succeeds and prints nothing on standard error."""
        run = self.hearth(*arguments, **options)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stderr, "")
        return run.stdout

    def json(self, *arguments, **options):
        return json.loads(self.succeed(*arguments, "--json", **options))

    def refuse(self, code, *arguments, **options):
        """The error message of a command that ends with `code`: one line, without other output."""
        run = self.hearth(*arguments, **options)
        self.assertEqual(run.returncode, code, f"{arguments}: {run.stdout}{run.stderr}")
        self.assertEqual(run.stdout, "")
        self.assertTrue(run.stderr.startswith("hearth: "), run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        self.assertTrue(run.stderr.endswith("\n"), run.stderr)
        return run.stderr


class DataTest(CommandTest):
    """Base of tests that read the models and pictures of the test data."""

    def setUp(self):
        if not DATA:
            self.skipTest("HEARTH_TEST_DATA is not set.")
        super().setUp()

    def data(self, path):
        return pathlib.Path(DATA) / "data" / path

    def model(self, name):
        return self.data(f"models/{name}.tflite")
