# SPDX-License-Identifier: Apache-2.0
"""Debian's archive, read by apt with the configuration of this system, but as if nothing were installed."""

import pathlib
import re
import subprocess
import tarfile
import time

MIRROR = pathlib.Path(__file__).with_name("mirror.sh")
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Of the archive, which is far away.
TRIES = 3


class ArchiveError(Exception):
    """The archive does not answer, or lacks something; the text is a sentence."""


def codename():
    """The release of this system."""
    release = pathlib.Path("/etc/os-release").read_text(encoding="utf-8")
    found = re.search(r"^VERSION_CODENAME=(\S+)", release, re.MULTILINE)
    if not found:
        raise ArchiveError("This system does not say which release of Debian it is.")
    return found[1]


def address():
    """Where this system has its packages from."""
    release = codename()
    found = subprocess.run(["bash", "-c", '. "$0"; hostMirror /etc/apt "$1"', MIRROR, release],
                           capture_output=True, text=True, check=False).stdout.strip()
    if not found:
        raise ArchiveError("The apt configuration names no archive of this release of Debian.")
    return found


class DebianArchive:
    """Indices are kept in `folder`. `sources` are lines of sources.list(5); without them it is those of
    this system. Packages are for `architecture`; without one for that of this system."""

    def __init__(self, folder, sources=(), architecture=None):
        self.state = folder / "state"
        for name in ("lists/partial", "archives/partial"):
            (self.state / name).mkdir(parents=True)
        (self.state / "status").touch()
        options = {"Dir::State": self.state, "Dir::State::lists": self.state / "lists",
                   "Dir::State::status": self.state / "status", "Dir::Cache": self.state,
                   "Dir::Cache::archives": self.state / "archives", "APT::Sandbox::User": "root",
                   "APT::Install-Recommends": "false", "Acquire::Retries": "3",
                   "Acquire::http::Timeout": "20", "Dir::Etc::parts": "/etc/apt/apt.conf.d"}
        if architecture:
            options |= {"APT::Architecture": architecture, "APT::Architectures::": architecture}
        if sources:
            (folder / "sources.list").write_text("".join(f"{line}\n" for line in sources),
                                                 encoding="utf-8")
            options |= {"Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-"}
        self.apt = ["apt-get", "--quiet", "--assume-yes"]
        for name, value in options.items():
            self.apt += ["-o", f"{name}={value}"]
        self.fetch("-o", "APT::Update::Error-Mode=any", "update")

    def fetch(self, *command, **options):
        """A command that reads the archive."""
        for attempt in range(TRIES):
            run = subprocess.run([*self.apt, *command], capture_output=True, text=True, check=False,
                                 **options)
            if run.returncode == 0:
                return
            time.sleep(5 * attempt)
        raise ArchiveError("The archive of Debian does not answer: " + " ".join(run.stderr.split()))

    def download(self, packages):
        """The packages of the archive that `packages`, names or paths, need, with those that are
        named."""
        run = subprocess.run([*self.apt, "--simulate", "install", *packages], capture_output=True,
                             text=True, check=False)
        if run.returncode != 0:
            raise ArchiveError("The archive of Debian lacks something: " + " ".join(run.stderr.split()))
        self.fetch("--download-only", "install", *packages)
        return sorted((self.state / "archives").glob("*.deb"))

    def downloadAlone(self, package, folder):
        """The package without what it needs, in `folder`."""
        self.fetch("download", package, cwd=folder)
        return next(folder.glob(f"{package.split('=')[0]}_*.deb"))

    def originalSource(self, package, version, folder):
        """The source of a package without Debian's changes, unpacked in `folder`."""
        self.fetch("--only-source", "--tar-only", "--download-only", "source", f"{package}={version}",
                   cwd=folder)
        with tarfile.open(next(folder.glob(f"{package}_*.orig.tar.*"))) as tar:
            tar.extractall(folder, filter="data")
        return next(path for path in folder.glob(f"{package}-*") if path.is_dir())
