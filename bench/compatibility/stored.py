# SPDX-License-Identifier: Apache-2.0
"""Models that are kept with the outputs LiteRT had of them, so that they are compared without it.

A folder has `models.json`, which says of each model what the judge has to know, and for each of
them a .tflite file and a .npz file with RUN/in/NAME and, for LiteRT's kernel sets, KERNELS/RUN/NAME;
of kernel sets with the same results there is one. What TensorFlow computed is not kept: all of them
agreed with LiteRT.
"""

import json
import re

import numpy as np
from judge import sameBytes

INDEX = "models.json"


class StoredModel:
    def __init__(self, folder, entry):
        self.graph, self.recipe = entry["graph"], entry["recipe"]
        self.file = folder / f"{entry['file']}.tflite"
        self.inputs = folder / f"{entry['file']}.npz"
        self._entry = entry

    def about(self):
        return self._entry["about"]

    def references(self):
        return {}

    def peers(self):
        """{kernel set: {RUN/NAME: what LiteRT computed}}."""
        result = {kernels: {} for kernels in self._entry["kernels"]}
        with np.load(self.inputs) as arrays:
            for name in arrays:
                kernels, _, rest = name.partition("/")
                if kernels in result:
                    result[kernels][rest] = arrays[name]
        return result


def read(folder):
    """All models of a folder."""
    return [StoredModel(folder, entry) for entry in json.loads((folder / INDEX).read_text())]


def distinct(peers):
    """The kernel sets whose results differ from those of all earlier ones."""
    result = {}
    for kernels, outputs in peers.items():
        if all(sameBytes(outputs, other) is not None for other in result.values()):
            result[kernels] = outputs
    return result


def write(folder, models):
    """Writes (graph, recipe, model, results of LiteRT) and replaces the folder's content."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*folder.glob("*.tflite"), *folder.glob("*.npz")]:
        path.unlink()
    entries = []
    for graph, recipe, model, peers in models:
        name = re.sub(r"[^a-z0-9]+", "-", f"{graph} {recipe}".lower()).strip("-")
        (folder / f"{name}.tflite").write_bytes(model.file.read_bytes())
        with np.load(model.inputs) as arrays:
            content = {key: arrays[key] for key in arrays if "/in/" in key}
        kept = distinct(peers)
        for kernels, outputs in kept.items():
            content |= {f"{kernels}/{key}": value for key, value in outputs.items()}
        np.savez_compressed(folder / f"{name}.npz", **content)
        entries.append({"file": name, "graph": graph, "recipe": recipe, "kernels": list(kept),
                        "about": model.about()})
    (folder / INDEX).write_text(json.dumps(entries, indent=1) + "\n")
