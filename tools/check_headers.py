#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every source file names its licence in its first two lines."""

import sys

import checkout

SUFFIXES = {".cc", ".h", ".hpp", ".c", ".py", ".sh", ".cmake", ".capnp", ".fbs"}
NAMES = {"CMakeLists.txt", "dev"}
LICENCE = "SPDX-License-Identifier: Apache-2.0"


def needsHeader(path):
    return path.suffix in SUFFIXES or path.name in NAMES or path.name.endswith(".cmake.in")


def hasHeader(path):
    with path.open(encoding="utf-8") as file:
        return any(LICENCE in line for line in (file.readline(), file.readline()))


def main():
    missing = [path for path in checkout.files() if needsHeader(path) and not hasHeader(path)]
    for path in missing:
        print(f"{path.relative_to(checkout.ROOT)} lacks the line \"{LICENCE}\" at its top.")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
