#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the libraries destroy nothing while a process exits or a thread ends.

usage: check_static_objects.py FILE...      object files and archives of the libraries

exit() destroys objects in static storage while other threads go on using them. So objects that have
a destructor are in a base::Immortal, and what has to happen at exit is a function of its own. This
looks for who registers destructors, and functions, with the C library.
"""

import re
import subprocess
import sys

REGISTRATIONS = {"__cxa_atexit", "__cxa_thread_atexit", "atexit", "at_quick_exit", "on_exit"}
# Source file -> what it registers, and why it may.
ALLOWED = {
    "trace.cc": {"atexit"},  # closes the array of the trace file
    "open_stores.cc": {"atexit"},  # writes what was packed
    "save_queue.cc": {"atexit"},  # writes clients' cache files
    "device_manager.cc": {"atexit"},  # waits for drivers' libraries that are being started
}
SYMBOL = re.compile(r"([^\s:/]+?)(?:\.o|\.cpp)?:\s+U\s+(\w+)")


def violations(listing):
    """Sentences about lines of `nm -A -u` that are not allowed."""
    found = set()
    for source, symbol in SYMBOL.findall(listing):
        if symbol in REGISTRATIONS and symbol not in ALLOWED.get(source, ()):
            found.add(f"{source} registers something with {symbol}: an object in static storage with "
                      "a destructor is to be a base::Immortal.")
    return sorted(found)


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    listing = subprocess.run(["nm", "-A", "-u", *sys.argv[1:]], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    found = violations(listing)
    for sentence in found:
        print(sentence)
    if not listing:
        print("The files name no symbol.")
    return 1 if found or not listing else 0


if __name__ == "__main__":
    sys.exit(main())
