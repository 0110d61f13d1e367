# A supervisor with hard-coded limits: 180 s without a line, 5 s between TERM and KILL.
coproc AGENT { exec setsid "$@" </dev/null; }
agent=$AGENT_PID output=${AGENT[0]}
over=0
until ((over)); do read -r -t 180 -u "$output" || over=$?; done
if ((over > 128)); then
  kill -TERM -- "-$agent"
  read -r -d '' -t 5 -u "$output"
  (($? > 128)) && kill -KILL -- "-$agent"
  { wait "$agent"; } 2>/dev/null # which names the pid of who was killed
  exit 124
fi
wait "$agent"
