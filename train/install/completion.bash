# shellcheck shell=bash
# Completion of gdn's command line in bash: commands, their options, the keys of --set and the words that a key may have. Everything comes
# from the help of the very program that is being typed, so it is never behind it. Installed programs have it at once where the
# package bash-completion is; else, and for a build: `. train/install/completion.bash`, then `build/gdn tr<Tab>`.

declare -gA _gdn_helps # (global: bash-completion reads this file in a function) what a program answered, by its path, time of change and words

_gdn_help() { # PROGRAM [WORD …]: the text of --help, in $_gdn_text
    local key
    key="$1 $(stat -Lc %Y -- "$(type -P -- "$1")" 2> /dev/null) ${*:2}"
    if [ -z "${_gdn_helps[$key]:-}" ]; then _gdn_helps[$key]=$("$@" 2> /dev/null < /dev/null); fi
    _gdn_text=${_gdn_helps[$key]}
}

# All of them that begin with what has been typed; bash replaces only what stands behind the last `=`, if that separates words.
_gdn_offer() { # TYPED CANDIDATE …
    local typed=$1 candidate behind=
    shift
    if [[ $COMP_WORDBREAKS == *=* && $typed == *=* ]]; then behind=${typed%=*}=; fi
    for candidate in "$@"; do
        if [[ $candidate == "$typed"* ]]; then COMPREPLY+=("${candidate#"$behind"}"); fi
    done
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2> /dev/null; fi
}

# KEY=VALUE: keys with their `=`, and behind it the words that the key may have.
_gdn_setting() { # PROGRAM TYPED PREFIX (`--set=` where that is part of the same word)
    local words
    local -a candidates
    _gdn_help "$1" train --help-config
    if [[ $2 == *=* ]]; then
        words=$(awk -v key="${2%%=*}:" '$1 == key { getline; print; exit }' <<< "$_gdn_text")
        # "cosine, linear or wsd", "true or false"; other lines tell of numbers and lists
        [[ $words =~ ^\ +[a-z0-9_]+(,\ [a-z0-9_]+)*\ or\ [a-z0-9_]+$ ]] || return 0
        words=${words//,/}
        # shellcheck disable=SC2206
        candidates=(${words/ or / })
        candidates=("${candidates[@]/#/${2%%=*}=}")
    else
        mapfile -t candidates < <(sed -nE 's/^([a-z_]+(\.[a-z0-9_]+)*): .*/\1=/p' <<< "$_gdn_text")
    fi
    _gdn_offer "$3$2" "${candidates[@]/#/$3}"
}

_gdn() {
    local line=${COMP_LINE:0:COMP_POINT} program=${COMP_WORDS[0]} typed='' before words _gdn_text
    local -a word candidates
    COMPREPLY=()
    program=${program/#\~/$HOME}
    read -ra word <<< "$line" # without bash's own cuts at `=` and `:`
    if [[ $line != *[[:space:]] ]]; then
        typed=${word[-1]}
        unset 'word[-1]'
    fi
    before=${word[-1]:-}

    # The command so far: one word, or two where the first consists of commands.
    local -a command=()
    if [ ${#word[@]} -gt 1 ]; then
        command=("${word[1]}")
        _gdn_help "$program" "${word[1]}" --help
        words=$(sed -nE '1s/^Usage: gdn [a-z]+ ([a-z]+(\|[a-z]+)+) .*/\1/p' <<< "$_gdn_text")
        if [ -n "$words" ]; then
            if [ ${#word[@]} -eq 2 ]; then
                IFS='|' read -ra candidates <<< "$words"
                _gdn_offer "$typed" "${candidates[@]}" --help
                return
            fi
            command+=("${word[2]}")
        fi
    else
        _gdn_help "$program" --help
        mapfile -t candidates < <(sed -nE 's/^  gdn ([a-z]+)  +[^ ].*/\1/p' <<< "$_gdn_text")
        _gdn_offer "$typed" "${candidates[@]}" --help --version
        return
    fi

    if [ "$before" = --set ] || [ "$before" = --resume-with ]; then _gdn_setting "$program" "$typed" ''; return; fi
    case $typed in
        --set=* | --resume-with=*) _gdn_setting "$program" "${typed#*=}" "${typed%%=*}="; return ;;
    esac
    _gdn_help "$program" "${command[@]}" --help
    # "--resume=auto|none|PATH": the words in small letters
    case $typed in
        --*=*) before=${typed%%=*} ;;
    esac
    words=
    if [[ $before =~ ^--[a-z-]+$ ]]; then
        words=$(sed -nE "s/^ +(-[a-zA-Z], )?$before=([^ ]*\|[^ ]*).*/\2/p" <<< "$_gdn_text" | tr '|' '\n' | grep -E '^[a-z0-9]+$')
    fi
    if [ -n "$words" ]; then
        mapfile -t candidates <<< "$words"
        if [[ $typed == --*=* ]]; then candidates=("${candidates[@]/#/$before=}"); fi
        _gdn_offer "$typed" "${candidates[@]}"
    elif [[ $typed == -* && $typed != *=* ]]; then
        # Those with a value end in `=`
        mapfile -t candidates < <(sed -nE 's/^ +(-[a-zA-Z], )?(--[a-z-]+=?).*/\2/p' <<< "$_gdn_text" | sort -u)
        _gdn_offer "$typed" "${candidates[@]}"
    fi
    # Anything else is a file, which bash completes by itself.
}

complete -o default -F _gdn gdn
