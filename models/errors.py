"""The error for what a user can put right."""


class InputError(ValueError):
    """Bad input: the message is one line that says what was found, what was expected, and what to do.

    The command line prints that line and exits with status `exit_code`.
    """

    exit_code = 2
