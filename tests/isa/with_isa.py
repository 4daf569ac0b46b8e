#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command as on a processor without features above an instruction set level.

    with_isa.py avx2 hearth bench MODEL

The levels, from the newest: LEVELS below; avx_vnni is AVX2 with AVX-VNNI. It works where the processor's flags list cpuid_fault,
and on the build of the release preset (its libisa_mask.so).
"""

import os
import pathlib
import sys

LEVELS = ("avx512vnni", "avx512skx", "avx_vnni", "avx2", "fma3", "f16c", "avx", "sse41",
          "ssse3", "sse2")
LIBRARY = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "lib" / "libisa_mask.so"


def isPossible():
    """Whether this machine can hide instruction sets from a process."""
    cpus = pathlib.Path("/proc/cpuinfo")
    return cpus.exists() and "cpuid_fault" in cpus.read_text().split()


def environment(level):
    """The environment that makes a process run at `level`."""
    return {**os.environ, "HEARTH_ISA_LEVEL": level, "LD_AUDIT": str(LIBRARY)}


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in LEVELS:
        sys.exit(f"usage: with_isa.py LEVEL COMMAND [ARGUMENT...]\nlevels: {', '.join(LEVELS)}")
    if not isPossible():
        sys.exit("with_isa.py: the flags of this processor do not list cpuid_fault.")
    if not LIBRARY.exists():
        sys.exit(f"with_isa.py: {LIBRARY} does not exist; ./dev build release makes it.")
    os.execvpe(sys.argv[2], sys.argv[2:], environment(sys.argv[1]))


if __name__ == "__main__":
    main()
