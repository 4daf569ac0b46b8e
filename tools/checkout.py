# SPDX-License-Identifier: Apache-2.0
"""The checkout that these scripts belong to."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def files(root=ROOT):
    """Paths of the files that git tracks or would track; without git, all files outside build/."""
    try:
        # The checkout may belong to another user than the environment's.
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"], cwd=root, check=True, capture_output=True).stdout.decode()
        names = sorted(set(listed.split("\0")) - {""})
        return [path for name in names if (path := root / name).is_file()]
    except (OSError, subprocess.CalledProcessError):
        found = []
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in ("build", ".git", "__pycache__")]
            found += [pathlib.Path(folder) / name for name in names]
        return sorted(found)


def report(sentences):
    """Prints the findings of a check and returns its exit code."""
    for sentence in sentences:
        print(sentence)
    return 1 if sentences else 0


def cacheFolder():
    """The folder for results that outlive build/; created if it is missing."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(os.environ.get("HEARTH_CACHE_DIR") or pathlib.Path(base) / "hearth")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
