# The ways in which shell scripts run pi, which they find on their PATH.

tell() { # the exit code, and how many ends of a run there are in what pi said
  printf '{"what": "ran", "code": %d, "ends": %d}\n' "$1" "$(printf '%s\n' "$2" | grep -c '"type":"agent_end"')"
}

case $1 in
  captures)
    said=$(pi --mode json -p hi)
    tell $? "$said"
    ;;
  limits)
    said=$(timeout 2 pi --mode json -p hi)
    tell $? "$said"
    ;;
  pipes)
    said=$(pi --mode json -p hi | cat)
    tell $? "$said"
    ;;
  stops) # as soon as the answer is there
    mkfifo "$HOME/said"
    pi --mode json -p hi >"$HOME/said" &
    said=$(grep -m 1 '"type":"agent_end"' "$HOME/said")
    rm "$HOME/said"
    kill $!
    wait $!
    tell $? "$said"
    ;;
esac
