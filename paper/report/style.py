"""Style sheet of the report, for light and dark pages and for narrow and wide screens."""

CSS = """
:root {
  --ink: #1f2328; --soft: #59636e; --paper: #ffffff; --panel: #f6f8fa; --line: #d8dee4;
  --accent: #0b6e4f; --yes: #1a7f37; --no: #b35900; --shade: #1f232840;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6edf3; --soft: #9aa4ae; --paper: #14181e; --panel: #161b22; --line: #30363d;
    --accent: #58c9a0; --yes: #3fb950; --no: #e3963e; --shade: #e6edf350;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
header, main { max-width: 68rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
h1 { font-size: clamp(1.5rem, 4.5vw, 2.2rem); line-height: 1.2; margin: 0 0 .4rem; }
h2 {
  font-size: clamp(1.2rem, 3vw, 1.5rem); margin: 2.8rem 0 .6rem; padding-top: .9rem;
  border-top: 1px solid var(--line);
}
h3 { font-size: 1.05rem; margin: 1.8rem 0 .4rem; }
p { max-width: 46rem; margin: .6rem 0; }
.lead { color: var(--soft); }
nav { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1rem 0 0; }
nav a {
  color: var(--accent); text-decoration: none; border: 1px solid var(--line);
  border-radius: 1rem; padding: .15rem .8rem; font-size: .92rem;
}
nav a:hover, nav a:focus { border-color: var(--accent); }
/* Shadows at the sides mark content outside the box; covers that scroll with it hide them. */
.scroll {
  overflow-x: auto; -webkit-overflow-scrolling: touch; background:
    linear-gradient(to right, var(--paper) 30%, transparent) left / 2.5rem 100% local no-repeat,
    linear-gradient(to left, var(--paper) 30%, transparent) right / 2.5rem 100% local no-repeat,
    linear-gradient(to right, var(--shade), transparent) left / .9rem 100% scroll no-repeat,
    linear-gradient(to left, var(--shade), transparent) right / .9rem 100% scroll no-repeat;
}
.scroll::-webkit-scrollbar { height: 8px; }
.scroll::-webkit-scrollbar-thumb { background: var(--line); border-radius: 4px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
caption { text-align: left; color: var(--soft); padding: .3rem 0; }
th, td { padding: .32rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
thead th { text-align: right; color: var(--soft); font-weight: 600; background: var(--panel); }
thead th:first-child, tbody th { text-align: left; }
tbody th { font-weight: 500; position: sticky; left: 0; background: var(--paper); }
thead th:first-child { position: sticky; left: 0; }
td { text-align: right; }
td small { color: var(--soft); }
#colophon td, details td { text-align: left; white-space: normal; min-width: 12rem; }
.side { display: grid; gap: 0 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
figure { margin: 1.2rem 0; }
figure img { display: block; width: 100%; min-width: 38rem; height: auto; border-radius: 6px; }
figure.png img { min-width: 58rem; }  /* rows of many pictures */
figcaption { color: var(--soft); font-size: .92rem; max-width: 46rem; margin-top: .4rem; }
details { margin: .8rem 0; }
summary { cursor: pointer; color: var(--accent); }
.checks { list-style: none; margin: .8rem 0; padding: 0; display: grid; gap: .5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
.checks li { display: flex; gap: .7rem; background: var(--panel); border-radius: 8px;
  padding: .6rem .8rem; border-left: 4px solid var(--line); }
.checks li::before { font-weight: 700; }
.checks .yes { border-left-color: var(--yes); }
.checks .yes::before { content: "\\2713"; color: var(--yes); }
.checks .no { border-left-color: var(--no); }
.checks .no::before { content: "\\2717"; color: var(--no); }
.checks b { display: block; font-weight: 600; }
.checks span { display: block; color: var(--soft); font-size: .88rem; white-space: pre-line;
  font-variant-numeric: tabular-nums; }
#colophon { padding-bottom: 3rem; }
@media (max-width: 40rem) {
  header, main { padding-left: .9rem; padding-right: .9rem; }
  th, td { padding: .3rem .35rem; }
  table { font-size: .86rem; }
  td small { display: block; }
  tbody th { white-space: normal; }
  thead th { white-space: normal; }
  details td { min-width: 0; overflow-wrap: anywhere; }
  figure .scroll + figcaption::before { content: "Wide: scroll it sideways. "; }
}
@media print { figure, table { break-inside: avoid; } }
"""
