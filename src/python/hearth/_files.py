# SPDX-License-Identifier: Apache-2.0
"""Where the files are that come with the package."""

import pathlib

_PACKAGE = pathlib.Path(__file__).resolve().parent


def find(folder, name):
    """The path of a file of the package, or of the build that it lies in; None if it is in neither."""
    for base in (_PACKAGE, _PACKAGE.parents[1]):
        path = base / folder / name
        if path.is_file():
            return str(path)
    return None
