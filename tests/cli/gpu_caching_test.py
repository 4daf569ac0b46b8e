# SPDX-License-Identifier: Apache-2.0
"""What is done to compilation caches between processes, on a GPU: the tests of caching_test.py with its device."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import caching_test
from gpu_command import DEVICE, VARIABLES, WithGpu

# A start takes longer than on the CPU.
caching_test.RANDOM_KILLS = min(caching_test.RANDOM_KILLS, 6)


class OnGpu(WithGpu):
    def setUp(self):
        super().setUp()
        self.environment |= VARIABLES
        self.skipWithoutGpu()

    def command(self, *arguments, **options):
        return [*super().command(*arguments, **options), "--device", DEVICE]


class GpuProcessesTest(OnGpu, caching_test.ProcessesTest):
    pass


class GpuKillTest(OnGpu, caching_test.KillTest):
    pass


class GpuBuildsTest(OnGpu, caching_test.BuildsTest):
    pass


class GpuRightsTest(OnGpu, caching_test.RightsTest):
    pass


if __name__ == "__main__":
    unittest.main()
