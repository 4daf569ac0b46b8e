#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/c-reference.md and docs/llm-c-reference.md of the declarations and comments in
include/hearth/hearth.h and include/hearth/hearth_llm.h.

    c_reference.py            writes the pages
    c_reference.py --check    exit code 1 if a page is not what would be written

A line // --- TITLE --- begins a section. A comment belongs to the declarations that follow it without
a blank line or another comment between them; they are one entry. Other declarations without a
comment are entries, too, but a structure joins the entry before it, which says what it is for. A
comment with a blank line after it belongs to its section.
"""

import argparse
import re
import sys
from dataclasses import dataclass, field

import checkout

FOLDER = "include/hearth"
# The header of each page, and the page's title.
PAGES = {"docs/c-reference.md": ("hearth.h", "C reference"),
         "docs/llm-c-reference.md": ("hearth_llm.h", "C reference of language models")}
SECTION = re.compile(r"// --- (.+?) -+")
EXPORT = "HEARTH_EXPORT "
# The name that a declaration declares.
NAMES = (re.compile(r"#define (\w+)"), re.compile(r"(?s)typedef (?:struct|enum) \w+ \{.*\} (\w+);"),
         re.compile(r"typedef struct \w+ (\w+);"), re.compile(r"typedef \w+ \(\*(\w+)\)\("),
         re.compile(r"[\w* ]+?(\w+)\("))
STRUCTURE = re.compile(r"typedef struct \w+ \{")
CODE = re.compile(r"`[^`]*`")
# What stands in comments without backticks and is code: names of the API, calls, names with a star.
WORD = re.compile(r"\b(?:hearth_\w+|HEARTH_\w+(?:=\w+)?)|(?<!\w)\w+\(\)|(?<!\w)\*\w+")
PATH = re.compile(r"\bdocs/([\w-]+\.md)")


class Malformed(Exception):
    """The header has something that this script does not know."""


@dataclass
class Entry:
    comment: list = field(default_factory=list)  # lines without their //
    declarations: list = field(default_factory=list)  # texts
    anchor: str = ""

    def names(self):
        return [nameOf(text.lstrip()) for text in self.declarations]

    def heading(self):
        return ", ".join(self.names())


@dataclass
class Section:
    title: str
    comment: list = field(default_factory=list)
    entries: list = field(default_factory=list)


def nameOf(declaration):
    for pattern in NAMES:
        if found := pattern.match(declaration):
            return found[1]
    raise Malformed(f"What does this declare? {declaration}")


def isWhole(text):
    """Whether the lines of `text` are a whole declaration."""
    if text.startswith("#"):
        return not text.endswith("\\")
    code = re.sub(r"//.*", "", text).rstrip()
    return code.endswith(";") and code.count("{") == code.count("}")


def shown(declaration):
    """A declaration without the macro that exports it, and the margin that stands below the macro."""
    if not declaration.startswith(EXPORT):
        return declaration
    lines = declaration.removeprefix(EXPORT).split("\n")
    margin = " " * len(EXPORT)
    return "\n".join(line.removeprefix(margin) for line in lines)


def parse(text):
    """The comment at the head of a header, and its sections."""
    head, _, rest = text.partition("\n#pragma once\n")
    lines = head.split("\n")
    if not lines[0].startswith("// SPDX") or not all(line.startswith("//") for line in lines):
        raise Malformed("The header does not begin with a comment and #pragma once.")
    introduction = [uncommented(line) for line in lines[1:]]
    _, begin, rest = rest.partition('extern "C" {\n#endif\n')
    body, end, _ = rest.partition("\n#ifdef __cplusplus\n}")
    if not begin or not end:
        raise Malformed('The header has no part in extern "C".')

    sections, comment, isJoined = [Section("Version")], [], False
    lines = iter(body.split("\n"))
    for line in lines:
        if title := SECTION.fullmatch(line):
            sections.append(Section(title[1]))
            isJoined = False
        elif line.startswith("//"):
            comment.append(uncommented(line))
            isJoined = False
        elif not line:
            sections[-1].comment += comment
            comment, isJoined = [], False
        else:
            while not isWhole(line):
                following = next(lines, None)
                if following is None:
                    raise Malformed(f"This does not end: {line}")
                line += "\n" + following
            entries = sections[-1].entries
            if not isJoined and (comment or not entries or not STRUCTURE.match(line)):
                entries.append(Entry(comment))
            elif not isJoined:
                line = "\n" + line
            entries[-1].declarations.append(shown(line))
            comment, isJoined = [], True
    return introduction, sections


def uncommented(line):
    return line.removeprefix("//").removeprefix(" ")


def setAnchors(entries):
    """Gives the entries the anchors that GitHub gives to their headings."""
    known = {}
    for entry in entries:
        plain = anchorOf(entry.heading())
        count = known[plain] = known.get(plain, -1) + 1
        entry.anchor = f"{plain}-{count}" if count else plain


def anchorOf(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def prose(lines, anchors):
    """The lines of a comment in Markdown; names of the API lead to their entries."""

    def linked(word):
        if word[0] in anchors:
            return f"[`{word[0]}`](#{anchors[word[0]]})"
        return f"`{word[0]}`"

    marked, end, text = "", 0, "\n".join(lines)
    for code in CODE.finditer(text):
        marked += linkedPlain(text[end:code.start()], linked) + code[0]
        end = code.end()
    return marked + linkedPlain(text[end:], linked)


def linkedPlain(text, linked):
    return PATH.sub(r"[\1](\1)", WORD.sub(linked, text))


def page(text, header="hearth.h", title="C reference"):
    """The page of a header."""
    introduction, sections = parse(text)
    sections = [section for section in sections if section.entries or section.comment]
    setAnchors([entry for section in sections for entry in section.entries])
    anchors = {name: entry.anchor
               for section in sections for entry in section.entries for name in entry.names()}
    # Lists stand behind a blank line.
    head = re.sub(r"(?m)^(?!- |  )(.*:)\n- ", r"\1\n\n- ", prose(introduction, anchors))
    parts = [
        f"# {title}\n",
        f"<!-- tools/c_reference.py makes this page of {FOLDER}/{header}. -->\n",
        head.replace("hearth.hpp", f"[`hearth.hpp`](../{FOLDER}/hearth.hpp)", 1) + "\n",
        f"The declarations below are those of [`{header}`](../{FOLDER}/{header}); "
        "[`examples`](../examples) has programs in C and C++.\n"]
    for section in sections:
        links = ", ".join(f"[`{name}`](#{anchors[name]})"
                          for entry in section.entries for name in entry.names())
        parts.append(f"- [{section.title}](#{anchorOf(section.title)}): {links}")
    parts[-1] += "\n"
    for section in sections:
        parts.append(f"## {section.title}\n")
        if section.comment:
            parts.append(prose(section.comment, anchors) + "\n")
        for entry in section.entries:
            parts.append(f"### {entry.heading()}\n")
            parts.append("```c\n" + "\n".join(entry.declarations) + "\n```\n")
            if entry.comment:
                parts.append(prose(entry.comment, anchors) + "\n")
    return "\n".join(parts)


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    isCheck = parser.parse_args(words).check
    wrong = []
    for name, (header, title) in PAGES.items():
        path = checkout.ROOT / name
        made = page((checkout.ROOT / FOLDER / header).read_text(encoding="utf-8"), header, title)
        if path.exists() and path.read_text(encoding="utf-8") == made:
            continue
        if isCheck:
            wrong.append(f"{name} is not what {header} says; tools/c_reference.py writes it.")
        else:
            path.write_text(made, encoding="utf-8")
    return checkout.report(wrong) if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
