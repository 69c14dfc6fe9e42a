"""Completion in shells: click's, with a value behind ``=``, several values behind one option, and file names
beside other words."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete, add_completion_class

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' response completion type value files=
    local word=${COMP_WORDS[COMP_CWORD]}
    [[ $word == = ]] && word=
    COMPREPLY=()
    response=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete "$1")
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        case $type in
            plain) COMPREPLY+=("$value") ;;
            *) files=1 ;;
        esac
    done
    if [[ $files && ${#COMPREPLY[@]} == 0 ]]; then
        compopt -o default
    elif [[ $files ]]; then
        compopt -o filenames
        COMPREPLY+=($(compgen -f -- "$word"))
    fi
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a words_only words_with_help response any
    local type key help
    (( ! $+commands[%(prog_name)s] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) %(complete_var)s=zsh_complete %(prog_name)s)}")
    # Words match in either case, unless an option and = stand before them.
    any=(-U)
    [[ $PREFIX == --*=* ]] && compset -P 1 '*=' && any=()

    for type key help in ${response}; do
        if [[ "$type" != "plain" ]]; then
            _path_files
        elif [[ "$help" == "_" ]]; then
            words_only+=("$key")
        else
            words_with_help+=("$key":"$help")
        fi
    done
    (( $#words_with_help )) && _describe -V unsorted words_with_help $any
    (( $#words_only )) && compadd $any -V unsorted -a words_only
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

_FISH = """\
function %(complete_func)s
    set -l prefix (string match -r -- '^--[a-z-]+=' (commandline -t))
    for completion in (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) \
COMP_CWORD=(commandline -t) %(prog_name)s)
        set -l parts (string split -m 1 -- "," $completion)
        switch "$parts[1]"
            case plain
                echo "$prefix$parts[2]"
            case '*'
                for path in (__fish_complete_path $parts[2])
                    echo "$prefix$path"
                end
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


def _split(words: tuple[list[str], str]) -> tuple[list[str], str]:
    """The words before the one to complete, and that one: what is behind ``=`` is a word, as bash has it, which makes
    one of the ``=`` too."""
    args, incomplete = words
    args = [word for word in args if word != "="]
    if incomplete.startswith("--") and "=" in incomplete:
        option, _, incomplete = incomplete.partition("=")
        args.append(option)
    return args, incomplete


class _Bash(BashComplete):
    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        return _split(super().get_completion_args())


class _Zsh(ZshComplete):
    source_template = _ZSH

    def get_completion_args(self) -> tuple[list[str], str]:
        return _split(super().get_completion_args())


class _Fish(FishComplete):
    source_template = _FISH

    def get_completion_args(self) -> tuple[list[str], str]:
        return _split(super().get_completion_args())


def install() -> None:
    """Let click use these."""
    for shell in (_Bash, _Zsh, _Fish):
        add_completion_class(shell)


def complete_paths(command: click.Command) -> click.Command:
    """A command, changed for completion alone: where its help says FILE, DIR or the like, it completes file names."""
    for param in command.params:
        said = f"{param.metavar or param.name}".upper()
        if any(said.strip("[].").startswith(word) for word in ("FILE", "DIR", "PATH", "PROGRAM")):
            param.type = click.Path()
    return command
