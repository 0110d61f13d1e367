"""Owns how the pages look: one accent, red for what failed, amber for timers, the rest is ink. Knows no content."""

from __future__ import annotations

PAGE_CSS = """\
:root {
  color-scheme: light dark;
  --paper: #fcfcfb; --panel: #ffffff; --ink: #1d2126; --soft: #5c6670; --faint: #e4e7ea; --band: #f3f4f5;
  --line: #b4bdc7; --accent: #2a5f9e; --tint: #e8eff7; --bad: #b3261e; --wash: #fdeeec; --timer: #c98a1b;
  --good: #2e6b46; --calm: #e9f2ec;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #15181c; --panel: #1b1f24; --ink: #dfe3e8; --soft: #98a3ae; --faint: #2c3239; --band: #20252b;
    --line: #58636f; --accent: #86b4ec; --tint: #20303f; --bad: #ff8f85; --wash: #3a1f1d; --timer: #dda640;
    --good: #8fcfa8; --calm: #1c2f25;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1680px; padding: 20px 28px 40px; background: var(--paper); color: var(--ink);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; -webkit-text-size-adjust: 100%; }
code, pre, .time, .no { font-family: ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", Consolas, monospace; }
code, pre { font-size: 12.5px; white-space: pre-wrap; overflow-wrap: anywhere; }
a { color: var(--accent); text-decoration-color: color-mix(in srgb, currentcolor 35%, transparent);
  text-underline-offset: 2px; }
a:hover { text-decoration-color: currentcolor; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; border-radius: 3px; }
[tabindex="-1"]:focus { outline: none; }
.skip { position: absolute; left: -999px; background: var(--panel); padding: 6px 12px; z-index: 9; }
.aside { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip:focus { left: 12px; top: 8px; }

h1 { font-size: 20px; line-height: 1.3; font-weight: 650; margin: 0 0 8px; max-width: 60em; text-wrap: balance;
  overflow-wrap: anywhere; }
.facts { display: flex; flex-wrap: wrap; gap: 4px 28px; margin: 0 0 16px; color: var(--soft); }
.facts div { display: flex; gap: 7px; align-items: baseline; }
.facts dt { font-size: 12.5px; }
.facts dd { margin: 0; color: var(--ink); font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.verdict { font-weight: 650; padding: 1px 9px 2px; border-radius: 9px; }
.verdict.good { color: var(--good); background: var(--calm); }
.verdict.bad { color: var(--wash); background: var(--bad); }

.checks { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); gap: 8px;
  margin: 0 0 22px; }
.checks > :not(.banner) { grid-column: 1 / -1; }
.banner { background: var(--wash); border-left: 4px solid var(--bad); border-radius: 0 6px 6px 0;
  padding: 9px 16px 10px; }
.banner h2 { display: flex; flex-wrap: wrap; gap: 0 12px; align-items: baseline; font-size: 14px; font-weight: 400;
  margin: 0 0 3px; }
.banner h2 b { color: var(--bad); font-weight: 700; }
.banner h2 code { font-size: 13.5px; font-weight: 600; }
.banner .where { font-size: 13px; color: var(--soft); overflow-wrap: anywhere; }
.banner dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 1px 14px; margin: 0; }
.banner dt { color: var(--soft); }
.banner dd { margin: 0; grid-column: 2; white-space: pre-wrap; overflow-wrap: anywhere; }
.others { color: var(--soft); font-size: 13px; }
.rerun { margin: 0 0 20px; }
.others p { margin: 2px 0 0; max-width: 90em; overflow-wrap: anywhere; }

main:not(.list) { display: grid; grid-template-columns: minmax(0, 1fr) minmax(300px, 30%); gap: 28px;
  align-items: start; }
main > section { min-width: 0; }
table { border-collapse: collapse; }
.run { width: 100%; }
.run th, .run td { padding: 4px 0; text-align: left; font-weight: 400; vertical-align: top; }
.run thead th { position: sticky; top: 0; z-index: 3; background: var(--paper); font-size: 12px; color: var(--soft);
  vertical-align: bottom; padding: 6px 0 7px; box-shadow: inset 0 -1px var(--line); }
.run .time { width: 1%; min-width: 64px; padding-right: 14px; text-align: right; white-space: nowrap; font-size: 12px;
  line-height: 21px; color: var(--soft); font-variant-numeric: tabular-nums; }
.run thead .time { font-family: inherit; line-height: inherit; }
.run .first > * { border-top: 1px solid var(--faint); }
.run .first .time { color: var(--ink); }
.run tbody tr:hover > *, .source tr:hover > * { background: var(--band); }
.run tbody tr:target > *, .source tr:target > * { background: var(--tint); }
.run .g { width: 1%; }
.run tbody .g { position: relative; padding: 0; }
.run tbody .g div { position: absolute; inset: 0; overflow: hidden; }
.run tbody .g::after { content: ""; display: block; }
.run thead .g div { position: relative; height: 18px; }
.h { position: absolute; bottom: 0; text-align: center; overflow: hidden; color: var(--ink); font-weight: 600;
  font-size: 11.5px; line-height: 18px; white-space: nowrap; }
.h.left { color: var(--bad); }
.tall div { height: 104px !important; }
.tall .h { height: 104px; display: flex; align-items: center; justify-content: flex-start;
  writing-mode: vertical-rl; transform: rotate(180deg); }
.tall .h > span { overflow: hidden; text-overflow: ellipsis; max-height: 104px; }
.run thead th:nth-child(3) { padding-left: 16px; }
.run .words { position: relative; padding-left: 16px; min-width: 150px; overflow-wrap: anywhere; line-height: 21px; }
.run .words b { font-weight: 600; font-size: 12px; color: var(--soft); margin-right: 3px; }
.run .words code { color: var(--soft); font-size: 12px; }
.run .n { width: 1%; padding-left: 14px; white-space: nowrap; font-size: 12.5px; line-height: 21px; }
.run .quiet .words { color: var(--soft); }
.run .strong .words { font-weight: 600; }
.run .bad .words { font-weight: 600; color: var(--bad); }
.run .pass .band { padding: 6px 0 6px 16px; color: var(--soft); font-size: 13px; font-style: italic; }
.run .pass > * { background: var(--band); }
.run .pass .g div { opacity: .6; }
.run .wrong > * { background: var(--wash); }
.run .wrong .time { box-shadow: inset 4px 0 var(--bad); }
.run .expected > * { border-top: 2px dashed var(--bad); border-bottom: 2px dashed var(--bad); }
.run .expected .band { padding: 4px 0 4px 16px; color: var(--bad); font-weight: 600; }
.run .expected .time { color: var(--bad); padding-top: 4px; }
summary { cursor: pointer; }
.words summary { list-style: none; }
.words summary::-webkit-details-marker { display: none; }
.words summary::after { content: " \\25b8"; color: var(--accent); }
.words details[open] summary::after { content: " \\25be"; }
.words pre { margin: 4px 0 6px; padding: 8px 10px; background: var(--band); border-radius: 5px; max-height: 320px;
  overflow: auto; color: var(--ink); font-weight: 400; }

.g i { position: absolute; }
.g .l { top: 0; bottom: 0; width: 2px; margin-left: -1px; background: var(--line); }
.g .b { top: 14px; }
.g .e { bottom: auto; height: 14px; }
.g .l.alive, .g .l.stopped, .g .l.unknown { background: var(--bad); width: 4px; margin-left: -2px; }
.g .l.dead { background: repeating-linear-gradient(var(--bad) 0 4px, transparent 4px 7px); width: 4px;
  margin-left: -2px; }
.g .t { top: 0; bottom: 0; width: 6px; margin-left: -3px; background: var(--timer); }
.g .t.b { top: 15px; border-radius: 3px 3px 0 0; }
.g .t.e { bottom: auto; height: 13px; border-radius: 0 0 3px 3px; }
.g .a { top: 13px; height: 2px; background: var(--accent); }
.g .a::after { content: ""; position: absolute; top: -4px; border: 5px solid transparent; }
.g .a.r::after { right: -1px; border-left: 8px solid var(--accent); border-right: 0; }
.g .a.w::after { left: -1px; border-right: 8px solid var(--accent); border-left: 0; }
.g .a.err { background: repeating-linear-gradient(90deg, var(--accent) 0 5px, transparent 5px 8px); }
.g .a.faint, .g .a.born, .g .a.say { height: 1px; top: 14px; background: var(--line); }
.g .a.faint { background: repeating-linear-gradient(90deg, var(--line) 0 3px, transparent 3px 6px); }
.g .a.faint::after, .g .a.born::after, .g .a.say::after { top: -4px; border-width: 4px 0; }
.g .a.r.faint::after, .g .a.r.born::after, .g .a.r.say::after { border-left: 6px solid var(--line); }
.g .a.w.faint::after, .g .a.w.born::after, .g .a.w.say::after { border-right: 6px solid var(--line); }
.g .a.sig { top: 12px; height: 4px; background: var(--ink); }
.g .a.sig::after { top: -5px; border-width: 7px 0; }
.g .a.r.sig::after { border-left: 11px solid var(--ink); right: -3px; }
.g .a.w.sig::after { border-right: 11px solid var(--ink); left: -3px; }
.g .d { top: 11px; width: 7px; height: 7px; margin-left: -3.5px; border-radius: 50%; background: var(--soft); }
.g .d.step { background: var(--paper); border: 2px solid var(--line); }
.g .d.born { background: var(--ink); }
.g .d.sig { background: var(--paper); border: 2px solid var(--ink); width: 10px; height: 10px; margin: -1px 0 0 -5px; }
.g .d.over { border-radius: 0; width: 14px; height: 3px; margin: 2px 0 0 -7px; background: var(--ink); }
.g .d.fired { background: var(--timer); width: 11px; height: 11px; margin: -2px 0 0 -5.5px; }
.g .d.outcome, .g .d.returned { border-radius: 2px; background: var(--ink); width: 10px; height: 10px;
  margin: -1px 0 0 -5px; }
.g .d.leaked, .g .d.stray { background: var(--bad); width: 12px; height: 12px; margin: -2px 0 0 -6px; }

.beside { position: sticky; top: 16px; }
.beside h2 { font-size: 12px; font-weight: 600; color: var(--soft); margin: 0 0 7px; overflow-wrap: anywhere; }
.beside .scroll { max-height: calc(100vh - 70px); overflow: auto; background: var(--panel);
  border: 1px solid var(--faint); border-radius: 7px; padding: 7px 0; }
.source { width: 100%; }
.source td { padding: 1px 12px 1px 0; vertical-align: top; }
.source .no { width: 1%; min-width: 46px; padding: 1px 12px; text-align: right; font-size: 12px; line-height: 20px;
  color: var(--soft); user-select: none; }
.source code { line-height: 20px; }
.source .bad > td { background: var(--wash); }
.source .bad > .no { box-shadow: inset 4px 0 var(--bad); }
.source .at > td { background: var(--band); }
.source .at > .no { box-shadow: inset 4px 0 var(--line); }
.note { display: block; width: fit-content; font-size: 12px; line-height: 17px; margin-bottom: 3px;
  color: var(--soft); }
.note.bad { color: var(--bad); font-weight: 600; }
footer { margin-top: 26px; color: var(--soft); font-size: 12px; overflow-wrap: anywhere; }

@media (max-width: 1080px) {
  body { padding: 16px; }
  main:not(.list) { grid-template-columns: minmax(0, 1fr); }
  .beside { position: static; }
  .beside .scroll { max-height: none; }
}
@media (max-width: 760px) {
  .run, .run tbody { display: block; }
  .run thead { display: contents; }
  .run tr { display: grid; grid-template-columns: 64px minmax(0, 1fr) max-content; }
  .run thead tr { position: sticky; top: 0; z-index: 3; background: var(--paper); }
  .run thead th { position: static; align-self: end; box-shadow: none; }
  .run thead th:nth-child(n + 3) { display: none; }
  .run .g { grid-column: 2 / 4; width: auto; }
  .run tbody .g { height: 30px; }
  .run .words, .run .pass .band, .run .expected .band { grid-column: 1 / 3; padding: 0 0 6px; min-width: 0; }
  .run .pass .band, .run .expected .band { grid-column: 1 / 4; }
  .run .n { grid-column: 3; padding: 0 0 0 12px; width: auto; }
  .run .first .words, .run .first .n, .run .expected > * { border-top: 0; }
  .wide { overflow: auto; max-height: 90vh; }
  .wide .run { width: max-content; min-width: 100%; }
  .wide .run .words, .wide .run .band { position: sticky; left: 0; width: calc(100vw - 100px); }
}
@media print {
  :root { color-scheme: light; }
  .verdict.good, .verdict.bad { background: none; border: 1px solid; }
  .verdict.bad { color: var(--bad); }
  .run thead th { position: static; }
  .g i { print-color-adjust: exact; }
}
.counts { display: flex; flex-wrap: wrap; gap: 6px 30px; margin: 14px 0 22px; padding: 0; list-style: none; }
.counts b { font-size: 22px; font-weight: 650; margin-right: 6px; font-variant-numeric: tabular-nums; }
.counts .bad b { color: var(--bad); }
.index { width: 100%; margin-bottom: 10px; }
.index th, .index td { text-align: left; vertical-align: top; padding: 5px 16px 5px 0; font-weight: 400; }
.index thead th { vertical-align: bottom; white-space: nowrap;
  position: sticky; top: 0; background: var(--paper); color: var(--soft); font-size: 12px;
  box-shadow: inset 0 -1px var(--line); z-index: 2; }
.index .rule th { padding-top: 20px; font-weight: 600; box-shadow: inset 0 -1px var(--faint); }
.index .rule code { color: var(--accent); margin-right: 8px; }
.index tbody tr:not(.rule):hover > * { background: var(--band); }
.index .id { color: var(--soft); font-size: 12px; display: block; }
.index td { white-space: nowrap; width: 1%; }
.index td .bad { color: var(--bad); font-weight: 650; }
.index td .good { color: var(--soft); }
.index td .should, .level { color: var(--timer); font-weight: 650; }
@media (max-width: 760px) { main.list { overflow-x: auto; } .index thead th { position: static; } }
"""
