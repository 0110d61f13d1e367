// A bridge to claude with the structure and the limits of pi-claude-cli: silence_bridge.mjs before|after CLAUDE...
// The prompt is an argument of claude's; the original writes it to stdin, which stays open here, too.
// It prints the answer. Exit code 0: done. 10: claude asked for a tool of the bridge's own. 124: claude was silent.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const INACTIVITY_TIMEOUT_MS = 180_000;
const INTERNAL_TOOL_TIMEOUT_MS = 600_000;
const EXIT_GRACE_MS = 500;
const OWN_TOOLS = new Set(["Read", "Write", "Edit", "Bash", "Grep", "Glob"]);

const [version, command, ...words] = process.argv.slice(2);
const claude = spawn(command, [...words, "--include-partial-messages"], { stdio: ["ignore", "pipe", "inherit"] });

let limit = INACTIVITY_TIMEOUT_MS;
let timer, code, sawOwnTool, sawInternalTool;
const end = (how) => {
  code ??= how;
  claude.kill("SIGKILL");
};
const rest = () => {
  clearTimeout(timer);
  timer = setTimeout(end, limit, 124);
};
const follow = ({ type, content_block: block }) => {
  if (type === "message_start") {
    [limit, sawOwnTool, sawInternalTool] = [INACTIVITY_TIMEOUT_MS, false, false];
  } else if (type === "content_block_start" && block.type === "tool_use") {
    if (OWN_TOOLS.has(block.name)) sawOwnTool = true;
    else sawInternalTool = true;
  } else if (type === "message_stop") {
    if (sawOwnTool) end(10);
    else if (sawInternalTool && version === "after") limit = INTERNAL_TOOL_TIMEOUT_MS;
    rest();
  }
};
createInterface({ input: claude.stdout }).on("line", (line) => {
  rest();
  const { type, event, result, is_error: isError } = JSON.parse(line);
  if (type === "stream_event") follow(event);
  if (type !== "result") return;
  process.stdout.write(result ?? "");
  code ??= isError ? 1 : 0;
  setTimeout(end, EXIT_GRACE_MS).unref();
});
claude.on("close", (status) => process.exit(code ?? status ?? 1));
rest();
