# SPDX-License-Identifier: Apache-2.0
import pathlib
import tempfile
import unittest

import checkout
import doc_blocks


class DocBlocksTest(unittest.TestCase):
    def failures(self, text):
        found, wrong = doc_blocks.blocks("page.md", text)
        self.assertEqual(wrong, [])
        with tempfile.TemporaryDirectory() as folder:
            return doc_blocks.failures("page.md", found, checkout.ROOT, pathlib.Path(folder))

    def testEveryBlockOfThePagesRuns(self):
        for page in doc_blocks.PAGES:
            found, _ = doc_blocks.blocks(page, (checkout.ROOT / page).read_text(encoding="utf-8"))
            self.assertTrue(any(block.isRun for block in found), page)
        self.assertEqual(doc_blocks.violations(checkout.ROOT), [])

    def testABlockThatFailsIsNamedByItsLine(self):
        self.assertEqual(self.failures("# Page\n\n```sh\ntrue\n```\n"), [])
        self.assertEqual(self.failures("# Page\n\n```sh\nfalse\ntrue\n```\n"),
                         ["page.md:3 ends with 1: "])

    def testPythonBlocksShareNamesAndPrintWhatTheySay(self):
        text = "```python\na = 3\n```\n\n```python\nprint(a)  # {}\n```\n"
        self.assertEqual(self.failures(text.format(3)), [])
        self.assertEqual(self.failures(text.format(4)), ["page.md: a block does not print 4."])
        self.assertIn('line 2', self.failures("```python\nraise ValueError()\n```\n")[0])

    def testABlockIsRunOrSaysWhyNot(self):
        def read(text):
            found, wrong = doc_blocks.blocks("page.md", text)
            return [block.isRun for block in found], len(wrong)

        self.assertEqual(read("```sh\ntrue\n```\n"), ([True], 0))
        self.assertEqual(read("<!-- not run: it takes hours -->\n```sh\ntrue\n```\n"), ([False], 0))
        self.assertEqual(read("<!-- not run: -->\n```sh\ntrue\n```\n"), ([True], 0))
        self.assertEqual(read("```text\nout\n```\n"), ([False], 0))
        self.assertEqual(read("```\ntrue\n```\n"), ([False], 1))
        self.assertEqual(read("```ruby\ntrue\n```\n"), ([False], 1))
        self.assertEqual(read("Text:\n\n    true\n\n    true\n"), ([], 1))
        self.assertEqual(read("- a point\n\n      that goes on\n"), ([], 0))


if __name__ == "__main__":
    unittest.main()
