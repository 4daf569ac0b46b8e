# SPDX-License-Identifier: Apache-2.0
"""Hearth's side: runs models through the Python package `hearth`. Serves jobs.

A job has the paths `model` and `inputs` (a .npz file), the number of `runs`, `device`,
`preparation` and `store`, and `outputs`, the .npz file to write: RUN/NAME for each output of each
run. The answer has the state of the start.
"""

import sys
from pathlib import Path

import hearth
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import service  # noqa: E402


def run(job):
    model = hearth.Model(job["model"])
    compiled = model.compile(device=job["device"], threads=1, store=job["store"],
                             preparation=job["preparation"])
    arrays = np.load(job["inputs"])
    result = {}
    for number in range(job["runs"]):
        inputs = {tensor.name: arrays[f"{number}/in/{tensor.name}"] for tensor in compiled.inputs}
        for name, value in compiled.run(inputs).items():
            result[f"{number}/{name}"] = value
    np.savez(job["outputs"], **result)
    state = compiled.start_report["state"]
    del compiled, model
    # The next start must find what this one has packed.
    hearth.flush()
    return {"state": state}


if __name__ == "__main__":
    service.serve(run)
