# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of examples/ray on a cluster of two nodes and prints what they say as JSON. The package and the
examples are on PYTHONPATH, where the workers of all nodes find them as well.

usage: ray_session.py MODEL FOLDER LARGE-MODEL
"""

import json
import pathlib
import sys
import urllib.request

import actors
import classify_folder
import ray
import serve_digits
from ray import serve
from ray.cluster_utils import Cluster

PORT = 8917
STORE_BYTES = 128 << 20


def served(model, pictures):
    serve.start(http_options={"port": PORT})
    serve.run(serve_digits.application(model))
    answers = {}
    for path in pictures:
        with urllib.request.urlopen(f"http://localhost:{PORT}/", data=path.read_bytes()) as answer:
            answers[path.name] = json.load(answer)
    serve.shutdown()
    return answers


def main():
    model, folder, large = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    node = {"num_cpus": 4, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    cluster.add_node(**node)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        starts = [actors.measure(large, 4, actors.HearthModel) for _ in range(2)]
        rows = classify_folder.classify(model, str(folder), 4)
        answers = served(model, sorted(folder.glob("*.png")))
    finally:
        ray.shutdown()
        cluster.shutdown()
    print(json.dumps({
        "rows": [{**row, "path": pathlib.Path(row["path"]).name, "digit": int(row["digit"])} for row in rows],
        "answers": answers, "starts": starts}))


if __name__ == "__main__":
    main()
