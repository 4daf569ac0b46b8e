# SPDX-License-Identifier: Apache-2.0
"""Reads an OCI archive, unpacks it as a container engine does, and enters it with bubblewrap."""

import hashlib
import io
import json
import tarfile
import unittest
import zlib

from fresh_root import lastLines

import test_runs


class Image:
    """The only image of an archive, or that for an architecture."""

    def __init__(self, path, architecture=None):
        with tarfile.open(path) as tar:
            self.files = {header.name: tar.extractfile(header).read() for header in tar}
        self.index = json.loads(self.files["index.json"])
        manifests = self.index["manifests"]
        if architecture:
            [root] = manifests
            manifests = [manifest for manifest in json.loads(self.blob(root))["manifests"]
                         if manifest["platform"]["architecture"] == architecture]
        [manifest] = manifests
        self.manifest = json.loads(self.blob(manifest))
        self.configuration = json.loads(self.blob(self.manifest["config"]))
        self.layers = [zlib.decompress(self.blob(layer), 31) for layer in self.manifest["layers"]]

    def blob(self, descriptor):
        """The bytes to which a descriptor refers; checks their size and digest."""
        kind, digest = descriptor["digest"].split(":")
        content = self.files[f"blobs/{kind}/{digest}"]
        if len(content) != descriptor["size"] or hashlib.new(kind, content).hexdigest() != digest:
            raise AssertionError(f"The blob {digest} is not what its descriptor says.")
        return content

    def unpack(self, folder):
        for layer in self.layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
                tar.extractall(folder, filter="fully_trusted")


class UnpackedImage:
    """A read-only root with a volume for the store, entered as a user that the image does not
    know."""

    USER = "4711"

    def __init__(self, image, folder, launcher=()):
        self.launcher = [str(word) for word in launcher]
        self.configuration = image.configuration["config"]
        self.root, self.store, self.home = (folder / name for name in ("root", "store", "home"))
        for path in (self.root, self.store, self.home):
            path.mkdir()
        image.unpack(self.root)
        code, output = self.enter("--version")
        if code != 0 and "bwrap:" in output:
            raise unittest.SkipTest(f"A container cannot be entered here: {lastLines(output)}")

    def enter(self, *arguments):
        """Exit code and output of the image's command; `home` is visible as /home."""
        variables = [text for pair in self.configuration["Env"]
                     for text in ("--setenv", *pair.split("=", 1))]
        return test_runs.execute(
            [*self.launcher, "bwrap", "--unshare-all", "--unshare-user", "--die-with-parent",
             "--uid", self.USER, "--gid", self.USER, "--clearenv", *variables,
             "--ro-bind", str(self.root), "/", "--bind", str(self.store), "/store",
             "--ro-bind", str(self.home), "/home", "--proc", "/proc", "--dev", "/dev",
             # As container engines do. On ARM64 cpuinfo, which XNNPACK asks, finds the processors there.
             "--ro-bind", "/sys", "/sys",
             "--chdir", self.configuration["WorkingDir"], "--",
             *self.configuration["Entrypoint"], *map(str, arguments)], timeout=300)
