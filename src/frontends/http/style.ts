/** The look of the status page: light and dark, narrow and wide, nothing from elsewhere. */
export const style = `
:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --card: #fff; --line: #dfe3e8; --soft: #eef1f4;
  --text: #1b2430; --dim: #5c6877; --accent: #2257c4;
  --good: #136c3a; --good-ground: #dcf3e4; --warn: #8a5200; --warn-ground: #fdeecf; --bad: #b3201b; --bad-ground: #fde6e4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #11161d; --card: #1a212b; --line: #2d3744; --soft: #232c38;
    --text: #e4e9ef; --dim: #9aa7b6; --accent: #8ab4ff;
    --good: #6fd699; --good-ground: #17362a; --warn: #f3bd61; --warn-ground: #3c2e14; --bad: #ff9a92; --bad-ground: #45211f;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; padding: 1.5rem 1rem 3rem; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif;
}
main, .offline { max-width: 76rem; margin: 0 auto; }
h1, h2, p, dl, dd, ul { margin: 0; padding: 0; }
h1 { font-size: 1.35rem; line-height: 1.3; display: flex; align-items: center; gap: .6rem; }
h1 svg { width: 1.7rem; height: 1.7rem; flex: none; color: var(--accent); }
h2 { font-size: 1.02rem; margin: 2rem 0 .6rem; }
h2 small { font-weight: 400; font-size: .87rem; color: var(--dim); margin-left: .35rem; overflow-wrap: anywhere; }
code { font: .92em/1.45 ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; overflow-wrap: anywhere; }
a { color: var(--accent); }
.dim { color: var(--dim); }
.top { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: center; gap: .4rem 1.5rem; }
.top p { color: var(--dim); font-size: .9rem; }
.state {
  display: inline-block; padding: .05rem .6rem; border-radius: 1rem; font-size: .84rem; font-weight: 600; white-space: nowrap;
  color: var(--dim); background: var(--soft);
}
.good { color: var(--good); background: var(--good-ground); }
.warn { color: var(--warn); background: var(--warn-ground); }
.bad { color: var(--bad); background: var(--bad-ground); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem; margin-top: 1.2rem; }
.figures > div { padding: .7rem .95rem; display: flex; flex-direction: column-reverse; }
.figures dd { font-size: 1.45rem; font-weight: 600; line-height: 1.3; font-variant-numeric: tabular-nums; }
.figures dd.bad, .figures dd.warn { background: none; }
.figures dt { color: var(--dim); font-size: .87rem; }
.attention { margin-top: .75rem; padding: .8rem 1rem; border-color: var(--bad); border-left-width: .3rem; }
.attention.calm { border-color: var(--good); }
.attention.minor { border-color: var(--warn); }
.attention strong { display: block; margin-bottom: .15rem; }
.attention b { font-weight: 600; }
.attention li { list-style: none; overflow-wrap: anywhere; padding: .12rem 0; }
.scroll { overflow: hidden; }
table { width: 100%; border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .5rem .95rem; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--dim); font-size: .82rem; font-weight: 600; background: var(--soft); white-space: nowrap; }
tbody th { font-weight: 600; overflow-wrap: anywhere; min-width: 8rem; }
tbody th.method { white-space: nowrap; }
td { overflow-wrap: anywhere; }
td { min-width: 6.5rem; }
td.wide { min-width: 9.5rem; }
td.age small { white-space: normal; }
td.age, td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
td small, th small { display: block; color: var(--dim); font-weight: 400; font-size: .86rem; }
td small.wrong { color: var(--bad); }
tr.stuck td, tr.stuck th { background: var(--bad-ground); }
td.long { color: var(--bad); font-weight: 700; }
tr.stuck small { color: inherit; opacity: .8; }
.empty { padding: .7rem .95rem; color: var(--dim); }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.2rem; padding: .8rem .95rem; }
.facts dt { color: var(--dim); }
.facts dd { overflow-wrap: anywhere; min-width: 0; }
.facts dd + dd { grid-column: 2; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1.2rem; align-items: start; }
.pair > section { min-width: 0; }
footer { margin-top: 2rem; color: var(--dim); font-size: .87rem; }
.offline { margin-bottom: .9rem; padding: .6rem .95rem; border-radius: .6rem; }
.offline[hidden] { display: none; }
@media (max-width: 60rem) { .pair { grid-template-columns: 1fr; } }
@media (max-width: 52rem) {
  body { padding: 1rem .7rem 2rem; }
  table, tbody, tr, th, td { display: block; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  tbody tr { border-top: 1px solid var(--line); padding: .55rem 0; }
  tbody tr:first-child { border-top: 0; }
  tr.stuck { background: var(--bad-ground); }
  th, td { border: 0; padding: .12rem .95rem; }
  td[data-label]::before { content: attr(data-label) ' '; color: var(--dim); font: 400 .85rem system-ui, sans-serif; }
  td:empty { display: none; }
  .facts { grid-template-columns: 1fr; gap: 0; }
  .facts dt { margin-top: .5rem; font-size: .87rem; }
  .facts dt:first-child { margin-top: 0; }
  .facts dd + dd { grid-column: 1; }
}
`;
