#!/usr/bin/env bash
# `gdn report`: a page about a real run, about made-up ones with all events, several side by side; what is missing is said;
# names and values cannot become markup; long runs give small pages; bad input is one message.
. "$SOURCE/tests/program/small.sh"

has() { # FILE WORDS
    grep -qF -e "$2" "$1" || fail "'$2' is not in $1"
}
hasnt() {
    ! grep -qF -e "$2" "$1" || fail "'$2' is in $1"
}
count() { # N WORDS FILE: how often
    [ "$(grep -oF -e "$2" "$3" | wc -l)" -eq "$1" ] || fail "'$2' is in $3 $(grep -oF -e "$2" "$3" | wc -l) times, not $1"
}
made() { # DIRECTORY OPTION…
    mkdir -p "$1"
    LC_ALL=C awk -f "$SOURCE/tests/program/made_up_run.awk" "${@:2}" > "$1/metrics.jsonl"
}
report() { # OUTPUT ARGUMENT…: status 0, no message, a whole page that loads nothing and runs nothing
    local page=$1
    shift
    expect 0 timeout 400 "$GDN" report "$@" > out 2> err
    [ ! -s err ] || fail "$*: $(cat err)"
    [ "$(cat out)" = "$page" ] || fail "$*: wrote $(cat out)"
    [ "$(head -c 15 "$page")" = "<!DOCTYPE html>" ] && [ "$(tail -n 1 "$page")" = "</html>" ] || fail "$page is not whole"
    ! grep -qiE '<(script|link|iframe|object|embed)|[ "](on[a-z]+|src)=|(^|[ ])href="[^#]|url\(|@import' "$page" || fail "$page loads or runs something"
    ! grep -oE "xlink:href='[^#]{1,15}" "$page" | grep -qv "='data:image/png" || fail "$page refers to something"
    ! grep -qE '>(-?nan|-?inf|\(null\))' "$page" || fail "$page shows no number"
    [ "$(grep -o '<svg' "$page" | wc -l)" -eq "$(grep -o '</svg>' "$page" | wc -l)" ] || fail "$page: figures are not whole"
    [ "$(grep -o '<figure' "$page" | wc -l)" -eq "$(grep -o '</figure>' "$page" | wc -l)" ] || fail "$page: cards are not whole"
    [ "$(grep -o '<div' "$page" | wc -l)" -eq "$(grep -o '</div>' "$page" | wc -l)" ] || fail "$page: divisions are not whole"
    if command -v xmllint > /dev/null; then # every figure for itself, and the page as far as HTML 4 knows it
        grep -ozP '(?s)<svg .*?</svg>' "$page" | tr '\0' '\n' | sed "1i <all xmlns:xlink='http://www.w3.org/1999/xlink'>" | sed '$a </all>' |
            xmllint --noout - 2> xml || fail "$page: $(head -3 xml)"
    fi
}
refused_report() { # WORDS ARGUMENT…
    refused "$1" timeout 400 "$GDN" report "${@:2}"
}

# ---- a real run, stopped and continued

expect 3 "$GDN" train small.yaml --run-dir real --set train.stop_at=20 --set train.gate_interval=5 > /dev/null 2>&1
expect 0 "$GDN" train small.yaml --run-dir real --set train.gate_interval=5 > /dev/null 2>&1
report real/report.html real
has real/report.html '<h1>real</h1>'
has real/report.html '<span>Steps</span><b>40</b><span>of 40, 100.0%</span>'
has real/report.html '<span>Restarts</span><b>1</b>'
has real/report.html '<b>finished</b>'
has real/report.html 'class="tag good">end</span></td><td class="w">status 0, finished</td>'
has real/report.html '<td>2 with training waiting</td>'
has real/report.html 'train.stop_at'
has real/report.html 'class="tag good">resume</span>'
# The last loss, as the run has told it.
loss=$(grep '"event":"step"' real/metrics.jsonl | tail -n 1 | sed -E 's/.*"loss":([0-9.]+).*/\1/')
has real/report.html "<span>Final loss</span><b>$(LC_ALL=C printf %.4g "$loss")</b>"
best=$(grep '"event":"eval"' real/metrics.jsonl | sed -E 's/.*"loss":([0-9.]+).*/\1/' | LC_ALL=C sort -g | head -n 1)
has real/report.html "<span>Best validation loss</span><b>$(LC_ALL=C printf %.4g "$best")</b>"
has real/report.html 'num_layers: 3'

# ---- made up: everything that there is

made storm -v steps=2000 -v layers=6 -v distances=3 -v seed=1 -v lr=0.001 -v monitor=10 -v gates=20
cp real/config.yaml storm/
report storm/report.html storm
for title in 'Loss' 'Loss, later half' 'Gradient norm, before clipping' 'Learning rate' 'Tokens a second' 'Seconds of a step' Goodput \
    'By category, of the rank that needs most' 'Memory in use' 'Connections in use' 'Share of a step spent in connections' \
    'Gates, mean of each connection' 'Contributions to the stream, root mean square' 'Last state, by layer and distance' \
    'Duration and stall' Size 'Steps done over time, with everything that happened'; do
    has storm/report.html "<h3>$title</h3>"
done
hasnt storm/report.html 'class="lacks"'
count 6 'href='"'"'data:image/png;base64,' storm/report.html # a map for each distance, of gates and of contributions
# The last state: 6 layers of up to 3 distances, and those into the first layers fewer.
count $((2 * (6 * 3 - 3))) '<td style="background:#' storm/report.html
last=$(grep '"event":"gates"' storm/metrics.jsonl | tail -n 1 | sed -E 's/.*"gate":\[([0-9.]+),.*/\1/')
has storm/report.html ">$(LC_ALL=C printf %.3f "$last")</td><td></td><td></td></tr>"
for tag in 'good">start' 'good">resume' 'good">finish' 'asked">signal' 'warning">alert' 'warning">spike' 'warning">skip' 'warning">slow_rank' \
    'bad">checkpoint_failed' 'plain">comet_sighted'; do
    has storm/report.html "<span class=\"tag $tag</span>"
done
has storm/report.html 'loss 9.4, 120 deviations from the mean 2.05: rewind to step 1400'
has storm/report.html '1 damaged checkpoint left out'
has storm/report.html 'brightness 2.5, tail yes'
has storm/report.html 'no space left &lt;on&gt; &quot;device&quot; &amp; so on'
has storm/report.html '<span>Restarts</span><b>2</b>'
has storm/report.html '<b>2 × 2 × 2</b>'
has storm/report.html '<td class="n"><span class="tag bad">1</span></td>'

# Steps done again count once, one that was skipped does not: their seconds over the wall clock, by hand.
goodput=$(LC_ALL=C awk '
    function value(key) { return match($0, "\"" key "\":[-0-9.e]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : 0 }
    { now = value("time"); if (NR == 1) first = now }
    /"event":"step"/ { seconds[value("step")] = value("step_seconds") }
    /"action":"rewind"/ { for (s in seconds) if (s + 0 >= value("to_step")) delete seconds[s] }
    END { for (s in seconds) sum += seconds[s]; printf "%.1f%%", 100 * sum / (now - first) }' storm/metrics.jsonl)
has storm/report.html "<span>Goodput</span><b>$goodput</b>"

# ---- several

made calm -v steps=2000 -v layers=6 -v distances=3 -v seed=2 -v lr=0.0008 -v calm=1
made 'a <b> & "c" run' -v steps=1500 -v layers=6 -v distances=2 -v seed=3 -v lr=0.0003 -v calm=1 -v gates=50
sed 's/^  lr: .*/  lr: 0.0008/; s/^  seed: .*/  seed: 2/' real/config.yaml > calm/config.yaml
sed 's/text.txt/<i>'"'"'x'"'"'<\/i>.txt/' real/config.yaml > 'a <b> & "c" run/config.yaml'
report all.html storm calm 'a <b> & "c" run' --output all.html
has all.html '<h1>3 runs side by side</h1>'
has all.html 'a &lt;b&gt; &amp; &quot;c&quot; run'
hasnt all.html '<b> &'
hasnt all.html '<i>'"'"
count 3 '<th><code>' all.html
has all.html '<th><code>train.lr</code></th><td class="w"><code>0.003</code></td><td class="w"><code>0.0008</code></td>'
has all.html '<th><code>train.seed</code></th>'
has all.html '&lt;i&gt;&#39;x&#39;&lt;/i&gt;.txt'
has all.html 'In calm: no <code>gates</code> events: set <code>train.gate_interval</code>.'
has all.html 'In calm, a &lt;b&gt; &amp; &quot;c&quot; run: memory over time: no <code>monitor</code> event yet: one comes after every <code>monitor.interval</code> steps (0: never).'
count 10 "href='data:image/png;base64," all.html # 2 x 3 of storm, 2 x 2 of the last
cd calm && report report.html ../storm . && cd ..
has calm/report.html '<h1>2 runs side by side</h1>'

# The last run has other data, and holds a part of them out.
has all.html '<tr><th>Best validation loss (not comparable)</th>'
has all.html 'Validation losses of these runs cannot be compared, and which is least says nothing: they were measured differently (<code>data.train</code>).'
has all.html 'cannot be compared: see the <a href="#summary">summary</a>.'
hasnt calm/report.html 'not comparable' # lr and seed differ alone
mkdir short
cp calm/metrics.jsonl short/
sed 's/^  sequence_length: 16/  sequence_length: 8/; s/^  eval_batches: 4/  eval_batches: 0/' real/config.yaml > short/config.yaml
report all.html storm short --output all.html
has all.html '(<code>train.sequence_length</code>, <code>train.eval_batches</code>).'

# Losses over steps, tokens and time; none of tokens where none are told.
count 3 '<div class="view">' storm/report.html
for axis in tokens 'time spent in steps'; do has storm/report.html ">$axis<"; done
has storm/report.html '>120M<' # 2000 steps of 65536 tokens
has storm/report.html '>10 min<' # and of 0.34 seconds and more
has storm/report.html '<input type="radio" name="loss" id="loss0" checked><label for="loss0">over steps</label>'
mkdir untold
sed 's/"tokens":[0-9]*,//' calm/metrics.jsonl > untold/metrics.jsonl
report untold/report.html untold
count 2 '<div class="view">' untold/report.html
hasnt untold/report.html 'over tokens'

# No number of ranks is too long for its tile.
mkdir huge
sed 's/"ranks":8,"data":2/"ranks":8,"data":1e300/' storm/metrics.jsonl > huge/metrics.jsonl
grep -q '"data":1e300' huge/metrics.jsonl || fail 'no number of data ranks was found to replace'
report huge/report.html huge

# Runs whose curves coincide: each curve is narrower than the one that it lies on.
cp -r calm twin
report all.html calm twin --output all.html
for width in 3.60 1.40; do has all.html "stroke-width=\"$width\""; done

# ---- little

mkdir old empty single
printf '%s\n' '{"event":"start","step":0,"steps":3,"parameters":38996,"ranks":1,"backend":"cpu","number":"float32"}' \
    '{"event":"step","step":0,"loss":5.5,"grad_norm":0.66,"lr":0.0006,"tokens":144,"tokens_per_second":918,"step_seconds":0.156}' \
    '{"event":"step","step":1,"loss":5.4,"grad_norm":0.7,"lr":0.0012,"tokens":288,"tokens_per_second":4276,"step_seconds":0.033}' \
    '{"event":"checkpoint","step":2,"seconds":0.187}' > old/metrics.jsonl
printf '{"event":"step","step":2,"lo' >> old/metrics.jsonl # being written just now
report old/report.html old
has old/report.html '<span>Steps</span><b>2</b>'
has old/report.html '<span>Wall time</span><b>unknown</b>'
has old/report.html '<span>Goodput</span><b>unknown</b>'
has old/report.html 'no end told'
has old/report.html 'no time line: the events carry no <code>time</code>'
has old/report.html 'config.yaml is not what this version takes'
: > empty/metrics.jsonl
report empty/report.html empty
has empty/report.html 'no training step has been told yet'
printf '%s\n' '{"event":"step","step":0,"loss":null,"grad_norm":0,"lr":0,"tokens_per_second":0,"step_seconds":0,"time":5}' \
    '{"event":"gates","step":0,"layer":[0],"distance":[1],"gate":[0.5],"contribution":[0],"time":5}' \
    '{"event":"checkpoint","step":0,"seconds":0,"stall_seconds":0,"bytes":0,"asynchronous":false,"time":5}' > single/metrics.jsonl
report single/report.html single
report report.html single empty old

# ---- long: 200 000 steps

made long -v steps=200000 -v layers=4 -v distances=2 -v seed=4 -v lr=0.001 -v monitor=100 -v gates=500
report long/report.html long
[ "$(wc -c < long/report.html)" -lt 1000000 ] || fail "a page of $(wc -c < long/report.html) bytes"
rm long/metrics.jsonl

# ---- noisy: 40 000 alerts, a fault among them; a row for the first and last of each kind, and few marks

mkdir noisy
LC_ALL=C awk 'BEGIN { print "{\"event\":\"start\",\"step\":0,\"time\":1000}"
    for (s = 0; s < 40000; s++) {
        printf "{\"event\":\"step\",\"step\":%d,\"loss\":2,\"grad_norm\":1,\"lr\":1,\"tokens_per_second\":9,\"step_seconds\":1,\"time\":%d}\n", s, 1001 + s
        printf "{\"event\":\"alert\",\"step\":%d,\"words\":\"alert %d\",\"time\":%d}\n", s, s, 1001 + s
        if (s == 20000) printf "{\"event\":\"replica_mismatch\",\"step\":%d,\"rank\":3,\"time\":%d}\n", s, 1001 + s
        if (s % 10000 == 0) printf "{\"event\":\"checkpoint\",\"step\":%d,\"seconds\":1,\"asynchronous\":%s,\"time\":%d}\n", s, s < 30000 ? "true" : "false", 1001 + s
    } }' > noisy/metrics.jsonl
report noisy/report.html noisy
[ "$(wc -c < noisy/report.html)" -lt 450000 ] || fail "a page of $(wc -c < noisy/report.html) bytes"
count 40 'class="tag warning">alert</span></td>' noisy/report.html
has noisy/report.html 'class="tag warning">40000 alert</span>'
has noisy/report.html 'class="tag bad">replica_mismatch</span></td>'
for words in 'alert 0' 'alert 14' 'alert 39975' 'alert 39999'; do has noisy/report.html ">$words</td>"; done
for words in 'alert 15' 'alert 39974'; do hasnt noisy/report.html ">$words</td>"; done
has noisy/report.html '>19986 more events, which metrics.jsonl has<'
has noisy/report.html '>19974 more events, which metrics.jsonl has<'
has noisy/report.html '<td>3 beside training, 1 with training waiting</td>'
rm noisy/metrics.jsonl

# ---- how runs end: NAME, EVENTS, what the page's tile says

ended() { # STATE NOTE EVENT…
    local state=$1 note=$2
    shift 2
    mkdir -p ends
    { cat old/metrics.jsonl.whole; printf '%s\n' "$@"; } > ends/metrics.jsonl
    report ends/report.html ends
    has ends/report.html "<span>State</span><b>$state</b><span>$note</span>"
}
head -n 4 old/metrics.jsonl > old/metrics.jsonl.whole
stop='{"event":"stop","step":2,"reason":"stop file"}'
ended finished '' '{"event":"finish","step":2,"seconds":3}' # older versions tell no end
ended stopped 'stop file' "$stop"
ended finished '' '{"event":"finish","step":2,"seconds":3}' '{"event":"end","step":2,"status":0,"reason":""}'
ended stopped 'stop file' "$stop" '{"event":"end","step":2,"status":3,"reason":"stopped by a file after 2 of 3 steps"}'
ended 'not saved' 'status 4, not saved: &lt;no&gt; space' "$stop" '{"event":"end","step":2,"status":4,"reason":"<no> space"}'
ended diverged 'status 5, diverged: the loss' '{"event":"end","step":2,"status":5,"reason":"the loss"}'
ended failed 'status 1, failed: a rank' '{"event":"end","step":2,"status":1,"reason":"a rank"}'
ended 'bad input' 'status 2, bad input: a token' '{"event":"end","step":2,"status":2,"reason":"a token"}'
has ends/report.html 'class="tag bad">end</span>'
ended 'no end told' 'still running, or ended at once' '{"event":"end","step":2,"status":1,"reason":"a rank"}' '{"event":"resume","step":2}'
rm old/metrics.jsonl.whole

# ---- bad input

refused_report 'RUN' # none given
refused_report 'nowhere is not a run directory: nowhere/metrics.jsonl: No such file or directory' nowhere
refused_report 'small.yaml is not a run directory' small.yaml
refused_report 'unknown option --outptu; did you mean --output?' storm --outptu x
refused_report "--output is ''" storm --output ''
refused_report '--output calm is a directory' storm --output calm
refused_report 'nowhere/x.html' storm --output nowhere/x.html
cp -r old bad
sed -i '2s/.$//' bad/metrics.jsonl
cp old/report.html bad/report.html
refused_report 'bad/metrics.jsonl, line 2 is not JSON: ' bad
cmp -s old/report.html bad/report.html || fail "a failure changed the page"
refused_report 'bad/metrics.jsonl, line 2 is not JSON: ' storm bad
expect 2 timeout 400 env PATH=/nowhere "$GDN" report storm > out 2> err
has err 'gnuplot is missing'
[ -z "$(find . -name '.*report*' -o -name '*.partial*')" ] || fail "left behind: $(find . -name '.*report*')"
expect 0 "$GDN" report --help > out
has out 'train.gate_interval'
has out 'gdn report runs/plain runs/gdn --output compare.html'
"$GDN" --help | grep -q '^  gdn report ' || fail "gdn --help does not list it"
