# SPDX-License-Identifier: Apache-2.0
import pathlib
import tempfile
import unittest

import check_layers


class CheckLayersTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = pathlib.Path(folder.name)

    def write(self, name, *includes):
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"#include {include}\n" for include in includes))

    def testLayersBelowAndTheOwnLayerAreAllowed(self):
        self.write("memory/pool.cc", '"memory/pool.h"', '"base/result.h"', "<graph/model.h>",
                   '"xnnpack.h"')
        self.assertEqual(check_layers.violations(self.source), [])

    def testALayerAboveIsAViolation(self):
        self.write("base/result.h", "<vector>", '"memory/pool.h"')
        self.assertEqual(check_layers.violations(self.source), [
            "src/base/result.h includes memory/pool.h, but memory is a layer above base."])

    def testThreadsComeBeforeMemory(self):
        self.write("threads/pool.cc", '"memory/pool.h"')
        self.assertEqual(len(check_layers.violations(self.source)), 1)

    def testDriversDoNotIncludeEachOther(self):
        self.write("drivers/cpu/a.cc", '"drivers/cpu/a.h"', '"drivers/reference/b.h"')
        self.assertEqual(check_layers.violations(self.source), [
            "src/drivers/cpu/a.cc includes drivers/reference/b.h, "
            "which belongs to another of drivers."])

    def testAnUnknownFolderIsAViolation(self):
        self.write("utils/a.h")
        self.assertEqual(len(check_layers.violations(self.source)), 1)


if __name__ == "__main__":
    unittest.main()
