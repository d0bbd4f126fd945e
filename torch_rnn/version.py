"""The project's version, without importing torch."""

from importlib.metadata import PackageNotFoundError, version


def project_version() -> str:
    """Return this project's version, "unknown" where it runs without having been installed."""
    try:
        return version("rnn-parity")
    except PackageNotFoundError:
        return "unknown"
