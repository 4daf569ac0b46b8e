# SPDX-License-Identifier: Apache-2.0
import unittest

import check_static_objects


class CheckStaticObjectsTest(unittest.TestCase):

    def testWhatRegistersADestructorIsNamed(self):
        found = check_static_objects.violations(
            "lib/libhearth_ops.a:registry.cc.o:                 U __cxa_atexit\n"
            "lib/libhearth_ops.a:registry.cc.o:                 U memcpy\n"
            "dir/handles.cc.o:                 U __cxa_thread_atexit\n")
        self.assertEqual(len(found), 2)
        self.assertTrue(found[0].startswith("handles.cc "), found)
        self.assertTrue(found[1].startswith("registry.cc "), found)

    def testWhatHasToHappenAtExitIsAllowed(self):
        self.assertEqual(
            check_static_objects.violations("lib/libhearth_base.a:trace.cc.o:      U atexit\n"), [])

    def testAnAllowedFunctionAllowsNoOther(self):
        self.assertEqual(
            len(check_static_objects.violations("libhearth_base.a:trace.cc.o:  U __cxa_atexit\n")), 1)


if __name__ == "__main__":
    unittest.main()
