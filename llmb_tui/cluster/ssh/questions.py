"""`Questions`: the questions of the server in one keyboard-interactive login."""

from __future__ import annotations

import select
import socket
import threading
from typing import Any

import paramiko

from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.ssh.sockets import ForwardedSocket
from llmb_tui.cluster.ssh.userauth import QuestionsInAnyText
from llmb_tui.language.redact import remember_secret, server_words, without_sent_secrets
from llmb_tui.language.text import clean

PHONE_S = 120.0
"""Longest silence of a server after an answer, seconds: it may wait for a confirmation on a phone."""

_LONGEST = 4000


class QuestionDeclinedError(Exception):
    """The prompter gave no answer."""


class ServerHungUpError(Exception):
    """The server closed the connection while a question was open. The answer was not sent."""


class Questions:
    """Answers the questions of one attempt. Paramiko calls it in the transport's thread.

    An exception here ends the connection. Only answers that the user typed are sent.
    """

    def __init__(self, transport: paramiko.Transport, login: str, prompter: Prompter) -> None:
        self._transport = transport
        self._login = login
        self._prompter = prompter
        self._silence = self._new_silence()
        self._messages = ""
        self.has_asked = False
        self.was_silent = False
        """Whether the server did not answer in time, and the connection was closed."""

    def __call__(self, title: str, instructions: str, prompts: list[tuple[str, bool]]) -> list[str]:
        """Answer one round. A message without a question is shown with the next question."""
        self._silence.cancel()
        self._messages += "".join(f"{text.strip()}\n" for text in (title, instructions) if text.strip())
        answers = []
        for prompt, echo in prompts:
            self.has_asked = True
            answers.append(ask(self._prompter, f"{self._messages}({self._login}) {prompt}", echo))
            self._messages = ""
        if prompts and has_hung_up(self._transport.sock):
            raise ServerHungUpError
        self._silence = self._new_silence()
        self._silence.start()
        return answers

    def attempt(self, user: str) -> list[str]:
        """Log in, and return the remaining methods.

        Raises one of LINK_ERRORS, QuestionDeclinedError or ServerHungUpError.
        """
        self._silence.start()
        # The server limits the time for an answer; this program only limits the silence of the server.
        self._transport.auth_timeout = float("inf")
        try:
            handler = self._transport.auth_handler = QuestionsInAnyText(self._transport)
            has_answered = threading.Event()
            handler.auth_interactive(user, self, has_answered)
            return handler.wait_for_response(has_answered)
        finally:
            self._silence.cancel()

    @property
    def last_words(self) -> str:
        """Last messages of the server without a question, clean."""
        return server_words(self._messages, _LONGEST)

    def _new_silence(self) -> threading.Timer:
        timer = threading.Timer(PHONE_S, self._end)
        timer.daemon = True
        return timer

    def _end(self) -> None:
        self.was_silent = True
        self._transport.close()


def ask(prompter: Prompter, prompt: str, echo: bool) -> str:
    """Ask the user. Raises QuestionDeclinedError."""
    text = without_sent_secrets(clean(prompt))[-_LONGEST:]
    answer = prompter.answer(text, echo)
    if answer is None:
        raise QuestionDeclinedError(server_words(text))
    if not (echo or answer.isdecimal()):  # a one-time code is soon worthless, and other numbers may be the same
        remember_secret(answer)
    return answer


def has_hung_up(sock: Any) -> bool:
    """True if the server has closed the socket, even if the transport's thread has not read that yet."""
    if isinstance(sock, ForwardedSocket):
        return sock.has_ended
    poll = select.poll()
    try:
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0)) and not sock.recv(1, socket.MSG_PEEK)
    except TimeoutError:  # that thread has read the bytes meanwhile
        return False
    except (OSError, ValueError):  # also closed on this side
        return True
