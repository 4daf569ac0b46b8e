#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the layout that .clang-format describes; with --fix, corrects it."""

import re
import subprocess
import sys

import checkout

SUFFIXES = (".cc", ".h", ".hpp", ".c")
TOOL = ["clang-format-19", "--style=file"]


def main():
    paths = [str(path.relative_to(checkout.ROOT)) for path in checkout.files()
             if path.suffix in SUFFIXES]
    if not paths:
        return 0
    if sys.argv[1:] == ["--fix"]:
        return subprocess.run([*TOOL, "-i", *paths], cwd=checkout.ROOT,
                              check=False).returncode
    run = subprocess.run([*TOOL, "--dry-run", "-Werror", *paths], cwd=checkout.ROOT,
                         capture_output=True, text=True, check=False)
    wrong = dict.fromkeys(re.findall(r"^(.*?):(\d+):\d+: error:", run.stderr, re.MULTILINE))
    first = {}
    for path, line in wrong:
        first.setdefault(path, line)
    for path, line in first.items():
        print(f"{path}:{line} is not laid out as .clang-format says.")
    if first:
        print("./dev shell tools/check_format.py --fix corrects this.")
    elif run.returncode != 0:
        print(run.stderr, end="")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
