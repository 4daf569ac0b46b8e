#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints which kernels of XNNPACK run layers on ARM64 processors: the code that qemu-user executes most as such a
processor, looked up in the library of kernels that Debian ships. The table in docs/boards.md is checked with it.

    ./dev shell python3 bench/arm64_kernels/executed_kernels.py [PROCESSOR...]

Several kernels in a line share the bytes that were executed. Processors that qemu does not know are one that it
knows with the number (MIDR) of the other."""

import argparse
import collections
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CROSS = pathlib.Path(os.environ["HEARTH_CACHE_DIR"]) / "arm64"
TOOLS = CROSS / "tools" / "usr" / "bin"
LIBRARIES = CROSS / "sysroot" / "usr" / "lib" / "aarch64-linux-gnu"
PROCESSORS = {
    "Cortex-A53": "cortex-a53",
    "Cortex-A72": "cortex-a72",
    "Cortex-A76": "cortex-a76",
    "Cortex-X4": "neoverse-n2,midr=0x410fd820",
    "Neoverse N1": "neoverse-n1",
    "Neoverse V2": "neoverse-n2,midr=0x410fd4f0",
}
LAYERS = [*((f"fc_{kind}", rows) for kind in ("f32", "qs8", "qu8", "qd8") for rows in (1, 16)),
          *((f"{name}_{kind}", 1) for name in ("conv", "dw3") for kind in ("f32", "qs8", "qu8")), ("dw5_f32", 1)]
# The most executed pieces of code of a layer belong to its kernel.
MOST = 14


def program(folder):
    """run_layer for ARM64, made in a folder."""
    path = folder / "run_layer"
    subprocess.run([TOOLS / "aarch64-linux-gnu-g++-14", f"--sysroot={CROSS / 'sysroot'}", "-std=c++23", "-O2",
                    HERE / "run_layer.cc", "-lXNNPACK", "-lpthreadpool", "-Wl,--allow-shlib-undefined", "-o", path],
                   check=True)
    return path


def kernels():
    """The code of each kernel that Debian ships, by its name."""
    shown = subprocess.run([TOOLS / "aarch64-linux-gnu-objdump", "-d", "-w", LIBRARIES / "libmicrokernels-prod.a"],
                           capture_output=True, text=True, check=True).stdout
    found, code = {}, bytearray()
    for line in shown.splitlines():
        if name := re.match(r"[0-9a-f]+ <(xnn_\w+)>:", line):
            code = found.setdefault(name[1], bytearray())
        elif word := re.match(r"\s+[0-9a-f]+:\t([0-9a-f]{8}) ", line):
            code += struct.pack("<I", int(word[1], 16))
    return found


class Library:
    """XNNPACK's shared library, which does not name its kernels."""

    def __init__(self):
        self.content = (LIBRARIES / "libXNNPACK.so").read_bytes()
        start, = struct.unpack_from("<Q", self.content, 32)
        count, = struct.unpack_from("<H", self.content, 56)
        headers = [struct.unpack_from("<IIQQQQQQ", self.content, start + 56 * i) for i in range(count)]
        self.segments = [(header[3], header[2], header[5]) for header in headers if header[0] == 1]

    def code(self, address, size):
        for begin, offset, length in self.segments:
            if begin <= address < begin + length:
                return self.content[address - begin + offset:][:size]
        return b""


def executed(path, processor, layer, rows, times):
    """How often each piece of code of the library ran, by its address there."""
    run = subprocess.run([TOOLS / "qemu-aarch64", "-L", CROSS / "sysroot", "-cpu", processor, "-d", "exec,nochain",
                          path, layer, str(rows), str(times)], capture_output=True, text=True, check=True)
    base = int(re.search(r"^base (\S+)$", run.stdout, re.MULTILINE)[1], 16)
    return collections.Counter(int(place[1], 16) - base
                               for place in re.finditer(r"\[[0-9a-f]+/([0-9a-f]+)/", run.stderr))


def names(library, known, address):
    """The kernels that have the code at an address."""
    for size in (48, 32, 24, 16):
        code = library.code(address, size)
        found = [name for name, content in known.items() if len(code) == size and code in content]
        if found:
            return tuple(sorted(found))
    return ()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("processor", nargs="*", default=list(PROCESSORS), choices=[*PROCESSORS, []],
                        help=f"of {', '.join(PROCESSORS)}; all by default")
    arguments = parser.parse_args()
    subprocess.run([ROOT / "tools" / "dev" / "cross_root.sh", CROSS], check=True)
    library, known = Library(), kernels()
    with tempfile.TemporaryDirectory() as folder:
        path = program(pathlib.Path(folder))
        for layer, rows in LAYERS:
            for processor in arguments.processor:
                first, second = (executed(path, PROCESSORS[processor], layer, rows, times) for times in (1, 2))
                second.subtract(first)
                # Other code lies elsewhere each time.
                own = collections.Counter({address: count for address, count in second.items()
                                           if library.code(address, 4)})
                counts = collections.Counter()
                for address, count in own.most_common(MOST):
                    counts[names(library, known, address)] += count
                del counts[()]
                found = counts.most_common(1)
                print(f"{layer}, rows: {rows}, {processor}:", " or ".join(found[0][0]) if found else "unknown",
                      flush=True)


if __name__ == "__main__":
    sys.exit(main())
