"""`Shell`: a process on the login node that stays open and runs read-only commands, each in one round trip.

A new channel for each command would cost two round trips and the start of the login shell.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Sequence

from llmb_tui.cluster.failures import DisconnectedError, NoAnswerError
from llmb_tui.cluster.link import LONGEST_ANSWER, Completed, answer_too_long
from llmb_tui.cluster.quoting import nul_joined
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.ssh.channels import Channels, ChannelStream
from llmb_tui.errors import LlmbError

SILENCE_S = 8
"""The process ends after so many seconds without input, because the server may not notice a dead line."""
_START_S = 5.0
_LONGEST_HEAD = 64
# Longest output of a login shell before the process starts.
_LONGEST_NOISE = 1 << 16


class Shell:
    """Runs one command at a time. The second command starts the process, if it can be started.

    Other commands need their own channels: a command during another one, and all commands if the login node has no
    Perl or the server has few sessions.
    """

    def __init__(self, channels: Channels, host: str) -> None:
        self._channels = channels
        self._host = host
        self._busy = threading.Lock()
        self._sending = threading.Lock()
        self._stream: ChannelStream | None = None
        self._mark = b""
        self._rest = bytearray()
        self._is_wanted = False
        self._works = True

    def run(self, argv: Sequence[str], ends: float) -> Completed | None:
        """Run a command before the monotonic time `ends`; None if it was not started and needs its own channel.

        Raises DeadlineError, AnswerTooLongError and DisconnectedError; in all three cases the command may have run.
        """
        request = nul_joined(argv)
        if not self._works or not self._busy.acquire(blocking=False):
            return None
        try:
            # A single command is faster on its own channel: the process is started for the second one.
            is_wanted, self._is_wanted = self._is_wanted, True
            return self._ask(argv, request, ends) if is_wanted else None
        except NoAnswerError:
            self._end()
            raise
        except DisconnectedError as broken:
            self._give_up()
            raise self._channels.disconnected(argv, may_have_run=True) from broken
        finally:
            self._busy.release()

    def send_keepalive(self) -> None:
        """Show the process that its reader is still there. Does not wait for a command that is being sent."""
        stream = self._stream
        if stream is not None and self._sending.acquire(blocking=False):
            try:
                stream.send_keepalive()
            finally:
                self._sending.release()

    def _ask(self, argv: Sequence[str], request: bytes, ends: float) -> Completed | None:
        if self._stream is not None and self._stream.gave_way:
            self._give_up()
            return None
        while (stream := self._stream or self._start(ends)) is not None:
            with self._sending:
                stream.send(b"%d\n%s" % (len(request), request), ends)
            answer = self._answer(argv, stream, ends)
            if answer is not None:
                return answer
            self._end()  # it had ended before, after a time without input
        return None

    def _start(self, ends: float) -> ChannelStream | None:
        """Start the process; None if that fails, and it is not tried again."""
        mark = secrets.token_hex(8)
        argv = ["perl", "-e", remote_text("shell.pl"), mark, str(SILENCE_S)]
        ends = min(ends, time.monotonic() + _START_S)
        try:
            if not self._channels.are_short:
                stream = self._stream = self._channels.stream(argv, ends, turn_s=0.0)
                self._mark = mark.encode()
                self._rest.clear()
                greeting = b"%s ! 0\n" % self._mark
                while greeting not in self._rest:
                    if len(self._rest) > _LONGEST_NOISE:
                        raise LlmbError("Another program answers.")
                    self._receive(argv, stream, ends)
                del self._rest[: self._rest.index(greeting) + len(greeting)]
                return stream
        except LlmbError:
            pass
        self._give_up()
        return None

    def _answer(self, argv: Sequence[str], stream: ChannelStream, ends: float) -> Completed | None:
        """Read the answer; None if the process reports that it ended before it read the request."""
        outputs = {b"1": bytearray(), b"2": bytearray()}
        head = re.compile(rb"%s ([12=.]) (-?\d{1,9})\n" % self._mark)
        while True:
            while (frame := head.match(self._rest)) is None:
                if len(self._rest) > _LONGEST_HEAD:
                    raise DisconnectedError("The output is not in frames.")
                self._receive(argv, stream, ends)
            kind, number = frame[1], int(frame[2])
            del self._rest[: frame.end()]
            if kind == b".":
                return None
            if kind == b"=":
                stdout, stderr = (output.decode(errors="replace") for output in outputs.values())
                return Completed(number, stdout, stderr)
            while len(self._rest) < number:
                self._receive(argv, stream, ends)
            outputs[kind] += self._rest[:number]
            del self._rest[:number]
            if len(outputs[kind]) > LONGEST_ANSWER:
                raise answer_too_long(argv, self._host)

    def _receive(self, argv: Sequence[str], stream: ChannelStream, ends: float) -> None:
        data = stream.read(max(0.0, ends - time.monotonic()))
        if data is None:
            raise self._channels.deadline_passed(argv)
        if not data:
            raise DisconnectedError("The shell ended.")
        self._rest += data

    def _end(self) -> None:
        """End the process and its command; the next command starts another process."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _give_up(self) -> None:
        self._works = False
        self._end()
