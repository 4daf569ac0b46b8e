#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what docs/tutorial.md works with, of the samples in models/digits.

    tutorial.py FOLDER     writes sheet.png, the samples side by side, and strokes.tflite, which says for
                           each pixel whether it is of a stroke, of its edge or of the ground
    tutorial.py --docs     also writes the pictures of the page, docs/tutorial-*.png, with the release
                           build of the command and the Python package
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from workloads import tflite_metadata, tflite_writer  # noqa: E402
from workloads.graph import Graph  # noqa: E402

DIGITS = ROOT / "models" / "digits"
RELEASE = ROOT / "build" / "release"
# Pixels of the sheet for one of a sample.
SCALE = 4
# The mean of a window is above this on a stroke, and below its negative on the ground.
LIMIT = 0.3


def samples():
    return sorted((DIGITS / "samples").glob("*.png"))


def sheet():
    """The samples side by side."""
    pictures = [Image.open(path).convert("L") for path in samples()]
    side = SCALE * pictures[0].width
    joined = Image.new("L", (side * len(pictures), side))
    for number, picture in enumerate(pictures):
        joined.paste(picture.resize((side, side), Image.Resampling.BICUBIC), (number * side, 0))
    return joined


def writeStrokes(path, width, height):
    """A convolution with the mean of each window of 3x3 pixels, and the classes ground, edge and stroke."""
    graph = Graph("strokes")
    mean = np.full((3, 3, 1), 1 / 9, np.float32)
    weights = np.stack([-mean, 0 * mean, mean])
    scores = graph.conv("scores", graph.addInput("picture", (1, height, width, 1)), weights,
                        np.array([0, LIMIT, 0], np.float32))
    graph.outputs = [graph.softmax("classes", scores)]
    labels = ("labels.txt", "value labels", "en")
    tflite_writer.write(graph, path, metadata=tflite_metadata.metadata(
        "strokes", [tflite_metadata.tensor("picture", content="image")],
        [tflite_metadata.tensor("classes", files=[labels])]))
    tflite_metadata.pack(path, {"labels.txt": "ground\nedge\nstroke\n"})


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    picture = sheet()
    picture.save(folder / "sheet.png")
    writeStrokes(folder / "strokes.tflite", picture.width, picture.height)


def writeLabelled(path):
    """The sheet with what the classifier says of each sample."""
    sys.path.insert(0, str(RELEASE / "python"))
    import hearth
    pixels = np.stack([np.asarray(Image.open(each).convert("L"), np.float32) for each in samples()])
    compiled = hearth.Model(DIGITS / "digits.tflite").compile(shapes={"image": (len(pixels), 28, 28, 1)})
    results = compiled.run(pixels[..., None] / 127.5 - 1)["probabilities"]
    picture = sheet().convert("RGB")
    draw = ImageDraw.Draw(picture)
    for number, scores in enumerate(results):
        left = number * picture.height
        draw.rectangle((left + 2, 2, left + picture.height - 3, picture.height - 3), outline="orange")
        draw.text((left + 6, 4), f"{scores.argmax()}: {scores.max():.3f}", fill="orange")
    save(picture, path)


def save(picture, path):
    """A small file of a picture with few colours."""
    picture.convert("RGB").quantize(32).save(path, optimize=True)


def writeDocs():
    docs = ROOT / "docs"
    writeLabelled(docs / "tutorial-digits.png")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        subprocess.run([RELEASE / "bin" / "hearth", "run", folder / "strokes.tflite", "--input",
                        folder / "sheet.png", "--overlay", folder / "overlay.png"], check=True)
        save(Image.open(folder / "overlay.png"), docs / "tutorial-strokes.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, nargs="?", help="where the files go")
    parser.add_argument("--docs", action="store_true", help="write the pictures of the page")
    arguments = parser.parse_args()
    if arguments.folder is None and not arguments.docs:
        parser.error("a folder or --docs is needed")
    if arguments.folder is not None:
        write(arguments.folder)
    if arguments.docs:
        writeDocs()


if __name__ == "__main__":
    main()
