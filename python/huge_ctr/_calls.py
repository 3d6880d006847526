"""Runs long calls in a separate thread, while the caller's thread runs callbacks and can be interrupted."""

from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Optional

_AFTER_INTERRUPT = 0.05  # seconds until a stop request is repeated


class Conversation:
    """Passes messages between the working thread and the calling thread."""

    def __init__(self) -> None:
        self._events: queue.SimpleQueue = queue.SimpleQueue()
        self._raised: list[BaseException] = []
        self._interrupted: Optional[KeyboardInterrupt] = None

    def ask(self, function: Callable[[Any], Any], about: Any) -> bool:
        """The working thread calls this to run function(about) in the caller's thread. Returns the function's result.
        If the result is False, the work must end.
        """
        answer: queue.SimpleQueue = queue.SimpleQueue()
        self._events.put((function, about, answer))
        while True:
            try:
                return answer.get(timeout=_AFTER_INTERRUPT)
            except queue.Empty:
                if self._interrupted:  # the interrupt may have dropped the question, so no answer will arrive
                    return False

    def run(self, work: Callable[[], Any], stop: Callable[[], None]) -> Any:
        """Runs work() in another thread, and callbacks in this thread. A KeyboardInterrupt calls stop(), and is raised
        after the work has ended.
        """
        result: list = []

        def body() -> None:
            try:
                result.append(work())
            except BaseException as error:  # the caller's thread raises it again
                self._raised.insert(0, error)
            self._events.put(None)

        thread = threading.Thread(target=body, name="huge_ctr", daemon=True)
        try:
            thread.start()
        except KeyboardInterrupt as error:
            if thread.ident is None:
                raise
            self._interrupted = error
        while True:
            try:
                if self._interrupted:
                    stop()
                event = self._events.get(timeout=_AFTER_INTERRUPT if self._interrupted else None)
                if event is None:
                    break
                self._answer(event)
            except queue.Empty:
                if not thread.is_alive():  # an interrupt may have dropped the last message of the thread
                    break
            except KeyboardInterrupt as error:  # the user may press Ctrl-C several times
                self._interrupted = self._interrupted or error
        thread.join()
        if self._interrupted:
            raise self._interrupted
        if self._raised:
            raise self._raised[0]
        return result[0]

    def _answer(self, event: tuple) -> None:
        function, about, answer = event
        goes_on = False
        try:
            if not self._interrupted and not self._raised:
                goes_on = function(about) is not False
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # an exception of a callback ends the work, and is raised again after it
            self._raised.append(error)
        finally:
            answer.put(goes_on)
