#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every test asserts something, itself or through a function that it calls: a test
without an assertion passes whatever the code does."""

import ast
import re
import sys

import checkout

# A call of one of these is an assertion; so is a call with check=True, which fails when a program
# does.
CPP_ASSERTION = re.compile(r"\b(?:(?:EXPECT|ASSERT)_[A-Z0-9_]+|ADD_FAILURE|ADD_FAILURE_AT|FAIL)\s*\(")
PYTHON_ASSERTION = re.compile(r"^(?:assert|fail)")

CPP_TEST = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)\s*\{", re.MULTILINE)
# A definition: a name, its parameters and a body, or a lambda with a name.
CPP_FUNCTION = re.compile(
    r"\b(\w+)\s*(?:=\s*\[[^\]]*\]\s*)?\((?:[^(){};]|\([^(){};]*\))*\)"
    r"(?:\s*(?:const|noexcept|override|mutable|->\s*[\w:<>*&]+))*\s*\{")
CPP_MACRO = re.compile(r"^#define\s+(\w+)\(.*?(?<!\\)$", re.MULTILINE | re.DOTALL)
CPP_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
CALL = re.compile(r"\b(\w+)\s*(?:<[^<>;(){}]*>\s*)?\(")
NO_FUNCTIONS = {"if", "for", "while", "switch", "catch", "return", "sizeof", "TEST", "TEST_F",
                "TEST_P", "TYPED_TEST", "defined"}


def withoutTexts(source):
    """C++ source without comments, and with empty strings and characters."""
    return re.sub(
        r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])\'',
        lambda match: '""' if match[0][0] in '"R' else " ", source, flags=re.DOTALL)


def bodyAt(source, begin):
    """The text between an opening brace and the closing one."""
    depth = 1
    for match in re.compile(r"[{}]").finditer(source, begin):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return source[begin:match.start()]
    return source[begin:]


def cppFunctions(source):
    """(name, body) of every function and macro that a file defines, except its tests."""
    for match in CPP_FUNCTION.finditer(source):
        if match[1] not in NO_FUNCTIONS:
            yield match[1], bodyAt(source, match.end())
    for match in CPP_MACRO.finditer(source):
        yield match[1], match[0]


def asserting(functions, isAssertion):
    """The names of the functions of [(name, body)] that assert, directly or through others."""
    names = set()
    while True:
        found = {name for name, body in functions
                 if name not in names and (isAssertion(body) or names & set(CALL.findall(body)))}
        if not found:
            return names
        names |= found


class CppFiles:
    """C++ files by the path under which others include them."""

    def __init__(self, files):
        self.sources = {path: withoutTexts(text) for path, text in files.items()}
        # The paths are strings, which `sources` no longer contains.
        self.includes = {path: CPP_INCLUDE.findall(text) for path, text in files.items()}
        self.functions = {}

    def functionsOf(self, path):
        if path not in self.functions:
            self.functions[path] = list(cppFunctions(self.sources[path]))
        return self.functions[path]

    def reached(self, path, seen=None):
        """The files that a file includes, and the implementations that belong to them."""
        seen = set() if seen is None else seen
        if path in seen or path not in self.sources:
            return seen
        seen.add(path)
        for target in self.includes[path]:
            for near in (target, path.rsplit("/", 1)[0] + "/" + target):
                self.reached(near, seen)
                self.reached(near.removesuffix(".h") + ".cc", seen)
        return seen


def cppViolations(files):
    """Sentences about tests without assertions in {path: text}."""
    tree = CppFiles(files)
    for path, source in sorted(tree.sources.items()):
        tests = list(CPP_TEST.finditer(source))
        if not tests:
            continue
        # Only functions of test code count as assertions.
        functions = [function for reached in tree.reached(path)
                     if reached == path or "test" in reached or "/cts/" in reached
                     for function in tree.functionsOf(reached)]
        names = asserting(functions, CPP_ASSERTION.search)
        for test in tests:
            body = bodyAt(source, test.end())
            if not CPP_ASSERTION.search(body) and not names & set(CALL.findall(body)):
                yield f"{path}: {test[1]}.{test[2]} asserts nothing."


def pythonCalls(node):
    """The names of all functions that are called below a node."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            if isinstance(call.func, ast.Attribute):
                yield call.func.attr
            elif isinstance(call.func, ast.Name):
                yield call.func.id


def pythonAsserts(node):
    isChecked = any(isinstance(each, ast.keyword) and each.arg == "check" and
                    isinstance(each.value, ast.Constant) and each.value.value is True
                    for each in ast.walk(node))
    return isChecked or any(PYTHON_ASSERTION.match(name) for name in pythonCalls(node))


def pythonFunctions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def pythonViolations(files):
    """The same for Python files."""
    trees = {path: ast.parse(text) for path, text in files.items()}
    for path, tree in sorted(trees.items()):
        if not path.endswith("_test.py"):
            continue
        folder = path.rpartition("/")[0]
        imported = {alias.name for node in ast.walk(tree)
                    if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}
        imported |= {node.module for node in ast.walk(tree)
                     if isinstance(node, ast.ImportFrom) and node.module}
        near = [trees[other] for name in imported
                if (other := f"{folder}/{name}.py".lstrip("/")) in trees]
        functions = [node for each in [tree, *near] for node in pythonFunctions(each)]
        names = set()
        while True:
            found = {node.name for node in functions if node.name not in names
                     and (pythonAsserts(node) or names & set(pythonCalls(node)))}
            if not found:
                break
            names |= found
        for group in ast.walk(tree):
            if not isinstance(group, ast.ClassDef):
                continue
            for node in pythonFunctions(group):
                if node.name.startswith("test") and node.name not in names:
                    yield f"{path}: {group.name}.{node.name} asserts nothing."


def main():
    cpp, python = {}, {}
    for path in checkout.files():
        name = path.relative_to(checkout.ROOT).as_posix()
        if path.suffix in (".cc", ".h") and name.startswith(("src/", "tests/")):
            cpp[name.removeprefix("src/")] = path.read_text(encoding="utf-8")
        elif path.suffix == ".py":
            python[name] = path.read_text(encoding="utf-8")
    violations = [*cppViolations(cpp), *pythonViolations(python)]
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
