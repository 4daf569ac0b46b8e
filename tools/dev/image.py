#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a container image, as an OCI archive, of Hearth's Debian packages; inside the environment.

image.py PACKAGES OUT: from the packages in the folder PACKAGES to the file OUT.

The image has two layers: the packages of Debian that Hearth needs, and Hearth's command and libraries.
Packages are unpacked and not installed: none of them has a script that matters here, so that neither
root nor a container engine is needed. The same packages make the same bytes.
"""

import dataclasses
import email.utils
import hashlib
import io
import json
import pathlib
import posixpath
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from debian_archive import ArchiveError, DebianArchive  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
OURS = ("hearth", "libhearth0", "libneuralnetworks-hearth")
# For /etc/os-release and the texts of licences.
OTHERS = ("base-files",)
# What nobody reads in a container; of documentation only copyright notices stay.
LEFT_OUT = re.compile(r"usr/share/(?:doc/[^/]+/(?!copyright$)|"
                      r"(?:bash-completion|info|lintian|locale|man|zsh)(?:/|$))")
# Those that Debian calls otherwise than containers do.
ARCHITECTURES = {"armhf": "arm", "i386": "386", "ppc64el": "ppc64le"}
STORE = "store"
USER = 65532
CONFIGURATION = {
    "User": f"{USER}:{USER}",
    "Env": ["PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", f"XDG_CACHE_HOME=/{STORE}",
            f"XDG_STATE_HOME=/{STORE}"],
    "Entrypoint": ["/usr/bin/hearth"],
    "Cmd": ["--help"],
    "Volumes": {f"/{STORE}": {}},
    "WorkingDir": "/",
}


class ImageError(Exception):
    """A step that failed, as a sentence."""


@dataclasses.dataclass
class Entry:
    """A file, folder or link of a layer."""
    header: tarfile.TarInfo
    content: bytes = b""


def output(*command):
    run = subprocess.run([str(word) for word in command], capture_output=True, check=False)
    if run.returncode != 0:
        raise ImageError(f"{command[0]} ends with exit code {run.returncode}: "
                         f"{run.stderr.decode(errors='replace').strip()}")
    return run.stdout


def field(package, name):
    return output("dpkg-deb", "--field", package, name).decode().strip()


def ownPackages(folder):
    found = []
    for name in OURS:
        paths = sorted(folder.glob(f"{name}_*.deb"))
        if len(paths) != 1:
            raise ImageError(f"{folder} holds {len(paths)} packages {name}, not one.")
        found += paths
    return found


def download(packages, folder):
    """The packages of Debian that `packages` need, and OTHERS."""
    ours = {package.name for package in packages}
    found = DebianArchive(folder).download([*map(str, packages), *OTHERS])
    return [path for path in found if path.name not in ours]


def unpack(package, entries):
    """Adds what a package holds, but for what is left out."""
    with tarfile.open(fileobj=io.BytesIO(output("dpkg-deb", "--fsys-tarfile", package))) as tar:
        for header in tar:
            path = posixpath.normpath(header.name)
            if path == "." or LEFT_OUT.match(path):
                continue
            if not (header.isreg() or header.isdir() or header.issym() or header.islnk()):
                raise ImageError(f"{package.name} holds /{path}, which is neither file nor link.")
            if header.isdir() and path in entries:
                continue
            content = tar.extractfile(header).read() if header.isreg() else b""
            header.name = path
            if header.islnk():
                header.linkname = posixpath.normpath(header.linkname)
            entries[path] = Entry(header, content)


def add(entries, path, kind, mode, text=""):
    header = tarfile.TarInfo(path)
    header.type, header.mode = kind, mode
    content = text.encode()
    header.size = len(content)
    entries[path] = Entry(header, content)


def systemEntries(packages):
    """The layer of Debian's packages, with the little that their scripts would have made."""
    entries = {}
    for package in packages:
        unpack(package, entries)
    for name in ("bin", "lib", "lib64", "sbin"):
        if name not in entries or not entries[name].header.issym():
            raise ImageError(f"Debian's packages do not make /{name} a link into /usr.")
    add(entries, "etc/passwd", tarfile.REGTYPE, 0o644,
        "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"hearth:x:{USER}:{USER}:hearth:/{STORE}:/usr/sbin/nologin\n")
    add(entries, "etc/group", tarfile.REGTYPE, 0o644, f"root:x:0:\nhearth:x:{USER}:\n")
    for path in ("tmp", STORE):
        add(entries, path, tarfile.DIRTYPE, 0o1777)
    return entries


def ownEntries(packages, below):
    """The layer of Hearth's packages on top of `below`."""
    entries = {}
    for package in packages:
        unpack(package, entries)
    return {path: entry for path, entry in entries.items()
            if not (entry.header.isdir() and path in below)}


def layer(entries, when):
    """The bytes of a layer: they depend on nothing but the entries and the time."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        # Hard links come after all files that they may lead to, folders before what is in them.
        for path in sorted(entries, key=lambda path: (entries[path].header.islnk(), path)):
            entry = entries[path]
            header = tarfile.TarInfo(path)
            header.type, header.mode = entry.header.type, entry.header.mode
            header.linkname, header.size = entry.header.linkname, len(entry.content)
            header.mtime = when
            tar.addfile(header, io.BytesIO(entry.content))
    return stream.getvalue()


def compress(content):
    compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
    return compressor.compress(content) + compressor.flush()


def changelogTime():
    """When the version was made, in seconds: the time of all files of the image."""
    text = (ROOT / "debian" / "changelog").read_text(encoding="utf-8")
    date = re.search(r"^ -- .*>  (.*)$", text, re.MULTILINE)[1]
    return int(email.utils.parsedate_to_datetime(date).timestamp())


class Archive:
    """The files of an OCI archive."""

    def __init__(self, when):
        self.when = when
        self.files = {}

    def addBlob(self, content, kind):
        """The descriptor of a blob."""
        digest = hashlib.sha256(content).hexdigest()
        self.files[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}",
                "size": len(content)}

    def addJson(self, value, kind):
        return self.addBlob(json.dumps(value, sort_keys=True).encode(), kind)

    def write(self, path):
        partial = path.with_name(path.name + ".partial")
        with tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as tar:
            for name in sorted(self.files):
                header = tarfile.TarInfo(name)
                header.size, header.mtime = len(self.files[name]), self.when
                tar.addfile(header, io.BytesIO(self.files[name]))
        partial.rename(path)


def makeImage(folder, needed, path):
    """Writes the archive of the packages in `folder` and those of Debian that they need; gives the
    size of the image's files."""
    ours = ownPackages(folder)
    when = changelogTime()
    system = systemEntries(needed)
    own = ownEntries(ours, system)

    archive = Archive(when)
    contents = [layer(system, when), layer(own, when)]
    layers = [archive.addBlob(compress(content), "layer.v1.tar+gzip") for content in contents]
    version, architecture = (field(ours[0], name) for name in ("Version", "Architecture"))
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    configuration = archive.addJson({
        "architecture": ARCHITECTURES.get(architecture, architecture),
        "os": "linux",
        "created": created,
        "config": CONFIGURATION | {"Labels": {
            "org.opencontainers.image.title": "hearth",
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.licenses": "Apache-2.0"}},
        "rootfs": {"type": "layers", "diff_ids": [
            f"sha256:{hashlib.sha256(content).hexdigest()}" for content in contents]},
        "history": [{"created": created, "created_by": name}
                    for name in ("packages of Debian", f"packages of Hearth {version}")],
    }, "config.v1+json")
    manifest = archive.addJson({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": configuration, "layers": layers}, "manifest.v1+json")
    manifest["annotations"] = {"org.opencontainers.image.ref.name": version}
    archive.files["index.json"] = json.dumps(
        {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
         "manifests": [manifest]}, sort_keys=True).encode()
    archive.files["oci-layout"] = json.dumps({"imageLayoutVersion": "1.0.0"}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    archive.write(path)
    return sum(len(entry.content) for entries in (system, own) for entry in entries.values())


def main():
    if len(sys.argv) != 3:
        print("usage: image.py PACKAGES OUT", file=sys.stderr)
        return 2
    folder, path = (pathlib.Path(text).resolve() for text in sys.argv[1:])
    try:
        with tempfile.TemporaryDirectory(prefix="hearth-image-") as scratch:
            needed = download(ownPackages(folder), pathlib.Path(scratch))
            size = makeImage(folder, needed, path)
    except (ImageError, ArchiveError) as error:
        print(f"dev: {error}", file=sys.stderr)
        return 1
    print(f"{path.stat().st_size / 1e6:6.1f} MB, {size / 1e6:.1f} MB unpacked  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
