# SPDX-License-Identifier: Apache-2.0
"""Libraries that are led back to an older glibc name no newer one, and work."""

import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import older_glibc  # noqa: E402

OLD_AND_NEW = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
long number(const char* text) { return strtol(text, 0, 10) + (long)strtoull(text, 0, 10); }
double rest(double x, double y) { return fmod(x, y); }
double length(double x, double y) { return hypot(x, y); }
int scanned(const char* text) { int value = 0; sscanf(text, "value %d", &value); return value; }
"""


class OlderGlibcTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def library(self, source):
        (self.folder / "source.c").write_text(source, encoding="utf-8")
        path = self.folder / "library.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-fno-builtin", "-o", path,
                        self.folder / "source.c", "-lm"], check=True)
        return path

    def neededVersions(self, path):
        shown = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
        return {tuple(map(int, found)) for found in re.findall(r"\(GLIBC_(\d+)\.(\d+)", shown)}

    def testReferencesAreLedBackAndFindTheirFunctions(self):
        path = self.library(OLD_AND_NEW)
        self.assertGreater(max(self.neededVersions(path)), older_glibc.NEWEST)
        content = path.read_bytes()
        led = older_glibc.ledBack(content)
        self.assertEqual(len(led), len(content))
        copy = self.folder / "led.so"
        copy.write_bytes(led)
        self.assertLessEqual(max(self.neededVersions(copy)), older_glibc.NEWEST)
        self.assertEqual(older_glibc.ledBack(led), led)
        library = ctypes.CDLL(str(copy))
        library.number.restype = ctypes.c_long
        library.rest.restype = ctypes.c_double
        library.rest.argtypes = [ctypes.c_double, ctypes.c_double]
        self.assertEqual(library.number(b"21"), 42)
        self.assertEqual(library.rest(7.5, 2), 1.5)
        library.length.restype = ctypes.c_double
        library.length.argtypes = [ctypes.c_double, ctypes.c_double]
        self.assertEqual(library.length(3, 4), 5)
        self.assertEqual(library.scanned(b"value 6"), 6)

    def testAFunctionThatIsNewIsRefused(self):
        path = self.library("#include <string.h>\n"
                            "unsigned long copy(char* to, const char* from) { return strlcpy(to, from, 4); }\n")
        with self.assertRaisesRegex(older_glibc.GlibcError, r"^strlcpy is of GLIBC_2\.38\.$"):
            older_glibc.ledBack(path.read_bytes())

    def testALibraryThatNeedsNothingNewStaysAsItIs(self):
        content = self.library("int one(void) { return 1; }\n").read_bytes()
        self.assertEqual(older_glibc.ledBack(content), content)

    def testWhatIsNoElfFileIsRefused(self):
        with self.assertRaisesRegex(older_glibc.GlibcError, "no ELF file"):
            older_glibc.ledBack(b"#!/bin/sh\n" + bytes(100))


if __name__ == "__main__":
    unittest.main()
