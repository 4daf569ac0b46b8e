# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/operations with stubs in place of both programs; LiteRT itself is not needed."""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "bench" / "operations"
sys.path[:0] = [str(FOLDER), str(Path(__file__).parent)]
import compare  # noqa: E402
import graphs  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import stub_programs  # noqa: E402
from workloads import tflite_reader, tflite_schema, tflite_writer  # noqa: E402


def sample(p50):
    return {"start": {"prepare_ms": 1.0}, "inference_ms": {"first": 2.0, "p50": p50}}


def result(hearth, peer, name="ABS f32", failures=None, threads=1):
    samples = {side: [sample(value) for value in values]
               for side, values in (("hearth", hearth), ("interpreter", peer))}
    return report.Result(name, threads, samples, failures or {})


class ReportTest(unittest.TestCase):
    def testARatioIsOfMedians(self):
        one = result([1.0, 3.0, 2.0], [4.0, 5.0, 3.0])
        self.assertEqual(one.ratio, 0.5)
        self.assertFalse(one.isAbove)
        self.assertEqual(one.json()["steady_ms"]["hearth"], {"median": 2.0, "min": 1.0, "max": 3.0})

    def testALimitIsMissedWhereRangesAreApart(self):
        self.assertFalse(result([1.004], [1.0]).isAbove)
        overlapping = result([1.1, 1.3], [1.0, 1.2])
        self.assertTrue(overlapping.isAbove)
        self.assertFalse(overlapping.isMissed)
        self.assertTrue(result([1.1, 1.3], [1.0, 1.05]).isMissed)

    def testShortAndRefusedRowsHaveNoRatio(self):
        self.assertIsNone(result([0.1], [0.4]).ratio)
        self.assertIsNone(result([], [4.0]).ratio)

    def testTheTableShowsAll(self):
        text = report.markdown(
            [result([2.0], [1.0], "A f32"), result([1.1, 1.3], [1.0, 1.2], "B f32"),
             result([1.0], [2.0], "C f32"), result([], [1.0], "D i16", {"hearth": "no such type"}),
             result([3.0], [1.0], "A f32", threads=2)], [("peer", "x")])
        self.assertIn("| A f32 | 2 (2–2) | 1 (1–1) | **2.00**, missed |", text)
        self.assertIn("| B f32 | 1.2 (1.1–1.3) | 1.1 (1–1.2) | 1.09, overlaps |", text)
        self.assertIn("| C f32 | 1 (1–1) | 2 (2–2) | 0.50 |", text)
        self.assertIn("| D i16 | refused | 1 (1–1) | – |", text)
        self.assertIn("1 of 3 rows are within the limit, 1 overlap, 1 miss it.", text)
        self.assertIn("### Operations, 2 threads", text)
        self.assertIn("- hearth: D i16: no such type", text)


class RowsTest(unittest.TestCase):
    def testNamesAreUnique(self):
        names = [row.name for row in rows.ROWS]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreater(len(names), 200)

    def testOperatorsHaveDifferentCodes(self):
        operators = tflite_schema.OPERATORS
        self.assertEqual(list(operators), sorted(operators))
        self.assertEqual(len({entry.code for entry in operators.values()}), len(operators))

    def testEveryOperatorIsKnown(self):
        for row in rows.ROWS:
            fields = {name for name, _, _ in tflite_schema.OPERATORS[row.operation].fields}
            self.assertLessEqual(set(row.options), fields, row.name)

    def testANetworkOfOneOperatorIsWritten(self):
        graph = graphs.network(
            "UNIDIRECTIONAL_SEQUENCE_RNN",
            [graphs.f32(2, 3, 4), graphs.weights(5, 4), graphs.weights(5, 5), graphs.weights(5),
             graphs.state(graphs.f32(2, 5))], [graphs.f32(2, 3, 5)], activation=4)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.tflite"
            tflite_writer.write(graph, path)
            content = tflite_reader.read(path)
            plain = graphs.network("ABS", [graphs.f32(2)], [graphs.f32(2)])
            tflite_writer.write(plain, path)
            self.assertEqual(tflite_reader.read(path).operators[0].kind, "ABS")
        self.assertEqual(len(content.inputs), 1)
        self.assertEqual(content.operators[0].kind, "UNIDIRECTIONAL_SEQUENCE_RNN")
        self.assertEqual([tensor.data is not None for tensor in content.tensors],
                         [False, True, True, True, False, False])

    def testArgumentsThatAreLeftOut(self):
        graph = graphs.network("SVDF", [graphs.f32(1, 2), None], [graphs.f32(1, 2)], rank=1)
        self.assertEqual(graph.operators[0].inputs, [0, -1])


class CompareTest(stub_programs.StubTest):
    def setUp(self):
        super().setUp()
        store = os.environ.get("HEARTH_STORE")
        self.addCleanup(lambda: os.environ.pop("HEARTH_STORE", None) if store is None
                        else os.environ.update(HEARTH_STORE=store))

    def compare(self, hearth, peer, *words):
        return self.captured(compare.main, ["--hearth", hearth, "--python", peer, "--rows",
                                            "SVDF f32", *words])

    def testBothSidesTakeTurns(self):
        turns = self.folder / "turns"
        hearth = self.program("hearth", f"""
[ "$1 $3 $4 $5 $6 $7" = "bench --json --threads 2 --repeat 4" ] && test -s "$2" || exit 2
echo hearth >> {turns}; echo '{json.dumps(sample(3.0))}'""")
        peer = self.program("python", f"""
[ "$3 $4" = "--api interpreter" ] && test -s "$2" || exit 2
echo peer >> {turns}; echo '{json.dumps(sample(6.0))}'""")
        figures = self.folder / "figures.json"
        code, text = self.compare(hearth, peer, "--threads", "2", "--rounds", "2", "--repeat", "4",
                                  "--json", str(figures))
        self.assertEqual(code, 0)
        self.assertIn("| SVDF f32 | 3 (3–3) | 6 (6–6) | 0.50 |", text)
        self.assertEqual(turns.read_text().split(), ["peer", "hearth", "hearth", "peer"])
        [row] = json.loads(figures.read_text())["rows"]
        self.assertEqual((row["row"], row["threads"], row["ratio"]), ("SVDF f32", 2, 0.5))

    def testARefusalIsPartOfTheReport(self):
        peer = self.program("python", f"echo '{json.dumps(sample(6.0))}'")
        refusing = self.program("hearth", 'echo "$2: no such type" >&2; exit 1')
        code, text = self.compare(refusing, peer, "--quick")
        self.assertEqual(code, 0)
        self.assertIn("| SVDF f32 | refused | 6 (6–6) | – |", text)
        self.assertIn("- hearth: SVDF f32: ended with exit code 1: model.tflite: no such type", text)
        self.assertEqual(self.compare(refusing, refusing, "--quick")[0], 1)

    def testArguments(self):
        self.checkRows(compare.main, "GATHER f32, rows\n")


if __name__ == "__main__":
    unittest.main()
