#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the sources of a build folder (release unless named), tests left out.

A file that passed is not looked at again until it, a project header that it reaches, its compile
command or the configuration changes; the cache folder remembers. Those that were committed last come
first. With --seconds no file is begun later; when some are left and the others have no findings, the exit
code is UNFINISHED.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import checkout

TOOL = "clang-tidy-19"
UNFINISHED = 3
TEST = re.compile(r"(_test|_testing)\.(c|cc)$|/test_\w+\.cc$|/cts(/|\.cc$)")
# The precompiled header belongs to the compiler, and would hide missing includes.
PRECOMPILED = re.compile(r" -Winvalid-pch| -fpch-preprocess| -include \S*/cmake_pch\.hxx")
INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def reachedFiles(source, roots, known):
    """`source` and the project headers that it includes, directly or not."""
    found, openPaths = set(), [source]
    while openPaths:
        path = openPaths.pop()
        if path in found:
            continue
        found.add(path)
        if path not in known:
            known[path] = [header for name in INCLUDE.findall(path.read_bytes())
                           for root in roots if (header := root / name.decode()).is_file()]
        openPaths += known[path]
    return sorted(found)


def keyOf(entry, config, roots, known):
    """A name for everything on which the outcome depends, the same in every checkout."""
    here = str(checkout.ROOT)
    digest = hashlib.sha256(config + entry["command"].replace(here, ".").encode())
    for path in reachedFiles(pathlib.Path(entry["file"]), roots, known):
        digest.update(str(path.relative_to(here)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def check(entry, commands):
    run = subprocess.run([TOOL, "-p", commands, "--quiet", entry["file"]],
                         capture_output=True, text=True, check=False)
    return run.returncode, run.stdout


def compileCommands(preset):
    """The compile commands of a preset, each for one source, with the headers that its build made.

    A build compiles several sources at once, so the commands are those of a folder that is configured
    otherwise and never built.
    """
    build, configured = checkout.ROOT / "build" / preset, checkout.ROOT / "build" / "tidy" / preset
    subprocess.run(["cmake", "--preset", preset, "-B", configured, "-D", "HEARTH_UNITY_BUILD=OFF"],
                   cwd=checkout.ROOT, stdout=subprocess.DEVNULL, check=True)
    text = (configured / "compile_commands.json").read_text(encoding="utf-8")
    return json.loads(text.replace(str(configured), str(build)))


def lastCommitted():
    """The place of each tracked file in the order of its last commit, the newest first; without git, or in
    a history of one commit, of no file."""
    shown = subprocess.run(
        ["git", "-c", "safe.directory=*", "log", "--max-count=300", "--name-only", "--format="],
        cwd=checkout.ROOT, capture_output=True, text=True, check=False).stdout
    places = {}
    for name in filter(None, shown.splitlines()):
        places.setdefault(str(checkout.ROOT / name), len(places))
    return places


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("preset", nargs="?", default="release")
    parser.add_argument("--seconds", type=float, help="no file is begun later")
    arguments = parser.parse_args()
    end = float("inf") if arguments.seconds is None else time.monotonic() + arguments.seconds
    root = checkout.ROOT
    preset = arguments.preset
    build = root / "build" / preset
    passed = checkout.cacheFolder() / "tidy"
    passed.mkdir(exist_ok=True)
    config = (root / ".clang-tidy").read_bytes()
    roots, known = [root / "src", root / "include", build], {}
    tracked = {str(path) for path in checkout.files()}
    pending = []
    # A file that several targets compile is checked once.
    entries = {entry["file"]: entry | {"command": PRECOMPILED.sub("", entry["command"])}
               for entry in compileCommands(preset)
               if entry["file"] in tracked and not TEST.search(entry["file"])}
    for entry in entries.values():
        key = keyOf(entry, config, roots, known)
        if not (passed / key).exists():
            pending.append((entry, key))
    places = lastCommitted()
    pending.sort(key=lambda work: places.get(work[0]["file"], len(places)))
    failures = left = 0
    with (tempfile.TemporaryDirectory() as commands,
          concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool):
        pathlib.Path(commands, "compile_commands.json").write_text(
            json.dumps(list(entries.values())))
        runs = pool.map(
            lambda work: check(work[0], commands) if time.monotonic() < end else None, pending)
        for (_, key), outcome in zip(pending, runs):
            if outcome is None:
                left += 1
            elif outcome[0] == 0:
                (passed / key).touch()
            else:
                failures += 1
                print(outcome[1], end="")
    print(f"{len(pending) - left} files looked at, {failures} with findings, {left} left.")
    return 1 if failures else UNFINISHED if left else 0


if __name__ == "__main__":
    sys.exit(main())
