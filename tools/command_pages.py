#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""command_pages.py PROGRAM SHARE [EMULATOR...]: writes manual pages and completions of the command PROGRAM into
the folders of SHARE (usually .../usr/share) in which systems look for them, from what --help prints. The words
of EMULATOR start a PROGRAM for another architecture."""

import dataclasses
import pathlib
import re
import subprocess
import sys

# Where the descriptions begin.
COLUMN = 34
SECTION = re.compile(r"(positionals|options|subcommands):", re.IGNORECASE)
MODELS = ("tflite", "task", "litertlm")
FOLDERS = {"DIR"}
FILES = {"FILE", "FILE...", "LIBRARY", "DRIVER"}
ARGUMENTS = {"MODEL": "models", "FILE": "all", "DRIVER": "all"}


class HelpError(Exception):
    """The help has a form that is not understood; the text is a sentence."""


@dataclasses.dataclass
class Entry:
    """An option or argument: `names` as they are typed, the value's name or "", and the rest of the
    description."""
    names: list
    value: str = ""
    choices: list = dataclasses.field(default_factory=list)
    limits: list = dataclasses.field(default_factory=list)
    isRepeated: bool = False
    text: str = ""


@dataclasses.dataclass
class Command:
    """A command or, at the top, the program: `words` are typed behind the program's name to call it."""
    program: str
    words: list
    text: str
    usage: str
    arguments: list = dataclasses.field(default_factory=list)
    options: list = dataclasses.field(default_factory=list)
    commands: list = dataclasses.field(default_factory=list)

    @property
    def typed(self):
        """All that is typed to call it."""
        return " ".join([self.program, *self.words])

    def all(self):
        yield self
        for command in self.commands:
            yield from command.all()


def sentence(text):
    return text if text.endswith(".") else text + "."


def splitRows(lines):
    """Pairs of head and description in the lines of one section."""
    rows = []
    for number, line in enumerate(lines):
        if line.startswith(" " * COLUMN):
            if not rows:
                raise HelpError(f"The help has a description without a head: {line.strip()}")
            rows[-1][1] = (rows[-1][1] + " " + line.strip()).strip()
            continue
        isAlone = number + 1 < len(lines) and lines[number + 1].startswith(" " * COLUMN)
        if isAlone or len(line) <= COLUMN:
            rows.append([line.strip(), ""])
        else:
            rows.append([line[:COLUMN].strip(), line[COLUMN:].strip()])
    return rows


def entry(head, text):
    """An entry from a head such as "--threads N:UINT in [0 - 1024] Needs: --x" and its
    description."""
    first, _, rest = re.sub(r",\s+(?=-)", ",", head).partition(" ")
    found = Entry(first.split(","), text=text)
    for word, others in re.findall(r"\b(Excludes|Needs): ((?:--[\w-]+ ?)+)", rest):
        verb = "Not with" if word == "Excludes" else "Only with"
        found.limits.append(f"{verb} {', '.join(others.split())}.")
    rest = re.sub(r"\b(Excludes|Needs): (--[\w-]+ ?)+|\bREQUIRED\b", "", rest).strip()
    if rest.endswith("..."):
        found.isRepeated = True
        rest = rest.removesuffix("...").strip() if " ..." in rest else rest
    if bounds := re.search(r" in \[(\S+) - (\S+)\]$", rest):
        found.limits.append(f"From {bounds[1]} to {bounds[2]}.")
        rest = rest[:bounds.start()]
    if choices := re.search(r":?\{([^}]*)\}$", rest):
        found.choices = choices[1].split(",")
        rest = rest[:choices.start()]
    name, _, kind = rest.partition(":")
    # The parser's name for the value of an option without one.
    found.value = kind if kind and name in ("TEXT", "UINT", "INT", "FLOAT") else name
    return found


def read(program, words=()):
    """The command that the words name, with all commands below it. `program` is a list of words, too."""
    run = subprocess.run([*program, *words, "--help"], capture_output=True, text=True, check=False)
    if run.returncode != 0 or run.stderr:
        raise HelpError(f"{' '.join([*program, *words])} --help fails: {run.stderr.strip()}")
    lines = run.stdout.splitlines()
    usage = next((number for number, line in enumerate(lines) if line.startswith("Usage: ")), None)
    if usage is None:
        raise HelpError(f"{' '.join([*program, *words])} --help prints no usage.")
    command = Command(pathlib.Path(program[-1]).name, list(words), " ".join(lines[:usage]).strip(),
                      lines[usage].removeprefix("Usage: "))
    sections = {}
    for line in lines[usage + 1:]:
        if title := SECTION.fullmatch(line):
            rows = sections.setdefault(title[1].lower(), [])
        elif line.strip():
            if not line.startswith("  ") or not sections:
                raise HelpError(f"The help has a line of unknown meaning: {line}")
            rows.append(line)
    command.arguments = [entry(*row) for row in splitRows(sections.get("positionals", []))]
    command.options = [entry(*row) for row in splitRows(sections.get("options", []))]
    if not any("--help" in option.names for option in command.options):
        raise HelpError(f"{' '.join([*program, *words])} --help does not list --help.")
    command.commands = [read(program, [*words, name])
                        for name, _ in splitRows(sections.get("subcommands", []))]
    return command


# ---- manual pages


def roff(text):
    """Text in which nothing is taken for a request or an escape."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


def pageName(command):
    return "-".join([command.program, *command.words])


def entryLines(found):
    head = ", ".join(f"\\fB{roff(name)}\\fR" for name in found.names)
    if found.names[0][0] != "-":
        head = f"\\fI{roff(found.names[0])}\\fR"
    elif found.value:
        head += f" \\fI{roff(found.value)}\\fR"
    lines = [".TP", head, roff(sentence(found.text))]
    return lines + [roff(limit) for limit in found.limits]


def manualPage(command, version, parent):
    title = pageName(command)
    short = command.text.partition(". ")[0].rstrip(".")
    lines = [f".\\\" Made by tools/command_pages.py from {command.typed} --help.",
             f".TH {roff(title.upper())} 1 \"\" \"Hearth {roff(version)}\" \"Hearth\"",
             ".SH NAME", f"{roff(title)} \\- {roff(short[0].lower() + short[1:])}",
             ".SH SYNOPSIS", f"\\fB{roff(command.typed)}\\fR" + roff(command.usage.removeprefix(command.typed)),
             ".SH DESCRIPTION", roff(sentence(command.text))]
    if command.commands:
        lines.append(".SH COMMANDS")
        for below in command.commands:
            lines += [".TP", f"\\fB{roff(below.words[-1])}\\fR", roff(sentence(below.text))]
    if command.arguments:
        lines.append(".SH ARGUMENTS")
        for found in command.arguments:
            lines += entryLines(found)
    lines.append(".SH OPTIONS")
    for found in command.options:
        lines += entryLines(found)
    lines += [".SH EXIT STATUS",
              "0 when all is done, 1 after a failure, 2 when the command line is wrong."]
    others = ([parent] if parent else []) + command.commands
    pages = [f"\\fB{roff(pageName(other))}\\fR(1)" for other in others]
    if pages:
        lines += [".SH SEE ALSO", ", ".join(pages)]
    return "\n".join(lines) + "\n"


# ---- completions


def quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


def functionName(command):
    return "_".join(["", command.program.replace("-", "_"), *command.words])


def bashCompletion(top):
    commands = [command for command in top.all() if command.words]
    lines = [f"# Made by tools/command_pages.py from {top.typed} --help.", f"{functionName(top)}() {{",
             "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}",
             "  local command= next at words= files=",
             "  if [ \"$word\" = = ]; then",
             "    word=",
             "  elif [ \"$before\" = = ]; then",
             "    before=${COMP_WORDS[COMP_CWORD - 2]}",
             "  fi"]
    if commands:
        lines += ["  for ((at = 1; at < COMP_CWORD; ++at)); do",
                  "    next=\"$command${command:+ }${COMP_WORDS[at]}\"",
                  "    case $next in",
                  "      " + " | ".join(quote(" ".join(command.words)) for command in commands)
                  + ") command=$next ;;",
                  "      *) break ;;",
                  "    esac",
                  "  done"]
    lines += ["  COMPREPLY=()", "  case \"$command $before\" in"]
    for command in top.all():
        for option in command.options:
            if not option.value:
                continue
            patterns = " | ".join(quote(f"{' '.join(command.words)} {name}")
                                  for name in option.names)
            if option.choices:
                action = f"words={quote(' '.join(option.choices))}"
            elif option.value in FOLDERS:
                action = "files=folders"
            elif option.value in FILES:
                action = "files=all"
            else:
                action = "return"
            lines.append(f"    {patterns}) {action} ;;")
    lines += ["    *)", "      case \"$command:$word\" in"]
    for command in top.all():
        name = " ".join(command.words)
        options = " ".join(name for option in command.options for name in option.names)
        lines.append(f"        {quote(name + ':-')}*) words={quote(options)} ;;")
        if command.commands:
            below = " ".join(below.words[-1] for below in command.commands)
            lines.append(f"        {quote(name + ':')}*) words={quote(below)} ;;")
        elif kind := ARGUMENTS.get(command.arguments[0].names[0] if command.arguments else ""):
            lines.append(f"        {quote(name + ':')}*) files={kind} ;;")
    lines += ["      esac", "      ;;", "  esac",
              "  if [ -n \"$words\" ]; then",
              "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")",
              "    return",
              "  fi",
              "  [ -n \"$files\" ] || return",
              "  compopt -o filenames 2>/dev/null",
              "  case $files in",
              "    folders) mapfile -t COMPREPLY < <(compgen -d -- \"$word\") ;;",
              "    all) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;",
              "    models)",
              "      mapfile -t COMPREPLY < <(",
              "        compgen -d -- \"$word\"",
              "        compgen -f -- \"$word\" | grep -E '\\.(" + "|".join(MODELS) + ")$'",
              "      )",
              "      ;;",
              "  esac", "}", f"complete -F {functionName(top)} {top.program}"]
    return "\n".join(lines) + "\n"


def zshText(text):
    return re.sub(r"([\\\[\]:])", r"\\\1", text)


def zshValue(found):
    """The part of a specification after an option or argument: the value's name and what completes
    it."""
    name = found.value if found.names[0][0] == "-" else found.names[0]
    if found.choices:
        action = f"({' '.join(found.choices)})"
    elif name in FOLDERS:
        action = "_files -/"
    elif name == "MODEL":
        action = f"_files -g \"*.({'|'.join(MODELS)})(-.)\""
    elif name in FILES:
        action = "_files"
    else:
        action = " "
    return f":{zshText(name)}:{action}"


def zshFunction(command):
    lines = [f"{functionName(command)}() {{"]
    specifications = []
    for option in command.options:
        value = zshValue(option) if option.value else ""
        star = "*" if option.isRepeated else ""
        for spelling in option.names:
            others = f"({' '.join(option.names)})" if not star else ""
            specifications.append(f"{others}{star}{spelling}[{zshText(option.text)}]{value}")
    if command.commands:
        lines.append("  local state line commands")
        specifications += ["1: :->command", "*:: :->rest"]
    else:
        for found in command.arguments:
            specifications.append("*" + zshValue(found) if found.isRepeated
                                  else "1" + zshValue(found))
    lines.append("  _arguments " + ("-C " if command.commands else "") + "\\")
    lines += [f"    {quote(text)} \\" for text in specifications[:-1]]
    lines.append(f"    {quote(specifications[-1])}")
    if command.commands:
        lines += ["  case $state in", "    command)", "      commands=("]
        lines += ["        " + quote(f"{below.words[-1]}:{zshText(below.text)}")
                  for below in command.commands]
        lines += ["      )", "      _describe command commands", "      ;;", "    rest)",
                  "      case $line[1] in"]
        lines += [f"        {below.words[-1]}) {functionName(below)} ;;"
                  for below in command.commands]
        lines += ["      esac", "      ;;", "  esac"]
    return [*lines, "}"]


def zshCompletion(top):
    lines = [f"#compdef {top.program}", f"# Made by tools/command_pages.py from {top.typed} --help."]
    for command in reversed(list(top.all())):
        lines += ["", *zshFunction(command)]
    return "\n".join([*lines, "", f"{functionName(top)} \"$@\""]) + "\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def writeManualPages(command, version, folder, parent=None):
    write(folder / f"{pageName(command)}.1", manualPage(command, version, parent))
    for below in command.commands:
        writeManualPages(below, version, folder, command)


def main():
    if len(sys.argv) < 3:
        print("usage: command_pages.py PROGRAM SHARE [EMULATOR...]", file=sys.stderr)
        return 2
    program, share = [*sys.argv[3:], sys.argv[1]], pathlib.Path(sys.argv[2])
    try:
        top = read(program)
        version = subprocess.run([*program, "--version"], capture_output=True, text=True,
                                 check=True).stdout.split()[1].partition("+")[0]
    except (HelpError, OSError, subprocess.CalledProcessError) as error:
        print(f"command_pages.py: {error}", file=sys.stderr)
        return 1
    writeManualPages(top, version, share / "man" / "man1")
    write(share / "bash-completion" / "completions" / top.program, bashCompletion(top))
    write(share / "zsh" / "vendor-completions" / f"_{top.program}", zshCompletion(top))
    return 0


if __name__ == "__main__":
    sys.exit(main())
