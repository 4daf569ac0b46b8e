#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A minute of sound through the models of openwakeword 0.5.1, as that program runs them: every 80 ms
the mel spectrogram, the embeddings and one wake word, by Hearth and by LiteRT in turn, each on one
thread of one process.

    wake_words.py                        the wake word alexa
    wake_words.py --word hey_jarvis_v0.1 --seconds 10

Prints one JSON object: the processor time of each side, Hearth's share of LiteRT's, and how far the
scores differ at most. The wheel is fetched into the cache folder, where the virtual environment with
LiteRT's wheel is made, too.

Exit code: 0, or 1 when something failed or the scores differ by more than 1e-5.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(ROOT / "bench")]
import comparison  # noqa: E402
import wheels  # noqa: E402
from comparison import Failure, say  # noqa: E402

WHEEL = "openwakeword==0.5.1"
RATE = 16000
STEP = 1280  # samples of 80 ms
# Samples before those of a step that its spectrogram begins with, so that spectra join.
OVERLAP = 480
MEL_BINS, MEL_ROWS = 32, 76
EMBEDDING, EMBEDDINGS = 96, 16
TOLERANCE = 1e-5


class Hearth:
    def __init__(self, paths):
        import hearth
        self._executions = [hearth.Model(path).compile(threads=1, tuning="off").create_execution()
                            for path in paths]

    def run(self, model, values):
        return next(iter(self._executions[model].run(values).values()))


class LiteRt:
    def __init__(self, paths):
        from ai_edge_litert import interpreter
        self._interpreters = [interpreter.Interpreter(path, num_threads=1) for path in paths]
        self._shapes = [None] * len(paths)  # that they are allocated for

    def run(self, model, values):
        interpreter = self._interpreters[model]
        detail = interpreter.get_input_details()[0]
        if self._shapes[model] != values.shape:
            interpreter.resize_tensor_input(detail["index"], values.shape)
            interpreter.allocate_tensors()
            self._shapes[model] = values.shape
        interpreter.set_tensor(detail["index"], values)
        interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


class Detector:
    """What openwakeword keeps between two steps, with the models of one side."""

    def __init__(self, side, numpy):
        self._side = side
        self._numpy = numpy
        self._sound = numpy.zeros(OVERLAP, numpy.float32)
        self._mel = numpy.ones((MEL_ROWS, MEL_BINS), numpy.float32)
        self._embeddings = numpy.zeros((EMBEDDINGS, EMBEDDING), numpy.float32)
        self.seconds = 0.0  # of processor time, in the models

    def step(self, samples):
        """The score of the wake word after these samples."""
        join = self._numpy.concatenate
        self._sound = join([self._sound[-OVERLAP:], samples])
        mel = self._run(0, self._sound[None, :]).reshape(-1, MEL_BINS) / 10 + 2
        self._mel = join([self._mel, mel])[-MEL_ROWS:]
        embedding = self._run(1, self._mel[None, :, :, None]).reshape(-1, EMBEDDING)
        self._embeddings = join([self._embeddings, embedding])[-EMBEDDINGS:]
        return float(self._run(2, self._embeddings[None]).reshape(-1)[0])

    def _run(self, model, values):
        values = self._numpy.ascontiguousarray(values, self._numpy.float32)
        begin = time.process_time()
        result = self._side.run(model, values)
        self.seconds += time.process_time() - begin
        return result


def sound(numpy, seconds):
    """Tones and noise that come and go, in the range of 16-bit samples."""
    random = numpy.random.default_rng(1)
    at = numpy.arange(seconds * RATE) / RATE
    tone = numpy.sin(2 * numpy.pi * (200 + 150 * numpy.sin(at)) * at)
    loudness = numpy.abs(numpy.sin(3 * at)) * 8000
    return ((tone + random.standard_normal(len(at)) / 4) * loudness).astype(numpy.float32)


def measure(paths, seconds):
    """Runs in the environment that has both libraries."""
    import numpy
    detectors = [Detector(side(paths), numpy) for side in (Hearth, LiteRt)]
    samples = sound(numpy, seconds)
    steps = samples[:len(samples) // STEP * STEP].reshape(-1, STEP)
    for detector in detectors:  # what the first step takes alone is no part of the figure
        detector.step(steps[0])
        detector.seconds = 0.0
    farthest = 0.0
    for number, step in enumerate(steps[1:]):
        order = detectors if number % 2 == 0 else detectors[::-1]
        scores = [detector.step(step) for detector in order]
        farthest = max(farthest, abs(scores[0] - scores[1]))
    ours, theirs = (detector.seconds for detector in detectors)
    return {"steps": len(steps), "hearth_s": round(ours, 4), "litert_s": round(theirs, 4),
            "share": round(ours / theirs, 3), "greatest_difference": farthest}


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--word", default="alexa_v0.1", help="the wake word's model")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--package", type=Path, default=ROOT / "build" / "release" / "python",
                        help="the folder of the Python package hearth")
    parser.add_argument("--inside", nargs=3, help=argparse.SUPPRESS)  # the paths of the models
    return parser.parse_args(words)


def main():
    arguments = parseArguments(sys.argv[1:])
    if arguments.inside:
        print(json.dumps(measure(arguments.inside, arguments.seconds)))
        return 0
    try:
        python = comparison.environmentPython(comparison.CACHE / "litert-venv",
                                              comparison.PEER_WHEEL)
        found = {path.stem: path for path in wheels.models(WHEEL, comparison.CACHE / "wheels", python)}
        names = ("melspectrogram", "embedding_model", arguments.word)
        if missing := [name for name in names if name not in found]:
            raise Failure(f"{WHEEL} has no model {missing[0]}; it has {', '.join(sorted(found))}")
        done = subprocess.run([python, __file__, "--seconds", str(arguments.seconds), "--inside",
                               *(found[name] for name in names)], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(arguments.package)})
        if done.returncode != 0:
            raise Failure((done.stderr.strip().splitlines() or ["no message"])[-1])
        figures = json.loads(done.stdout)
    except Failure as failure:
        say(failure)
        return 1
    print(json.dumps(figures))
    return 0 if figures["greatest_difference"] <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
