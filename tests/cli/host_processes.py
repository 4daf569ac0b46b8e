# SPDX-License-Identifier: Apache-2.0
"""Finds the processes of hosts, for the tests beside this file."""

import os
import pathlib
import time

PATIENCE = 120


def running(pid):
    """Whether a process exists and has not ended."""
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def hostsWith(variable):
    """The hosts that programs have started and that have this variable, NAME=VALUE, in order."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            isHost = b"--detach" in (entry / "cmdline").read_bytes().split(b"\0")
            isOwn = os.fsencode(variable) in (entry / "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if isHost and isOwn and running(entry.name):
            found.append(int(entry.name))
    return sorted(found)


def waitFor(test, done):
    """Waits until `done()`, which has to happen."""
    end = time.monotonic() + PATIENCE
    while not done():
        test.assertLess(time.monotonic(), end, "It did not happen.")
        time.sleep(0.02)
