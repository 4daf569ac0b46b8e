# SPDX-License-Identifier: Apache-2.0
"""The report on all models: tables as text, and a table for other programs."""

import collections
import csv
import dataclasses

from judge import AGREES, DIFFERS, NEARER

# What Hearth did with a model that LiteRT runs.
REFUSED, LOST = "refused", "lost"
# LiteRT runs the model with no kernel set, or there is no model.
PEER_FAILS, NO_MODEL = "LiteRT fails", "no model"
OUTCOMES = (AGREES, NEARER, DIFFERS, REFUSED, LOST, PEER_FAILS, NO_MODEL)
FAILURES = (DIFFERS, REFUSED, LOST)
COUNTED = (AGREES, NEARER, DIFFERS, REFUSED, LOST)


@dataclasses.dataclass
class Row:
    """One model: a graph and a recipe."""
    graph: str
    recipe: str
    outcome: str = AGREES
    # Hearth's error message, or how its outputs differ.
    why: str = ""
    operators: list = dataclasses.field(default_factory=list)
    # {kernel set: sentence} of the kernel sets of LiteRT that failed.
    peerFailures: dict = dataclasses.field(default_factory=dict)
    # {device: outcome}.
    devices: dict = dataclasses.field(default_factory=dict)
    # {device: figures of the worst output}.
    figures: dict = dataclasses.field(default_factory=dict)
    # {device: {start: state}}.
    states: dict = dataclasses.field(default_factory=dict)

    @property
    def name(self):
        return f"{self.graph} / {self.recipe}"

    @property
    def isWarm(self):
        """Whether the second start on some device found packed weights."""
        return any(states.get("warm") == "warm" for states in self.states.values())

    def add(self, device, outcome, why=""):
        """Adds the outcome on a device; the row keeps the worst one."""
        self.devices[device] = outcome
        if OUTCOMES.index(outcome) > OUTCOMES.index(self.outcome):
            self.outcome, self.why = outcome, f"{device} {why}"

    def json(self):
        return {**dataclasses.asdict(self), "name": self.name}


def text(rows, facts):
    """`facts` are (name, value) pairs about the run."""
    lines = ["# Compatibility with LiteRT", "",
             "Written by `bench/compatibility/compare.py`.", "",
             *(f"- {name}: {value}" for name, value in facts), ""]
    recipes = list(dict.fromkeys(row.recipe for row in rows))
    counts = collections.Counter((row.recipe, row.outcome) for row in rows)
    lines += ["| recipe | models | " + " | ".join(OUTCOMES) + " |",
              "|---" * (2 + len(OUTCOMES)) + "|"]
    for name, chosen in [*((recipe, [recipe]) for recipe in recipes), ("all", recipes)]:
        cells = [sum(counts[recipe, outcome] for recipe in chosen) for outcome in OUTCOMES]
        lines.append(f"| {name} | {sum(cells)} | " + " | ".join(map(str, cells)) + " |")
    run = [row for row in rows if row.outcome in COUNTED]
    if run:
        refused = sum(row.outcome in (REFUSED, LOST) for row in run)
        lines += ["", f"LiteRT runs {len(run)} models; Hearth refuses {refused} of them "
                  f"({100 * refused / len(run):.1f} %).",
                  f"{sum(row.isWarm for row in run)} of them started warm; the weights of the "
                  "others are too few to be kept."]
    for outcome in OUTCOMES[1:]:
        chosen = [row for row in rows if row.outcome == outcome]
        if chosen:
            lines += ["", f"## {outcome}", "",
                      *(f"- {row.name}: {row.why}" for row in chosen)]
    return "\n".join(lines) + "\n"


def writeCsv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        devices = list(dict.fromkeys(device for row in rows for device in row.devices))
        writer.writerow(["graph", "recipe", "outcome", *devices, "operators", "why"])
        for row in rows:
            writer.writerow([row.graph, row.recipe, row.outcome,
                             *(row.devices.get(device, "") for device in devices),
                             " ".join(row.operators), row.why])
