"""What a user can get wrong: always one readable line and a non-zero exit status."""


class UserError(Exception):
    """Shown as `gapless: <message>`; 1 is a failure, 2 a wrong command line, 126 and 127 are a shell's."""

    def __init__(self, message: str, status: int = 1):
        super().__init__(message)
        self.status = status
