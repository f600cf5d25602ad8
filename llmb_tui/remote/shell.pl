# Run read-only commands, one after the other, so that each costs one round trip and no login. A request is a line LENGTH
# and that many bytes: the arguments, separated by NUL. The output of a command is sent in frames as it arrives: a line
# `$mark 1 LENGTH` and that many bytes of its stdout, the same with 2 for its stderr, and after the end of command and
# output a line `$mark = STATUS`. `$mark !` is the very first line.
# It ends with its stdin, and after $silence seconds without input; if idle it first prints `$mark .`, and later input is
# not run. A running command is killed with it, together with its process group.
use strict;
my ($mark, $silence) = @ARGV;
my ($asked, $runs) = ('', 0);
binmode $_ for *STDIN, *STDOUT;
$SIG{ALRM} = sub { say_('.', 0) unless $runs; exit 1 };
$SIG{PIPE} = $SIG{HUP} = $SIG{TERM} = sub { exit 1 };
END { kill 'KILL', -$runs if $runs }

sub say_ {
    my ($kind, $number, $data) = @_;
    my ($frame, $done) = ("$mark $kind $number\n" . ($data // ''), 0);
    $done += syswrite(STDOUT, $frame, length $frame, $done) // exit 1 while $done < length $frame;
}

# Returns the files that have data, after this time at most; stdin is watched as well.
sub ready {
    my ($most_s, @files) = @_;
    my $ready = '';
    vec($ready, fileno $_, 1) = 1 for *STDIN, @files;
    return unless select($ready, undef, undef, $most_s) > 0;
    if (vec($ready, fileno STDIN, 1)) {
        sysread(STDIN, $asked, 1 << 16, length $asked) or exit;
        alarm $silence;
    }
    return grep { vec($ready, fileno $_, 1) } @files;
}

sub run {
    my @argv = @_;
    pipe(my $out, my $to_out) && pipe(my $err, my $to_err) && defined($runs = fork) or exit 1;
    if (!$runs) {
        setpgrp;
        chdir or chdir '/';
        open STDIN, '<', '/dev/null' and open STDOUT, '>&', $to_out and open STDERR, '>&', $to_err or exit 126;
        exec { $argv[0] } @argv or print STDERR "$argv[0]: $!\n";
        exit($! == 2 ? 127 : 126);
    }
    # The user's PERL_UNICODE or PERL5OPT may decode what is read; the input is bytes.
    binmode $_ for $out, $err;
    close $_ for $to_out, $to_err;
    my @files = ($out, $err);
    while (@files) {
        for my $file (ready(undef, @files)) {
            if (sysread($file, my $data, 1 << 14)) {
                say_($file == $out ? 1 : 2, length $data, $data);
            } else {
                @files = grep { $_ != $file } @files;
            }
        }
    }
    # The command may end a moment after its outputs, or continue.
    for (my $pause = 0.001; !waitpid($runs, 1); $pause *= 2) { ready($pause < 0.1 ? $pause : 0.1) }
    $runs = 0;
    say_('=', $? & 127 ? -1 : $? >> 8);
}

alarm $silence;
say_('!', 0);
while (1) {
    $asked =~ s/^\n+//;
    if ($asked =~ /^(\d+)\n/ && length $asked >= $+[0] + $1) {
        my $request = substr($asked, $+[0], $1);
        substr($asked, 0, $+[0] + $1) = '';
        run(split /\0/, $request, -1);
    } else {
        ready(undef);
    }
}
