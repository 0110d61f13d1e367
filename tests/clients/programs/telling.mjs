// How the programs here tell what happens: a line of JSON each, with its instant on the machine's clock.

import { writeSync } from "node:fs";

export const tell = (what, more = {}) =>
  writeSync(1, JSON.stringify({ what, at: String(process.hrtime.bigint()), ...more }) + "\n");

/** Do what the command line names; an error that comes out of it is told. */
export const main = async (usages) => {
  const [usage, agent] = process.argv.slice(2);
  try {
    await usages[usage](agent);
    tell("returned");
  } catch (error) {
    tell("threw", { name: error.name, message: error.message });
  }
};
