"""The record of a CLI's command line: options, formats, contradictions, errors. Owns the form; knows no CLI.

The fake reads its arguments with the table that `baked` gives: see `fake_agents.flags`.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOptions:
    """How a CLI names a session that exists.

    Args:
        options: the options that name it.
        command: the command whose first word names it; "" if there is none.
        latest: a name that always fits.
        missing: what stderr says if there is no such session; `{value}` is its name.
        odd: the same for a name that is no UUID; "" if such a name starts a new session.
        stdout: what stdout says with it, in the modes of a stream of events.
        unless: an option with which no session is looked for.
        prefix: whether the beginning of an id is enough.
        files: whether a name with a slash is a file, which is made if it is missing.
        code: the exit code.
        new: the option that names a new session.
        taken: what stderr says if that session exists already; "" if it goes on then.
        made: what stderr says if that session is made.
        invalid: what stderr says if that name must be a UUID and is not; "" if it may be any.
        kept: the module of `fake_agents.session_files` that keeps its sessions on disk; "" if the fake keeps none.
        continues: the options that go on with the last session of the folder.
        forks: the option that copies the session into a new one.
        unkept: the option with which the session is not kept.
        folder: the option that names the folder of the sessions.
    """

    options: Sequence[str] = ()
    command: str = ""
    latest: str = ""
    missing: str
    odd: str = ""
    stdout: str = ""
    unless: str = ""
    prefix: bool = False
    files: bool = False
    code: int = 1
    new: str = ""
    taken: str = ""
    made: str = ""
    invalid: str = ""
    kept: str = ""
    continues: Sequence[str] = ()
    forks: str = ""
    unkept: str = ""
    folder: str = ""


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """What a CLI prints without asking its model, and its exit code. `{1}` is the first `*` of what was asked.

    Args:
        code: the exit code.
        stdout: what it prints there, without the last newline.
        stderr: the same for stderr.
        late: whether it has read stdin before.
    """

    code: int = 0
    stdout: str = ""
    stderr: str = ""
    late: bool = False


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """A look at the values of an option before the model is asked.

    Args:
        option: its long name.
        kind: the kind of value that fits; see `fake_agents.flags`.
        words: what stderr says of another, with `{shown}`, `{value}`, `{path}`, `{set}`, `{reason}` and `{folder}`.
        code: the exit code.
        late: whether stdin has been read before.
    """

    option: str
    kind: str
    words: str
    code: int = 1
    late: bool = False


@dataclass(frozen=True, slots=True)
class UnobeyedOption:
    """An option that the fake accepts although it does not do what the real CLI does for it.

    Options that change only what the model is asked are not among them: the script is the model.

    Args:
        option: its long name.
        real: what the real CLI does, and a supervisor can see.
        also: the conditions under which the fake does not do it; "": all.
        unless: a condition under which it does.
    """

    option: str
    real: str
    also: str = ""
    unless: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTrust:
    """In which folders a CLI runs: in a repository of Git, or in those that its user trusts.

    Args:
        allowed_by: the options that allow every folder.
        words: what stderr says of another folder.
        code: the exit code then.
        command: the command that asks for it.
        folder: the option that names another folder than its own.
        variable: the variable that allows every folder if it is `true`.
        file: the file below HOME with the folders that the user trusts; "": repositories of Git are trusted.
        settings: the file below HOME that can turn this off.
    """

    allowed_by: str
    words: str
    code: int = 1
    command: str = ""
    folder: str = ""
    variable: str = ""
    file: str = ""
    settings: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """What a CLI takes as its arguments, from the `--help` of the pinned release, and what it says of all others.

    A condition is an option (`--json`), an option with its last value (`--mode=json`), or a command (`exec`).

    Args:
        options: by command, its options with `;` between them: the names, `<value>` if it needs one, `[value]` if it
            may have one, `...` in it if it may have several, `+` if the option may be repeated, and the allowed values,
            after `!` if an error does not list it. "" is the CLI.
        commands: by command, the words that lead to others.
        foreign: by command, the words that lead to commands which the fake does not have.
        usage: by command, what an error repeats.
        words: by command, how many words it takes beside its options; absent: any number.
        errors: what stderr says: `unknown` option, `missing` value, value that is no `choice`, `repeated` option,
            `valued` flag, `extra` word, a `command` that there is not; with `{word}`, `{name}`, `{shown}`, `{value}`,
            `{choices}` and `{usage}`.
        code: the exit code of these.
        joiner: what stands between two choices.
        quoted: whether each choice has quotation marks.
        takes_dashes: whether a value may begin with a dash.
        variants: whether `--someOption` stands for `--some-option`, and `--no-flag` for its contrary.
        splits: whether `--option=value` and `-abc` are taken apart.
        conflicts: what cannot be together: the conditions that hold, those of which none holds, what stderr says.
        formats: the conditions, the mode that they ask for, and, where that mode's events are not printed, what is
            instead: `text`, `json` for the last line, or `array` for a list of all. The first that fits holds.
        errors_to: where an error's text goes in `text`, and its form.
        prompt: the option that holds the prompt; "": a word.
        no_prompt: what stderr says if there is no prompt on stdin, either.
        no_prompt_code: the exit code of that.
        helps_on_stderr: whether `--help` prints to stderr.
        resuming: how it names sessions.
        servers: the option that names MCP servers, in JSON or in files; "": there is none.
        settings: the option that names hooks, in JSON or in a file; "": there is none.
        takes_empty: whether an empty word is a prompt.
        file_words: what stderr says of a word `@FILE` that cannot be read, with `{path}`; "": such a word is text.
        configs: the files in which a user names providers and models; `$X` is a variable.
        providers: the providers of models that it knows without them.
        models: the first words of the names of the models that it knows.
        own_model: the provider and the model of the fake itself.
        paths: the values that must not be empty, as `options` calls them.
        values: the options whose values it looks at before it asks its model.
        answers: by the words of a command that the fake does not have, what it prints. `*` is any word, `--*` one that
            begins so, and `!a,b` any but these.
        ends: what it answers by its options alone: the conditions that hold, those of which none holds, the answer.
        message_file: the option that names a file for the last message, what stderr says if that cannot be opened, with
            `{value}` and `{reason}`, and what it says if there is no message; empty if there is none.
        unobeyed: the options that the fake accepts and does not obey.
        trust: which folders it runs in; None: in all.
    """

    options: Mapping[str, str]
    commands: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    foreign: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, str]
    words: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, str]
    code: int = 1
    joiner: str = ", "
    quoted: bool = False
    takes_dashes: bool = True
    variants: bool = False
    splits: bool = True
    conflicts: Sequence[tuple[str, str, str]] = ()
    formats: Sequence[tuple[str, str, str]]
    errors_to: tuple[str, str] = ("stdout", "{text}")
    prompt: str = ""
    no_prompt: str = ""
    no_prompt_code: int = 1
    helps_on_stderr: bool = False
    resuming: ResumeOptions
    servers: str = ""
    settings: str = ""
    takes_empty: bool = False
    file_words: str = ""
    configs: Sequence[str] = ()
    providers: Sequence[str] = ()
    models: Sequence[str] = ()
    own_model: tuple[str, str] = ("fake", "m1")
    paths: Sequence[str] = ()
    values: Sequence[ValueCheck] = ()
    answers: Mapping[str, CommandAnswer] = field(default_factory=dict)
    ends: Sequence[tuple[str, str, CommandAnswer]] = ()
    message_file: tuple[str, ...] = ()
    unobeyed: Sequence[UnobeyedOption] = ()
    trust: FolderTrust | None = None

    def to_plain_table(self) -> dict[str, Any]:
        """Give the table as plain data, its options by each of their names."""
        table = {name: getattr(self, name) for name in self.__slots__}
        options = {command: _parse_options(lines, variants=self.variants) for command, lines in self.options.items()}
        resuming = {name: getattr(self.resuming, name) for name in self.resuming.__slots__}
        plain: dict[str, Any] = {name: dict(table[name]) for name in ("usage", "words", "errors")}
        plain["commands"] = {command: dict(words) for command, words in self.commands.items()}
        plain["foreign"] = {command: words.split() for command, words in self.foreign.items()}
        plain["values"] = [astuple(check) for check in self.values]
        plain["answers"] = [(words.split(), astuple(answer)) for words, answer in self.answers.items()]
        plain["unobeyed"] = [(each.option, each.also, each.unless) for each in self.unobeyed]
        plain["trust"] = self.trust and {name: getattr(self.trust, name) for name in self.trust.__slots__}
        plain["ends"] = [(has, lacks, astuple(answer)) for has, lacks, answer in self.ends]
        return {**table, **plain, "options": options, "resuming": resuming}


def _parse_options(lines: str, *, variants: bool) -> dict[str, tuple[str, str, str, tuple[str, ...]]]:
    """Give, for each name of an option: its first long name, its kind, what errors call it, and its allowed values."""
    found: dict[str, tuple[str, str, str, tuple[str, ...]]] = {}
    for option in lines.split(";"):
        words = option.split()
        names = [word for word in words if word.startswith("-")]
        rest = words[len(names) :]
        value = rest.pop(0) if rest and rest[0][0] in "<[+" else ""
        kind = ("?" if value.startswith("[") else "1" if value.startswith("<") else "0") + "*" * ("..." in value)
        kind += "+" * value.endswith("+")
        shown = value.rstrip("+")
        long = next((name for name in names if name.startswith("--")), names[0])
        head, *tail = long.removeprefix("--").split("-")
        if variants:
            names.append(f"--{head}{''.join(map(str.title, tail))}")
        if variants and kind == "0":
            found[f"--no-{long.removeprefix('--')}"] = (f"--no-{head}", kind, "", ())
        for name in names:
            found[name] = (long, kind, f"{', '.join(names)} {shown}".strip(), tuple(rest))
    return found
