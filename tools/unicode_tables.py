#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""unicode_tables.py: writes the tables src/llm/unicode_*.inc anew, from the Unicode data of this
Python."""

import pathlib
import sys
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parent.parent
# In the order of the enumeration Category in src/llm/unicode.h.
CATEGORIES = ["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
              "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs",
              "Co", "Cn"]
COLUMNS = 100


def rows(words):
    """The words with commas between them, in lines of at most COLUMNS characters."""
    line = ""
    for word in words:
        if len(line) + len(word) + 1 > COLUMNS:
            yield line
            line = ""
        line += word + ","
    yield line


def write(name, meaning, words):
    text = "\n".join(["// SPDX-License-Identifier: Apache-2.0",
                      f"// Written by tools/unicode_tables.py from Unicode {unicodedata.unidata_version}:",
                      f"// {meaning}", *rows(words)]) + "\n"
    (ROOT / "src" / "llm" / f"unicode_{name}.inc").write_text(text, encoding="utf-8")


def starts(valueOf):
    """A word for each range of code points that have one value."""
    last = None
    for code in range(sys.maxunicode + 1):
        value = valueOf(chr(code))
        if value != last:
            yield code, value
            last = value


def decompositions():
    """Code point, the one or two that it is made of, and whether these make it."""
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(code)).split()
        if not parts or parts[0][0] == "<":
            continue
        parts = [int(part, 16) for part in parts]
        isMade = unicodedata.normalize("NFC", "".join(map(chr, parts))) == chr(code)
        yield f"{{{code},{parts[0]},{parts[1] if len(parts) == 2 else 0},{int(isMade)}}}"


def main():
    write("categories", "the first code point of each range, times 32, plus its category.",
          [f"{code << 5 | value}" for code, value in
           starts(lambda text: CATEGORIES.index(unicodedata.category(text)))])
    write("combining_classes",
          "the first code point of each range, times 256, plus its canonical combining class.",
          [f"{code << 8 | value}" for code, value in starts(unicodedata.combining)])
    write("decompositions",
          "code point, the one or two (else 0) that it is made of, whether these make it.",
          list(decompositions()))


if __name__ == "__main__":
    main()
