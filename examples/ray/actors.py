# SPDX-License-Identifier: Apache-2.0
"""What actors that hold one model cost: how long until all of them have run it once, and how much proportional memory
they take above what Ray's workers take without it. With --litert, LiteRT runs the model instead. Needs the packages
hearth and ray, and ai-edge-litert with --litert.

usage: actors.py MODEL.tflite [ACTORS] [--litert]
"""

import json
import os
import sys
import time

import numpy
import ray


class HearthModel:
    def __init__(self, path):
        import hearth
        self.compiled = hearth.Model(path).compile(threads=1)
        self.compiled.run([tensor.empty() for tensor in self.compiled.inputs])
        self.state = self.compiled.start_report["state"]


class LiteRTModel:
    def __init__(self, path):
        from ai_edge_litert.interpreter import Interpreter
        self.interpreter = Interpreter(path, num_threads=1)
        self.interpreter.allocate_tensors()
        for tensor in self.interpreter.get_input_details():
            self.interpreter.set_tensor(tensor["index"], numpy.zeros(tensor["shape"], tensor["dtype"]))
        self.interpreter.invoke()
        self.state = "LiteRT"


@ray.remote(num_cpus=0.25)
class Holder:
    def __init__(self, kind):
        # Importing the package is not measured.
        __import__({HearthModel: "hearth", LiteRTModel: "ai_edge_litert.interpreter"}[kind])
        self.kind = kind

    def load(self, path):
        """How the model started."""
        self.model = self.kind(path)
        return self.model.state

    def proportional_kib(self):
        with open("/proc/self/smaps_rollup", encoding="utf-8") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))

    def node(self):
        return ray.get_runtime_context().get_node_id()


def measure(model, count, kind):
    """Starts actors that are spread over the nodes, then loads the model in all of them at once."""
    actors = [Holder.options(scheduling_strategy="SPREAD").remote(kind) for _ in range(count)]
    nodes = ray.get([actor.node.remote() for actor in actors])
    before = sum(ray.get([actor.proportional_kib.remote() for actor in actors]))
    begin = time.monotonic()
    states = ray.get([actor.load.remote(os.path.abspath(model)) for actor in actors])
    seconds = time.monotonic() - begin
    after = sum(ray.get([actor.proportional_kib.remote() for actor in actors]))
    for actor in actors:
        ray.kill(actor)
    return {"seconds": round(seconds, 3), "memory_mib": round((after - before) / 1024),
            "nodes": len(set(nodes)), "states": states}


def main():
    words = [word for word in sys.argv[1:] if word != "--litert"]
    kind = LiteRTModel if "--litert" in sys.argv else HearthModel
    ray.init(log_to_driver=False)
    print(json.dumps(measure(words[0], int(words[1]) if len(words) > 1 else 6, kind)))


if __name__ == "__main__":
    main()
