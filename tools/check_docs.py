#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the pages in the root and docs/*.md against the checkout: linked files and headings exist, a link whose
text is a name in code leads to a file that has this name, and paths in backticks exist."""

import re
import sys

import checkout

# The folders of the checkout whose paths the pages write in backticks.
FOLDERS = ("bench", "cmake", "docs", "examples", "include", "models", "src", "tests", "tools")
FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[((?:`[^`]*`|[^\]`])*)\]\(([^)\s]*)\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
# A name in code, perhaps qualified or with the parentheses of a call: a, A::b, A::b().
NAME = re.compile(r"~?[A-Za-z_]\w*(?:(?:::|\.)~?[A-Za-z_]\w*)*(?:\(\))?")
PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w./*+-]*")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
COMMENTED = (".h", ".cc", ".c", ".hpp", ".inc")


def headings(text):
    """The anchors of a page's headings, in the form in which GitHub makes them."""
    anchors = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        # Of a link, its text is used; of code, its content.
        plain = LINK.sub(r"\1", heading).replace("`", "").lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        name, count = anchor, 0
        while name in anchors:
            count += 1
            name = f"{anchor}-{count}"
        anchors.add(name)
    return anchors


def hasName(path, name):
    """Whether the file's code contains each part of the name as a whole word."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in COMMENTED:
        text = COMMENT.sub("", text)
    return all(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text)
               for part in re.split(r"::|\.", name.removesuffix("()")))


def linkViolation(root, page, text, target):
    """A sentence about a link that leads nowhere or does not match its text; else None."""
    where = page.relative_to(root).as_posix()
    if re.match(r"[a-z]+:", target):
        return None
    file, _, anchor = target.partition("#")
    path = (page.parent / file).resolve() if file else page
    if not path.is_relative_to(root) or not path.exists():
        return f"{where} links to {target}, which does not exist."
    if anchor:
        if path.suffix != ".md":
            return f"{where} links to {target}; only pages have headings."
        if anchor not in headings(path.read_text(encoding="utf-8")):
            return f"{where} links to {target}, but {path.name} has no such heading."
    code = CODE.fullmatch(text)
    if not code or code[1] in (path.name, path.stem):
        return None
    if "/" in code[1]:
        if not path.as_posix().endswith("/" + code[1].strip("/")):
            return f"{where} calls {target} {code[1]}, which is another path."
    elif NAME.fullmatch(code[1]) and not (path.is_file() and hasName(path, code[1])):
        return f"{where} links {code[1]} to {target}, which does not have that name."
    return None


def violations(root):
    """Sentences about what is wrong in the pages in `root`, but the changes, and in docs/*.md."""
    root = root.resolve()
    found = []
    # What CHANGELOG.md says of a version was true then.
    pages = {*root.glob("*.md"), *root.glob("docs/*.md")} - {root / "CHANGELOG.md"}
    for page in sorted(pages):
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for label, target in LINK.findall(text):
            if sentence := linkViolation(root, page, label, target):
                found.append(sentence)
        for code in CODE.findall(text):
            if PATH.fullmatch(code) and not any(root.glob(code.rstrip("/"))):
                found.append(f"{page.relative_to(root).as_posix()} names {code}, "
                             "which does not exist.")
    return found


def main():
    return checkout.report(violations(checkout.ROOT))


if __name__ == "__main__":
    sys.exit(main())
