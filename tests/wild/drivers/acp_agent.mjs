// A program that is an ACP agent itself: its own command, unmodified.

await import(`${process.cwd()}/dist/index.js`);
