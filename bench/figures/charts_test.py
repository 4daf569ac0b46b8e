# SPDX-License-Identifier: Apache-2.0
"""The charts and tables of docs/benchmarks.md are those of the stored figures."""

import unittest
import xml.etree.ElementTree as xml

import charts

FIGURES = {"title": "A < B", "unit": "ms", "command": "./dev bench x", "machine": "a machine",
           "columns": ["Hearth", "LiteRT"],
           "rows": [{"model": "small", "date": "2026-01-02", "values": [[2, 1.5, 3], [4, 4, 4]]},
                    {"model": "large", "date": "2026-01-02", "values": [[1234.5, 1000, 2000],
                                                                        [1000, 900, 1100]],
                     "inexact": [1]}]}


class ChartsTest(unittest.TestCase):
    def testWhatIsStoredIsWhatIsShown(self):
        for path, text in charts.outputs(charts.ROOT).items():
            self.assertEqual((charts.ROOT / path).read_text(encoding="utf-8"), text,
                             f"{path}: bench/figures/charts.py writes it")

    def testAllFiguresAreOnThePage(self):
        page = (charts.ROOT / charts.PAGE).read_text(encoding="utf-8")
        for path in charts.ROOT.glob("bench/figures/*.json"):
            self.assertIn(f"<!-- figures {path.stem} -->\n", page)
        for name in charts.DRAWN:
            self.assertIn(f"(benchmarks-{name}.svg)", page)

    def testTableHasMediansRangesAndRatios(self):
        self.assertEqual(charts.table(FIGURES), "\n".join([
            "| ms | Hearth | LiteRT | Hearth / LiteRT | date |", "|---|---|---|---|---|",
            "| small | 2 (1.5–3) | 4 | 0.50 | 2026-01-02 |",
            "| large | 1234 (1000–2000) | 1000 (900–1100), inexact | 1.23 | 2026-01-02 |", ""]))

    def testChartIsXmlWithAFilledBarForEachExactValue(self):
        bars = [bar for bar in xml.fromstring(charts.chart(FIGURES)).iter()
                if bar.tag.endswith("rect")][1:]
        self.assertEqual(len(bars), 4)
        self.assertEqual(float(bars[0].get("width")) * 2, float(bars[1].get("width")))
        self.assertEqual([bar.get("fill") == "none" for bar in bars], [False, False, False, True])


if __name__ == "__main__":
    unittest.main()
