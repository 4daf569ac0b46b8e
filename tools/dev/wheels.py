#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of the Python package that needs nothing but Python, NumPy and glibc; runs inside the
environment.

The wheel has the libraries, the command and the delegate as well. It is for all Pythons since OLDEST_PYTHON:
one module uses the stable interface of Python 3.12, another one is for Python 3.11, whose headers come from
Debian 12. What Debian 13 lacks for this is made of its sources once and kept in the cache folder. Libraries
run with glibc 2.34 (older_glibc.py, src/base/older_glibc.c). The same checkout makes the same bytes. A wheel for
another architecture is built with its compiler and libraries (cross_root.sh).
"""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import checkout  # noqa: E402
import debian_archive  # noqa: E402
import image  # noqa: E402
import older_glibc  # noqa: E402
import packages  # noqa: E402
import target as targets  # noqa: E402

ROOT = checkout.ROOT
OLDEST_PYTHON = (3, 11)
HEADERS = "libpython3.11-dev"
DEBIAN_12 = "bookworm"
# What every system has; libraries of others are copied into the wheel.
SYSTEM = re.compile(r"(?:lib(?:c|dl|gcc_s|m|pthread|rt)|ld-linux[-\w]*)\.so\.\d+")
OWN = re.compile(r"lib(?:hearth\w*|neuralnetworks)\.so(?:\.\d+)?")
# The licence of libseccomp.
LGPL = pathlib.Path("/usr/share/common-licenses/LGPL-2.1")
# The exit code when Debian's archive does not answer.
UNREACHABLE = 3
# Starts the program without loading the package.
SCRIPT = """#!python
import importlib.util
import os
import sys

folder = os.path.dirname(importlib.util.find_spec("hearth").origin)
program = os.path.join(folder, "bin", "hearth")
os.execv(program, [program, *sys.argv[1:]])
"""
METADATA = """Metadata-Version: 2.4
Name: hearth
Version: {version}
Summary: Runs .tflite models, with packed weights that all processes share
License-Expression: Apache-2.0
License-File: LICENSE
License-File: LGPL-2.1
License-File: copyright
License-File: notices.txt
Requires-Python: >={python}
Requires-Dist: numpy
Description-Content-Type: text/markdown

Hearth runs `.tflite` models on Linux. All processes share a store of packed weights, so that every start of
a model after the first takes milliseconds and ten processes hold its weights once.

    import hearth, numpy

    model = hearth.Model("model.tflite").compile()
    outputs = model.run({{"image": numpy.zeros((1, 224, 224, 3), numpy.float32)}})

`hearth` and `python -m hearth` are the command. LiteRT programs get Hearth by
`load_delegate(hearth.delegate_library())`.
"""


class WheelsError(Exception):
    """A step that failed, as a sentence."""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False, **options)
    if done.returncode != 0:
        raise WheelsError(f"{command[0]} ends with exit code {done.returncode}: {done.stdout[-3000:]}")
    return done.stdout


def makeHeaders(archive, folder):
    """The headers of Python 3.11, in `folder`."""
    package = archive.downloadAlone(HEADERS, folder)
    run("dpkg-deb", "--extract", package, folder / "package")
    shutil.move(folder / "package" / "usr" / "include", folder / "include")


def makeCapnProto(archive, version, folder, target):
    """Archives of Cap'n Proto for shared libraries, which those of Debian are not fit for."""
    source = archive.originalSource("capnproto", version, folder)
    build = folder / "build"
    environment = os.environ | {"CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1"}
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Release",
        "-D", "CMAKE_CXX_COMPILER_LAUNCHER=ccache", "-D", f"CMAKE_CXX_FLAGS=-ffile-prefix-map={source}=.",
        "-D", "CMAKE_POSITION_INDEPENDENT_CODE=ON", "-D", "BUILD_SHARED_LIBS=OFF", "-D", "BUILD_TESTING=OFF",
        "-D", "WITH_FIBERS=OFF", "-D", "WITH_OPENSSL=OFF", "-D", "WITH_ZLIB=OFF", *target.cmakeOptions(),
        env=environment)
    run("cmake", "--build", build, "--target", "capnp", "kj", env=environment)
    for name in ("capnp", "kj"):
        shutil.move(build / "src" / name / f"lib{name}.a", folder / f"lib{name}.a")


def ensureParts(target):
    """Makes what target.parts() lacks."""
    version = run("dpkg-query", "-W", "-f", "${source:Version}", "libcapnp-dev")
    wanted = f"format 1, {HEADERS}, capnproto {version}\n"
    parts = target.parts()
    stamp = parts / "stamp"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    print(f"Making Cap'n Proto for the wheel of {target.architecture} ...", file=sys.stderr)
    if not target.isNative:
        run(HERE / "cross_root.sh", target.root)
    with tempfile.TemporaryDirectory(prefix="wheel-parts-", dir=parts.parent) as scratch:
        scratch = pathlib.Path(scratch)
        for name in ("lists", "python", "capnp", "made"):
            (scratch / name).mkdir()
        key, address = debian_archive.KEYS, debian_archive.address()
        archive = debian_archive.DebianArchive(scratch / "lists", [
            f"deb [signed-by={key}] {address} {DEBIAN_12} main",
            f"deb-src [signed-by={key}] {address} {debian_archive.codename()} main"], target.architecture)
        makeHeaders(archive, scratch / "python")
        makeCapnProto(archive, version, scratch / "capnp", target)
        made = scratch / "made"
        (scratch / "python" / "include").rename(made / "include")
        for name in ("libcapnp.a", "libkj.a"):
            (scratch / "capnp" / name).rename(made / name)
        (made / "stamp").write_text(wanted, encoding="utf-8")
        if parts.exists():
            parts.rename(scratch / "old")
        made.rename(parts)


def needed(path):
    return run("patchelf", "--print-needed", path).split()


def libraryOf(soname, target):
    """The library of the target's system that has a name."""
    path = target.libraries() / soname
    if not path.is_file():
        raise WheelsError(f"There is no library {path}.")
    return path.resolve()


def stage(tree, folder):
    """The package as it is installed, in `folder`."""
    prefix = folder.with_name("installed")
    run("cmake", "--install", tree, "--prefix", prefix)
    for name in ("bin", "lib"):
        (folder / name).mkdir(parents=True)
    shutil.copy2(prefix / "bin" / "hearth", folder / "bin" / "hearth")
    # Wheels have no links: each library has the name by which others need it.
    for path in sorted((prefix / "lib").rglob("*.so*")):
        if not path.is_symlink():
            soname = run("patchelf", "--print-soname", path).strip()
            place = folder / path.parent.relative_to(prefix)
            place.mkdir(exist_ok=True)
            shutil.copy2(path, place / (soname or path.name))
    for path in sorted((prefix / "python").iterdir()):
        if path.is_file():
            shutil.copy2(path, folder / path.name)
        else:
            shutil.copytree(path, folder / path.name)


def binaries(folder):
    return [folder / "bin" / "hearth", *sorted((folder / "lib").rglob("*.so*")),
            *sorted(folder.glob("*.so"))]


def dynamicNames(path, target, option):
    """The names that a library or program has for others (--defined-only), or wants of them (--undefined-only)."""
    listed = run(target.tool("nm"), "-D", option, "--format=posix", path)
    return {re.split("[ @]", line)[0] for line in listed.splitlines()}


def addOthers(folder, target):
    """Copies the libraries of others, under names that no other library of a process has."""
    own = binaries(folder)
    for soname in sorted({soname for path in own for soname in needed(path)}):
        if SYSTEM.fullmatch(soname) or OWN.fullmatch(soname):
            continue
        renamed = "libhearth_" + re.sub(r"^lib|\.so.*$", "", soname) + ".so"
        copy = folder / "lib" / renamed
        shutil.copyfile(libraryOf(soname, target), copy)
        copy.chmod(0o755)
        run("patchelf", "--set-soname", renamed, "--set-rpath", "$ORIGIN", copy)
        names = dynamicNames(copy, target, "--defined-only")
        renames = folder.with_name("renames.map")
        renames.write_text("".join(f"{name} hearth_{name}\n" for name in sorted(names)), encoding="utf-8")
        run("patchelf", "--rename-dynamic-symbols", renames, copy)
        for path in own:
            # A weak reference is also found in a library that only another one needs.
            if names & dynamicNames(path, target, "--undefined-only"):
                run("patchelf", "--rename-dynamic-symbols", renames, path)
            if soname in needed(path):
                run("patchelf", "--replace-needed", soname, renamed, path)


def finish(folder, target):
    """Leaves nothing in the binaries that a user's system may lack, and no symbols that nobody needs."""
    addOthers(folder, target)
    for path in binaries(folder):
        # Others have been through patchelf, whose files strip does not lay out well.
        if path.name not in ("libhearth_xnnpack.so", "libhearth_cpuinfo.so"):
            run(target.tool("strip"), "--strip-unneeded", path)
        try:
            path.write_bytes(older_glibc.ledBack(path.read_bytes()))
        except older_glibc.GlibcError as error:
            raise WheelsError(f"{path.name} needs a newer glibc than 2.{older_glibc.NEWEST[1]}: "
                              f"{error}") from error


def checkNames(folder):
    """That a binary needs only what lies in the wheel or is of every system."""
    for path in binaries(folder):
        for soname in needed(path):
            if not (SYSTEM.fullmatch(soname) or (folder / "lib" / soname).is_file()):
                raise WheelsError(f"{path.name} needs {soname}, which is not in the wheel.")


def tag(target):
    major, minor = OLDEST_PYTHON
    return f"cp{major}{minor}-abi3-manylinux_{older_glibc.NEWEST[0]}_{older_glibc.NEWEST[1]}_{target.machine}"


def wheelFiles(folder, version, target):
    """Pairs of name and (content, mode) of what is in the wheel but the list of files."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            isProgram = path.parent.name == "bin" or ".so" in path.suffixes
            files[f"hearth/{path.relative_to(folder)}"] = (path.read_bytes(), 0o755 if isProgram else 0o644)
    info = f"hearth-{version}.dist-info"
    python = ".".join(map(str, OLDEST_PYTHON))
    texts = {
        f"{info}/METADATA": METADATA.format(version=version, python=python),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: hearth ({version})\nRoot-Is-Purelib: false\n"
                         f"Tag: {tag(target)}\n",
        f"{info}/licenses/LICENSE": (ROOT / "LICENSE").read_text(encoding="utf-8"),
        f"{info}/licenses/LGPL-2.1": LGPL.read_text(encoding="utf-8"),
        f"{info}/licenses/copyright": (ROOT / "debian" / "copyright").read_text(encoding="utf-8"),
        f"{info}/licenses/notices.txt": (HERE / "wheel_notices.txt").read_text(encoding="utf-8"),
    }
    files |= {name: (text.encode(), 0o644) for name, text in texts.items()}
    files[f"hearth-{version}.data/scripts/hearth"] = (SCRIPT.encode(), 0o755)
    return files


def writeWheel(files, version, when, output, target):
    """The wheel of these files; its bytes depend on nothing else but the time."""
    rows = []
    for name, (content, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(content)}\n")
    record = f"hearth-{version}.dist-info/RECORD"
    rows.append(f"{record},,\n")
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"hearth-{version}-{tag(target)}.whl"
    partial = path.with_name(path.name + ".partial")
    with zipfile.ZipFile(partial, "w") as archive:
        # The list comes last, as the specification recommends.
        for name, (content, mode) in [*sorted(files.items()), (record, ("".join(rows).encode(), 0o644))]:
            header = zipfile.ZipInfo(name, time.gmtime(when)[:6])
            header.create_system = 3
            header.external_attr = (0o100000 | mode) << 16
            archive.writestr(header, content, zipfile.ZIP_DEFLATED)
    # Its compressor (libdeflate) makes the wheel 3 % smaller than zlib's best does, with the same bytes each time.
    run("advzip", "--recompress", "--shrink-normal", partial)
    partial.rename(path)
    return path


def makeWheel(tree, version, output, target):
    with tempfile.TemporaryDirectory(prefix="hearth-wheel-") as scratch:
        folder = pathlib.Path(scratch) / "hearth"
        stage(tree, folder)
        finish(folder, target)
        checkNames(folder)
        return writeWheel(wheelFiles(folder, version, target), version, image.changelogTime(), output, target)


def main():
    parser = argparse.ArgumentParser(prog="./dev wheels", description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--preset", default="wheels", choices=("wheels", "wheels_test"),
                        help="what the wheel is made of: wheels_test has test hooks and is compiled as the "
                        "release build is")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build" / "dist",
                        help="the folder for the wheel (build/dist)")
    targets.addOption(parser)
    arguments = parser.parse_args()
    output = arguments.output.resolve()
    made = []
    try:
        version = packages.checkVersion(ROOT)
        chosen = targets.targets(arguments.arch)
        for old in output.glob("hearth-*.whl"):
            old.unlink()
        for target in chosen:
            ensureParts(target)
            preset = target.preset(arguments.preset)
            packages.build(preset)
            tree = ROOT / "build" / preset
            if arguments.preset == "wheels":
                packages.checkHooks(tree)
            made.append(makeWheel(tree, version, output, target))
    except targets.TargetError as error:
        print(f"dev: {error}", file=sys.stderr)
        return 2
    except (WheelsError, packages.PackagesError) as error:
        print(f"dev: {error}", file=sys.stderr)
        return 1
    except debian_archive.ArchiveError as error:
        print(f"dev: {error}", file=sys.stderr)
        return UNREACHABLE
    for path in made:
        print(f"{path.stat().st_size / 1e6:6.1f} MB  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
