"""Login: keys first, then the questions of the server, one factor after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain

import paramiko

from llmb_tui.cluster.failures import AuthenticationError, UnreachableError
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.ssh.channels import LINK_ERRORS
from llmb_tui.cluster.ssh.handshake import LoginTransport
from llmb_tui.cluster.ssh.keys import Candidate, Keys, NoSignatureError, UnlockedKeys, reason
from llmb_tui.cluster.ssh.openssh import METHODS, HostSettings
from llmb_tui.cluster.ssh.questions import (
    PHONE_S,
    QuestionDeclinedError,
    Questions,
    ServerHungUpError,
    ask,
    has_hung_up,
)
from llmb_tui.cluster.ssh.userauth import KeyRefusedError, KeyRequests
from llmb_tui.language.quantities import duration
from llmb_tui.language.text import clean

_HUMAN_TRIES = 3
_SERVER_DEADLINE_S = 30.0
_ENDING_S = 0.05
KEY_DEADLINE_S = 60.0
"""Deadline of a login with a key, seconds: an agent may wait for a person to touch a token."""
_LONGEST_MESSAGE = 1000


class UntriedKeysError(Exception):
    """The server hung up while keys were offered, without a question to the user: continue on a new connection."""


class Login:
    """Login to one host, on several connections if the server accepts only a few keys on each.

    Each answer and each key is given to the server only once.
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
        """Methods in the last answer of the server."""
        self._has_asked = False
        self._has_refused = False
        self._has_expired = False
        """Whether an expired certificate was offered."""
        self._advice = "Check the user name and the key; "
        """First part of the remedy; empty if a message of the server is the reason, such as an expired account."""
        self._banners_before = 0
        """Number of the server's messages before the present attempt."""

    def __enter__(self) -> Login:
        return self

    def __exit__(self, *_: object) -> None:
        self._keys.close()

    @property
    def banner(self) -> bytes:
        """Messages of the server during the login, unchanged."""
        return b"\n".join(self._transport.banners)

    @property
    def asks_nobody(self) -> bool:
        """True if the same login can be repeated without a question to the user."""
        return not (self._has_asked or self._keys.has_asked)

    def run(self, transport: LoginTransport) -> None:
        """Log in on this connection.

        Raises UntriedKeysError if another connection may continue, and AuthenticationError with all that was tried.
        """
        self._transport = transport
        self._requests = KeyRequests(transport)
        self._has_refused = False
        self._candidates, self._passed = chain(self._passed, self._candidates), []
        try:
            methods = self._begin()
            while not transport.is_authenticated():
                methods = self._give_factor(methods)
        except QuestionDeclinedError as declined:
            fix = "Connect again and answer the question, at a terminal or on the screen."
            if self._has_expired:
                fix = f"Renew the certificate. Without it: {fix[0].lower()}{fix[1:]}"
            raise self.failure(f"The question `{declined}` was not answered.", fix) from None
        except ServerHungUpError:
            raise self.failure(
                "The server closed the connection while the question was open. The answer was not sent.",
                "Connect again, and answer sooner: servers wait for two minutes or less.",
            ) from None

    def failure(self, why: str, fix: str = "") -> AuthenticationError:
        """Make the error that lists all attempts and the settings."""
        tried = [*self._tried, *self._keys.unusable]
        parts = [f"Tried: {', '.join(tried)}."] if tried else []
        parts.append(why)
        if message := _quoted(self._transport.banners):
            parts.append(f"The server's message: {message}.")
        parts.append(self.settings.source)
        if self.settings.has_shared_connection():
            parts.append("The open connection of `ssh` to this host (ControlMaster) can be used only by `ssh` itself.")
        return AuthenticationError(
            f"{self.settings.place}, rejected the login of {self._user}.",
            " ".join(parts),
            fix or f"{self._advice}{self._details}",
        )

    @property
    def _details(self) -> str:
        return f"`{self.settings.debug_command}` shows details in another terminal."

    def _begin(self) -> list[str]:
        """Return the methods that the server requires; none if the login is complete.

        A key is offered before the server has listed its methods, which saves a round trip: a server that accepts keys
        would get this key first anyway. The user is not asked to unlock a key before that.
        """
        first = None if self._tried or self.settings.methods[:1] != ("publickey",) else next(self._candidates, None)
        if first is None or (first.asks and not first.public):
            self._candidates = chain([] if first is None else [first], self._candidates)
            return self._ask_for_methods()
        self._methods = []
        self._try(first.name, self._requests.ask_for_service, _SERVER_DEADLINE_S)
        remaining = self._offer(first)
        if remaining is not None:
            return remaining
        if self._methods and "publickey" not in self._methods:  # the server has not checked it: it may be offered later
            self._candidates = chain([first], self._candidates)
        return self._methods or self._ask_for_methods()

    def _ask_for_methods(self) -> list[str]:
        self._transport.auth_timeout = _SERVER_DEADLINE_S
        self._banners_before = len(self._transport.banners)
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
        """Pass one factor, and return the methods that the server requires next; none if the login is complete."""
        has_asked = False
        for method in self.settings.methods:
            remaining = None
            if method not in methods:
                continue
            if method == "publickey":
                remaining = self._offer_keys()
            elif method == "keyboard-interactive":
                has_asked, remaining = self._answer_questions()
            elif not has_asked:  # keyboard-interactive has already asked for the password
                remaining = self._give_password()
            if remaining is not None:
                return remaining
        raise self._no_method(methods)

    def _no_method(self, methods: list[str]) -> AuthenticationError:
        """Make the error for a server whose methods did not lead to a login."""
        accepted = f"The server accepts: {', '.join(methods)}."
        supported = [method for method in METHODS if method in methods]
        if not supported:
            why = f"{accepted} This program supports only {', '.join(METHODS)}."
            if any(method.startswith("gssapi") for method in methods):
                why = f"{accepted} That is Kerberos, which this program does not support."
            return self.failure(why, "Ask the cluster's administrators for a login by key, password or code.")
        if not set(supported) & set(self.settings.methods):
            why = f"{accepted} The OpenSSH configuration switches these methods off."
            return self.failure(why, f"Allow one of these in the OpenSSH configuration: {', '.join(supported)}.")
        return self.failure(accepted)

    def _offer_keys(self) -> list[str] | None:
        for candidate in self._candidates:
            remaining = self._offer(candidate)
            if remaining is not None:
                return remaining
        return None

    def _offer(self, candidate: Candidate) -> list[str] | None:
        if candidate.has_expired:
            self._has_expired = True
            self._advice = "Renew the certificate; "
        if candidate.asks and candidate.public:
            query = partial(self._requests.ask_about, self._user, candidate.public)
            if self._try(candidate.name, query, _SERVER_DEADLINE_S) is None:
                return None
        key = candidate.private()
        if key is None:
            self._tried.append(f"{candidate.name} (not unlocked)")
            return None
        remaining = self._try(candidate.name, partial(self._requests.sign_in, self._user, key), KEY_DEADLINE_S)
        if remaining is not None:
            self._passed.append(candidate)
        return remaining

    def _answer_questions(self) -> tuple[bool, list[str] | None]:
        """Log in by keyboard-interactive: whether a question was asked, and the remaining methods."""
        self._has_asked = True  # even without a question, the user may have to confirm on a phone
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
            if not self._transport.is_active() or has_hung_up(self._transport.sock):
                raise ServerHungUpError
            attempt = partial(self._transport.auth_password, self._user, password, fallback=False)
            remaining = self._try("password", attempt, PHONE_S)
            if remaining is not None:
                return remaining
        return None

    def _try(
        self, name: str, attempt: Callable[[], list[str] | None], deadline_s: float, questions: Questions | None = None
    ) -> list[str] | None:
        """Make one attempt; the remaining methods after a success, None after a refusal."""
        self._transport.auth_timeout = deadline_s
        self._banners_before = len(self._transport.banners)
        begun_at = time.monotonic()
        try:
            return attempt() or []
        except LINK_ERRORS as error:
            last_words = questions.last_words.strip() if questions is not None else ""
            if last_words:
                self._advice = ""
            self._tried.append(f"{name} ({last_words or self._transport.parting_words or reason(error)})")
            silent = questions.was_silent if questions is not None else time.monotonic() - begun_at >= deadline_s
            if silent and not isinstance(error, NoSignatureError):
                raise self.failure(f"Then the server did not answer within {duration(deadline_s)}.") from error
            if self._has_hung_up():
                raise self._closed() from error
            self._has_refused = True
            if isinstance(error, KeyRefusedError):
                self._methods = error.methods
            return None

    def _has_hung_up(self) -> bool:
        """True if the server has closed the connection. Paramiko raises shortly before `is_active` becomes false."""
        self._transport.join(_ENDING_S)
        return not self._transport.is_active()

    def _closed(self) -> Exception:
        """Make the error for a closed connection. Without a question to the user, another connection may continue."""
        message = "" if self._transport.parting_words else _quoted(self._transport.banners[self._banners_before :])
        if message and not self._has_asked:
            what = f"{self.settings.place}, closed the connection during the login of {self._user}."
            return UnreachableError(what, f"The server's message: {message}.", self._details)
        words = f": {self._transport.parting_words}" if self._transport.parting_words else ""
        # A server that ends the login after too many tries gives a reason, or has refused before.
        if not (words or self._has_refused or self._has_asked):
            what = f"The connection to {self.settings.place}, broke during the login."
            return UnreachableError(what, "The network or the server closed it without a message.", "Try again.")
        if not self._has_asked:
            return UntriedKeysError(f"Then the server closed the connection{words}.")
        if message:
            return self.failure("Then the server closed the connection.", self._details)
        return self.failure(
            f"Then the server closed the connection{words}. It may accept no more tries on one connection.",
            "Connect again: the login starts from the beginning.",
        )


def _quoted(banners: Sequence[bytes]) -> str:
    """Last message of a server in quotation marks, clean and short enough for an error; empty if there is none."""
    text = clean(b"".join(banners[-1:]).decode(errors="replace").replace("\r\n", "\n")).strip()
    return f'"{text[:_LONGEST_MESSAGE]}"' if text else ""
