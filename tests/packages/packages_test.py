# SPDX-License-Identifier: Apache-2.0
"""The Debian packages in a fresh Debian system that has nothing else of Hearth: the tests of
debian/tests, removal and upgrade. The container image that is made of them, unpacked and entered.
Skipped where no such system can be made or entered."""

import contextlib
import functools
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import vendor_package  # noqa: E402
from fresh_root import ROOT, USER, FreshRoot  # noqa: E402
from unpacked_image import Image, UnpackedImage  # noqa: E402

sys.path.insert(0, str(ROOT / "tools" / "dev"))

import image as image_maker  # noqa: E402

# The files of the checkout that the tests of debian/tests read.
SOURCES = ("debian", "examples", "models", "src/drivers/delegate/testing", "tests/compatibility/models",
           "tests/install")
PACKAGES = ("hearth", "hearth-delegate", "hearth-driver-dev", "hearth-driver-vulkan", "hearth-drivers",
            "libhearth-dev", "libhearth0", "libneuralnetworks-hearth", "libtensorflowlite-c-hearth", "python3-hearth")


def declaredTests():
    """Pairs of name and dependencies from debian/tests/control."""
    text = (ROOT / "debian" / "tests" / "control").read_text(encoding="utf-8")
    for paragraph in re.split(r"\n\n+", text.strip()):
        fields = dict(re.findall(r"^(\S+): *(.*)$", paragraph, re.MULTILINE))
        for name in fields["Tests"].split():
            yield name, re.split(r",\s*", fields["Depends"])


def nextVersion(package, folder):
    """The same package with the number of the next version."""
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


def largeModel(path):
    """Writes a model that is large enough for the store. It must exist well before it is first
    read: the store does not trust a file that has just changed."""
    subprocess.run([sys.executable, ROOT / "bench" / "workloads" / "generate.py", "mlp", path,
                    "--megabytes", "4"], check=True, capture_output=True)


def setUpModule():
    global folder, packages
    holder = tempfile.TemporaryDirectory(prefix="hearth-packages-test-")
    unittest.addModuleCleanup(holder.cleanup)
    folder = pathlib.Path(holder.name)
    made = subprocess.run(
        [sys.executable, ROOT / "tools" / "dev" / "packages.py", "--preset", "packages_test",
         "--output", folder / "packages"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise AssertionError(f"The packages are not made: {made.stdout[-2000:]}{made.stderr}")
    packages = sorted((folder / "packages").glob("*.deb"))


@functools.cache
def freshRoot():
    """A system with the packages in an archive, and sources in /src."""
    root = FreshRoot(folder)
    root.path("/src").mkdir()
    largeModel(root.path("/src/large.tflite"))
    root.addArchive("hearth", packages)
    for name in SOURCES:
        shutil.copytree(ROOT / name, root.path(f"/src/{name}"), ignore=shutil.ignore_patterns("__pycache__"))
    return root


class PackagesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.root = freshRoot()

    def asUser(self, *command, **options):
        return self.root.succeed(*command, user=USER, folder="/src", **options)

    def start(self):
        """The state of a start of a large model, by the user."""
        report = json.loads(self.asUser("hearth", "bench", "large.tflite", "--repeat", "0", "--json"))
        return report["start"]["state"]

    def testEveryPackageIsMade(self):
        self.assertLessEqual(set(PACKAGES), {path.name.split("_")[0] for path in packages})

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
        # Python, run by root, writes compiled files beside the sources.
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
        self.root.install(*PACKAGES)
        self.start()
        self.assertEqual(self.start(), "warm")
        made = folder / "next"
        made.mkdir()
        self.root.addArchive("hearth-next", [nextVersion(package, made) for package in packages])
        self.root.succeed("apt-get", "-q", "-y", "upgrade", "--with-new-pkgs", *PACKAGES)
        versions = self.root.succeed("dpkg-query", "-W", "-f", "${Version}\n", *PACKAGES).split()
        self.assertEqual([version.endswith("+next") for version in versions], [True] * len(PACKAGES))
        self.assertEqual(self.start(), "warm")
        # The other tests need the first version again.
        self.root.succeed("apt-get", "-q", "-y", "purge", *PACKAGES)
        self.root.path("/etc/apt/sources.list.d/hearth-next.list").unlink()
        self.root.fetch("apt-get", "-q", "update")


class GpuDriverTest(unittest.TestCase):
    """The driver of GPUs in a system without Vulkan; debian/tests/vulkan has it with Mesa's."""

    MODEL = ("models/digits/digits.tflite", "--random-input", "1")

    @classmethod
    def setUpClass(cls):
        cls.root = freshRoot()
        # The tests of the packages install it.
        cls.root.run("apt-get", "-q", "-y", "purge", "libvulkan1")
        cls.root.install("hearth", "hearth-driver-vulkan")
        cls.addClassCleanup(cls.root.run, "apt-get", "-q", "-y", "purge", "hearth", "hearth-driver-vulkan", "libhearth0")

    def hearth(self, *command, **options):
        return self.root.succeed("hearth", *command, user=USER, folder="/src", **options)

    def testTheReasonIsToldToWhoAsks(self):
        report = json.loads(self.hearth("devices", "--json"))
        self.assertEqual([driver["name"] for driver in report["left_out"]], ["vulkan-gpu"])
        self.assertIn("vulkan-gpu is left out: ", self.hearth("devices"))
        code, output = self.root.run("hearth", "run", *self.MODEL, "--device", "vulkan-gpu", user=USER, folder="/src")
        self.assertEqual(code, 2)
        self.assertIn("It is left out: ", output)
        # Asked for, it is tried.
        self.assertIn("libvulkan.so.1 cannot be loaded", self.hearth("devices", HEARTH_VULKAN_DEVICE="any"))

    def testProgramsLoadNothingAndSayNothing(self):
        if list(pathlib.Path("/dev").glob("dri/renderD*")) + list(pathlib.Path("/dev").glob("nvidia*")):
            self.skipTest("This machine has a GPU.")
        self.hearth("run", *self.MODEL)
        said = self.hearth("run", *self.MODEL, "--json", LD_DEBUG="files")
        # The names of the libraries that the loader opens.
        self.assertIn("libhearth_threads.so", said)
        self.assertNotIn("libhearth_driver_vulkan", said)
        self.assertNotIn("libvulkan", said)
        self.assertNotIn("left out", said)


class VendorTest(unittest.TestCase):
    """An NPU's delegate in a system with Hearth's packages, as its user would go about it."""

    MODEL = "tests/compatibility/models/resnet-float32.tflite"
    NAME = vendor_package.NAME
    # Half a second of computing, with a host on a processor of its own.
    RUNS = 15000

    @classmethod
    def setUpClass(cls):
        cls.root = freshRoot()
        cls.root.install("hearth")
        cls.addClassCleanup(cls.root.run, "apt-get", "-q", "-y", "purge", "hearth", "libhearth0")
        cls.addClassCleanup(vendor_package.remove, cls.root)
        vendor_package.install(cls.root, "/src/src/drivers/delegate/testing/vendor_delegate.c")
        # The probe writes the manifest, which root puts where all programs look.
        options = [text for key, value in vendor_package.OPTIONS.items() for text in ("--option", f"{key}={value}")]
        cls.probe = json.loads(cls.hearth("devices", "--probe", vendor_package.LIBRARY, cls.MODEL, *options, "--json"))
        cls.probe["manifest"]["name"] = cls.NAME
        cls.manifest = f"/usr/local/share/hearth/drivers/{cls.NAME}.json"
        cls.addClassCleanup(cls.root.run, "rm", "-r", "/usr/local/share/hearth")
        cls.root.succeed("mkdir", "-p", "/usr/local/share/hearth/drivers")
        cls.root.path(cls.manifest).write_text(json.dumps(cls.probe["manifest"]), encoding="utf-8")
        cls.right = cls.outputs("--device", "hearth-cpu")

    @classmethod
    def hearth(cls, *command, **options):
        return cls.root.succeed("hearth", *command, user=USER, folder="/src", **options)

    @classmethod
    def outputs(cls, *command, **options):
        """The output files of a run, with the same inputs each time."""
        cls.hearth("run", cls.MODEL, "--random-input", "7", "--output-dir", "/home/user/outputs", *command, **options)
        return {path.name: path.read_bytes() for path in cls.root.path("/home/user/outputs").iterdir()}

    def start(self, *command, **options):
        """A command of the user's that goes on."""
        process = self.root.start("hearth", *command, user=USER, folder="/src", **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def hosts(self):
        return self.root.processes("serve", self.NAME)

    def kill(self, hosts):
        for number in hosts:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def wait(self, condition, what):
        """The first answer of the condition that is true."""
        for _ in range(1200):
            if answer := condition():
                return answer
            time.sleep(0.05)
        self.fail(f"There is no {what}.")

    def device(self, **variables):
        devices = json.loads(self.hearth("devices", "--json", **variables))["devices"]
        return next(device for device in devices if device["name"] == self.NAME)

    def ended(self, process):
        """The report of a process that has measured a model to the end."""
        output, errors = process.communicate(timeout=900)
        self.assertEqual(process.returncode, 0, errors)
        return json.loads(output)

    def testTheProbeShowsWhatTheDelegateTakes(self):
        operations = self.probe["operations"]
        self.assertGreater(operations["taken"], 0)
        self.assertLess(operations["taken"], operations["count"])
        self.assertEqual(self.probe["results"]["different_elements"], 0)
        device = self.device()
        self.assertRegex(device["version"], r"^libacme_delegate\.so [0-9a-f]{12} take=,0,$")
        self.assertEqual(device["host"]["kind"], "spawned")

    def testAProgramGoesOnWhenItsHostIsKilled(self):
        program = self.start("bench", self.MODEL, "--repeat", str(self.RUNS), "--json")
        host = self.wait(self.hosts, "host of the program")
        self.kill(host)
        # A second program meanwhile, which has a host of its own.
        self.assertEqual(self.outputs(), self.right)
        self.wait(lambda: self.hosts() - host or program.poll() is not None, "second host")
        report = self.ended(program)
        self.assertEqual(report["inference_ms"]["runs"], self.RUNS)
        self.assertIn(self.NAME, report["device"])
        self.wait(lambda: not self.hosts(), "end of the hosts")

    def testProgramsShareAHost(self):
        socket = "/home/user/npu.sock"
        place = {"HEARTH_DRIVER_HOSTS": f"{self.NAME}={socket}"}

        def serve():
            self.root.path(socket).unlink(missing_ok=True)
            host = self.start("serve", "--manifest", self.manifest, "--socket", socket)
            self.wait(lambda: self.root.path(socket).exists(), "socket")
            return host

        host = serve()
        self.assertEqual(self.device(**place)["host"]["kind"], "shared")
        program = self.start("bench", self.MODEL, "--repeat", str(self.RUNS), "--json", **place)
        # With the one that asks.
        self.wait(lambda: self.device(**place)["host"]["clients"] >= 2 or program.poll() is not None,
                  "client of the host")
        self.assertEqual(self.outputs(**place), self.right)
        self.kill(self.root.processes("serve", socket))
        host.wait(timeout=60)
        serve()
        self.assertEqual(self.outputs(**place), self.right)
        self.assertEqual(self.ended(program)["inference_ms"]["runs"], self.RUNS)


class ImageTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.paths = [folder / "image" / name for name in ("first.tar", "second.tar")]
        # The packages in Debian's archive may change between two downloads.
        holder = tempfile.TemporaryDirectory(dir=folder)
        cls.addClassCleanup(holder.cleanup)
        try:
            needed = image_maker.download(image_maker.ownPackages(folder / "packages"),
                                          pathlib.Path(holder.name))
        except image_maker.ArchiveError as error:
            raise unittest.SkipTest(str(error)) from error
        for path in cls.paths:
            image_maker.makeImage(folder / "packages", needed, path)
        cls.image = Image(cls.paths[0])

    def testTheSamePackagesMakeTheSameBytes(self):
        self.assertEqual(*(path.read_bytes() for path in self.paths))

    def testItIsAnOciArchive(self):
        self.assertEqual(json.loads(self.image.files["oci-layout"]), {"imageLayoutVersion": "1.0.0"})
        self.assertEqual([f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in self.image.layers],
                         self.image.configuration["rootfs"]["diff_ids"])
        self.assertEqual(self.image.configuration["os"], "linux")
        # With two entries of one name, the result would depend on the unpacking program.
        for layer in self.image.layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
                headers = tar.getmembers()
            names = [header.name for header in headers]
            self.assertEqual(len(names), len(set(names)))
            self.assertEqual({(header.uid, header.gid, header.mode & 0o6000) for header in headers},
                             {(0, 0, 0)})

    def testItRunsAsAnyUserWithAReadOnlyRoot(self):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            entered = UnpackedImage(self.image, pathlib.Path(place))
            size = sum(path.lstat().st_size for path in entered.root.rglob("*")
                       if not path.is_dir() or path.is_symlink())
            self.assertLess(size, 120e6)
            largeModel(entered.home / "large.tflite")
            shutil.copytree(ROOT / "models" / "digits", entered.home / "digits")
            code, output = entered.enter(
                "run", "/home/digits/digits.tflite", "--input", "/home/digits/samples/digit_3.png",
                "--labels", "/home/digits/labels.txt", "--top", "1", "--json")
            self.assertEqual(code, 0, output)
            self.assertEqual(json.loads(output)["top"][0]["label"], "3")
            time.sleep(3)
            states = []
            for _ in range(2):
                code, output = entered.enter("bench", "/home/large.tflite", "--repeat", "0", "--json")
                self.assertEqual(code, 0, output)
                states.append(json.loads(output)["start"]["state"])
            self.assertEqual(states, ["cold", "warm"])
            self.assertTrue((entered.store / "hearth" / "store").is_dir())


if __name__ == "__main__":
    unittest.main()
