"""`Questions`: the rounds of one keyboard-interactive login, from the server to a person and back."""

from __future__ import annotations

import select
import socket
import threading
from typing import Any

import paramiko

from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.ssh.sockets import Through
from llmb_tui.cluster.ssh.userauth import QuestionsInAnyText
from llmb_tui.language.text import clean

PHONE_S = 120.0
"""How long a server may be silent after an answer, in seconds: it may wait for somebody to confirm on a phone."""

_LONGEST = 4000


class Declined(Exception):
    """The prompter gave no answer."""


class HungUp(Exception):
    """The server closed the connection while a question was open. The answer was not sent."""


class Questions:
    """Answers the rounds of one attempt. Paramiko calls it in the transport's own thread.

    What is raised here ends the connection, and nothing that the person did not type is sent.
    """

    def __init__(self, transport: paramiko.Transport, login: str, prompter: Prompter) -> None:
        self._transport = transport
        self._login = login
        self._prompter = prompter
        self._silence = self._new_silence()
        self._words = ""
        self.has_asked = False
        self.was_silent = False
        """The server did not answer in time, and the connection was closed."""

    def __call__(self, title: str, instructions: str, prompts: list[tuple[str, bool]]) -> list[str]:
        """The answers to one round. What the server says without a question comes before the next one."""
        self._silence.cancel()
        self._words += "".join(f"{text.strip()}\n" for text in (title, instructions) if text.strip())
        answers = []
        for prompt, echo in prompts:
            self.has_asked = True
            answers.append(ask(self._prompter, f"{self._words}({self._login}) {prompt}", echo))
            self._words = ""
        if prompts and hung_up(self._transport.sock):
            raise HungUp
        self._silence = self._new_silence()
        self._silence.start()
        return answers

    def attempt(self, user: str) -> list[str]:
        """Log in; the methods that are left. Raises one of LINK_ERRORS, Declined or HungUp."""
        self._silence.start()
        # A person takes the time that the server gives; only the server's own silence is bounded.
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
        """What the server said and no question followed, clean."""
        return clean(self._words)[:_LONGEST]

    def _new_silence(self) -> threading.Timer:
        timer = threading.Timer(PHONE_S, self._end)
        timer.daemon = True
        return timer

    def _end(self) -> None:
        self.was_silent = True
        self._transport.close()


def ask(prompter: Prompter, prompt: str, echo: bool) -> str:
    """The person's answer. Raises Declined."""
    text = clean(prompt)[-_LONGEST:]
    answer = prompter.answer(text, echo)
    if answer is None:
        raise Declined(text.strip())
    return answer


def hung_up(sock: Any) -> bool:
    """Whether the other end has closed, which the transport's own thread may not have read yet."""
    if isinstance(sock, Through):
        return sock.has_ended
    looks = select.poll()
    try:
        looks.register(sock, select.POLLIN)
        return bool(looks.poll(0)) and not sock.recv(1, socket.MSG_PEEK)
    except TimeoutError:  # that thread has taken meanwhile what had come
        return False
    except (OSError, ValueError):  # closed here as well
        return True
