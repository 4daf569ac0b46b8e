#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each folder under src/ includes only itself and folders before it in LAYERS."""

import re
import sys

import checkout

LAYERS = ["base", "threads", "memory", "graph", "ops", "cache", "hal", "drivers", "ipc", "runtime",
          "frontends", "api", "tools"]
# A folder of a layer that other folders of the same layer must not include.
SEPARATE = {"drivers"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def violations(source):
    """Sentences about the wrong includes below the folder `source` (the src/ of a checkout)."""
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
    return found


def main():
    source = checkout.ROOT / "src"
    found = violations(source)
    for sentence in found:
        print(sentence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
