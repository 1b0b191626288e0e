#!/usr/bin/env bash
# Makes the manual pages out of what the program says of itself: manual.sh GDN DIRECTORY VERSION
#
#   gdn.1           gdn --help
#   gdn-COMMAND.1   gdn COMMAND --help, and that of each of its own commands (gdn data write, …)
#   gdn-config.5    gdn train --help-config
#
# The help is laid out for a terminal of 80 columns already, so its lines stay as they are, and little is put before them.
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: manual.sh GDN DIRECTORY VERSION" >&2; exit 2; }
gdn=$1 directory=$2 version=$3
mkdir -p "$directory"

head_of() { # PAGE SECTION SUMMARY
    # The date is left out: the same program makes the same pages.
    printf '.TH "%s" "%s" "" "gdn %s" "gdn manual"\n.nh\n.SH NAME\n%s \\- %s\n' "${1^^}" "$2" "$version" "$1" "$3"
}

# Text as it is: dashes that can be copied, and no line that looks like a request.
verbatim() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/'/\\\\(aq/g" -e 's/`/\\(ga/g' -e 's/^\./\\\&./'; }
as_is() { printf '.in 1n\n.nf\n%s\n.fi\n.in\n' "$(verbatim)"; }

# A command's help: the usage line, what it does, its options, and the rest.
help_of() { # WORDS…
    local text part
    text=$("$gdn" "$@" --help)
    part() { awk -v want="$1" '
        /^Usage: / { part = "usage" }
        part == "what" && /^ +(-[a-zA-Z], )?--[a-z]/ { part = "options" }
        part == "options" && /^[^ ]/ { part = "rest" }
        part == want { sub(/^Usage: /, ""); print }
        part == "usage" && !/^ +or:/ { part = "what" }' <<< "$text"; }
    for part in usage what options rest; do
        [ -n "$(part $part)" ] || continue
        case $part in
            usage) echo ".SH SYNOPSIS" ;;
            what) echo ".SH DESCRIPTION" ;;
            options) echo ".SH OPTIONS" ;;
            rest) echo ".SH DETAILS" ;;
        esac
        part $part | as_is
    done
}

# The names in "Usage: gdn data write|show|sample": a command that consists of commands.
parts_of() { "$gdn" "$1" --help | sed -nE '1s/^Usage: gdn [a-z]+ ([a-z]+(\|[a-z]+)+) .*/\1/p' | tr '|' ' '; }

overview=$("$gdn" --help)
commands=$(sed -nE 's/^  gdn ([a-z]+)  +[^ ].*/\1/p' <<< "$overview")
[ -n "$commands" ] || { echo "manual.sh: $gdn --help names no commands" >&2; exit 1; }

{
    head_of gdn 1 "trains language models with gated delta connections"
    echo ".SH SYNOPSIS"
    sed -n '1s/^Usage: //p' <<< "$overview" | as_is
    echo ".SH DESCRIPTION"
    sed '1,2d' <<< "$overview" | as_is
    echo ".SH SEE ALSO"
    for command in $commands; do printf '.BR gdn\\-%s (1),\n' "$command"; done
    printf '.BR gdn\\-config (5)\n'
} > "$directory/gdn.1"

for command in $commands; do
    {
        head_of "gdn-$command" 1 "$(sed -nE "/^  gdn $command  +/{s///p;q}" <<< "$overview")"
        help_of "$command"
        for name in $(parts_of "$command"); do
            echo ".SH GDN ${command^^} ${name^^}"
            "$gdn" "$command" "$name" --help | as_is
        done
        printf '.SH SEE ALSO\n.BR gdn (1),\n.BR gdn\\-config (5)\n'
    } > "$directory/gdn-$command.1"
done

{
    head_of gdn-config 5 "the keys of a configuration of gdn"
    echo ".SH DESCRIPTION"
    "$gdn" train --help-config | as_is
    printf '.SH SEE ALSO\n.BR gdn (1),\n.BR gdn\\-train (1)\n'
} > "$directory/gdn-config.5"
