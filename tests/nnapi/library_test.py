# SPDX-License-Identifier: Apache-2.0
"""libneuralnetworks.so as clients see it: its symbols, and an installed copy to build against."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HEARTH_BUILD", ROOT / "build/release"))
LIBRARY = BUILD / "lib/libneuralnetworks.so"

EXPECTED_OUTPUT = """max(0, 1 + 10 * 3) = 31
max(0, 2 + -1 * 3) = 0
max(0, 3 + 0.5 * 3) = 4.5
max(0, 4 + -2 * 3) = 0
"""


def output(*command, **options):
    run = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True,
                         timeout=300, **options)
    if run.returncode != 0:
        raise AssertionError(f"{command[0]} ends with {run.returncode}: {run.stdout}{run.stderr}")
    return run.stdout


def declaredFunctions():
    """The names of the functions that the headers in include/android declare."""
    names = set()
    for header in (ROOT / "include/android").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
        # Members of the support library's table are in parentheses, with a star.
        names |= set(re.findall(r"\b((?:ANeuralNetworks\w*|AHardwareBuffer)_\w+)\s*\(", text))
    return names


class SymbolsTest(unittest.TestCase):
    def testExportsTheDocumentedNamesAndNothingElse(self):
        lines = output("nm", "-D", "--defined-only", "--format=posix", LIBRARY).splitlines()
        exported = {line.split()[0].split("@")[0] for line in lines if line.split()[1] == "T"}
        others = {line.split()[0] for line in lines if line.split()[1] != "T"}
        self.assertEqual(exported, declaredFunctions())
        # 69 functions of feature level 5, 6 of extensions, the support library's, 8 of hardware
        # buffers.
        self.assertEqual(len(exported), 84)
        self.assertEqual(others, {"LIBNEURALNETWORKS"})


class InstalledTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.prefix = pathlib.Path(cls.folder.name) / "usr"
        output("cmake", "--install", BUILD, "--prefix", cls.prefix)
        cls.library = next(cls.prefix.rglob("libneuralnetworks.so")).parent

    def checkHello(self, program):
        lines = output(program).splitlines(keepends=True)
        devices = [line for line in lines if line.startswith("device ")]
        self.assertIn("nnapi-reference", devices[-1])
        self.assertEqual("".join(lines[len(devices):]), EXPECTED_OUTPUT)

    def buildHello(self, *flags):
        program = self.prefix / "hello"
        output("cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
               ROOT / "examples/nnapi_hello.c", *flags, f"-Wl,-rpath,{self.library}", "-o", program)
        return program

    def testHelloBuildsWithTheInstalledHeadersAlone(self):
        self.checkHello(self.buildHello("-I", self.prefix / "include", "-L", self.library,
                                        "-lneuralnetworks"))

    def testHelloBuildsByPkgConfig(self):
        folder = next(self.prefix.rglob("neuralnetworks.pc")).parent
        flags = output("pkg-config", "--cflags", "--libs", "neuralnetworks",
                       env=os.environ | {"PKG_CONFIG_PATH": str(folder)})
        self.checkHello(self.buildHello(*flags.split()))

    def testHelloBuildsByTheCmakePackage(self):
        source = self.prefix / "project"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(f"""
cmake_minimum_required(VERSION 3.25)
project(hello C)
find_package(neuralnetworks REQUIRED)
add_executable(hello {ROOT}/examples/nnapi_hello.c)
target_link_libraries(hello neuralnetworks)
""", encoding="utf-8")
        output("cmake", "-G", "Ninja", "-S", source, "-B", source / "build",
               f"-DCMAKE_PREFIX_PATH={self.prefix}")
        output("cmake", "--build", source / "build")
        self.checkHello(source / "build/hello")


if __name__ == "__main__":
    unittest.main()
