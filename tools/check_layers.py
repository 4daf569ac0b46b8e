#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each folder under src/ includes only itself and folders before it in LAYERS, and the
same of the rooms of large folders."""

import re
import sys

import checkout

LAYERS = ["base", "threads", "memory", "tflite_abi", "graph", "ops", "cache", "hal", "drivers", "ipc", "runtime",
          "frontends", "api", "llm", "llm_server", "tools", "python"]
# The rooms of large folders, lowest first: a file includes only files of its own room and of rooms
# before it. Files of the folder itself are above all of its rooms.
ROOMS = {
    "cache": ["object", "identity", "blob", "segment", "plan", "store", "prefix", "table", "folder",
              "bundle", "compilation"],
    "drivers/cpu": ["microkernels", "platform", "kernels", "weights", "plan", "lowering",
                    "compilation_cache"],
    "drivers/vulkan": ["shaders", "context", "plan", "lowering", "compilation_cache"],
    "frontends/nnapi": ["objects", "entry_points"],
    "frontends/tflite": ["reader", "container", "translators"],
}
# Layers that rooms must not use although they lie below: kernels compute, and do not know where
# weights come from.
STRANGERS = {
    "hal": ["cache"],
    "drivers/cpu/microkernels": ["cache", "hal"],
    "drivers/cpu/platform": ["cache", "hal"],
    "drivers/cpu/kernels": ["cache", "hal"],
    "drivers/cpu/lowering": ["hal"],
}
# Folders and files that only tests use. Tests, and what they use, may include anything of their
# layer.
TESTING = "testing"
# A folder of a layer that other folders of the same layer must not include.
SEPARATE = {"drivers"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def isOfTests(parts):
    stem = parts[-1].split(".")[0]
    return TESTING in parts[:-1] or stem.endswith(("_test", "_fuzz"))


def room(parts, folder):
    """The position of a file's room in ROOMS[folder]; None in a folder that is no room."""
    inside = parts[folder.count("/") + 1:]
    if len(inside) < 2:
        return len(ROOMS[folder])
    return ROOMS[folder].index(inside[0]) if inside[0] in ROOMS[folder] else None


def roomViolation(parts, target):
    """A sentence about an include of a higher room within a large folder; None if it is not one."""
    where, targetParts = "/".join(parts), tuple(target.split("/"))
    if isOfTests(parts):
        return None
    if isOfTests(targetParts):
        return f"src/{where} includes {target}, which is for tests."
    for folder, layers in STRANGERS.items():
        if where.startswith(folder + "/") and targetParts[0] in layers:
            return f"src/{where} includes {target}, which it is not to know."
    for folder in ROOMS:
        if not where.startswith(folder + "/") or not target.startswith(folder + "/"):
            continue
        own, other = room(parts, folder), room(targetParts, folder)
        if own is None or other is None:
            name = parts if own is None else targetParts
            return f"src/{'/'.join(name[:-1])} is no room; tools/check_layers.py lists them."
        if other > own:
            return f"src/{where} includes {target}, but that room is above its own."
    return None


def violations(source):
    """Sentences about wrong includes below the folder `source` (the src/ of a checkout)."""
    found = []
    for folder in sorted(path.name for path in source.iterdir() if path.is_dir()):
        if folder not in LAYERS:
            found.append(f"src/{folder} is no layer; tools/check_layers.py lists them.")
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".h", ".cc") or not path.is_file():
            continue
        parts = path.relative_to(source).parts
        if parts[0] not in LAYERS:
            continue
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            layer, _, rest = target.partition("/")
            if not rest or layer not in LAYERS:
                continue
            where = "src/" + "/".join(parts)
            if LAYERS.index(layer) > LAYERS.index(parts[0]):
                found.append(f"{where} includes {target}, but {layer} is a layer above {parts[0]}.")
            elif layer in SEPARATE and layer == parts[0] and target.split("/")[1] != parts[1]:
                found.append(f"{where} includes {target}, which belongs to another of {layer}.")
            elif sentence := roomViolation(parts, target):
                found.append(sentence)
    return found


def main():
    return checkout.report(violations(checkout.ROOT / "src"))


if __name__ == "__main__":
    sys.exit(main())
