# SPDX-License-Identifier: Apache-2.0
"""The parts of a release that are made in seconds; `./dev release --check` makes all of it twice."""

import hashlib
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "bench")]

import checkout  # noqa: E402
import comparison  # noqa: E402
import release  # noqa: E402
import sbom  # noqa: E402

VALIDATOR = "spdx-tools==0.8.5"
WHEN = 1_700_000_000


class FolderTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def write(self, name, content=b"content"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


class ReleaseTest(FolderTest):

    def testTheSourceArchiveHasTheCheckoutAndTheSameBytesTwice(self):
        paths = [self.folder / name for name in ("first.tar.gz", "second.tar.gz")]
        for path in paths:
            release.writeSource(path, "hearth-1", WHEN)
        self.assertEqual(*(path.read_bytes() for path in paths))
        with tarfile.open(paths[0]) as tar:
            headers = {header.name: header for header in tar}
        self.assertEqual(set(headers), {f"hearth-1/{path.relative_to(checkout.ROOT)}"
                                        for path in checkout.files()})
        self.assertEqual({(header.mtime, header.uid, header.isreg()) for header in headers.values()},
                         {(WHEN, 0, True)})
        self.assertEqual(headers["hearth-1/dev"].mode, 0o755)
        self.assertEqual(headers["hearth-1/README.md"].mode, 0o644)

    def testFoldersThatDifferAreRefused(self):
        for folder in ("first", "second"):
            self.write(f"{folder}/same")
            self.write(f"{folder}/other", folder.encode())
        self.write("first/more")
        with self.assertRaisesRegex(release.ReleaseError, "other bytes of more, other\\.$"):
            release.compare(self.folder / "first", self.folder / "second")
        release.compare(self.folder / "first", self.folder / "first")

    def testSumsAreThoseOfAllFiles(self):
        self.write("one", b"1")
        self.write("two", b"2")
        release.writeSums(self.folder)
        checked = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=self.folder, check=True,
                                 capture_output=True, text=True).stdout
        self.assertEqual(checked, "one: OK\ntwo: OK\n")


class ListingTest(FolderTest):

    def listing(self):
        wheel, package = self.write("hearth-1.whl", b"wheel"), self.write("hearth_1_amd64.deb", b"deb")
        held = [sbom.DebianPackage("libssl-dev", "1:3.5~x+y", "amd64"),
                sbom.DebianPackage("other", "2", "all")]
        return sbom.document("1", WHEN, [wheel, package], {wheel.name: held, package.name: held[1:]})

    def testItNamesFilesAndWhatIsInThem(self):
        listing = self.listing()
        entries = {entry["name"]: entry for entry in listing["packages"]}
        self.assertEqual(set(entries), {"hearth-1.whl", "hearth_1_amd64.deb", "libssl-dev", "other"})
        self.assertEqual(entries["hearth-1.whl"]["checksums"][0]["checksumValue"],
                         hashlib.sha256(b"wheel").hexdigest())
        self.assertEqual(entries["libssl-dev"]["externalRefs"][0]["referenceLocator"],
                         "pkg:deb/debian/libssl-dev@1%3A3.5~x%2By?arch=amd64")
        self.assertEqual(entries["libssl-dev"]["licenseDeclared"], "Apache-2.0")
        holds = [relation for relation in listing["relationships"]
                 if relation["relationshipType"] == "CONTAINS"]
        self.assertEqual(len(holds), 3)
        self.assertEqual(listing, self.listing())

    def testAnotherToolTakesIt(self):
        try:
            python = comparison.environmentPython(comparison.CACHE / "spdx-venv", VALIDATOR)
        except comparison.Failure as failure:
            raise unittest.SkipTest(f"spdx-tools is not there: {failure}.") from None
        listing = self.listing()
        for isRight in (True, False):
            if not isRight:
                listing["packages"][0]["downloadLocation"] = "nowhere"
            path = self.write("hearth.spdx.json", json.dumps(listing).encode())
            checked = subprocess.run([python.with_name("pyspdxtools"), "--infile", path],
                                     capture_output=True, text=True, check=False)
            self.assertEqual(checked.returncode == 0, isRight, checked.stderr)

    def testEveryComponentIsInstalled(self):
        for name in {*sbom.COMPONENTS, *(name for names in sbom.OF_PACKAGES.values() for name in names)}:
            self.assertTrue(sbom.installedPackage(name).version, name)
            self.assertIn(name, sbom.COMPONENTS)


if __name__ == "__main__":
    unittest.main()
