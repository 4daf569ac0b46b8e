# SPDX-License-Identifier: Apache-2.0
"""Models that are kept with the outputs LiteRT had of them, so that they are compared without it.

A folder has `models.json`, which says of each model what the judge has to know, and for each of
them a .tflite file and a .npz file with RUN/in/NAME, RUN/reference/NAME, and KERNELS/RUN/NAME for
LiteRT's kernel sets.
"""

import json
import re

import numpy as np

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
        """{RUN/NAME: what TensorFlow computed}."""
        return {name.replace("/reference/", "/"): value for name, value in self._arrays().items()
                if "/reference/" in name}

    def peers(self):
        """{kernel set: {RUN/NAME: what LiteRT computed}}."""
        result = {kernels: {} for kernels in self._entry["kernels"]}
        for name, value in self._arrays().items():
            kernels, _, rest = name.partition("/")
            if kernels in result:
                result[kernels][rest] = value
        return result

    def _arrays(self):
        with np.load(self.inputs) as arrays:
            return {name: arrays[name] for name in arrays}


def read(folder):
    """All models of a folder."""
    return [StoredModel(folder, entry) for entry in json.loads((folder / INDEX).read_text())]


def write(folder, models):
    """Writes (graph, recipe, model, results of LiteRT) in place of what is there."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*folder.glob("*.tflite"), *folder.glob("*.npz")]:
        path.unlink()
    entries = []
    for graph, recipe, model, peers in models:
        name = re.sub(r"[^a-z0-9]+", "-", f"{graph} {recipe}".lower()).strip("-")
        (folder / f"{name}.tflite").write_bytes(model.file.read_bytes())
        with np.load(model.inputs) as arrays:
            content = {key: arrays[key] for key in arrays}
        for kernels, outputs in peers.items():
            content |= {f"{kernels}/{key}": value for key, value in outputs.items()}
        np.savez_compressed(folder / f"{name}.npz", **content)
        entries.append({"file": name, "graph": graph, "recipe": recipe, "kernels": list(peers),
                        "about": model.about()})
    (folder / INDEX).write_text(json.dumps(entries, indent=1) + "\n")
