# SPDX-License-Identifier: Apache-2.0
"""The times of all runtimes as bars beside Hearth's, for people who would rather look. With one thread
they are processor times, which other programs change less."""

from peers.report import HEARTH, INTERPRETER, TITLES, sectionTitle

COLOURS = {HEARTH: "#d9480f", INTERPRETER: "#868e96"}
OTHER_COLOUR = "#4c6ef5"
WIDTH, LEFT, RIGHT, BAR, GAP = 760, 310, 120, 11, 8
# Times of Hearth's up to which bars are drawn; longer ones are cut.
LARGEST = 4


def plot(rows):
    """`rows` are the JSON objects of report.Row. A bar that is not filled is of a runtime whose
    results are not exact."""
    parts, y = [], 30
    for isa, threads in dict.fromkeys((row["instructions"], row["threads"]) for row in rows):
        y += 22
        parts.append(f'<text x="10" y="{y}" font-size="13">{sectionTitle(isa, threads)}</text>')
        y += 8
        for row in rows:
            times = row["processor_ms"] if threads == 1 else row["steady_ms"]
            if (row["instructions"], row["threads"]) == (isa, threads) and HEARTH in times:
                added, y = _bars(row, times, y)
                parts += added
    height = y + 10
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        '<text x="10" y="18" font-size="13">Time of an inference; Hearth\'s is 1. A bar that is not '
        'filled: the results are not exact</text>',
        f'<line x1="{_x(1):.0f}" y1="34" x2="{_x(1):.0f}" y2="{height}" stroke="#adb5bd"/>',
        *parts, "</svg>"]) + "\n"


def _x(ratio):
    return LEFT + min(ratio, LARGEST) / LARGEST * (WIDTH - LEFT - RIGHT)


def _bars(row, times, y):
    """The parts of one model, and where the next one begins."""
    parts = [f'<text x="10" y="{y + BAR - 1}" font-weight="bold">{row["model"]}</text>']
    ours = times[HEARTH]["median"]
    for side, spread in sorted(times.items(), key=lambda item: item[0] != HEARTH):
        ratio = spread["median"] / ours
        colour = COLOURS.get(side, OTHER_COLOUR)
        agreement = row["agreement"].get(side)
        isExact = agreement is None or agreement["exact"]
        word = "" if isExact else ", wrong" if agreement["wrong"] else ", not exact"
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{_x(ratio) - LEFT:.1f}" height="{BAR - 2}" '
                     f'fill="{colour if isExact else "none"}" stroke="{colour}"/>'
                     f'<text x="{_x(ratio) + 5:.0f}" y="{y + BAR - 2}" font-size="10">'
                     f'{TITLES[side]} {ratio:.2f}{word}</text>')
        y += BAR + 2
    return parts, y + GAP
