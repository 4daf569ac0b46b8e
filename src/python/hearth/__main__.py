# SPDX-License-Identifier: Apache-2.0
"""python -m hearth: the command `hearth`."""

import os
import shutil
import sys

from . import _files


def command():
    """The program of this package, of the build that it lies in, or of PATH; None without any."""
    return _files.find("bin", "hearth") or shutil.which("hearth")


def main():
    program = command()
    if program is None:
        print("hearth: the program is not installed beside this package or on PATH.", file=sys.stderr)
        return 1
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
