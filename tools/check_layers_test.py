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

    def testRoomsLookDown(self):
        self.write("drivers/cpu/lowering/convolution.cc", '"drivers/cpu/lowering/pooling.h"',
                   '"drivers/cpu/microkernels/portable/im2col.h"', '"drivers/cpu/plan/plan.h"')
        self.write("drivers/cpu/cpu_device.cc", '"drivers/cpu/compilation_cache/model_cache.h"',
                   '"drivers/cpu/prepared_model.h"')
        self.write("cache/bundle/bundle_file.h", '"cache/object/object_file.h"')
        self.assertEqual(check_layers.violations(self.source), [])

    def testARoomAboveIsAViolation(self):
        self.write("drivers/cpu/kernels/f32_layer.h", '"drivers/cpu/plan/plan_builder.h"')
        self.assertEqual(check_layers.violations(self.source), [
            "src/drivers/cpu/kernels/f32_layer.h includes drivers/cpu/plan/plan_builder.h, "
            "but that room is above its own."])

    def testTheFolderItselfIsAboveItsRooms(self):
        self.write("frontends/tflite/reader/file_view.cc", '"frontends/tflite/model_file.h"')
        self.assertEqual(len(check_layers.violations(self.source)), 1)

    def testAnUnknownRoomIsAViolation(self):
        self.write("cache/attic/old.cc", '"cache/object/object_file.h"')
        self.assertEqual(check_layers.violations(self.source), [
            "src/cache/attic is no room; tools/check_layers.py lists them."])

    def testKernelsKnowNoStore(self):
        self.write("drivers/cpu/kernels/f32_layer.cc", '"cache/segment/segment.h"')
        self.assertEqual(check_layers.violations(self.source), [
            "src/drivers/cpu/kernels/f32_layer.cc includes cache/segment/segment.h, "
            "which it is not to know."])

    def testOnlyTestsIncludeWhatIsForTests(self):
        self.write("cache/folder/weight_store_test.cc", '"cache/testing/store_test_util.h"',
                   '"cache/open_store.h"')
        self.write("cache/testing/store_test_util.h", '"cache/folder/weight_store.h"')
        self.assertEqual(check_layers.violations(self.source), [])
        self.write("hal/device.cc", '"cache/testing/store_test_util.h"')
        self.assertEqual(check_layers.violations(self.source), [
            "src/hal/device.cc includes cache/testing/store_test_util.h, which is for tests."])


if __name__ == "__main__":
    unittest.main()
