# Runs commands that only look, one after the other, so that each costs one round trip and no login. A request is a line
# LENGTH and so many bytes: the arguments, with a NUL between them. What a command says comes in frames as it says it:
# a line `$mark 1 LENGTH` and so many bytes of its stdout, the same with 2 of its stderr, and when it and they have ended
# a line `$mark = STATUS`. `$mark !` is the first line of all.
# It ends with its stdin, and where that says nothing for $silence seconds; while nothing runs it says `$mark .` before,
# and what comes later is not run. What runs is killed with it, and all that it started in its process group.
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

# Those of the files that have something, after so long at most; stdin is heard besides.
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
    # A person's PERL_UNICODE or PERL5OPT may make characters of what is read; what comes is bytes.
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
    # It may end a moment after its outputs, or go on.
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
