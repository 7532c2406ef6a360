# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Makes programs anew of one changed source, by the commands that Bazel has for them and without Bazel.

Bazel looks at everything before it compiles one file. Here the file is compiled, and what came of it is put before the
libraries in the command that links a program: the linker then takes nothing from the library's own object.
"""

import dataclasses
import json
import os
import shutil
import subprocess

from mutation.lists import Problem

MNEMONICS = ("CppCompile", "CppArchive", "CppLink")


@dataclasses.dataclass
class Step:
    """A command, and its environment."""
    arguments: list
    env: dict

    def value(self, option):
        """What comes after the option, or None."""
        if option not in self.arguments:
            return None
        return self.arguments[self.arguments.index(option) + 1]

    def given(self, option, value):
        """The arguments, with another value after the option."""
        place = self.arguments.index(option) + 1
        return [*self.arguments[:place], value, *self.arguments[place + 1:]]


def steps_of(text):
    """The steps that `bazel aquery --output=jsonproto` tells, with what files of parameters say in their places."""
    found = {mnemonic: [] for mnemonic in MNEMONICS}
    for action in json.loads(text).get("actions", []):
        if action["mnemonic"] not in found:
            continue
        files = {"@" + file["execPath"]: file["arguments"] for file in action.get("paramFiles", [])}
        arguments = []
        for argument in action["arguments"]:
            told = files.get(argument, [argument])
            # Bazel 4 tells what is in the file beside the file.
            if argument not in files or not set(told) <= set(action["arguments"]):
                arguments += told
        env = {pair["key"]: pair.get("value", "") for pair in action.get("environmentVariables", [])}
        found[action["mnemonic"]].append(Step(arguments, env))
    return found


class Commands:
    """How the programs are made of the library's sources."""

    def __init__(self, text):
        steps = steps_of(text)
        self.compiles = {}  # of a source
        for step in steps["CppCompile"]:
            self.compiles.setdefault(step.value("-c"), []).append(step)
        self.objects = {}  # of an archive
        for step in steps["CppArchive"]:
            archive = next((each for each in step.arguments if each.endswith(".a")), None)
            self.objects[archive] = {each for each in step.arguments if each.endswith(".o")}
        self.links = {step.value("-o"): step for step in steps["CppLink"] if step.value("-o")}

    def link_of(self, program):
        for made, step in self.links.items():
            if made.endswith("/bin/" + program.path()):
                return step
        return None

    def compile_of(self, program, source):
        """The command that compiles what the program has of the source, or None."""
        link = self.link_of(program)
        if link is None:
            return None
        linked = set(link.arguments)
        for archive in linked & self.objects.keys():
            linked |= self.objects[archive]
        return next((step for step in self.compiles.get(source, []) if step.value("-o") in linked), None)

    def linked_with(self, program, made, name):
        """The arguments that link the program as `name`, with the object before all else that is linked."""
        arguments = self.link_of(program).given("-o", name)
        first = next(i for i, each in enumerate(arguments) if each.endswith((".o", ".a")))
        return [*arguments[:first], made, *arguments[first:]]


class Relinker:
    """Programs that Bazel has built, made anew of one source after the other."""

    def __init__(self, runner, programs, config):
        self.runner = runner
        self.commands = Commands(runner.aquery(programs, config))
        self.root = runner.execution_root()
        self.folder = os.path.join(runner.folder, "relink")
        self.made = {}  # of a command that compiles, the object

    def makes(self, program, source):
        return self.commands.compile_of(program, source) is not None

    def execute(self, step, arguments):
        """What the command says, or None if it succeeds."""
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), **step.env}
        made = subprocess.run(arguments, cwd=self.root, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        return None if made.returncode == 0 else made.stdout or f"exit code {made.returncode}"

    def compile(self, programs, source):
        """Compiles the source as it is now, once for each way in which the programs have it. The failure, or None."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.made = {}
        for program in programs:
            step = self.commands.compile_of(program, source)
            if step.value("-o") in self.made:
                continue
            made = os.path.join(self.folder, f"{len(self.made)}.o")
            arguments = Step(step.given("-o", made), {})
            if step.value("-MF"):
                arguments = Step(arguments.given("-MF", made + ".d"), {})
            failure = self.execute(step, arguments.arguments)
            if failure:
                return failure
            self.made[step.value("-o")] = made
        return None

    def link(self, program, source):
        """Links a program with what `compile` made, and returns its path."""
        made = self.made[self.commands.compile_of(program, source).value("-o")]
        name = os.path.join(self.folder, program.path().replace("/", "_"))
        failure = self.execute(self.commands.link_of(program), self.commands.linked_with(program, made, name))
        if failure:
            raise Problem(f"{program.label} cannot be linked with another {source}: {failure.strip()}")
        return name
