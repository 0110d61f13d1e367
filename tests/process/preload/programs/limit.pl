# A child may be silent for 180 s; it answers after the seconds that are given. An alarm ends the reading.
use Time::HiRes qw(time);
my $begin = time;
my $pid = open my $child, "-|", "exec sh -c 'sleep $ARGV[0]; echo answer; exec sleep 1000'" or die;
my $seen = eval { local $SIG{ALRM} = sub { die "timeout\n" }; alarm 180; <$child>; alarm 0; "data" } || "timeout";
printf "%s %.0f\n", $seen, (time - $begin) * 1000;
kill KILL => $pid;
