# SPDX-License-Identifier: Apache-2.0
"""The container image of packages that have next to nothing in them; tests/packages makes one of the real
packages and enters it."""

import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "dev"), str(ROOT / "tests" / "packages")]

import image  # noqa: E402
from unpacked_image import Image  # noqa: E402


def makePackage(folder, name, architecture, files):
    """A package with these files; a value that begins with "->" makes a link."""
    content = folder / "content"
    for path, text in {**files, "DEBIAN/control":
                       f"Package: {name}\nVersion: 1.2\nArchitecture: {architecture}\n"
                       "Maintainer: x <x@example.org>\nDescription: x\n"}.items():
        place = content / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            place.symlink_to(text[2:])
        else:
            place.write_text(text, encoding="utf-8")
    package = folder / f"{name}_1.2_{architecture}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", content, package], check=True,
                   capture_output=True)
    subprocess.run(["rm", "-r", content], check=True)
    return package


class ImageTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.needed = {}

    def addArchitecture(self, architecture):
        for name in image.OURS:
            makePackage(self.folder, name, architecture, {f"usr/lib/{name}": architecture})
        below = self.folder / "debian"
        below.mkdir(exist_ok=True)
        links = {name: f"->usr/{name}" for name in ("bin", "lib", "sbin")}
        self.needed[architecture] = [makePackage(below, "base-files", architecture, links)]

    def make(self):
        path = self.folder / "image.tar"
        sizes = image.makeImage(self.folder, self.needed, path)
        self.assertEqual(set(sizes), set(self.needed))
        return path

    def content(self, made, path):
        """What a file has in the last layer."""
        with tarfile.open(fileobj=io.BytesIO(made.layers[-1])) as tar:
            return tar.extractfile(path).read().decode()

    def testOneArchitectureIsOneManifest(self):
        self.addArchitecture("arm64")
        made = Image(self.make())
        [manifest] = made.index["manifests"]
        self.assertEqual(manifest["mediaType"], "application/vnd.oci.image.manifest.v1+json")
        self.assertEqual(manifest["platform"], {"architecture": "arm64", "os": "linux", "variant": "v8"})
        self.assertEqual(made.configuration["architecture"], "arm64")
        self.assertEqual(self.content(made, "usr/lib/hearth"), "arm64")

    def testSeveralAreManifestsBehindOneName(self):
        for architecture in ("amd64", "arm64"):
            self.addArchitecture(architecture)
        path = self.make()
        with tarfile.open(path) as tar:
            index = json.load(tar.extractfile("index.json"))
        [root] = index["manifests"]
        self.assertEqual(root["mediaType"], "application/vnd.oci.image.index.v1+json")
        self.assertEqual(root["annotations"]["org.opencontainers.image.ref.name"], "1.2")
        for architecture in ("amd64", "arm64"):
            made = Image(path, architecture)
            self.assertEqual((made.configuration["architecture"], made.configuration["os"]),
                             (architecture, "linux"))
            self.assertEqual(self.content(made, "usr/lib/libhearth0"), architecture)

    def testTheSamePackagesMakeTheSameBytes(self):
        for architecture in ("arm64", "amd64"):
            self.addArchitecture(architecture)
        before = self.make().read_bytes()
        self.assertEqual(self.make().read_bytes(), before)

    def testAnArchitectureThatLacksAPackageIsRefused(self):
        self.addArchitecture("amd64")
        self.addArchitecture("arm64")
        (self.folder / "libhearth0_1.2_arm64.deb").unlink()
        with self.assertRaisesRegex(image.ImageError, "one each for arm64, but hearth, libneural"):
            self.make()
        for path in self.folder.glob("*.deb"):
            path.unlink()
        with self.assertRaisesRegex(image.ImageError, "holds none of the packages hearth, "):
            self.make()

    def testASystemWithoutItsLinksIsRefused(self):
        self.addArchitecture("arm64")
        self.needed["arm64"] = []
        with self.assertRaisesRegex(image.ImageError, "do not make /(bin|lib|sbin) a link"):
            self.make()


if __name__ == "__main__":
    unittest.main()
