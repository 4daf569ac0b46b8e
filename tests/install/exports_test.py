# SPDX-License-Identifier: Apache-2.0
"""libhearth.so exports what hearth.h declares, and no library exports symbols of other libraries.
Their thread-local variables need no allocation."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = ROOT / "build" / "release" / "lib"
# For libneuralnetworks.so, libhearth_delegate.so, libtensorflowlite_c.so and libhearth_llm.so of the same
# build.
PRIVATE = {f"hearth_{name}@@HEARTH_PRIVATE" for name in ("delegate_functions", "nnapi_functions",
                                                         "tflite_c_functions", "report_error")}


def exported(library, *flags):
    """The symbols of a library with their versions; the versions themselves are left out."""
    run = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", *flags,
                          LIBRARIES / library], capture_output=True, text=True, check=True)
    # C++ names contain blanks; type, address and size follow them.
    entries = [re.fullmatch(r"(.+?) (\w) [0-9a-f]+( [0-9a-f]+)?\s*", line)
               for line in run.stdout.splitlines()]
    return {entry[1] for entry in entries if entry[2] != "A"}


def declaredFunctions(header="hearth.h"):
    text = (ROOT / "include" / "hearth" / header).read_text(encoding="utf-8")
    text = re.sub(r"//.*", "", text)
    return set(re.findall(r"HEARTH_EXPORT\b[^;(]*?\b(hearth_\w+)\s*\(", text))


class ExportsTest(unittest.TestCase):

    def testTheHeaderDeclaresWhatTheLibraryExports(self):
        declared = declaredFunctions()
        self.assertGreater(len(declared), 40)
        self.assertEqual(exported("libhearth.so"),
                         {f"{name}@@HEARTH_0" for name in declared} | PRIVATE)

    def testTheLibraryForLanguageModelsExportsWhatItsHeaderDeclares(self):
        declared = declaredFunctions("hearth_llm.h")
        self.assertGreater(len(declared), 20)
        self.assertEqual(exported("libhearth_llm.so"), {f"{name}@@HEARTH_LLM_0" for name in declared})

    def testTheDelegateExportsWhatTensorFlowLiteLooksFor(self):
        self.assertEqual(exported("libhearth_delegate.so"),
                         {"tflite_plugin_create_delegate", "tflite_plugin_destroy_delegate"})

    def testTheLibraryForTensorFlowLiteProgramsExportsItsFunctions(self):
        listed = ROOT / "src" / "frontends" / "tflite_c" / "functions.inc"
        names = re.findall(r"^HEARTH_TFLITE_FUNCTION\((\w+)\)", listed.read_text(encoding="utf-8"),
                           re.MULTILINE)
        self.assertEqual(len(names), 216)
        self.assertEqual(exported("libtensorflowlite_c.so"), {f"{name}@@VERS_1.0" for name in names})
        run = subprocess.run(["readelf", "-d", LIBRARIES / "libtensorflowlite_c.so"],
                             capture_output=True, text=True, check=True)
        self.assertIn("Library soname: [libtensorflowlite_c.so]", run.stdout)

    def testEveryDeclarationOfTheHeaderIsExported(self):
        text = (ROOT / "include" / "hearth" / "hearth.h").read_text(encoding="utf-8")
        text = re.sub(r"//.*|^#.*(\\\n.*)*", "", text, flags=re.MULTILINE)
        called = set(re.findall(r"\b(hearth_\w+)\s*\(", text)) - {"hearth_log_callback", "hearth_status"}
        self.assertEqual(called, declaredFunctions())

    def testTheThreadsLibraryExportsItsOwnNames(self):
        for name in exported("libhearth_threads.so", "--demangle"):
            self.assertRegex(name, r"^(hearth_pthreadpool_\w+$|hearth::threads::)")

    def testThePrivateCopyOfXnnpackExportsRenamedNames(self):
        for name in exported("libhearth_xnnpack.so"):
            self.assertTrue(name.startswith("hearth_"), name)

    def testThreadLocalVariablesNeedNoAllocation(self):
        """base/thread_local.h explains why: the first use of other variables may abort the
        process."""
        for library in ("libhearth.so", "libhearth_delegate.so", "libhearth_llm.so",
                        "libhearth_threads.so", "libneuralnetworks.so", "libtensorflowlite_c.so"):
            run = subprocess.run(["readelf", "--relocs", "--wide", LIBRARIES / library],
                                 capture_output=True, text=True, check=True)
            self.assertIn("R_X86_64_RELATIVE", run.stdout)
            own = [line for line in run.stdout.splitlines()
                   if re.search("DTPMOD64|TLSDESC", line) and "@GLIBCXX" not in line]
            self.assertEqual(own, [], library)


if __name__ == "__main__":
    unittest.main()
