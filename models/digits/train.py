#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the digit classifier and writes digits.tflite, labels.txt and samples/ beside itself.

    train.py                      trains (a few minutes on one core), exports and evaluates
    train.py --evaluate           accuracy of the existing digits.tflite on the held-out pictures
    train.py --evaluate --picture FILE   also the probabilities for one picture of 28x28 pixels

The pictures are made from fonts; none is downloaded. Held out are whole fonts: no picture of them,
and no random number of the held-out pictures, is used in training. Needs NumPy and Pillow, and of
Debian's packages fonts-dejavu-core fonts-dejavu-mono fonts-bwht fonts-breip fonts-comic-neue
fonts-dancingscript fonts-humor-sans fonts-tomsontalks fonts-dkg-handwriting for training,
fonts-liberation fonts-rufscript for the evaluation.
"""

import argparse
import math
import os
import sys
import time
from pathlib import Path

# One thread gives the same model on every run on one machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))
import pictures  # noqa: E402
from network import CHANNELS, CLASSES, Network  # noqa: E402
from workloads import reference, tflite_reader, tflite_writer  # noqa: E402
from workloads.graph import Graph  # noqa: E402
from workloads.tflite_schema import ACTIVATION_RELU  # noqa: E402

MODEL = HERE / "digits.tflite"
TRAINING_SEED, HELD_OUT_SEED, SAMPLE_SEED = 1, 1001, 2001
BATCH = 100


def toInput(picture):
    """Pixel values 0..1 to the model's -1..1."""
    return picture * 2 - 1


def train(glyphs, epochs, picturesPerEpoch):
    """Every epoch sees new pictures."""
    generator = np.random.default_rng(TRAINING_SEED)
    network = Network(generator)
    steps = epochs * (picturesPerEpoch // BATCH)
    step = 0
    start = time.monotonic()
    for epoch in range(epochs):
        loss = 0.0
        for _ in range(picturesPerEpoch // BATCH):
            drawn, labels = glyphs.draw(generator, BATCH)
            rate = 0.003 * (0.5 + 0.5 * math.cos(math.pi * step / steps)) + 1e-5
            loss += network.train(toInput(drawn), labels, rate)
            step += 1
        print(f"epoch {epoch + 1}/{epochs}: loss {loss * BATCH / picturesPerEpoch:.4f}, "
              f"{time.monotonic() - start:.0f} s", flush=True)
    return network


def export(network, path):
    p = network.parameters
    graph = Graph("digits")
    x = graph.addInput("image", (1, pictures.SIDE, pictures.SIDE, 1))
    for number in (1, 2):
        name = f"conv{number}"
        x = graph.conv(name, x, p[name], p[name + "/bias"], activation=ACTIVATION_RELU)
        x = graph.maxPool(f"pool{number}", x, 2, 2)
    x = graph.reshape("flatten", x, (1, 7 * 7 * CHANNELS[-1]))
    x = graph.fullyConnected("dense", x, p["dense"], p["dense/bias"])
    graph.outputs = [graph.softmax("probabilities", x)]
    tflite_writer.write(graph, path)


def probabilities(graph, picture):
    return reference.run(graph, [toInput(picture)[None, :, :, None].astype(np.float32)])[0][0]


def evaluate(folders, count):
    """Accuracy of the file as a runtime sees it: byte-valued pixels, one picture at a time."""
    graph = tflite_reader.read(MODEL)
    glyphs = pictures.Glyphs(pictures.findFonts(pictures.HELD_OUT_FONTS, folders))
    drawn, labels = glyphs.draw(np.random.default_rng(HELD_OUT_SEED), count)
    drawn = np.rint(drawn * 255) / 255
    answers = np.array([probabilities(graph, picture).argmax() for picture in drawn])
    wrong = np.bincount(labels[answers != labels], minlength=CLASSES)
    print(f"held-out accuracy: {100 * (answers == labels).mean():.2f} % of {count} pictures, "
          f"{len(pictures.HELD_OUT_FONTS)} fonts; wrong for 0..9: {wrong.tolist()}")


def writeSamples(folders):
    """One slightly distorted picture of some digits, in held-out fonts."""
    glyphs = pictures.Glyphs(pictures.findFonts(pictures.HELD_OUT_FONTS, folders))
    generator = np.random.default_rng(SAMPLE_SEED)
    folder = HERE / "samples"
    folder.mkdir(exist_ok=True)
    drawn, labels = glyphs.draw(generator, 200, strength=0.6)
    for digit in (0, 2, 3, 5, 8):
        picture = drawn[np.nonzero(labels == digit)[0][0]]
        Image.fromarray(np.rint(picture * 255).astype(np.uint8)).save(
            folder / f"digit_{digit}.png", optimize=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluate", action="store_true", help="do not train")
    parser.add_argument("--picture", type=Path, help="a picture to classify, white on black")
    parser.add_argument("--fonts", type=Path, action="append",
                        help="folder with fonts, also several (default: /usr/share/fonts)")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--pictures", type=int, default=40000, help="pictures in each epoch")
    parser.add_argument("--held-out", type=int, default=5000, help="pictures to evaluate on")
    arguments = parser.parse_args()
    folders = arguments.fonts or [Path("/usr/share/fonts")]
    if not arguments.evaluate:
        glyphs = pictures.Glyphs(pictures.findFonts(pictures.TRAINING_FONTS, folders))
        network = train(glyphs, arguments.epochs, arguments.pictures)
        export(network, MODEL)
        (HERE / "labels.txt").write_text("".join(f"{digit}\n" for digit in range(CLASSES)))
        writeSamples(folders)
    if arguments.picture is not None:
        image = Image.open(arguments.picture).convert("L")
        answer = probabilities(tflite_reader.read(MODEL), np.asarray(image) / np.float32(255))
        print(f"{arguments.picture}: {answer.argmax()}", np.array2string(answer, precision=4))
    evaluate(folders, arguments.held_out)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"train.py: {error}")
