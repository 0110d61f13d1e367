# A child may be silent for 180 s; it answers after the seconds that are given. bash has no finer clock than EPOCHREALTIME.
begin=${EPOCHREALTIME/./}
exec 3< <(sleep "$1"; echo answer; exec sleep 1000)
if read -r -t 180 -u 3; then seen=data; else seen=timeout; fi
echo "$seen $(((${EPOCHREALTIME/./} - begin) / 1000))"
kill -KILL $!
