#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs models that TensorFlow's converter makes in LiteRT and in Hearth, and compares the results.

    compare.py                                      all graphs by all their recipes
    compare.py --filter 'conv*' '*LSTM* / int8*' --recipes int8 int16x8
    compare.py --filter list                        prints the names of all models
    compare.py --output table.md --json rows.json --csv rows.csv
    compare.py --short                              the stored models; needs neither of the peers
    compare.py --store tests/compatibility/models   writes the stored models anew

A model is a graph of TensorFlow (graphs/) converted by one recipe: a precision of TensorFlow's
converter, or a recipe of the AI Edge quantizer. LiteRT runs it with three sets of kernels: with
XNNPACK, as it does by default, with its built-in kernels alone, and with its reference kernels.
Hearth runs it on each of its devices: cold (with an empty weight store), warm (in another process,
with what the first one stored) and prepared just in time; results of the three have to be equal bit
for bit, and equal to those that programs for TensorFlow Lite get, cold and warm, through hearth.tflite
and libtensorflowlite_c.so. judge.py says what counts as equal to LiteRT.

A model with open dimensions is run with two sizes of them. Each side serves in a process of its own;
one that crashes or hangs is a row of the report, and the next model gets a new process.

The virtual environment with TensorFlow's wheels and the models are kept in the cache folder
(${XDG_CACHE_HOME:-~/.cache}/hearth); a family's models are made anew when the code that makes them
changed. All of them take ten minutes, and two when they are there. Exit code: 0 when no result
differs and nothing was refused, 1 when something was, 2 for wrong arguments.
"""

import argparse
import dataclasses
import fnmatch
import functools
import hashlib
import json
import os
import queue
import shutil
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(ROOT / "bench")]
import comparison  # noqa: E402
import judge  # noqa: E402
import report  # noqa: E402
import short  # noqa: E402
import stored  # noqa: E402
from comparison import Failure, say  # noqa: E402
from report import Row  # noqa: E402
from service import Lost, Service  # noqa: E402

# tf_keras is Keras 2, whose LSTM layers the converter turns into one operator.
WHEELS = ("tensorflow-cpu==2.21.0", "tf_keras==2.21.0", "ai-edge-quantizer==0.10.0",
          comparison.PEER_WHEEL)
KERNELS = ("default", "built-in", "reference")
DEVICES = ("hearth-cpu", "nnapi-reference")
# The first process of Hearth fills the stores, the second one uses them.
STARTS = (("cold", 0, "whole"), ("warm", 1, "whole"), ("just-in-time", 0, "just-in-time"))
# As programs written for TensorFlow Lite reach Hearth.
DOORS = ("tflite", "tflite_c")
DOOR_STARTS = ("cold", "warm")
TIMEOUT_S = 120
STORED = ROOT / "tests" / "compatibility" / "models"


@dataclasses.dataclass(frozen=True)
class Model:
    """The files of a row: PATH.tflite, PATH.npz and PATH.json."""
    path: Path

    @property
    def file(self):
        return self.path.with_suffix(".tflite")

    @property
    def inputs(self):
        return self.path.with_suffix(".npz")

    def about(self):
        return json.loads(self.path.with_suffix(".json").read_text())

    def references(self):
        """{RUN/NAME: what TensorFlow computed}."""
        arrays = np.load(self.inputs)
        return {name.replace("/reference/", "/"): arrays[name] for name in arrays
                if "/reference/" in name}

    def peers(self):
        """What LiteRT computed; None, since it has to be computed."""
        return None


class Models:
    """Generates models in a process with TensorFlow and keeps them."""

    def __init__(self, python, folder):
        self._service = Service([python, HERE / "generate.py"], TIMEOUT_S * 2)
        self._folder = folder
        # {graph: its family}
        self._families = {}

    def names(self):
        """(graph, recipe) of all rows; call it before make()."""
        answer = self._service.ask({"list": True})
        if "error" in answer:
            raise Failure(f"the graphs cannot be listed: {answer['error']}")
        self._families = {graph: family for graph, family, _ in answer["graphs"]}
        return [(graph, recipe) for graph, _, recipes in answer["graphs"] for recipe in recipes]

    def make(self, graph, recipe):
        """The model of a row; Failure if TensorFlow cannot convert it."""
        name = f"{graph}-{recipe}".replace(" ", "_").replace("/", "_")
        path = self._folder / digest(self._families[graph]) / name
        failure = path.with_suffix(".failure")
        if failure.exists():
            raise Failure(failure.read_text())
        if not path.with_suffix(".json").exists():
            self._makeFolder(path.parent)
            new = path.with_name(f"new-{os.getpid()}-{name}")
            try:
                answer = self._service.ask({"graph": graph, "recipe": recipe, "path": str(new)})
            except Lost as lost:
                # The machine may be less busy another time.
                raise Failure(str(lost)) from None
            if "error" in answer:
                failure.write_text(answer["error"])
                raise Failure(answer["error"])
            # Another run may read the folder at this time. The last of the files marks the model as
            # complete.
            for suffix in (".tflite", ".npz", ".json"):
                new.with_suffix(suffix).replace(path.with_suffix(suffix))
        return Model(path)

    @staticmethod
    def _makeFolder(folder):
        """Creates the folder of a family's models and removes those of other versions of the
        code."""
        if not folder.exists():
            for old in folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*"):
                shutil.rmtree(old)
            folder.mkdir(parents=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._service.close()


@functools.cache
def digest(family):
    """The name of the folder of a family's models, which depends on the code and the wheels."""
    content = hashlib.sha256("\n".join(WHEELS).encode())
    for path in (HERE / "generate.py", HERE / "graphs" / "__init__.py",
                 HERE / "graphs" / f"{family}.py"):
        content.update(path.read_bytes())
    return f"{family}-{content.hexdigest()[:12]}"


class Sides:
    """The processes of LiteRT and of Hearth; `python` is None if no model needs LiteRT. `library` is
    libtensorflowlite_c.so; doors are compared if it is there."""

    def __init__(self, python, package, library, scratch, devices):
        self.devices = devices
        self._scratch = scratch
        self._peer = python and Service([python, HERE / "peer.py"], TIMEOUT_S)
        environment = {"PYTHONPATH": str(package)}
        self._hearth = [Service([sys.executable, HERE / "hearth_side.py"], TIMEOUT_S, environment)
                        for _ in range(2)]
        # All doors of a device share a store: what one has packed, the next one must be able to use.
        self._doors = {device: [Service([sys.executable, HERE / "door_side.py", library], TIMEOUT_S,
                                        environment | {"HEARTH_STORE": str(scratch / f"store-{device}-doors")})
                                for _ in DOOR_STARTS] for device in devices if library.exists()}

    def peer(self, model, kernels, runs):
        """{RUN/NAME: array} of LiteRT; Failure if it does not run the model."""
        return self._result(self._peer, model, runs, kernels=kernels)[0]

    def hearth(self, model, device, start, process, preparation, runs):
        """The same of Hearth, and the state of its start."""
        store = self._scratch / f"store-{device}-{preparation}"
        return self._result(self._hearth[process], model, runs, device=device,
                            preparation=preparation, store=str(store))

    def hasDoors(self):
        return bool(self._doors)

    def door(self, model, device, door, process, runs):
        """The same through a door of TensorFlow Lite."""
        return self._result(self._doors[device][process], model, runs, device=device, door=door)[0]

    def forget(self):
        """Removes what was stored for the last model."""
        for store in self._scratch.glob("store-*"):
            shutil.rmtree(store, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for service in (self._peer, *self._hearth, *sum(self._doors.values(), [])):
            if service is not None:
                service.close()

    def _result(self, service, model, runs, **job):
        outputs = self._scratch / "outputs.npz"
        outputs.unlink(missing_ok=True)
        answer = service.ask({"model": str(model.file), "inputs": str(model.inputs), "runs": runs,
                              "outputs": str(outputs), **job})
        if "error" in answer:
            raise Failure(answer["error"])
        with np.load(outputs) as arrays:
            return {name: arrays[name] for name in arrays}, answer.get("state", "")


def runPeer(sides, model, row, runs):
    """The results of all kernel sets of LiteRT that run the model."""
    results = {}
    for kernels in KERNELS:
        try:
            results[kernels] = sides.peer(model, kernels, runs)
        except (Failure, Lost) as failure:
            row.peerFailures[kernels] = str(failure)
    if not results:
        row.outcome, row.why = report.PEER_FAILS, row.peerFailures[KERNELS[0]]
    return results


def runHearth(sides, model, row, about, peers, references):
    """Adds the results of each device of Hearth to the row."""
    try:
        for device in sides.devices:
            judgeDevice(sides, model, row, about, peers, references, device)
    finally:
        sides.forget()


def judgeDevice(sides, model, row, about, peers, references, device):
    results = {}
    states = row.states.setdefault(device, {})
    for start, process, preparation in STARTS:
        try:
            results[start], states[start] = sides.hearth(model, device, start, process,
                                                         preparation, about["runs"])
        except Failure as failure:
            return row.add(device, report.REFUSED, f"({start}): {failure}")
        except Lost as lost:
            return row.add(device, report.LOST, f"({start}): {lost}")
    verdict = judge.judgeAll(results["cold"], list(peers.values()), row.recipe, about, references)
    row.figures[device] = dataclasses.asdict(verdict)
    if not about["isRandom"]:
        for start in ("warm", "just-in-time"):
            name = judge.sameBytes(results["cold"], results[start])
            if name is not None:
                return row.add(device, judge.DIFFERS,
                               f"computes other bytes of output {name} {start} than cold")
        if not judgeDoors(sides, model, row, about, device, results["cold"]):
            return None
    return row.add(device, verdict.outcome, verdict.why)


def judgeDoors(sides, model, row, about, device, expected):
    """Whether the doors give `expected`, bit for bit; otherwise the row says what they give."""
    for door in DOORS if sides.hasDoors() else ():
        for process, start in enumerate(DOOR_STARTS):
            try:
                got = sides.door(model, device, door, process, about["runs"])
            except Failure as failure:
                row.add(device, report.REFUSED, f"({door}, {start}): {failure}")
                return False
            except Lost as lost:
                row.add(device, report.LOST, f"({door}, {start}): {lost}")
                return False
            name = judge.sameBytes(expected, got)
            if name is not None:
                row.add(device, judge.DIFFERS, f"computes other bytes of output {name} through {door}, {start}")
                return False
    return True


def measure(sides, model, graph, recipe):
    """A row, and LiteRT's results."""
    about = model.about()
    row = Row(graph, recipe, operators=about["operators"])
    peers = model.peers() or runPeer(sides, model, row, about["runs"])
    if peers:
        runHearth(sides, model, row, about, peers, model.references())
    return row, peers


def ahead(models, names):
    """Yields (graph, recipe, model or Failure) for each name; the next models are generated while
    the last ones run."""
    made = queue.Queue(maxsize=20)

    def make(graph, recipe):
        try:
            return graph, recipe, models.make(graph, recipe)
        except Failure as failure:
            return graph, recipe, failure

    def work():
        try:
            for graph, recipe in names:
                made.put(make(graph, recipe))
            made.put(None)
        except Exception as error:
            # The main thread raises it, unless it was interrupted.
            made.put(error)

    threading.Thread(target=work, daemon=True).start()
    for item in iter(made.get, None):
        if isinstance(item, Exception):
            raise item
        yield item


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", nargs="+", metavar="PATTERN", default=["*"],
                        help="names of graphs, or of models (GRAPH / RECIPE), with * and ?")
    parser.add_argument("--recipes", nargs="+", metavar="RECIPE", help="only these")
    parser.add_argument("--short", action="store_true",
                        help="the stored models, with LiteRT's stored results")
    parser.add_argument("--store", type=Path, metavar="FOLDER",
                        help="writes those models of short.py that agree, into this folder")
    parser.add_argument("--devices", nargs="+", default=list(DEVICES), metavar="DEVICE",
                        help=f"default: {' '.join(DEVICES)}")
    parser.add_argument("--package", type=Path, default=ROOT / "build" / "release" / "python",
                        help="folder of the Python package hearth; default: that of the release "
                        "build")
    parser.add_argument("--library", type=Path,
                        default=ROOT / "build" / "release" / "lib" / "libtensorflowlite_c.so",
                        help="default: that of the release build")
    parser.add_argument("--python", type=Path,
                        help="Python with TensorFlow and LiteRT, instead of making one")
    parser.add_argument("--csv", type=Path, help="file for a table of all rows")
    comparison.addReports(parser)
    arguments = parser.parse_args(words)
    if arguments.short and arguments.store is not None:
        parser.error("--store makes the models that --short compares, so they exclude each other")
    return arguments


def chosen(names, arguments):
    return [(graph, recipe) for graph, recipe in names
            if (arguments.recipes is None or recipe in arguments.recipes) and
            (arguments.store is None or f"{graph} / {recipe}" in short.NAMES) and
            any(fnmatch.fnmatchcase(name, pattern) for pattern in arguments.filter
                for name in (graph, f"{graph} / {recipe}"))]


def compareAll(sides, models, count, kept):
    """Yields the rows of all models. Those that agree are added to `kept`, with LiteRT's
    results."""
    rows = []
    try:
        for graph, recipe, model in models:
            if isinstance(model, Failure):
                row = Row(graph, recipe, report.NO_MODEL, str(model))
            else:
                row, peers = measure(sides, model, graph, recipe)
                if row.outcome == judge.AGREES:
                    kept.append((graph, recipe, model, peers))
            rows.append(row)
            say(f"{len(rows)}/{count} {row.name}: {row.outcome}{row.why and ', ' + row.why}")
    except KeyboardInterrupt:
        say("compare.py: stopped; the report has what was compared")
    return rows


def compareShort(arguments, scratch):
    models = [(model.graph, model.recipe, model) for model in stored.read(STORED)]
    names = chosen([model[:2] for model in models], arguments)
    with Sides(None, arguments.package, arguments.library, scratch, arguments.devices) as sides:
        return compareAll(sides, [model for model in models if model[:2] in names], len(names), [])


def compareConverted(arguments, scratch):
    python = arguments.python or comparison.environmentPython(
        comparison.CACHE / "compatibility-venv", *WHEELS)
    kept = []
    with Models(python, comparison.CACHE / "compatibility") as models:
        names = chosen(models.names(), arguments)
        with Sides(python, arguments.package, arguments.library, scratch, arguments.devices) as sides:
            rows = compareAll(sides, ahead(models, names), len(names), kept)
    if arguments.store is not None:
        stored.write(arguments.store, kept)
    return rows


def listNames(arguments):
    with Models(arguments.python or comparison.environmentPython(
            comparison.CACHE / "compatibility-venv", *WHEELS), comparison.CACHE) as models:
        print("\n".join(f"{graph} / {recipe}" for graph, recipe in models.names()))


def main(words=None):
    arguments = parseArguments(words)
    try:
        if arguments.filter == ["list"]:
            listNames(arguments)
            return 0
        with tempfile.TemporaryDirectory(prefix="hearth-compatibility-") as folder:
            compare = compareShort if arguments.short else compareConverted
            rows = compare(arguments, Path(folder))
    except (Failure, Lost, OSError) as error:
        say(f"compare.py: {error}")
        return 1
    if not rows:
        say("compare.py: no model matches")
        return 2
    about = comparison.facts(models=len(rows), wheels=", ".join(WHEELS[:-1]))
    comparison.writeText(arguments.output, report.text(rows, about))
    comparison.writeJson(arguments.json, about, rows)
    if arguments.csv is not None:
        report.writeCsv(arguments.csv, rows)
    return 1 if any(row.outcome in report.FAILURES for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
