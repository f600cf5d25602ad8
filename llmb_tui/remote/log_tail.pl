# What log_tail.sh does, in one process that starts no other while it waits: the log $path from byte $at on, once and
# compressed by the program $how or, where that is `plain`, as it comes, in frames. It ends with its stdin, and where that
# says nothing for $silence seconds: who reads here says now and then that it still does.
use strict;
my ($path, $inode, $at, $how, $overlap, $most, $silence) = @ARGV;
my ($look_s, $rest_s, $slice) = (0.1, 0.4, 1 << 14);
my ($packer, $stdin) = (0, '');
vec($stdin, 0, 1) = 1;
# A person's PERL_UNICODE or PERL5OPT may make characters of what is read and written; here all are bytes.
binmode $_ for *STDIN, *STDOUT;
$SIG{ALRM} = sub { exit 1 };
END { kill 'KILL', $packer if $packer }
alarm $silence;

# Wait, but not while somebody speaks.
sub heed {
    my $ready = $stdin;
    return unless select($ready, undef, undef, $_[0]) > 0;
    sysread(STDIN, my $said, 4096) or exit;
    alarm $silence;
}

# In slices: on a slow line each takes its time.
sub put {
    my ($data) = @_;
    my $done = 0;
    while ($done < length $data) {
        heed(0);
        $done += syswrite(STDOUT, $data, $slice, $done) || exit 1;
    }
}

# So many bytes of a file, fewer only where it ends.
sub take {
    my ($file, $count) = @_;
    my $data = '';
    while (length $data < $count) {
        sysread($file, $data, $count - length $data, length $data) or last;
    }
    return $data;
}

if ($how ne 'plain') {
    open(my $log, '<&=:raw', 4) or exit 1;
    sysseek($log, $at, 0);
    defined($packer = fork) or exit 1;
    if (!$packer) {
        open(STDIN, '<&', $log) and exec $how, '-q', '-c', '-1';
        exit 1;
    }
    heed($look_s) until waitpid($packer, 1);
    $packer = 0;
    exit;
}
for (my $looks = 0; my @now = stat $path; $looks++) {
    my $size = $now[7];
    last if $now[1] ne $inode or $size < $at;
    if ($size == $at) {
        # Whether it may still be read only opening it says; NFS then asks its server how long it is, too.
        $looks % 10 or open(my $log, '<:raw', $path) or last;
        heed($look_s);
        next;
    }
    my $from = $at > $overlap ? $at - $overlap : 0;
    my $to = $size - $at > $most ? $at + $most : $size;
    open(my $log, '<:raw', $path) or last;
    sysseek($log, $from, 0);
    my $data = take($log, $to - $from);
    last if length $data < $to - $from;
    put('+' . length($data) . "\n$data-\n");
    $at = $to;
    heed($rest_s) if $to == $size;
}
put("!\n");
