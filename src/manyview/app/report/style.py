"""What only the page of a comparison needs beside the common sheet."""

CSS = """
:root { --robust: #b8558c; --proposed: #d55e00; --paper-group: #0072b2; --simple: #009e73;
  --yours: #77771f; }
:root[data-theme=dark] { --robust: #de8fbd; --paper-group: #56b4e9; --yours: #bcbc55; }
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) { --robust: #de8fbd;
  --paper-group: #56b4e9; --yours: #bcbc55; } }
body { max-width: 82rem; }
.short { border-left: 4px solid var(--accent); padding: .1rem 0 .1rem .9rem; margin: 1rem 0; }
.short p { margin: .4rem 0; }
.comparison th, .comparison td { text-align: right; white-space: nowrap; min-width: 0;
  padding: .33rem .45rem; }
.comparison th:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
.comparison thead th:first-child { background: var(--shade); }
td small { color: var(--faint); }
td.best { font-weight: 700; color: var(--accent); }
td.why { min-width: 16rem; }
.dot { display: inline-block; width: .6rem; height: .6rem; border-radius: 50%; margin-right: .45rem;
  background: var(--c); border: 2px solid var(--c); }
.dot.hollow { background: none; }
.robust { --c: var(--robust); } .proposed { --c: var(--proposed); } .paper { --c: var(--paper-group); }
.simple { --c: var(--simple); } .yours { --c: var(--yours); }
.tag { font-size: .72rem; font-weight: 600; color: var(--warn); border: 1px solid; border-radius: 4px;
  padding: 0 .3rem; margin-left: .4rem; }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .88rem; margin: .6rem 0; }
.tag.bad { color: var(--faint); }
figure svg { display: block; width: 100%; min-width: 46rem; height: auto; }
@media print { figure svg { min-width: 0; max-height: 24cm; } }
"""
