#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that only src/base/env.cc reads environment variables: it ignores them in a process with
more rights than the user who started it."""

import re
import sys

import checkout

READER = "src/base/env.cc"
# Names that read variables, also through the standard library.
CALL = re.compile(r"\b((?:secure_)?getenv|__secure_getenv|environ|temp_directory_path|tempnam|"
                  r"tmpfile|wordexp)\b")
COMMENT = re.compile(r"//[^\n]*")


def isTest(path):
    folders = path.parts
    return "_test" in path.stem or path.stem.endswith("_fuzz") or "cts" in folders or "testing" in folders


def violations(root):
    """Sentences about wrong calls below src/ of the checkout `root`."""
    found = []
    for path in sorted((root / "src").rglob("*")):
        where = path.relative_to(root).as_posix()
        if path.suffix not in (".h", ".cc", ".c") or where == READER or isTest(path):
            continue
        text = COMMENT.sub("", path.read_text(encoding="utf-8"))
        for name in CALL.findall(text):
            found.append(f"{where} uses {name}; variables are read in {READER}.")
    return found


def main():
    return checkout.report(violations(checkout.ROOT))


if __name__ == "__main__":
    sys.exit(main())
