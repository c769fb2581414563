"""The style sheet of a simulation's page: one text, light and dark. Fonts are those that the reader has."""

from typing import Final

_LIGHT: Final = """
--page:#f6f7f9;--card:#fff;--ink:#1c2430;--soft:#5b6675;--faint:#8b95a3;--edge:#e3e7ed;--grid:#eceff3;--track:#f0f2f6;
--k0:#2e6fd9;--k1:#d9641e;--k2:#14906c;--k3:#9b4bb8;--k4:#b58a00;--k5:#c0395e;
--q0:#2e6fd9;--q1:#e08a2b;--q2:#c0395e;--q3:#14906c;--q4:#8a63c9;--q5:#3aa6b9;--q6:#a38628;--q7:#8b95a3;
--m0:#f1f4f8;--m1:#dfeaf6;--m2:#cbdff2;--m3:#b3d1ec;--m4:#97c0e4;--m5:#79addb;--m6:#5c99d0;--m7:#4384c3;--m8:#2f6fb3;
--m9:#215b9e;--m10:#174985;--m11:#10386b;--m12:#0b2850;
"""
_DARK: Final = """
--page:#0f141b;--card:#171e28;--ink:#e6ebf2;--soft:#a3afbf;--faint:#76828f;--edge:#263140;--grid:#222c39;--track:#202a36;
--k0:#6aa5ff;--k1:#ff9a5c;--k2:#45cfa4;--k3:#cf8ae6;--k4:#e3bd45;--k5:#f07a9a;
--q0:#6aa5ff;--q1:#f0ab5a;--q2:#f07a9a;--q3:#45cfa4;--q4:#b295ef;--q5:#69cfe0;--q6:#d0b75c;--q7:#76828f;
--m0:#1e2733;--m1:#1f3145;--m2:#213c58;--m3:#22486c;--m4:#235581;--m5:#266397;--m6:#2c73ad;--m7:#3784c1;--m8:#4a96d1;
--m9:#64a8de;--m10:#84bbe8;--m11:#a8cff1;--m12:#cfe5fa;
"""
_RULES: Final = """
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif;-webkit-font-smoothing:antialiased;font-variant-numeric:tabular-nums}
main{max-width:1240px;margin:0 auto;padding:36px 28px 64px}
header{margin-bottom:30px}
.eyebrow{margin:0;color:var(--faint);font-size:12px;letter-spacing:.09em;text-transform:uppercase;font-weight:600}
h1{margin:4px 0 2px;font-size:32px;line-height:1.2;letter-spacing:-.015em;font-weight:650}
.lead{margin:0 0 14px;color:var(--soft)}
section{margin-top:40px}
h2{margin:0 0 4px;font-size:19px;letter-spacing:-.01em;font-weight:620}
h3{margin:24px 0 8px;font-size:14px;font-weight:600}
.note{margin:0 0 14px;color:var(--soft);font-size:13.5px;max-width:76ch}
h2+.plots,h2+.tiles,h2+.scroll,h2+.notes{margin-top:14px}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:6px 20px;margin:0;padding:0;font-size:13.5px;color:var(--soft)}
.reasons{flex-direction:column;margin-top:14px}
.reasons li{display:flex;align-items:baseline}
.swatch{display:inline-block;flex:none;width:11px;height:11px;border-radius:3px;margin-right:8px;background:currentColor}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(250px,100%),1fr));gap:14px}
.tile,figure{background:var(--card);border:1px solid var(--edge);border-radius:10px;padding:14px 16px}
.tile h3{margin:0 0 8px;font-size:13px;color:var(--soft);font-weight:550}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:14px}
.plots.three{grid-template-columns:repeat(auto-fit,minmax(min(340px,100%),1fr))}
figure{margin:0}
figure.wide{margin-top:14px}
figcaption{font-size:13.5px;font-weight:600;margin-bottom:8px}
svg{display:block;width:100%;height:auto;overflow:visible}
svg.ramp{width:330px;max-width:100%}
.tick,.node{fill:var(--faint);font-size:11px}
.node{text-anchor:end;font-size:9.5px}
.three .tick{font-size:15px}
.value{fill:var(--ink);font-size:15px;font-weight:600}
.grid{stroke:var(--grid)}
.axis{stroke:var(--edge);stroke-width:1.2}
.track{fill:var(--track)}
.line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.area{fill:currentColor;opacity:.09}
.bar,.layer{fill:currentColor}
.layer{opacity:.88}
.band rect{fill:transparent}
.band line{stroke:var(--soft);stroke-width:1;opacity:0}
.band:hover line{opacity:.7}
.scroll{overflow-x:auto}
.wide .scroll svg{min-width:720px}
table{border-collapse:collapse;background:var(--card);border:1px solid var(--edge);border-radius:10px;
border-spacing:0;min-width:440px;font-size:14px}
th,td{padding:6px 18px;text-align:right;font-weight:400;white-space:nowrap}
thead th{color:var(--soft);font-weight:600;border-bottom:1px solid var(--edge);padding-top:10px;padding-bottom:8px}
tbody th,.left th,.left td{text-align:left}
tbody th{color:var(--soft);padding-left:30px}
tr.group th{color:var(--ink);font-weight:600;padding:14px 18px 4px;border-top:1px solid var(--grid)}
tbody tr:first-child.group th{border-top:0}
tbody tr:last-child td,tbody tr:last-child th{padding-bottom:12px}
.left td{white-space:normal;vertical-align:top}
.left td:first-child{text-align:right}
.names{color:var(--soft)}
.notes{margin:0;padding-left:20px;color:var(--soft)}
.nothing{margin:0;color:var(--soft)}
footer{margin-top:48px;color:var(--faint);font-size:12.5px}
@media (max-width:560px){main{padding:24px 16px 48px}h1{font-size:26px}}
@media print{body{background:#fff}section{break-inside:avoid}}
"""


def _colours() -> str:
    kinds = "".join(f".c{at}{{color:var(--k{at})}}" for at in range(6))
    reasons = "".join(f".r{at}{{color:var(--q{at})}}" for at in range(8))
    shades = "".join(f".h{at}{{fill:var(--m{at})}}" for at in range(13))
    return kinds + reasons + shades


def _flat(text: str) -> str:
    return text.replace("\n", "")


STYLE: Final = (
    f":root{{color-scheme:light dark;{_flat(_LIGHT)}}}"
    f"@media (prefers-color-scheme:dark){{:root{{{_flat(_DARK)}}}}}"
    f"{_flat(_RULES)}{_colours()}"
)
