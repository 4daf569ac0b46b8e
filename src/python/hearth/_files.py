# SPDX-License-Identifier: Apache-2.0
"""Where the files are that come with the package."""

import os  # not pathlib, which takes as long as all other imports of the package

_PACKAGE = os.path.dirname(os.path.realpath(__file__))


def find(folder, name):
    """The path of a file of the package, or of the build that it lies in; None if it is in neither."""
    for base in (_PACKAGE, os.path.dirname(os.path.dirname(_PACKAGE))):
        path = os.path.join(base, folder, name)
        if os.path.isfile(path):
            return path
    return None
