#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the Debian packages that debian/control describes; runs inside the environment.

The libraries are built first, without tests and test hooks, with the preset "shipped". The packages
are made in a copy of the checkout, since debhelper writes beside its input, and checked by lintian.
Those for another architecture are built with its compiler and libraries (cross_root.sh).
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "dev"), str(ROOT / "tools")]

import checkout  # noqa: E402
import target as targets  # noqa: E402

# In what reads HEARTH_CRASH_AT, a variable that could kill the processes of users.
HOOK = b"The count in HEARTH_CRASH_AT"


class PackagesError(Exception):
    """A step that failed, as a sentence."""


def checkVersion(root):
    """The version that CMakeLists.txt gives the project, which all else that names it has to name."""
    def read(path):
        return (root / path).read_text(encoding="utf-8")

    wanted = re.search(r"^project\(hearth VERSION (\S+)", read("CMakeLists.txt"), re.MULTILINE)[1]
    header = re.findall(r"^#define HEARTH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$",
                        read("include/hearth/hearth.h"), re.MULTILINE)
    named = {
        "debian/changelog": re.match(r"hearth \(([^)]+)\)", read("debian/changelog"))[1],
        "include/hearth/hearth.h": ".".join(header),
        "CHANGELOG.md": re.search(r"^## (\d\S*?),? ", read("CHANGELOG.md") + " ", re.MULTILINE)[1],
    }
    for path, version in named.items():
        if version != wanted:
            raise PackagesError(f"{path} has version {version}, CMakeLists.txt says {wanted}.")
    return wanted


def build(preset):
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    run = subprocess.run([ROOT / "tools" / "dev" / "build.sh", preset], cwd=ROOT, env=environment,
                         check=False)
    if run.returncode != 0:
        raise PackagesError(f"The build of {preset} ends with exit code {run.returncode}.")


def checkHooks(tree):
    for path in sorted([*(tree / "lib").glob("*.so"), *(tree / "bin").iterdir(),
                        *(tree / "python").rglob("*.so")]):
        if HOOK in path.read_bytes():
            raise PackagesError(f"{path.name} is built with test hooks.")


def runLogged(step, command, log, **options):
    """A command that succeeds; its output goes to the log, whose end is shown on failure."""
    with log.open("a", encoding="utf-8") as file:
        file.write(f"== {step}\n")
        file.flush()
        run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file,
                             stderr=subprocess.STDOUT, check=False, **options)
    if run.returncode != 0:
        print("".join(log.read_text(encoding="utf-8", errors="replace").splitlines(True)[-40:]),
              end="", file=sys.stderr)
        raise PackagesError(f"{step} ends with exit code {run.returncode}; the log is {log}.")


def removeOld(output):
    """Removes what an earlier run, perhaps of another version, left in the folder."""
    for path in output.iterdir():
        if path.suffix in (".deb", ".changes", ".buildinfo") or path.name == "log":
            path.unlink()


def makePackages(tree, output, target):
    """The paths of the packages for a target, made in `output` of its build in `tree`."""
    with tempfile.TemporaryDirectory(prefix="hearth-packages-") as folder:
        source = pathlib.Path(folder) / "hearth"
        for path in checkout.files():
            copy = source / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
        output.mkdir(parents=True, exist_ok=True)
        log = output / "log"
        environment = {**os.environ, **target.debianEnvironment(), "HEARTH_TREE": str(tree),
                       "LC_ALL": "C.UTF-8"}
        for variable in ("LD_LIBRARY_PATH", "DEB_BUILD_OPTIONS", "DEB_BUILD_PROFILES"):
            environment.pop(variable, None)
        command = ["dpkg-buildpackage", "--build=binary", "--no-sign", "--no-pre-clean"]
        if not target.isNative:
            # The packages that ours are built with are not installed, but lie in a folder.
            command += [f"--host-arch={target.architecture}", "--no-check-builddeps"]
        runLogged("dpkg-buildpackage", command, log, cwd=source, env=environment)
        changes = next(pathlib.Path(folder).glob("*.changes"))
        runLogged("lintian", ["lintian", "--no-cfg", "--allow-root", "--fail-on", "error",
                              "--tag-display-limit", "0", changes], log, env=environment)
        for path in sorted(pathlib.Path(folder).iterdir()):
            if path.is_file():
                shutil.move(path, output / path.name)
    return sorted(path for path in output.glob("*.deb")
                  if path.stem.endswith((f"_{target.architecture}", "_all")))


def main():
    parser = argparse.ArgumentParser(prog="./dev packages",
                                     description=__doc__.split("\n", 1)[0])
    parser.add_argument("--preset", default="shipped", choices=("shipped", "packages_test"),
                        help="what the packages are made of: packages_test has test hooks and is "
                        "compiled as the release build is")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build" / "packages",
                        help="the folder for the packages (build/packages)")
    targets.addOption(parser)
    arguments = parser.parse_args()
    output = arguments.output.resolve()
    try:
        checkVersion(ROOT)
        chosen = targets.targets(arguments.arch)
        output.mkdir(parents=True, exist_ok=True)
        removeOld(output)
        made = set()
        for target in chosen:
            preset = target.preset(arguments.preset)
            build(preset)
            tree = ROOT / "build" / preset
            if arguments.preset == "shipped":
                checkHooks(tree)
            made.update(makePackages(tree, output, target))
        for package in sorted(made):
            print(f"{package.stat().st_size / 1e6:6.1f} MB  {package}")
    except targets.TargetError as error:
        print(f"dev: {error}", file=sys.stderr)
        return 2
    except PackagesError as error:
        print(f"dev: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
