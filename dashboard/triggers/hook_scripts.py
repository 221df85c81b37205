"""The git hooks, as POSIX sh. They need git, openssl and curl, and never delay or break a commit."""

from __future__ import annotations

MARKER = "paceline-hook"
EXISTING_SUFFIX = ".before-paceline"

HEADER = f"""\
#!/bin/sh
# {MARKER}: written by `manage.py install_hook`; run that again to renew it.
# Tells Paceline of new commits in the background: nothing here delays or breaks what git does.
"""

# The hook that was here before runs first, with the same arguments and input.
# One script for post-commit, post-merge and post-rewrite: git runs the first for `git commit` alone.
IN_WORK_TREE = (
    HEADER
    + f"""\
if [ -x "$0{EXISTING_SUFFIX}" ]; then "$0{EXISTING_SUFFIX}" "$@"; fi
folder=$(git rev-parse --git-common-dir)/paceline
case ${{0##*/}}:$1 in
    post-merge:1) exit 0 ;;  # A squash: nothing is committed yet.
    post-rewrite:amend) exit 0 ;;  # post-commit has reported it.
esac
# A detached HEAD, as in the middle of a rebase, is on no branch.
ref=$(git symbolic-ref --quiet HEAD) || exit 0
commit=$(git rev-parse HEAD) || exit 0
sh "$folder/notify" "$ref" "$commit" "" </dev/null >"$folder/last" 2>&1 &
exit 0
"""
)

POST_RECEIVE = (
    HEADER
    + f"""\
updates=$(cat)
if [ -x "$0{EXISTING_SUFFIX}" ]; then printf '%s\\n' "$updates" | "$0{EXISTING_SUFFIX}" "$@"; fi
folder=$(git rev-parse --git-common-dir)/paceline
printf '%s\\n' "$updates" | while read -r before commit ref; do
    case $ref in refs/heads/*) ;; refs/tags/*) before= ;; *) continue ;; esac
    # Only zeros: the branch or tag was deleted, or before: it is new.
    case $commit in *[!0]*) ;; *) continue ;; esac
    case $before in *[!0]*) git merge-base --is-ancestor "$before" "$commit" || before= ;; *) before= ;; esac
    sh "$folder/notify" "$ref" "$commit" "$before" </dev/null
done >"$folder/last" 2>&1 &
exit 0
"""
)

NOTIFY = (
    HEADER
    + """\
# usage: notify REF COMMIT BEFORE
trap '' HUP
folder=$(dirname "$0")
for tool in openssl curl; do
    command -v $tool >/dev/null || { echo "Paceline isn't notified: $tool is not on the PATH."; exit 0; }
done
case $1 in *'"'*) echo "Paceline isn't notified of $1: its name can't be sent."; exit 0 ;; esac
body=$(printf '{"delivery":"%s","timestamp":%s,"ref":"%s","commit":"%s","before":"%s"}' \\
    "$(openssl rand -hex 16)" "$(date +%s)" "$1" "$2" "$3")
# HMAC-SHA256 in its two steps. The files hold the key's inner and outer block, so that the key is never an
# argument, which every user of this machine could read.
digest() { openssl dgst -sha256 "$@"; }
signature=$({
    cat "$folder/outer"
    { cat "$folder/inner"; printf '%s' "$body"; } | digest -binary
} | digest -r | cut -d ' ' -f 1)
printf '%s' "$body" | curl --silent --show-error --max-time 20 {{options}} \\
    --retry 5 --retry-delay 2 --retry-connrefused \\
    --header 'Content-Type: application/json' --header "Paceline-Signature: sha256=$signature" \\
    --data-binary @- {{url}}
echo
exit 0
"""
)
