#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what programs rely on in libhearth.so and libneuralnetworks.so with the last release; runs inside
the environment.

Functions with their parameters, and the types of these, are read by libabigail from a library that has
nothing but the functions that ours export, as the public headers declare them. debian/abi has the last
release's. A change that breaks programs is an error; --write accepts it, and is also for after a release.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import checkout  # noqa: E402
from debian_archive import ArchiveError, DebianArchive  # noqa: E402

ROOT = checkout.ROOT
ENTRY_POINTS = ROOT / "src" / "frontends" / "nnapi" / "entry_points"
sys.path.append(str(ROOT / "cmake"))

import generate_forwards  # noqa: E402

INCLUDE = ROOT / "include"
BASELINES = ROOT / "debian" / "abi"
TOOLS = "abigail-tools"
# Structures of hearth.h begin with their size, and later versions add members at the end: this is how
# abidiff reports it. Where members move as well, it also says that their offsets have changed.
GROWTH = re.compile(r"'struct hearth_\w+' changed:\n\s+type size changed from \d+ to \d+ \(in bits\)\n"
                    r"\s+\d+ data member insertions?:\n")
BREAKING = re.compile(r"\b(?:type size|offset) changed")
# Bits of abidiff's exit code.
FAILED, INCOMPATIBLE = 3, 8


class AbiError(Exception):
    """A step that failed, as a sentence."""


def exported():
    """The functions of each library, and the headers that declare them."""
    script = (ROOT / "src" / "api" / "hearth.map").read_text(encoding="utf-8")
    functions = (ENTRY_POINTS / "functions.inc").read_text(encoding="utf-8")
    return {
        "libhearth": (re.findall(r"^\s+(\w+);$", script.split("HEARTH_PRIVATE")[0], re.MULTILINE),
                      [INCLUDE / "hearth" / "hearth.h"]),
        "libneuralnetworks": (re.findall(r"^HEARTH_NNAPI_FUNCTION\((\w+)\)", functions, re.MULTILINE),
                              sorted((INCLUDE / "android").glob("*.h"))),
    }


def tools():
    """The folder with libabigail's programs; unpacked of Debian's packages once."""
    folder = checkout.cacheFolder() / "abigail"
    if (folder / "usr" / "bin" / "abidw").is_file():
        return folder
    installed = subprocess.run(["dpkg-query", "-W", "-f", "${Package}\n"], check=True, capture_output=True,
                               text=True).stdout.split()
    with tempfile.TemporaryDirectory(prefix="abigail-", dir=folder.parent) as scratch:
        scratch = pathlib.Path(scratch)
        for package in DebianArchive(scratch / "archive").download([TOOLS]):
            if package.name.split("_")[0] not in installed:
                subprocess.run(["dpkg-deb", "--extract", package, scratch / "unpacked"], check=True)
        shutil.rmtree(folder, ignore_errors=True)
        (scratch / "unpacked").rename(folder)
    return folder


def run(program, *arguments):
    """The exit code and the output of one of libabigail's programs."""
    folder = tools()
    libraries = next((folder / "usr" / "lib").glob("*/libabigail.so.*")).parent
    done = subprocess.run([folder / "usr" / "bin" / program, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                          env={"LD_LIBRARY_PATH": str(libraries), "PATH": "/usr/bin:/bin"})
    return done.returncode, done.stdout


def describe(names, headers, path):
    """Writes what libabigail says of a library with the functions `names` of the headers."""
    declared = {}
    for header in headers:
        for name, result, parameters in generate_forwards.declarations(header.read_text(encoding="utf-8")):
            declared[name] = f"{result} {name}({parameters})"
    missing = sorted(set(names) - set(declared))
    if missing:
        raise AbiError(f"No public header declares {', '.join(missing)}.")
    source = "".join(f'#include "{header}"\n' for header in headers)
    source += "".join(f"{declared[name]} {{ __builtin_trap(); }}\n" for name in sorted(names))
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "functions.c").write_text(source, encoding="utf-8")
        built = subprocess.run(
            ["gcc", "-std=c11", "-g", "-shared", "-fPIC", "-nostdlib", "-I", INCLUDE, "-o",
             scratch / "library.so", scratch / "functions.c"], capture_output=True, text=True, check=False)
        if built.returncode != 0:
            raise AbiError(f"The functions of the headers cannot be compiled: {built.stderr}")
        code, output = run("abidw", "--no-corpus-path", "--no-show-locs", "--no-comp-dir-path",
                           "--no-elf-needed", "--no-architecture", "--out-file", path,
                           scratch / "library.so")
        if code != 0:
            raise AbiError(f"abidw ends with exit code {code}: {output}")


def difference(old, new):
    """Whether programs that were built with `old` run with `new`, and a report of what differs."""
    code, output = run("abidiff", "--no-show-locs", old, new)
    if code & FAILED:
        raise AbiError(f"abidiff ends with exit code {code}: {output}")
    # Programs make structs themselves, which abidiff does not count as incompatible.
    isBroken = bool(code & INCOMPATIBLE) or bool(BREAKING.search(GROWTH.sub("", output)))
    return not isBroken, output


def compare():
    """Sentences about the libraries that break programs; prints what else has changed."""
    broken = []
    with tempfile.TemporaryDirectory() as scratch:
        for library, (names, headers) in exported().items():
            new = pathlib.Path(scratch) / f"{library}.abi"
            describe(names, headers, new)
            isCompatible, report = difference(BASELINES / f"{library}.abi", new)
            if report.strip():
                print(report)
            if not isCompatible:
                broken.append(f"{library}.so breaks programs that were built with the last release.")
    return broken


def write():
    BASELINES.mkdir(exist_ok=True)
    for library, (names, headers) in exported().items():
        describe(names, headers, BASELINES / f"{library}.abi")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--write", action="store_true",
                        help="make what the libraries have now that of the last release")
    arguments = parser.parse_args()
    try:
        if arguments.write:
            write()
            return 0
        return checkout.report(compare())
    except (AbiError, ArchiveError) as error:
        print(f"dev: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
