# SPDX-License-Identifier: Apache-2.0
"""Runs of the Python package in the background and on several threads, and those that the end of the
interpreter meets."""

import asyncio
import gc
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref

import numpy as np

from package_models import BUILD, DIGITS, picture, writeSlowModel  # before hearth, which it finds

import hearth


class RunsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="hearth-runs-")
        cls.addClassCleanup(holder.cleanup)
        folder = pathlib.Path(holder.name)
        cls.compiled = hearth.Model(DIGITS).compile(store=folder / "store")
        writeSlowModel(folder / "slow.tflite")
        cls.slow = hearth.Model(folder / "slow.tflite").compile(store=folder / "store")

    def testARunInFlightCanBeWaitedForAndAwaited(self):
        execution = self.compiled.create_execution()
        run = execution.start(picture(2))
        self.assertEqual(run.wait()["probabilities"].argmax(), 2)
        self.assertTrue(run.is_done)
        self.assertIs(run.wait(), run.wait(timeout=0.0))
        for call in (run.wait, hearth.flush, lambda seconds: self.compiled.run(picture(3), timeout=seconds)):
            with self.assertRaisesRegex(hearth.errors.InvalidArgument, "timeout is '1'. It needs a number"):
                call("1")

        async def both():
            runs = [self.compiled.create_execution().start(picture(digit)) for digit in (3, 5)]
            return [result["probabilities"].argmax() for result in await asyncio.gather(*runs)]
        self.assertEqual(asyncio.run(both()), [3, 5])

    def testEachOfTwoThreadsWaitsAsLongAsItWants(self):
        execution = self.slow.create_execution()
        x = np.ones((1, 2048), np.float32)
        for _ in range(20):
            run = execution.start(x)
            results = []
            thread = threading.Thread(target=lambda: results.append(run.wait()))
            thread.start()
            while (early := run.wait(timeout=0.0)) is None:
                pass
            thread.join()
            self.assertIs(results[0], early)

    def testARunKeepsItsArraysAndItsExecution(self):
        execution = self.compiled.create_execution()
        x = picture(8)
        alive = weakref.ref(x)
        run = execution.start(x)
        del x, execution
        gc.collect()
        self.assertEqual(run.wait()["probabilities"].argmax(), 8)
        del run
        gc.collect()
        self.assertIsNone(alive())

    def testOneExecutionHasOneRunAtATime(self):
        execution = self.slow.create_execution()
        x = np.ones((1, 2048), np.float32)
        run = execution.start(x)
        try:
            if not run.is_done:
                with self.assertRaises(hearth.errors.BadState):
                    execution.run(x)
        finally:
            run.wait()
        self.assertEqual(execution.run(x)["y"].shape, (1, 2048))
        del run
        execution.start(x)  # dropped at once, which waits for it
        self.assertEqual(execution.run(x)["y"].shape, (1, 2048))

    def testThreadsRunTheSameCompilation(self):
        failures = []

        def work(digit):
            for _ in range(50):
                if self.compiled.run(picture(digit))["probabilities"].argmax() != digit:
                    failures.append(digit)
        threads = [threading.Thread(target=work, args=(digit,)) for digit in (0, 2, 3, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def testOtherThreadsGoOnDuringARun(self):
        compiled = self.slow
        x = np.ones((1, 2048), np.float32)
        ticks, stop = [0], threading.Event()

        def tick():
            while not stop.is_set():
                ticks[0] += 1
                time.sleep(0)
        thread = threading.Thread(target=tick)
        thread.start()
        begin = ticks[0]
        for _ in range(20):
            compiled.run(x)
        stop.set()
        thread.join()
        self.assertGreater(ticks[0], begin)


# Four daemon threads that are inside the library when the interpreter ends.
DAEMONS = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
import numpy, hearth
mode, path = sys.argv[2:]
model = hearth.Model(path)
compiled = model.compile(threads=1, cache="off")
shape = compiled.inputs[0].shape
wrong_order = numpy.asfortranarray(numpy.ones(shape, numpy.float32))

class Frame:  # as other libraries' tensors are: Python code gives the memory
    def __init__(self): self.array = numpy.ones(shape, numpy.float32)
    def __dlpack__(self, **options):
        for _ in range(100): pass
        return self.array.__dlpack__()

class Frames(dict): pass

def loop():
    execution = compiled.create_execution()
    while True:
        if mode == "run": execution.run(wrong_order)
        elif mode == "frame": compiled.run(Frames(image=Frame()))
        elif mode == "compile": model.compile(threads=1, cache="off")
        elif mode == "wait": execution.start(wrong_order).wait()
        elif mode == "drop": compiled.create_execution().start(wrong_order)
        elif mode == "load": hearth.Model(path).inspect()
        else:
            try: hearth.Model(path + ".none")
            except hearth.Error: pass

for _ in range(4):
    threading.Thread(target=loop, daemon=True).start()
time.sleep(0.1)
"""


class EndTest(unittest.TestCase):

    def testDaemonThreadsDoNotDisturbTheEnd(self):
        for mode in ("run", "frame", "compile", "wait", "drop", "load", "fail"):
            for _ in range(4):
                run = subprocess.run([sys.executable, "-c", DAEMONS, BUILD / "python", mode, DIGITS],
                                     capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""), mode)


if __name__ == "__main__":
    unittest.main()
