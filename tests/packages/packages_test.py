# SPDX-License-Identifier: Apache-2.0
"""The Debian packages in a fresh Debian system that has nothing else of Hearth: the tests of
debian/tests, removal and upgrade. Skipped where no such system can be made."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from fresh_root import ROOT, USER, FreshRoot  # noqa: E402

# What the tests of debian/tests read of the sources.
SOURCES = ("debian", "examples", "models", "tests/install")
PACKAGES = ("hearth", "libhearth-dev", "libhearth0", "libneuralnetworks-hearth", "python3-hearth")


def declaredTests():
    """Pairs of name and dependencies from debian/tests/control."""
    text = (ROOT / "debian" / "tests" / "control").read_text(encoding="utf-8")
    for paragraph in re.split(r"\n\n+", text.strip()):
        fields = dict(re.findall(r"^(\S+): *(.*)$", paragraph, re.MULTILINE))
        for name in fields["Tests"].split():
            yield name, re.split(r",\s*", fields["Depends"])


def nextVersion(package, folder):
    """The same package as one of the next version."""
    content = folder / package.stem
    subprocess.run(["dpkg-deb", "--raw-extract", package, content], check=True)
    control = content / "DEBIAN" / "control"
    text = control.read_text(encoding="utf-8")
    version = re.search(r"^Version: (.*)$", text, re.MULTILINE)[1]
    text = text.replace(f"Version: {version}\n", f"Version: {version}+next\n")
    control.write_text(text.replace(f"(= {version})", f"(= {version}+next)"), encoding="utf-8")
    result = folder / f"{package.stem}+next.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", content, result],
                   check=True, capture_output=True)
    return result


class PackagesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="hearth-packages-test-")
        cls.addClassCleanup(holder.cleanup)
        folder = pathlib.Path(holder.name)
        cls.root = FreshRoot(folder)
        # Large enough to be kept in the store, and made well before it is first read: the store does
        # not believe a file that has just changed.
        cls.root.path("/src").mkdir()
        subprocess.run([sys.executable, ROOT / "bench" / "workloads" / "generate.py", "mlp",
                        cls.root.path("/src/large.tflite"), "--megabytes", "4"], check=True,
                       capture_output=True)
        made = subprocess.run(
            [sys.executable, ROOT / "tools" / "dev" / "packages.py", "--preset", "packages_test",
             "--output", folder / "packages"], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise AssertionError(f"The packages are not made: {made.stdout[-2000:]}{made.stderr}")
        cls.folder = folder
        cls.packages = sorted((folder / "packages").glob("*.deb"))
        cls.root.addArchive("hearth", cls.packages)
        for name in SOURCES:
            shutil.copytree(ROOT / name, cls.root.path(f"/src/{name}"),
                            ignore=shutil.ignore_patterns("__pycache__"))

    def asUser(self, *command, **options):
        return self.root.succeed(*command, user=USER, folder="/src", **options)

    def start(self):
        """How a start of a large model went, by the user."""
        report = json.loads(self.asUser("hearth", "bench", "large.tflite", "--repeat", "0", "--json"))
        return report["start"]["state"]

    def testEveryPackageIsMade(self):
        self.assertLessEqual(set(PACKAGES), {path.name.split("_")[0] for path in self.packages})

    def testTheTestsOfThePackages(self):
        tests = list(declaredTests())
        self.assertGreater(len(tests), 3)
        for name, dependencies in tests:
            with self.subTest(name):
                self.root.install(*dependencies)
                self.asUser("mkdir", "-p", f"/home/user/{name}")
                self.asUser(f"debian/tests/{name}", AUTOPKGTEST_TMP=f"/home/user/{name}")

    def testRemovalLeavesTheStoreOfTheUserAndNothingElse(self):
        self.root.install(*PACKAGES)
        self.start()
        # Python as root writes compiled files beside the sources.
        self.root.succeed("python3", "-c", "import hearth")
        installed = self.root.succeed("dpkg-query", "--listfiles", *PACKAGES).splitlines()
        names = [path for path in installed if re.search("hearth|neuralnetworks", path)]
        self.assertGreater(len(names), 50)
        self.root.succeed("apt-get", "-q", "-y", "purge", *PACKAGES)
        found = self.root.succeed(
            "find", "/", "-xdev", "(", "-path", "/proc", "-o", "-path", "/dev", "-o", "-path",
            "/src", "-o", "-path", "/srv", "-o", "-path", "/home/user", "-o", "-path",
            "/var/cache/apt", "-o", "-path", "/var/lib/apt", "-o", "-path",
            "/etc/apt/sources.list.d", ")", "-prune", "-o", "(", "-iname", "*hearth*", "-o",
            "-iname", "*neuralnetworks*", ")", "-print")
        self.assertEqual(found, "")
        self.assertTrue(self.root.path("/home/user/.cache/hearth/store").is_dir())
        self.assertEqual(self.root.run("hearth", "--version")[0], 127)

    def testUpgradeKeepsTheStore(self):
        self.root.install("hearth", "python3-hearth", "libhearth-dev")
        self.start()
        self.assertEqual(self.start(), "warm")
        packages = self.folder / "next"
        packages.mkdir()
        self.root.addArchive("hearth-next",
                             [nextVersion(package, packages) for package in self.packages])
        self.root.succeed("apt-get", "-q", "-y", "upgrade", "--with-new-pkgs", *PACKAGES)
        versions = self.root.succeed("dpkg-query", "-W", "-f", "${Version}\n", *PACKAGES).split()
        self.assertEqual([version.endswith("+next") for version in versions], [True] * len(PACKAGES))
        self.assertEqual(self.start(), "warm")
        # The other tests begin with the first version again.
        self.root.succeed("apt-get", "-q", "-y", "purge", *PACKAGES)
        self.root.path("/etc/apt/sources.list.d/hearth-next.list").unlink()
        self.root.fetch("apt-get", "-q", "update")


if __name__ == "__main__":
    unittest.main()
