// claude-code-sdk-ts with its fluent interface, and a limit of five minutes.

const { claude } = await import(`${process.cwd()}/dist/index.js`);
try {
  const query = claude().withTimeout(300_000).query(process.argv[2]);
  const text = await query.asText();
  if (!(await query.succeeded())) throw new Error("the query has failed");
  process.stdout.write(text, () => process.exit());
} catch (error) {
  process.stderr.write(`${error.name}: ${error.message}\n`, () => process.exit(1));
}
