# SPDX-License-Identifier: Apache-2.0
"""docs/python-reference.md has every public name of the package, no other one, and the parameters that functions
have."""

import enum
import importlib
import inspect
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build" / "release" / "python"))

PAGE = ROOT / "docs" / "python-reference.md"
MODULES = ("hearth", "hearth.errors", "hearth.llm", "hearth.tflite", "hearth.tflite.compiled_model")
SCOPE = re.compile(r"## (?:`(hearth[\w.]*)`)?.*")
CALL = re.compile(r"### `([\w.]+)(\(.*\))`")
TABLE = re.compile(r"\| (member|class) \|")
CODE = re.compile(r"`([\w.]+)(\(.*?\))?`")
PARAMETER = re.compile(r"(\*{0,2}\w+|\*)(?:=[^,]*)?(?:, |$)")


def described(text):
    """{dotted name: parameters, or None} of what the page describes."""
    found, scope, isTable = {}, "", False
    for line in text.split("\n"):
        if heading := SCOPE.fullmatch(line):
            scope = heading[1] or ""
            if scope:
                found[scope] = None
        elif call := CALL.fullmatch(line):
            found[dotted(scope, call[1])] = call[2]
        elif TABLE.match(line):
            isTable = True
        elif not line.startswith("|"):
            isTable = False
        elif isTable:
            # A row describes one name or several, and has what they mean in its other cells.
            for name, parameters in CODE.findall(line.split(" | ")[0]):
                found[dotted(scope, name)] = parameters or None
    return found


def dotted(scope, name):
    if name.startswith("hearth."):
        return name
    # The class itself: how it is made.
    if scope.rpartition(".")[2] == name:
        return scope
    return f"{scope}.{name}"


def resolved(name):
    """What a dotted name stands for; AttributeError if for nothing."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            thing = getattr(thing, part)
        return thing
    raise AttributeError(name)


def members(cls):
    """The public names of a class that the package gives it."""
    if issubclass(cls, enum.Enum):
        return set(cls.__members__)
    return {name for base in cls.__mro__ if base.__module__.startswith("hearth")
            for name in vars(base) if not name.startswith("_")}


def publicNames():
    """{dotted name: what it stands for} of the modules' public names."""
    names = {}
    for module in map(importlib.import_module, MODULES):
        listed = getattr(module, "__all__", None) or \
            [name for name, thing in vars(module).items()
             if name == "CLASSES" or inspect.isclass(thing)]
        names |= {f"{module.__name__}.{name}": getattr(module, name) for name in listed}
    return names


class ReferenceTest(unittest.TestCase):

    def setUp(self):
        self.text = PAGE.read_text(encoding="utf-8")
        self.described = described(self.text)

    def testThePageLacksNoPublicName(self):
        known = [resolved(name) for name in self.described]
        missing = [name for name, thing in publicNames().items()
                   if not any(thing is each for each in known)]
        self.assertEqual(missing, [])

    def testThePageNamesOnlyWhatThereIs(self):
        for name in self.described:
            with self.subTest(name):
                resolved(name)
                self.assertFalse(any(part.startswith("_") for part in name.split(".")))

    def testClassesWithASectionHaveAllMembersThere(self):
        sections = [name for name in self.described if inspect.isclass(resolved(name))
                    and f"\n## `{name}`\n" in self.text]
        self.assertGreater(len(sections), 8)
        for name in sections:
            with self.subTest(name):
                self.assertEqual({f"{name}.{member}" for member in members(resolved(name))}
                                 - set(self.described), set())

    def testClassesInATableHaveTheirMembersInTheRow(self):
        rows = [line for line in self.text.split("\n") if line.startswith("| `")]
        for name in self.described:
            thing = resolved(name)
            if not inspect.isclass(thing) or f"\n## `{name}`\n" in self.text \
                    or issubclass(thing, Exception):
                continue
            row = next(row for row in rows if f"`{name.rpartition('.')[2]}`" in row.split(" | ")[0])
            with self.subTest(name):
                inherited = {member for base in thing.__bases__ for member in dir(base)}
                if "without a meaning here" not in row:
                    self.assertEqual({member for member in members(thing) - inherited
                                      if not re.search(rf"\b{member}\b", row)}, set())

    def testParametersAreThoseOfTheFunctions(self):
        checked = 0
        for name, parameters in self.described.items():
            thing = resolved(name)
            if parameters is None or not callable(thing):
                continue
            try:
                signature = inspect.signature(thing)
            except ValueError:  # of the library's module
                continue
            given = {key: each for key, each in signature.parameters.items() if key != "self"}
            fixed = [key for key, each in given.items()
                     if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
            words = PARAMETER.findall(parameters[1:-1])
            with self.subTest(name):
                positional = words[:words.index("*")] if "*" in words else \
                    [word for word in words if not word.startswith("**")]
                self.assertEqual(positional, fixed)
                if "**options" not in words:
                    self.assertEqual([word for word in words if word != "*"], list(given))
                for key, each in given.items():
                    if each.default is not each.empty and key in words:
                        self.assertIn(f"{key}={each.default!r}".replace("'", '"'), parameters)
                checked += 1
        self.assertGreater(checked, 40)

    def testOptionsOfCompileAreListed(self):
        import hearth
        rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| .* \| .* \|$", self.text, re.MULTILINE)
        listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
        wanted = set(inspect.signature(hearth.Model.compile).parameters) - {"self", "signature"}
        self.assertEqual(wanted - listed, set())

    def testEveryFunctionAndClassHasAnExample(self):
        parts = re.split(r"(?m)^(?=###? )", self.text)
        without = [part.split("\n", 1)[0] for part in parts
                   if re.match(r"### `", part) and "```python" not in part]
        self.assertEqual(without, [])


if __name__ == "__main__":
    unittest.main()
