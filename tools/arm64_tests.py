# SPDX-License-Identifier: Apache-2.0
"""Which tests of the arm64 build run under qemu-user, and as which processors."""

import os
import pathlib

import checkout
import test_runs

SETUP = "tools/dev/cross_root.sh"
LAUNCHER = ("tools/dev/emulate.sh",)

# In qemu's names. Kernels are chosen by what a processor has: the first has neither dot product nor
# fp16, the second has both, the third i8mm and bf16 as well.
PROCESSORS = ("cortex-a53", "cortex-a76", "neoverse-v1")

# Programs whose cases run kernels are run as each processor, the others as the first.
OF_KERNELS = ("golden_test", "int4_tile_test", "private_xnnpack_test")
OTHERS = ("base_test", "cache_test", "graph_test", "memory_test", "threads_test")
# What the tests in Python need: tests/arm64/*_test.py, which start qemu-user themselves.
COMMAND = "hearth_tool"

# Of these programs only the cases of a GoogleTest filter run: of the store those with crash points, bundles
# and contents. Others change to another user, whom the namespace of emulate.sh does not have.
PARTS = {"cache_test": "*Crash*:Bundle*:ContentTags*:IdentityTable*"}

# Cases that run with --arch arm64 --all only, by program: a GoogleTest pattern and the reason.
SLOW = {
    "golden_test": {"*": "emulated golden models take minutes"},
    "private_xnnpack_test": {
        "*FloatConvolution*": "emulated products of floating-point numbers take minutes",
    },
}
# The same of files in tests/arm64.
SLOW_FILES = {
    "all_vectors_test.py": "emulated runs of all vectors take minutes",
    "compatibility_test.py": "emulated starts of 60 models take minutes",
    "installed_packages_test.py": "packages are built and installed in an emulated system",
    "installed_wheel_test.py": "a wheel is built and installed in an emulated system",
    "stored_models_test.py": "emulated starts of larger models take minutes",
}


def programs():
    """The test programs."""
    return [*OF_KERNELS, *OTHERS]


def targets():
    """The targets to build."""
    return [*programs(), COMMAND]


def testsAs(processor, everything):
    """The programs that run as a processor, each with the filter of its cases."""
    chosen = programs() if processor == PROCESSORS[0] else OF_KERNELS
    slow = {} if everything else SLOW
    return {name: PARTS.get(name, "*") + (f"-{':'.join(slow[name])}" if name in slow else "")
            for name in chosen}


def obstacle(limit=test_runs.UNLIMITED):
    """Why this machine cannot make or run programs for ARM64; "" where it can. Fetches what it needs."""
    folder = os.path.join(os.environ["HEARTH_CACHE_DIR"], "arm64")
    for command in ([SETUP, folder], [*LAUNCHER, "true"]):
        code, output = test_runs.execute(command, limit.cap(600))
        if code != 0:
            return output.strip() or f"{command[0]}: {test_runs.describe(code)}"
    return ""


def run(everything, limit=test_runs.UNLIMITED):
    """The cases of all processors. What is too slow counts as skipped, with its reason."""
    cases = test_runs.Cases()
    for name, patterns in ({} if everything else SLOW).items():
        for pattern, reason in patterns.items():
            print(f"LEFT TO ./dev test --arch arm64 --all: {name} {pattern}: {reason}")
            cases.addSkip(reason)
    for name, reason in ({} if everything else SLOW_FILES).items():
        print(f"LEFT TO ./dev test --arch arm64 --all: tests/arm64/{name}: {reason}")
        cases.addSkip(reason)
    for processor in PROCESSORS:
        cases += test_runs.runCtest("arm64", testsAs(processor, everything), limit=limit, launcher=LAUNCHER,
                                    variables={"QEMU_CPU": processor}, title=f"arm64 {processor}")
    cases += test_runs.runPythonFiles(pythonTests(everything), longMode=everything, limit=limit)
    return cases


def pythonTests(everything):
    """Tests of what is made for ARM64, in Python."""
    slow = {} if everything else SLOW_FILES
    return [path for path in checkout.files()
            if path.parent == checkout.ROOT / "tests" / "arm64" and path.name.endswith("_test.py")
            and path.name not in slow]
