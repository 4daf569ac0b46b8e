# SPDX-License-Identifier: Apache-2.0
"""The wheel in fresh systems of Debian 12 and of this Debian, with Python only. Skipped where the archive of
Debian or that of Python does not answer, and where no such system can be made or entered."""

import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from fresh_root import ROOT, USER, FreshRoot, lastLines  # noqa: E402

sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "cli")]

import comparison  # noqa: E402
import older_glibc  # noqa: E402
import target  # noqa: E402
import wheels as wheel_maker  # noqa: E402
from chat_server_test import MODEL, OPENAI_WHEEL  # noqa: E402

DATA = os.environ.get("HEARTH_TEST_DATA")
# With the library and the command for language models.
LIMIT = 18 << 20
AUDITOR = "auditwheel==6.8.2"
LITERT = comparison.PEER_WHEEL
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
PYTHON = "/home/user/venv/bin/python"


def setUpModule():
    global folder, wheel
    holder = tempfile.TemporaryDirectory(prefix="hearth-wheels-test-")
    unittest.addModuleCleanup(holder.cleanup)
    folder = pathlib.Path(holder.name)
    made = subprocess.run(
        [sys.executable, ROOT / "tools" / "dev" / "wheels.py", "--preset", "wheels_test", "--output",
         folder / "dist"], capture_output=True, text=True, check=False)
    if made.returncode == wheel_maker.UNREACHABLE:
        raise unittest.SkipTest(lastLines(made.stderr))
    if made.returncode != 0:
        raise AssertionError(f"The wheel is not made: {made.stdout[-2000:]}{made.stderr}")
    wheel, = (folder / "dist").iterdir()


def nextVersion(wheel, folder):
    """The same wheel with the number of the next version."""
    version = wheel.name.split("-")[1]
    after = f"{version}.post1"
    renamed = lambda name: name.replace(f"hearth-{version}.dist-info/", f"hearth-{after}.dist-info/")
    result = folder / wheel.name.replace(f"-{version}-", f"-{after}-")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(result, "w", zipfile.ZIP_STORED) as new:
        lines = []
        for item in old.infolist():
            content = old.read(item)
            item.filename = renamed(item.filename)
            if item.filename.endswith(".dist-info/RECORD"):
                record = item
                continue
            if item.filename.endswith(".dist-info/METADATA"):
                content = content.replace(f"\nVersion: {version}\n".encode(),
                                          f"\nVersion: {after}\n".encode())
            new.writestr(item, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{item.filename},sha256={digest},{len(content)}\n")
        new.writestr(record, "".join([*lines, f"{record.filename},,\n"]))
    return result


class WheelTest(unittest.TestCase):

    def testItIsSmall(self):
        self.assertLess(wheel.stat().st_size, LIMIT)

    def testTheSameBuildMakesTheSameBytes(self):
        again = wheel_maker.makeWheel(ROOT / "build" / "wheels_test", wheel.name.split("-")[1],
                                      folder / "again", *target.targets())
        self.assertEqual(again.name, wheel.name)
        self.assertEqual(again.read_bytes(), wheel.read_bytes())

    def testAuditorsFindWhatItsNamePromises(self):
        try:
            python = comparison.environmentPython(comparison.CACHE / "auditwheel-venv", AUDITOR)
        except comparison.Failure as failure:
            raise unittest.SkipTest(f"auditwheel is not there: {failure}.") from None
        shown = subprocess.run([python, "-m", "auditwheel", "show", wheel], capture_output=True, text=True,
                               check=True).stdout
        platform = wheel.stem.split("-")[-1]
        self.assertIn(f'consistent with the following platform tag: "{platform}"', " ".join(shown.split()))

    def testNoBinaryNeedsANewerGlibc(self):
        unpacked = folder / "unpacked"
        shutil.unpack_archive(wheel, unpacked, "zip")
        found = 0
        for path in wheel_maker.binaries(unpacked / "hearth"):
            shown = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
            for major, minor in re.findall(r"\(GLIBC_(\d+)\.(\d+)", shown):
                self.assertLessEqual((int(major), int(minor)), older_glibc.NEWEST, path.name)
                found += 1
        self.assertGreater(found, 100)


    def testTheLibrariesOfOthersAreFoundUnderTheirNewNames(self):
        unpacked = folder / "renamed"
        shutil.unpack_archive(wheel, unpacked, "zip")
        this, = target.targets()
        given, wanted = {}, {}
        for path in wheel_maker.binaries(unpacked / "hearth"):
            given[path.name] = wheel_maker.dynamicNames(path, this, "--defined-only")
            wanted[path.name] = wheel_maker.dynamicNames(path, this, "--undefined-only")
        for library, user in (("cpuinfo", "xnnpack"), ("cpuinfo", "threads"), ("seccomp", None)):
            renamed = given[f"libhearth_{library}.so"]
            self.assertTrue(renamed)
            self.assertEqual({name for name in renamed if not name.startswith("hearth_")}, set())
            # The thread pool does not need cpuinfo, and asks it where XNNPACK has loaded it.
            self.assertTrue(renamed & wanted[f"libhearth_{user}.so" if user else "hearth"])
            originals = {name.removeprefix("hearth_") for name in renamed}
            self.assertEqual({name: names & originals for name, names in wanted.items() if names & originals}, {})


class InstalledWheel:
    """The tests in one release of Debian."""

    RELEASE = None

    @classmethod
    def setUpClass(cls):
        place = folder / cls.__name__
        place.mkdir()
        cls.root = FreshRoot(place, cls.RELEASE)
        (cls.root.path("/src")).mkdir()
        for path in (ROOT / "examples" / "classify.py", ROOT / "debian" / "tests" / "tflite",
                     ROOT / "models" / "digits" / "digits.tflite",
                     ROOT / "models" / "digits" / "samples" / "digit_3.png", wheel):
            shutil.copy(path, cls.root.path("/src"))
        if DATA:
            shutil.copy(pathlib.Path(DATA) / "data" / "models" / "mobilenet_v1_0.75_192_quant.tflite",
                        cls.root.path("/src/mobilenet.tflite"))
            shutil.copy(pathlib.Path(DATA) / "data" / "images" / "cat.bmp", cls.root.path("/src"))
        cls.root.fetch("apt-get", "-q", "-o", "APT::Update::Error-Mode=any", "update")
        cls.root.install("python3-venv")
        cls.settings = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        if CERTIFICATES.is_file():
            shutil.copy(CERTIFICATES, cls.root.path("/src/certificates"))
            cls.settings["PIP_CERT"] = "/src/certificates"
        cls.before = cls.files()
        cls.makeEnvironment(PYTHON, LITERT, "numpy")

    @classmethod
    def makeEnvironment(cls, python, *others):
        """An environment with the wheel and with others."""
        cls.succeed("python3", "-m", "venv", pathlib.Path(python).parents[1])
        # All that is not ours, so that a failure afterwards is one of the wheel.
        code, output = cls.asUser(python, "-m", "pip", "install", "--quiet", *others, "pillow")
        if code != 0:
            raise unittest.SkipTest(f"The archive of Python does not answer: {lastLines(output)}")
        cls.succeed(python, "-m", "pip", "install", "--quiet", f"/src/{wheel.name}")

    @classmethod
    def asUser(cls, *command, **variables):
        return cls.root.run(*command, user=USER, folder="/src", **cls.settings, **variables)

    @classmethod
    def succeed(cls, *command, **variables):
        return cls.root.succeed(*command, user=USER, folder="/src", **cls.settings, **variables)

    @classmethod
    def files(cls):
        """Paths of ours in the system of the test."""
        return set(cls.root.succeed(
            "find", "/", "-xdev", "(", "-path", "/proc", "-o", "-path", "/dev", "-o", "-path", "/src", ")",
            "-prune", "-o", "(", "-iname", "*hearth*", "-o", "-iname", "*neuralnetworks*", ")",
            "-print").splitlines())

    def classify(self, model, picture, python=PYTHON, program="classify.py", **variables):
        """What the example prints, by the one who says it."""
        shown = self.succeed(python, program, model, picture, **variables)
        return dict(re.findall(r"^(Hearth|LiteRT): (\d+)$", shown, re.MULTILINE))

    def testBothDoorsSeeTheDigit(self):
        self.assertEqual(self.classify("digits.tflite", "digit_3.png"), {"Hearth": "3", "LiteRT": "3"})

    def testItAnswersForLiteRT(self):
        shown = self.succeed(PYTHON, "-m", "hearth.tflite", "classify.py", "digits.tflite", "digit_3.png")
        self.assertEqual(re.findall(r"^(Hearth|LiteRT): (\d+)$", shown, re.MULTILINE),
                         [("Hearth", "3"), ("LiteRT", "3")])

    def testProgramsForTensorFlowLiteRunAsTheyAre(self):
        code, output = self.asUser(PYTHON, "tflite", "digits.tflite", AUTOPKGTEST_TMP="/home/user/tflite")
        self.assertEqual(code, 0, output)

    @unittest.skipUnless(DATA, "HEARTH_TEST_DATA is not set.")
    def testTheSecondStartIsWarmInBothDoors(self):
        states = []
        for start in ("first", "second"):
            report = f"/home/user/{start}.json"
            classes = self.classify("mobilenet.tflite", "cat.bmp", HEARTH_STORE="/home/user/store",
                                    HEARTH_REPORT=report)
            # A tiger cat.
            self.assertEqual(classes, {"Hearth": "282", "LiteRT": "282"})
            lines = self.root.path(report).read_text(encoding="utf-8").splitlines()
            states.append([json.loads(line)["start"]["state"] for line in lines])
        self.assertEqual(states[0][0], "cold")
        self.assertEqual(states[1], ["warm", "warm"])

    @unittest.skipUnless(DATA, "HEARTH_TEST_DATA is not set.")
    def testUpgradeKeepsTheStore(self):
        def install(path):
            self.succeed(PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade",
                         "--force-reinstall", f"/src/{path.name}")
            return self.succeed(PYTHON, "-c", "import importlib.metadata as m; print(m.version('hearth'))")

        def start():
            """The state of a start by the command, and those of the two doors of the example."""
            shown = self.succeed(PYTHON, "-m", "hearth", "bench", "mobilenet.tflite", "--repeat", "0",
                                 "--json", HEARTH_STORE="/home/user/kept")
            self.classify("mobilenet.tflite", "cat.bmp", HEARTH_STORE="/home/user/kept",
                          HEARTH_REPORT="/home/user/kept.json")
            path = self.root.path("/home/user/kept.json")
            lines = path.read_text(encoding="utf-8").splitlines()
            path.unlink()
            return [json.loads(shown)["start"]["state"],
                    *(json.loads(line)["start"]["state"] for line in lines)]

        new = nextVersion(wheel, self.root.path("/src"))
        self.addCleanup(install, wheel)
        before = install(wheel)
        start()
        self.assertEqual(start(), ["warm"] * 3)
        self.assertNotEqual(install(new), before)
        self.assertEqual(start(), ["warm"] * 3)

    def testTheCommandIsThere(self):
        for command in (["/home/user/venv/bin/hearth"], [PYTHON, "-m", "hearth"]):
            shown = self.succeed(*command, "run", "digits.tflite", "--input", "digit_3.png", "--top", "1",
                                 "--json")
            self.assertEqual(json.loads(shown)["top"][0]["index"], 3)

    def testADriverRunsInAProcessOfItsOwn(self):
        shown = self.succeed("/home/user/venv/bin/hearth", "run", "digits.tflite", "--input", "digit_3.png",
                             "--top", "1", "--json", HEARTH_DRIVER_HOSTS="hearth-cpu=spawn")
        self.assertEqual(json.loads(shown)["top"][0]["index"], 3)

    def testRemovalLeavesTheStoreOfTheUserAndNothingElse(self):
        # Makes the store where users have it, unless there is no model that is large enough.
        store = {"/home/user/.cache/hearth"} if DATA else set()
        if DATA:
            self.succeed(PYTHON, "-m", "hearth", "bench", "mobilenet.tflite", "--repeat", "1")
        self.succeed(PYTHON, "-c", "import hearth")
        self.assertTrue(self.files() - self.before - store)
        self.succeed(PYTHON, "-m", "pip", "uninstall", "--quiet", "--yes", "hearth")
        try:
            self.assertEqual(self.files() - self.before, store)
        finally:
            self.succeed(PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", f"/src/{wheel.name}")


    def runsIn(self, wheels, module):
        """The example with another runtime in place of LiteRT."""
        name = module.split(".")[0]
        python = f"/home/user/{name}/bin/python"
        self.addCleanup(shutil.rmtree, self.root.path(f"/home/user/{name}"), ignore_errors=True)
        self.makeEnvironment(python, *wheels)
        text = (ROOT / "examples" / "classify.py").read_text(encoding="utf-8")
        changed = text.replace("from ai_edge_litert.interpreter import", f"from {module} import")
        self.assertNotEqual(text, changed)
        # Not of the name of a module that it imports.
        program = f"with_{name}.py"
        self.root.path(f"/src/{program}").write_text(changed, encoding="utf-8")
        report = f"/home/user/{name}.json"
        classes = self.classify("digits.tflite", "digit_3.png", python, program, HEARTH_REPORT=report)
        self.assertEqual(classes, {"Hearth": "3", "LiteRT": "3"})
        # One compilation of each of the two.
        self.assertEqual(len(self.root.path(report).read_text(encoding="utf-8").splitlines()), 2)

    @unittest.skipUnless(os.environ.get("HEARTH_TEST_LONG") == "1", "It is only done with --long.")
    def testTensorFlowRunsOnIt(self):
        self.runsIn(["tensorflow"], "tensorflow.lite.python.interpreter")


class Debian12Test(InstalledWheel, unittest.TestCase):
    RELEASE = "bookworm"
    HEARTH = "/home/user/venv/bin/hearth"

    # As a new user does it: a question, the same again, and then the server with the package openai.
    @unittest.skipUnless(DATA, "HEARTH_TEST_DATA is not set.")
    def testALanguageModelAnswers(self):
        shutil.copy(pathlib.Path(DATA) / "data" / "llm" / f"{MODEL}.litertlm", self.root.path("/src/chat.litertlm"))
        shutil.copy(ROOT / "tests" / "cli" / "openai_client.py", self.root.path("/src"))
        store, report = "/home/user/chat", "/home/user/chat.json"
        # As the client asks.
        command = [self.HEARTH, "chat", "chat.litertlm", "--system", "You are brief.", "--prompt", "What is free software?",
                   "--temperature", "0", "--max-tokens", "12"]
        answers = [self.succeed(*command, HEARTH_STORE=store, HEARTH_REPORT=report) for _ in range(2)]
        self.assertTrue(answers[0].startswith("Free software"), answers[0])
        self.assertEqual(answers[1], answers[0])
        starts = [json.loads(line) for line in self.root.path(report).read_text(encoding="utf-8").splitlines()]
        self.assertEqual([one["start"]["state"] for one in (starts[0], starts[-1])], ["cold", "warm"])

        python = "/home/user/openai/bin/python"
        self.addCleanup(shutil.rmtree, self.root.path("/home/user/openai"), ignore_errors=True)
        self.makeEnvironment(python, OPENAI_WHEEL)
        server = self.root.start(self.HEARTH, "chat-server", "chat.litertlm", "--listen", "127.0.0.1:0", user=USER,
                                 folder="/src", HEARTH_STORE=store)
        try:
            address = server.stdout.readline().split()[-1]
            found = json.loads(self.succeed(python, "openai_client.py", f"{address}/v1"))
        finally:
            server.terminate()
            _, errors = server.communicate(timeout=60)
        self.assertEqual((server.returncode, errors), (0, ""))
        self.assertEqual(found["text"].strip(), answers[0].strip())
        self.assertEqual([one["text"] for one in found["streamed"]], [found["text"]] * 2)

    # Its last version is for Python 3.11.
    def testTheOldRuntimeOfTensorFlowLiteRunsOnIt(self):
        self.runsIn(["tflite-runtime==2.14.0", "numpy<2"], "tflite_runtime.interpreter")


class ThisDebianTest(InstalledWheel, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
