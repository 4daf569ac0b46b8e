# SPDX-License-Identifier: Apache-2.0
"""What a release is made of, as a document of SPDX 2.3 in JSON."""

import dataclasses
import hashlib
import re
import subprocess
import time
import urllib.parse

SUPPLIER = "Organization: Hearth developers"
DEBIAN = "Organization: Debian"
# What is compiled into our files or copied beside them: a package of Debian that has it, and its licence.
COMPONENTS = {
    "libcapnp-dev": "MIT",
    "libcli11-dev": "BSD-3-Clause",
    "libcpuinfo0": "BSD-2-Clause",
    "libflatbuffers-dev": "Apache-2.0",
    "libfmt-dev": "MIT",
    "libpthreadpool-dev": "BSD-2-Clause",
    "libseccomp2": "LGPL-2.1-only",
    "libspdlog-dev": "MIT",
    "libsqlite3-dev": "blessing",
    "libssl-dev": "Apache-2.0",
    "libstb-dev": "MIT",
    "libstdc++-14-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libxnnpack-dev": "BSD-3-Clause",
    "nanobind-dev": "BSD-3-Clause",
    "nlohmann-json3-dev": "MIT",
    "robin-map-dev": "MIT",
}
# Which of them are in which Debian package of ours; the wheel has all.
OF_PACKAGES = {
    "hearth": ["libcli11-dev", "libflatbuffers-dev", "libfmt-dev", "libspdlog-dev", "libssl-dev", "libstb-dev",
               "nlohmann-json3-dev"],
    "libhearth0": ["libflatbuffers-dev", "libfmt-dev", "libspdlog-dev", "libssl-dev", "libxnnpack-dev",
                   "nlohmann-json3-dev"],
    "python3-hearth": ["nanobind-dev", "robin-map-dev"],
}


@dataclasses.dataclass(frozen=True)
class DebianPackage:
    name: str
    version: str
    architecture: str


def installedPackage(name):
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Version} ${Architecture}", name], check=True,
                           capture_output=True, text=True).stdout
    return DebianPackage(name, *shown.split())


def identifier(*words):
    return "SPDXRef-" + "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-") for word in words)


def debianEntry(package, licence="NOASSERTION"):
    version = urllib.parse.quote(package.version, safe="")
    name = urllib.parse.quote(package.name, safe="")
    return {
        "SPDXID": identifier("debian", package.name, package.version, package.architecture),
        "name": package.name,
        "versionInfo": package.version,
        "supplier": DEBIAN,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{name}@{version}?arch={package.architecture}"}],
    }


def fileEntry(path, version):
    return {
        "SPDXID": identifier("file", path.name),
        "name": path.name,
        "versionInfo": version,
        "packageFileName": path.name,
        "supplier": SUPPLIER,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "2026 Hearth developers",
        "checksums": [{"algorithm": "SHA256",
                       "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}],
    }


def document(version, when, files, contents):
    """`files` are the paths of a release; `contents` says of names of files which Debian packages they
    hold."""
    entries = [fileEntry(path, version) for path in files]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", entry["SPDXID"]) for entry in entries]
    others = {}
    for path in files:
        for package in sorted(set(contents.get(path.name, [])), key=lambda package: package.name):
            entry = debianEntry(package, COMPONENTS.get(package.name, "NOASSERTION"))
            others[entry["SPDXID"]] = entry
            relations.append((identifier("file", path.name), "CONTAINS", entry["SPDXID"]))
    # The name of a document is its content's own.
    digest = hashlib.sha256("".join(entry["checksums"][0]["checksumValue"] for entry in entries)
                            .encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"hearth-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/hearth-{version}-{digest}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)),
                         "creators": [SUPPLIER, f"Tool: hearth-release-{version}"]},
        "packages": entries + [others[key] for key in sorted(others)],
        "relationships": [{"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": other}
                          for subject, kind, other in relations],
    }
