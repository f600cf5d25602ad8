# The work of log_tail.sh in one process, which starts no other while it waits: the log $path from byte $at on, once and
# compressed by the program $how or, if that is `plain`, as it grows, in frames. It ends with its stdin, and after $silence
# seconds without input: a reader sends a sign of life now and then.
use strict;
my ($path, $inode, $at, $how, $overlap, $most, $silence) = @ARGV;
my ($look_s, $rest_s, $slice) = (0.1, 0.4, 1 << 14);
my ($packer, $stdin) = (0, '');
vec($stdin, 0, 1) = 1;
# The user's PERL_UNICODE or PERL5OPT may decode what is read and written; here everything is bytes.
binmode $_ for *STDIN, *STDOUT;
$SIG{ALRM} = sub { exit 1 };
END { kill 'KILL', $packer if $packer }
alarm $silence;

# Wait, but only while there is no input.
sub heed {
    my $ready = $stdin;
    return unless select($ready, undef, undef, $_[0]) > 0;
    sysread(STDIN, my $said, 4096) or exit;
    alarm $silence;
}

# In slices: each takes its time on a slow line.
sub put {
    my ($data) = @_;
    my $done = 0;
    while ($done < length $data) {
        heed(0);
        $done += syswrite(STDOUT, $data, $slice, $done) || exit 1;
    }
}

# Read this many bytes of a file, fewer only at its end.
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
        # Only opening the file shows whether it may still be read; NFS then asks its server for the size, too.
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
