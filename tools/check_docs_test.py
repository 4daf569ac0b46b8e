# SPDX-License-Identifier: Apache-2.0
import pathlib
import tempfile
import unittest

import check_docs


class CheckDocsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("src/cache/store.h", "// Not SegmentTable.\nclass Store {\n  void publish();\n};\n")
        self.write("docs/other.md", "# Other\n\n## What `open` does, and when\n\n## Twice\n\n"
                   "## Twice\n\n```\n# no heading\n```\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def check(self, text, page="docs/page.md"):
        self.write(page, text)
        return check_docs.violations(self.root)

    def testLinksToFilesFoldersAndOtherSitesAreRight(self):
        self.assertEqual(self.check("[a](other.md) [b](../src/cache) [c](https://example.org/x) "
                                    "![d](../src/cache/store.h)"), [])
        self.assertEqual(self.check("[a](docs/other.md)", "README.md"), [])

    def testALinkToNothingIsAViolation(self):
        self.assertEqual(self.check("[a](another.md)"), [
            "docs/page.md links to another.md, which does not exist."])
        self.assertEqual(self.check("# Page\n", "docs/page.md"), [])
        self.assertEqual(self.check("[a](other.md)", "README.md"), [
            "README.md links to other.md, which does not exist."])

    def testALinkOutOfTheCheckoutIsAViolation(self):
        self.assertEqual(len(self.check("[a](../..)")), 1)

    def testHeadingsAreLookedUp(self):
        self.assertEqual(self.check("[a](other.md#what-open-does-and-when) [b](other.md#twice-1) "
                                    "[c](#page)\n\n# Page\n"), [])
        self.assertEqual(self.check("[a](other.md#thrice)"), [
            "docs/page.md links to other.md#thrice, but other.md has no such heading."])
        self.assertEqual(len(self.check("[a](other.md#no-heading)")), 1)
        self.assertEqual(len(self.check("[a](#elsewhere)")), 1)

    def testLinesOfSourcesAreNoHeadings(self):
        self.assertEqual(len(self.check("[a](../src/cache/store.h#L2)")), 1)

    def testANameIsInTheLinkedFile(self):
        self.assertEqual(self.check("[`Store::publish`](../src/cache/store.h) "
                                    "[`publish()`](../src/cache/store.h)"), [])
        self.assertEqual(self.check("[`Store::publishAsync`](../src/cache/store.h)"), [
            "docs/page.md links Store::publishAsync to ../src/cache/store.h, "
            "which does not have that name."])

    def testPartsOfWordsAndCommentsAreNoNames(self):
        self.assertEqual(len(self.check("[`pub`](../src/cache/store.h)")), 1)
        self.assertEqual(len(self.check("[`SegmentTable`](../src/cache/store.h)")), 1)

    def testAFolderHasNoNames(self):
        self.assertEqual(len(self.check("[`Store`](../src/cache)")), 1)

    def testANameOfTheFileIsAName(self):
        self.assertEqual(self.check("[`store`](../src/cache/store.h) "
                                    "[`store.h`](../src/cache/store.h) "
                                    "[`cache/store.h`](../src/cache/store.h)"), [])
        self.assertEqual(self.check("[`cache/table.h`](../src/cache/store.h)"), [
            "docs/page.md calls ../src/cache/store.h cache/table.h, which is another path."])

    def testPathsInBackticksExist(self):
        self.assertEqual(self.check("`src/cache`, `src/cache/`, `src/*/store.h`, `src/cache/X y`"), [])
        self.assertEqual(self.check("see `src/cache/table.h`"), [
            "docs/page.md names src/cache/table.h, which does not exist."])

    def testFencedTextIsNotLookedAt(self):
        self.assertEqual(self.check("```\n[a](another.md) `src/none.h`\n```\n"), [])


if __name__ == "__main__":
    unittest.main()
