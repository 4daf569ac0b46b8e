# SPDX-License-Identifier: Apache-2.0
"""A Debian system in a folder, with nothing in it but what a test installs."""

import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "dev")]

import debian_archive  # noqa: E402
import test_runs  # noqa: E402

USER = 1000
# Of the archive, which is far away.
DOWNLOAD_TRIES = 3
# What a command mounts below the folder is gone with it, also when it is killed: who removes the folder then
# would otherwise come to the /sys of this system.
OWN_MOUNTS = ("unshare", "--mount", "--propagation", "private")
ENTER = ('for place in $1; do mount --rbind "/$place" "$0/$place" || exit; done; '
         'exec chroot --userspec="$2" "$0" /bin/sh -c \'cd "$0" && exec "$@"\' "${@:3}"')


def lastLines(text, count=5):
    return " / ".join(line.strip() for line in text.splitlines()[-count:] if line.strip())


class FreshRoot:
    """The release is that of this system, unless one is named. Skips the test when such a system cannot be
    made here. `launcher` is a command that runs programs of the system's architecture."""

    def __init__(self, folder, release=None, architecture=None, launcher=()):
        if os.geteuid() != 0:
            raise unittest.SkipTest("Only root makes a Debian system in a folder.")
        self.folder = folder / "root"
        self.launcher = [str(word) for word in launcher]
        try:
            release = release or debian_archive.codename()
            address = debian_archive.address()
        except debian_archive.ArchiveError as error:
            raise unittest.SkipTest(str(error)) from error
        settings = folder / "apt.conf"
        shown = subprocess.run(["apt-config", "dump"], capture_output=True, text=True,
                               check=False).stdout
        settings.write_text("".join(
            line + "\n" for line in shown.splitlines()
            if line.startswith("Acquire::") and not re.search("auto-?detect", line, re.IGNORECASE))
            + 'Acquire::Retries "3";\nAcquire::http::Timeout "20";\n'
            'APT::Install-Recommends "false";\n', encoding="utf-8")
        # The launcher runs it, of which mmdebstrap's own check knows nothing.
        foreign = [f"--architectures={architecture}", "--skip=check/qemu"] if architecture else []
        code, output = test_runs.execute(
            [*self.launcher, *OWN_MOUNTS, "mmdebstrap", "--mode=root", "--variant=apt", "--components=main",
             *foreign, f"--aptopt={settings}", "--dpkgopt=force-unsafe-io", release, str(self.folder),
             address], timeout=1800 if launcher else 600)
        if code != 0:
            raise unittest.SkipTest(f"No Debian system can be made: {lastLines(output)}")
        code, output = self.run("true")
        if code != 0:
            raise unittest.SkipTest(f"A Debian system cannot be entered: {lastLines(output)}")
        for name in ("resolv.conf", "hosts"):
            source, copy = pathlib.Path("/etc") / name, self.folder / "etc" / name
            if source.is_file():
                copy.unlink(missing_ok=True)
                copy.write_bytes(source.read_bytes())
        home = self.path("/home/user")
        home.mkdir(parents=True)
        os.chown(home, USER, USER)

    def path(self, inside):
        """Where a path of the system is outside of it."""
        return self.folder / inside.lstrip("/")

    def entering(self, command, user, folder, variables):
        """What runs a command in the system, and its environment."""
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                       "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                       "HOME": "/home/user" if user else "/root", **variables}
        for name, value in os.environ.items():
            if name.lower().endswith("_proxy") or (self.launcher and name == "HEARTH_CACHE_DIR"):
                environment[name] = value
        # On ARM64 cpuinfo, which XNNPACK asks, finds the processors in /sys.
        shown = "proc dev sys" if self.launcher else "proc dev"
        return ([*self.launcher, *OWN_MOUNTS, "bash", "-c", ENTER,
                 str(self.folder), shown, f"{user}:{user}", folder, *map(str, command)], environment)

    def run(self, *command, user=0, folder="/", timeout=1200, **variables):
        """The exit code and the output of a command in the system."""
        entering, environment = self.entering(command, user, folder, variables)
        return test_runs.execute(entering, timeout, environment=environment)

    def start(self, *command, user=0, folder="/", **variables):
        """A command in the system that goes on, as a process with its output and errors in pipes."""
        entering, environment = self.entering(command, user, folder, variables)
        return subprocess.Popen(entering, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=environment)

    def processes(self, *words):
        """Of the processes in the system, the numbers of those that have all these words in their command
        line."""
        found = set()
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                isInside = os.readlink(path / "root") == str(self.folder)
                typed = (path / "cmdline").read_text(errors="replace").split("\0")
            except OSError:  # it has ended
                continue
            if isInside and set(words) <= set(typed):
                found.add(int(path.name))
        return found

    def succeed(self, *command, **options):
        """The output of a command that has to succeed."""
        code, output = self.run(*command, **options)
        if code != 0:
            raise AssertionError(f"{' '.join(map(str, command))}: {test_runs.describe(code)}\n"
                                 f"{output[-4000:]}")
        return output

    def fetch(self, *command):
        """A command that reads the archive: the test is skipped when the archive does not answer."""
        for attempt in range(DOWNLOAD_TRIES):
            code, output = self.run(*command)
            if code == 0:
                return
            time.sleep(5 * attempt)
        raise unittest.SkipTest(f"The archive does not answer: {lastLines(output)}")

    def addArchive(self, name, packages):
        """Makes packages in files those of an archive that apt knows in the system."""
        folder = self.path(f"/srv/{name}")
        folder.mkdir(parents=True)
        for package in packages:
            (folder / package.name).write_bytes(package.read_bytes())
        index = subprocess.run(["dpkg-scanpackages", "--multiversion", "."], cwd=folder,
                               capture_output=True, text=True, check=True).stdout
        (folder / "Packages").write_text(index, encoding="utf-8")
        self.path(f"/etc/apt/sources.list.d/{name}.list").write_text(
            f"deb [trusted=yes] file:/srv/{name} ./\n", encoding="utf-8")
        self.fetch("apt-get", "-q", "-o", "APT::Update::Error-Mode=any", "update")

    def install(self, *packages):
        """Installs packages with what they depend on. That the archive lacks one is a failure."""
        # So that what fails afterwards is not for want of the archive.
        self.succeed("apt-get", "-q", "-y", "--simulate", "install", *packages)
        self.fetch("apt-get", "-q", "-y", "--download-only", "install", *packages)
        self.succeed("apt-get", "-q", "-y", "install", *packages)
