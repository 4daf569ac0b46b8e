# SPDX-License-Identifier: Apache-2.0
"""./dev as it behaves inside the environment; making the environment is not tested here."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

REPO = pathlib.Path(__file__).resolve().parent.parent.parent


def dev(*arguments, repo=REPO, **more):
    environment = {**os.environ, "HEARTH_DEV_INSIDE": "1", **more.pop("variables", {})}
    for name in more.pop("unset", ()):
        environment.pop(name, None)
    return subprocess.run([str(repo / "dev"), *arguments], capture_output=True, text=True,
                          env=environment, check=False, **more)


class CommandTest(unittest.TestCase):

    def test_helpListsEveryCommand(self):
        run = dev("help")
        self.assertEqual(run.returncode, 0)
        for command in ("setup", "build", "test", "demo", "bench", "packages", "wheels",
                        "image", "release", "shell", "clean"):
            self.assertIn(f"\n  {command} ", run.stdout)

    def test_wrongUseEndsWithCode2AndASentence(self):
        for arguments in (["nothing"], ["build", "nothing"], ["build", "nothing", "base_test"], ["build", "arm32"],
                          ["setup", "more"], ["bench", "../nothing"], ["packages", "more"],
                          ["image", "more"], ["wheels", "more"], ["packages", "--arch"],
                          ["packages", "--arch", "sparc64"], ["image", "--arch", "sparc64"],
                          ["wheels", "--arch", "sparc64"], ["release", "--arch", "sparc64"], ["clean", "--nothing"]):
            run = dev(*arguments)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertRegex(run.stderr, r"^dev: .*\.\n$")
            self.assertEqual(run.stdout, "")

    def test_buildTakesTargets(self):
        run = dev("build", "release", "no_such_target")
        self.assertEqual(run.returncode, 1)
        self.assertIn("no_such_target", run.stdout + run.stderr)


class ShellTest(unittest.TestCase):

    def test_streamsFolderVariablesAndExitCodeAreTheCommands(self):
        with tempfile.TemporaryDirectory() as folder:
            run = dev("shell", "sh", "-c", 'cat; pwd; echo "$SAMPLE"; echo error >&2; exit 7',
                      cwd=folder, input="given\n", variables={"SAMPLE": "two\nlines"})
            real = os.path.realpath(folder)
        self.assertEqual(run.stdout, f"given\n{real}\ntwo\nlines\n")
        self.assertEqual(run.stderr, "error\n")
        self.assertEqual(run.returncode, 7)

    def test_argumentsArriveAsTheyAre(self):
        arguments = ["", "a b", "*", "$HOME", "'", '"', "-n"]
        run = dev("shell", "printf", "<%s>", *arguments)
        self.assertEqual(run.stdout, "".join(f"<{text}>" for text in arguments))

    def test_aSignalReachesTheCommand(self):
        script = "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
        with subprocess.Popen([str(REPO / "dev"), "shell", "sh", "-c", script],
                              stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "HEARTH_DEV_INSIDE": "1"}) as process:
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.stdout.read(), "caught\n")
            self.assertEqual(process.wait(), 5)

    def test_theReleaseBuildIsFoundFirst(self):
        run = dev("shell", "sh", "-c", 'echo "${PATH%%:*} ${LD_LIBRARY_PATH%%:*}"',
                  variables={"PATH": "/usr/bin:/bin"})
        self.assertEqual(run.stdout, f"{REPO}/build/release/bin {REPO}/build/release/lib\n")


class TestDataTest(unittest.TestCase):
    """Where the test data folder is looked for."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.main = self.folder / "main"
        (self.main / "tools").mkdir(parents=True)
        shutil.copy(REPO / "dev", self.main)
        shutil.copytree(REPO / "tools" / "dev", self.main / "tools" / "dev")

    def found(self, repo, **variables):
        return dev("shell", "sh", "-c", 'printf %s "$HEARTH_TEST_DATA"', repo=repo,
                   unset=() if variables else ("HEARTH_TEST_DATA",), variables=variables).stdout

    def test_itIsBesideTheCheckout(self):
        self.assertEqual(self.found(self.main), "")
        (self.folder / "shared").mkdir()
        self.assertEqual(self.found(self.main), f"{self.folder}/shared")

    def test_forAWorktreeItIsBesideTheMainCheckout(self):
        (self.folder / "shared").mkdir()

        def git(*arguments):
            subprocess.run(["git", "-C", str(self.main), "-c", "user.name=x", "-c", "user.email=x",
                            *arguments], check=True, capture_output=True)
        git("init")
        git("add", ".")
        git("commit", "-m", "x")
        worktree = self.folder / "deep" / "down" / "worktree"
        git("worktree", "add", str(worktree))
        self.assertEqual(self.found(worktree), f"{self.folder}/shared")

    def test_theVariableDecides(self):
        (self.folder / "shared").mkdir()
        (self.folder / "other").mkdir()
        self.assertEqual(self.found(self.main, HEARTH_TEST_DATA=f"{self.folder}/other"),
                         f"{self.folder}/other")


if __name__ == "__main__":
    unittest.main()
