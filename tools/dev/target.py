# SPDX-License-Identifier: Apache-2.0
"""The architectures that packages, wheels and images are made for: that of this machine, and those that it
builds for with the compiler and the libraries of cross_root.sh."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import checkout  # noqa: E402

# How uname calls what Debian calls otherwise.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# Which other architectures a machine builds for.
CROSS = {"amd64": ("arm64",)}


class TargetError(Exception):
    """An architecture that nothing is made for here; the text is a sentence."""


def nativeArchitecture():
    """Debian's name of this machine's architecture."""
    return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True,
                          check=True).stdout.strip()


class Target:
    """An architecture, by Debian's name, and what is particular to building for it on this machine."""

    def __init__(self, architecture, native):
        self.architecture = architecture
        self.machine = MACHINES.get(architecture, architecture)
        self.triplet = f"{self.machine}-linux-gnu"
        self.isNative = architecture == native
        self.root = checkout.cacheFolder() / architecture

    def preset(self, name):
        """The preset of CMake that builds `name` for it."""
        return name if self.isNative else f"{name}_{self.architecture}"

    def tool(self, name):
        """A program of binutils for its files."""
        return name if self.isNative else str(self.root / "tools" / "usr" / "bin" / f"{self.triplet}-{name}")

    def libraries(self):
        """The folder with its libraries of the system."""
        sysroot = pathlib.Path("/") if self.isNative else self.root / "sysroot"
        return sysroot / "usr" / "lib" / self.triplet

    def parts(self):
        """What its wheel needs that Debian 13 does not have; the presets of wheels look there."""
        return checkout.cacheFolder() / self.preset("wheel-parts").replace("_", "-")

    def cmakeOptions(self):
        """What a project that has no presets is configured with."""
        if self.isNative:
            return []
        return ["-D", f"CMAKE_TOOLCHAIN_FILE={checkout.ROOT / 'cmake' / 'Arm64Toolchain.cmake'}"]

    def debianEnvironment(self):
        """What dpkg-buildpackage and debian/rules need to build for it."""
        if self.isNative:
            return {}
        return {"HEARTH_CROSS_ROOT": str(self.root),
                "PATH": f"{self.root / 'tools' / 'usr' / 'bin'}:{os.environ['PATH']}"}


def targets(choice=None):
    """The targets that a user means: all of this machine by "all", its own architecture by default."""
    native = nativeArchitecture()
    possible = [native, *CROSS.get(native, ())]
    chosen = possible if choice == "all" else [choice or native]
    if not set(chosen) <= set(possible):
        raise TargetError(f"On {native} nothing is made for {choice}, only for {' and '.join(possible)}.")
    return [Target(architecture, native) for architecture in chosen]


def addOption(parser):
    """Adds --arch, whose value targets() takes."""
    parser.add_argument("--arch", metavar="ARCH",
                        help="build for arm64 or, with \"all\", also for it; without this for this machine")
