# SPDX-License-Identifier: Apache-2.0
"""The figures of all models as tables: how the ratios are distributed, and the worst."""

import statistics

HEARTH, LITERT, OPENVINO = "hearth", "litert", "openvino"
TITLES = {LITERT: "LiteRT", OPENVINO: "OpenVINO"}
COLD, WARM = "cold", "warm"
# Below this time of LiteRT's, the caller's language is a large part of it.
SMALL_MS = 0.05
WORST = 10
# (title, quantity, start of Hearth)
QUANTITIES = (("inference", "inference_ms", WARM), ("first result, cold", "first_ms", COLD),
              ("first result, warm", "first_ms", WARM), ("memory, cold", "memory_mib", COLD),
              ("memory, warm", "memory_mib", WARM))
# Less memory than this is noise of the allocators.
LEAST_MIB = 1


class Row:
    """One model with one number of threads. `figures` has the figures of measure.py: those of
    Hearth by start, those of a peer under its name; `failures` has a sentence for each that
    failed."""

    def __init__(self, model, source, threads, figures=None, failures=None):
        self.model, self.source, self.threads = model, source, threads
        self.figures = figures or {}
        self.failures = failures or {}

    def ratio(self, quantity, start, peer=LITERT):
        """Hearth's figure as a share of the peer's; None where one is missing or too small."""
        own, other = (self.figures.get(side, {}).get(quantity) for side in (start, peer))
        if own is None or other is None:
            return None
        if quantity == "memory_mib":
            own, other = max(own, LEAST_MIB), max(other, LEAST_MIB)
        return own / other if other > 0 else None

    @property
    def isSmall(self):
        return self.figures.get(LITERT, {}).get("inference_ms", SMALL_MS) < SMALL_MS

    def json(self):
        return vars(self)


def rowsOf(content):
    """The rows that json() wrote."""
    return [Row(**entry) for entry in content["rows"]]


def worstFirst(rows, quantity="inference_ms", start=WARM, peer=LITERT):
    """The rows with a ratio, the worst first."""
    return sorted((row for row in rows if row.ratio(quantity, start, peer) is not None),
                  key=lambda row: -row.ratio(quantity, start, peer))


def distribution(rows, peer=LITERT):
    """Lines of the table of ratios."""
    lines = [f"| hearth / {TITLES[peer]} | models | median | 9 of 10 below | 19 of 20 below | greatest | "
             "above 1.0 | above 1.1 |", "|---|---|---|---|---|---|---|---|"]
    for title, quantity, start in QUANTITIES:
        parts = [("", rows)]
        if quantity == "inference_ms":
            parts = [(f", {SMALL_MS * 1e3:.0f} µs or more", [row for row in rows if not row.isSmall]),
                     (f", below {SMALL_MS * 1e3:.0f} µs", [row for row in rows if row.isSmall])]
        for words, part in parts:
            ratios = sorted(row.ratio(quantity, start, peer)
                            for row in worstFirst(part, quantity, start, peer))
            if ratios:
                lines.append(f"| {title}{words} | {len(ratios)} | {statistics.median(ratios):.2f} | "
                             f"{_below(ratios, 0.9):.2f} | {_below(ratios, 0.95):.2f} | "
                             f"{ratios[-1]:.2f} | {sum(ratio > 1 for ratio in ratios)} | "
                             f"{sum(ratio > 1.1 for ratio in ratios)} |")
    return lines


def _below(ratios, share):
    """The ratio that this share of the sorted ratios does not exceed."""
    return ratios[min(len(ratios) - 1, max(0, round(share * len(ratios)) - 1))]


def worst(rows, quantity, start, peer=LITERT, count=WORST):
    lines = [f"| model | from | hearth | {TITLES[peer]} | ratio | why it does not start warm |",
             "|---|---|---|---|---|---|"]
    for row in worstFirst(rows, quantity, start, peer)[:count]:
        own, other = row.figures[start], row.figures[peer]
        reason = own.get("reason", "") if own.get("state") == "uncached" else ""
        lines.append(f"| {row.model} | {row.source} | {own[quantity]:.3g} | {other[quantity]:.3g} | "
                     f"{row.ratio(quantity, start, peer):.2f} | {reason} |")
    return lines


def text(rows, about):
    parts = ["\n".join(f"- {name}: {value}" for name, value in about)]
    for threads in sorted({row.threads for row in rows}):
        chosen = [row for row in rows if row.threads == threads]
        plural = "s" if threads != 1 else ""
        parts.append(f"### Distribution, {threads} thread{plural}\n\n" +
                     "\n".join(distribution(chosen)))
        large = [row for row in chosen if not row.isSmall]
        small = [row for row in chosen if row.isSmall]
        for title, part, quantity, start in (
                ("The slowest inferences, ms", large, "inference_ms", WARM),
                ("The slowest of the small models, ms", small, "inference_ms", WARM),
                ("The slowest first results, warm, ms", chosen, "first_ms", WARM),
                ("The most memory, warm, MiB", chosen, "memory_mib", WARM)):
            if worstFirst(part, quantity, start):
                parts.append(f"### {title}, {threads} thread{plural}\n\n" +
                             "\n".join(worst(part, quantity, start)))
        if worstFirst(chosen, peer=OPENVINO):
            parts.append(f"### Beside OpenVINO, {threads} thread{plural}\n\n" +
                         "\n".join(distribution(chosen, OPENVINO)) + "\n\n" +
                         "\n".join(worst(large, "inference_ms", WARM, OPENVINO)))
    failures = [f"| {row.model} | {row.source} | {side} | {why} |"
                for row in rows if row.threads == rows[0].threads
                for side, why in row.failures.items()]
    if failures:
        parts.append("### Failed\n\n| model | from | side | why |\n|---|---|---|---|\n" +
                     "\n".join(failures))
    return "\n\n".join(parts) + "\n"
