# SPDX-License-Identifier: Apache-2.0
"""Says which digits the pictures of a folder show, with Ray Data: actors on all nodes of a cluster, each with a
model of its own, whose packed weights all actors of a node share. Needs the packages hearth, ray[data] and pillow.

usage: classify_folder.py MODEL.tflite FOLDER [ACTORS]
"""

import os
import sys

import hearth
import numpy
import ray


class Classifier:
    """One for each actor: the model is made ready once, and then runs on batches of pictures."""

    def __init__(self, model):
        self.compiled = hearth.Model(model).compile(threads=1)

    def __call__(self, batch):
        pixels = batch["image"].astype(numpy.float32).reshape(-1, 1, 28, 28, 1) / 127.5 - 1
        scores = [self.compiled.run(each)["probabilities"] for each in pixels]
        return {"path": batch["path"], "digit": numpy.array([each.argmax() for each in scores]),
                "node": numpy.full(len(scores), ray.get_runtime_context().get_node_id())}


def classify(model, folder, actors):
    """A row for each picture: path, digit, and the node that it ran on."""
    pictures = ray.data.read_images(folder, size=(28, 28), mode="L", include_paths=True)
    # Actors hold their share of the processors for good: half of one each leaves some for reading.
    found = pictures.repartition(2 * actors).map_batches(
        Classifier, fn_constructor_args=(os.path.abspath(model),), batch_size=4, num_cpus=0.5,
        compute=ray.data.ActorPoolStrategy(size=actors))
    return sorted(found.take_all(), key=lambda row: row["path"])


def main():
    model, folder, *actors = sys.argv[1:]
    ray.init()
    for row in classify(model, os.path.abspath(folder), int(actors[0]) if actors else 2):
        print(os.path.basename(row["path"]), row["digit"])


if __name__ == "__main__":
    main()
