"""The exceptions of this package."""


class Error(Exception):
    """Any error of Hone."""


class InputError(Error, ValueError):
    """Something that was given is wrong: a file, a name, an option, an array. The message says what was expected."""


class UnsupportedError(Error, NotImplementedError):
    """The model or the request is sound, but Hone does not handle it."""


class InternalError(Error, RuntimeError):
    """The operating system refused something, a component crashed, or Hone has a fault."""
