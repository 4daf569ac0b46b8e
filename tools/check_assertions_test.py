# SPDX-License-Identifier: Apache-2.0
import unittest

import check_assertions


def cpp(**files):
    return list(check_assertions.cppViolations(
        {name.replace("__", "/").replace("_cc", ".cc").replace("_h", ".h"): text
         for name, text in files.items()}))


def python(text, **others):
    files = {f"tests/{name}.py": other for name, other in others.items()}
    return list(check_assertions.pythonViolations({"tests/a_test.py": text, **files}))


class CppTest(unittest.TestCase):

    def testAnAssertionIsEnough(self):
        for assertion in ("EXPECT_EQ(1, 2)", "ASSERT_TRUE(x)", "ADD_FAILURE()", "FAIL()",
                          "EXPECT_DEATH(run(), \"\")"):
            self.assertEqual(cpp(a_cc=f"TEST(A, B) {{ {assertion}; }}"), [])

    def testATestWithoutOneIsAViolation(self):
        for body in ("", "run();", "// EXPECT_EQ(1, 2);", 'puts("EXPECT_EQ(1, 2)");',
                     "for (;;) { if (x) run(); }"):
            self.assertEqual(cpp(a_cc=f"TEST_F(A, B) {{ {body} }}\n"), ["a.cc: A.B asserts nothing."])

    def testTheNextTestsAssertionDoesNotCount(self):
        self.assertEqual(cpp(a_cc="TEST(A, B) {}\nTEST(A, C) { EXPECT_TRUE(x); }"),
                         ["a.cc: A.B asserts nothing."])

    def testAFunctionThatAssertsCounts(self):
        for function in ("void check(int x) { EXPECT_EQ(x, 1); }",
                         "void low() { EXPECT_TRUE(x); }\nvoid check(int) { low(); }",
                         "template <typename T>\nvoid check(T x) const { ASSERT_TRUE(x); }",
                         "const auto check = [&](int x) { EXPECT_EQ(x, 1); };",
                         "#define check(x) EXPECT_TRUE(x)"):
            self.assertEqual(cpp(a_cc=f"{function}\nTEST(A, B) {{ check<int>(1); }}"), [])

    def testAFunctionThatDoesNotAssertDoesNotCount(self):
        self.assertEqual(cpp(a_cc="void check(int x) { use(x); }\nTEST(A, B) { check(1); }"),
                         ["a.cc: A.B asserts nothing."])

    def testFunctionsForTestsThatAreIncludedCount(self):
        test = '#include "testing/checks.h"\nTEST(A, B) { check(); }'
        self.assertEqual(cpp(a_cc=test, x__testing__checks_h="void check() { EXPECT_TRUE(x); }"),
                         ["a.cc: A.B asserts nothing."])
        self.assertEqual(
            cpp(x__a_test_cc=test.replace("testing", "x/testing"),
                x__testing__checks_h="void check();",
                x__testing__checks_cc="void check() { EXPECT_TRUE(x); }"), [])


class PythonTest(unittest.TestCase):

    def testAnAssertionIsEnough(self):
        for line in ("self.assertEqual(1, 2)", "self.fail()", "subprocess.run([], check=True)",
                     "with self.assertRaises(ValueError): run()", "check()"):
            self.assertEqual(
                python(f"def check():\n  raise unittest.fail()\nclass A(TestCase):\n  def testB(self):\n    {line}\n"),
                [])

    def testATestWithoutOneIsAViolation(self):
        for line in ("pass", "run()", "subprocess.run([], check=False)", "'self.assertEqual(1, 2)'"):
            self.assertEqual(python(f"class A(TestCase):\n  def testB(self):\n    {line}\n"),
                             ["tests/a_test.py: A.testB asserts nothing."])

    def testFunctionsOfFilesBesideItCount(self):
        text = "import command\nclass A(TestCase):\n  def testB(self):\n    command.run()\n"
        self.assertEqual(python(text, command="def run():\n  assertTrue(x)\n"), [])
        self.assertEqual(python(text, command="def run():\n  pass\n"),
                         ["tests/a_test.py: A.testB asserts nothing."])


if __name__ == "__main__":
    unittest.main()
