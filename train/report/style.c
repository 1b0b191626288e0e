#include "train/report/style.h"

#include <math.h>
#include <stdio.h>

const char *const report_colour[8] = {"#3b82f6", "#f97316", "#10b981", "#ec4899",
                                      "#8b5cf6", "#eab308", "#06b6d4", "#a16207"};

const char *const report_mark_colour[MARKS] = {"#8a8f98", "#22a06b", "#9061e8", "#e69100", "#e5484d"};
const char *const report_mark_class[MARKS] = {"plain", "good", "asked", "warning", "bad"};

void report_scale(double t, char colour[8]) {
    static const unsigned char stop[5][3] = {
        {0x44, 0x01, 0x54}, {0x3b, 0x52, 0x8b}, {0x21, 0x91, 0x8c}, {0x5e, 0xc9, 0x62}, {0xfd, 0xe7, 0x25}};
    double at = fmin(fmax(t, 0), 1) * 4;
    int below = at >= 4 ? 3 : (int)at, part[3];
    for (int i = 0; i < 3; i++)
        part[i] = (int)lround(stop[below][i] + (at - below) * (stop[below + 1][i] - stop[below][i]));
    snprintf(colour, 8, "#%02x%02x%02x", (unsigned)part[0] & 255, (unsigned)part[1] & 255,
             (unsigned)part[2] & 255);
}

const char report_style[] =
    ":root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1c2127;--muted:#5f6873;--line:#e2e5ea;"
    "--axis:#9aa1ab;--grid:#e8eaee;--accent:#2563eb}"
    "@media(prefers-color-scheme:dark){:root{--page:#111418;--card:#1a1e24;--ink:#e6e9ee;--muted:#98a2ae;"
    "--line:#2c323a;--axis:#5c6570;--grid:#2a2f37;--accent:#7aa7ff}}"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,'Segoe "
    "UI',Roboto,'DejaVu Sans',sans-serif}"
    "main{max-width:1240px;margin:0 auto;padding:28px 24px 48px}"
    "h1{font-size:26px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}"
    "h2{font-size:19px;margin:38px 0 12px}"
    "h3{font-size:14px;font-weight:600;margin:0 0 6px;overflow-wrap:anywhere}"
    "p{margin:0 0 "
    "10px}.sub,.lacks,.note{color:var(--muted)}.lacks{font-style:italic;margin-top:8px}.lacks::first-letter{"
    "text-transform:uppercase}.note{font-size:13px}"
    "code,pre{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:13px}"
    "a{color:var(--accent)}"
    "nav{display:flex;flex-wrap:wrap;gap:4px 16px;margin:14px 0 20px;font-size:14px}"
    "nav a{color:var(--accent);text-decoration:none}nav a:hover{text-decoration:underline}"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px "
    "16px;min-width:0}"
    ".grid{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:16px}"
    ".wide{grid-column:1/-1}"
    "@media(max-width:820px){.grid{grid-template-columns:minmax(0,1fr)}}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(172px,1fr));gap:12px}"
    ".tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px "
    "14px;min-width:0}"
    ".tile b{display:block;font-size:21px;font-weight:600;line-height:1.3;overflow-wrap:anywhere}"
    ".tile.words b{font-size:16px;line-height:1.7}"
    ".tile span{font-size:12.5px;color:var(--muted);display:block}"
    ".caution{margin:10px 0;padding:6px 12px;border-left:4px solid #b87400;background:var(--card)}"
    ".views{position:relative}.views>input{position:absolute;opacity:0}"
    ".views>label{display:inline-block;margin:0 6px 6px 0;padding:0 10px;border:1px solid var(--line);"
    "border-radius:12px;font-size:13px;color:var(--muted);cursor:pointer}"
    ".views>input:checked+label{border-color:var(--accent);color:var(--accent);font-weight:600}"
    ".views>input:focus-visible+label{outline:2px solid var(--accent);outline-offset:1px}"
    ".view{display:none}.views>input:nth-of-type(1):checked~.view:nth-of-type(1),"
    ".views>input:nth-of-type(2):checked~.view:nth-of-type(2),"
    ".views>input:nth-of-type(3):checked~.view:nth-of-type(3){display:block}"
    "figure{margin:0}figcaption{color:var(--muted);font-size:13px}"
    ".chart svg{display:block;width:100%;height:auto;overflow:visible}"
    ".chart svg text{fill:var(--muted);font-family:inherit}"
    ".chart svg .gridline{stroke:var(--grid)}"
    ".chart svg [stroke=\"rgb(136, 136, 136)\"]{stroke:var(--axis)}"
    ".chart svg image{image-rendering:pixelated}"
    ".legend{display:flex;flex-wrap:wrap;gap:2px 16px;margin:0 0 "
    "4px;padding:0;list-style:none;font-size:13px;"
    "color:var(--muted)}"
    ".legend i{display:inline-block;width:18px;height:0;border-top:3px solid var(--c,currentColor);"
    "margin-right:6px;vertical-align:middle}"
    ".legend i.d1{border-top-style:dashed}.legend i.d2{border-top-style:dotted}"
    ".legend i.dot{width:9px;height:9px;border:0;border-radius:50%;background:var(--c,currentColor)}"
    ".legend i.ring{width:10px;height:10px;border:2px solid var(--c,currentColor);border-radius:50%}"
    ".legend i.pale{height:9px;border:0;background:var(--c);opacity:.3}"
    ".key{position:sticky;top:0;z-index:2;background:var(--page);padding:8px 0;margin:0;font-size:14px;"
    "color:var(--ink)}"
    ".scroll{overflow:auto;max-height:560px}.scroll.tall{max-height:none}"
    "table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}"
    "th,td{padding:5px 12px 5px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}"
    "tr:last-child>td,tr:last-child>th{border-bottom:0}"
    "th{font-weight:600;color:var(--muted);font-size:13px}thead "
    "th{position:sticky;top:0;background:var(--card)}"
    "td.n,th.n{text-align:right;white-space:nowrap}td.w{overflow-wrap:anywhere;min-width:140px}"
    "td.t{white-space:nowrap}"
    "table.full{width:100%}"
    ".swatch{display:inline-block;width:10px;height:10px;border-radius:3px;background:var(--c);margin-right:"
    "7px}"
    "table.heat td,table.heat th{border:0;padding:3px 0;text-align:center;min-width:58px}"
    "table.heat td{border:1px solid var(--card);font-size:13px}table.heat th:first-child{padding-right:10px;"
    "text-align:right;min-width:46px}"
    ".pair{display:flex;flex-wrap:wrap;gap:24px 40px}"
    ".scale{display:flex;align-items:center;gap:8px;font-size:13px;color:var(--muted);margin:0 0 6px}"
    ".scale "
    "i{width:140px;height:10px;border-radius:3px;background:linear-gradient(90deg,#440154,#3b528b,#21918c,"
    "#5ec962,#fde725)}"
    ".bar{display:flex;height:22px;border-radius:5px;overflow:hidden;background:var(--grid)}"
    ".bar i{display:block;background:var(--c);min-width:1px}"
    ".bars{display:grid;grid-template-columns:max-content minmax(0,1fr) max-content;gap:7px 12px;"
    "align-items:center;font-size:14px}"
    ".tag{display:inline-block;padding:0 8px;border-radius:9px;font-size:12.5px;line-height:19px;color:#fff;"
    "background:var(--c);white-space:nowrap}"
    ".plain{--c:#737a84}.good{--c:#1d8a5b}.asked{--c:#7c4fd8}.warning{--c:#b87400}.bad{--c:#d1383d}"
    ".c0{--c:#3b82f6}.c1{--c:#f97316}.c2{--c:#10b981}.c3{--c:#ec4899}.c4{--c:#8b5cf6}.c5{--c:#eab308}"
    ".c6{--c:#06b6d4}.c7{--c:#a16207}"
    "details{margin-top:12px}summary{cursor:pointer;color:var(--accent)}"
    "pre{overflow:auto;max-height:480px;margin:10px 0 0}"
    "footer{margin-top:40px;color:var(--muted);font-size:13px}"
    /* A narrow screen: tables and wide figures are moved sideways, under the names of their rows. */
    "@media(max-width:820px){main{padding:20px 12px 36px}.chart.wide,.scroll{overflow-x:auto}"
    ".chart.wide svg{min-width:720px}td.w{min-width:92px}th,td{padding-right:8px}"
    ".scroll tr>th:first-child{position:sticky;left:0;z-index:1;background:var(--card)}}"
    "@media "
    "print{body{background:#fff}.scroll{max-height:none}.view{display:block}.views>label{display:none}.card{"
    "break-inside:avoid}.key{position:static}}";

const char report_shapes[] =
    "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs>"
    "<circle id=\"gpDot\" r=\"0.5\" stroke-width=\"0.5\" stroke=\"currentColor\"/>"
    "<circle id=\"gpPt5\" stroke-width=\"0.45\" stroke=\"currentColor\" fill=\"none\" cx=\"0\" cy=\"0\" "
    "r=\"1\"/>"
    "<circle id=\"gpPt6\" fill=\"currentColor\" stroke=\"none\" cx=\"0\" cy=\"0\" r=\"1\"/>"
    "</defs></svg>\n";
