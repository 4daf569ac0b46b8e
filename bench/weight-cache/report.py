# SPDX-License-Identifier: Apache-2.0
"""Tables, ratios against the goals, and a plot."""

import statistics

from measurement import BUILDING, HEARTH, NONE, PEER, REUSING, SIDES, STATES

DROPPED = "reusing, page cache dropped"
LARGE = 100_000_000  # size of a model file, in bytes, from which on the goals for large ones hold
BUDGETED = 400_000_000


class Result:
    """One row. `samples` and `failures` are by (side, state)."""

    def __init__(self, name, modelBytes, isLanguageModel, samples, failures):
        self.name = name
        self.modelBytes = modelBytes
        self.isLanguageModel = isLanguageModel
        self.samples = samples
        self.failures = failures

    def median(self, side, state, *keys):
        """The median of the sum of the keys; None without samples."""
        values = [sum(sample[key] for key in keys)
                  for sample in self.samples.get((side, state), []) if all(k in sample for k in keys)]
        return statistics.median(values) if values else None

    def cell(self, side, state, *keys, scale=1.0):
        values = [sum(sample[key] for key in keys) * scale
                  for sample in self.samples.get((side, state), []) if all(k in sample for k in keys)]
        if not values:
            return "failed" if (side, state) in self.failures else "–"
        return f"{digits(statistics.median(values))} ({digits(min(values))}–{digits(max(values))})"

    def json(self):
        return {"model": self.name, "model_bytes": self.modelBytes,
                "samples": {f"{side}, {state}": samples
                            for (side, state), samples in self.samples.items()},
                "failures": {f"{side}, {state}": sentence
                             for (side, state), sentence in self.failures.items()}}

    def processes(self):
        """The numbers of processes that were measured."""
        return sorted({int(state.split()[0]) for _, state in self.samples
                       if state.endswith(" processes")})


def digits(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def ratio(ours, theirs):
    return None if ours is None or not theirs else ours / theirs


def goals(result):
    """(what, ratio or value, goal, unit) for one row; None if it is unknown."""
    def ours(state, *keys):
        return result.median(HEARTH, state, *keys)

    def theirs(state, *keys):
        return result.median(PEER, state, *keys)

    isLarge = result.modelBytes >= LARGE
    lines = [("init, reusing / LiteRT's, reusing",
              ratio(ours(REUSING, "init"), theirs(REUSING, "init")), 0.33)]
    if isLarge:
        lines.append(("init, reusing / LiteRT's, no cache",
                      ratio(ours(REUSING, "init"), theirs(NONE, "init")), 0.02))
        lines.append(("init + first, reusing / own steady",
                      ratio(ours(REUSING, "init", "first"), ours(REUSING, "steady")), 1.15))
    elif None not in (ours(REUSING, "init", "first"), ours(REUSING, "steady")):
        lines.append(("init + first − steady, reusing, ms",
                      ours(REUSING, "init", "first") - ours(REUSING, "steady"), 2.5))
    lines.append(("init, building / LiteRT's",
                  ratio(ours(BUILDING, "init"), theirs(BUILDING, "init")), 0.6))
    lines.append(("anonymous memory, reusing / LiteRT's",
                  ratio(ours(REUSING, "anonymous_kib"), theirs(REUSING, "anonymous_kib")), 0.5))
    counts = result.processes()
    if len(counts) > 1:
        def further(side):
            low, high = (result.median(side, f"{count} processes", "peak_pss_kib")
                         for count in (counts[0], counts[-1]))
            return None if None in (low, high) else (high - low) / (counts[-1] - counts[0])
        lines.append(("each further process, PSS / LiteRT's", ratio(further(HEARTH), further(PEER)),
                      0.5))
    if result.modelBytes >= BUDGETED:
        lines.append(("peak RSS when ready, building / LiteRT's",
                      ratio(ours(BUILDING, "start_peak_kib"), theirs(BUILDING, "start_peak_kib")),
                      0.5))
        lines.append(("peak anonymous memory, building / LiteRT's",
                      ratio(ours(BUILDING, "peak_anonymous_kib"),
                            theirs(BUILDING, "peak_anonymous_kib")), 0.5))
    peers = [value for value in (theirs(state, "steady") for state in STATES) if value]
    if peers:
        lines.append(("steady, reusing / LiteRT's best", ratio(ours(REUSING, "steady"), min(peers)),
                      1.0))
    if result.isLanguageModel:
        peers = [value for value in (theirs(state, "decode") for state in STATES) if value]
        if peers:
            lines.append(("time of a token, reusing / LiteRT's best",
                          ratio(ours(REUSING, "decode"), min(peers)), 1.0))
    keys = ("init", "first") + (("first_decode",) if result.isLanguageModel else ())
    lines.append(("page cache dropped, to the first result / LiteRT's",
                  ratio(ours(DROPPED, *keys), theirs(DROPPED, *keys)), 0.75))
    lines.append(("bytes on disk / model", ratio(ours(BUILDING, "disk_bytes"), result.modelBytes),
                  None))
    return lines


def markdown(results, facts):
    lines = ["## Weight cache", "",
             "Written by `bench/weight-cache/compare.py`. Both sides took turns, each measurement in "
             "a fresh process; a cell is the median over the rounds and its range. LiteRT is "
             "`CompiledModel`, the interface that has a weight cache. Steady is the median of the "
             "inferences after the first; for language models a prefill of 128 tokens, after which "
             "single tokens are decoded. With several processes, times are those of the slowest.", "",
             *(f"- {name}: {value}" for name, value in facts)]
    sections = [
        ("Initialisation, ms", STATES, ("init",), 1),
        ("Initialisation and first inference, ms", STATES, ("init", "first"), 1),
        ("Steady inference, ms", STATES, ("steady",), 1),
        ("A decoded token, ms", STATES, ("decode",), 1),
        ("To the first result with the page cache dropped, ms", (DROPPED,), ("init", "first"), 1),
        ("Peak resident memory when ready, MiB", STATES, ("start_peak_kib",), 1 / 1024),
        ("Anonymous memory at the end, MiB", STATES, ("anonymous_kib",), 1 / 1024),
        ("Peak anonymous memory, MiB", STATES, ("peak_anonymous_kib",), 1 / 1024),
        ("Bytes on disk, MiB", (BUILDING,), ("disk_bytes",), 1 / (1 << 20)),
    ]
    for title, states, keys, scale in sections:
        chosen = [result for result in results
                  if any(result.median(side, state, *keys) is not None
                         for side in SIDES for state in states)]
        if not chosen:
            continue
        columns = [(side, state) for state in states for side in SIDES]
        lines += ["", f"### {title}", "",
                  "| model | " + " | ".join(f"{side}, {state}" for side, state in columns) + " |",
                  "|---" * (len(columns) + 1) + "|"]
        lines += [f"| {result.name} | " + " | ".join(
            result.cell(side, state, *keys, scale=scale) for side, state in columns) + " |"
            for result in chosen]
    lines += ["", "### Several processes: peak of the sum of PSS, MiB", "",
              "| model | processes | hearth | litert |", "|---|---|---|---|"]
    for result in results:
        lines += [f"| {result.name} | {count} | " + " | ".join(
            result.cell(side, f"{count} processes", "peak_pss_kib", scale=1 / 1024)
            for side in SIDES) + " |" for count in result.processes()]
    lines += ["", "### Against the goals", "", "| model | what | measured | goal |",
              "|---|---|---|---|"]
    for result in results:
        for what, value, goal in goals(result):
            if value is None:
                continue
            isMissed = goal is not None and value > goal
            shown = f"**{value:.3g}**" if isMissed else f"{value:.3g}"
            wanted = "–" if goal is None else f"≤ {goal:g}" + (", missed" if isMissed else "")
            lines.append(f"| {result.name} | {what} | {shown} | {wanted} |")
    failures = [(result.name, side, state, sentence) for result in results
                for (side, state), sentence in result.failures.items()]
    if failures:
        lines += ["", "### Failed", "", *(f"- {name}, {side}, {state}: {sentence}"
                                          for name, side, state, sentence in failures)]
    return "\n".join(lines) + "\n"


def plot(results):
    """Initialisation and first inference of each row in each state, as bars on a log scale."""
    width, left, barHeight, gap = 760, 190, 9, 14
    colours = {HEARTH: "#d9480f", PEER: "#868e96"}
    low, high = 1.0, 20_000.0
    import math

    def x(value):
        fraction = math.log(max(value, low) / low) / math.log(high / low)
        return left + fraction * (width - left - 70)

    rowHeight = len(STATES) * (2 * barHeight + 3) + gap
    height = 50 + rowHeight * len(results)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="11">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             '<text x="10" y="18" font-size="13">Opening the model to the first result, ms (log scale)'
             '</text>']
    for side, at in ((HEARTH, 440), (PEER, 520)):
        parts.append(f'<rect x="{at}" y="9" width="10" height="10" fill="{colours[side]}"/>'
                     f'<text x="{at + 14}" y="18">{side}</text>')
    for tick in (1, 10, 100, 1000, 10_000):
        parts.append(f'<line x1="{x(tick):.0f}" y1="30" x2="{x(tick):.0f}" y2="{height - 16}" '
                     f'stroke="#dee2e6"/><text x="{x(tick):.0f}" y="{height - 4}" '
                     f'text-anchor="middle" fill="#495057">{tick}</text>')
    y = 36
    for result in results:
        parts.append(f'<text x="10" y="{y + barHeight}" font-weight="bold">{result.name}</text>')
        for state in STATES:
            parts.append(f'<text x="{left - 6}" y="{y + barHeight + 4}" text-anchor="end" '
                         f'fill="#495057">{state}</text>')
            for side in SIDES:
                value = result.median(side, state, "init", "first")
                if value is not None:
                    parts.append(f'<rect x="{left}" y="{y}" width="{x(value) - left:.1f}" '
                                 f'height="{barHeight}" fill="{colours[side]}"/>'
                                 f'<text x="{x(value) + 4:.0f}" y="{y + barHeight - 1}" '
                                 f'font-size="9">{digits(value)}</text>')
                y += barHeight
            y += 3
        y += gap
    return "\n".join([*parts, "</svg>"]) + "\n"
