"""Messages between the worker thread and the calling thread, with interrupts at any moment."""

import os
import signal
import threading
import unittest

import support  # noqa: F401  installs the SIGINT handler
from huge_ctr._calls import Conversation


class Conversations(unittest.TestCase):
    def test_results_questions_and_errors_come_through(self):
        talk = Conversation()
        here = threading.current_thread()
        self.assertEqual(talk.run(lambda: talk.ask(lambda about: threading.current_thread() is here, 1), None), True)
        self.assertEqual(Conversation().run(lambda: 7, None), 7)
        with self.assertRaisesRegex(LookupError, "of the work"):
            Conversation().run(lambda: (_ for _ in ()).throw(LookupError("of the work")), None)

    def test_an_interrupt_at_any_moment_ends_the_call(self):
        """Interrupts arrive while the worker asks the caller, and when work ends. Messages in transit may be lost."""

        def work(talk, stopped):
            os.kill(os.getpid(), signal.SIGINT)
            talk.ask(lambda about: True, 1)
            os.kill(os.getpid(), signal.SIGINT)

        for _ in range(30):
            talk, stopped = Conversation(), []
            with self.assertRaises(KeyboardInterrupt):
                talk.run(lambda talk=talk, stopped=stopped: work(talk, stopped), lambda s=stopped: s.append(1))

    def setUp(self):
        self.before = signal.getsignal(signal.SIGINT)

    def tearDown(self):
        signal.signal(signal.SIGINT, self.before)


if __name__ == "__main__":
    unittest.main()
