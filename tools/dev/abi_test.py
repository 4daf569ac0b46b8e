# SPDX-License-Identifier: Apache-2.0
"""Changes of public functions and types that break programs are found, others are let through."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import abi  # noqa: E402
import debian_archive  # noqa: E402

HEADER = """
#include <stdint.h>
typedef struct pair { uint32_t first; uint32_t second; } pair;
typedef struct hearth_sized { uint32_t size; uint32_t threads; } hearth_sized;
typedef struct opaque opaque;
int sum(const pair* numbers, const hearth_sized* options);
void release(opaque* object);
"""


class AbiTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        try:
            abi.tools()
        except debian_archive.ArchiveError as error:
            raise unittest.SkipTest(str(error)) from error
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        cls.before = cls.describe(HEADER, ["sum", "release"], "before")

    @classmethod
    def describe(cls, header, names, to):
        path = cls.folder / f"{to}.h"
        path.write_text(header, encoding="utf-8")
        abi.describe(names, [path], cls.folder / f"{to}.abi")
        return cls.folder / f"{to}.abi"

    def isCompatible(self, header, names):
        return abi.difference(self.before, self.describe(header, names, "after"))[0]

    def testWhatStaysOrIsAddedIsCompatible(self):
        self.assertTrue(self.isCompatible(HEADER, ["sum", "release"]))
        self.assertTrue(self.isCompatible(HEADER + "int more(void);\n", ["more", "release", "sum"]))

    def testAFunctionThatIsGoneIsNot(self):
        self.assertFalse(self.isCompatible(HEADER, ["sum"]))

    def testAParameterOfAnotherTypeIsNot(self):
        self.assertFalse(self.isCompatible(HEADER.replace("int sum(", "int64_t sum("), ["sum", "release"]))

    def testAStructOfAnotherSizeOrOrderIsNot(self):
        self.assertFalse(self.isCompatible(HEADER.replace("uint32_t second", "uint64_t second"),
                                           ["sum", "release"]))
        self.assertFalse(self.isCompatible(
            HEADER.replace("uint32_t first; uint32_t second;", "uint32_t second; uint32_t first;"),
            ["sum", "release"]))

    def testOnlyStructsThatSayTheirSizeMayGrow(self):
        for old, new, isCompatible in (
                ("uint32_t threads;", "uint32_t threads; uint64_t more;", True),
                ("uint32_t size; ", "uint32_t size; uint64_t more; ", False),
                ("uint32_t second;", "uint32_t second; uint64_t more;", False)):
            with self.subTest(new):
                self.assertEqual(self.isCompatible(HEADER.replace(old, new), ["sum", "release"]),
                                 isCompatible)

    def testAFunctionThatNoHeaderDeclaresIsAnError(self):
        with self.assertRaisesRegex(abi.AbiError, "^No public header declares nothing\\.$"):
            self.describe(HEADER, ["nothing", "sum"], "after")

    def testTheLastReleaseIsKnownOfAllFunctions(self):
        for library, (names, _) in abi.exported().items():
            self.assertGreater(len(names), 40)
            known = (abi.BASELINES / f"{library}.abi").read_text(encoding="utf-8")
            self.assertIn("<elf-function-symbols>", known)
        # Those of today can be described, whatever has changed.
        abi.compare()


if __name__ == "__main__":
    unittest.main()
