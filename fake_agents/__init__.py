"""The fake agents: what runs in the child. Standard library only; never imports pytest_agentproc; found by path.

Map: `player` plays a compiled program (`program` says its form) on a stage; `stage` is the real one, with every side
effect, and `birth` how it starts a descendant; `contracts` says what a player asks of both; `session` is a player's
part that hears requests (`requests` reads them); `dialects` encode text into a CLI's wire format, and answer requests;
`wire` is the talk with the hub; `main` ties them together.
"""
