# SPDX-License-Identifier: Apache-2.0
"""Runs jobs in a process of their own, which may crash or hang. Jobs and answers are JSON objects,
one on each line."""

import json
import os
import selectors
import subprocess
import sys
import tempfile


class Lost(Exception):
    """The process ended, or did not answer in time; the text says which."""


def serve(answer):
    """Answers jobs from standard input until it ends. The output of libraries goes to standard
    error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            result = answer(json.loads(line))
        except Exception as error:
            result = {"error": sentence(error)}
        print(json.dumps(result), file=answers, flush=True)


def sentence(error):
    """The first 400 characters of an exception's message, on one line."""
    return " ".join((str(error) or type(error).__name__).split())[:400]


class Service:
    """A process that answers jobs. It is started for the first job, and again after it was lost."""

    def __init__(self, command, timeout, environment=None):
        self._command = [str(word) for word in command]
        self._timeout = timeout
        self._environment = {**os.environ, **(environment or {})}
        # The process, and the file for its standard error.
        self._process = self._errors = None

    def ask(self, job):
        """The answer to a job, a dictionary; Lost if there is none."""
        if self._process is None:
            self._start()
        self._errors.truncate(0)
        try:
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self._readLine()
        try:
            return json.loads(line)
        except ValueError:
            raise Lost(self._end()) from None

    def close(self):
        """Ends the process; another one is started for a later job."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._errors.close()
            self._process = None

    def _start(self):
        self._errors = tempfile.TemporaryFile()
        # The process appends to the file, so truncating it leaves no hole.
        with open(f"/proc/self/fd/{self._errors.fileno()}", "ab") as errors:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=self._environment)

    def _readLine(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(self._timeout):
                self.close()
                raise Lost(f"no answer within {self._timeout} s")
        return self._process.stdout.readline()

    def _end(self):
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        self.close()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{how}: {lines[-1][:300]}" if lines else how
