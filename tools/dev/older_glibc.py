# SPDX-License-Identifier: Apache-2.0
"""Makes a library or program of Debian 13 run with glibc 2.34, as of Ubuntu 22.04 and RHEL 9.

Headers of glibc 2.38 give old functions new names and versions: strtol() is __isoc23_strtol@GLIBC_2.38
there and fmod() is fmod@GLIBC_2.38. The first versions of these functions do what our code asks of them
and are in every glibc, so the references are led to them, in place. A reference to a function that is
really new is an error.
"""

import re
import struct

# From the ELF specification and the GNU extensions.
DYNSYM, VERNEED, VERSYM = 11, 0x6ffffffe, 0x6fffffff
# The version that the architecture's first glibc has, by e_machine.
FIRST = {62: "GLIBC_2.2.5", 183: "GLIBC_2.17"}
NEWEST = (2, 34)
C23 = "__isoc23_"
# Names of the first versions, to which newer ones are led. fmod() and hypot() have lost nothing but the
# report of errors to a function of the program. strtol() and its like do not know "0b1" yet, nor does scanf(),
# which takes "%a" for a flag.
LED_BACK = {"fmod", "fmodf", "hypot", "hypotf", *(C23 + name for name in (
    "fscanf", "sscanf", "strtoimax", "strtol", "strtoll", "strtoul", "strtoull", "strtoumax",
    "vfscanf", "vsscanf", "wcstol", "wcstoll", "wcstoul", "wcstoull"))}


class GlibcError(Exception):
    """A file that needs a newer glibc; the text is a sentence."""


def elfHash(name):
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        value = (value ^ (value >> 24 & 0xf0)) & 0x0fffffff
    return value


class Elf:
    """The parts of a 64-bit little-endian file that say which versions it needs."""

    def __init__(self, content):
        self.content = bytearray(content)
        if content[:6] != b"\x7fELF\x02\x01":
            raise GlibcError("It is no ELF file of 64 bits, little-endian.")
        self.machine, = struct.unpack_from("<H", content, 18)
        start, = struct.unpack_from("<Q", content, 40)
        size, count = struct.unpack_from("<HH", content, 58)
        headers = [struct.unpack_from("<IIQQQQIIQQ", content, start + size * i) for i in range(count)]
        # Offset and size of a section, by its type.
        self.sections = {header[1]: (header[4], header[5]) for header in headers}
        # The text that belongs to symbols and versions.
        strings = next((headers[header[6]] for header in headers if header[1] == DYNSYM), None)
        self.strings = (strings[4], strings[5]) if strings else (0, 0)

    def text(self, offset):
        start = self.strings[0] + offset
        return self.content[start:self.content.index(0, start)].decode()

    def offsetOf(self, text):
        start, size = self.strings
        found = self.content.find(b"\0" + text.encode() + b"\0", start, start + size)
        return found + 1 - start if found >= 0 else None

    def neededVersions(self):
        """Triples of a version's number in this file, its name, and where the file has it."""
        if VERNEED not in self.sections:
            return
        library = self.sections[VERNEED][0]
        while True:
            _, count, _, first, following = struct.unpack_from("<HHIII", self.content, library)
            version = library + first
            for _ in range(count):
                _, _, number, name, step = struct.unpack_from("<IHHII", self.content, version)
                yield number & 0x7fff, self.text(name), version
                version += step
            if following == 0:
                return
            library += following

    def versionedSymbols(self):
        """Triples of a symbol's name, the number of its version, and where the file has it."""
        if DYNSYM not in self.sections or VERSYM not in self.sections:
            return
        symbols, size = self.sections[DYNSYM]
        versions = self.sections[VERSYM][0]
        for i in range(size // 24):
            number, = struct.unpack_from("<H", self.content, versions + 2 * i)
            name, = struct.unpack_from("<I", self.content, symbols + 24 * i)
            yield self.text(name), number & 0x7fff, symbols + 24 * i


def isTooNew(version):
    found = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
    return bool(found) and (int(found[1]), int(found[2])) > NEWEST


def ledBack(content):
    """The content of the file with all references to functions newer than NEWEST led back."""
    elf = Elf(content)
    tooNew = {number: (name, place) for number, name, place in elf.neededVersions() if isTooNew(name)}
    if not tooNew:
        return content
    for name, number, place in elf.versionedSymbols():
        if number not in tooNew:
            continue
        if name not in LED_BACK:
            raise GlibcError(f"{name} is of {tooNew[number][0]}.")
        if name.startswith(C23):
            # The old name is the end of the new one.
            offset, = struct.unpack_from("<I", elf.content, place)
            struct.pack_into("<I", elf.content, place, offset + len(C23))
    first = FIRST.get(elf.machine)
    text = elf.offsetOf(first) if first else None
    if text is None:
        raise GlibcError("It does not name the first version of glibc, so nothing can be led there.")
    for _, place in tooNew.values():
        struct.pack_into("<I", elf.content, place, elfHash(first))
        struct.pack_into("<I", elf.content, place + 8, text)
    return bytes(elf.content)
