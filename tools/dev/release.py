#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes all files of a release in a folder; runs inside the environment.

The source archive comes first, and everything else is made of it, in a folder of its own: Debian packages, the
wheel, the container image, a list of what is in them (SPDX) and their checksums. The same sources and the
same packages of Debian make the same bytes; --check makes everything twice.
"""

import argparse
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import abi  # noqa: E402
import checkout  # noqa: E402
import image  # noqa: E402
import packages  # noqa: E402
import sbom  # noqa: E402
import target as targets  # noqa: E402
from debian_archive import ArchiveError  # noqa: E402

ROOT = checkout.ROOT


class ReleaseError(Exception):
    """A step that failed, as a sentence."""


def writeSource(path, name, when):
    """The archive of all files of the checkout, below a folder `name`; its bytes depend on nothing but
    them and the time."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file in checkout.files():
            header = tarfile.TarInfo(f"{name}/{file.relative_to(ROOT)}")
            content = file.read_bytes()
            header.size, header.mtime = len(content), when
            header.mode = 0o755 if os.access(file, os.X_OK) else 0o644
            tar.addfile(header, io.BytesIO(content))
    path.write_bytes(image.compress(stream.getvalue()))


def run(command, folder):
    # The sources are no checkout, wherever they lie.
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    environment.pop("LD_LIBRARY_PATH", None)
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False)
    if done.returncode != 0:
        raise ReleaseError(f"{command[1]} ends with exit code {done.returncode}: {done.stdout[-3000:]}")


def makeBinaries(source, output, architectures):
    """The Debian packages and wheels that the source archive makes, in `output`. `architectures` are words of
    the command line that choose some."""
    with tempfile.TemporaryDirectory(prefix="hearth-release-") as scratch:
        with tarfile.open(source) as tar:
            tar.extractall(scratch, filter="data")
        folder, = pathlib.Path(scratch).iterdir()
        made = folder / "build" / "made"
        for tool in ("packages", "wheels"):
            print(f"Making {tool} ...", file=sys.stderr, flush=True)
            run([sys.executable, f"tools/dev/{tool}.py", "--output", made, *architectures], folder)
        for path in sorted(made.iterdir()):
            if path.suffix in (".deb", ".whl"):
                shutil.move(path, output / path.name)


def compare(first, second):
    """Refuses two folders whose files differ."""
    names = sorted({path.name for folder in (first, second) for path in folder.iterdir()})
    different = [name for name in names
                 if not ((first / name).is_file() and (second / name).is_file()
                         and (first / name).read_bytes() == (second / name).read_bytes())]
    if different:
        raise ReleaseError(f"A second build makes other bytes of {', '.join(different)}.")


def contents(folder, needed):
    """Which packages of Debian are in the files of the folder, by their names."""
    inWheel = [sbom.installedPackage(name) for name in sbom.COMPONENTS]
    found = {}
    for path in folder.iterdir():
        if path.suffix == ".whl":
            found[path.name] = inWheel
        elif path.suffix == ".deb":
            names = sbom.OF_PACKAGES.get(path.name.split("_")[0], [])
            found[path.name] = [sbom.installedPackage(name) for name in names]
        elif path.name.endswith("-oci.tar"):
            found[path.name] = [sbom.DebianPackage(*(image.field(package, name) for name in
                                                     ("Package", "Version", "Architecture")))
                                for paths in needed.values() for package in paths]
    return found


def writeSums(folder):
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
             for path in sorted(folder.iterdir()) if path.name != "SHA256SUMS"]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def makeRelease(version, output, isChecked, architectures):
    name = f"hearth-{version}"
    when = image.changelogTime()
    broken = abi.compare()
    if broken:
        raise ReleaseError(" ".join(broken) + " If that is meant, tools/dev/abi.py --write accepts it.")
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="hearth-release-") as scratch:
        scratch = pathlib.Path(scratch)
        source = output / f"{name}.tar.gz"
        writeSource(source, name, when)
        makeBinaries(source, output, architectures)
        print("Making the container image ...", file=sys.stderr, flush=True)
        needed = image.download(image.ownPackages(output), scratch / "archive")
        image.makeImage(output, needed, output / f"{name}-oci.tar")
        if isChecked:
            print("Making all of it again ...", file=sys.stderr, flush=True)
            again = scratch / "again"
            again.mkdir()
            writeSource(again / source.name, name, when)
            makeBinaries(source, again, architectures)
            image.makeImage(again, needed, again / f"{name}-oci.tar")
            compare(output, again)
        listing = sbom.document(version, when, sorted(output.iterdir()), contents(output, needed))
    (output / f"{name}.spdx.json").write_text(json.dumps(listing, indent=1) + "\n", encoding="utf-8")
    writeSums(output)


def main():
    parser = argparse.ArgumentParser(prog="./dev release", description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--check", action="store_true",
                        help="make everything twice, in different folders, and compare")
    parser.add_argument("--output", type=pathlib.Path, help="default: build/dist/hearth-VERSION")
    targets.addOption(parser)
    arguments = parser.parse_args()
    architectures = ["--arch", arguments.arch] if arguments.arch else []
    try:
        version = packages.checkVersion(ROOT)
        output = (arguments.output or ROOT / "build" / "dist" / f"hearth-{version}").resolve()
        targets.targets(arguments.arch)
        makeRelease(version, output, arguments.check, architectures)
    except targets.TargetError as error:
        print(f"dev: {error}", file=sys.stderr)
        return 2
    except (ReleaseError, abi.AbiError, packages.PackagesError, image.ImageError, ArchiveError) as error:
        print(f"dev: {error}", file=sys.stderr)
        return 1
    for path in sorted(output.iterdir()):
        print(f"{path.stat().st_size / 1e6:6.1f} MB  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
