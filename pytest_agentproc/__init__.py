"""The crash-test lab for programs that supervise agent CLIs. This docstring is the map of the code.

Three things live here: the reference supervisor (how to run an agent so that it is never killed while it works, never
waited for once it is done, and never leaves a process behind), fake agents that misbehave on command, and the pytest
plugin that judges any supervisor against them in exact virtual time. Read the parts in this order: each imports only
from parts below it (`tests/architecture/test_imports.py` enforces that, and holds the whole table of imports).

Entry points
    __main__      `python -m pytest_agentproc`: the command
    cli/          the `agentproc` command: one module for each command, loaded when a user calls it
    plugin/       what pytest sees: collected scenarios, options, fixtures, reports; loads the rest when it is needed
    hookspecs     the hooks that other plugins may implement

Tools built on the harness
    capture/      turn what really happened into a scenario: record a program and remove its secrets, read a pasted log
    reference/    every word of scenarios and verdicts with its text and an example: `agentproc explain`, and the pages
                  of the documentation
    search/       find the values of a scenario, or times near its own times, with which a supervisor breaks a promise

Running and judging
    harness/      launch fakes with a lifeline, drive a supervisor through a scenario, in virtual or in real time,
                  collect the record; the model: the same player and machine in memory, without a process
    verdict/      compare expected and seen, row by row; the text of a failure; known failures, summary, results
    plays         the result of a play, which harness makes, and verdict, search and pages read
    subjects/     the supervisors under test: the reference supervisor, a user's function, object or program
    defects/      named wrong supervisors: the reference supervisor with one decider replaced

Domain
    scenario/     YAML or Python data -> checked once -> bound to a supervisor's policy -> a program; one table of steps
                  and keys
    record/       the one record of a run and its pure renderers: text, and a page of HTML
    supervisor/   the reference supervisor: pure machines, `feed(event, now) -> commands`, made of deciders, one for
                  a run and one for a session, and thin drivers
    clock/        real time; virtual time: the hub where processes park, the jump rule, both event loops
    tree/         spawn, walk, signal, kill and reap a tree of processes, held as a group, by adoption or by a keeper;
                  attribute each process to the test that left it

Foundations
    vocabulary/   words that scenarios and supervisors share: policy, outcomes, exit codes, rule ids
    events        what can happen in a run: one type for each event of a record, and its form in a file
    corpus        where the bundled scenarios are
    places        lines of the user's program, for messages
    files         the files that a user names: checked before they are read, and read with a bound
    foreign       looks at objects of other people's code, which may raise at any look
    processes     what psutil says of a process, for users and for messages
    machine       the machine's own time, also where a preload clock moves all clocks of this process
    procfs        what /proc says of a process, for the looks that a run waits for
    terminal      what a terminal shows beside words: colours, and a line that is overwritten
    interrupts    blocks that begin and end whole, whenever a Ctrl-C comes
    originals     clocks and `Popen` of Python as they were before a test put mocks in their place
    errors        a caller's mistakes, scenario problems, clock errors

Beside this package
    fake_agents/  runs in the child: player, stage, wire formats; standard library only, never imports another part; its
                  name in an import is `pytest_agentproc.fake_agents`: there a link leads to it, there it is installed
    scenarios/    the corpus (in a wheel: `pytest_agentproc/_corpus`)
    docs/         the documentation; its pages on single words are made by reference/
    tests/        unit, process, plugin, cli, parity with the model, mirrors of recorded CLIs, their clients, neighbours
                  (other plugins), architecture, benchmarks; browser looks at pages

Inside a subpackage, `__init__` is the public face and `_noun.py` files are its rooms. A folder in it holds the rooms of
one subject, which the folder's own `__init__` names. All times are whole nanoseconds.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
