# SPDX-License-Identifier: Apache-2.0
"""python -m hearth.doctor PROGRAM-OR-SCRIPT ARGS...: runs a program with Hearth's libraries where it
looks for those of NNAPI and TensorFlow Lite, and says afterwards which of them it used and how its models
started."""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time

from . import _files

_USAGE = """usage: python -m hearth.doctor PROGRAM [ARGUMENT...]
       python -m hearth.doctor SCRIPT.py [ARGUMENT...]
       python -m hearth.doctor -m MODULE [ARGUMENT...]

Runs a program with libneuralnetworks.so and libtensorflowlite_c.so of Hearth on its library path, or a
Python script with its imports of TensorFlow Lite answered by hearth.tflite. Then says on standard error
which of them were used, which models were started on which device, and why a start was not warm."""

_PYTHON = "the Python package"
# Libraries that a process may map, and what they are to their users.
_DOORS = ((re.compile(r"libneuralnetworks\.so"), "NNAPI"),
          (re.compile(r"libtensorflowlite_c\.so"), "TensorFlow Lite's C library"),
          (re.compile(r"libhearth_delegate\.so"), "the LiteRT delegate"),
          (re.compile(r"_hearth\..*\.so"), _PYTHON),
          (re.compile(r"_pywrap_(litert|tensorflow)_interpreter_wrapper.*\.so"), "LiteRT's own interpreter"))
_PACKAGE = pathlib.Path(__file__).resolve().parent
_POLL_S = 0.02
_MANY = 20


def _library_folders():
    """The folders of Hearth's libraries that programs may open by name."""
    library = _files.find("lib", "libneuralnetworks.so")
    # Without one beside this package, the system's packages have them, and the loader finds that one.
    base = pathlib.Path(library).parent if library else \
        pathlib.Path("/usr/lib", sysconfig.get_config_var("MULTIARCH") or "")
    folders = [base / "hearth-tflite", *([base] if library else [])]
    return [str(folder) for folder in folders if folder.is_dir()]


def _command(arguments):
    """What is started: Python scripts by hearth.tflite."""
    runner = [sys.executable, "-m", "hearth.tflite"]
    if arguments[0] == "-m":
        return [*runner, *arguments]
    path = arguments[0] if os.path.exists(arguments[0]) else shutil.which(arguments[0])
    if path is None:
        return None
    if path.endswith(".py"):
        return [*runner, path, *arguments[1:]]
    # Programs that pip makes are scripts of the environment's Python.
    with open(path, "rb") as file:
        first = file.readline(4096).decode(errors="replace")
    if first.startswith("#!") and "python" in first:
        interpreter = first[2:].split()
        return [*interpreter, *runner[1:], path, *arguments[1:]]
    return [path, *arguments[1:]]


def _environment(report):
    environment = dict(os.environ, HEARTH_REPORT=report)
    for name, values in (("LD_LIBRARY_PATH", _library_folders()), ("PYTHONPATH", [str(_PACKAGE.parent)])):
        before = environment.get(name)
        environment[name] = os.pathsep.join([*values, *([before] if before else [])])
    return environment


def _processes(root):
    """A process and those that it has started."""
    found, queue = [], [root]
    while queue:
        process = queue.pop()
        found.append(process)
        try:
            for task in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{task}/children", encoding="ascii") as file:
                    queue += [int(child) for child in file.read().split()]
        except OSError:
            pass
    return found


class _Watch(threading.Thread):
    """Notes which of the libraries the processes map, while they run."""

    def __init__(self, root):
        super().__init__(daemon=True)
        self._root = root
        self._is_over = threading.Event()
        self.libraries = {}  # {path: what it is}

    def run(self):
        while True:
            for process in _processes(self._root):
                self._look(process)
            if self._is_over.wait(_POLL_S):
                return

    def stop(self):
        self._is_over.set()
        self.join()

    def _look(self, process):
        try:
            with open(f"/proc/{process}/maps", encoding="utf-8", errors="replace") as file:
                paths = {line.split(None, 5)[5].rstrip("\n") for line in file
                         if "/" in line and ".so" in line}
        except OSError:
            return
        for path in paths - self.libraries.keys():
            for pattern, door in _DOORS:
                if pattern.match(os.path.basename(path)):
                    self.libraries[path] = door


def _is_ours(path):
    folder = os.path.realpath(os.path.dirname(path))
    ours = [_PACKAGE, *(_library_folders())]
    if any(folder == os.path.realpath(each) for each in ours):
        return True
    try:
        return any(name.startswith("libhearth.so") for name in os.listdir(folder))
    except OSError:
        return False


def _starts(report):
    """The lines of a report, one for each start."""
    try:
        with open(report, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.strip()]
    except FileNotFoundError:
        return []


def _table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def _model_lines(starts):
    groups = collections.defaultdict(list)
    for start in starts:
        model = os.path.basename(start["model"]) or "(given by the program)"
        groups[model, start["device"]].append(start["start"])
    rows = [("model", "device", "starts", "first ms", "last ms", "why not warm")]
    for (model, device), group in groups.items():
        states = collections.Counter(start["state"] for start in group)
        reasons = dict.fromkeys(start["reason"] for start in group if start["reason"])
        rows.append((model, device, ", ".join(f"{count} {state}" for state, count in states.items()),
                     f"{group[0]['prepare_ms']:.1f}", f"{group[-1]['prepare_ms']:.1f}", "; ".join(reasons)))
    lines = _table(rows[:_MANY + 1])
    return lines + ([f"  and {len(rows) - 1 - _MANY} more"] if len(rows) - 1 > _MANY else [])


def _said(command, code, seconds, libraries, starts):
    """The lines of the answer."""
    ending = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
    lines = [f"{' '.join(command)}", f"  {ending} after {seconds:.1f} s", "", "Libraries that it used:"]
    for path, door in sorted(libraries.items(), key=lambda item: item[1]):
        whose = "" if _is_ours(path) else "  NOT HEARTH'S"
        lines.append(f"  {door}: {path}{whose}")
    if not libraries:
        lines.append("  none of Hearth's, of NNAPI or of TensorFlow Lite was seen")
    lines += ["", "Models that Hearth started:"]
    if starts:
        return lines + _model_lines(starts)
    lines.append("  none")
    # A script has the Python package in any case.
    doors = {path: _is_ours(path) for path, door in libraries.items() if door != _PYTHON}
    if doors and not any(doors.values()):
        lines.append("  The program opened a library of its own: a path in its settings or its run path goes "
                     "before LD_LIBRARY_PATH.")
    elif libraries:
        lines.append("  Hearth was opened, and the program gave it no model.")
    else:
        lines.append("  A program that TensorFlow Lite is linked into opens no library. One that opens "
                     "libtensorflowlite_c.so by a path needs that path changed.")
    return lines


def main():
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE)
        return 0
    if not arguments or arguments[0].startswith("-") and (arguments[0] != "-m" or len(arguments) < 2):
        print(_USAGE, file=sys.stderr)
        return 2
    command = _command(arguments)
    if command is None:
        print(f"hearth.doctor: there is no program {arguments[0]!r}.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="hearth-doctor-") as folder:
        report = os.path.join(folder, "starts.json")
        begin = time.monotonic()
        try:
            process = subprocess.Popen(command, env=_environment(report))
        except OSError as error:
            print(f"hearth.doctor: {command[0]} cannot be started: {error.strerror}.", file=sys.stderr)
            return 2
        watch = _Watch(process.pid)
        watch.start()
        # Ctrl+C ends the program, and then the doctor speaks.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = process.wait()
        watch.stop()
        seconds = time.monotonic() - begin
        lines = _said(command, code, seconds, watch.libraries, _starts(report))
        print("", *lines, sep="\n", file=sys.stderr)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
