#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the headers that drivers outside this tree get, relative to the folder of sources: those of the
driver interface, a few that drivers are told to use, and all that these include."""

import pathlib
import re
import sys

BESIDES_HAL = ("base/caught.h", "base/format.h", "base/log.h", "graph/validated_model.h",
               "memory/budget.h", "ops/nnapi_limits.h")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def headers(source):
    pending = [path.relative_to(source).as_posix() for path in (source / "hal").glob("*.h")]
    pending += BESIDES_HAL
    found = set()
    while pending:
        header = pending.pop()
        if header not in found:
            found.add(header)
            pending += INCLUDE.findall((source / header).read_text(encoding="utf-8"))
    return sorted(found)


if __name__ == "__main__":
    print("\n".join(headers(pathlib.Path(sys.argv[1]))))
