# sh supervise.sh LIMIT GRACE AGENT...: a limit on the whole run; KILL comes so long after TERM.
limit=$1 grace=$2
shift 2
exec timeout --kill-after="$grace" "$limit" "$@"
