#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the measurements in *.json beside this file: as charts docs/benchmarks-NAME.svg, and as tables
in docs/benchmarks.md, between the lines <!-- figures NAME --> and <!-- end -->.

    charts.py            writes them
    charts.py --check    exit code 1 if one is not what would be written

A file has what was measured (title, unit, command, machine, threads), the columns, and rows of a
model, a date and, for each column, [median, least, most] or null. `inexact` lists the columns whose
results are wrong in more than rounding, `group` divides the rows.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path("docs/benchmarks.md")
# The measurements that are drawn; the others are tables only.
DRAWN = ("peers", "processes", "warm-start")
BLOCK = re.compile(r"(<!-- figures ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

COLOURS = ("#d9480f", "#868e96", "#4c6ef5", "#15aabf", "#37b24d")
WIDTH, LEFT, RIGHT, BAR, GAP = 760, 250, 170, 12, 10


def digits(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def table(figures):
    """The rows in Markdown; the range of a cell stands behind its median."""
    columns = figures["columns"]
    lines = [f"| {figures['unit']} | {' | '.join(columns)} | Hearth / LiteRT | date |",
             "|" + "---|" * (len(columns) + 3)]
    group = None
    for row in figures["rows"]:
        if row.get("group") != group:
            group = row["group"]
            lines.append(f"| **{group}** |" + " |" * (len(columns) + 2))
        cells = []
        for column, value in enumerate(row["values"]):
            if value is None:
                cells.append("–")
                continue
            median, least, most = map(digits, value)
            text = median if least == most else f"{median} ({least}–{most})"
            cells.append(f"{text}, inexact" if column in row.get("inexact", ()) else text)
        ratio = row["values"][0][0] / row["values"][1][0]
        lines.append(f"| {row['model']} | {' | '.join(cells)} | {ratio:.2f} | {row['date']} |")
    return "\n".join(lines) + "\n"


def chart(figures):
    """The medians as an SVG of bars. Each row has a scale of its own, up to its longest bar."""
    parts, y, group = [], 46, None
    for row in figures["rows"]:
        if row.get("group") != group:
            group = row["group"]
            parts.append(f'<text x="10" y="{y + 14}" font-size="13">{escape(group)}</text>')
            y += 26
        longest = max(value[0] for value in row["values"] if value)
        parts.append(f'<text x="10" y="{y + BAR - 2}" font-weight="bold">{escape(row["model"])}'
                     "</text>")
        for column, value in enumerate(row["values"]):
            if value is None:
                continue
            isExact = column not in row.get("inexact", ())
            length = value[0] / longest * (WIDTH - LEFT - RIGHT)
            label = f"{figures['columns'][column]} {digits(value[0])}"
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 3}" '
                f'fill="{COLOURS[column] if isExact else "none"}" stroke="{COLOURS[column]}"/>'
                f'<text x="{LEFT + length + 5:.1f}" y="{y + BAR - 3}" font-size="10">'
                f'{escape(label)}{"" if isExact else ", inexact"}</text>')
            y += BAR
        y += GAP
    heading = f"{figures['title']}, {figures['unit']}"
    about = f"{figures['machine']}; {figures['command']}; each model has a scale of its own"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{y}" fill="white"/>',
        f'<text x="10" y="18" font-size="13">{escape(heading)}</text>',
        f'<text x="10" y="34" fill="#495057">{escape(about)}</text>', *parts, "</svg>"]) + "\n"


def outputs(root):
    """{path below `root`: text} of all charts, and of the page with its tables."""
    known = {path.stem: json.loads(path.read_text(encoding="utf-8"))
             for path in sorted((root / "bench" / "figures").glob("*.json"))}
    page = (root / PAGE).read_text(encoding="utf-8")
    written = {Path(f"docs/benchmarks-{name}.svg"): chart(known[name]) for name in DRAWN}
    written[PAGE] = BLOCK.sub(lambda block: block[1] + table(known[block[2]]) + block[3], page)
    return written


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    isCheck = parser.parse_args(words).check
    code = 0
    for path, text in outputs(ROOT).items():
        file = ROOT / path
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        if isCheck:
            print(f"{path} is not what bench/figures has; bench/figures/charts.py writes it.")
            code = 1
        else:
            file.write_text(text, encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
