# SPDX-License-Identifier: Apache-2.0
import re
import unittest

import c_reference
import checkout

HEADER = """// SPDX-License-Identifier: Apache-2.0
// A small API. hearth.hpp wraps it.
//
// Rules:
// - No function throws; docs/process.md says more
//   than hearth_open does.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_OPEN 1

// --- Files and folders --------------

// All of them are `const`.

typedef enum hearth_kind {
  HEARTH_FILE = 0,  // hearth_file
} hearth_kind;

typedef struct hearth_file {
  int32_t kind;
} hearth_file;

// Opens a file; *error is set. Calls close() at the end, as `hearth_open` does.
HEARTH_EXPORT int hearth_open(const char* path,
                              int* error);
HEARTH_EXPORT void hearth_file_free(hearth_file* file);
// Is told of it.
typedef void (*hearth_callback)(const char* message);

#ifdef __cplusplus
}  // extern "C"
#endif
"""


class CReferenceTest(unittest.TestCase):

    def testThePageIsWhatTheHeaderSays(self):
        self.assertEqual(c_reference.main(["--check"]), 0, "tools/c_reference.py writes it.")

    def testEveryExportedFunctionHasAnEntry(self):
        text = (checkout.ROOT / "include" / "hearth" / "hearth.h").read_text(encoding="utf-8")
        known = [name for section in c_reference.parse(text)[1] for entry in section.entries
                 for name in entry.names()]
        exported = re.findall(r"^HEARTH_EXPORT [\w* ]+?(\w+)\(", text, re.MULTILINE)
        self.assertGreater(len(exported), 40)
        self.assertEqual(set(exported) - set(known), set())
        self.assertEqual(len(known), len(set(known)))

    def testEntriesHaveTheCommentsThatTheyFollow(self):
        introduction, sections = c_reference.parse(HEADER)
        self.assertEqual(introduction[:2], ["A small API. hearth.hpp wraps it.", ""])
        self.assertEqual([section.title for section in sections], ["Version", "Files and folders"])
        self.assertEqual(sections[1].comment, ["All of them are `const`."])
        self.assertEqual([entry.names() for entry in sections[1].entries],
                         [["hearth_kind", "hearth_file"], ["hearth_open", "hearth_file_free"],
                          ["hearth_callback"]])
        self.assertEqual(sections[1].entries[1].declarations,
                         ["int hearth_open(const char* path,\n                int* error);",
                          "void hearth_file_free(hearth_file* file);"])
        self.assertEqual(sections[1].entries[2].comment, ["Is told of it."])

    def testNamesInCommentsAreCodeAndLinks(self):
        page = c_reference.page(HEADER)
        self.assertIn("Opens a file; `*error` is set. Calls `close()` at the end, as `hearth_open` does.",
                      page)
        self.assertIn("Rules:\n\n- No function throws; [process.md](process.md) says more\n  than "
                      "[`hearth_open`](#hearth_open-hearth_file_free) does.\n", page)
        self.assertIn("- [Files and folders](#files-and-folders): [`hearth_kind`]", page)

    def testHeadingsThatDifferInCaseOnlyHaveAnchorsOfTheirOwn(self):
        entries = [c_reference.Entry([], [text]) for text in
                   ("#define HEARTH_OPEN 1", "int hearth_open(void);", "int hearth_close(void);")]
        c_reference.setAnchors(entries)
        self.assertEqual([entry.anchor for entry in entries],
                         ["hearth_open", "hearth_open-1", "hearth_close"])

    def testAnUnknownFormIsRefused(self):
        for wrong in (HEADER.replace("#pragma once", ""), HEADER.replace('extern "C" {', ""),
                      HEADER.replace("hearth_callback)(", "hearth_callback) ("),
                      HEADER.replace("message);", "message)")):
            with self.assertRaises(c_reference.Malformed):
                c_reference.page(wrong)


if __name__ == "__main__":
    unittest.main()
