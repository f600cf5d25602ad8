"""Logging in: keys first, then whatever the server asks, one factor after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import cast

import paramiko

from llmb_tui.cluster.failures import AuthenticationFailed, Unreachable
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.ssh.channels import LINK_ERRORS
from llmb_tui.cluster.ssh.handshake import LoginTransport
from llmb_tui.cluster.ssh.keys import Candidate, Keys, NoSignature, UnlockedKeys, reason
from llmb_tui.cluster.ssh.openssh import HostSettings
from llmb_tui.cluster.ssh.questions import PHONE_S, Declined, HungUp, Questions, ask, hung_up
from llmb_tui.cluster.ssh.userauth import KeyRequests, Refused
from llmb_tui.language.quantities import duration

_HUMAN_TRIES = 3
_SERVER_DEADLINE_S = 30.0
_ENDING_S = 0.05
# An agent may wait for a person to touch a token.
_KEY_DEADLINE_S = 60.0
_BANNER_BYTES = 16384


class KeysLeft(Exception):
    """The server hung up while keys were offered, and nobody was asked anything: a new connection goes on."""


class Login:
    """Logging in to one host, on one connection or, where the server takes only a few keys on each, on several.

    An answer is given to the server once, never again; a key likewise.
    """

    def __init__(self, settings: HostSettings, prompter: Prompter, unlocked: UnlockedKeys) -> None:
        self.settings = settings
        self._user = settings.user
        self.prompter = prompter
        self._keys = Keys(settings, prompter, unlocked)
        self._candidates: Iterator[Candidate] = self._keys.candidates()
        self._passed: list[Candidate] = []
        self._tried: list[str] = []
        self._methods: list[str] = []
        """What the server said last that it would take."""
        self._has_asked = False
        self._has_refused = False
        self.banner = b""
        """What the server greets with, as it came, at most 16 KiB of it."""

    def __enter__(self) -> Login:
        return self

    def __exit__(self, *_: object) -> None:
        self._keys.close()

    @property
    def asks_nobody(self) -> bool:
        """True when logging in the same way again would ask no person anything."""
        return not (self._has_asked or self._keys.has_asked)

    def run(self, transport: LoginTransport) -> None:
        """Return when the server has let the user in.

        Raises KeysLeft when another connection may go on, and AuthenticationFailed, which says what was tried.
        """
        self._transport = transport
        self._requests = KeyRequests(transport)
        self._has_refused = False
        self._candidates, self._passed = chain(self._passed, self._candidates), []
        try:
            methods = self._begin()
            while not transport.is_authenticated():
                methods = self._give_factor(methods)
        except Declined as declined:
            fix = "Connect again, where somebody can answer."
            raise self.failure(f"No answer was given to `{declined}`.", fix) from None
        except HungUp:
            raise self.failure(
                "The server closed the connection while the question was open. The answer was not sent.",
                "Connect again, and answer sooner: servers wait for two minutes or less.",
            ) from None

    def failure(self, why: str, fix: str = "") -> AuthenticationFailed:
        """The error that says what was tried, and with which settings."""
        tried = [*self._tried, *self._keys.unusable]
        return AuthenticationFailed(
            f"{self.settings.place}, did not let {self._user} in.",
            " ".join([*([f"Tried: {', '.join(tried)}."] if tried else []), why, self.settings.source]),
            fix or f"Check the user name and the key; `{self.settings.look}` in another terminal shows more.",
        )

    def _begin(self) -> list[str]:
        """The methods that the server wants, none when it is content.

        A key is offered before the server has named any method, which takes a round trip: where it takes keys at all,
        this would be the first. Nobody is asked to unlock one before that.
        """
        try:
            first = None if self._tried or self.settings.methods[:1] != ("publickey",) else next(self._candidates, None)
            if first is None or (first.asks and not first.public):
                self._candidates = chain([] if first is None else [first], self._candidates)
                return self._ask_for_methods()
            self._methods = []
            self._try(first.name, self._requests.ask_for_service, _SERVER_DEADLINE_S)
            remaining = self._offer(first)
            if remaining is not None:
                return remaining
            if self._methods and "publickey" not in self._methods:  # it was not looked at; its turn may come
                self._candidates = chain([first], self._candidates)
            return self._methods or self._ask_for_methods()
        finally:
            # The server greets once, and paramiko forgets it at the next attempt.
            banner = cast("bytes | None", self._requests.banner) or self._transport.get_banner() or b""
            self.banner = banner[:_BANNER_BYTES]

    def _ask_for_methods(self) -> list[str]:
        self._transport.auth_timeout = _SERVER_DEADLINE_S
        try:
            self._transport.auth_none(self._user)
        except paramiko.BadAuthenticationType as refusal:
            return list(refusal.allowed_types)
        except LINK_ERRORS as error:
            if self._has_hung_up():
                raise self._closed() from error
            raise self.failure(f"{reason(error)}.") from error
        return []

    def _give_factor(self, methods: list[str]) -> list[str]:
        """Pass one factor; the methods that the server wants next, none when it is content."""
        has_asked = False
        for method in self.settings.methods:
            remaining = None
            if method not in methods:
                continue
            if method == "publickey":
                remaining = self._offer_keys()
            elif method == "keyboard-interactive":
                has_asked, remaining = self._answer_questions()
            elif not has_asked:  # who was asked for the password there is not asked for it here
                remaining = self._give_password()
            if remaining is not None:
                return remaining
        raise self.failure(f"The server accepts: {', '.join(methods)}.")

    def _offer_keys(self) -> list[str] | None:
        for candidate in self._candidates:
            remaining = self._offer(candidate)
            if remaining is not None:
                return remaining
        return None

    def _offer(self, candidate: Candidate) -> list[str] | None:
        if candidate.asks and candidate.public:
            query = partial(self._requests.ask_about, self._user, candidate.public)
            if self._try(candidate.name, query, _SERVER_DEADLINE_S) is None:
                return None
        key = candidate.private()
        if key is None:
            self._tried.append(f"{candidate.name} (not unlocked)")
            return None
        remaining = self._try(candidate.name, partial(self._requests.sign_in, self._user, key), _KEY_DEADLINE_S)
        if remaining is not None:
            self._passed.append(candidate)
        return remaining

    def _answer_questions(self) -> tuple[bool, list[str] | None]:
        """Keyboard-interactive: whether anything was asked, and the methods that are left."""
        self._has_asked = True  # even without a question, somebody may have to confirm on a phone
        for _ in range(_HUMAN_TRIES):
            questions = Questions(self._transport, self.settings.login, self.prompter)
            remaining = self._try("keyboard-interactive", partial(questions.attempt, self._user), PHONE_S, questions)
            if remaining is not None or not questions.has_asked:
                return questions.has_asked, remaining
        return True, None

    def _give_password(self) -> list[str] | None:
        for _ in range(_HUMAN_TRIES):
            self._has_asked = True
            password = ask(self.prompter, f"Password for {self.settings.login}: ", echo=False)
            if not self._transport.is_active() or hung_up(self._transport.sock):
                raise HungUp
            attempt = partial(self._transport.auth_password, self._user, password, fallback=False)
            remaining = self._try("password", attempt, PHONE_S)
            if remaining is not None:
                return remaining
        return None

    def _try(
        self, name: str, attempt: Callable[[], list[str] | None], deadline_s: float, questions: Questions | None = None
    ) -> list[str] | None:
        """The methods that are left after a success, None after a refusal."""
        self._transport.auth_timeout = deadline_s
        begun_at = time.monotonic()
        try:
            return attempt() or []
        except LINK_ERRORS as error:
            words = questions.last_words.strip() if questions is not None else ""
            self._tried.append(f"{name} ({words or self._transport.parting_words or reason(error)})")
            silent = questions.was_silent if questions is not None else time.monotonic() - begun_at >= deadline_s
            if silent and not isinstance(error, NoSignature):
                raise self.failure(f"The server then did not answer within {duration(deadline_s)}.") from error
            if self._has_hung_up():
                raise self._closed() from error
            self._has_refused = True
            if isinstance(error, Refused):
                self._methods = error.methods
            return None

    def _has_hung_up(self) -> bool:
        """Paramiko raises a moment before it says that the transport is no longer active."""
        self._transport.join(_ENDING_S)
        return not self._transport.is_active()

    def _closed(self) -> Exception:
        """The server hung up: where nobody was asked anything on this connection, another one may go on."""
        words = f": {self._transport.parting_words}" if self._transport.parting_words else ""
        # A server that has seen enough says so, or refused before.
        if not (words or self._has_refused or self._has_asked):
            what = f"The connection to {self.settings.place}, broke while logging in."
            return Unreachable(what, "The network or the server cut it, without a word.", "Try again.")
        if not self._has_asked:
            return KeysLeft(f"The server then closed the connection{words}.")
        return self.failure(
            f"The server then closed the connection{words}. It may take no more tries on one connection.",
            "Connect again: everything is asked for from the start.",
        )
