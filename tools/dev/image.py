#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a container image, as an OCI archive, of Hearth's Debian packages; inside the environment.

image.py PACKAGES OUT: from the packages in the folder PACKAGES to the file OUT. With packages for several
architectures the archive has an image for each, of which engines take the one for their machine.

An image has two layers: the packages of Debian that Hearth needs, and Hearth's command and libraries.
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
VARIANTS = {"arm64": {"variant": "v8"}}
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
    """Our packages in the folder, by architecture."""
    found = {}
    for name in OURS:
        for path in sorted(folder.glob(f"{name}_*.deb")):
            found.setdefault(field(path, "Architecture"), []).append(path)
    if not found:
        raise ImageError(f"{folder} holds none of the packages {', '.join(OURS)}.")
    for architecture, paths in found.items():
        names = [path.name.split("_")[0] for path in paths]
        if names != list(OURS):
            raise ImageError(f"Of the packages {', '.join(OURS)} {folder} does not hold one each for "
                             f"{architecture}, but {', '.join(names)}.")
    return found


def download(packages, folder):
    """The packages of Debian that `packages` need, and OTHERS, by architecture as those are."""
    needed = {}
    for architecture, own in packages.items():
        names = {package.name for package in own}
        archive = DebianArchive(folder / architecture, architecture=architecture)
        found = archive.download([*map(str, own), *OTHERS])
        needed[architecture] = [path for path in found if path.name not in names]
    return needed


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
    # Not every architecture has a /lib64.
    for name in {"bin", "lib", "sbin"} | ({"lib64"} & entries.keys()):
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


def addImage(archive, ours, needed):
    """Adds the image of packages of ours for one architecture and of those of Debian that they need; gives the
    descriptor of its manifest, and the size of its files."""
    system = systemEntries(needed)
    own = ownEntries(ours, system)
    contents = [layer(system, archive.when), layer(own, archive.when)]
    layers = [archive.addBlob(compress(content), "layer.v1.tar+gzip") for content in contents]
    version, debian = (field(ours[0], name) for name in ("Version", "Architecture"))
    platform = {"architecture": ARCHITECTURES.get(debian, debian), "os": "linux"} | VARIANTS.get(debian, {})
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(archive.when))
    configuration = archive.addJson(platform | {
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
    size = sum(len(entry.content) for entries in (system, own) for entry in entries.values())
    return manifest | {"platform": platform}, size


def index(manifests):
    return {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": manifests}


def makeImage(folder, needed, path):
    """Writes the archive of the packages in `folder` and those of Debian that they need, as download() gives
    them; gives the sizes of the images' files by architecture."""
    ours = ownPackages(folder)
    archive = Archive(changelogTime())
    manifests, sizes = [], {}
    for architecture, own in sorted(ours.items()):
        manifest, sizes[architecture] = addImage(archive, own, needed[architecture])
        manifests.append(manifest)
    # Engines refuse an archive with more than one name, so several images are behind one index.
    root = manifests[0] if len(manifests) == 1 else archive.addJson(index(manifests), "index.v1+json")
    version = field(next(iter(ours.values()))[0], "Version")
    root = root | {"annotations": {"org.opencontainers.image.ref.name": version}}
    archive.files["index.json"] = json.dumps(index([root]), sort_keys=True).encode()
    archive.files["oci-layout"] = json.dumps({"imageLayoutVersion": "1.0.0"}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    archive.write(path)
    return sizes


def main():
    if len(sys.argv) != 3:
        print("usage: image.py PACKAGES OUT", file=sys.stderr)
        return 2
    folder, path = (pathlib.Path(text).resolve() for text in sys.argv[1:])
    try:
        with tempfile.TemporaryDirectory(prefix="hearth-image-") as scratch:
            needed = download(ownPackages(folder), pathlib.Path(scratch))
            sizes = makeImage(folder, needed, path)
    except (ImageError, ArchiveError) as error:
        print(f"dev: {error}", file=sys.stderr)
        return 1
    unpacked = ", ".join(f"{size / 1e6:.1f} MB unpacked for {name}" for name, size in sizes.items())
    print(f"{path.stat().st_size / 1e6:6.1f} MB, {unpacked}  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
