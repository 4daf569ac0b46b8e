# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "mirror.sh"


class HostMirrorTest(unittest.TestCase):

    def mirror(self, files, codename="bookworm"):
        with tempfile.TemporaryDirectory() as folder:
            etc = pathlib.Path(folder)
            (etc / "sources.list.d").mkdir()
            for name, text in files.items():
                (etc / name).write_text(text.replace("@ETC@", folder))
            run = subprocess.run(
                ["bash", "-c", '. "$0"; hostMirror "$1" "$2"', str(SCRIPT), folder, codename],
                capture_output=True, text=True, check=False)
            self.assertEqual(run.stderr, "")
            return run.stdout.strip()

    def testOneLineFormat(self):
        self.assertEqual(self.mirror({"sources.list": """
# deb http://commented/debian bookworm main
deb-src http://sources/debian bookworm main
deb http://security.example/debian-security bookworm-security main
deb [arch=amd64 signed-by=/a b.gpg] http://mirror.example/debian bookworm main contrib # note
deb http://second.example/debian bookworm main
"""}), "http://mirror.example/debian")

    def testDeb822Format(self):
        self.assertEqual(self.mirror({"sources.list.d/debian.sources": """\
Types: deb
# URIs: http://commented/debian
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main
"""}), "http://mirror.example/debian")

    def testDisabledSourceAndForeignEntriesArePassedOver(self):
        self.assertEqual(self.mirror({"sources.list.d/a.sources": """\
Types: deb
URIs: http://disabled.example/debian
Suites: bookworm
Enabled: no

Types: deb-src
URIs: http://sources.example/debian
Suites: bookworm

Types: deb
URIs: http://other.example/apt
Suites: stable

Types: deb-src deb
URIs:
 http://folded.example/debian http://next.example/debian
Suites: bookworm
"""}), "http://folded.example/debian")

    def testAMirrorListGivesItsFirstMirror(self):
        self.assertEqual(self.mirror({
            "sources.list.d/debian.sources":
                "Types: deb\nURIs: mirror+file://@ETC@/list\nSuites: bookworm\n",
            "list": "# mirrors\nhttp://first.example/debian\tpriority:1\nhttp://second.example\n",
        }), "http://first.example/debian")

    def testNoEntryGivesNothing(self):
        self.assertEqual(self.mirror({}), "")
        self.assertEqual(self.mirror({"sources.list": "deb http://m/debian trixie main\n"}), "")


if __name__ == "__main__":
    unittest.main()
