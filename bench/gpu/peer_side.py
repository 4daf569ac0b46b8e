#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A peer's median of an inference of one network on a GPU, in a process of its own. Prints one JSON
object.

    peer_side.py torch|onnxruntime mobilenet_v2|resnet50 float32|float16 --resolution N --repeat N --threads N

PyTorch builds the network itself (torchvision, weights at random), which costs what ours costs; it is
exported to ONNX for ONNX Runtime. The input goes to the GPU and the result comes back in each
inference, as with Hearth.
"""

import argparse
import io
import json
import statistics
import sys
import time


def network(arguments):
    """The network and its input, on the CPU."""
    import torch
    import torchvision
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    make = {"mobilenet_v2": torchvision.models.mobilenet_v2, "resnet50": torchvision.models.resnet50}
    number = {"float32": torch.float32, "float16": torch.float16}[arguments.number]
    image = torch.rand(1, 3, arguments.resolution, arguments.resolution).to(number)
    return make[arguments.network](weights=None).eval().to(number), image


def torchRun(arguments):
    import torch
    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch finds no GPU.")
    torch.backends.cudnn.benchmark = True
    model, image = network(arguments)
    model = model.cuda().to(memory_format=torch.channels_last)
    image = image.contiguous(memory_format=torch.channels_last).pin_memory()
    device = image.cuda()
    with torch.inference_mode():
        for _ in range(10):
            model(device)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = model(device)

    def run():
        device.copy_(image)
        graph.replay()
        result.cpu()

    return run


def onnxRun(arguments):
    import onnxruntime
    wanted = [name for name in ("CUDAExecutionProvider", "DmlExecutionProvider")
              if name in onnxruntime.get_available_providers()]
    if not wanted:
        raise RuntimeError("ONNX Runtime has no provider for a GPU.")
    import torch
    model, image = network(arguments)
    if arguments.number == "float16":
        # The CPU lacks some float16 kernels that tracing needs.
        model, image = model.float(), image.float()
    file = io.BytesIO()
    torch.onnx.export(model, image, file, input_names=["image"])
    content = file.getvalue()
    if arguments.number == "float16":
        import onnx
        from onnxconverter_common import float16
        content = float16.convert_float_to_float16(onnx.load_from_string(content)).SerializeToString()
        image = image.half()
    session = onnxruntime.InferenceSession(content, providers=wanted)
    values = image.numpy()
    return lambda: session.run(None, {"image": values})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=("torch", "onnxruntime"))
    parser.add_argument("network", choices=("mobilenet_v2", "resnet50"))
    parser.add_argument("number", choices=("float32", "float16"))
    parser.add_argument("--resolution", type=int, required=True)
    parser.add_argument("--repeat", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    try:
        run = {"torch": torchRun, "onnxruntime": onnxRun}[arguments.peer](arguments)
        for _ in range(10):
            run()
        times = []
        for _ in range(arguments.repeat):
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
    except (ImportError, RuntimeError, OSError) as error:
        print(f"{arguments.peer}: {str(error).strip().splitlines()[0]}", file=sys.stderr)
        return 1
    print(json.dumps({"ms": 1e3 * statistics.median(times)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
