// The ways in which a Node program uses an agent in a terminal, with node-pty.

import pty from "node-pty";
import { main, tell } from "./telling.mjs";

/** Start the agent in a terminal, and do something at each text that it prints. */
const start = (path, steps) => {
  const terminal = pty.spawn(path, [], { cols: 80, rows: 24 });
  let seen = "";
  terminal.onData((data) => {
    seen += data;
    while (steps.length && seen.includes(steps[0][0])) steps.shift()[1](terminal, seen);
  });
  return new Promise((resolve) =>
    terminal.onExit(({ exitCode, signal }) => {
      tell("ended", { code: exitCode, signal });
      resolve();
    }),
  );
};

const usages = {
  async answers(path) {
    await start(path, [
      [
        "[y/N] ",
        (terminal, seen) => {
          tell("asked", { seen });
          terminal.write("y\r");
        },
      ],
      ["going on", (terminal) => terminal.resize(120, 50)],
      ["drawn anew", (terminal) => terminal.kill()],
    ]);
  },

  async closes(path) {
    await start(path, [["[y/N] ", (terminal) => terminal.destroy()]]);
  },
};

await main(usages);
