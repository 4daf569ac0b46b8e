# SPDX-License-Identifier: Apache-2.0
"""python -m hearth: the command `hearth`."""

import os
import pathlib
import shutil
import sys


def command():
    """The program of this package, of the build that it lies in, or of PATH; None without any."""
    here = pathlib.Path(__file__).resolve().parent
    for path in (here / "bin" / "hearth", here.parents[1] / "bin" / "hearth"):
        if path.is_file():
            return str(path)
    return shutil.which("hearth")


def main():
    program = command()
    if program is None:
        print("hearth: the program is not installed beside this package or on PATH.", file=sys.stderr)
        return 1
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
