# What arrows.sh has listed, held against the table. `part` says what the lines are: of the table, of sources, of tests' sources, of grep
# for includes, of objects with their sources, of nm.

function tell(text) { print "FAILED: " text; bad = 1 }

function folder(path) { sub(/\/[^\/]*$/, "", path); return path }

# x.c, x.h and x.cu are one module.
function module(path) { sub(/\.[a-z]+$/, "", path); return path }

function without_dots(path) {
    path = "/" path
    while (sub(/\/\.\//, "/", path) || sub(/\/[^\/.]+\/\.\.\//, "/", path)) continue
    return substr(path, 2)
}

# The file that `from` means by `name`, "" for another's: from the top, beside it, or (in quotes) the only one of that name.
function find_included(from, name, quoted,    near) {
    if (name in known) return name
    near = without_dots(folder(from) "/" name)
    if (near in known) return near
    if (quoted && by_name[name] && by_name[name] != "several") return by_name[name]
    return ""
}

# One use of `to` by `from`; `why` says which, naming both. `kind` is "include" or "link".
function arrow(kind, from, to, why,    a, b) {
    a = folder(from); b = folder(to)
    if (a != b) {
        used[a, b] = 1
        if (!((a, b) in permitted)) tell(why ": " a " may not use " b)
    }
    a = module(from); b = module(to)
    if (a == b || (kind, a, b) in reason) return
    reason[kind, a, b] = why
    next_to[kind, a] = next_to[kind, a] " " b
    if (!((kind, a) in seen_node)) { seen_node[kind, a] = 1; nodes[kind, ++count[kind]] = a }
}

# Tarjan's strongly connected components of one kind's graph, from node a.
function visit(kind, a,    list, n, i, b, members, size) {
    order[a] = low[a] = ++number; stack[++height] = a; on_stack[a] = 1
    n = split(next_to[kind, a], list, " ")
    for (i = 1; i <= n; i++) {
        b = list[i]
        if (!(b in order)) { visit(kind, b); if (low[b] < low[a]) low[a] = low[b] }
        else if (on_stack[b] && order[b] < low[a]) low[a] = order[b]
    }
    if (low[a] != order[a]) return
    size = 0
    do { b = stack[height--]; on_stack[b] = 0; members[++size] = b } while (b != a)
    if (size > 1) tell_circle(kind, members, size)
}

function tell_circle(kind, members, size,    i, j, text) {
    for (i = 2; i <= size; i++) # by name
        for (j = i; j > 1 && members[j] < members[j - 1]; j--) { text = members[j]; members[j] = members[j - 1]; members[j - 1] = text }
    text = kind
    for (i = 1; i <= size; i++) text = text " " members[i]
    tell("a circle, " text)
    for (i = 1; i <= size; i++)
        for (j = 1; j <= size; j++)
            if ((kind, members[i], members[j]) in reason) print "    " reason[kind, members[i], members[j]]
}

function circles(kind,    i) {
    split("", order); split("", low); split("", on_stack); number = height = 0
    for (i = 1; i <= count[kind]; i++) if (!(nodes[kind, i] in order)) visit(kind, nodes[kind, i])
}

part == "table" {
    sub(/#.*/, "")
    if (NF == 0) next
    if ($1 == "stand-ins:") { for (i = 2; i <= NF; i++) stand_in[$i] = 1; next }
    if ($1 !~ /:$/) { tell("the table has a line that says nothing: " $0); next }
    a = substr($1, 1, length($1) - 1)
    if (a in listed) tell("the table has " a " twice")
    listed[a] = 1
    for (i = 2; i <= NF; i++) {
        b = $i
        permitted[a, b] = 1
        reason["table", a, b] = a " may use " b
        next_to["table", a] = next_to["table", a] " " b
        pair[++pairs] = a SUBSEP b
    }
    nodes["table", ++count["table"]] = a
}

part == "files" || part == "tests" { known[$0] = 1 }

part == "files" {
    present[folder($0)] = 1
    if ($0 ~ /\.c$/) sources[$0] = 1
    name = $0; sub(/.*\//, "", name)
    by_name[name] = by_name[name] ? "several" : $0
}

part == "includes" { # FILE:LINE:#include "NAME"
    from = $0; sub(/:.*/, "", from)
    name = $0; sub(/^[^"<]*["<]/, "", name); sub(/[">].*/, "", name)
    to = find_included(from, name, index($0, "\"") > 0)
    if (to ~ /^tests\//) tell(from " includes " to ", a test's")
    else if (to && to != from) arrow("include", from, to, from " includes " to)
}

part == "objects" { split($0, two, "\t"); source_of[two[1]] = two[2]; built[two[2]] = 1 }

part == "symbols" { # OBJECT: SYMBOL TYPE …; weak ones are C++'s inline functions, which no file owns
    object = $1; sub(/:$/, "", object)
    if (!(object in source_of)) next
    source = source_of[object]
    if ($3 == "U") { if (!((source, $2) in needs)) { needs[source, $2] = 1; user[++uses] = source; wanted[uses] = $2 } }
    else if ($3 ~ /^[TDBRCGSi]$/) owner[$2] = source
}

END {
    for (i = 1; i <= uses; i++) {
        if (!(wanted[i] in owner)) continue
        from = user[i]; to = owner[wanted[i]]
        if (to != from && (!(folder(to) in stand_in) || folder(to) == folder(from))) arrow("link", from, to, from " uses " wanted[i] " of " to)
    }
    for (a in present) if (!(a in listed)) tell("the table lacks " a)
    for (a in listed) if (!(a in present)) tell("the table has " a ", where no source is")
    if (linked) {
        for (a in sources) if (!(a in built)) tell(a " has no object as new as it is: build first")
        for (i = 1; i <= pairs; i++)
            if (!(pair[i] in used)) { split(pair[i], two, SUBSEP); tell("the table lets " two[1] " use " two[2] ", which it does not") }
    }
    circles("table"); circles("include"); circles("link")
    printf "%d folders, %d permitted arrows; %d files include others, %d use symbols of others\n", \
        count["table"], pairs, count["include"], count["link"]
    exit bad
}
