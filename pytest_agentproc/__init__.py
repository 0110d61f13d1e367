"""The crash-test lab for programs that supervise agent CLIs. This docstring is the map of the code.

Three things live here: the supervisor core (how to run an agent so that it is never killed while it works, never waited
for once it is done, and never leaves a process behind), fake agents that misbehave on command, and the pytest plugin
that judges any supervisor against them in exact virtual time. Read them in this order; each line only knows those below
the next heading (`tests/architecture/test_imports.py` is the whole table of arrows, and it is enforced).

Doors
    plugin/       what pytest sees: collected scenarios, options, fixtures, reports; loads the rest when it is needed
    cli/          the `agentproc` command: one module for each command, loaded when it is asked for
    __main__      `python -m pytest_agentproc`: the same
    hookspecs     the hooks that other plugins may implement

What stands on the lab
    capture/      what really happened, as a scenario: a program that is recorded, its secrets taken out; a pasted log

What they open
    harness/      launch fakes behind a lifeline, drive a subject through a scenario, in virtual or in real time,
                  collect the record; the model: the same player and machine on an in-memory stage, without a process
    subjects/     the supervisors under test: the core, somebody else's function, object or program
    verdict/      expected against seen, row by row, and the text of a failure; known failures, summary, results
    search/       look for the setting of a scenario's open values, or for the times near its own ones, under which a
                  supervisor breaks a promise
    defects/      named wrong supervisors: the core with one decider replaced

What those are made of
    scenario/     YAML -> checked once -> bound to a subject's policy -> a program; one table of steps and keys
    record/       the one record of a run and its pure renderers: text, and a page of HTML
    supervisor/   the core: pure machines, `feed(event, now) -> commands`, made of deciders, one for a run and one for a
                  session, and thin drivers
    clock/        real time; virtual time: the hub where processes park, the jump rule, both event loops
    tree/         spawn, walk, signal, kill and reap a tree of processes, held as a group, by adoption or by a keeper;
                  know who was left by whom

The ground
    vocabulary/   words that scenarios and supervisors share: policy, outcomes, exit codes, rule ids
    corpus        where the bundled scenarios are
    files         the files that a user names: looked at before they are read, and read with a bound
    procfs        what /proc says of a process
    errors        a caller's mistakes, scenario problems, clock errors

Beside this package
    fake_agents/  runs in the child: player, stage, wire formats; standard library only, never imports this package
    scenarios/    the corpus (in a wheel: `pytest_agentproc/_corpus`), its README is the language on one page
    tests/        unit, process, plugin, cli, parity with the model, mirrors of recorded CLIs, their clients,
                  architecture, benchmarks; browser looks at pages

Inside a subpackage, `__init__` is the public face and `_noun.py` files are its rooms. All times are whole nanoseconds.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
