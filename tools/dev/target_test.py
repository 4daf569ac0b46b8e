# SPDX-License-Identifier: Apache-2.0
"""Which architectures something is made for, and with what."""

import json
import pathlib
import sys
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import checkout  # noqa: E402
import target  # noqa: E402


class TargetTest(unittest.TestCase):

    def on(self, native, choice=None):
        """The targets of a choice on a machine."""
        with unittest.mock.patch.object(target, "nativeArchitecture", lambda: native):
            return target.targets(choice)

    def testWithoutAChoiceItIsThisMachine(self):
        for native in ("amd64", "arm64", "riscv64"):
            with self.subTest(native):
                [own] = self.on(native)
                self.assertEqual((own.architecture, own.isNative), (native, True))
                self.assertEqual(own.preset("shipped"), "shipped")
                self.assertEqual(own.tool("strip"), "strip")
                self.assertEqual((own.cmakeOptions(), own.debianEnvironment()), ([], {}))

    def testAllIsWhatTheMachineBuildsFor(self):
        self.assertEqual([one.architecture for one in self.on("amd64", "all")], ["amd64", "arm64"])
        self.assertEqual([one.architecture for one in self.on("arm64", "all")], ["arm64"])

    def testBoardsAreBuiltForWithTheCrossRoot(self):
        [board] = self.on("amd64", "arm64")
        self.assertEqual((board.machine, board.isNative), ("aarch64", False))
        self.assertEqual(board.preset("wheels_test"), "wheels_test_arm64")
        root = checkout.cacheFolder() / "arm64"
        self.assertEqual(board.tool("nm"), f"{root}/tools/usr/bin/aarch64-linux-gnu-nm")
        self.assertEqual(board.libraries(), root / "sysroot" / "usr" / "lib" / "aarch64-linux-gnu")
        self.assertEqual(board.debianEnvironment()["HEARTH_CROSS_ROOT"], str(root))
        self.assertNotEqual(board.parts(), self.on("amd64")[0].parts())
        # An ARM64 machine builds the same without it.
        self.assertTrue(self.on("arm64", "arm64")[0].isNative)

    def testOtherArchitecturesAreRefused(self):
        with self.assertRaisesRegex(target.TargetError, "^On amd64 nothing is made for sparc64, only for amd64 and"):
            self.on("amd64", "sparc64")
        with self.assertRaisesRegex(target.TargetError, "only for arm64\\.$"):
            self.on("arm64", "amd64")

    def testEachHasItsPresets(self):
        presets = {preset["name"]: preset for preset in
                   json.loads((checkout.ROOT / "CMakePresets.json").read_text())["configurePresets"]}
        [board] = self.on("amd64", "arm64")
        for name in ("shipped", "packages_test", "wheels", "wheels_test"):
            self.assertIn(board.preset(name), presets)
        parts = presets["wheels_arm64"]["cacheVariables"]["HEARTH_WHEEL_PARTS"]
        self.assertEqual(parts.rpartition("/")[2], board.parts().name)


if __name__ == "__main__":
    unittest.main()
