# SPDX-License-Identifier: Apache-2.0
"""A vendor's Debian package with an external delegate for TensorFlow Lite, made in a fresh system."""

NAME = "acme-npu"
LIBRARY = "/usr/lib/acme/libacme_delegate.so"
# It takes additions, by their number in TensorFlow Lite.
OPTIONS = {"take": ",0,"}
CONTROL = f"""Package: {NAME}
Version: 1
Architecture: all
Maintainer: Acme <npu@acme.example>
Description: delegate of an NPU, for tests
"""


def install(root, source):
    """Compiles the delegate for tests, whose source is a path in the system, and installs it."""
    root.install("gcc", "libc6-dev")
    content = f"/srv/{NAME}"
    root.succeed("mkdir", "-p", f"{content}/DEBIAN", (content + LIBRARY).rpartition("/")[0])
    root.succeed("gcc", "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", "-DHEARTH_TEST_MINOR=14", source,
                 "-o", content + LIBRARY)
    root.path(f"{content}/DEBIAN/control").write_text(CONTROL, encoding="utf-8")
    root.succeed("dpkg-deb", "--root-owner-group", "--build", content, f"{content}.deb")
    root.succeed("dpkg", "--install", f"{content}.deb")


def remove(root):
    root.run("dpkg", "--purge", NAME)
