# Completion of nodeagent for bash. The words come from the command itself, and from the running daemon.
#
# It asks as fish does: with the line up to the cursor, which has each word as it was typed. Bash would split one at
# a colon, as in the name of a job.

_nodeagent() {
    local kind word line=${COMP_LINE:0:COMP_POINT} before=
    local begun=${line##*[[:space:]]}
    local value=${begun#--*=}
    # Bash puts the answer in the place of what stands behind the colon.
    [[ $COMP_WORDBREAKS == *:* ]] && before=${value%"${value##*:}"}
    COMPREPLY=()
    while IFS=, read -r kind word; do
        case $kind in
        plain)
            word=${word%%$'\t'*}
            COMPREPLY+=("${word#"$before"}")
            ;;
        dir) compopt -o dirnames ;;
        file) compopt -o default ;;
        esac
    done < <(env COMP_WORDS="$line" COMP_CWORD="$begun" _NODEAGENT_COMPLETE=fish_complete "$1" 2>/dev/null)
}

complete -o nosort -F _nodeagent nodeagent
